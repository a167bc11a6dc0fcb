//! `akashik compact`: COMPACT.

use clap::Args;
use serde_json::{Value, json};

use super::ask::{Ask, object};
use super::exit::Failure;
use super::screen::plain;
use crate::protocol::Operation;

/// COMPACT.
#[derive(Debug, Args)]
#[command(after_help = "--session is a condition here: only units of that session are touched.\n\
    Without a condition, archive and summarize take every unit, and purge is refused.")]
pub(super) struct Compact {
    #[command(flatten)]
    ask: Ask,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
struct Flags {
    /// archive, summarize or purge
    #[arg(long, required_unless_present = "payload")]
    strategy: Option<String>,
    /// Only units that are older than so many epochs
    #[arg(long, visible_alias = "max-age-epochs", value_name = "EPOCHS")]
    max_age: Option<u64>,
    /// Only units of this type; repeat it for more
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only units with this status; repeat it for more
    #[arg(long)]
    status: Vec<String>,
    /// Why; kept in the log
    #[arg(long)]
    reason: Option<String>,
    /// Purge although nothing would be left
    #[arg(long)]
    confirm: bool,
    /// Tell what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

impl Compact {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let flags = &self.flags;
        let payload = || {
            let filter = object([
                ("max_age_epochs", json!(flags.max_age)),
                ("session_id", json!(self.ask.session())),
                ("types", json!(flags.types)),
                ("status", json!(flags.status)),
            ]);
            Ok(object([
                ("strategy", json!(flags.strategy)),
                ("filter", filter),
                ("reason", json!(flags.reason)),
                ("confirm", json!(flags.confirm)),
                ("dry_run", json!(flags.dry_run)),
            ]))
        };
        self.ask.tell(Operation::Compact, payload, readable)
    }
}

/// What was done, or would be, in a sentence.
fn readable(payload: &Value, response: &Value) -> String {
    let count = |key: &str| response[key].as_u64().unwrap_or(0);
    let some = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let units = some(count("units_affected"), "unit", "units");
    let would = response["dry_run"] == true;
    let (before, after) = if would { ("Would have ", "; nothing was changed.") } else { ("", ".") };
    let done = match payload["strategy"].as_str().unwrap_or_default() {
        "purge" => {
            let bytes = some(count("storage_reclaimed_bytes"), "byte", "bytes");
            format!("purged {units}, {bytes} of memory")
        }
        "summarize" => {
            let syntheses = some(count("synthesis_units_created"), "synthesis", "syntheses");
            format!("archived {units} behind {syntheses}")
        }
        _ => format!("archived {units}"),
    };
    let mut text = format!("{before}{done}{after}");
    text[..1].make_ascii_uppercase();
    if let Some(warned) = response["warning"]["message"].as_str() {
        text = format!("{text}\n{}", plain(&json!(warned)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_in_a_sentence_what_was_done() {
        let said = |strategy: &str, response: Value| readable(&json!({ "strategy": strategy }), &response);
        assert_eq!(said("archive", json!({ "units_affected": 1 })), "Archived 1 unit.");
        let response = json!({ "units_affected": 124, "synthesis_units_created": 8 });
        assert_eq!(said("summarize", response.clone()), "Archived 124 units behind 8 syntheses.");
        let mut warned = response;
        warned["warning"] = json!({ "code": "ENRICHMENT_FAILED", "message": "2 of 8 were not.\u{1b}" });
        let words = said("summarize", warned);
        assert!(words.starts_with("Archived 124 units behind 8 syntheses.\n2 of 8 were not."), "{words}");
        assert!(!words.contains('\u{1b}'), "{words:?}");
        let response = json!({ "units_affected": 2, "storage_reclaimed_bytes": 900, "dry_run": true });
        assert_eq!(
            said("purge", response),
            "Would have purged 2 units, 900 bytes of memory; nothing was changed."
        );
    }
}
