//! What a refusal's payload keys and operations are called on the command line. A refusal speaks of the protocol's own
//! words, for it is the same at every door; only where one is printed for a person do the flags stand beside them.

use serde_json::Value;

use super::screen::{plain, quoted};
use crate::protocol::Operation::{
    self, Attune, Commit, Compact, Deregister, Detect, Discard, Merge, Record, Register, Replay, Retract,
    Subscribe,
};
use crate::protocol::{ErrorBody, ErrorCode};

/// The operations that have a command of their own, under their name.
const COMMANDS: &[Operation] = &[
    Register, Deregister, Record, Attune, Detect, Merge, Compact, Replay, Subscribe, Retract, Commit, Discard,
];

/// Keys of payloads, with their flags and the operations that have both.
const FLAGS: &[(&str, &str, &[Operation])] = &[
    ("id", "--agent", &[Register]),
    ("role", "--role", &[Register]),
    ("interests", "--interest", &[Register]),
    ("required_operations", "--required-operation", &[Register]),
    ("agent_id", "--agent-id", &[Deregister]),
    ("mode", "--mode", &[Record, Detect]),
    ("type", "--type", &[Record]),
    ("content", "--content", &[Record]),
    ("intent", "--purpose", &[Record]),
    ("intent.purpose", "--purpose", &[Record]),
    ("intent.question", "--question", &[Record]),
    ("intent.task_id", "--task", &[Record]),
    ("confidence", "--score, --reason", &[Record, Commit]),
    ("confidence.score", "--score", &[Record, Commit]),
    ("confidence.reason", "--reason", &[Record, Commit]),
    ("confidence.evidence", "--evidence", &[Record, Commit]),
    ("confidence.assumptions", "--assumption", &[Record, Commit]),
    ("relations", "--relation", &[Record, Commit]),
    ("memory_unit_id", "--unit", &[Commit, Retract, Discard]),
    ("reason", "--reason", &[Retract, Discard, Compact]),
    ("scope.role", "--role", &[Attune]),
    ("scope.max_units", "--max-units", &[Attune]),
    ("scope.max_tokens", "--max-tokens", &[Attune]),
    ("scope.interests", "--interest", &[Attune]),
    ("scope.active_task_id", "--active-task", &[Attune]),
    ("scope.temporal_layers", "--temporal-layer", &[Attune]),
    ("scope.relevance_threshold", "--threshold", &[Attune]),
    ("scope.recency_weight", "--recency-weight", &[Attune]),
    ("scope.types", "--type", &[Attune]),
    ("scope.session_id", "--only-session", &[Attune]),
    ("context_hint", "--hint", &[Attune]),
    ("since_epoch", "--since-epoch", &[Attune]),
    ("format", "--format", &[Attune]),
    ("filter.status", "--status", &[Detect, Compact]),
    ("filter.types", "--type", &[Detect, Compact]),
    ("filter.max_age_epochs", "--max-age", &[Compact]),
    ("filter.session_id", "--session", &[Compact]),
    ("confirm", "--confirm", &[Compact]),
    ("dry_run", "--dry-run", &[Compact]),
    ("filter.involving_agents", "--involving-agent", &[Detect]),
    ("target_id", "--target", &[Detect, Replay]),
    ("target_type", "--target-type", &[Replay]),
    ("depth", "--depth", &[Replay]),
    ("as_of_epoch", "--as-of-epoch", &[Attune, Replay]),
    ("conflict_id", "--conflict", &[Merge]),
    ("strategy", "--strategy", &[Merge, Compact]),
    ("resolution.rationale", "--rationale", &[Merge]),
    ("resolution.winner_id", "--winner", &[Merge]),
    ("resolution.synthesis", "--synthesis", &[Merge]),
    ("subscription.id", "--id", &[Subscribe]),
    ("subscription.events", "--events", &[Subscribe]),
    ("subscription.min_relevance", "--min-relevance", &[Subscribe]),
    ("subscription.debounce_ms", "--debounce-ms", &[Subscribe]),
    ("subscription.include_unit", "--include-unit", &[Subscribe]),
    ("subscription.resume_after", "--resume-after", &[Subscribe]),
];

/// A refusal's advice in the words of the command line, where it has any.
pub(super) fn advice(body: &ErrorBody) -> Option<String> {
    let operation = Operation::from_name(&body.operation)?;
    if body.code == ErrorCode::AgentNotRegistered {
        let agent = body.details["agent_id"].as_str().map_or_else(|| "ID".to_owned(), quoted);
        let register = format!("akashik register --agent {agent} --role ROLE");
        return Some(match operation {
            Subscribe => format!("add --role ROLE, or first {register}"),
            _ => format!("{register}, then the same again"),
        });
    }
    let mut named: Vec<(String, String)> = Vec::new();
    let mut name = |said: &str, called: String| {
        if named.iter().all(|(_, known)| *known != called) {
            named.push((said.to_owned(), called));
        }
    };
    for text in [&body.message, &body.suggested_action] {
        for Word { word, is_key, is_told } in words(text) {
            if let Some(command) = command(word).filter(|_| is_told && word != operation.name()) {
                name(word, command);
            } else if let Some(flag) = flag(operation, word).filter(|_| is_key) {
                name(word, flag.to_owned());
            }
        }
    }
    if let Value::String(key) = &body.details["key"]
        && let Some(flag) = flag(operation, key)
    {
        name(&plain(&body.details["key"]), flag.to_owned());
    }
    let said: Vec<_> = named.iter().map(|(said, called)| format!("{said} is {called}")).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// A word of a refusal's text.
struct Word<'a> {
    word: &'a str,
    /// It is a key for certain: `type` and `mode` are also plain English.
    is_key: bool,
    /// It begins a clause, or is to be called: "RECORD a new unit", not "a unit that RECORD has shown you".
    is_told: bool,
}

fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    let mut begins = true;
    text.split_inclusive(move |c| !inside(c)).filter_map(move |piece| {
        let whole = piece.trim_end_matches(|c| !inside(c));
        let word = whole.trim_matches('.');
        if word.is_empty() {
            return None;
        }
        let is_key = word.contains(['.', '_']) || piece.ends_with(':');
        let next = whole.ends_with('.') || piece.ends_with([';', ':']) || word == "Call";
        Some(Word { word, is_key, is_told: std::mem::replace(&mut begins, next) })
    })
}

/// The flag of a key, named whole (`resolution.winner_id`, `relations[2].target_id`) or by its last part alone.
fn flag(operation: Operation, key: &str) -> Option<&'static str> {
    let key = key.split('[').next().unwrap_or_default();
    let found = |whole: bool| {
        FLAGS.iter().find(|(known, _, operations)| {
            let last = known.rsplit('.').next().unwrap_or_default();
            operations.contains(&operation) && key == if whole { known } else { last }
        })
    };
    found(true).or_else(|| found(false)).map(|(_, flag, _)| *flag)
}

fn command(word: &str) -> Option<String> {
    let operation = Operation::from_name(word).filter(|operation| COMMANDS.contains(operation))?;
    Some(format!("akashik {}", operation.name().to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use serde_json::json;

    use super::*;
    use crate::protocol::Refusal;

    fn said(code: ErrorCode, operation: Operation, message: &str, action: &str, key: &str) -> Option<String> {
        let refusal = Refusal::new(code, message.to_owned(), action.to_owned());
        let refusal = if key.is_empty() { refusal } else { refusal.with("key", json!(key)) };
        advice(&refusal.body(Some(operation)))
    }

    #[test]
    fn every_flag_and_command_of_the_table_is_there() {
        let line = super::super::CommandLine::command();
        for operation in COMMANDS {
            let name = operation.name().to_ascii_lowercase();
            let command = line.find_subcommand(&name).unwrap_or_else(|| panic!("no command {name}"));
            for (key, flags, _) in FLAGS.iter().filter(|(_, _, known)| known.contains(operation)) {
                for flag in flags.split(", ") {
                    let long = flag.strip_prefix("--").unwrap();
                    let takes = |arg: &clap::Arg| {
                        arg.get_long_and_visible_aliases().is_some_and(|l| l.contains(&long))
                    };
                    assert!(command.get_arguments().any(takes), "{name} has no {flag} for {key}");
                }
            }
        }
        assert!(FLAGS.iter().all(|(_, _, operations)| operations.iter().all(|op| COMMANDS.contains(op))));
    }

    #[test]
    fn keys_are_named_as_flags_once_and_plain_words_are_not() {
        let failed = ErrorCode::MergeFailed;
        let missing = "resolution.synthesis is missing or empty.";
        let action = "Send resolution.synthesis as the text.";
        assert_eq!(
            said(failed, Merge, missing, action, "resolution.synthesis").unwrap(),
            "resolution.synthesis is --synthesis"
        );
        assert_eq!(
            said(failed, Merge, "No.", "Send winner_id as mem-1 or mem-2.", "resolution.winner_id").unwrap(),
            "winner_id is --winner"
        );
        let plain = "Leave it out, or send strategy synthesis.";
        assert_eq!(said(failed, Merge, "A synthesis does not go with it.", plain, ""), None);
        assert_eq!(
            said(ErrorCode::MissingConfidence, Record, "m", "Send confidence: { \"score\": 1 }.", "")
                .unwrap(),
            "confidence is --score, --reason"
        );
        let relation = said(ErrorCode::UnitNotFound, Record, "m", "s", "relations[2].target_id");
        assert_eq!(relation.unwrap(), "relations[2].target_id is --relation");
        let draft = "COMMIT is for drafts; RECORD a new unit instead.";
        assert_eq!(
            said(ErrorCode::InvalidTransition, Commit, "m", draft, "").unwrap(),
            "RECORD is akashik record"
        );
        let shown = "Name a unit that RECORD or ATTUNE has shown you.";
        assert_eq!(said(failed, Replay, "m", shown, ""), None, "that is no call for it");
        assert_eq!(
            said(failed, Replay, "m", "Wait. Call REGISTER.", "").unwrap(),
            "REGISTER is akashik register"
        );
        assert_eq!(said(failed, Replay, "m", "Send winner_id.", ""), None, "a key of another operation");
    }

    #[test]
    fn who_is_not_registered_is_told_the_whole_command() {
        let refusal =
            Refusal::new(ErrorCode::AgentNotRegistered, "m", "Call REGISTER.").with("agent_id", json!("a b"));
        let register = "akashik register --agent 'a b' --role ROLE";
        let asking = advice(&refusal.body(Some(Attune))).unwrap();
        assert_eq!(asking, format!("{register}, then the same again"));
        let listening = advice(&refusal.body(Some(Subscribe))).unwrap();
        assert_eq!(listening, format!("add --role ROLE, or first {register}"));
    }
}
