//! RETRACT, COMMIT and DISCARD (sections 3, 7 and 12).

use serde_json::json;

use super::*;
use crate::protocol::UnitStatus::{Active, Draft, Retracted, Superseded};

#[test]
fn an_author_retracts_its_unit_for_good() {
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.record("ada", "x");
    let reply = stage.give_up("ada", "RETRACT", &unit);
    let epoch = reply.epoch;
    assert_eq!(reply.ok(), json!({ "status": "ok", "memory_unit_id": unit, "epoch": epoch }));
    assert_eq!(stage.status(&unit), Retracted);
    assert_eq!(stage.commit("ada", &unit).code(), ErrorCode::InvalidTransition);
}

#[test]
fn retracting_again_is_ok_and_changes_nothing() {
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.record("ada", "x");
    stage.give_up("ada", "RETRACT", &unit).ok();
    let reply = stage.give_up("ada", "RETRACT", &unit);
    assert!(Entry::from_json(&stage.kept[&reply.epoch]).unwrap().events.is_empty());
    assert_eq!(reply.ok()["status"], "ok");
    assert_eq!(stage.status(&unit), Retracted);
}

#[test]
fn the_unit_of_another_is_forbidden_and_an_unknown_one_not_found() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let (unit, draft) = (stage.record("ada", "x"), stage.draft("ada", "secret"));
    for operation in ["RETRACT", "COMMIT", "DISCARD"] {
        assert_eq!(stage.give_up("bob", operation, &unit).code(), ErrorCode::Forbidden, "{operation}");
        for unknown in ["mem-999", "mem-", "whatever", &draft] {
            assert_eq!(
                stage.give_up("bob", operation, unknown).code(),
                ErrorCode::UnitNotFound,
                "{operation}"
            );
        }
    }
}

#[test]
fn each_operation_applies_to_its_own_states_alone() {
    let mut stage = Stage::with_agents(&["ada"]);
    let old = stage.record("ada", "old");
    let unit = stage.relate("ada", &[["supersedes", &old]]).unit_id();
    let (draft, gone) = (stage.draft("ada", "draft"), stage.draft("ada", "gone"));
    stage.give_up("ada", "DISCARD", &gone).ok();
    for (operation, wrong) in [
        ("RETRACT", [&old, &draft].as_slice()),
        ("COMMIT", &[&old, &unit, &gone]),
        ("DISCARD", &[&old, &unit, &gone]),
    ] {
        for unit in wrong {
            assert_eq!(
                stage.give_up("ada", operation, unit).code(),
                ErrorCode::InvalidTransition,
                "{operation}"
            );
        }
    }
    assert_eq!(stage.status(&old), Superseded);
}

#[test]
fn a_committed_draft_keeps_its_id_and_gets_a_new_epoch_and_time() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.draft("ada", "x");
    let (draft_epoch, draft_at) = (stage.slot(&unit).epoch, stage.now);
    stage.record("bob", "between");
    let reply = stage.commit("ada", &unit);
    let epoch = reply.epoch;
    let expected =
        json!({ "status": "ok", "memory_unit_id": unit, "epoch": epoch, "conflicts_detected": [] });
    assert_eq!(reply.ok(), expected);
    let slot = stage.slot(&unit);
    assert!(slot.epoch == epoch && epoch > draft_epoch && slot.said().source.timestamp.0 > draft_at);
    assert_eq!(slot.status, Active);
    let shown = stage.attune("bob", json!({ "since_epoch": epoch }));
    assert_eq!(ids_of(&shown), [unit]);
    assert_eq!(shown["record"][0]["memory_unit"]["mode"], "committed");
}

#[test]
fn a_commit_needs_a_confidence_from_the_draft_or_from_itself() {
    let mut stage = Stage::with_agents(&["ada"]);
    let bare = with(finding("x"), json!({ "mode": "draft", "confidence": null }));
    let unit = stage.send("ada", "RECORD", bare).unit_id();
    assert_eq!(stage.commit("ada", &unit).code(), ErrorCode::MissingConfidence);
    assert_eq!(stage.status(&unit), Draft, "refused, it stays a draft");
    let confidence = json!({ "score": 0.9, "reason": "checked" });
    stage.send("ada", "COMMIT", json!({ "memory_unit_id": unit, "confidence": confidence })).ok();
    assert_eq!(stage.slot(&unit).said().confidence.as_ref().unwrap().score, Some(0.9));
}

#[test]
fn supersedes_and_contradicts_of_a_draft_take_effect_at_its_commit() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let (old, wrong) = (stage.record("bob", "old"), stage.record("bob", "wrong"));
    let relations = [["supersedes", &*old], ["contradicts", &*wrong]];
    let draft = with(related("new", &relations), json!({ "mode": "draft" }));
    let reply = stage.send("ada", "RECORD", draft).ok();
    assert_eq!(reply["conflicts_detected"], json!([]));
    let unit = text(&reply["memory_unit_id"]);
    assert_eq!([stage.status(&old), stage.status(&wrong)], [Active, Active]);
    let reply = stage.commit("ada", &unit);
    let conflict = format!("conflict-{}", reply.epoch);
    assert_eq!(reply.ok()["conflicts_detected"], json!([conflict]));
    assert_eq!((stage.status(&old), stage.status(&wrong)), (Superseded, UnitStatus::Contested));
    // The committed unit is the younger one, though its id is what the draft's was.
    let conflict = &stage.conflicts("ada")[0];
    assert_eq!((text(&conflict["unit_a"]), text(&conflict["unit_b"])), (wrong, unit));
}

#[test]
fn a_commit_follows_what_has_changed_since_the_draft() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let old = stage.record("bob", "old");
    let draft = with(related("mine", &[["supersedes", &old]]), json!({ "mode": "draft" }));
    let unit = stage.send("ada", "RECORD", draft).unit_id();
    let newer = stage.relate("bob", &[["supersedes", &old]]).unit_id();
    stage.commit("ada", &unit).ok();
    assert_eq!((stage.status(&newer), stage.status(&unit)), (Superseded, Active));
    assert_eq!(&*stage.slot(&unit).said().relations[0].target_id, newer.as_str());
}

#[test]
fn a_refused_commit_leaves_a_draft_that_can_be_mended() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let old = stage.record("bob", "old");
    let draft = with(related("mine", &[["contradicts", &old]]), json!({ "mode": "draft" }));
    let unit = stage.send("ada", "RECORD", draft).unit_id();
    stage.give_up("bob", "RETRACT", &old).ok();
    let world = stage.state.world.clone();
    assert_eq!(stage.commit("ada", &unit).code(), ErrorCode::InvalidTransition);
    assert!(stage.state.world == world);
    stage.send("ada", "COMMIT", json!({ "memory_unit_id": unit, "relations": [] })).ok();
    assert_eq!(stage.status(&unit), Active);
    assert!(stage.slot(&unit).said().relations.is_empty());
}

#[test]
fn a_draft_cannot_supersede_itself_or_another_draft() {
    let mut stage = Stage::with_agents(&["ada"]);
    let (one, two) = (stage.draft("ada", "1"), stage.draft("ada", "2"));
    for target in [&one, &two] {
        let relations = json!([{ "type": "supersedes", "target_id": target }]);
        let payload = json!({ "memory_unit_id": one, "relations": relations });
        assert_eq!(stage.send("ada", "COMMIT", payload).code(), ErrorCode::InvalidTransition);
    }
    assert_eq!(stage.status(&one), Draft);
}

#[test]
fn a_discarded_draft_is_retracted() {
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.draft("ada", "x");
    stage.give_up("ada", "DISCARD", &unit).ok();
    assert_eq!(stage.status(&unit), Retracted);
    let shown = stage.filled().unit_shown(&unit, Some("ada"), &stage.policy).unwrap().unwrap();
    assert_eq!((&shown["mode"], &shown["status"]), (&json!("draft"), &json!("retracted")));
}
