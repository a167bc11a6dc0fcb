//! A Field so large that ATTUNE measures a short list of its units: what another factor than the text lifts is found.

use serde_json::json;

use super::*;

/// More units than are all measured.
const MANY: usize = 16 * 1_024 + 1_500;

/// A Field with three odd units among many that are alike: one of a task, one of a task that this one depends on, one
/// that supports the unit which is closest to the need. In the order: task's, tied task's, closest, supporting.
fn large() -> (Stage, [String; 4]) {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let mut odd: Vec<String> = Vec::new();
    for number in 0..MANY {
        let content = match number {
            4_000 => "Umbrella".to_owned(),
            5_000 => "Parasol".to_owned(),
            6_000 => "The turbine hall of Reykjavik was flooded".to_owned(),
            7_000 => "Cucumber".to_owned(),
            _ => format!("Invoice {number} was paid by customer {}", number % 97),
        };
        let mut unit = with(finding(&content), json!({ "intent": { "purpose": "k" } }));
        match number {
            4_000 => unit["intent"]["task_id"] = json!("task-a"),
            5_000 => unit["intent"]["task_id"] = json!("task-b"),
            7_000 => unit["relations"] = json!([{ "type": "supports", "target_id": odd[2] }]),
            _ => unit["intent"]["task_id"] = json!("task-z"),
        }
        let id = stage.send("ada", "RECORD", unit).unit_id();
        if matches!(number, 4_000 | 5_000 | 6_000 | 7_000) {
            odd.push(id);
        }
    }
    let tying = with(
        related("Raincoat", &[["depends_on", &odd[1]]]),
        json!({ "intent": { "purpose": "k", "task_id": "task-a" } }),
    );
    stage.send("ada", "RECORD", tying).ok();
    (stage, odd.try_into().expect("four"))
}

#[test]
fn what_another_factor_than_the_text_lifts_is_found_among_very_many() {
    let (mut stage, [task, tied, closest, supporting]) = large();
    let mut asked = |scope: Value, hint: &str| {
        let scope = with(json!({ "role": "reader", "max_units": 20 }), scope);
        stage.send("bob", "ATTUNE", json!({ "scope": scope, "context_hint": hint, "explain": true })).ok()
    };
    let hint = "invoice paid by customer 13";
    let idle = ids_of(&asked(json!({}), hint));
    assert!(![&task, &tied, &supporting].iter().any(|unit| idle.contains(unit)));
    // A task's unit is brought by the task alone, without a hint and beside one that is about something else.
    let busy = json!({ "active_task_id": "task-a", "recency_weight": 0.0 });
    let alone = asked(busy.clone(), "");
    assert!(ids_of(&alone)[..2].contains(&task), "{alone}");
    assert!(ids_of(&alone).contains(&tied), "{alone}");
    let strange = asked(busy, "a sunshade for the terrace of the observatory");
    assert!(ids_of(&strange).contains(&task), "{strange}");
    // A relation brings what shares no word with the need.
    let flooded = asked(json!({}), "flooded turbine hall in Reykjavik");
    assert_eq!(ids_of(&flooded)[..2], [closest.clone(), supporting.clone()]);
    let reason = text(&flooded["record"][1]["relevance_reason"]);
    assert!(reason.ends_with(&format!("; supports {closest}")), "{reason}");
    // Filters before the cut, and what they leave is counted, layers too.
    let polled = asked(json!({ "temporal_layers": ["future"] }), hint);
    assert_eq!(polled["context_budget"]["units_available"], 0, "{}", polled["context_budget"]);
    let all = asked(json!({}), hint);
    assert_eq!(all["context_budget"]["units_available"], MANY + 1);
    // With a threshold the count is exact: as many as come when all of them are asked for.
    let threshold = json!({ "relevance_threshold": 0.55, "max_units": 1_000 });
    let reached = asked(threshold, "flooded turbine hall in Reykjavik");
    let count = list(&reached["record"]).len();
    assert!(count > 0 && count < 1_000);
    assert_eq!(reached["context_budget"]["units_available"], count);
}
