//! Output: JSON for programs, lines for people.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::exit::Failure;

/// Longest excerpt of a text on one line, characters.
const EXCERPT_CHARS: usize = 100;

/// A line of a terminal that does not tell how wide it is, characters.
const WIDTH_CHARS: usize = 80;

/// Prints lines on stdout.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    Ok(stdout.flush()?)
}

/// Prints a value: readable on a terminal, else (or when asked for) as JSON on one line.
pub(super) fn show(
    json: bool,
    value: &(impl Serialize + ?Sized),
    readable: impl FnOnce(&Value) -> String,
) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::failed)?;
    if json || !io::stdout().is_terminal() {
        return print(&text);
    }
    let value = serde_json::from_str(&text).map_err(Failure::failed)?;
    print(readable(&value).trim_end())
}

/// Prints a hub's response as [`show`] does, with its keys in the hub's own order.
pub(super) fn show_response(
    json: bool,
    response: &RawValue,
    readable: impl FnOnce(&Value) -> String,
) -> Result<(), Failure> {
    let one_line = !response.get().contains(['\n', '\r']);
    if one_line {
        return show(json, response, readable);
    }
    let value: Value = serde_json::from_str(response.get()).map_err(Failure::failed)?;
    show(json, &value, readable)
}

/// `key  value` lines of an object; inner objects with their keys joined by dots.
pub(super) fn figures(value: &Value) -> String {
    let mut rows = Vec::new();
    flatten("", value, &mut rows);
    let width = rows.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (key, value) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{key:width$}  {value}");
    }
    out
}

fn flatten(path: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, inner) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, inner, rows);
            }
        }
        Value::Array(items) if items.iter().all(|i| !i.is_object() && !i.is_array()) => {
            let items: Vec<_> = items.iter().map(plain).collect();
            rows.push((path.to_owned(), items.join(", ")));
        }
        Value::Array(items) => {
            for (at, inner) in items.iter().enumerate() {
                flatten(&format!("{path}[{at}]"), inner, rows);
            }
        }
        other => rows.push((path.to_owned(), plain(other))),
    }
}

/// A value as a person reads it, safe for a terminal.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => calm(text),
        other => other.to_string(),
    }
}

/// The beginning of a text, on one line.
pub(super) fn excerpt(text: &str) -> String {
    cut(text, EXCERPT_CHARS)
}

/// The beginning of a text, on one line, at most so many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    let line = calm(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    if line.chars().count() <= most {
        return line;
    }
    let mut short: String = line.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// How many characters a line of the terminal holds.
pub(super) fn width() -> usize {
    terminal_size::terminal_size().map_or(WIDTH_CHARS, |(width, _)| usize::from(width.0))
}

/// A text as one word of a shell's command line, to be pasted.
pub(super) fn quoted(text: &str) -> String {
    let text = calm(text);
    let bare = |c: char| c.is_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(bare) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Without control characters: what others recorded must not steer the reader's terminal.
fn calm(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The lines of a list of conflicts.
pub(super) fn conflicts(list: &Value) -> String {
    let mut out = String::new();
    for conflict in list.as_array().into_iter().flatten() {
        let text = |key: &str| plain(&conflict[key]);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{}  {} {}  {} / {}\n    {}",
            text("id"),
            text("status"),
            text("type"),
            text("unit_a"),
            text("unit_b"),
            text("description"),
        );
        if let Some(course) = course(conflict) {
            let _ = writeln!(out, "    {course}");
        }
    }
    out
}

/// How a conflict is being decided, or was.
fn course(conflict: &Value) -> Option<String> {
    let resolution = &conflict["resolution"];
    let text = |key: &str| plain(&resolution[key]);
    if resolution.is_object() {
        let outcome = match (conflict["status"].as_str(), resolution["winner_id"].as_str()) {
            (Some("escalated"), _) => {
                format!("a human has to decide. {}", plain(&conflict["escalation_reason"]))
            }
            (_, Some(winner)) => format!("{} prevails.", calm(winner)),
            (_, None) => "both sides are joined.".to_owned(),
        };
        let (who, when, how) = (text("resolved_by"), text("epoch_resolved"), text("strategy"));
        return Some(format!("by {who} at epoch {when}, {how}: {outcome} {}", text("rationale")));
    }
    let ballots = conflict["ballots"].as_array()?;
    let said = |ballot: &Value| format!("{} for {}", plain(&ballot["agent_id"]), plain(&ballot["winner_id"]));
    Some(format!("vote: {}", ballots.iter().map(said).collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_aligned_and_flat() {
        let shown = figures(&json!({"a": {"bb": 1}, "c": [1, "x"], "d": null}));
        assert_eq!(shown, "a.bb  1\nc     1, x\nd     -\n");
    }

    #[test]
    fn conflicts_tell_where_they_stand() {
        let conflict = |more: Value| {
            let mut conflict = json!({"id": "conflict-3", "type": "factual", "unit_a": "mem-1",
                "unit_b": "mem-3", "description": "d"});
            conflict.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            conflict
        };
        let resolution = |strategy: &str, winner: Value| {
            json!({"strategy": strategy, "winner_id": winner,
            "rationale": "so", "resolved_by": "kim", "epoch_resolved": 7})
        };
        let shown = conflicts(&json!([
            conflict(json!({"status": "detected"})),
            conflict(json!({"status": "resolving", "ballots": [
                {"agent_id": "kim", "winner_id": "mem-1"}, {"agent_id": "bob", "winner_id": "mem-3"}]})),
            conflict(json!({"status": "escalated", "escalation_reason": "Equal.",
                "resolution": resolution("authority", json!(null))})),
            conflict(json!({"status": "resolved", "escalation_reason": "Equal.",
                "resolution": resolution("human_escalation", json!("mem-1"))})),
        ]));
        let head = |status: &str| format!("conflict-3  {status} factual  mem-1 / mem-3\n    d\n");
        let expected = [
            head("detected"),
            head("resolving") + "    vote: kim for mem-1, bob for mem-3\n",
            head("escalated") + "    by kim at epoch 7, authority: a human has to decide. Equal. so\n",
            head("resolved") + "    by kim at epoch 7, human_escalation: mem-1 prevails. so\n",
        ];
        assert_eq!(shown, expected.concat());
    }

    #[test]
    fn what_is_to_be_pasted_stays_one_word() {
        assert_eq!(quoted("http://h:1/a-b_c"), "http://h:1/a-b_c");
        assert_eq!([quoted("a b"), quoted(""), quoted("it's;$x")], ["'a b'", "''", r"'it'\''s;$x'"]);
    }

    #[test]
    fn excerpts_are_short_calm_lines() {
        assert_eq!(excerpt("a\n b\u{1b}[2J\tc"), "a b [2J c");
        assert_eq!(excerpt(&"ä".repeat(500)).chars().count(), EXCERPT_CHARS);
        assert_eq!([cut("four", 4), cut("fours", 4), cut("x", 0)], ["four", "fou…", "…"]);
    }
}
