//! COMPACT, strategy `purge`: what is gone and what is left.

use super::compact::{strategy, three};
use super::*;

#[test]
fn purged_units_are_gone_and_a_tombstone_is_left() {
    let (mut stage, [a, b, c]) = three();
    let before = stage.kept.clone();
    let purge =
        with(strategy("purge", json!({ "status": ["superseded"] })), json!({ "reason": "it was a test" }));
    let reply = stage.send("bob", "COMPACT", purge).ok();
    assert_eq!((&reply["units_affected"], &reply["synthesis_units_created"]), (&json!(1), &json!(0)));
    assert!(
        reply["storage_reclaimed_bytes"].as_u64().unwrap() >= "The market grows at 23 % a year.".len() as u64
    );
    assert_eq!(stage.shown(&a), None);
    let everything = json!({ "include_own": true, "include_archived": true });
    assert_eq!(stage.attuned_ids("ada", everything), [b.clone(), c.clone()]);
    let listed =
        stage.filled().units_shown(&UnitFilter { limit: 10, ..UnitFilter::default() }, None, &stage.policy);
    let listed = listed.unwrap();
    assert_eq!(list(&listed["units"]).len(), 2);
    assert_eq!(stage.state.world.status()["units"]["superseded"], 0);
    for kind in ["supersedes", "contradicts"] {
        // The chain goes on over it; so does what its own id meant.
        let unknown = stage.relate("ada", &[[kind, &a]]).refusal();
        assert_eq!(unknown.code, ErrorCode::UnitNotFound, "{kind}");
    }
    for operation in ["RETRACT", "COMMIT", "DISCARD"] {
        assert_eq!(stage.give_up("ada", operation, &a).code(), ErrorCode::UnitNotFound);
    }
    let told = stage.replay("ada", ["memory_unit", &a], "detailed").ok();
    let tombstone = list(&told["timeline"]).pop().unwrap();
    assert_eq!(tombstone["event_type"], "PURGE");
    assert_eq!(tombstone["description"], json!(format!("Purged {a}: it was a test")));
    assert_eq!((&tombstone["agent_id"], &tombstone["memory_unit_id"]), (&json!("bob"), &json!(a)));
    let line: Value = serde_json::from_str(&lines_of(stage.kept.values().last().unwrap())[0]).unwrap();
    assert_eq!((&line["memory_unit_id"], &line["reason"]), (&json!(a), &json!("it was a test")));
    assert_eq!(line["deleted_at"], line["timestamp"]);
    assert!(before.iter().all(|(epoch, text)| stage.kept[epoch] == *text), "the log keeps every byte");
    assert!(stage.rebuilt().world == stage.state.world);
    invariants::check(&stage.state.world);
}

#[test]
fn a_purge_without_a_reason_says_what_it_deleted() {
    let (mut stage, [a, ..]) = three();
    stage.touched("purge", json!({ "status": ["superseded"], "max_age_epochs": 1 }));
    let told = stage.replay("ada", ["memory_unit", &a], "detailed").ok();
    let said = format!("Purged {a}: units older than 1 epoch, with status superseded (COMPACT purge)");
    assert_eq!(list(&told["timeline"]).pop().unwrap()["description"], json!(said));
}

#[test]
fn a_purged_middle_does_not_cut_a_chain_and_a_purged_end_ends_it() {
    let mut stage = Stage::with_agents(&["ada"]);
    let a = stage.record("ada", "first");
    let b = stage
        .send("ada", "RECORD", with(related("second", &[["supersedes", &a]]), json!({ "type": "decision" })))
        .unit_id();
    let c = stage.relate("ada", &[["supersedes", &b]]).unit_id();
    assert_eq!(stage.touched("purge", json!({ "types": ["decision"] })), 1);
    let d = stage.relate("ada", &[["supersedes", &a]]).unit_id();
    assert_eq!(stage.status(&c), UnitStatus::Superseded, "{a} stands for the chain, whose latest it was");
    let told = told(&stage.replay("ada", ["memory_unit", &a], "detailed").ok());
    let epoch = |id: &str| id.strip_prefix("mem-").unwrap().to_owned();
    for id in [&a, &b, &c, &d] {
        assert!(told.contains(&format!("{} RECORD ada", epoch(id))), "{id} is in {told:?}");
    }
    assert_eq!(stage.touched("purge", json!({ "status": ["active"] })), 1, "{d}");
    assert_eq!(stage.relate("ada", &[["supersedes", &a]]).code(), ErrorCode::UnitNotFound);
    // Other relations may name what does not exist.
    stage.relate("ada", &[["supports", &d]]).ok();
    invariants::check(&stage.state.world);
}

#[test]
fn a_conflict_that_names_a_purged_unit_is_no_longer_listed() {
    let (mut stage, dispute) = Dispute::staged();
    stage.merge("kim", &dispute.conflict, "confidence_weighted", json!({})).ok();
    let unit_conflicts = |stage: &Stage, unit: &str| list(&stage.shown(unit).unwrap()["conflicts"]).len();
    assert_eq!((stage.conflicts("kim").len(), unit_conflicts(&stage, &dispute.b)), (1, 1));
    assert_eq!(stage.touched("purge", json!({ "status": ["superseded"] })), 1);
    assert_eq!((stage.conflicts("kim").len(), unit_conflicts(&stage, &dispute.b)), (0, 0));
    let all = [crate::protocol::ConflictStatus::Resolved];
    assert_eq!(stage.state.world.conflicts_shown(&all)["conflicts"], json!([]));
    let again = stage.merge("kim", &dispute.conflict, "last_write_wins", json!({}));
    assert_eq!(again.code(), ErrorCode::ConflictNotFound);
    let told = told(&stage.replay("kim", ["conflict", &dispute.conflict], "full_trace").ok());
    assert_eq!(told.len(), 4, "the log still tells of it: {told:?}");
}

#[test]
fn what_related_to_a_purged_unit_is_shown_without_it() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let a = stage.record("ada", "target");
    let source = stage
        .send("bob", "RECORD", with(related("source", &[["supports", &a]]), json!({ "type": "decision" })))
        .unit_id();
    assert_eq!(list(&stage.shown(&a).unwrap()["inbound_relations"]).len(), 1);
    stage.touched("purge", json!({ "types": ["decision"] }));
    assert_eq!(stage.shown(&a).unwrap()["inbound_relations"], json!([]));
    let rival = stage.relate("bob", &[["contradicts", &a], ["supports", &source]]).unit_id();
    let merged = stage.merge("bob", &rival.replace("mem", "conflict"), "evidence_count", json!({})).ok();
    assert_eq!(merged["status"], "escalated", "no support is left on either side");
    stage.attune("ada", json!({ "include_own": true }));
}

#[test]
fn a_purge_that_would_leave_nothing_of_many_units_wants_confirmation() {
    let mut stage = Stage::with_agents(&["ada"]);
    let few = crate::limits::PURGE_UNCONFIRMED_MAX;
    for number in 0..=few {
        stage.record("ada", &number.to_string());
    }
    let all = strategy("purge", json!({ "max_age_epochs": 0 }));
    let refusal = stage.send("ada", "COMPACT", all.clone()).refusal();
    assert_eq!((refusal.code, &refusal.details["key"]), (ErrorCode::InvalidMessage, &json!("confirm")));
    assert_eq!(refusal.details["units_matched"], json!(few + 1));
    assert!(refusal.message.contains(&format!("delete {} units", few + 1)));
    assert_eq!(stage.state.world.count(UnitStatus::Active), few as u64 + 1);
    // One that leaves something needs none.
    let decision = stage.typed("ada", "decision");
    let findings = strategy("purge", json!({ "types": ["finding"] }));
    assert_eq!(stage.send("ada", "COMPACT", findings).ok()["units_affected"], json!(few + 1));
    assert_eq!(stage.send("ada", "COMPACT", all.clone()).ok()["units_affected"], 1, "{decision}");
    for number in 0..=few {
        stage.record("ada", &number.to_string());
    }
    let confirmed = with(all, json!({ "confirm": true }));
    assert_eq!(stage.send("ada", "COMPACT", confirmed).ok()["units_affected"], json!(few + 1));
}

/// Nothing that a purged unit said is told any more: not by the notices of its own past, not by a conflict, not by an
/// earlier state; and what is left keeps its place.
#[test]
fn nobody_is_told_what_a_purged_unit_said() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let secret = stage.record("ada", "The zebra grows by 23 % a year.");
    let said = stage.state.world.last_epoch;
    let other = stage.relate("bob", &[["contradicts", &secret]]).unit_id();
    let quarrel = stage.state.world.last_epoch;
    let entries: Vec<Entry> =
        [said, quarrel].map(|epoch| Entry::from_json(&stage.kept[&epoch]).unwrap()).into();
    let before: Vec<Notices> =
        entries.iter().map(|entry| notices(&stage.state.world, entry).unwrap()).collect();
    assert_eq!(before.iter().map(|notices| notices.told.len()).collect::<Vec<_>>(), [1, 4]);
    stage.send("ada", "RETRACT", json!({ "memory_unit_id": secret, "reason": "private" })).ok();
    assert_eq!(stage.touched("purge", json!({ "status": ["retracted"] })), 1);
    let world = &stage.state.world;
    let after: Vec<Notices> = entries.iter().map(|entry| notices(world, entry).unwrap()).collect();
    let places = |all: &[Notices]| all.iter().map(|notices| notices.places).collect::<Vec<_>>();
    assert_eq!(places(&after), places(&before));
    assert!(after[0].told.is_empty());
    let names: Vec<_> = after[1].told.iter().map(|notice| notice.event.name()).collect();
    assert_eq!(names, ["memory.recorded", "memory.contested"], "of {other} alone");
    assert!(after.iter().flat_map(|all| &all.told).all(|notice| !notice.summary.contains("zebra")));
    assert!(world.conflicts.iter().all(|conflict| conflict.description.is_empty()));
    assert_eq!(world.status()["conflicts"], 0);
    // A state of before, as the past is shown.
    let mut past = stage.rebuilt_as_of(quarrel).world;
    past.forget(world);
    assert!(past.find(secret.parse().unwrap()).is_none() && past.listed_conflicts().next().is_none());
    assert!(past.unresolved.is_empty());
    assert!(stage.rebuilt().world == stage.state.world);
}

#[test]
fn no_past_shows_a_draft_that_was_discarded_since() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let draft = stage.draft("ada", "a secret plan");
    let then = stage.state.world.last_epoch;
    stage.give_up("ada", "DISCARD", &draft).ok();
    let mut past = stage.rebuilt_as_of(then).world;
    let status = |world: &World| world.slot(world.find(draft.parse().unwrap()).unwrap()).status;
    assert_eq!(status(&past), UnitStatus::Draft);
    past.forget(&stage.state.world);
    assert_eq!(status(&past), UnitStatus::Retracted);
    invariants::check(&past);
}
