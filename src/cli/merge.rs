//! `akashik merge`: MERGE.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value, json};

use super::ask::{Ask, object, text_or_stdin};
use super::exit::Failure;
use super::screen::{conflicts, plain};
use crate::protocol::Operation;

/// MERGE.
#[derive(Debug, Args)]
pub(super) struct Merge {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
struct Flags {
    /// The conflict
    #[arg(long, visible_alias = "conflict-id", value_name = "ID", required_unless_present = "payload")]
    conflict: Option<String>,
    /// last_write_wins, confidence_weighted, human_escalation, authority, evidence_count, synthesis or vote
    #[arg(long, required_unless_present = "payload")]
    strategy: Option<String>,
    /// Why
    #[arg(long, required_unless_present = "payload")]
    rationale: Option<String>,
    /// The unit that is to prevail: a ballot of a vote, or a human's decision on what was escalated
    #[arg(long, visible_alias = "winner-id", value_name = "ID")]
    winner: Option<String>,
    /// The text that takes the place of both, for strategy synthesis ('-' reads stdin)
    #[arg(long, value_name = "TEXT")]
    synthesis: Option<String>,
}

impl Merge {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let flags = &self.flags;
        let payload = || {
            let synthesis = flags.synthesis.as_deref().map(text_or_stdin).transpose()?;
            Ok(object([
                ("conflict_id", json!(flags.conflict)),
                ("strategy", json!(flags.strategy)),
                (
                    "resolution",
                    object([
                        ("rationale", json!(flags.rationale)),
                        ("winner_id", json!(flags.winner)),
                        ("synthesis", json!(synthesis)),
                    ]),
                ),
            ]))
        };
        self.ask.run(Operation::Merge, payload, readable)
    }
}

/// The conflict as it now stands, and what came of the units.
fn readable(response: &Value) -> String {
    let mut out = conflicts(&json!([response["conflict"]]));
    if response["status"] == "pending_vote" {
        out.push_str("    pending_vote: the ballots so far do not decide it\n");
    }
    let effects = &response["side_effects"];
    let listed = |key: &str| {
        let items = effects[key].as_array().into_iter().flatten().map(plain);
        items.collect::<Vec<_>>().join(", ")
    };
    let new = effects["new_unit_id"].as_str().unwrap_or_default();
    for (label, ids) in [
        ("superseded", listed("superseded_units")),
        ("new unit", plain(&json!(new))),
        ("notified", listed("notified_agents")),
    ] {
        if !ids.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "    {label:<10}  {ids}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_conflict_and_what_came_of_it() {
        let shown = readable(&json!({
            "status": "resolved",
            "conflict": {"id": "conflict-4", "status": "resolved", "type": "factual", "unit_a": "mem-2",
                "unit_b": "mem-4", "description": "d", "resolution": {"strategy": "synthesis",
                "winner_id": null, "rationale": "both\u{1b} hold", "resolved_by": "kim", "epoch_resolved": 9}},
            "side_effects": {"superseded_units": ["mem-2", "mem-4"], "new_unit_id": "mem-9",
                "notified_agents": []},
        }));
        assert_eq!(
            shown,
            "conflict-4  resolved factual  mem-2 / mem-4\n    d\n    \
             by kim at epoch 9, synthesis: both sides are joined. both  hold\n    \
             superseded  mem-2, mem-4\n    new unit    mem-9\n"
        );
    }

    #[test]
    fn a_ballot_that_decides_nothing_says_so() {
        let shown = readable(&json!({
            "status": "pending_vote",
            "conflict": {"id": "conflict-4", "status": "resolving", "type": "factual", "unit_a": "mem-2",
                "unit_b": "mem-4", "description": "d", "ballots": [{"agent_id": "kim", "winner_id": "mem-2"}]},
            "side_effects": {"superseded_units": [], "new_unit_id": null, "notified_agents": []},
        }));
        let rest = shown.strip_prefix("conflict-4  resolving factual  mem-2 / mem-4\n    d\n").unwrap();
        assert_eq!(rest, "    vote: kim for mem-2\n    pending_vote: the ballots so far do not decide it\n");
    }
}
