//! What a Field does with an embedding model outside: texts are embedded at the door, before the actor hears of them;
//! what failed there, or was never asked, is embedded behind, and units that waited for it turn active.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::WeakSender;
use tokio::time::sleep;

use super::actor::{Call, Published};
use super::endpoint::Endpoint;
use super::index::{SharedIndex, embedded_text};
use crate::field::{Embedded, Message, World, Writes, document, writes};
use crate::limits::{EMBEDDING_BATCH_MAX, EMBEDDING_RETRY_MAX_MS, EMBEDDING_RETRY_MIN_MS};
use crate::protocol::{AttuneRequest, CommitRequest, Intent, Mode, Request};
use crate::relevance::{Document, Vector};

/// Units that one entry turns active.
const TURNED_MAX: usize = 1_024;

/// Embeds a Field's messages before they are decided.
pub(super) struct Enricher {
    endpoint: Arc<Endpoint>,
    index: Arc<SharedIndex>,
}

impl std::fmt::Debug for Enricher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enricher").finish_non_exhaustive()
    }
}

impl Enricher {
    pub fn new(endpoint: Arc<Endpoint>, index: Arc<SharedIndex>) -> Self {
        Self { endpoint, index }
    }

    /// Asks for the direction of a message's text, where it has one that counts. `world` is what is durable.
    pub async fn embed(&self, message: &mut Message, world: &World) {
        let text = match &message.request {
            Ok(Request::Record(request)) if request.mode == Mode::Committed => {
                told(&request.content, &request.intent)
            }
            Ok(Request::Commit(request)) => match committed(request, world) {
                Some(text) => text,
                None => {
                    message.embedded = Embedded::Failed("the draft was not durable yet".into());
                    return;
                }
            },
            Ok(Request::Merge(request)) => match writes(world, request) {
                Writes::Unit(content, intent) => told(content, &intent),
                Writes::Unknown => {
                    message.embedded = Embedded::Failed("the conflict was not durable yet".into());
                    return;
                }
                Writes::Nothing => return,
            },
            Ok(Request::Attune(request)) => {
                let hint = request.context_hint.as_deref().filter(|hint| !hint.trim().is_empty());
                let text = hint.map_or_else(|| profile(request, &message.agent_id, world), str::to_owned);
                message.embedded = match self.endpoint.embed(text).await {
                    Ok(direction) => Embedded::Given(direction),
                    Err(why) => Embedded::Failed(why),
                };
                return;
            }
            _ => return,
        };
        // A repeated message, or the same text again, need not be asked again.
        if self.index.is_parked(&text) {
            return;
        }
        match self.endpoint.embed(text.clone()).await {
            Ok(direction) => match Vector::new(&direction) {
                Some(vector) => self.index.park(&text, vector),
                None => message.embedded = Embedded::Failed("the embedding points nowhere".into()),
            },
            Err(why) => message.embedded = Embedded::Failed(why),
        }
    }
}

/// The text of a unit that is yet to be.
fn told(content: &str, intent: &Intent) -> String {
    embedded_text(&Document {
        content,
        purpose: &intent.purpose,
        question: intent.question.as_deref(),
        author: "",
        role: "",
        session: None,
    })
}

fn committed(request: &CommitRequest, world: &World) -> Option<String> {
    let no = request.memory_unit_id.parse().ok().and_then(|id| world.find(id))?;
    Some(embedded_text(&document(world.slot(no))?))
}

/// Without a hint the need is role and interests, those of the scope before those that were registered.
fn profile(request: &AttuneRequest, agent: &str, world: &World) -> String {
    let scope = &request.scope;
    let registered = world.agent_no(agent).map(|no| &world.agent(no).agent.interests[..]);
    let interests = match &scope.extended.interests[..] {
        [] => registered.unwrap_or_default(),
        interests => interests,
    };
    let interests = interests.iter().map(AsRef::as_ref);
    std::iter::once(&*scope.role).chain(interests).collect::<Vec<&str>>().join(", ")
}

/// Embeds what is missing, and has units that waited turned active, until the Field is closed.
pub(super) async fn embed_behind(
    endpoint: Arc<Endpoint>,
    index: Arc<SharedIndex>,
    published: Arc<Published>,
    calls: WeakSender<Call>,
) {
    let mut pause = EMBEDDING_RETRY_MIN_MS;
    let mut batch = EMBEDDING_BATCH_MAX;
    loop {
        sleep(Duration::from_millis(pause)).await;
        let Some(calls) = calls.upgrade().filter(|calls| !calls.is_closed()) else { break };
        let view = published.view.load_full();
        let world = view.world();
        let (seen, most) = (Arc::clone(&view), batch);
        let Some(missing) = aside(&index, move |index| index.take_missing(seen.world(), most)).await else {
            break;
        };
        if missing.is_empty() {
            pause = EMBEDDING_RETRY_MIN_MS;
        } else {
            let texts: Vec<String> = missing.iter().map(|(_, text)| text.clone()).collect();
            match endpoint.embed_all(&texts).await {
                Ok(directions) => {
                    let vectors = directions.iter().map(|direction| Vector::new(direction));
                    let found = missing.iter().map(|(place, _)| *place).zip(vectors);
                    let found = found.filter_map(|(place, vector)| Some((place, vector?))).collect();
                    // What was purged meanwhile needs none any more.
                    let seen = published.view.load_full();
                    if aside(&index, move |index| index.fill(seen.world(), found)).await.is_none() {
                        break;
                    }
                    batch = (batch * 2).min(EMBEDDING_BATCH_MAX);
                    // There is probably more.
                    pause = 1;
                }
                Err(error) => {
                    tracing::warn!(%error, units = missing.len(), "embeddings are missing; they are tried again");
                    let places = missing.into_iter().map(|(place, _)| place);
                    if aside(&index, |index| index.give_back(places)).await.is_none() {
                        break;
                    }
                    // One text may be what is wrong: fewer at a time, and longer and longer pauses.
                    pause = if batch > 1 { pause } else { (pause * 2).min(EMBEDDING_RETRY_MAX_MS) };
                    batch = (batch / 2).max(1);
                }
            }
        }
        let waiting = world.pending.iter().map(|no| world.slot(*no));
        let turned: Vec<_> = waiting
            .filter(|slot| slot.place.is_some_and(|place| index.has_vector(place)))
            .map(|slot| slot.id)
            .take(TURNED_MAX)
            .collect();
        if !turned.is_empty() && calls.send(Call::Enriched(turned)).await.is_err() {
            break;
        }
    }
}

/// Does what may wait for the index's turn, or read the log, where no session is served. `None` where that panicked or
/// the hub ends.
async fn aside<T: Send + 'static>(
    index: &Arc<SharedIndex>,
    work: impl FnOnce(&SharedIndex) -> T + Send + 'static,
) -> Option<T> {
    let index = Arc::clone(index);
    tokio::task::spawn_blocking(move || work(&index)).await.ok()
}
