//! What was done to a unit or to an agent, in words.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::screen::{figures, plain};

/// The keys that the words below tell.
const TOLD: &[&str] =
    &["status", "memory_unit_id", "epoch", "conflicts_detected", "rejection_reason", "cleanup"];

/// "mem-90 recorded at epoch 90", and the conflicts that this made; `known` are conflicts of the Field, where it was
/// asked for them.
pub(super) fn unit(done: &str, response: &Value, known: &[Value]) -> String {
    let (id, epoch) = (plain(&response["memory_unit_id"]), plain(&response["epoch"]));
    let mut out = format!("{id} {done} at epoch {epoch}\n");
    for conflict in response["conflicts_detected"].as_array().into_iter().flatten() {
        let whole = known.iter().find(|known| known["id"] == *conflict);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {}", opened(conflict, whole, &response["memory_unit_id"]));
    }
    out + &rest(response)
}

fn opened(id: &Value, conflict: Option<&Value>, unit: &Value) -> String {
    let id = plain(id);
    let Some(conflict) = conflict else { return format!("opens {id}") };
    let other = if conflict["unit_a"] == *unit { &conflict["unit_b"] } else { &conflict["unit_a"] };
    let (other, kind) = (plain(other), plain(&conflict["type"]));
    match conflict["resolution"]["winner_id"].as_str() {
        Some(_) => {
            format!(
                "{id} with {other} ({kind}) is resolved: {} prevails",
                plain(&conflict["resolution"]["winner_id"])
            )
        }
        None => format!("opens {id} with {other} ({kind})"),
    }
}

/// That an agent has left, and what becomes of its work.
pub(super) fn left(agent: &Value, response: &Value) -> String {
    let agent = plain(agent);
    if response["status"] == "not_found" {
        return format!("there is no agent {agent} in this Field\n{}", rest(response));
    }
    let count = |key: &str| response["cleanup"][key].as_u64().unwrap_or_default();
    let mut out = format!("{agent} has left the Field; units of it that stay: {}", count("units_orphaned"));
    if count("tasks_reassigned") > 0 {
        let _ = write!(out, ", tasks that others take over: {}", count("tasks_reassigned"));
    }
    format!("{out}\n{}", rest(response))
}

/// What the answer says beside that: a key that nobody has words for is not lost.
fn rest(response: &Value) -> String {
    let keys = response.as_object().into_iter().flatten();
    let untold = keys.filter(|(key, value)| !TOLD.contains(&key.as_str()) && !value.is_null());
    let untold: Map<_, _> = untold.map(|(key, value)| (key.clone(), value.clone())).collect();
    if untold.is_empty() { String::new() } else { figures(&Value::Object(untold)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_unit_is_told_with_the_conflicts_it_opens() {
        let mut answer = json!({"status": "accepted", "memory_unit_id": "mem-90", "epoch": 90,
            "conflicts_detected": [], "rejection_reason": null});
        assert_eq!(unit("recorded", &answer, &[]), "mem-90 recorded at epoch 90\n");
        answer["conflicts_detected"] = json!(["conflict-90", "conflict-90.1", "conflict-90.2"]);
        let known = [
            json!({"id": "conflict-90", "type": "factual", "unit_a": "mem-76", "unit_b": "mem-90"}),
            json!({"id": "conflict-90.2", "type": "strategic", "unit_a": "mem-7", "unit_b": "mem-90",
                "resolution": {"winner_id": "mem-90"}}),
        ];
        assert_eq!(
            unit("recorded", &answer, &known),
            "mem-90 recorded at epoch 90\n  opens conflict-90 with mem-76 (factual)\n  opens conflict-90.1\n  \
             conflict-90.2 with mem-7 (strategic) is resolved: mem-90 prevails\n"
        );
        answer["conflicts_detected"] = json!([]);
        answer["warning"] = json!({"code": "ENRICHMENT_FAILED"});
        assert!(unit("recorded", &answer, &[]).ends_with("\nwarning.code  ENRICHMENT_FAILED\n"));
    }

    #[test]
    fn an_agent_leaves_or_was_not_there() {
        let mut answer = json!({"status": "ok", "cleanup": {"units_orphaned": 3, "tasks_reassigned": 0}});
        assert_eq!(left(&json!("ann"), &answer), "ann has left the Field; units of it that stay: 3\n");
        answer["cleanup"]["tasks_reassigned"] = json!(2);
        assert!(left(&json!("ann"), &answer).ends_with("stay: 3, tasks that others take over: 2\n"));
        answer["status"] = json!("not_found");
        assert_eq!(left(&json!("bob"), &answer), "there is no agent bob in this Field\n");
    }
}
