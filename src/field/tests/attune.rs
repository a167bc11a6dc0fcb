//! ATTUNE (seed `attune.md`, sections 5, 7, 8 and 12).

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn an_answer_has_the_published_shape() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.record("ada", "SMB HR tools grow at 23% a year");
    let payload = json!({ "scope": { "role": "strategist", "max_units": 10 }, "context_hint": "HR growth" });
    let reply = stage.send("bob", "ATTUNE", payload);
    let epoch = reply.epoch;
    let answer = reply.ok();
    let budget = json!({
        "units_returned": 1, "units_available": 1, "tokens_used": null, "tokens_budget": null,
    });
    for (key, value) in [
        ("status", json!("ok")),
        ("conflicts", json!([])),
        ("context_budget", budget),
        ("epoch", json!(epoch)),
    ] {
        assert_eq!(answer[key], value, "{key}");
    }
    let scoped = &answer["record"][0];
    assert_eq!((&scoped["memory_unit"]["id"], &scoped["format"]), (&json!(unit), &json!("full")));
    assert!((0.0..=1.0).contains(&scoped["relevance_score"].as_f64().unwrap()));
    assert!(!text(&scoped["relevance_reason"]).is_empty());
    assert_eq!(scoped["memory_unit"].as_object().unwrap().len(), 10);
}

#[test]
fn own_units_are_left_out_unless_asked_for() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let (own, other) = (stage.record("ada", "own"), stage.record("bob", "other"));
    assert_eq!(stage.attuned_ids("ada", json!({})), [other.as_str()]);
    assert_eq!(stage.attuned_ids("ada", json!({ "include_own": true })), [own, other]);
}

#[test]
fn what_no_longer_stands_is_left_out() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let (old, gone) = (stage.record("ada", "old"), stage.record("ada", "gone"));
    let new = stage.relate("ada", &[["supersedes", &old]]).unit_id();
    stage.give_up("ada", "RETRACT", &gone).ok();
    let rival = stage.relate("ada", &[["contradicts", &new]]).unit_id();
    assert_eq!(stage.attuned_ids("bob", json!({})), [new, rival], "contested units stay");
}

#[test]
fn archived_units_are_left_out_unless_asked_for() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.record("ada", "cold");
    stage.send("ada", "COMPACT", json!({ "strategy": "archive" })).ok();
    assert!(stage.attuned_ids("bob", json!({})).is_empty());
    assert_eq!(stage.attuned_ids("bob", json!({ "include_archived": true })), [unit]);
}

#[test]
fn a_scope_narrows_by_session_and_by_type() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let decision = with(finding("decided"), json!({ "type": "decision" }));
    let one = stage.say(saying("ada", "RECORD", decision).session("s-1")).unit_id();
    let two = stage.say(saying("ada", "RECORD", finding("found")).session("s-2")).unit_id();
    assert_eq!(stage.attuned_ids("bob", json!({ "session_id": "s-1" })), [one.as_str()]);
    assert_eq!(stage.attuned_ids("bob", json!({ "types": ["finding"] })), [two.as_str()]);
    assert_eq!(stage.attuned_ids("bob", json!({ "types": ["finding", "decision"] })), [one.clone(), two]);
    assert!(stage.attuned_ids("bob", json!({ "types": ["finding"], "session_id": "s-1" })).is_empty());
    assert_eq!(stage.attuned_ids("bob", json!({ "types": [], "session_id": null })).len(), 2);
}

#[test]
fn since_epoch_is_inclusive_and_the_larger_of_two_counts() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let (one, two) = (stage.record("ada", "one"), stage.record("ada", "two"));
    let epoch = stage.slot(&two).epoch;
    for (scope, top, expected) in [
        (json!(epoch), json!(null), vec![two.clone()]),
        (json!(null), json!(epoch), vec![two.clone()]),
        (json!(epoch - 1), json!(epoch), vec![two.clone()]),
        (json!(epoch + 1), json!(0), vec![]),
        (json!(0), json!(null), vec![one, two]),
    ] {
        for drafts in [false, true] {
            let scope =
                json!({ "role": "r", "max_units": 9, "since_epoch": scope, "include_drafts": drafts });
            let payload = json!({ "scope": scope, "since_epoch": top });
            let mut ids = ids_of(&stage.send("bob", "ATTUNE", payload).ok());
            ids.sort();
            assert_eq!(ids, expected);
        }
    }
}

#[test]
fn an_answer_is_cut_to_max_units_and_says_how_many_there_were() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    for no in 0..9 {
        stage.record("ada", &format!("fact number {no}"));
    }
    stage.record("bob", "own");
    let all = ids_of(&stage.attune("bob", json!({})));
    for most in 1..12 {
        let answer = stage.attune("bob", json!({ "max_units": most }));
        let budget = &answer["context_budget"];
        assert_eq!((&budget["units_returned"], &budget["units_available"]), (&json!(most.min(9)), &json!(9)));
        assert_eq!(ids_of(&answer), all[..most.min(9)], "the best of them");
    }
}

#[test]
fn a_scope_lacking_its_role_or_its_bound_is_refused_by_name() {
    let mut stage = Stage::with_agents(&["ada"]);
    for (scope, key) in [
        (json!({ "max_units": 1 }), "scope.role"),
        (json!({ "role": " ", "max_units": 1 }), "scope.role"),
        (json!({ "role": "r" }), "scope.max_units"),
        (json!({ "role": "r", "max_units": 0 }), "scope.max_units"),
        (json!({ "role": "r", "max_units": 1001 }), "scope.max_units"),
        (json!({ "role": "r", "max_units": 1, "since_epoch": -1 }), "scope.since_epoch"),
        (json!({ "role": "r", "max_units": 1, "types": ["opinion"] }), "scope.types"),
    ] {
        let refused = stage.send("ada", "ATTUNE", json!({ "scope": scope })).refusal();
        assert_eq!((refused.code, &refused.details["key"]), (ErrorCode::InvalidMessage, &json!(key)));
    }
}

#[test]
fn unresolved_conflicts_come_newest_first_at_most_a_hundred_whatever_the_units() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.record("ada", "disputed");
    let rivals: Vec<_> = (0..105).map(|_| stage.relate("ada", &[["contradicts", &unit]]).unit_id()).collect();
    stage.give_up("ada", "RETRACT", &rivals[104]).ok();
    let scope = json!({ "max_units": 1, "since_epoch": stage.state.clock + 9 });
    for asker in ["ada", "bob"] {
        let answer = stage.attune(asker, scope.clone());
        let younger: Vec<_> = list(&answer["conflicts"]).iter().map(|c| text(&c["unit_b"])).collect();
        let expected: Vec<_> = rivals[4..104].iter().rev().cloned().collect();
        assert_eq!((younger, list(&answer["record"]).len()), (expected, 0));
    }
}

#[test]
fn formats_show_the_whole_a_summary_or_the_id() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let long = "The market for HR tools grows at 23% a year. ".repeat(40);
    let unit = stage.record("ada", &long);
    let mut shown = |format: Value| {
        let scope = json!({ "role": "r", "max_units": 1 });
        let answer = stage.send("bob", "ATTUNE", json!({ "scope": scope, "format": format })).ok();
        answer["record"][0].clone()
    };
    for format in [json!("full"), json!(null)] {
        let full = shown(format);
        assert_eq!((&full["memory_unit"]["content"], &full["format"]), (&json!(long), &json!("full")));
    }
    let summary = shown(json!("summary"));
    let content = text(&summary["memory_unit"]["content"]);
    assert!(!content.is_empty() && content.chars().count() <= 280);
    assert_eq!((&summary["format"], &summary["memory_unit"]["id"]), (&json!("summary"), &json!(unit)));
    let ids = shown(json!("ids_only"));
    assert_eq!((&ids["memory_unit"], &ids["format"]), (&json!({ "id": unit }), &json!("summary")));
}

/// Texts that meet often, so that scores tie and differ.
fn content() -> impl Strategy<Value = String> {
    let word = prop_oneof![Just("market"), Just("growth"), Just("risk"), Just("price"), Just("café")];
    prop::collection::vec(word, 1..5).prop_map(|words| words.join(" "))
}

fn told_by_two(contents: &[String], score: impl Fn(usize) -> f64) -> Stage {
    let mut stage = Stage::with_agents(&["ada", "bob", "eve"]);
    for (no, content) in contents.iter().enumerate() {
        let confidence = json!({ "score": score(no), "reason": "r" });
        let agent = if no % 3 == 0 { "ada" } else { "bob" };
        stage.send(agent, "RECORD", with(finding(content), json!({ "confidence": confidence }))).ok();
    }
    stage
}

#[derive(Debug, Clone)]
enum Move {
    Record,
    Draft,
    Commit(usize),
    Poll,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn units_come_strictly_by_score_and_newer_first_where_it_ties(
        contents in prop::collection::vec(content(), 1..60), hint in prop::option::of(content()),
    ) {
        let mut stage = told_by_two(&contents, |_| 0.5);
        let scope = json!({ "role": "risk analyst", "max_units": 1000 });
        let answer = stage.send("eve", "ATTUNE", json!({ "scope": scope, "context_hint": hint })).ok();
        let order: Vec<_> = list(&answer["record"])
            .iter()
            .map(|scoped| {
                let score = scoped["relevance_score"].as_f64().unwrap();
                (score, scoped["memory_unit"]["epoch"].as_u64().unwrap())
            })
            .collect();
        prop_assert_eq!(order.len(), contents.len());
        prop_assert!(order.iter().all(|(score, _)| (0.0..=1.0).contains(score)));
        prop_assert!(order.is_sorted_by(|a, b| a.0 > b.0 || (a.0 == b.0 && a.1 > b.1)), "{:?}", order);
    }

    #[test]
    fn confidence_changes_neither_an_order_nor_a_score(
        contents in prop::collection::vec(content(), 1..40), scores in prop::collection::vec(0.0..=1.0f64, 40),
    ) {
        let seen = |mut stage: Stage| {
            let answer = stage.attune("eve", json!({}));
            let scores = list(&answer["record"]).iter().map(|scoped| scoped["relevance_score"].clone()).collect();
            (ids_of(&answer), Value::Array(scores))
        };
        prop_assert_eq!(seen(told_by_two(&contents, |_| 0.5)), seen(told_by_two(&contents, |no| scores[no])));
    }

    #[test]
    fn polling_with_the_last_epoch_neither_misses_nor_repeats_a_unit(
        moves in prop::collection::vec(
            prop_oneof![
                4 => Just(Move::Record), 2 => Just(Move::Draft), 2 => (0..20usize).prop_map(Move::Commit),
                3 => Just(Move::Poll),
            ],
            1..60,
        ),
    ) {
        let mut stage = Stage::with_agents(&["ada", "bob"]);
        let (mut drafts, mut committed, mut polled, mut since) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for step in moves.into_iter().chain([Move::Poll]) {
            match step {
                Move::Record => committed.push(stage.record("ada", "x")),
                Move::Draft => drafts.push(stage.draft("ada", "x")),
                Move::Commit(no) if !drafts.is_empty() => {
                    let unit = drafts.remove(no % drafts.len());
                    stage.commit("ada", &unit).ok();
                    committed.push(unit);
                }
                Move::Commit(_) => {}
                Move::Poll => {
                    let answer = stage.attune("bob", json!({ "since_epoch": since }));
                    let mut new = ids_of(&answer);
                    new.sort_by_key(|unit| stage.slot(unit).epoch);
                    polled.extend(new);
                    since = answer["epoch"].as_u64().unwrap();
                }
            }
        }
        prop_assert_eq!(polled, committed);
    }
}
