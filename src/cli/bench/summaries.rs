//! `akashik bench summaries`: what COMPACT's summaries keep of what somebody will ask for, and whether they are found
//! where the units they stand for were.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::ask::DEFAULT_URL;
use super::super::exit::Failure;
use super::super::screen;
use super::lines;
use super::tally::rounded;
use crate::client::http::HttpClient;
use crate::protocol::Operation;

/// How long one exchange may take; a language model outside may be asked.
const PATIENCE: Duration = Duration::from_secs(600);
/// Who asks; wrote nothing.
const ASKER: &str = "bench-asker";
/// Units that a question is answered with.
const TAKEN: usize = 10;
/// Words shorter than this carry little, unless there is a digit in them.
const TELLING: usize = 4;

/// A measurement of summaries.
#[derive(Debug, Args)]
pub(in crate::cli) struct Summaries {
    /// The hub; its Field must be empty, and is summarized whole
    #[arg(long, env = "AKASHIK_URL", value_name = "URL", default_value = DEFAULT_URL)]
    url: String,
    /// Units, one JSON object a line: `key`, `agent_id`, `content`, and `session_id` and `task_id` where it has them
    #[arg(long, value_name = "FILE")]
    units: PathBuf,
    /// Questions, one JSON object a line: `context_hint`, and `gold`, the keys of the units that answer it; those of
    /// other units are left out
    #[arg(long, value_name = "FILE")]
    questions: PathBuf,
    /// Only lines of both that have this `field`
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Print so many of the summaries, from the first on
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    show: usize,
    /// Print JSON also on a terminal
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Unit {
    field: Option<String>,
    key: String,
    agent_id: String,
    content: String,
    session_id: Option<String>,
    task_id: Option<String>,
}

#[derive(Deserialize)]
struct Question {
    field: Option<String>,
    context_hint: String,
    gold: Vec<String>,
}

/// A unit as the hub gives it, as far as it matters here.
#[derive(Deserialize)]
struct Shown {
    id: String,
    content: String,
    #[serde(default)]
    relations: Vec<Relation>,
}

#[derive(Deserialize)]
struct Relation {
    #[serde(rename = "type")]
    kind: String,
    target_id: String,
}

#[derive(Deserialize)]
struct Page {
    units: Vec<Shown>,
    /// Where to go on; none on the last page.
    cursor: Option<String>,
}

impl Summaries {
    /// Runs the measurement.
    pub fn run(&self) -> Result<(), Failure> {
        let of_field = |field: &Option<String>| self.only.is_none() || *field == self.only;
        let mut units: Vec<Unit> = lines(&self.units)?;
        units.retain(|unit| of_field(&unit.field));
        let mut questions: Vec<Question> = lines(&self.questions)?;
        let keys: HashSet<&str> = units.iter().map(|unit| &*unit.key).collect();
        questions.retain(|asked| {
            of_field(&asked.field)
                && !asked.gold.is_empty()
                && asked.gold.iter().all(|key| keys.contains(&**key))
        });
        if questions.is_empty() {
            return Err(Failure::usage("no question is answered by these units"));
        }
        let address = self.url.parse().map_err(Failure::usage)?;
        let hub = Asking { client: HttpClient { address, token: None, patience: PATIENCE } };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let report = runtime.block_on(self.measure(&hub, &units, &questions))?;
        screen::show(self.json, &report, screen::figures)
    }

    async fn measure(&self, hub: &Asking, units: &[Unit], questions: &[Question]) -> Result<Value, Failure> {
        if !hub.page("units?limit=1").await?.units.is_empty() {
            return Err(Failure::usage(
                "the Field is not empty; give it one of its own: all of it is summarized",
            ));
        }
        let ids = hub.record(units).await?;
        let before = hub.ask_all(questions).await?;
        let payload = json!({ "strategy": "summarize", "filter": {}, "reason": "to measure summaries" });
        let compacted = hub.operate(Operation::Compact, ASKER, None, payload).await?;
        let summaries = hub.summaries().await?;
        let after = hub.ask_all(questions).await?;

        let mut standing: HashMap<&str, &Shown> = HashMap::new();
        for summary in &summaries {
            let originals = summary.relations.iter().filter(|relation| relation.kind == "elaborates");
            standing.extend(originals.map(|relation| (&*relation.target_id, summary)));
        }
        let by_key: HashMap<&str, &Unit> = units.iter().map(|unit| (&*unit.key, unit)).collect();
        let (mut kept, mut kept_telling) = (Share::default(), Share::default());
        let (mut found, mut found_again, mut found_anew) =
            (Share::default(), Share::default(), Share::default());
        for ((question, before), after) in questions.iter().zip(&before).zip(&after) {
            for key in &question.gold {
                let id = &*ids[&**key];
                // What is disputed stays as it is.
                let Some(summary) = standing.get(id) else { continue };
                let said = words(&by_key[&**key].content);
                let says = words(&summary.content);
                for word in &said {
                    kept.count(says.contains(word));
                    if word.chars().count() >= TELLING || word.contains(|c: char| c.is_ascii_digit()) {
                        kept_telling.count(says.contains(word));
                    }
                }
                let (was, is) = (before.iter().any(|found| found == id), after.contains(&summary.id));
                found.count(was);
                found_anew.count(is);
                if was {
                    found_again.count(is);
                }
            }
        }
        let bytes = |texts: &mut dyn Iterator<Item = &String>| texts.map(String::len).sum::<usize>();
        let originals = bytes(&mut units.iter().map(|unit| &unit.content));
        let texts = bytes(&mut summaries.iter().map(|summary| &summary.content));
        let longest = summaries.iter().map(|summary| summary.content.chars().count()).max();
        let mut report = json!({
            "bench": "summaries", "units": units.len(), "questions": questions.len(),
            "summarized": compacted["units_affected"],
            "summaries": summaries.len(), "longest_characters": longest,
            "text_to_originals": rounded(texts as f64 / originals.max(1) as f64),
            "gold_words_kept": kept.value(), "gold_words_that_tell_kept": kept_telling.value(),
            "gold_in_first_10_before": found.value(), "summary_of_gold_in_first_10": found_anew.value(),
            "where_its_original_was": found_again.value(),
        });
        if self.show > 0 {
            report["shown"] =
                summaries.iter().take(self.show).map(|summary| json!(summary.content)).collect();
        }
        Ok(report)
    }
}

/// How many of how many.
#[derive(Default)]
struct Share {
    met: u32,
    all: u32,
}

impl Share {
    fn count(&mut self, met: bool) {
        self.met += u32::from(met);
        self.all += 1;
    }

    fn value(&self) -> f64 {
        rounded(f64::from(self.met) / f64::from(self.all.max(1)))
    }
}

/// The words of a text, each once.
fn words(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// A hub.
struct Asking {
    client: HttpClient,
}

impl Asking {
    async fn operate(
        &self,
        operation: Operation,
        agent: &str,
        session: Option<&str>,
        payload: Value,
    ) -> Result<Value, Failure> {
        let payload = RawValue::from_string(payload.to_string()).map_err(Failure::failed)?;
        let answer = self.client.operate(operation, agent, session, None, payload).await;
        read(&answer.map_err(Failure::failed)?)
    }

    /// Records the units; their ids, by key.
    async fn record<'u>(&self, units: &'u [Unit]) -> Result<HashMap<&'u str, String>, Failure> {
        let agents: BTreeMap<&str, &str> =
            units.iter().map(|unit| (&*unit.agent_id, "participant")).chain([(ASKER, "analyst")]).collect();
        for (agent, role) in agents {
            let payload = json!({ "id": agent, "role": role });
            self.operate(Operation::Register, agent, None, payload).await?;
        }
        let mut ids = HashMap::new();
        for unit in units {
            let mut intent = json!({ "purpose": "Keep for the team" });
            if let Some(task) = &unit.task_id {
                intent["task_id"] = json!(task);
            }
            let payload = json!({
                "type": "observation", "content": unit.content, "intent": intent,
                "confidence": { "score": 0.9, "reason": "It was said." },
            });
            let session = unit.session_id.as_deref();
            let answer = self.operate(Operation::Record, &unit.agent_id, session, payload).await?;
            ids.insert(&*unit.key, answer["memory_unit_id"].as_str().unwrap_or_default().to_owned());
        }
        Ok(ids)
    }

    /// The ids of the units that each question is answered with.
    async fn ask_all(&self, questions: &[Question]) -> Result<Vec<Vec<String>>, Failure> {
        let mut found = Vec::new();
        for question in questions {
            let scope = json!({ "role": "analyst", "max_units": TAKEN });
            let payload =
                json!({ "scope": scope, "context_hint": question.context_hint, "format": "ids_only" });
            let answer = self.operate(Operation::Attune, ASKER, None, payload).await?;
            let units = answer["record"].as_array().cloned().unwrap_or_default();
            let id = |unit: &Value| unit["memory_unit"]["id"].as_str().map(str::to_owned);
            found.push(units.iter().filter_map(id).collect());
        }
        Ok(found)
    }

    /// The summaries, oldest first.
    async fn summaries(&self) -> Result<Vec<Shown>, Failure> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.page(&format!("units?type=synthesis&limit=100{after}")).await?;
            all.extend(page.units);
            let Some(cursor) = page.cursor else { return Ok(all) };
            after = format!("&after={cursor}");
        }
    }

    async fn page(&self, rest: &str) -> Result<Page, Failure> {
        read(&self.client.get(rest, None).await.map_err(Failure::failed)?)
    }
}

fn read<T: DeserializeOwned>(answer: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(answer.get()).map_err(Failure::failed)
}
