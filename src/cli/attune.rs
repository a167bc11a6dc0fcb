//! `akashik attune`: ATTUNE.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value, json};

use super::ask::{Ask, object};
use super::exit::Failure;
use super::screen::{conflicts, excerpt, plain};
use crate::protocol::Operation;

/// ATTUNE.
#[derive(Debug, Args)]
pub(super) struct Attune {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
struct Flags {
    /// The role for which relevance is judged
    #[arg(long, required_unless_present = "payload")]
    role: Option<String>,
    /// At most so many units
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    max_units: u64,
    /// At most so many tokens of units: the best in full, then summaries
    #[arg(long, value_name = "COUNT")]
    max_tokens: Option<u64>,
    /// What the agent is about to do
    #[arg(long)]
    hint: Option<String>,
    /// Only units committed at or after this epoch
    #[arg(long, value_name = "EPOCH")]
    since_epoch: Option<u64>,
    /// What the Field would have shown once the operation at this epoch was done
    #[arg(long, value_name = "EPOCH")]
    as_of_epoch: Option<u64>,
    /// How much of each unit: full, summary or ids_only
    #[arg(long)]
    format: Option<String>,
    /// Something the agent cares for now, in place of what it registered with; repeat it for more
    #[arg(long)]
    interest: Vec<String>,
    /// The task that the agent works on
    #[arg(long, value_name = "ID")]
    active_task: Option<String>,
    /// Only units about this: past, present or future; repeat it for more
    #[arg(long, value_name = "LAYER")]
    temporal_layer: Vec<String>,
    /// Only units of at least this relevance, 0 to 1
    #[arg(long, value_name = "SCORE")]
    threshold: Option<f64>,
    /// How much newness counts, 0 to 1
    #[arg(long, value_name = "PART")]
    recency_weight: Option<f64>,
    /// Only units of this type; repeat it for more
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only units of this session
    #[arg(long, value_name = "ID")]
    only_session: Option<String>,
    /// Also the agent's own units
    #[arg(long)]
    include_own: bool,
    /// Also archived units
    #[arg(long)]
    include_archived: bool,
    /// Also the agent's own drafts
    #[arg(long)]
    include_drafts: bool,
    /// Show the factors behind each score: how much of each the unit has, and what it adds
    #[arg(long)]
    explain: bool,
}

impl Attune {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        self.ask.run(Operation::Attune, || Ok(self.flags.payload()), readable)
    }
}

impl Flags {
    fn payload(&self) -> Value {
        object([
            (
                "scope",
                object([
                    ("role", json!(self.role)),
                    ("max_units", json!(self.max_units)),
                    ("max_tokens", json!(self.max_tokens)),
                    ("interests", json!(self.interest)),
                    ("active_task_id", json!(self.active_task)),
                    ("temporal_layers", json!(self.temporal_layer)),
                    ("relevance_threshold", json!(self.threshold)),
                    ("recency_weight", json!(self.recency_weight)),
                    ("as_of_epoch", json!(self.as_of_epoch)),
                    ("types", json!(self.types)),
                    ("session_id", json!(self.only_session)),
                    ("include_own", json!(self.include_own)),
                    ("include_archived", json!(self.include_archived)),
                    ("include_drafts", json!(self.include_drafts)),
                ]),
            ),
            ("context_hint", json!(self.hint)),
            ("format", json!(self.format)),
            ("since_epoch", json!(self.since_epoch)),
            ("explain", json!(self.explain)),
        ])
    }
}

/// Two lines a unit: what it is, and why it was brought; then the factors behind its score, where they were asked for.
fn readable(response: &Value) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, here and below.
    for (at, found) in response["record"].as_array().into_iter().flatten().enumerate() {
        let unit = &found["memory_unit"];
        let score = found["relevance_score"].as_f64().unwrap_or_default();
        let _ = write!(out, "{:>3}  {score:.3}  {}", at + 1, plain(&unit["id"]));
        // With the format ids_only there is no more.
        if let Some(content) = unit["content"].as_str() {
            let _ = write!(out, "  {}  {}", title(unit, found["format"] == "summary"), excerpt(content));
        }
        out.push('\n');
        let _ = writeln!(out, "            {}", plain(&found["relevance_reason"]));
        out.push_str(&factors(&found["factors"]));
    }
    let unresolved = conflicts(&response["conflicts"]);
    if !unresolved.is_empty() {
        let _ = write!(out, "Conflicts:\n{unresolved}");
    }
    let budget = &response["context_budget"];
    let (shown, all) = (plain(&budget["units_returned"]), plain(&budget["units_available"]));
    let _ = write!(out, "{shown} of {all} units");
    if let (Some(used), Some(most)) = (budget["tokens_used"].as_u64(), budget["tokens_budget"].as_u64()) {
        let _ = write!(out, ", {used} of {most} tokens");
    }
    let _ = writeln!(out, ", epoch {}", plain(&response["epoch"]));
    out
}

/// What a unit is and whose, and what a reader has to know before relying on its text: that it does not simply stand,
/// that this is not the whole of it.
fn title(unit: &Value, is_summary: bool) -> String {
    let source = &unit["source"];
    let (kind, who, role) = (plain(&unit["type"]), plain(&source["agent_id"]), plain(&source["agent_role"]));
    let mut title = format!("{kind} by {who} ({role})");
    if let Some(status) = unit["status"].as_str().filter(|status| *status != "active") {
        let _ = write!(title, " [{}]", plain(&json!(status)));
    }
    if is_summary {
        title.push_str(" [summary]");
    }
    title
}

/// A line for each factor that a unit has some of or that changes its score, what adds the most first: its name, its
/// value, what it adds.
fn factors(table: &Value) -> String {
    let of = |factor: &Value, key: &str| factor[key].as_f64().unwrap_or_default();
    let mut rows: Vec<(f64, f64, &str)> = table
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, factor)| (of(factor, "contribution"), of(factor, "value"), name.as_str()))
        // Diversity has the value 1 where it takes nothing.
        .filter(|(added, value, _)| *added != 0.0 || (*value != 0.0 && *value != 1.0))
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut out = String::new();
    for (added, value, name) in rows {
        let _ = writeln!(out, "            {:<9} {value:.3}  {added:+.3}", plain(&json!(name)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_rank_score_reason_and_conflicts() {
        let shown = readable(&json!({
            "record": [{
                "memory_unit": {"id": "mem-2", "type": "finding", "content": "grows\nfast",
                    "source": {"agent_id": "ann", "agent_role": "researcher"}, "status": "active"},
                "relevance_score": 0.8512, "relevance_reason": "Recent finding.", "format": "full",
            }],
            "conflicts": [{"id": "conflict-3", "status": "detected", "type": "factual",
                "unit_a": "mem-1", "unit_b": "mem-2", "description": "d"}],
            "context_budget": {"units_returned": 1, "units_available": 9}, "epoch": 12,
        }));
        assert_eq!(
            shown,
            "  1  0.851  mem-2  finding by ann (researcher)  grows fast\n            Recent finding.\nConflicts:\n\
             conflict-3  detected factual  mem-1 / mem-2\n    d\n1 of 9 units, epoch 12\n"
        );
    }

    #[test]
    fn what_limits_a_unit_is_marked() {
        let shown = |status: &str, format: &str| {
            let unit = json!({"id": "mem-2", "type": "decision", "content": "c", "status": status,
                "source": {"agent_id": "ann", "agent_role": "boss\u{1b}"}});
            let found = json!({"memory_unit": unit, "relevance_score": 1.0, "relevance_reason": "r", "format": format});
            readable(&json!({"record": [found]})).lines().next().unwrap().to_owned()
        };
        let usual = "  1  1.000  mem-2  decision by ann (boss )";
        assert_eq!(shown("active", "full"), format!("{usual}  c"));
        assert_eq!(shown("contested", "summary"), format!("{usual} [contested] [summary]  c"));
        assert_eq!(shown("pending_enrichment", "full"), format!("{usual} [pending_enrichment]  c"));
    }

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        attune: Attune,
    }

    fn payload(line: &str) -> Value {
        let words = ["akashik-attune"].into_iter().chain(line.split_whitespace());
        <Line as clap::Parser>::try_parse_from(words).expect("a good line").attune.flags.payload()
    }

    #[test]
    fn flags_become_the_keys_of_the_payload() {
        let least = json!({ "scope": { "role": "r", "max_units": 10 } });
        assert_eq!(payload("--role r"), least);
        let scope = json!({
            "role": "r", "max_units": 3, "max_tokens": 500, "interests": ["a", "b"], "active_task_id": "t",
            "temporal_layers": ["past", "future"], "relevance_threshold": 0.25, "recency_weight": 0.5,
        });
        let line = "--role r --max-units 3 --max-tokens 500 --interest a --interest b --active-task t \
            --temporal-layer past --temporal-layer future --threshold 0.25 --recency-weight 0.5 --explain --hint h";
        assert_eq!(payload(line), json!({ "scope": scope, "context_hint": "h", "explain": true }));
    }

    #[test]
    fn explains_a_score_and_tells_of_the_budget() {
        let shown = readable(&json!({
            "record": [{
                "memory_unit": {"id": "mem-2"}, "relevance_score": 0.5, "relevance_reason": "Finding.",
                "format": "summary", "factors": {
                    "semantic": {"value": 0.25, "contribution": 0.3}, "task": {"value": 0.0, "contribution": 0.0},
                    "diversity": {"value": 0.98, "contribution": -0.01},
                },
            }],
            "context_budget": {"units_returned": 1, "units_available": 1, "tokens_used": 90, "tokens_budget": 100},
            "epoch": 3,
        }));
        assert_eq!(
            shown,
            "  1  0.500  mem-2\n            Finding.\n            semantic  0.250  +0.300\n            \
             diversity 0.980  -0.010\n1 of 1 units, 90 of 100 tokens, epoch 3\n"
        );
    }
}
