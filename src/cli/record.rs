//! `akashik record`: RECORD.

use clap::Args;
use serde_json::{Value, json};

use super::ask::{Ask, number, object, relation, text_or_stdin};
use super::done;
use super::exit::Failure;
use super::screen::quoted;
use crate::protocol::Operation;

/// RECORD.
#[derive(Debug, Args)]
pub(super) struct Record {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    confidence: Confidence,
}

#[derive(Debug, Args)]
struct Flags {
    /// committed, or draft
    #[arg(long)]
    mode: Option<String>,
    /// Kind of knowledge: finding, decision, observation, question, …
    #[arg(long = "type", value_name = "TYPE", required_unless_present = "payload")]
    kind: Option<String>,
    /// What is to be remembered ('-' reads stdin)
    #[arg(long, required_unless_present = "payload")]
    content: Option<String>,
    /// Why it is recorded
    #[arg(long)]
    purpose: Option<String>,
    /// The question it is about
    #[arg(long)]
    question: Option<String>,
    /// The task it serves
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// How it relates to another unit; repeat it for more
    #[arg(long = "relation", value_name = "TYPE:ID", value_parser = relation)]
    relations: Vec<Value>,
}

/// How sure the author is; COMMIT takes it too. It is no part of `Flags` (a group loses its members when
/// another one is flattened into it), so it says itself that it does not go with `--payload`.
#[derive(Debug, Args)]
pub(super) struct Confidence {
    /// How sure the author is, 0 to 1
    #[arg(long, value_name = "0..1", value_parser = number, allow_negative_numbers = true,
        conflicts_with = "payload")]
    score: Option<f64>,
    /// Why so sure
    #[arg(long, conflicts_with = "payload")]
    reason: Option<String>,
    /// What it rests on; repeat it for more
    #[arg(long, conflicts_with = "payload")]
    evidence: Vec<String>,
    /// What must hold for it to stand; repeat it for more
    #[arg(long, conflicts_with = "payload")]
    assumption: Vec<String>,
}

impl Confidence {
    /// The payload's key `confidence`.
    pub fn value(&self) -> Value {
        object([
            ("score", json!(self.score)),
            ("reason", json!(self.reason)),
            ("evidence", json!(self.evidence)),
            ("assumptions", json!(self.assumption)),
        ])
    }
}

impl Record {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let payload = || self.flags.payload(&self.confidence);
        self.ask.tell(Operation::Record, payload, |sent, response| {
            if sent["mode"] == "draft" {
                return drafted(response);
            }
            done::unit("recorded", response, &self.ask.conflicts_of(response))
        })
    }
}

/// A draft, and how it becomes more.
fn drafted(response: &Value) -> String {
    let id = response["memory_unit_id"].as_str().map(quoted).unwrap_or_default();
    format!("{}  to make it everyone's: akashik commit --unit {id}\n", done::unit("drafted", response, &[]))
}

impl Flags {
    fn payload(&self, confidence: &Confidence) -> Result<Value, Failure> {
        let content = self.content.as_deref().map(text_or_stdin).transpose()?;
        Ok(object([
            ("mode", json!(self.mode)),
            ("type", json!(self.kind)),
            ("content", json!(content)),
            (
                "intent",
                object([
                    ("purpose", json!(self.purpose)),
                    ("question", json!(self.question)),
                    ("task_id", json!(self.task)),
                ]),
            ),
            ("confidence", confidence.value()),
            ("relations", json!(self.relations)),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_says_how_it_becomes_more() {
        let answer =
            json!({"status": "accepted", "memory_unit_id": "mem-4", "epoch": 4, "conflicts_detected": []});
        assert_eq!(
            drafted(&answer),
            "mem-4 drafted at epoch 4\n  to make it everyone's: akashik commit --unit mem-4\n"
        );
    }
}
