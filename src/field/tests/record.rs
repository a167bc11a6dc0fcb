//! RECORD (sections 3 and 7).

use serde_json::json;

use super::*;
use crate::protocol::UnitStatus::{Active, Retracted, Superseded};

#[test]
fn a_recorded_unit_is_committed_active_and_the_fields_own_keys_are_the_fields() {
    let mut stage = Stage::with_agents(&["ada"]);
    let forged = json!({
        "id": "mem-999", "epoch": 999, "status": "superseded",
        "source": { "agent_id": "eve", "timestamp": "1999-01-01T00:00:00Z" },
    });
    let reply = stage.say(saying("ada", "RECORD", with(finding(" x "), forged)).session("s-1"));
    let epoch = reply.epoch;
    let expected = json!({
        "status": "accepted", "memory_unit_id": format!("mem-{epoch}"), "epoch": epoch,
        "conflicts_detected": [], "rejection_reason": null,
    });
    assert_eq!(reply.ok(), expected);
    let shown = stage.filled().unit_shown(&format!("mem-{epoch}"), None, &stage.policy).unwrap().unwrap();
    let source = json!({
        "agent_id": "ada", "agent_role": "ada", "session_id": "s-1", "timestamp": Timestamp(stage.now),
    });
    for (key, value) in [
        ("mode", json!("committed")),
        ("status", json!("active")),
        ("content", json!(" x ")),
        ("intent", json!({ "purpose": "to know", "task_id": null, "question": null })),
        ("source", source),
        ("relations", json!([])),
        ("epoch", json!(epoch)),
    ] {
        assert_eq!(shown[key], value, "{key}");
    }
}

#[test]
fn the_older_key_reasoning_is_understood_and_said_back_as_reason() {
    let mut stage = Stage::with_agents(&["ada"]);
    let confidence = json!({ "score": 0.25, "reasoning": "heard" });
    let unit = stage.send("ada", "RECORD", with(finding("x"), json!({ "confidence": confidence }))).unit_id();
    let shown = stage.filled().unit_shown(&unit, None, &stage.policy).unwrap().unwrap();
    assert_eq!(shown["confidence"]["reason"], "heard");
    assert!(shown["confidence"].get("reasoning").is_none());
}

#[test]
fn confidence_is_required_whole_of_what_is_committed_and_not_of_drafts() {
    let mut stage = Stage::with_agents(&["ada"]);
    for confidence in [json!(null), json!({}), json!({ "score": 1 }), json!({ "score": null, "reason": "r" })]
    {
        let payload = with(finding("x"), json!({ "confidence": confidence }));
        assert_eq!(stage.send("ada", "RECORD", payload.clone()).code(), ErrorCode::MissingConfidence);
        stage.send("ada", "RECORD", with(payload, json!({ "mode": "draft" }))).ok();
    }
    let no_purpose = with(finding("x"), json!({ "mode": "draft", "intent": { "purpose": " " } }));
    assert_eq!(stage.send("ada", "RECORD", no_purpose).code(), ErrorCode::MissingIntent);
}

#[test]
fn a_score_is_kept_exactly_through_the_log() {
    let mut stage = Stage::with_agents(&["ada"]);
    let score = 0.19844004278856286;
    let confidence = json!({ "confidence": { "score": score, "reason": "r" } });
    let unit = stage.send("ada", "RECORD", with(finding("x"), confidence)).unit_id();
    stage.state = stage.rebuilt();
    assert_eq!(stage.slot(&unit).said().confidence.as_ref().unwrap().score, Some(score));
}

#[test]
fn the_same_text_again_is_another_unit() {
    let mut stage = Stage::with_agents(&["ada"]);
    assert_ne!(stage.record("ada", "x"), stage.record("ada", "x"));
    assert_eq!(stage.state.world.count(Active), 2);
}

#[test]
fn only_supersedes_and_contradicts_need_a_known_target() {
    let mut stage = Stage::with_agents(&["ada"]);
    for kind in ["supports", "depends_on", "caused_by", "elaborates", "answers", "blocks", "informs"] {
        stage.relate("ada", &[[kind, "mem-999"]]).ok();
        stage.relate("ada", &[[kind, "anything at all"]]).ok();
    }
    for kind in ["supersedes", "contradicts"] {
        for target in ["mem-999", "anything at all", "mem-01"] {
            let refused = stage.relate("ada", &[["informs", "mem-1"], [kind, target]]).refusal();
            assert_eq!(refused.code, ErrorCode::UnitNotFound);
            assert_eq!(refused.details["key"], "relations[1].target_id");
        }
    }
}

#[test]
fn a_refused_record_changes_nothing() {
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.record("ada", "x");
    let (world, kept) = (stage.state.world.clone(), stage.kept.len());
    stage.relate("ada", &[["supersedes", &unit], ["supersedes", "mem-999"]]).refusal();
    stage.relate("ada", &[["contradicts", &unit], ["contradicts", "mem-999"]]).refusal();
    assert!(stage.state.world == world && stage.kept.len() == kept);
}

#[test]
fn a_superseding_unit_takes_the_place_of_another_in_one_entry() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let old = stage.record("ada", "old");
    let kept = stage.kept.len();
    let new = stage.relate("bob", &[["supersedes", &old]]).unit_id();
    assert_eq!(stage.kept.len(), kept + 1);
    assert_eq!((stage.status(&old), stage.status(&new)), (Superseded, Active));
}

#[test]
fn superseding_what_is_superseded_means_the_latest_of_its_chain() {
    let mut stage = Stage::with_agents(&["ada"]);
    let first = stage.record("ada", "1");
    let second = stage.relate("ada", &[["supersedes", &first]]).unit_id();
    let third = stage.relate("ada", &[["supersedes", &first]]).unit_id();
    assert_eq!(stage.status(&second), Superseded);
    assert_eq!(&*stage.slot(&third).said().relations[0].target_id, second.as_str());
    // Named twice, by two members of its chain, a unit is still replaced once.
    let fourth = stage.relate("ada", &[["supersedes", &first], ["supersedes", &third]]).unit_id();
    assert_eq!(stage.status(&third), Superseded);
    assert_eq!(stage.status(&fourth), Active);
    let latest =
        |unit: &str| stage.state.world.latest(stage.state.world.find(unit.parse().unwrap()).unwrap());
    assert!([&first, &second, &third].iter().all(|unit| latest(unit) == latest(&fourth)));
}

#[test]
fn a_unit_may_supersede_several_chains() {
    let mut stage = Stage::with_agents(&["ada"]);
    let (a, b) = (stage.record("ada", "a"), stage.record("ada", "b"));
    let both = stage.relate("ada", &[["supersedes", &a], ["supersedes", &b]]).unit_id();
    let after = stage.relate("ada", &[["supersedes", &b]]).unit_id();
    assert_eq!((stage.status(&both), stage.status(&after)), (Superseded, Active));
}

#[test]
fn what_was_retracted_cannot_be_superseded_or_contradicted_nor_a_chain_that_ends_so() {
    let mut stage = Stage::with_agents(&["ada"]);
    let first = stage.record("ada", "1");
    let second = stage.relate("ada", &[["supersedes", &first]]).unit_id();
    stage.give_up("ada", "RETRACT", &second).ok();
    for kind in ["supersedes", "contradicts"] {
        for target in [&first, &second] {
            assert_eq!(stage.relate("ada", &[[kind, target]]).code(), ErrorCode::InvalidTransition);
        }
    }
    assert_eq!((stage.status(&first), stage.status(&second)), (Superseded, Retracted));
}
