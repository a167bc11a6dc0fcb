//! `akashik deregister`: DEREGISTER.

use clap::Args;
use serde_json::json;

use super::ask::{Ask, object};
use super::exit::Failure;
use super::screen;
use crate::protocol::Operation;

/// DEREGISTER.
#[derive(Debug, Args)]
pub(super) struct Deregister {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
struct Flags {
    /// The agent that leaves [default: the one that asks]
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
}

impl Deregister {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let payload = || {
            let leaving = self.flags.agent_id.as_deref().map_or_else(|| self.ask.agent(), Ok)?;
            Ok(object([("agent_id", json!(leaving))]))
        };
        self.ask.run(Operation::Deregister, payload, screen::figures)
    }
}
