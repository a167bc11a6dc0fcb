//! `akashik retract` and `akashik discard`: RETRACT takes a committed unit back, DISCARD gives a draft up
//! (Extensions). They say the same things.

use clap::Args;
use serde_json::json;

use super::ask::{Ask, object};
use super::done;
use super::exit::Failure;
use crate::protocol::Operation;

/// RETRACT or DISCARD.
#[derive(Debug, Args)]
pub(super) struct GiveUp {
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

impl GiveUp {
    /// Runs the command, as one or the other.
    pub fn run(&self, operation: Operation) -> Result<(), Failure> {
        let flags = &self.flags;
        let payload =
            || Ok(object([("memory_unit_id", json!(flags.memory_unit_id)), ("reason", json!(flags.reason))]));
        let done = if operation == Operation::Discard { "discarded" } else { "retracted" };
        self.ask.run(operation, payload, |response| done::unit(done, response, &[]))
    }
}
