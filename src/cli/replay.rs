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

/// What happened in a few sentences, where the answer has them; then the timeline, one line an event.
fn readable(response: &Value) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, here and below.
    if let Some(summary) = response["summary"].as_str().filter(|summary| !summary.is_empty()) {
        let _ = writeln!(out, "{}\n", plain(&json!(summary)));
    }
    for event in response["timeline"].as_array().into_iter().flatten() {
        let text = |key: &str| plain(&event[key]);
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
    let total = &response["total_events"];
    let _ = writeln!(out, "{} {} in all", plain(total), if *total == 1 { "event" } else { "events" });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_comes_before_the_events() {
        let event = json!({"epoch": 2, "timestamp": "T", "event_type": "RECORD", "agent_id": "ann",
            "description": "Recorded finding: it\u{1b} grows"});
        let told = |summary: Value| {
            readable(&json!({"summary": summary, "timeline": [event.clone()], "total_events": 1}))
        };
        let events = "     2  T  RECORD              ann: Recorded finding: it  grows\n1 event in all\n";
        assert_eq!(told(json!("Unit mem-2: 1 event.")), format!("Unit mem-2: 1 event.\n\n{events}"));
        assert_eq!(told(json!("")), events);
        assert_eq!(told(json!(null)), events);
    }
}
