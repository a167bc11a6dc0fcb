//! `akashik detect`: DETECT.

use clap::Args;
use serde_json::{Value, json};

use super::ask::{Ask, object};
use super::exit::Failure;
use super::screen;
use crate::protocol::Operation;

/// DETECT.
#[derive(Debug, Args)]
pub(super) struct Detect {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
struct Flags {
    /// list the known conflicts; other modes as the hub serves them
    #[arg(long, default_value = "list")]
    mode: String,
    /// The unit to check
    #[arg(long, value_name = "ID")]
    target: Option<String>,
    /// Only conflicts with this status; repeat it for more
    #[arg(long)]
    status: Vec<String>,
    /// Only conflicts of this type; repeat it for more
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only conflicts that involve this agent; repeat it for more
    #[arg(long, value_name = "ID")]
    involving_agent: Vec<String>,
}

impl Detect {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let flags = &self.flags;
        let payload = || {
            Ok(object([
                ("mode", json!(flags.mode)),
                ("target_id", json!(flags.target)),
                (
                    "filter",
                    object([
                        ("status", json!(flags.status)),
                        ("types", json!(flags.types)),
                        ("involving_agents", json!(flags.involving_agent)),
                    ]),
                ),
            ]))
        };
        self.ask.run(Operation::Detect, payload, readable)
    }
}

fn readable(response: &Value) -> String {
    let list = screen::conflicts(&response["conflicts"]);
    if list.is_empty() { "No conflicts.".to_owned() } else { list }
}
