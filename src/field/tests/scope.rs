//! The scope's keys of level 2 (section 5): what each does, and each of them wrong.

use serde_json::json;

use super::*;

fn attune(stage: &mut Stage, scope: Value) -> Reply {
    let scope = with(json!({ "role": "reader", "max_units": 9 }), scope);
    stage.send("bob", "ATTUNE", json!({ "scope": scope }))
}

/// Each key in each way wrong.
fn wrong_keys() -> Vec<(&'static str, Value)> {
    let long = "x".repeat(crate::limits::ID_MAX_BYTES + 1);
    let many = vec!["x"; crate::limits::INTERESTS_MAX + 1];
    vec![
        ("max_tokens", json!(0)),
        ("max_tokens", json!(-1)),
        ("max_tokens", json!(1.5)),
        ("max_tokens", json!("100")),
        ("max_tokens", json!([100])),
        ("interests", json!("growth")),
        ("interests", json!([1])),
        ("interests", json!([long])),
        ("interests", json!(many)),
        ("interests", json!({})),
        ("active_task_id", json!(7)),
        ("active_task_id", json!("")),
        ("active_task_id", json!(" ")),
        ("active_task_id", json!(long)),
        ("active_task_id", json!("a\nb")),
        ("temporal_layers", json!("past")),
        ("temporal_layers", json!(["now"])),
        ("temporal_layers", json!([1])),
        ("temporal_layers", json!(["past", null])),
        ("relevance_threshold", json!(-0.1)),
        ("relevance_threshold", json!(1.01)),
        ("relevance_threshold", json!("0.5")),
        ("relevance_threshold", json!(true)),
        ("recency_weight", json!(-1)),
        ("recency_weight", json!(1e300)),
        ("recency_weight", json!({})),
    ]
}

#[test]
fn each_key_that_is_wrong_is_refused_by_name_and_takes_no_epoch() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let clock = stage.state.clock;
    for (key, value) in wrong_keys() {
        let refused = attune(&mut stage, json!({ key: value.clone() })).refusal();
        let named = json!(format!("scope.{key}"));
        assert_eq!((refused.code, &refused.details["key"]), (ErrorCode::InvalidMessage, &named), "{value}");
        assert!(refused.message.contains(key) && refused.suggested_action.contains(key), "{refused:?}");
        assert_eq!(stage.state.clock, clock);
    }
    let asked = json!({ "scope": { "role": "r", "max_units": 1 }, "explain": "yes" });
    assert_eq!(stage.send("bob", "ATTUNE", asked).refusal().details["key"], json!("explain"));
}

#[test]
fn keys_at_their_bounds_and_absent_ones_are_fine() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    stage.record("ada", "x");
    for scope in [
        json!({ "max_tokens": 1, "relevance_threshold": 0, "recency_weight": 0 }),
        json!({ "max_tokens": 9e15, "relevance_threshold": 1.0, "recency_weight": 1 }),
        json!({ "interests": [], "temporal_layers": ["past", "present", "future", "past"] }),
        json!({ "max_tokens": null, "interests": null, "active_task_id": null, "temporal_layers": null }),
        json!({ "relevance_threshold": null, "recency_weight": null, "active_task_id": "unheard-of" }),
    ] {
        attune(&mut stage, scope).ok();
    }
}

#[test]
fn the_configured_level_decides_whether_the_keys_are_read() {
    for level in [0, 1, 2, 3] {
        let mut stage = Stage::of_level(level);
        stage.join("ada");
        let reply = stage.send("bob", "REGISTER", json!({ "id": "bob", "role": "r" })).ok();
        let extensions = list(&reply["field_capabilities"]["extensions"]);
        let unit = stage.record("ada", "x");
        for extension in ["extended-scope", "token-budget"] {
            assert_eq!(extensions.contains(&json!(extension)), level >= 2, "{extension} at {level}");
        }
        for (key, value) in wrong_keys() {
            let outcome = attune(&mut stage, json!({ key: value })).outcome;
            assert_eq!(outcome.is_err(), level >= 2, "{key} at {level}");
        }
        // Not read, they do nothing.
        let narrow = json!({ "temporal_layers": ["future"], "max_tokens": 1, "relevance_threshold": 1 });
        let answer = attune(&mut stage, narrow).ok();
        assert_eq!(ids_of(&answer), if level >= 2 { vec![] } else { vec![unit] });
        assert_eq!(answer["context_budget"]["tokens_budget"].is_null(), level < 2);
    }
}

#[test]
fn layers_part_the_types() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let layers = [
        ("past", vec!["finding", "observation", "correction", "synthesis"]),
        (
            "present",
            vec!["decision", "constraint", "assumption", "question", "contradiction", "human_directive"],
        ),
        ("future", vec!["intention"]),
    ];
    let mut units = Vec::new();
    for (layer, kinds) in &layers {
        for kind in kinds {
            let unit = stage.send("ada", "RECORD", with(finding("x"), json!({ "type": kind }))).unit_id();
            units.push((*layer, unit));
        }
    }
    assert_eq!(units.len(), crate::protocol::MemoryType::ALL.len(), "each type is in one layer");
    for wanted in [vec!["past"], vec!["present"], vec!["future"], vec!["past", "future"], vec![]] {
        let asked = |layer: &str| wanted.is_empty() || wanted.contains(&layer);
        let mut expected: Vec<_> =
            units.iter().filter(|(layer, _)| asked(layer)).map(|(_, unit)| unit.clone()).collect();
        expected.sort();
        assert_eq!(stage.attuned_ids("bob", json!({ "temporal_layers": wanted })), expected);
    }
}

#[test]
fn a_threshold_leaves_out_what_is_below_it_and_does_not_count_it() {
    let mut stage = Stage::with_agents(&["ada", "bob", "cho"]);
    for no in 0..40 {
        let words = ["market", "growth", "risk", "price"][..=no % 4].join(" ");
        stage.record(["ada", "cho"][no % 2], &words);
    }
    let now = stage.state.clock + 1;
    let ask = |stage: &mut Stage, scope: Value| {
        stage.state.clock = now;
        let scope = with(json!({ "role": "r", "max_units": 1000 }), scope);
        stage.send("bob", "ATTUNE", json!({ "scope": scope, "context_hint": "market growth risk" })).ok()
    };
    let score = |scoped: &Value| scoped["relevance_score"].as_f64().unwrap();
    let all = list(&ask(&mut stage, json!({}))["record"]);
    assert_eq!(all.len(), 40);
    for at in [0, 1, 7, 20, 39] {
        let least = score(&all[at]);
        let reaching = all.iter().filter(|scoped| score(scoped) >= least).count();
        for most in [1, 3, 1000] {
            let scope = json!({ "relevance_threshold": least, "max_units": most });
            let answer = ask(&mut stage, scope);
            let budget = &answer["context_budget"];
            assert_eq!(budget["units_available"], json!(reaching), "at {least}");
            assert_eq!(list(&answer["record"]), all[..reaching.min(most)]);
        }
    }
    let nothing = ask(&mut stage, json!({ "relevance_threshold": 1.0 }));
    assert_eq!(
        (list(&nothing["record"]).len(), &nothing["context_budget"]["units_available"]),
        (0, &json!(0))
    );
}

#[test]
fn interests_of_the_scope_replace_the_registered_ones() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.send("bob", "REGISTER", json!({ "id": "bob", "role": "reader", "interests": ["pricing"] })).ok();
    let (price, hire) = (stage.record("ada", "pricing of seats"), stage.record("ada", "hiring of engineers"));
    let first = |stage: &mut Stage, scope: Value| ids_of(&stage.attune("bob", scope))[0].clone();
    assert_eq!(first(&mut stage, json!({})), price);
    assert_eq!(first(&mut stage, json!({ "interests": [] })), price);
    assert_eq!(first(&mut stage, json!({ "interests": ["hiring"] })), hire);
    // Replaced, the registered one counts nothing.
    let asked =
        json!({ "scope": { "role": "reader", "max_units": 9, "interests": ["hiring"] }, "explain": true });
    let answer = stage.send("bob", "ATTUNE", asked).ok();
    let words = |at: usize| answer["record"][at]["factors"]["lexical"]["value"].as_f64().unwrap();
    assert!(words(0) > 0.0 && words(1) == 0.0, "{answer}");
}

#[test]
fn a_narrow_filter_still_fills_the_answer() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    // What is asked for is rare, and everything else is a better match.
    let mut wanted = Vec::new();
    for no in 0..200 {
        stage.record("ada", &format!("market growth report {no}"));
        if no % 20 == 0 {
            let plan = with(finding("unlike anything"), json!({ "type": "intention" }));
            wanted.push(stage.say(saying("ada", "RECORD", plan).session("s")).unit_id());
        }
    }
    for narrow in [
        json!({ "types": ["intention"] }),
        json!({ "session_id": "s" }),
        json!({ "temporal_layers": ["future"] }),
        json!({ "temporal_layers": ["future"], "session_id": "s", "since_epoch": 1 }),
    ] {
        let scope = with(json!({ "role": "r", "max_units": 10 }), narrow);
        let asked = json!({ "scope": scope, "context_hint": "market growth report" });
        let answer = stage.send("bob", "ATTUNE", asked).ok();
        let mut ids = ids_of(&answer);
        ids.sort();
        let mut expected = wanted.clone();
        expected.sort();
        assert_eq!(ids, expected);
        assert_eq!(answer["context_budget"]["units_available"], json!(10));
    }
}

#[test]
fn recency_weighs_as_much_as_asked() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let old = stage.record("ada", "market growth");
    stage.state.clock += 500;
    let new = stage.record("ada", "lunch is late");
    let mut order = |weight: Value| {
        let scope = json!({ "role": "r", "max_units": 2, "recency_weight": weight });
        ids_of(&stage.send("bob", "ATTUNE", json!({ "scope": scope, "context_hint": "market growth" })).ok())
    };
    for weight in [json!(null), json!(0), json!(0.2)] {
        assert_eq!(order(weight), [old.as_str(), &new]);
    }
    for weight in [json!(0.9), json!(1)] {
        assert_eq!(order(weight), [new.as_str(), &old]);
    }
}
