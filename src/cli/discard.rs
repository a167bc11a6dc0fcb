//! `akashik discard`: DISCARD (Extension), gives a draft up.

use clap::Args;
use serde_json::json;

use super::ask::{Ask, object};
use super::exit::Failure;
use super::screen;
use crate::protocol::Operation;

/// DISCARD.
#[derive(Debug, Args)]
pub(super) struct Discard {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
struct Flags {
    /// The unit
    #[arg(long, visible_alias = "unit", value_name = "ID", required_unless_present = "payload")]
    memory_unit_id: Option<String>,
    /// Why
    #[arg(long, required_unless_present = "payload")]
    reason: Option<String>,
}

impl Discard {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let flags = &self.flags;
        let payload =
            || Ok(object([("memory_unit_id", json!(flags.memory_unit_id)), ("reason", json!(flags.reason))]));
        self.ask.run(Operation::Discard, payload, screen::figures)
    }
}
