//! The lines of `GET /v1/log`.

use serde_json::json;

use super::*;

fn lines(stage: &Stage) -> Vec<Value> {
    let lines = stage.kept.values().flat_map(|body| lines_of(body));
    lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
}

#[test]
fn every_event_is_a_line_with_a_cursor_of_its_own_in_order() {
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.record("ada", "x");
    let reply = stage.relate("ada", &[["contradicts", &unit], ["supersedes", &unit]]);
    let epoch = reply.epoch;
    let all = lines(&stage);
    let last: Vec<_> = all[all.len() - 3..]
        .iter()
        .map(|line| [&line["cursor"], &line["event_type"], &line["agent_id"]].map(text))
        .collect();
    let expected = [
        [format!("{epoch}.0"), "RECORD".into(), "ada".into()],
        [format!("{epoch}.1"), "CONFLICT_CREATED".into(), "system".into()],
        [format!("{epoch}.2"), "MERGE".into(), "system".into()],
    ];
    assert_eq!(last, expected);
    let cursors = all.iter().map(|line| text(&line["cursor"]).parse::<crate::protocol::Cursor>().unwrap());
    assert!(cursors.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_line_says_who_asked_what_when_and_where() {
    let mut stage = Stage::with_agents(&["ada"]);
    let reply = stage.say(saying("ada", "RECORD", finding("x")).id("m-1").session("s-1").over(7));
    let all = lines(&stage);
    let line = &all[1];
    for (key, value) in [
        ("epoch", json!(reply.epoch)),
        ("operation", json!("RECORD")),
        ("agent_id", json!("ada")),
        ("session_id", json!("s-1")),
        ("message_id", json!("m-1")),
        ("timestamp", json!(Timestamp(stage.now))),
        ("supersedes", json!([])),
    ] {
        assert_eq!(line[key], value, "{key}");
    }
    assert_eq!(line["unit"]["content"], "x");
    assert!(line.get("digest").is_none() && line.get("reply").is_none());
    let connected = &all[2];
    assert_eq!(connected["event_type"], "AGENT_CONNECTED");
    assert_eq!(connected["agent_id"], "system");
}

#[test]
fn drafts_are_lines_without_what_they_say_and_the_commit_carries_it() {
    let mut stage = Stage::with_agents(&["ada"]);
    let confidential = json!({
        "mode": "draft", "intent": { "purpose": "plan a secret", "task_id": "secret", "question": "secret?" },
        "confidence": { "score": 0.1, "reason": "secret", "evidence": ["secret"] },
        "relations": [{ "type": "informs", "target_id": "secret" }],
    });
    let unit = stage.send("ada", "RECORD", with(finding("secret"), confidential.clone())).unit_id();
    let gone = stage.send("ada", "RECORD", with(finding("secret"), confidential)).unit_id();
    stage.send("ada", "DISCARD", json!({ "memory_unit_id": gone, "reason": "secret" })).ok();
    let all = lines(&stage);
    assert_eq!(all[1]["unit"], json!({ "id": unit, "mode": "draft", "type": "finding" }));
    assert_eq!(all[3]["memory_unit_id"], json!(gone));
    assert!(all.iter().all(|line| !line.to_string().contains("secret")), "{all:?}");
    stage.commit("ada", &unit).ok();
    let all = lines(&stage);
    assert_eq!((&all[4]["event_type"], &all[4]["unit"]["content"]), (&json!("COMMIT"), &json!("secret")));
}

#[test]
fn a_damaged_entry_is_an_error_not_a_line() {
    assert!(log_lines("{}", 0, |_| true).is_err() && log_lines("", 0, |_| true).is_err());
}
