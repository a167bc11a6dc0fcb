//! COMPACT: every sentence of the seed, and what section 12 adds.

use super::*;
use crate::field::UnitFilter;
use crate::protocol::{Cursor, EventName, MemoryType};

pub(super) fn strategy(name: &str, filter: Value) -> Value {
    json!({ "strategy": name, "filter": filter })
}

impl Stage {
    pub(super) fn compact(&mut self, agent: &str, name: &str, filter: Value) -> Value {
        self.send(agent, "COMPACT", strategy(name, filter)).ok()
    }

    /// How many units a COMPACT touches.
    #[track_caller]
    pub(super) fn touched(&mut self, name: &str, filter: Value) -> u64 {
        self.compact("ada", name, filter)["units_affected"].as_u64().expect("a number")
    }

    fn is_archived(&self, unit: &str) -> bool {
        self.state.world.is_archived(self.unit_no(unit))
    }

    pub(super) fn typed(&mut self, agent: &str, kind: &str) -> String {
        self.send(agent, "RECORD", with(finding(kind), json!({ "type": kind }))).unit_id()
    }

    pub(super) fn shown(&self, unit: &str) -> Option<Value> {
        self.filled().unit_shown(unit, None, &self.policy).expect("all texts are there")
    }

    /// What the last entry gives notice of.
    fn last_notices(&self) -> Vec<(EventName, Cursor, String)> {
        let entry = Entry::from_json(self.kept.values().last().unwrap()).unwrap();
        let notices = all_notices(&self.filled(), &entry);
        notices.into_iter().map(|notice| (notice.event, notice.cursor, notice.summary)).collect()
    }
}

/// ada writes a finding, bob another, ada one that supersedes the first.
pub(super) fn three() -> (Stage, [String; 3]) {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let a = stage.record("ada", "The market grows at 23 % a year.");
    let b = stage.record("bob", "Berlin asks for a permit.");
    let c = stage.relate("ada", &[["supersedes", &a]]).unit_id();
    (stage, [a, b, c])
}

#[test]
fn archived_units_are_out_of_attune_unless_asked_for_and_nowhere_else() {
    let (mut stage, [a, b, c]) = three();
    let reply = stage.compact("ada", "archive", json!({ "types": ["finding"], "status": ["active"] }));
    let expected = json!({ "status": "ok", "units_affected": 2, "synthesis_units_created": 0,
        "storage_reclaimed_bytes": null });
    assert_eq!(reply, expected);
    assert!(!stage.is_archived(&a) && stage.is_archived(&b) && stage.is_archived(&c));
    assert_eq!(stage.status(&b), UnitStatus::Active, "archived is a flag beside the status");
    assert_eq!(stage.attuned_ids("ada", json!({ "include_own": true })), [""; 0]);
    let all = json!({ "include_own": true, "include_archived": true });
    assert_eq!(stage.attuned_ids("ada", all), [b.clone(), c.clone()]);
    assert_eq!(stage.attune("ada", json!({}))["context_budget"]["units_available"], 0);
    assert_eq!(stage.shown(&b).unwrap()["archived"], true);
    assert_eq!(stage.shown(&a).unwrap()["archived"], false);
    for (archived, ids) in [(Some(true), vec![&b, &c]), (Some(false), vec![&a]), (None, vec![&a, &b, &c])] {
        let filter = UnitFilter { limit: 9, archived, ..UnitFilter::default() };
        let page = stage.filled().units_shown(&filter, None, &stage.policy).unwrap();
        let listed: Vec<_> = list(&page["units"]).iter().map(|unit| text(&unit["id"])).collect();
        assert_eq!(listed.iter().collect::<Vec<_>>(), ids, "archived: {archived:?}");
    }
    let told = stage.replay("bob", ["memory_unit", &b], "detailed").ok();
    let last = list(&told["timeline"]).pop().unwrap();
    assert_eq!((&last["event_type"], &last["agent_id"]), (&json!("ARCHIVE"), &json!("ada")));
    let said = format!("Archived {b}: units of type finding, with status active (COMPACT archive)");
    assert_eq!(last["description"], json!(said));
    assert_eq!(last["memory_unit_id"], json!(b));
    assert!(stage.rebuilt().world == stage.state.world);
}

#[test]
fn units_available_counts_what_is_shown() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    for _ in 0..4 {
        stage.record("ada", "x");
        stage.record("bob", "y");
    }
    stage.touched("archive", json!({ "max_age_epochs": 4 }));
    for (scope, expected) in [
        (json!({}), 2),
        (json!({ "include_own": true }), 4),
        (json!({ "include_archived": true }), 4),
        (json!({ "include_own": true, "include_archived": true }), 8),
    ] {
        let found = stage.attune("ada", scope.clone());
        assert_eq!(found["context_budget"]["units_available"], expected, "{scope}");
        assert_eq!(list(&found["record"]).len() as u64, expected, "{scope}");
    }
}

#[test]
fn age_is_the_operations_epoch_less_the_units_own_and_must_be_greater() {
    let (mut stage, [a, ..]) = three();
    let own: u64 = a.strip_prefix("mem-").unwrap().parse().unwrap();
    let age = stage.state.clock + 1 - own;
    assert_eq!(stage.touched("archive", json!({ "max_age_epochs": age })), 0);
    // The operation before took an epoch.
    assert_eq!(stage.touched("archive", json!({ "max_age_epochs": age })), 1);
    assert!(stage.is_archived(&a));
}

#[test]
fn conditions_are_anded_and_an_empty_one_is_none() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let in_session = |stage: &mut Stage, kind: &str| {
        let payload = with(finding("x"), json!({ "type": kind }));
        stage.say(saying("ada", "RECORD", payload).session("s-1")).unit_id()
    };
    let a = in_session(&mut stage, "finding");
    let b = in_session(&mut stage, "decision");
    let c = stage.typed("bob", "finding");
    assert_eq!(stage.touched("archive", json!({ "session_id": "s-1", "types": ["finding"] })), 1);
    assert!(stage.is_archived(&a) && !stage.is_archived(&b));
    assert_eq!(stage.touched("archive", json!({ "session_id": "s-2" })), 0);
    let none = json!({ "max_age_epochs": null, "session_id": null, "types": [], "status": [] });
    assert_eq!(stage.touched("archive", none), 2, "b and c; a is archived already");
    assert!(stage.is_archived(&c));
}

#[test]
fn without_a_filter_archive_and_summarize_take_everything_and_purge_nothing() {
    let (mut stage, _) = three();
    for payload in [
        json!({ "strategy": "purge" }),
        strategy("purge", json!({})),
        strategy("purge", json!({ "types": [], "status": null })),
    ] {
        let refusal = stage.send("ada", "COMPACT", payload).refusal();
        assert_eq!((refusal.code, &refusal.details["key"]), (ErrorCode::InvalidMessage, &json!("filter")));
    }
    assert_eq!(stage.send("ada", "COMPACT", json!({ "strategy": "archive" })).ok()["units_affected"], 3);
    let (mut stage, _) = three();
    assert_eq!(stage.send("ada", "COMPACT", json!({ "strategy": "summarize" })).ok()["units_affected"], 3);
}

#[test]
fn what_does_not_match_is_ok_and_zero() {
    let mut stage = Stage::with_agents(&["ada"]);
    for name in ["archive", "summarize", "purge"] {
        let reply = stage.compact("ada", name, json!({ "max_age_epochs": 0 }));
        assert_eq!((&reply["status"], &reply["units_affected"]), (&json!("ok"), &json!(0)), "{name}");
        assert_eq!(reply["synthesis_units_created"], 0);
    }
}

#[test]
fn drafts_are_never_touched_and_a_discarded_one_counts_as_retracted_for_its_author_alone() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let draft = stage.draft("ada", "x");
    let discarded = stage.draft("ada", "y");
    stage.give_up("ada", "DISCARD", &discarded).ok();
    for name in ["archive", "summarize", "purge"] {
        for filter in [json!({ "status": ["draft"] }), json!({ "max_age_epochs": 0, "types": ["finding"] })] {
            let reply = stage.compact("bob", name, filter);
            assert_eq!(reply["units_affected"], 0, "{name}: nobody learns of another's drafts");
        }
    }
    assert_eq!(stage.touched("summarize", json!({})), 0, "what all may see names no draft");
    assert_eq!(stage.touched("archive", json!({ "status": ["retracted"] })), 1);
    assert!(stage.is_archived(&discarded) && !stage.is_archived(&draft));
    assert_eq!(stage.last_notices(), [], "nobody is told of it");
    assert_eq!(stage.touched("purge", json!({ "status": ["retracted"] })), 1);
    assert_eq!(stage.status(&draft), UnitStatus::Draft);
    assert!(stage.state.world.find(discarded.parse().unwrap()).is_none());
    invariants::check(&stage.state.world);
}

#[test]
fn units_in_an_unresolved_conflict_are_skipped_and_taken_once_it_is_resolved() {
    let (mut stage, dispute) = Dispute::staged();
    for name in ["archive", "summarize", "purge"] {
        assert_eq!(stage.touched(name, json!({ "max_age_epochs": 0 })), 0, "{name}");
    }
    stage.merge("kim", &dispute.conflict, "confidence_weighted", json!({})).ok();
    assert_eq!(stage.touched("archive", json!({})), 2);
}

#[test]
fn archived_units_match_purge_but_not_archive_or_summarize() {
    let (mut stage, _) = three();
    assert_eq!(stage.touched("archive", json!({})), 3);
    assert_eq!(stage.touched("archive", json!({})), 0);
    assert_eq!(stage.touched("summarize", json!({})), 0);
    assert_eq!(stage.touched("purge", json!({ "max_age_epochs": 0 })), 3);
}

#[test]
fn becoming_contested_ends_the_archiving_for_good_and_without_an_event() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let a = stage.record("ada", "It grows.");
    stage.touched("archive", json!({}));
    let b = stage.relate("bob", &[["contradicts", &a]]).unit_id();
    assert!(!stage.is_archived(&a));
    let all = json!({ "include_own": true });
    assert_eq!(stage.attuned_ids("bob", all.clone()), [a.clone(), b.clone()]);
    assert_eq!(stage.attune("bob", json!({}))["context_budget"]["units_available"], 1);
    stage.merge("bob", &b.replace("mem", "conflict"), "last_write_wins", json!({})).ok();
    assert!(!stage.is_archived(&a), "not even once it is settled");
    let told = told(&stage.replay("bob", ["memory_unit", &a], "full_trace").ok());
    assert_eq!(told.iter().filter(|event| event.contains("ARCHIVE")).count(), 1);
    invariants::check(&stage.state.world);
}

#[test]
fn archived_units_can_be_superseded() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let a = stage.record("ada", "It grows.");
    stage.touched("archive", json!({}));
    let b = stage.relate("bob", &[["supersedes", &a]]).unit_id();
    assert_eq!((stage.status(&a), stage.status(&b)), (UnitStatus::Superseded, UnitStatus::Active));
    assert!(stage.is_archived(&a));
    assert_eq!(stage.attuned_ids("ada", json!({ "include_archived": true })), [b]);
    invariants::check(&stage.state.world);
}

#[test]
fn each_archived_unit_gives_notice_behind_what_was_recorded() {
    let (mut stage, [a, b, c]) = three();
    stage.touched("summarize", json!({}));
    let epoch = stage.state.clock;
    let told: Vec<_> =
        stage.last_notices().into_iter().map(|(event, cursor, _)| (event.name(), cursor)).collect();
    let archived = |index| ("memory.archived", Cursor::new(epoch, index));
    assert_eq!(told, [("memory.recorded", Cursor::new(epoch, 0)), archived(1), archived(2), archived(3)]);
    let said: Vec<_> = stage.last_notices().into_iter().skip(1).map(|(.., said)| said).collect();
    let expected = |id: &str| format!("{id} was archived: all units (COMPACT summarize)");
    // Those that stand come first.
    assert_eq!(said, [expected(&b), expected(&c), expected(&a)]);
}

#[test]
fn a_place_of_a_notice_stays_when_a_unit_before_it_is_purged() {
    let (mut stage, [a, _, c]) = three();
    let observation = stage.typed("bob", "observation");
    stage.send("ada", "RECORD", related("new", &[["supersedes", &c], ["supersedes", &observation]])).ok();
    let recorded = Entry::from_json(stage.kept.values().last().unwrap()).unwrap();
    stage.touched("archive", json!({ "status": ["superseded"] }));
    let archived = Entry::from_json(stage.kept.values().last().unwrap()).unwrap();
    let places = |stage: &Stage, entry: &Entry| -> Vec<(u32, EventName)> {
        let told = all_notices(&stage.filled(), entry);
        told.into_iter().map(|notice| (notice.cursor.index, notice.event)).collect()
    };
    let (recorded_before, archived_before) = (places(&stage, &recorded), places(&stage, &archived));
    assert_eq!(
        stage.touched("purge", json!({ "types": ["finding"], "status": ["superseded"] })),
        2,
        "{a} and {c}"
    );
    let left = |before: &[(u32, EventName)], gone: &[usize]| -> Vec<(u32, EventName)> {
        let stays = |(at, one): (usize, &(u32, EventName))| (!gone.contains(&at)).then_some(*one);
        before.iter().enumerate().filter_map(stays).collect()
    };
    assert_eq!(places(&stage, &recorded), left(&recorded_before, &[1]));
    assert_eq!(places(&stage, &archived), left(&archived_before, &[0, 1]));
    assert_eq!(notices(&stage.filled(), &recorded).unwrap().places, 3);
}

#[test]
fn summaries_are_units_that_elaborate_their_originals_which_are_archived() {
    let (mut stage, [a, b, c]) = three();
    let reply = stage.compact("ada", "summarize", json!({ "status": ["active", "superseded"] }));
    let expected = json!({ "status": "ok", "units_affected": 3, "synthesis_units_created": 1,
        "storage_reclaimed_bytes": null });
    assert_eq!(reply, expected);
    let id = format!("mem-{}", stage.state.clock);
    let unit = stage.slot(&id).said().clone();
    assert_eq!(unit.kind, MemoryType::Synthesis);
    assert_eq!((&*unit.source.agent_id, &*unit.source.agent_role), ("system", "system"));
    let targets: Vec<_> = unit.relations.iter().map(|of| (of.kind.name(), &*of.target_id)).collect();
    assert_eq!(targets, [("elaborates", &*a), ("elaborates", &*b), ("elaborates", &*c)]);
    assert_eq!(&*unit.content, "bob: Berlin asks for a permit. ada: related.", "{a} is superseded");
    assert_eq!(&*unit.intent.purpose, "Summary of 3 units by ada, bob: to know");
    let confidence = unit.confidence.as_ref().unwrap();
    assert_eq!(confidence.score, Some(0.5));
    assert_eq!(
        confidence.reason.as_deref(),
        Some(&*format!("The lowest of the 3 units that it sums up, that of {a}."))
    );
    assert!([&a, &b, &c].iter().all(|id| stage.is_archived(id)) && !stage.is_archived(&id));
    assert_eq!(stage.attuned_ids("bob", json!({})), std::slice::from_ref(&id));
    let lines: Vec<Value> = lines_of(stage.kept.values().last().unwrap())
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<_> =
        lines.iter().map(|line| (text(&line["event_type"]), text(&line["agent_id"]))).collect();
    let archive = || ("ARCHIVE".to_owned(), "ada".to_owned());
    assert_eq!(told, [("RECORD".to_owned(), "system".to_owned()), archive(), archive(), archive()]);
    let cursors: Vec<_> = lines.iter().map(|line| text(&line["cursor"])).collect();
    assert_eq!(cursors, (0..4).map(|at| format!("{}.{at}", &id["mem-".len()..])).collect::<Vec<_>>());
    invariants::check(&stage.state.world);
    assert!(stage.rebuilt().world == stage.state.world);
    let agents = stage.state.world.agents_shown(&stage.state.presence.all());
    assert_eq!(list(&agents["agents"]).len(), 2, "the Field itself is no agent");
}

#[test]
fn a_synthesis_keeps_the_task_and_the_session_that_its_originals_share() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    for (task, session) in [("t-1", "s-1"), ("t-1", "s-2"), ("t-2", "s-2"), ("t-2", "s-2")] {
        let intent = json!({ "intent": { "purpose": "p", "task_id": task } });
        let payload = with(finding(&format!("said in {session}")), intent);
        stage.say(saying("ada", "RECORD", payload).session(session)).ok();
    }
    assert_eq!(stage.compact("ada", "summarize", json!({}))["synthesis_units_created"], 2);
    let of_task = |stage: &mut Stage, task: &str| {
        let found = stage.attune("bob", json!({ "active_task_id": task, "max_units": 1 }));
        let unit = &list(&found["record"])[0]["memory_unit"];
        (unit["intent"]["task_id"].clone(), unit["source"]["session_id"].clone())
    };
    assert_eq!(of_task(&mut stage, "t-1"), (json!("t-1"), json!(null)));
    assert_eq!(of_task(&mut stage, "t-2"), (json!("t-2"), json!("s-2")));
    assert_eq!(stage.attuned_ids("bob", json!({ "session_id": "s-2" })).len(), 1);
}

#[test]
fn a_lone_match_gets_a_synthesis_of_its_own_and_large_ones_are_several() {
    let mut stage = Stage::with_agents(&["ada"]);
    let only = stage.record("ada", "x");
    assert_eq!(stage.compact("ada", "summarize", json!({}))["synthesis_units_created"], 1);
    assert_eq!(
        &*stage.slot(&format!("mem-{}", stage.state.clock)).said().intent.purpose,
        "Summary of 1 unit by ada: to know"
    );
    let units: Vec<_> = (0..60).map(|number| stage.record("ada", &format!("word{number} said"))).collect();
    let reply = stage.compact("ada", "summarize", json!({ "types": ["finding"] }));
    assert_eq!(reply["units_affected"], 60);
    let made = reply["synthesis_units_created"].as_u64().unwrap();
    assert!((3..=7).contains(&made), "{made}");
    let epoch = stage.state.clock;
    let mut elaborated: Vec<String> = (0..made)
        .map(|number| if number == 0 { format!("mem-{epoch}") } else { format!("mem-{epoch}.{number}") })
        .flat_map(|id| {
            stage.slot(&id).said().relations.iter().map(|of| of.target_id.to_string()).collect::<Vec<_>>()
        })
        .collect();
    elaborated.sort_by_key(|id| id.parse::<crate::protocol::UnitId>().unwrap());
    assert_eq!(elaborated, units, "each by one");
    assert!(stage.is_archived(&only));
}

#[test]
fn where_nothing_stands_nothing_is_quoted() {
    let mut stage = Stage::with_agents(&["ada"]);
    let a = stage.record("ada", "A secret that was wrong.");
    stage.give_up("ada", "RETRACT", &a).ok();
    stage.touched("summarize", json!({}));
    let unit = stage.slot(&format!("mem-{}", stage.state.clock)).said().clone();
    assert_eq!(
        &*unit.content,
        "1 archived unit was superseded or retracted; nothing of that is quoted here."
    );
    assert_eq!(&*unit.intent.purpose, "Summary of 1 unit by ada");
}

#[test]
fn what_changed_since_the_plan_was_made_is_planned_anew_or_left_out() {
    let (mut stage, [a, b, c]) = three();
    let command = |stage: &mut Stage, payload: Value, plan: Option<Plan>| {
        stage.sent += 1;
        let envelope = json!({ "protocol": "akashik", "version": "0.1.0", "id": format!("late {}", stage.sent),
            "operation": "COMPACT", "agent_id": "ada", "session_id": null, "epoch": 0, "payload": payload });
        let envelope = envelope.to_string();
        let message = Message::read(&Envelope::parse(&envelope).unwrap(), &stage.policy);
        let message = Message { plan: plan.map(Arc::new), ..message };
        decide(&stage.state, &stage.policy, &Command { at: Timestamp(stage.now), connection: None, message })
    };
    let prepared = |verdict| match verdict {
        Verdict::Prepare(preparation) => preparation,
        other => panic!("a plan is wanted, not {other:?}"),
    };
    let archive = strategy("archive", json!({}));
    let preparation = prepared(command(&mut stage, archive.clone(), None));
    let plan = stage.plan(&preparation);
    let summarize = strategy("summarize", json!({}));
    let preparation = prepared(command(&mut stage, summarize.clone(), None));
    let mut outdated = stage.plan(&preparation);
    stage.relate("bob", &[["contradicts", &b]]).ok();
    let Verdict::Change(entry) = command(&mut stage, archive, Some(plan)) else { panic!("it is done") };
    let touched: Vec<String> = entry
        .events
        .iter()
        .flat_map(|event| event.units().unwrap().as_slice().to_vec())
        .map(|id| id.to_string())
        .collect();
    assert_eq!(touched, [c, a], "all but what became contested");
    for _ in 0..2 {
        let again = prepared(command(&mut stage, summarize.clone(), Some(outdated)));
        // Another plan that comes too late: made of what was before.
        let units = preparation.units(&stage.rebuilt_as_of(preparation.epoch - 1).world);
        let groups = stage.groups(&preparation, &units);
        let world = &stage.state.world;
        let syntheses =
            groups.into_iter().map(|group| compose(world, &mut Condenser::default(), group)).collect();
        outdated = again.plan(world, units, syntheses);
    }
    let Verdict::Change(entry) = command(&mut stage, summarize, Some(outdated)) else { panic!("it is done") };
    assert!(entry.events.is_empty(), "left out, after three tries: {:?}", entry.events);
}

#[test]
fn purge_needs_level_3_and_compact_level_2() {
    let mut stage = Stage::of_level(2);
    stage.join("ada");
    let refusal = stage.send("ada", "COMPACT", strategy("purge", json!({ "max_age_epochs": 0 }))).refusal();
    assert_eq!(refusal.code, ErrorCode::UnsupportedOperation);
    assert!(refusal.message.contains("level 3") && refusal.suggested_action.contains("archive, summarize"));
    assert_eq!(stage.touched("archive", json!({})), 0);
    let mut stage = Stage::of_level(1);
    stage.join("ada");
    assert_eq!(
        stage.send("ada", "COMPACT", strategy("archive", json!({}))).code(),
        ErrorCode::UnsupportedOperation
    );
}

#[test]
fn what_is_wrong_is_named_and_nothing_is_changed() {
    let (mut stage, _) = three();
    for (payload, key) in [
        (json!({}), "strategy"),
        (json!({ "strategy": "delete" }), "strategy"),
        (json!({ "strategy": 1 }), "strategy"),
        (strategy("archive", json!([])), "filter"),
        (strategy("archive", json!({ "max_age_epoch": 3 })), "filter.max_age_epoch"),
        (strategy("purge", json!({ "max_age_epochs": 0, "Status": null })), "filter.Status"),
        (strategy("archive", json!({ "max_age_epochs": -1 })), "filter.max_age_epochs"),
        (strategy("archive", json!({ "max_age_epochs": 1.5 })), "filter.max_age_epochs"),
        (strategy("archive", json!({ "max_age_epochs": 1e300 })), "filter.max_age_epochs"),
        (strategy("archive", json!({ "max_age_epochs": u64::MAX })), "filter.max_age_epochs"),
        (strategy("archive", json!({ "max_age_epochs": "5" })), "filter.max_age_epochs"),
        (strategy("archive", json!({ "session_id": 5 })), "filter.session_id"),
        (strategy("archive", json!({ "types": ["findings"] })), "filter.types"),
        (strategy("archive", json!({ "types": "finding" })), "filter.types"),
        (strategy("archive", json!({ "status": ["archived"] })), "filter.status"),
        (with(strategy("archive", json!({})), json!({ "reason": 5 })), "reason"),
        (with(strategy("archive", json!({})), json!({ "reason": "x".repeat(5_000) })), "reason"),
        (with(strategy("archive", json!({})), json!({ "confirm": "yes" })), "confirm"),
        (with(strategy("archive", json!({})), json!({ "dry_run": 1 })), "dry_run"),
    ] {
        let (clock, entries) = (stage.state.clock, stage.kept.len());
        let refusal = stage.send("ada", "COMPACT", payload.clone()).refusal();
        assert_eq!(
            (refusal.code, &refusal.details["key"]),
            (ErrorCode::InvalidMessage, &json!(key)),
            "{payload}"
        );
        assert_eq!((stage.state.clock, stage.kept.len()), (clock, entries));
    }
    assert_eq!(
        stage.send("eve", "COMPACT", strategy("archive", json!({}))).code(),
        ErrorCode::AgentNotRegistered
    );
    assert_eq!(stage.touched("archive", json!({ "max_age_epochs": (1u64 << 53) - 1 })), 0);
    assert_eq!(stage.touched("archive", json!({ "max_age_epochs": 1.0 })), 3);
}

#[test]
fn a_preview_changes_nothing_and_says_what_would_be() {
    let (mut stage, _) = three();
    for (name, syntheses) in [("archive", 0), ("summarize", 1), ("purge", 0)] {
        let payload = with(strategy(name, json!({ "max_age_epochs": 0 })), json!({ "dry_run": true }));
        let entries = stage.kept.len();
        let reply = stage.send("ada", "COMPACT", payload.clone()).ok();
        assert_eq!((&reply["units_affected"], &reply["dry_run"]), (&json!(3), &json!(true)), "{name}");
        assert_eq!(reply["synthesis_units_created"], syntheses);
        assert_eq!(reply["storage_reclaimed_bytes"].is_u64(), name == "purge");
        assert_eq!(stage.kept.len(), entries, "it is a read");
    }
    let done = stage.compact("ada", "summarize", json!({}));
    assert_eq!((&done["units_affected"], &done["synthesis_units_created"]), (&json!(3), &json!(1)));
    assert_eq!(done.get("dry_run"), None);
}

#[test]
fn the_same_message_again_gets_the_same_answer_and_is_done_once() {
    let (mut stage, _) = three();
    let message = saying("ada", "COMPACT", strategy("summarize", json!({}))).id("once");
    let first = stage.say(message.clone());
    let entries = stage.kept.len();
    let again = stage.say(message);
    assert_eq!((again.epoch, again.outcome.ok()), (first.epoch, first.outcome.ok()));
    assert_eq!(stage.kept.len(), entries);
}

#[test]
fn a_task_and_a_session_tell_what_became_of_their_units() {
    let mut stage = Stage::with_agents(&["ada"]);
    for number in 0..150 {
        let task = if number < 3 { "few" } else { "many" };
        let intent = json!({ "intent": { "purpose": "p", "task_id": task } });
        stage.send("ada", "RECORD", with(finding("x"), intent)).ok();
    }
    stage.say(saying("ada", "COMPACT", strategy("archive", json!({}))).session("cleaning")).ok();
    let archives = |stage: &mut Stage, target: [&str; 2]| -> Vec<String> {
        let told = stage.replay("ada", target, "detailed").ok();
        let all = list(&told["timeline"]);
        let archives = all.iter().filter(|event| event["event_type"] == "ARCHIVE");
        archives.map(|event| text(&event["description"])).collect()
    };
    assert_eq!(archives(&mut stage, ["task", "few"]).len(), 3, "one by one");
    assert_eq!(archives(&mut stage, ["task", "many"]), ["Archived 147 units: all units (COMPACT archive)"]);
    assert_eq!(
        archives(&mut stage, ["session", "cleaning"]),
        ["Archived 150 units: all units (COMPACT archive)"]
    );
}

#[test]
fn many_units_at_once_are_told_of_each_and_counted_right() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    for number in 0..3_000 {
        let agent = if number % 3 == 0 { "ada" } else { "bob" };
        stage.record(agent, "x");
    }
    let first = stage.state.world.units[0].id.to_string();
    assert_eq!(stage.touched("archive", json!({ "max_age_epochs": 500 })), 2_500);
    assert_eq!(stage.state.world.sweeps.len(), 1, "not noted one by one");
    let found = stage.attune("ada", json!({ "include_own": true }));
    assert_eq!(found["context_budget"]["units_available"], 500);
    let told = told(&stage.replay("bob", ["memory_unit", &first], "detailed").ok());
    assert!(told.last().unwrap().contains("ARCHIVE"), "{told:?}");
    assert_eq!(stage.last_notices().len(), 2_500);
    assert!(stage.kept.values().last().unwrap().len() < 2_000, "a stretch is a range in the log");
    invariants::check(&stage.state.world);
    assert!(stage.rebuilt().world == stage.state.world);
    assert_eq!(stage.touched("purge", json!({ "max_age_epochs": 1_500 })), 1_503);
    invariants::check(&stage.state.world);
    assert!(stage.rebuilt().world == stage.state.world);
}
