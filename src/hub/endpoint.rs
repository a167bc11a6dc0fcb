//! An embedding model outside of the hub: anything that speaks OpenAI's `/v1/embeddings`, over HTTP or HTTPS.
//!
//! Texts that are wanted at the same time travel together; few requests are under way at once, none longer than the
//! patience allows. What comes back is believed only if it is whole: a direction for each text, of the dimensions that
//! were agreed on, all of it numbers. Everything else is a failure that says what was wrong.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use super::outside::{Outside, Place};
use crate::config::EmbeddingSettings;
use crate::limits::{
    EMBEDDING_ANSWER_MAX_BYTES, EMBEDDING_BATCH_MAX, EMBEDDING_REQUESTS_MAX, EMBEDDING_REST_MS,
    EMBEDDING_WAITING_MAX,
};
use crate::relevance::{DIMENSIONS_MAX, Vector};

/// A direction, or why there is none.
pub(super) type Outcome = Result<Arc<[f32]>, Box<str>>;

/// A text that somebody waits for.
struct Wanted {
    text: String,
    to: oneshot::Sender<Outcome>,
}

/// A model outside, agreed on and ready.
pub(super) struct Endpoint {
    line: Line,
    dimensions: usize,
    wanted: mpsc::Sender<Wanted>,
    /// Until when nobody at a door waits for it, and why not: it failed a moment ago.
    resting: Mutex<Option<(Instant, Box<str>)>>,
}

/// How it is reached, and what it is asked for.
#[derive(Clone)]
struct Line {
    outside: Outside,
    model: String,
    /// Sent along, where the answer's dimensions are to be chosen.
    dimensions: Option<usize>,
}

impl Endpoint {
    /// Agrees with a model on its dimensions: those that are set, or those of what it answers now.
    ///
    /// # Errors
    /// An address that cannot be used; a model that does not answer and whose dimensions are not set.
    pub async fn agree(settings: &EmbeddingSettings) -> Result<Arc<Self>, String> {
        let line = Line::new(settings)?;
        let dimensions = match settings.dimensions {
            Some(dimensions) => dimensions,
            None => {
                let answer = line.ask(&["dimensions"], None).await.map_err(|error| {
                    format!(
                        "it does not say how many dimensions it has ({error}): set --embedding-dimensions"
                    )
                })?;
                answer.first().map_or(0, |direction| direction.len())
            }
        };
        let (wanted, wanted_in) = mpsc::channel(EMBEDDING_WAITING_MAX);
        tokio::spawn(serve(line.clone(), dimensions, wanted_in));
        Ok(Arc::new(Self { line, dimensions, wanted, resting: Mutex::new(None) }))
    }

    /// What the model is called.
    pub fn model(&self) -> &str {
        &self.line.model
    }

    /// Values of a direction.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The direction of one text, together with others that are wanted now, within the patience. For a moment after a
    /// failure nobody waits: the messages of a connection would each lose as much time.
    pub async fn embed(&self, text: String) -> Outcome {
        if let Some((until, why)) = &*self.resting()
            && Instant::now() < *until
        {
            return Err(why.clone());
        }
        let outcome = self.embed_now(text).await;
        if let Err(why) = &outcome {
            *self.resting() = Some((Instant::now() + Duration::from_millis(EMBEDDING_REST_MS), why.clone()));
        }
        outcome
    }

    fn resting(&self) -> MutexGuard<'_, Option<(Instant, Box<str>)>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn embed_now(&self, text: String) -> Outcome {
        let (to, outcome) = oneshot::channel();
        let hear = async {
            self.wanted.send(Wanted { text, to }).await.map_err(|_| "the hub is closing".to_owned())?;
            outcome.await.map_err(|_| "the request was lost".to_owned())?.map_err(String::from)
        };
        let heard = timeout(self.line.outside.patience(), hear).await;
        heard.unwrap_or_else(|_| Err(self.line.outside.too_slow())).map_err(Into::into)
    }

    /// The directions of several texts, or why there is none of any.
    pub async fn embed_all(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, String> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let answer = self.line.ask(&texts, Some(self.dimensions)).await;
        if answer.is_ok() {
            *self.resting() = None;
        }
        answer
    }
}

/// Sends what is wanted, as much of it as waits at a time.
async fn serve(line: Line, dimensions: usize, mut wanted: mpsc::Receiver<Wanted>) {
    let under_way = Arc::new(Semaphore::new(EMBEDDING_REQUESTS_MAX));
    let line = Arc::new(line);
    while let Ok(permit) = Arc::clone(&under_way).acquire_owned().await {
        let mut batch = Vec::new();
        if wanted.recv_many(&mut batch, EMBEDDING_BATCH_MAX).await == 0 {
            break;
        }
        // Whoever lost patience needs no answer any more.
        batch.retain(|wanted| !wanted.to.is_closed());
        let line = Arc::clone(&line);
        tokio::spawn(async move {
            let texts: Vec<&str> = batch.iter().map(|wanted| wanted.text.as_str()).collect();
            let answer = if texts.is_empty() { Ok(vec![]) } else { line.ask(&texts, Some(dimensions)).await };
            match answer {
                Ok(directions) => batch.into_iter().zip(directions).for_each(|(wanted, direction)| {
                    let _ = wanted.to.send(Ok(direction));
                }),
                Err(error) => batch.into_iter().for_each(|wanted| {
                    let _ = wanted.to.send(Err(error.as_str().into()));
                }),
            }
            drop(permit);
        });
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: usize,
    embedding: Vec<f32>,
}

impl Line {
    fn new(settings: &EmbeddingSettings) -> Result<Self, String> {
        let outside = Outside::new(&Place {
            what: "the embedding endpoint",
            ca_flag: "--embedding-ca-file",
            url: &settings.url,
            usual_path: "/v1/embeddings",
            key: settings.key.as_deref(),
            ca_file: settings.ca_file.as_deref(),
            patience: Duration::from_millis(settings.timeout_ms),
            answer_max_bytes: EMBEDDING_ANSWER_MAX_BYTES,
        })?;
        Ok(Self { outside, model: settings.model.clone(), dimensions: settings.dimensions })
    }

    /// The directions of texts, in their order. Of `dimensions` values each, or of any but the same.
    async fn ask(&self, texts: &[&str], dimensions: Option<usize>) -> Result<Vec<Arc<[f32]>>, String> {
        let mut body = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = json!(dimensions);
        }
        let answer = self.outside.ask(body.to_string()).await?;
        directions(&answer, texts.len(), dimensions)
    }
}

/// Reads an answer, whole or not at all.
fn directions(body: &[u8], count: usize, dimensions: Option<usize>) -> Result<Vec<Arc<[f32]>>, String> {
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|error| format!("the embedding endpoint's answer is no list of embeddings: {error}"))?;
    let mut found: Vec<Option<Arc<[f32]>>> = vec![None; count];
    for Embedding { index, embedding } in answer.data {
        let expected = dimensions.unwrap_or(embedding.len());
        if embedding.len() != expected || embedding.is_empty() || embedding.len() > DIMENSIONS_MAX {
            return Err(format!(
                "the embedding endpoint gave {} dimensions where {} were expected",
                embedding.len(),
                dimensions.map_or_else(|| format!("1 to {DIMENSIONS_MAX}"), |expected| expected.to_string())
            ));
        }
        if Vector::new(&embedding).is_none() {
            return Err("the embedding endpoint gave a direction that is none".to_owned());
        }
        if let Some(place) = found.get_mut(index) {
            *place = Some(embedding.into());
        }
    }
    let whole: Option<Vec<_>> = found.into_iter().collect();
    whole.ok_or_else(|| format!("the embedding endpoint did not give {count} embeddings for {count} texts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_whole_or_not_at_all() {
        let read = |text: &str| directions(text.as_bytes(), 2, Some(2));
        let whole =
            r#"{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1.5,-2]}],"model":"m"}"#;
        assert_eq!(read(whole).unwrap(), [Arc::from([1.5f32, -2.0]), Arc::from([0.0f32, 1.0])]);
        for wrong in [
            "",
            "<html>",
            "{}",
            r#"{"data":[]}"#,
            r#"{"data":[{"index":0,"embedding":[1,2]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1,2]},{"index":0,"embedding":[1,2]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1,2,3]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[NaN,1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[null,1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1e39,1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[0,0]}]}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(directions(br#"{"data":[{"index":0,"embedding":[]}]}"#, 1, None).is_err());
    }
}
