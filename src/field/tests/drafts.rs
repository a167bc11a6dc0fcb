//! Drafts are their author's alone (sections 3 and 12), through whatever door one looks.

use serde_json::json;

use super::*;

const SECRET: &str = "quetzalcoatl";

/// A Field with a draft of ada's that contradicts a unit of bob's, in one of three states.
fn stage_with(state: &str) -> (Stage, String) {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let base = stage.record("bob", "base");
    let draft = with(related(SECRET, &[["contradicts", &base]]), json!({ "mode": "draft" }));
    let unit = stage.send("ada", "RECORD", draft).unit_id();
    match state {
        "draft" => {}
        "discarded" => drop(stage.give_up("ada", "DISCARD", &unit).ok()),
        "committed" => drop(stage.commit("ada", &unit).ok()),
        other => panic!("no state {other}"),
    }
    (stage, unit)
}

/// Whether `asker` sees the unit in this view. Who is not registered asks as `None` where a view allows it.
fn sees(stage: &mut Stage, view: &str, unit: &str, asker: Option<&str>) -> bool {
    let agent = asker.unwrap_or("stranger");
    let reply = match view {
        "attune" => {
            let scope = json!({ "role": "r", "max_units": 9, "include_own": true, "include_drafts": true });
            stage.send(agent, "ATTUNE", json!({ "scope": scope }))
        }
        "replay" => stage.replay(agent, ["memory_unit", unit], "full_trace"),
        "detect" => stage.send(agent, "DETECT", json!({ "mode": "list" })),
        "relation target" => {
            let draft = with(related("x", &[["supersedes", unit]]), json!({ "mode": "draft" }));
            return stage.send(agent, "RECORD", draft).outcome.is_ok();
        }
        "unit GET" => return stage.filled().unit_shown(unit, asker, &stage.policy).unwrap().is_some(),
        "units GET" => {
            let filter = UnitFilter { limit: 9, status: Some(stage.status(unit)), ..UnitFilter::default() };
            return mentions(&stage.filled().units_shown(&filter, asker, &stage.policy).unwrap(), unit);
        }
        "log line" => {
            return stage.kept.values().flat_map(|body| lines_of(body)).any(|line| line.contains(SECRET));
        }
        other => panic!("no view {other}"),
    };
    reply.outcome.is_ok_and(|answer| mentions(&answer, unit))
}

fn mentions(answer: &Value, unit: &str) -> bool {
    answer.to_string().contains(&format!("\"{unit}\""))
}

#[test]
fn who_sees_what_of_a_draft_is_the_same_in_every_view() {
    let views = ["attune", "replay", "unit GET", "units GET", "log line", "detect", "relation target"];
    // In the order of the views: own, other, nobody.
    let matrix = [
        ("draft", [[1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [1, 0, 0]]),
        ("discarded", [[0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [1, 0, 0]]),
        // Who is not registered may use the GETs and the log alone.
        ("committed", [[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 1, 0]]),
    ];
    for (state, rows) in matrix {
        for (view, row) in views.iter().zip(rows) {
            for (asker, expected) in [Some("ada"), Some("bob"), None].into_iter().zip(row) {
                let (mut stage, unit) = stage_with(state);
                let seen = sees(&mut stage, view, &unit, asker);
                assert_eq!(seen, expected == 1, "{state} through {view} by {asker:?}");
            }
        }
    }
}

#[test]
fn no_answer_to_another_agent_holds_a_word_of_a_draft_nor_its_id() {
    for state in ["draft", "discarded"] {
        let (mut stage, unit) = stage_with(state);
        stage.say(saying("bob", "RECORD", related("near", &[["informs", &unit]])).session("s")).ok();
        let near = format!("mem-{}", stage.state.clock);
        let mut answers = vec![stage.attune("bob", json!({ "include_own": true, "include_drafts": true }))];
        for target in [["memory_unit", &*near], ["session", "s"]] {
            for depth in ["summary", "detailed", "full_trace"] {
                answers.push(stage.replay("bob", target, depth).ok());
            }
        }
        let listed = stage.filled().units_shown(
            &UnitFilter { limit: 99, status: Some(UnitStatus::Retracted), ..UnitFilter::default() },
            Some("bob"),
            &stage.policy,
        );
        answers.push(listed.unwrap());
        for answer in answers {
            assert!(!answer.to_string().contains(SECRET), "{answer}");
        }
        assert_eq!(stage.give_up("bob", "RETRACT", &unit).code(), ErrorCode::UnitNotFound);
    }
}

#[test]
fn a_task_or_session_of_nothing_but_anothers_drafts_is_not_found() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let intent = json!({ "purpose": "p", "task_id": "task-1" });
    let draft = with(finding(SECRET), json!({ "mode": "draft", "intent": intent }));
    let unit = stage.say(saying("ada", "RECORD", draft).session("s-1")).unit_id();
    for target in [["task", "task-1"], ["session", "s-1"]] {
        assert_eq!(stage.replay("bob", target, "full_trace").code(), ErrorCode::UnitNotFound);
        stage.replay("ada", target, "full_trace").ok();
    }
    stage.commit("ada", &unit).ok();
    for target in [["task", "task-1"], ["session", "s-1"]] {
        stage.replay("bob", target, "full_trace").ok();
    }
}

#[test]
fn relations_that_a_commit_replaced_lead_nowhere() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let hint = stage.record("bob", "what the draft rested on");
    let draft = with(related("mine", &[["depends_on", &hint]]), json!({ "mode": "draft" }));
    let unit = stage.send("ada", "RECORD", draft).unit_id();
    assert!(mentions(&stage.replay("ada", ["memory_unit", &unit], "full_trace").ok(), &hint));
    stage.send("ada", "COMMIT", json!({ "memory_unit_id": unit, "relations": [] })).ok();
    for asker in ["ada", "bob"] {
        assert!(!mentions(&stage.replay(asker, ["memory_unit", &unit], "full_trace").ok(), &hint), "{asker}");
    }
}

#[test]
fn drafts_are_asked_for_and_have_no_inbound_relations_yet() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let base = stage.record("bob", "base");
    let draft = with(related("mine", &[["supports", &base]]), json!({ "mode": "draft" }));
    let unit = stage.send("ada", "RECORD", draft).unit_id();
    let shown = stage.filled().unit_shown(&base, Some("ada"), &stage.policy).unwrap().unwrap();
    assert_eq!(shown["inbound_relations"], json!([]));
    assert_eq!(stage.attuned_ids("ada", json!({ "include_own": true })), [base.as_str()]);
    assert_eq!(stage.attuned_ids("ada", json!({ "include_drafts": true })), [base.clone(), unit.clone()]);
    let all = stage.filled().units_shown(
        &UnitFilter { limit: 9, ..UnitFilter::default() },
        Some("ada"),
        &stage.policy,
    );
    assert!(!mentions(&all.unwrap(), &unit), "units GET lists no drafts unless asked by status");
    stage.commit("ada", &unit).ok();
    let shown = stage.filled().unit_shown(&base, None, &stage.policy).unwrap().unwrap();
    assert_eq!(shown["inbound_relations"][0]["source_id"], json!(unit));
}

#[test]
fn shared_drafts_are_everyones_but_discarded_ones_are_not() {
    let mut stage = Stage::new();
    stage.policy.shared_drafts = true;
    stage.join("ada");
    stage.join("bob");
    let unit = stage.draft("ada", "thinking aloud");
    assert_eq!(stage.attuned_ids("bob", json!({})), [unit.as_str()]);
    assert!(stage.attuned_ids("ada", json!({})).is_empty(), "one's own are asked for");
    stage.replay("bob", ["memory_unit", &unit], "full_trace").ok();
    assert_eq!(stage.commit("bob", &unit).code(), ErrorCode::UnitNotFound);
    stage.give_up("ada", "DISCARD", &unit).ok();
    assert!(stage.attuned_ids("bob", json!({})).is_empty());
    assert_eq!(stage.replay("bob", ["memory_unit", &unit], "full_trace").code(), ErrorCode::UnitNotFound);
    assert!(stage.filled().unit_shown(&unit, Some("bob"), &stage.policy).unwrap().is_none());
}

/// What is in a draft must not show in the scores of others either: a word that only it has would.
#[test]
fn the_words_of_a_draft_weigh_in_nobody_elses_scores() {
    let told = |draft: &str, discarded: bool| {
        let mut stage = Stage::with_agents(&["ada", "bob"]);
        stage.record("ada", "The merger is planned for spring.");
        let draft = stage.draft("ada", draft);
        if discarded {
            stage.give_up("ada", "DISCARD", &draft).ok();
        }
        stage.record("ada", "The budget is planned for spring.");
        let hint = "merger with zebracorp planned";
        let scope = json!({ "role": "analyst", "max_units": 10 });
        stage.send("bob", "ATTUNE", json!({ "scope": scope, "context_hint": hint })).ok()["record"].clone()
    };
    for discarded in [false, true] {
        let secret = told("The merger is with zebracorp, planned with zebracorp.", discarded);
        let (mut plain, mut shown) = (told("Nothing.", discarded), secret);
        for unit in plain.as_array_mut().unwrap().iter_mut().chain(shown.as_array_mut().unwrap()) {
            unit["memory_unit"]["source"]["timestamp"].take();
        }
        assert_eq!(shown, plain);
    }
}
