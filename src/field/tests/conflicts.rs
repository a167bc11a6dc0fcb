//! Conflicts (sections 6 and 12).

use serde_json::json;

use super::*;
use crate::protocol::UnitStatus::{Active, Contested, Retracted, Superseded};

fn of_type(kind: &str, relations: &[[&str; 2]]) -> Value {
    with(related(kind, relations), json!({ "type": kind }))
}

/// The conflict of a Field that has one.
fn only(stage: &mut Stage) -> Value {
    let conflicts = stage.conflicts("ada");
    assert_eq!(conflicts.len(), 1);
    conflicts[0].clone()
}

#[test]
fn a_unit_is_in_a_bounded_number_of_open_conflicts() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.record("ada", "x");
    for _ in 0..crate::limits::OPEN_CONFLICTS_MAX {
        stage.relate("bob", &[["contradicts", &unit]]).ok();
    }
    let refused = stage.relate("bob", &[["contradicts", &unit]]).refusal();
    assert_eq!(
        (refused.code, &refused.details["key"]),
        (ErrorCode::InvalidMessage, &json!("relations[0].target_id"))
    );
    // The end of the unit settles them all, and makes room.
    stage.give_up("ada", "RETRACT", &unit).ok();
    assert!(stage.state.world.unresolved.is_empty());
}

#[test]
fn a_contradiction_makes_a_conflict_in_the_same_entry() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let old = stage.record("ada", "23% CAGR");
    let kept = stage.kept.len();
    let relation = json!([{ "type": "contradicts", "target_id": old, "description": "too high" }]);
    let reply = stage.send("bob", "RECORD", with(finding("14% CAGR"), json!({ "relations": relation })));
    let (epoch, id) = (reply.epoch, format!("conflict-{}", reply.epoch));
    let reply = reply.ok();
    assert_eq!(reply["conflicts_detected"], json!([id]));
    assert_eq!(stage.kept.len(), kept + 1);
    let expected = json!({
        "id": id, "type": "factual", "status": "detected", "unit_a": old, "unit_b": format!("mem-{epoch}"),
        "description": "too high", "detected_by": "explicit",
    });
    assert_eq!(only(&mut stage), expected, "without a resolution");
    assert_eq!(stage.status(&old), Contested);
    assert_eq!(stage.status(&format!("mem-{epoch}")), Contested);
}

#[test]
fn the_type_of_a_conflict_follows_the_types_of_its_units() {
    for (one, two, kind) in [
        ("decision", "decision", "strategic"),
        ("decision", "intention", "strategic"),
        ("intention", "intention", "strategic"),
        ("observation", "observation", "interpretive"),
        ("observation", "finding", "factual"),
        ("decision", "observation", "factual"),
        ("finding", "finding", "factual"),
    ] {
        for (older, newer) in [(one, two), (two, one)] {
            let mut stage = Stage::with_agents(&["ada"]);
            let old = stage.send("ada", "RECORD", of_type(older, &[])).unit_id();
            stage.send("ada", "RECORD", of_type(newer, &[["contradicts", &old]])).ok();
            assert_eq!(only(&mut stage)["type"], kind, "{older} and {newer}");
        }
    }
}

#[test]
fn several_contradictions_of_one_record_are_several_conflicts_one_for_each_unit() {
    let mut stage = Stage::with_agents(&["ada"]);
    let (a, b) = (stage.record("ada", "a"), stage.record("ada", "b"));
    let newer = stage.relate("ada", &[["supersedes", &a]]).unit_id();
    let relations = [["contradicts", &*b], ["contradicts", &a], ["contradicts", &newer], ["contradicts", &b]];
    let reply = stage.relate("ada", &relations);
    let epoch = reply.epoch;
    let ids = [format!("conflict-{epoch}"), format!("conflict-{epoch}.1")];
    assert_eq!(reply.ok()["conflicts_detected"], json!(ids));
    let older: Vec<_> = stage.conflicts("ada").iter().map(|conflict| text(&conflict["unit_a"])).collect();
    assert_eq!(older, [b, newer]);
}

#[test]
fn contradicting_what_is_superseded_means_the_latest_of_its_chain() {
    let mut stage = Stage::with_agents(&["ada"]);
    let old = stage.record("ada", "old");
    let new = stage.relate("ada", &[["supersedes", &old]]).unit_id();
    let against = stage.relate("ada", &[["contradicts", &old]]).unit_id();
    assert_eq!(only(&mut stage)["unit_a"], json!(new));
    assert_eq!(&*stage.slot(&against).said().relations[0].target_id, new.as_str());
    assert_eq!((stage.status(&old), stage.status(&new)), (Superseded, Contested));
}

#[test]
fn a_contested_unit_that_is_superseded_loses_its_conflict() {
    let mut stage = Stage::with_agents(&["ada"]);
    let old = stage.record("ada", "old");
    let rival = stage.relate("ada", &[["contradicts", &old]]).unit_id();
    let reply = stage.relate("ada", &[["supersedes", &old]]);
    let resolution = only(&mut stage)["resolution"].clone();
    assert_eq!(resolution["strategy"], "last_write_wins");
    assert_eq!(resolution["winner_id"], json!(rival));
    assert_eq!(resolution["resolved_by"], "system");
    assert_eq!(resolution["epoch_resolved"], json!(reply.epoch));
    assert!(text(&resolution["rationale"]).contains("superseded"));
    assert_eq!((stage.status(&old), stage.status(&rival)), (Superseded, Active));
    assert_eq!(stage.status(&reply.unit_id()), Active);
}

#[test]
fn a_contested_unit_that_is_retracted_loses_its_conflict() {
    let mut stage = Stage::with_agents(&["ada"]);
    let old = stage.record("ada", "old");
    let rival = stage.relate("ada", &[["contradicts", &old]]).unit_id();
    stage.give_up("ada", "RETRACT", &rival).ok();
    let conflict = only(&mut stage);
    assert_eq!(
        (&conflict["status"], &conflict["resolution"]["winner_id"]),
        (&json!("resolved"), &json!(old))
    );
    assert_eq!(conflict["resolution"]["strategy"], "authority");
    assert!(text(&conflict["resolution"]["rationale"]).contains("retracted"));
    assert_eq!((stage.status(&old), stage.status(&rival)), (Active, Retracted));
}

#[test]
fn a_unit_stays_contested_until_its_last_conflict_is_resolved() {
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.record("ada", "unit");
    let one = stage.relate("ada", &[["contradicts", &unit]]).unit_id();
    let two = stage.relate("ada", &[["contradicts", &unit]]).unit_id();
    stage.give_up("ada", "RETRACT", &one).ok();
    assert_eq!((stage.status(&unit), stage.status(&two)), (Contested, Contested));
    stage.give_up("ada", "RETRACT", &two).ok();
    assert_eq!(stage.status(&unit), Active);
}

#[test]
fn contradicting_and_superseding_a_unit_makes_a_conflict_and_settles_it_at_once() {
    for relations in [["supersedes", "contradicts"], ["contradicts", "supersedes"]] {
        let mut stage = Stage::with_agents(&["ada"]);
        let old = stage.record("ada", "old");
        let kept = stage.kept.len();
        let reply = stage.relate("ada", &relations.map(|kind| [kind, &*old]));
        let new = format!("mem-{}", reply.epoch);
        assert_eq!(reply.ok()["conflicts_detected"], json!([new.replace("mem", "conflict")]));
        assert_eq!(stage.kept.len(), kept + 1);
        let conflict = only(&mut stage);
        assert_eq!(conflict["status"], "resolved");
        assert_eq!(conflict["resolution"]["winner_id"], json!(new));
        assert_eq!(conflict["resolution"]["resolved_by"], "system");
        assert_eq!((stage.status(&old), stage.status(&new)), (Superseded, Active));
    }
}

#[test]
fn contradicting_and_superseding_one_unit_of_a_chain_meets_its_latest() {
    let mut stage = Stage::with_agents(&["ada"]);
    let first = stage.record("ada", "1");
    let second = stage.relate("ada", &[["supersedes", &first]]).unit_id();
    let third = stage.relate("ada", &[["supersedes", &first], ["contradicts", &second]]).unit_id();
    let conflict = only(&mut stage);
    assert_eq!((&conflict["unit_a"], &conflict["unit_b"]), (&json!(second), &json!(third)));
    assert_eq!(conflict["status"], "resolved");
    assert_eq!((stage.status(&second), stage.status(&third)), (Superseded, Active));
}

#[test]
fn superseding_both_sides_of_a_conflict_resolves_it_once() {
    let mut stage = Stage::with_agents(&["ada"]);
    let one = stage.record("ada", "one");
    let two = stage.relate("ada", &[["contradicts", &one]]).unit_id();
    let both = stage.relate("ada", &[["supersedes", &one], ["supersedes", &two]]).unit_id();
    assert_eq!(only(&mut stage)["status"], "resolved");
    assert_eq!(
        [stage.status(&one), stage.status(&two), stage.status(&both)],
        [Superseded, Superseded, Active]
    );
    let entry = Entry::from_json(stage.kept.values().last().unwrap()).unwrap();
    assert_eq!(entry.events.iter().filter(|event| event.event_type() == "MERGE").count(), 1);
}

#[test]
fn a_unit_that_settles_one_conflict_may_open_another() {
    let mut stage = Stage::with_agents(&["ada"]);
    let one = stage.record("ada", "one");
    let two = stage.relate("ada", &[["contradicts", &one]]).unit_id();
    let new = stage.relate("ada", &[["supersedes", &one], ["contradicts", &two]]).unit_id();
    assert_eq!(
        [stage.status(&one), stage.status(&two), stage.status(&new)],
        [Superseded, Contested, Contested]
    );
    let statuses: Vec<_> = stage.conflicts("ada").iter().map(|conflict| text(&conflict["status"])).collect();
    assert_eq!(statuses, ["resolved", "detected"]);
}

#[test]
fn a_contested_unit_can_be_contradicted_again_and_stays_in_attune() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.record("ada", "unit");
    let one = stage.relate("ada", &[["contradicts", &unit]]).unit_id();
    let two = stage.relate("ada", &[["contradicts", &one]]).unit_id();
    let mut all = vec![unit, one, two];
    all.sort();
    assert_eq!(stage.attuned_ids("bob", json!({})), all);
}

#[test]
fn a_unit_tells_its_conflicts_and_its_inbound_relations() {
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.record("ada", "unit");
    let reply = stage.relate("ada", &[["contradicts", &unit]]);
    let shown = stage.filled().unit_shown(&unit, None, &stage.policy).unwrap().unwrap();
    assert_eq!(shown["conflicts"], json!([format!("conflict-{}", reply.epoch)]));
    let inbound = json!([{ "type": "contradicts", "source_id": reply.unit_id(), "description": null }]);
    assert_eq!(shown["inbound_relations"], inbound);
    let listed = stage.state.world.conflicts_shown(&[]);
    assert_eq!(listed["conflicts"].as_array().unwrap().len(), 1);
}
