//! `akashik replay`: REPLAY.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value, json};

use super::ask::{Ask, object};
use super::exit::Failure;
use super::screen::plain;
use crate::protocol::Operation;

/// REPLAY.
#[derive(Debug, Args)]
pub(super) struct Replay {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
struct Flags {
    /// memory_unit, decision, conflict, task or session
    #[arg(long, value_name = "TYPE", default_value = "memory_unit")]
    target_type: String,
    /// Its id
    #[arg(long, value_name = "ID", required_unless_present = "payload")]
    target: Option<String>,
    /// summary, detailed or full_trace
    #[arg(long, default_value = "detailed")]
    depth: String,
    /// Only up to this epoch
    #[arg(long, value_name = "EPOCH")]
    as_of_epoch: Option<u64>,
}

impl Replay {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let flags = &self.flags;
        let payload = || {
            Ok(object([
                ("target_type", json!(flags.target_type)),
                ("target_id", json!(flags.target)),
                ("depth", json!(flags.depth)),
                ("as_of_epoch", json!(flags.as_of_epoch)),
            ]))
        };
        self.ask.run(Operation::Replay, payload, readable)
    }
}

/// The timeline, one line an event, under its summary where it is not whole.
fn readable(response: &Value) -> String {
    let mut out = String::new();
    let listed = response["timeline"].as_array().map_or(0, Vec::len);
    // A timeline that is whole tells the same as its summary.
    if response["total_events"] != listed {
        let _ = writeln!(out, "{}", plain(&response["summary"]));
    }
    for event in response["timeline"].as_array().into_iter().flatten() {
        let text = |key: &str| plain(&event[key]);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:>6}  {}  {:<18}  {}: {}",
            text("epoch"),
            text("timestamp"),
            text("event_type"),
            text("agent_id"),
            text("description"),
        );
    }
    let _ = writeln!(out, "{} events in all", plain(&response["total_events"]));
    out
}
