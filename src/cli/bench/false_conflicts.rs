//! Texts that are all true, recorded in a running hub: whatever it then finds contradictory is false.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::exit::Failure;
use super::tally::rounded;
use crate::client::{Client, ClientOptions, Detect, Record};
use crate::protocol::{MemoryType, UnitId};

/// Units recorded at once.
const AT_ONCE: usize = 64;
/// How long a scan may take.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// A true text and what is around it, as far as a line says it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Unit {
    /// What is said.
    pub content: String,
    /// Why; the same for all that do not say.
    pub purpose: Option<String>,
    /// The question that it answers.
    pub question: Option<String>,
    /// The task that it serves.
    pub task_id: Option<String>,
}

/// Records the texts, has the Field scanned, and counts what was found.
pub(super) async fn count(url: &str, run: &str, units: &[Unit], wrong: bool) -> Result<Value, Failure> {
    let mut options = ClientOptions::new(format!("bench-{run}"));
    options.patience = PATIENCE;
    let client = Client::connect(url, options).await.map_err(Failure::failed)?;
    client.register("bench").await.map_err(Failure::failed)?;
    let started = Instant::now();
    let recording = stream::iter(units).map(|unit| client.record(record(unit))).buffered(AT_ONCE);
    let answers: Vec<_> = recording.collect().await;
    let recorded = started.elapsed();
    let mut texts: HashMap<UnitId, &str> = HashMap::new();
    for (answer, unit) in answers.into_iter().zip(units) {
        texts.insert(answer.map_err(Failure::failed)?.memory_unit_id, &unit.content);
    }
    let started = Instant::now();
    let found = client.detect(Detect::scan()).await.map_err(Failure::failed)?;
    let scanned = started.elapsed();
    let ours = |id: &UnitId| texts.contains_key(id);
    let flagged: Vec<_> =
        found.conflicts.iter().filter(|found| ours(&found.unit_a) && ours(&found.unit_b)).collect();
    let mut figures = json!({
        "units": units.len(),
        "flagged": flagged.len(),
        "flagged_per_500_units": rounded(flagged.len() as f64 * 500.0 / units.len().max(1) as f64),
        "recording_s": rounded(recorded.as_secs_f64()),
        "scanned": found.scan_coverage.units_scanned,
        "scan_s": rounded(scanned.as_secs_f64()),
    });
    if wrong {
        let told = flagged.iter().map(|found| {
            let [a, b] = [found.unit_a, found.unit_b].map(|id| texts[&id]);
            json!({ "a": a, "b": b, "found": found.description, "detected_by": found.detected_by })
        });
        figures["wrong"] = told.collect();
    }
    Ok(figures)
}

fn record(unit: &Unit) -> Record {
    let purpose = unit.purpose.as_deref().unwrap_or("to know");
    let mut record =
        Record::new(MemoryType::Finding, &*unit.content).because(purpose).sure(0.8, "It is true.");
    if let Some(question) = &unit.question {
        record = record.asking(question);
    }
    if let Some(task) = &unit.task_id {
        record = record.for_task(task);
    }
    record
}
