//! REPLAY: how much is too much, and the timeline held against a naive reading of the whole log.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::random::{Step, stage_after, step};
use super::*;
use crate::protocol::{Mode, ReplayDepth, ReplayRequest, ReplayTarget, Unit, UnitId};

/// A session of nine events, of which six are key and one is a turning point.
fn busy_session(events_limit: usize) -> Stage {
    let mut stage = Stage::with_agents(&["bob"]);
    let hello = saying("ada", "REGISTER", json!({ "id": "ada", "role": "r" })).session("s").over(1);
    stage.say(hello).ok();
    for _ in 0..5 {
        stage.say(saying("ada", "RECORD", finding("x")).session("s")).ok();
    }
    stage.say(saying("ada", "RECORD", with(finding("y"), json!({ "type": "decision" }))).session("s")).ok();
    stage.say(saying("ada", "DEREGISTER", json!({ "agent_id": "ada" })).session("s")).ok();
    stage.policy.limits.replay_events = events_limit;
    stage
}

#[test]
fn a_timeline_is_too_large_exactly_beyond_the_bound_on_what_the_depth_lists() {
    for (depth, listed) in [("full_trace", 9), ("detailed", 6), ("summary", 6)] {
        let replayed = busy_session(listed).replay("bob", ["session", "s"], depth).ok();
        assert_eq!((told(&replayed).len(), &replayed["total_events"]), (listed, &json!(9)), "{depth}");
        let refused = busy_session(listed - 1).replay("bob", ["session", "s"], depth).refusal();
        assert_eq!(refused.code, ErrorCode::ReplayTooLarge, "{depth}");
        assert_eq!(refused.details["limit_events"], json!(listed - 1));
    }
}

/// A log that counts how many of its entries are asked for.
struct Counted<'a>(Kept<'a>, usize);

impl Chronicle for Counted<'_> {
    fn entry(&mut self, epoch: u64) -> Result<Option<Entry>, String> {
        self.1 += 1;
        self.0.entry(epoch)
    }
}

/// The entry of a COMPACT may be about a million units: a chain of some of them reads it once.
#[test]
fn what_archived_a_whole_chain_is_read_once() {
    let mut stage = Stage::with_agents(&["ada"]);
    let mut last = stage.record("ada", "the first");
    for _ in 0..19 {
        last = stage.send("ada", "RECORD", related("the next", &[["depends_on", &last]])).unit_id();
    }
    stage.compact("ada", "archive", json!({}));
    let request = ReplayRequest {
        target_type: ReplayTarget::MemoryUnit,
        target_id: last.as_str().into(),
        depth: ReplayDepth::Detailed,
        as_of_epoch: None,
    };
    let mut log = Counted(Kept(&stage.kept), 0);
    let told = replay(&stage.state.world, &mut log, &stage.policy, Some(0), &request).unwrap();
    assert_eq!((told.timeline.len(), log.1), (40, 21), "each unit's recording and archiving");
}

#[test]
fn what_is_suggested_after_too_large_is_another_depth() {
    let refused = busy_session(1).replay("bob", ["session", "s"], "full_trace").refusal();
    assert!(
        refused.suggested_action.contains("\"detailed\"") && refused.suggested_action.contains("\"summary\"")
    );
    let refused = busy_session(1).replay("bob", ["session", "s"], "detailed").refusal();
    assert!(refused.suggested_action.contains("\"summary\""));
    let refused = busy_session(1).replay("bob", ["session", "s"], "summary").refusal();
    assert!(refused.suggested_action.contains("smaller"));
}

#[test]
fn a_timeline_of_too_many_bytes_is_too_large() {
    let mut stage = busy_session(100);
    stage.policy.limits.replay_bytes = 500;
    assert_eq!(stage.replay("bob", ["session", "s"], "full_trace").code(), ErrorCode::ReplayTooLarge);
}

#[test]
fn the_summary_of_a_chain_of_any_length_lists_its_first_and_last_turns() {
    let mut stage = Stage::with_agents(&["ada"]);
    let first = stage.record("ada", "x");
    let most = crate::limits::REPLAY_SUMMARY_EVENTS_MAX;
    for _ in 0..most + 200 {
        stage.relate("ada", &[["supersedes", &first]]).ok();
    }
    stage.policy.limits.replay_events = most;
    assert_eq!(stage.replay("ada", ["memory_unit", &first], "detailed").code(), ErrorCode::ReplayTooLarge);
    let replayed = stage.replay("ada", ["memory_unit", &first], "summary").ok();
    assert_eq!((told(&replayed).len(), &replayed["total_events"]), (most, &json!(most + 201)));
    assert!(text(&replayed["summary"]).contains("first 500 and the last 500"), "{}", replayed["summary"]);
}

#[test]
fn the_summary_of_a_long_story_lists_its_turning_points_alone() {
    let mut stage = Stage::with_agents(&["ada"]);
    let of_task = |kind: &str| {
        with(finding("x"), json!({ "type": kind, "intent": { "purpose": "p", "task_id": "t" } }))
    };
    for _ in 0..crate::limits::REPLAY_SUMMARY_EVENTS_MAX {
        stage.send("ada", "RECORD", of_task("finding")).ok();
    }
    assert_eq!(told(&stage.replay("ada", ["task", "t"], "summary").ok()).len(), 1000);
    stage.send("ada", "RECORD", of_task("decision")).ok();
    let replayed = stage.replay("ada", ["task", "t"], "summary").ok();
    assert_eq!((told(&replayed).len(), &replayed["total_events"]), (1, &json!(1001)));
    assert_eq!(told(&stage.replay("ada", ["task", "t"], "detailed").ok()).len(), 1001);
}

#[test]
fn a_log_that_cannot_be_read_is_an_error_not_a_partial_timeline() {
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.record("ada", "x");
    let epoch = stage.slot(&unit).epoch;
    stage.kept.insert(epoch, "{".to_owned());
    assert_eq!(stage.replay("ada", ["memory_unit", &unit], "full_trace").code(), ErrorCode::InternalError);
}

/// The committed form of every unit, and what each replaced, as the whole log tells it.
fn committed(entries: &[Entry]) -> Vec<(Unit, Vec<UnitId>)> {
    let events = entries.iter().flat_map(|entry| &entry.events);
    events
        .filter_map(|event| match event {
            Event::Recorded { unit, supersedes } | Event::Committed { unit, supersedes } => {
                (unit.mode == Mode::Committed).then(|| (Unit::clone(unit), supersedes.clone()))
            }
            _ => None,
        })
        .collect()
}

/// Which unit took the place of which: by a RECORD or a COMMIT, or as the winner of a MERGE.
fn successions(entries: &[Entry]) -> Vec<[UnitId; 2]> {
    let events = entries.iter().flat_map(|entry| &entry.events);
    let of = |event: &Event| match event {
        Event::Recorded { unit, supersedes } | Event::Committed { unit, supersedes } => {
            (Some(unit.id), supersedes.clone())
        }
        Event::Merged { resolution, superseded, .. } => (resolution.winner_id, superseded.clone()),
        _ => (None, Vec::new()),
    };
    let pairs = events.map(of).filter_map(|(new, olds)| new.map(|new| (new, olds)));
    pairs.flat_map(|(new, olds)| olds.into_iter().map(move |old| [new, old])).collect()
}

/// The supersession chain of a unit, and all that its members relate to.
fn reached(units: &[(Unit, Vec<UnitId>)], edges: &[[UnitId; 2]], from: UnitId) -> BTreeSet<UnitId> {
    let mut reached = BTreeSet::from([from]);
    grow(&mut reached, |reached| {
        let touching = edges.iter().copied().filter(|edge| edge.iter().any(|end| reached.contains(end)));
        touching.flatten().collect()
    });
    grow(&mut reached, |reached| {
        let inside = units.iter().filter(|(unit, _)| reached.contains(&unit.id));
        let targets = inside.flat_map(|(unit, _)| &unit.relations).filter_map(|r| r.target_id.parse().ok());
        targets.filter(|target| units.iter().any(|(unit, _)| unit.id == *target)).collect()
    });
    reached
}

fn grow(set: &mut BTreeSet<UnitId>, more: impl Fn(&BTreeSet<UnitId>) -> Vec<UnitId>) {
    loop {
        let before = set.len();
        let found = more(set);
        set.extend(found);
        if set.len() == before {
            return;
        }
    }
}

fn expected(entries: &[Entry], units: &BTreeSet<UnitId>) -> Vec<(u64, &'static str)> {
    let mut conflicts = BTreeSet::new();
    let mut timeline = Vec::new();
    for entry in entries {
        for event in &entry.events {
            let ours = match event {
                Event::Recorded { unit, .. } | Event::Committed { unit, .. } => units.contains(&unit.id),
                Event::Retracted { memory_unit_id, .. }
                | Event::Unenriched { memory_unit_id }
                | Event::Enriched { memory_unit_id } => units.contains(memory_unit_id),
                Event::ConflictCreated { conflict, .. } => {
                    let ours = [conflict.unit_a, conflict.unit_b].iter().any(|unit| units.contains(unit));
                    ours && conflicts.insert(conflict.id)
                }
                Event::Merged { conflict_id, .. }
                | Event::Voted { conflict_id, .. }
                | Event::Escalated { conflict_id, .. } => conflicts.contains(conflict_id),
                Event::Archived { units: put_away, .. } | Event::Purged { units: put_away, .. } => {
                    let ours = put_away.as_slice().iter().filter(|unit| units.contains(unit));
                    timeline.extend(ours.map(|_| (entry.epoch, event.event_type())));
                    false
                }
                _ => false,
            };
            if ours {
                timeline.push((entry.epoch, event.event_type()));
            }
        }
    }
    timeline
}

fn subject(event: &Event) -> Option<UnitId> {
    match event {
        Event::Recorded { unit, .. } | Event::Committed { unit, .. } => Some(unit.id),
        Event::Retracted { memory_unit_id, .. }
        | Event::Discarded { memory_unit_id, .. }
        | Event::Unenriched { memory_unit_id }
        | Event::Enriched { memory_unit_id }
        | Event::DetectionDeferred { memory_unit_id, .. } => Some(*memory_unit_id),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_full_trace_is_what_a_reading_of_the_whole_log_finds(steps in prop::collection::vec(step(), 20..80)) {
        let steps: Vec<Step> = steps;
        let mut stage = stage_after(&steps);
        stage.join("auditor");
        let entries: Vec<_> = stage.kept.values().map(|text| Entry::from_json(text).unwrap()).collect();
        let (units, edges) = (committed(&entries), successions(&entries));
        for (unit, _) in &units {
            let replayed = stage.replay("auditor", ["memory_unit", &unit.id.to_string()], "full_trace").ok();
            let timeline: Vec<_> = list(&replayed["timeline"])
                .iter()
                .map(|event| (event["epoch"].as_u64().unwrap(), text(&event["event_type"])))
                .collect();
            let expected = expected(&entries, &reached(&units, &edges, unit.id));
            let expected: Vec<_> = expected.into_iter().map(|(epoch, kind)| (epoch, kind.to_owned())).collect();
            prop_assert_eq!(timeline, expected, "from {}", unit.id);
        }
    }

    #[test]
    fn tasks_and_sessions_are_what_a_reading_of_the_whole_log_finds(
        steps in prop::collection::vec(step(), 20..80),
    ) {
        let mut stage = stage_after(&steps);
        stage.join("auditor");
        let entries: Vec<_> = stage.kept.values().map(|text| Entry::from_json(text).unwrap()).collect();
        let public: BTreeMap<_, _> =
            committed(&entries).into_iter().map(|(unit, _)| (unit.id, unit.intent.task_id)).collect();
        for (kind, target) in [("session", "s-1"), ("session", "s-2"), ("task", "t-1"), ("task", "t-2")] {
            let mut expected = Vec::new();
            for entry in &entries {
                for event in &entry.events {
                    let about: Vec<Option<UnitId>> = match event.units() {
                        Some(units) => units.as_slice().iter().copied().map(Some).collect(),
                        None => vec![subject(event)],
                    };
                    for about in about {
                        let shown = about.is_none_or(|unit| public.contains_key(&unit));
                        let task = about.and_then(|unit| public.get(&unit)).and_then(Option::as_deref);
                        let carried = if kind == "task" { task } else { entry.session_id.as_deref() };
                        if shown && carried == Some(target) {
                            expected.push(format!("{} {}", entry.epoch, event.event_type()));
                        }
                    }
                }
            }
            let replayed = stage.replay("auditor", [kind, target], "full_trace").outcome;
            let found: Vec<_> = replayed
                .map(|replayed| list(&replayed["timeline"]))
                .unwrap_or_default()
                .iter()
                .map(|event| format!("{} {}", event["epoch"], text(&event["event_type"])))
                .collect();
            prop_assert_eq!(found, expected, "{} {}", kind, target);
        }
    }

    #[test]
    fn a_replay_up_to_an_epoch_is_the_replay_of_that_time(
        steps in prop::collection::vec(step(), 20..60), at in 3..60u64,
    ) {
        let stage = stage_after(&steps);
        let (now, then) = (stage.state.world.clone(), stage.rebuilt_as_of(at).world);
        let mut targets: Vec<_> =
            now.units.iter().map(|slot| (ReplayTarget::MemoryUnit, slot.id.to_string())).collect();
        targets.extend(now.conflicts.iter().map(|made| (ReplayTarget::Conflict, made.id.to_string())));
        targets.extend(["s-1", "s-2"].map(|id| (ReplayTarget::Session, id.to_owned())));
        targets.extend(["t-1", "t-2"].map(|id| (ReplayTarget::Task, id.to_owned())));
        for (target_type, target_id) in targets {
            for asker in 0..3 {
                let request = |as_of_epoch| ReplayRequest {
                    target_type, target_id: target_id.as_str().into(), depth: ReplayDepth::FullTrace, as_of_epoch,
                };
                let told = |world: &World, as_of| {
                    replay(world, &mut Kept(&stage.kept), &stage.policy, Some(asker), &request(as_of))
                        .map_err(|refusal| refusal.code)
                };
                prop_assert_eq!(told(&now, Some(at)), told(&then, None), "{} by {}", &target_id, asker);
            }
        }
    }
}
