//! `akashik commit`: COMMIT (Extension), makes a draft everyone's memory.

use clap::Args;
use serde_json::{Value, json};

use super::ask::{Ask, object, relation};
use super::done;
use super::exit::Failure;
use super::record::Confidence;
use crate::protocol::Operation;

/// COMMIT.
#[derive(Debug, Args)]
pub(super) struct Commit {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    confidence: Confidence,
}

#[derive(Debug, Args)]
struct Flags {
    /// The draft
    #[arg(long, visible_alias = "unit", value_name = "ID", required_unless_present = "payload")]
    memory_unit_id: Option<String>,
    /// How it relates to another unit, in place of the draft's relations; repeat it for more
    #[arg(long = "relation", value_name = "TYPE:ID", value_parser = relation)]
    relations: Vec<Value>,
}

impl Commit {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let flags = &self.flags;
        let payload = || {
            Ok(object([
                ("memory_unit_id", json!(flags.memory_unit_id)),
                ("confidence", self.confidence.value()),
                ("relations", json!(flags.relations)),
            ]))
        };
        let readable = |response: &Value| done::unit("committed", response, &self.ask.conflicts_of(response));
        self.ask.run(Operation::Commit, payload, readable)
    }
}
