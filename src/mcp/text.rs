//! Answers in few words: what a model reads. Everything else stands in the structured content beside it.

use serde_json::Value;

use crate::protocol::Operation;

/// An operation's response, told.
pub fn told(operation: Operation, answer: &Value) -> String {
    match operation {
        Operation::Register => registered(answer),
        Operation::Record => recorded(answer),
        Operation::Attune => attuned(answer),
        Operation::Detect => conflicts(answer),
        Operation::Merge => merged(answer),
        Operation::Replay => replayed(answer),
        Operation::Compact => compacted(answer),
        Operation::Retract => format!("Retracted {}.", text(&answer["memory_unit_id"])),
        Operation::Deregister if answer["status"] == "not_found" => "There is no such agent.".to_owned(),
        Operation::Deregister => "Left. What was recorded stays.".to_owned(),
        _ => answer.to_string(),
    }
}

/// A value without its quotes; nothing for `null`.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn joined(value: &Value) -> String {
    items(value).iter().map(text).collect::<Vec<_>>().join(", ")
}

fn registered(answer: &Value) -> String {
    if answer["status"] == "rejected" {
        return format!("Rejected: {}", text(&answer["rejection_reason"]));
    }
    let (agent, field) = (&answer["agent"], &answer["field_capabilities"]);
    format!(
        "Registered {} as {} in the Field {}.",
        text(&agent["id"]),
        text(&agent["role"]),
        text(&field["field"])
    )
}

fn recorded(answer: &Value) -> String {
    let mut said =
        format!("Recorded {} (epoch {}).", text(&answer["memory_unit_id"]), text(&answer["epoch"]));
    if !items(&answer["conflicts_detected"]).is_empty() {
        said.push_str(&format!(" In conflict: {}.", joined(&answer["conflicts_detected"])));
    }
    if let Some(warning) = answer.get("warning") {
        said.push_str(&format!(" {}: {}", text(&warning["code"]), text(&warning["message"])));
    }
    said
}

fn attuned(answer: &Value) -> String {
    let budget = &answer["context_budget"];
    let mut said = format!(
        "{} of {} units; epoch {}.\n",
        text(&budget["units_returned"]),
        text(&budget["units_available"]),
        text(&answer["epoch"])
    );
    for brought in items(&answer["record"]) {
        said.push_str(&unit(&brought["memory_unit"], &brought["relevance_score"]));
        said.push('\n');
    }
    if !items(&answer["conflicts"]).is_empty() {
        said.push_str("Undecided:\n");
        said.push_str(&conflict_lines(&answer["conflicts"]));
    }
    said.truncate(said.trim_end().len());
    said
}

/// One unit in a line or two: `mem-4 finding by ada (researcher), 0.61, sure 0.8, contested: content (why: purpose)`.
fn unit(unit: &Value, score: &Value) -> String {
    let score = score.as_f64().map(|score| format!("{score:.2}")).unwrap_or_default();
    if unit.get("content").is_none() {
        return format!("{} {score}", text(&unit["id"]));
    }
    let source = &unit["source"];
    let mut said = format!(
        "{} {} by {} ({}), {score}",
        text(&unit["id"]),
        text(&unit["type"]),
        text(&source["agent_id"]),
        text(&source["agent_role"])
    );
    if let Some(sure) = unit["confidence"]["score"].as_f64() {
        said.push_str(&format!(", sure {sure}"));
    }
    if unit["status"] != "active" {
        said.push_str(&format!(", {}", text(&unit["status"])));
    }
    let task = text(&unit["intent"]["task_id"]);
    if !task.is_empty() {
        said.push_str(&format!(", {task}"));
    }
    said.push_str(&format!(": {} (why: {})", text(&unit["content"]), text(&unit["intent"]["purpose"])));
    said
}

fn conflict_lines(list: &Value) -> String {
    items(list).iter().map(|one| conflict(one) + "\n").collect()
}

fn conflict(one: &Value) -> String {
    let mut said = format!(
        "{} {} {}: {} against {}. {}",
        text(&one["id"]),
        text(&one["type"]),
        text(&one["status"]),
        text(&one["unit_b"]),
        text(&one["unit_a"]),
        text(&one["description"])
    );
    if let Some(resolution) = one.get("resolution") {
        let winner = text(&resolution["winner_id"]);
        let who = if winner.is_empty() { String::new() } else { format!(" {winner} prevails;") };
        said.push_str(&format!(
            " {}:{who} {}",
            text(&resolution["strategy"]),
            text(&resolution["rationale"])
        ));
    }
    said
}

fn conflicts(answer: &Value) -> String {
    if items(&answer["conflicts"]).is_empty() {
        return "No conflicts.".to_owned();
    }
    conflict_lines(&answer["conflicts"]).trim_end().to_owned()
}

fn merged(answer: &Value) -> String {
    let mut said = format!("{}. {}", text(&answer["status"]), conflict(&answer["conflict"]));
    let effects = &answer["side_effects"];
    if !items(&effects["superseded_units"]).is_empty() {
        said.push_str(&format!(" Superseded: {}.", joined(&effects["superseded_units"])));
    }
    let synthesis = text(&effects["new_unit_id"]);
    if !synthesis.is_empty() {
        said.push_str(&format!(" New unit: {synthesis}."));
    }
    said
}

fn replayed(answer: &Value) -> String {
    let mut said = text(&answer["summary"]);
    for event in items(&answer["timeline"]) {
        said.push_str(&format!(
            "\n{} {} {}: {}",
            text(&event["epoch"]),
            text(&event["event_type"]),
            text(&event["agent_id"]),
            text(&event["description"])
        ));
    }
    said.trim_start().to_owned()
}

fn compacted(answer: &Value) -> String {
    let (units, syntheses) = (text(&answer["units_affected"]), text(&answer["synthesis_units_created"]));
    if answer["dry_run"] == true {
        format!("Nothing was changed. It would affect {units} units and write {syntheses} syntheses.")
    } else {
        format!("{units} units affected, {syntheses} syntheses written.")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_attune_is_told_in_few_words() {
        let answer = json!({
            "status": "success", "epoch": 9, "context_budget": { "units_returned": 2, "units_available": 5 },
            "record": [
                { "relevance_score": 0.614, "memory_unit": {
                    "id": "mem-4", "type": "finding", "content": "It grows.", "status": "contested",
                    "intent": { "purpose": "size it", "task_id": null }, "confidence": { "score": 0.8 },
                    "source": { "agent_id": "ada", "agent_role": "researcher" } } },
                { "relevance_score": 0.5, "memory_unit": { "id": "mem-5" } }
            ],
            "conflicts": [{ "id": "conflict-6", "type": "factual", "status": "detected", "unit_a": "mem-4",
                "unit_b": "mem-6", "description": "They differ." }]
        });
        assert_eq!(
            told(Operation::Attune, &answer),
            "2 of 5 units; epoch 9.\n\
             mem-4 finding by ada (researcher), 0.61, sure 0.8, contested: It grows. (why: size it)\n\
             mem-5 0.50\nUndecided:\nconflict-6 factual detected: mem-6 against mem-4. They differ."
        );
    }

    #[test]
    fn nothing_is_said_plainly() {
        assert_eq!(told(Operation::Detect, &json!({ "conflicts": [] })), "No conflicts.");
        assert_eq!(told(Operation::Deregister, &json!({ "status": "not_found" })), "There is no such agent.");
    }
}
