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
    /// list the known conflicts, check one unit against the Field, or scan the whole Field
    #[arg(long, value_name = "list|check|scan", default_value = "list")]
    mode: String,
    /// The unit to check, with --mode check
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
    let list = if list.is_empty() { "No conflicts.\n".to_owned() } else { list };
    let coverage = &response["scan_coverage"];
    let (scanned, new) = (&coverage["units_scanned"], &coverage["new_conflicts_found"]);
    if *scanned == 0 && *new == 0 {
        return list.trim_end().to_owned();
    }
    format!("{list}{scanned} units compared, {new} new conflicts\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_list_and_a_scan_tells_what_it_looked_at() {
        let answer = |scanned: u32, new: u32| {
            let coverage = json!({ "units_scanned": scanned, "new_conflicts_found": new });
            readable(&json!({ "status": "ok", "conflicts": [], "scan_coverage": coverage }))
        };
        assert_eq!(answer(0, 0), "No conflicts.");
        assert_eq!(answer(12, 0), "No conflicts.\n12 units compared, 0 new conflicts\n");
    }
}
