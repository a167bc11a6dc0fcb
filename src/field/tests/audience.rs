//! Who is told what (sections 7 and 12): exact notices and their order, who hears them, who must act.

use serde_json::json;

use super::random::step;
use super::*;
use crate::protocol::{Conflict, ConflictStatus, EventName, EventSet, Mode, SYSTEM, Subscription};
use proptest::prelude::*;

impl Stage {
    /// The notices of the entry at an epoch, as of now.
    fn notices(&self, epoch: u64) -> Vec<Notice> {
        all_notices(&self.filled(), &Entry::from_json(&self.kept[&epoch]).unwrap())
    }

    /// What the last operation gave notice of, as `"<event> <about>"`.
    fn heard(&self) -> Vec<String> {
        let (epoch, _) = self.kept.last_key_value().expect("an entry");
        let notices = self.notices(*epoch);
        let cursors: Vec<_> = notices.iter().map(|notice| notice.cursor.to_string()).collect();
        let expected: Vec<_> = (0..notices.len()).map(|at| format!("{epoch}.{at}")).collect();
        assert_eq!(cursors, expected, "each its own place, in order");
        notices.iter().map(|notice| format!("{} {}", notice.event, about(notice))).collect()
    }

    /// Who of these listens, with every event asked for, and hears the notices of the last operation.
    fn audience(&self, agents: &[&str]) -> Vec<String> {
        let (epoch, _) = self.kept.last_key_value().expect("an entry");
        let mut told = Vec::new();
        for notice in &self.notices(*epoch) {
            for agent in agents.iter().filter(|agent| listener(agent).hears(notice)) {
                let must = if listener(agent).must_act(notice, || true) { "!" } else { "" };
                told.push(format!("{agent}{must} {}", notice.event));
            }
        }
        told
    }
}

fn about(notice: &Notice) -> String {
    match &notice.subject {
        Subject::Unit { unit, status, .. } => format!("{} {status}", unit.id),
        Subject::Conflict { id, .. } => id.to_string(),
        Subject::Agent(id) => id.to_string(),
    }
}

fn subscription(events: &[EventName]) -> std::sync::Arc<Subscription> {
    let events = events.to_vec();
    Subscription { id: "s".into(), events, min_relevance: 0.0, debounce_ms: 0, include_unit: false }.into()
}

fn listener(agent: &str) -> Listener {
    Listener::new(agent.into(), subscription(EventName::ALL), 0)
}

#[test]
fn agents_come_and_go() {
    let mut stage = Stage::with_agents(&["ada"]);
    assert_eq!(stage.heard(), ["agent.joined ada"]);
    stage.say(saying("bob", "REGISTER", json!({ "id": "bob", "role": "r" })).over(1)).ok();
    assert_eq!(stage.heard(), ["agent.joined bob"], "that it holds a connection is no news");
    stage.drop_connection(1);
    stage.send("bob", "REGISTER", json!({ "id": "bob", "role": "r" })).ok();
    assert_eq!(stage.heard(), [""; 0], "who comes back in time never left");
    stage.wait(crate::limits::GRACE_MS);
    assert_eq!(stage.heard(), ["agent.failed bob"]);
    assert_eq!(stage.audience(&["ada", "bob"]), ["ada agent.failed", "bob agent.failed"]);
    stage.send("bob", "REGISTER", json!({ "id": "bob", "role": "r" })).ok();
    assert_eq!(stage.heard(), ["agent.joined bob"]);
    assert_eq!(stage.audience(&["ada", "bob"]), ["ada agent.joined"], "one's own doing is no news");
    stage.send("ada", "DEREGISTER", json!({ "agent_id": "bob" })).ok();
    assert_eq!(stage.heard(), ["agent.left bob"]);
    assert_eq!(stage.audience(&["ada", "bob", "eve"]), ["bob agent.left", "eve agent.left"]);
    stage.send("ada", "DEREGISTER", json!({ "agent_id": "bob" })).ok();
    assert_eq!(stage.heard(), [""; 0], "there was nobody to leave");
    stage
        .send(
            "ada",
            "SUBSCRIBE",
            json!({ "action": "subscribe", "subscription": { "events": ["agent.left"] } }),
        )
        .ok();
    assert_eq!(stage.heard(), [""; 0]);
}

#[test]
fn a_record_and_what_it_supersedes() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let (one, two) = (stage.record("ada", "x"), stage.record("ada", "y"));
    assert_eq!(stage.heard(), [format!("memory.recorded {two} active")]);
    assert_eq!(stage.audience(&["ada", "bob"]), ["bob memory.recorded"]);
    let new = stage.relate("bob", &[["supersedes", &two], ["informs", &one], ["supersedes", &one]]).unit_id();
    let expected = [
        format!("memory.recorded {new} active"),
        format!("memory.superseded {two} superseded"),
        format!("memory.superseded {one} superseded"),
    ];
    assert_eq!(stage.heard(), expected);
    let told = ["ada memory.recorded", "ada memory.superseded", "ada memory.superseded"];
    assert_eq!(stage.audience(&["ada", "bob"]), told);
}

#[test]
fn a_contradiction_and_each_unit_that_turns_contested_once() {
    let mut stage = Stage::with_agents(&["ada", "bob", "eve"]);
    let (one, two) = (stage.record("ada", "x"), stage.record("eve", "y"));
    let new = stage.relate("bob", &[["contradicts", &one], ["contradicts", &two]]).unit_id();
    let epoch = stage.state.clock;
    let expected = [
        format!("memory.recorded {new} contested"),
        format!("conflict.detected conflict-{epoch}"),
        format!("conflict.detected conflict-{epoch}.1"),
        format!("memory.contested {one} contested"),
        format!("memory.contested {new} contested"),
        format!("memory.contested {two} contested"),
    ];
    assert_eq!(stage.heard(), expected);
    let to = |agent: &str| stage.audience(&[agent]);
    // The sender hears of the conflicts on its own unit, and of nothing else that it did.
    assert_eq!(to("bob"), ["bob! conflict.detected", "bob! conflict.detected"]);
    let to_ada = [
        "ada memory.recorded",
        "ada! conflict.detected",
        "ada conflict.detected",
        "ada! memory.contested",
        "ada memory.contested",
        "ada memory.contested",
    ];
    assert_eq!(to("ada"), to_ada, "it must act where its own unit is in question");
    // A second contradiction turns only the new unit contested.
    let third = stage.relate("eve", &[["contradicts", &one]]).unit_id();
    let epoch = stage.state.clock;
    let expected = [
        format!("memory.recorded {third} contested"),
        format!("conflict.detected conflict-{epoch}"),
        format!("memory.contested {third} contested"),
    ];
    assert_eq!(stage.heard(), expected);
}

#[test]
fn superseding_and_contradicting_at_once() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let one = stage.record("ada", "x");
    let new = stage.relate("bob", &[["contradicts", &one], ["supersedes", &one]]).unit_id();
    let epoch = stage.state.clock;
    let expected = [
        format!("memory.recorded {new} active"),
        format!("memory.superseded {one} superseded"),
        format!("conflict.detected conflict-{epoch}"),
        format!("conflict.resolved conflict-{epoch}"),
    ];
    assert_eq!(stage.heard(), expected, "made and at once resolved: nobody is contested");
    // Superseding one side of an open conflict settles it for the other.
    let rival = stage.relate("ada", &[["contradicts", &new]]).unit_id();
    let conflict = format!("conflict-{}", stage.state.clock);
    let newest = stage.relate("bob", &[["supersedes", &new]]).unit_id();
    let expected = [
        format!("memory.recorded {newest} active"),
        format!("memory.superseded {new} superseded"),
        format!("conflict.resolved {conflict}"),
    ];
    assert_eq!(stage.heard(), expected, "turning back to active is no event");
    assert_eq!(stage.status(&rival), UnitStatus::Active);
    assert_eq!(stage.audience(&["bob"]), ["bob conflict.resolved"]);
}

#[test]
fn drafts_give_no_notice_until_they_are_committed() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let one = stage.record("ada", "x");
    for shared in [false, true] {
        stage.policy.shared_drafts = shared;
        let doomed = stage.draft("bob", "y");
        assert_eq!(stage.heard(), [""; 0]);
        stage.give_up("bob", "DISCARD", &doomed).ok();
        assert_eq!(stage.heard(), [""; 0]);
    }
    let payload = with(related("z", &[["supersedes", &one]]), json!({ "mode": "draft" }));
    let draft = stage.send("bob", "RECORD", payload).unit_id();
    assert_eq!(stage.heard(), [""; 0]);
    stage.commit("bob", &draft).ok();
    let expected = [format!("memory.recorded {draft} active"), format!("memory.superseded {one} superseded")];
    assert_eq!(stage.heard(), expected);
    let place = stage.notices(stage.state.clock).remove(0).cursor;
    assert_eq!(place.epoch, stage.state.clock, "the place of the COMMIT, not of the draft");
}

#[test]
fn a_retraction_resolves_each_open_conflict() {
    let mut stage = Stage::with_agents(&["ada", "bob", "eve"]);
    let (one, two) = (stage.record("ada", "x"), stage.record("eve", "y"));
    let new = stage.relate("bob", &[["contradicts", &one], ["contradicts", &two]]).unit_id();
    let made = stage.state.clock;
    stage.give_up("bob", "RETRACT", &new).ok();
    let expected = [
        format!("memory.retracted {new} retracted"),
        format!("conflict.resolved conflict-{made}"),
        format!("conflict.resolved conflict-{made}.1"),
    ];
    assert_eq!(stage.heard(), expected);
    assert_eq!(stage.audience(&["bob"]), ["bob conflict.resolved", "bob conflict.resolved"]);
    stage.give_up("bob", "RETRACT", &new).ok();
    assert_eq!(stage.heard(), [""; 0], "a second time is no news");
}

#[test]
fn only_a_question_that_is_one_s_interest_asks_for_an_answer() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    for (kind, asks) in [("question", true), ("finding", false)] {
        stage.send("ada", "RECORD", with(finding("x"), json!({ "type": kind }))).ok();
        let notice = stage.notices(stage.state.clock).remove(0);
        assert_eq!(listener("bob").must_act(&notice, || true), asks);
        assert!(!listener("bob").must_act(&notice, || false));
    }
    // A question that is superseded asks nothing any more.
    let asked = stage.send("ada", "RECORD", with(finding("x"), json!({ "type": "question" }))).unit_id();
    stage.relate("ada", &[["supersedes", &asked]]).ok();
    let notices = stage.notices(stage.state.clock);
    assert!(notices.iter().all(|notice| !listener("bob").must_act(notice, || true)));
}

#[test]
fn an_observer_hears_everything_it_asked_for_and_need_do_nothing() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let one = stage.record("ada", "x");
    stage.relate("bob", &[["contradicts", &one]]).ok();
    let notices = stage.notices(stage.state.clock);
    let all = Listener::observer(subscription(EventName::ALL));
    assert!(notices.iter().all(|notice| all.hears(notice) && !all.must_act(notice, || true)));
    let some = Listener::observer(subscription(&[EventName::MemoryContested]));
    assert_eq!(notices.iter().filter(|notice| some.hears(notice)).count(), 2);
}

#[test]
fn a_listener_passes_changes_in_their_order_and_none_twice() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let subscribe = |subscription: Value| json!({ "action": "subscribe", "subscription": subscription });
    let first = stage.send("ada", "SUBSCRIBE", subscribe(json!({ "id": "s", "events": ["agent.left"] })));
    let first = first.epoch;
    let other =
        stage.send("ada", "SUBSCRIBE", subscribe(json!({ "id": "t", "events": ["agent.left"] }))).epoch;
    let same = stage.send("ada", "SUBSCRIBE", subscribe(json!({ "id": "s" }))).epoch;
    let change = subscribe(json!({ "id": "s", "events": ["agent.joined"] }));
    let change = stage.send("ada", "SUBSCRIBE", change).epoch;
    let end = json!({ "action": "unsubscribe", "subscription": { "id": "s" } });
    let end = stage.send("ada", "SUBSCRIBE", end).epoch;
    let entry = |epoch: u64| Entry::from_json(&stage.kept[&epoch]).unwrap();
    let mut listener = Listener::new("ada".into(), subscription(&[EventName::AgentLeft]), first);
    let turns = [
        (first, Turn::None),
        (other, Turn::None),
        (same, Turn::None),
        (change, Turn::Changed),
        (end, Turn::Ended),
    ];
    for (epoch, turn) in turns {
        assert_eq!(listener.pass(&entry(epoch)), turn, "at {epoch}");
    }
    assert_eq!(listener.events(), EventSet::NONE.with(EventName::AgentJoined));
    // As known since the change, what came before says nothing.
    let mut later = Listener::new("ada".into(), subscription(&[EventName::AgentJoined]), change);
    assert_eq!(later.pass(&entry(change)), Turn::None);
    stage.send("bob", "DEREGISTER", json!({ "agent_id": "ada" })).ok();
    let left = Entry::from_json(&stage.kept[&stage.state.clock]).unwrap();
    assert_eq!(later.pass(&left), Turn::Ended);
}

/// What an entry should give notice of, read off the world before and after it: rank, name, about what.
fn differences(before: &World, after: &World, entry: &Entry) -> Vec<(u8, EventName, String)> {
    let mut all = Vec::new();
    let was = |slot: &Slot| before.find(slot.id).map(|no| (before.slot(no).status, before.slot(no).mode));
    for (no, slot) in (0..).zip(&after.units).filter(|(_, slot)| !slot.purged) {
        let (then, id) = (was(slot), format!("{} {}", slot.id, slot.status));
        if slot.mode == Mode::Committed && after.is_archived(no) && !before.is_archived(no) {
            all.push((8, EventName::MemoryArchived, id.clone()));
        }
        let committed_now = slot.mode == Mode::Committed && then.is_none_or(|(_, mode)| mode == Mode::Draft);
        if committed_now {
            all.push((1, EventName::MemoryRecorded, id.clone()));
        }
        if slot.mode == Mode::Committed && then.map(|(status, _)| status) != Some(slot.status) {
            match slot.status {
                UnitStatus::Superseded => all.push((2, EventName::MemorySuperseded, id)),
                UnitStatus::Retracted => all.push((3, EventName::MemoryRetracted, id)),
                UnitStatus::Contested => all.push((7, EventName::MemoryContested, id)),
                _ => {}
            }
        }
    }
    for (no, conflict) in (0..).zip(&after.conflicts) {
        let then = before.conflicts.get(no);
        if then.is_none() {
            all.push((4, EventName::ConflictDetected, conflict.id.to_string()));
        }
        let escalated = |conflict: &Conflict| conflict.status == ConflictStatus::Escalated;
        if escalated(conflict) && !then.is_some_and(|then| escalated(then)) {
            all.push((5, EventName::ConflictEscalated, conflict.id.to_string()));
        }
        if !conflict.is_unresolved() && then.is_none_or(|then| then.is_unresolved()) {
            all.push((6, EventName::ConflictResolved, conflict.id.to_string()));
        }
    }
    for record in after.agents.iter().filter(|record| record.is_registered()) {
        let then = before.agent_no(&record.agent.id).map(|no| before.agent(no).agent.status);
        let now = record.agent.status;
        let event = match (then.is_some_and(|then| then.is_active()), now.is_active()) {
            (false, true) => EventName::AgentJoined,
            (_, false) if then == Some(now) => continue,
            (_, false) if now.name() == "failed" => EventName::AgentFailed,
            (_, false) => EventName::AgentLeft,
            (true, true) => continue,
        };
        all.push((0, event, record.agent.id.to_string()));
    }
    assert!(entry.epoch == after.last_epoch);
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Notices are what changed between the world before and after; told at once or a year later they are the same;
    /// and they are announced without looking at the world.
    #[test]
    fn notices_are_what_changed_whenever_they_are_told(steps in prop::collection::vec(step(), 1..80)) {
        let stage = super::random::stage_after(&steps);
        let last = &stage.filled();
        let mut state = State::default();
        for text in stage.kept.values() {
            let entry = Entry::from_json(text).unwrap();
            let before = state.world.clone();
            apply(&mut state, &entry);
            let told = all_notices(&state.world, &entry);
            let later: Vec<_> = all_notices(last, &entry).iter().map(|notice| format!("{notice:?}")).collect();
            let stays = |notice: &&Notice| match &notice.subject {
                // Nothing is told of what is purged since, nor of what it was contradicted in.
                Subject::Unit { unit, .. } => last.find(unit.id).is_some(),
                Subject::Conflict { id, .. } if notice.event == EventName::ConflictDetected => {
                    last.listed_conflicts().any(|conflict| conflict.id == *id)
                }
                _ => true,
            };
            let staying: Vec<_> = told.iter().filter(stays).map(|notice| format!("{notice:?}")).collect();
            prop_assert_eq!(staying, later);
            let names: EventSet = told.iter().map(|notice| notice.event).collect();
            // Of a discarded draft that its author archives nobody is told.
            let silent = told.is_empty() && entry.operation == Some(crate::protocol::Operation::Compact);
            prop_assert!(announced(&entry) == names || silent, "{}", text);
            let ranks: Vec<_> = told.iter().map(|notice| rank(notice.event)).collect();
            prop_assert!(ranks.is_sorted(), "{:?}", ranks);
            let mut about: Vec<_> =
                told.iter().map(|notice| (rank(notice.event), notice.event, about(notice))).collect();
            about.sort();
            prop_assert_eq!(about, differences(&before, &state.world, &entry), "{}", text);
            for notice in &told {
                prop_assert!(notice.summary.chars().count() < 800 && !notice.summary.is_empty());
                prop_assert_eq!(notice.cursor.epoch, entry.epoch);
                if let Subject::Unit { unit, status, .. } = &notice.subject {
                    // What nobody else may see is never told of.
                    prop_assert!(unit.mode == Mode::Committed && *status != UnitStatus::Draft);
                }
                let own = notice.actor.as_ref();
                let told = own != SYSTEM && listener(own).hears(notice);
                let excepted =
                    [EventName::ConflictDetected, EventName::ConflictResolved].contains(&notice.event);
                let conflict_of_own = excepted && matches!(&notice.subject, Subject::Conflict { authors, .. }
                    if authors.iter().flatten().any(|author| **author == *own));
                prop_assert_eq!(told, conflict_of_own, "one's own doings: {:?}", notice);
            }
        }
    }
}

/// The order of section 12, agents first.
fn rank(event: EventName) -> u8 {
    match event {
        EventName::MemoryRecorded => 1,
        EventName::MemorySuperseded => 2,
        EventName::MemoryRetracted => 3,
        EventName::ConflictDetected => 4,
        EventName::ConflictEscalated => 5,
        EventName::ConflictResolved => 6,
        EventName::MemoryContested => 7,
        EventName::MemoryArchived => 8,
        _ => 0,
    }
}
