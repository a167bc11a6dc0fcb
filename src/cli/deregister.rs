//! `akashik deregister`: DEREGISTER.

use clap::Args;
use serde_json::json;

use super::ask::{Ask, object};
use super::done;
use super::exit::Failure;
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
        self.ask
            .tell(Operation::Deregister, payload, |sent, response| done::left(&sent["agent_id"], response))
    }
}
