//! Conformance levels (section 10).

use serde_json::json;

use super::*;

#[test]
fn level_0_serves_its_operations_and_the_extensions_alone() {
    let mut stage = Stage::of_level(0);
    stage.join("ada");
    for operation in ["DEREGISTER", "DETECT", "REPLAY", "MERGE", "SUBSCRIBE", "COMPACT", "HANDOFF"] {
        assert_eq!(stage.send("ada", operation, json!({})).code(), ErrorCode::UnsupportedOperation);
    }
    let draft = stage.draft("ada", "x");
    stage.commit("ada", &draft).ok();
    stage.give_up("ada", "RETRACT", &draft).ok();
    let draft = stage.draft("ada", "y");
    stage.give_up("ada", "DISCARD", &draft).ok();
    stage.attune("ada", json!({}));
}

#[test]
fn level_0_makes_confidence_optional_but_not_wrong() {
    let mut stage = Stage::of_level(0);
    stage.join("ada");
    for confidence in [json!(null), json!({}), json!({ "reason": "r" })] {
        stage.send("ada", "RECORD", with(finding("x"), json!({ "confidence": confidence }))).ok();
    }
    let wrong = with(finding("x"), json!({ "confidence": { "score": 1.5 } }));
    assert_eq!(stage.send("ada", "RECORD", wrong).code(), ErrorCode::InvalidConfidence);
    let aimless = with(finding("x"), json!({ "intent": null }));
    assert_eq!(stage.send("ada", "RECORD", aimless).code(), ErrorCode::MissingIntent);
    let bare = with(finding("x"), json!({ "mode": "draft", "confidence": null }));
    let draft = stage.send("ada", "RECORD", bare).unit_id();
    stage.commit("ada", &draft).ok();
}

#[test]
fn level_0_makes_no_conflicts_but_supersedes() {
    let mut stage = Stage::of_level(0);
    stage.join("ada");
    let unit = stage.record("ada", "x");
    let rival = stage.relate("ada", &[["contradicts", &unit]]).ok();
    assert_eq!(rival["conflicts_detected"], json!([]));
    assert_eq!(stage.status(&unit), UnitStatus::Active);
    stage.relate("ada", &[["supersedes", &unit], ["contradicts", &unit]]).ok();
    assert_eq!(stage.status(&unit), UnitStatus::Superseded);
    assert!(stage.state.world.conflicts.is_empty());
}

#[test]
fn what_a_level_serves_is_what_it_advertises() {
    for level in [0, 1, 2, 3] {
        let mut stage = Stage::of_level(level);
        let reply = stage.send("ada", "REGISTER", json!({ "id": "ada", "role": "r" })).ok();
        let capabilities = &reply["field_capabilities"];
        assert_eq!(capabilities["conformance_level"], json!(level.min(1)));
        let advertised = list(&capabilities["supported_operations"]);
        for operation in crate::protocol::Operation::ALL {
            let outcome = stage.send("ada", operation.name(), json!({})).outcome;
            let served = !outcome.is_err_and(|refusal| refusal.code == ErrorCode::UnsupportedOperation);
            assert_eq!(advertised.contains(&json!(operation.name())), served, "{operation} at {level}");
        }
    }
}

#[test]
fn meaning_counts_from_level_2_on() {
    let wanted = "We chose PostgreSQL for the billing service because it needs transactions";
    for level in [0, 1, 2, 3] {
        let mut stage = Stage::of_level(level);
        for agent in ["ada", "ben"] {
            stage.join(agent);
        }
        let reply = stage.send("cho", "REGISTER", json!({ "id": "cho", "role": "r" })).ok();
        let on = level >= 2;
        let model = json!({ "name": "static-256-int4", "dimensions": 256 });
        let told = if on { model } else { json!(null) };
        assert_eq!(reply["field_capabilities"]["embedding"], told, "level {level}");
        let units = [stage.record("ada", wanted), stage.record("ada", "Lunch is at noon in the garden")];
        let asked = json!({ "scope": { "role": "r", "max_units": 2 }, "context_hint": "which database holds invoices" });
        let found = stage.send("ben", "ATTUNE", asked).ok();
        // No word is shared: without meaning the later unit comes first.
        assert_eq!(found["record"][0]["memory_unit"]["id"], json!(units[usize::from(!on)]), "level {level}");
    }
}
