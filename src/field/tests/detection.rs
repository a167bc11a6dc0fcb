//! Conflicts that are noticed rather than told (section 7, RECORD and DETECT): what is raised, and what never is.

use serde_json::json;

use super::*;
use crate::protocol::{DetectMode, DetectRequest, Request, ScanCoverage, UnitId};

/// What a stage does about messages that commit a unit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Detection {
    /// Nothing.
    #[default]
    Off,
    /// Compares with all units.
    Whole,
    /// Compares with the first so many.
    Part(u32),
    /// Has no time.
    Deferred,
    /// Has begun, and had not enough time.
    TimedOut,
}

impl Stage {
    /// What a door would find before the message is decided; every unit is compared with.
    pub(super) fn suspected(&self, message: &Message) -> Suspected {
        let world = &self.state.world;
        let most = match self.detection {
            Detection::Off => return Suspected::Unasked,
            Detection::Whole => u32::MAX,
            Detection::Part(most) => most,
            Detection::Deferred => return Suspected::Deferred { timed_out: false },
            Detection::TimedOut => return Suspected::Deferred { timed_out: true },
        };
        let found = match &message.request {
            Ok(Request::Record(request)) => {
                self.compared(&Statement::recorded(request, &message.agent_id), most)
            }
            Ok(Request::Commit(request)) => {
                let draft = world.find(request.memory_unit_id.parse().expect("an id"));
                let Some(draft) = draft else { return Suspected::Unasked };
                let Some(committed) = Statement::committed(world.slot(draft), request) else {
                    return Suspected::Unasked;
                };
                self.compared(&committed, most)
            }
            _ => return Suspected::Unasked,
        };
        let with = u32::try_from(world.timeline.len()).unwrap().min(most);
        Suspected::Compared { with, suspicions: found.into() }
    }

    fn compared(&self, statement: &Statement<'_>, most: u32) -> Vec<Suspicion> {
        let world = &self.state.world;
        let others = world.timeline.iter().take(most as usize).map(|(_, no)| *no);
        let recall = |no| Some(std::sync::Arc::new(Statement::of(world.slot(no)).expect("it stands").read()));
        suspicions(world, statement, &statement.read(), others, recall)
    }

    /// What a check or a scan looks at, entered.
    pub(super) fn noticed(
        &mut self,
        read: &Read,
        request: &DetectRequest,
    ) -> Result<Option<ScanCoverage>, Refusal> {
        let world = &self.state.world;
        let standing = || world.timeline.iter().map(|(_, no)| *no).filter(|no| stands(world, *no));
        let (units, units_scanned): (Vec<_>, _) = match &request.mode {
            DetectMode::List => return Ok(None),
            DetectMode::Check { target_id } => {
                let no = target(world, &self.policy, read.asker, target_id)?;
                (vec![no], standing().count() - 1)
            }
            DetectMode::Scan => (standing().collect(), standing().count()),
        };
        let findings: Vec<Finding> = units.iter().flat_map(|no| self.found(*no)).collect();
        let before = world.conflicts.len();
        self.enter_detected(&findings, None);
        let new_conflicts_found = self.state.world.conflicts.len() - before;
        Ok(Some(ScanCoverage { units_scanned, new_conflicts_found }))
    }

    fn found(&self, no: UnitNo) -> Vec<Finding> {
        let slot = self.state.world.slot(no);
        let found = self.compared(&Statement::of(slot).expect("it stands"), u32::MAX);
        found.into_iter().map(|suspicion| Finding { unit: slot.id, suspicion }).collect()
    }

    fn enter_detected(&mut self, findings: &[Finding], through: Option<UnitId>) -> Vec<&'static str> {
        self.now += 1;
        let entry = detected(&self.state, Timestamp(self.now), findings, through);
        entry.map_or_else(Vec::new, |entry| {
            self.enter(&entry);
            entry.events.iter().map(Event::event_type).collect()
        })
    }

    /// Notes that so many units more were compared, with nothing found; whether there was any.
    pub(super) fn caught_up(&mut self, most: usize) -> bool {
        let world = &self.state.world;
        let last = world.uncompared.keys().take(most).next_back();
        let through = last.map(|place| world.slot(world.timeline[*place as usize].1).id);
        !self.enter_detected(&[], through).is_empty()
    }

    /// Compares behind what is still to be compared, as far as `most` units.
    pub(super) fn catch_up_behind(&mut self, most: usize) -> Vec<&'static str> {
        let world = &self.state.world;
        let waiting: Vec<(u32, u32)> =
            world.uncompared.iter().map(|(at, with)| (*at, *with)).take(most).collect();
        let mut findings = Vec::new();
        let mut through = None;
        for (place, compared) in waiting {
            let no = world.timeline[place as usize].1;
            let span = world.timeline.iter().take(place as usize).skip(compared as usize);
            let ids: Vec<UnitId> = span.map(|(_, no)| world.slot(*no).id).collect();
            if stands(world, no) {
                findings.extend(
                    self.found(no).into_iter().filter(|found| ids.contains(&found.suspicion.against)),
                );
            }
            through = Some(world.slot(no).id);
        }
        self.enter_detected(&findings, through)
    }

    fn detecting(agents: &[&str]) -> Self {
        Self { detection: Detection::Whole, ..Self::with_agents(agents) }
    }

    /// RECORD of a finding with further keys; its answer.
    fn say_more(&mut self, agent: &str, content: &str, more: Value) -> Value {
        self.send(agent, "RECORD", with(finding(content), more)).ok()
    }

    fn events_of_last(&self) -> Vec<&'static str> {
        let (_, text) = self.kept.last_key_value().expect("an entry");
        Entry::from_json(text).expect("an entry").events.iter().map(Event::event_type).collect()
    }
}

const OLD: &str = "The market grows by 23% a year.";
const NEW: &str = "The market grows by 14% a year.";

fn sure(score: f64) -> Value {
    json!({ "confidence": { "score": score, "reason": "seen" } })
}

#[test]
fn what_contradicts_is_in_the_records_own_entry_and_in_its_answer() {
    let mut stage = Stage::detecting(&["ada", "bob"]);
    let old = stage.record("ada", OLD);
    stage.record("ada", "The pump is in Lyon.");
    let answer = stage.say_more("bob", NEW, json!({}));
    let new = text(&answer["memory_unit_id"]);
    let conflict = new.replace("mem", "conflict");
    assert_eq!(answer["conflicts_detected"], json!([conflict]));
    assert_eq!(answer.get("conflict_detection"), None);
    assert_eq!(stage.events_of_last(), ["RECORD", "CONFLICT_CREATED"]);
    let told = stage.conflict("ada", &conflict);
    assert_eq!(told["detected_by"], "semantic");
    assert_eq!([&told["unit_a"], &told["unit_b"]], [&json!(old), &json!(new)]);
    assert_eq!((&told["type"], &told["status"]), (&json!("factual"), &json!("detected")));
    let said = text(&told["description"]);
    assert!(said.contains("23%") && said.contains("14%") && said.contains("market"), "{said}");
    assert_eq!([stage.status(&old), stage.status(&new)], [UnitStatus::Contested; 2]);
    let replayed = stage.replay("ada", ["conflict", &conflict], "detailed").ok();
    let created = list(&replayed["timeline"]).pop().unwrap();
    assert_eq!(
        (&created["event_type"], &created["agent_id"]),
        (&json!("CONFLICT_CREATED"), &json!("system"))
    );
    let said = text(&created["description"]);
    assert!(
        said.starts_with("Conflict noticed by semantic detection: ") && !said.contains("Explicit"),
        "{said}"
    );
}

#[test]
fn a_newer_unit_that_is_clearly_less_sure_than_an_established_one_is_temporal() {
    for (older, newer, expected) in [
        (0.9, 0.4, "temporal"),
        (0.7, 0.5, "temporal"),
        (0.9, 0.71, "semantic"),
        (0.69, 0.1, "semantic"),
        (0.4, 0.9, "semantic"),
    ] {
        let mut stage = Stage::detecting(&["ada", "bob"]);
        stage.say_more("ada", OLD, sure(older));
        stage.say_more("bob", NEW, sure(newer));
        assert_eq!(stage.conflicts("ada")[0]["detected_by"], expected, "{older} {newer}");
    }
}

#[test]
fn an_assumption_against_what_another_says_is_logical_whichever_is_older() {
    let assuming =
        json!({ "confidence": { "score": 0.8, "reason": "r", "assumptions": ["The sun shines.", OLD] } });
    for assumes_first in [true, false] {
        let mut stage = Stage::detecting(&["ada", "bob"]);
        let assume =
            |stage: &mut Stage| stage.say_more("ada", "We should open a shop in Lyon.", assuming.clone());
        if assumes_first {
            assume(&mut stage);
        }
        stage.record("bob", NEW);
        if !assumes_first {
            assume(&mut stage);
        }
        let conflicts = stage.conflicts("ada");
        assert_eq!(conflicts.len(), 1, "{conflicts:?}");
        assert_eq!(conflicts[0]["detected_by"], "logical");
        let whose = if assumes_first { "older" } else { "newer" };
        let said = text(&conflicts[0]["description"]);
        assert!(said.ends_with(&format!("which the {whose} one assumes")), "{said}");
    }
}

#[test]
fn who_says_how_two_units_stand_to_each_other_is_believed() {
    for kind in ["supersedes", "contradicts", "supports", "elaborates", "answers"] {
        let mut stage = Stage::detecting(&["ada", "bob"]);
        let old = stage.record("ada", OLD);
        let answer = stage.send("bob", "RECORD", related(NEW, &[[kind, &old]])).ok();
        let told = usize::from(kind == "contradicts");
        assert_eq!(list(&answer["conflicts_detected"]).len(), told, "{kind}");
        assert_eq!(stage.conflicts("ada").len(), told, "{kind}");
    }
    // Any other relation says nothing of that; a correction's says all.
    for (kind, raised) in [("finding", 1), ("correction", 0)] {
        let mut stage = Stage::detecting(&["ada", "bob"]);
        let old = stage.record("ada", OLD);
        let unit = with(related(NEW, &[["informs", &old]]), json!({ "type": kind }));
        stage.send("bob", "RECORD", unit).ok();
        assert_eq!(stage.conflicts("ada").len(), raised, "{kind}");
    }
}

#[test]
fn only_what_stands_and_claims_something_is_compared() {
    let raised = |prepare: &dyn Fn(&mut Stage), more: Value| {
        let mut stage = Stage::detecting(&["ada", "bob"]);
        prepare(&mut stage);
        let before = stage.state.world.conflicts.len();
        stage.say_more("bob", NEW, more);
        stage.state.world.conflicts.len() - before
    };
    let record = |stage: &mut Stage| stage.record("ada", OLD);
    let typed = |kind: &'static str| {
        move |stage: &mut Stage| drop(stage.say_more("ada", OLD, json!({ "type": kind })))
    };
    assert_eq!(raised(&|stage| drop(record(stage)), json!({})), 1);
    assert_eq!(raised(&|stage| drop(stage.record("bob", OLD)), json!({})), 1, "one's own count too");
    let retract = |stage: &mut Stage| {
        let unit = record(stage);
        stage.give_up("ada", "RETRACT", &unit).ok();
    };
    assert_eq!(raised(&retract, json!({})), 0);
    let supersede = |stage: &mut Stage| {
        let unit = record(stage);
        stage.send("ada", "RECORD", related("It was all wrong.", &[["supersedes", &unit]])).ok();
    };
    assert_eq!(raised(&supersede, json!({})), 0);
    assert_eq!(raised(&|stage| drop(stage.draft("ada", OLD)), json!({})), 0);
    assert_eq!(raised(&|stage| drop(record(stage)), json!({ "mode": "draft" })), 0);
    for (older, newer, expected) in [
        ("question", "finding", 0),
        ("finding", "question", 0),
        ("contradiction", "finding", 0),
        ("intention", "finding", 0),
        ("intention", "decision", 1),
        ("decision", "decision", 1),
        ("constraint", "human_directive", 1),
        ("observation", "finding", 1),
    ] {
        assert_eq!(raised(&typed(older), json!({ "type": newer })), expected, "{older} {newer}");
    }
    let measured = json!({ "type": "observation" });
    assert_eq!(raised(&|stage| drop(stage.say_more("bob", OLD, measured.clone())), measured.clone()), 0);
    assert_eq!(raised(&typed("observation"), measured.clone()), 1, "another's measurement");
}

#[test]
fn a_draft_is_compared_when_it_is_committed() {
    let mut stage = Stage::detecting(&["ada", "bob"]);
    let draft = stage.draft("bob", NEW);
    stage.record("ada", OLD);
    let answer = stage.commit("bob", &draft).ok();
    assert_eq!(list(&answer["conflicts_detected"]).len(), 1);
    assert_eq!(stage.events_of_last(), ["COMMIT", "CONFLICT_CREATED"]);
    let conflict = &stage.conflicts("ada")[0];
    assert_eq!(conflict["unit_b"], json!(draft), "who was committed first is the older one");
}

#[test]
fn a_pair_is_raised_once_and_another_pair_anew() {
    let mut stage = Stage::detecting(&["ada", "bob"]);
    let old = stage.record("ada", OLD);
    let new = stage.record("bob", NEW);
    let scan = json!({ "mode": "scan" });
    assert_eq!(stage.send("ada", "DETECT", scan.clone()).ok()["scan_coverage"]["new_conflicts_found"], 0);
    // Escalated is unresolved, resolved is final.
    let conflict = new.replace("mem", "conflict");
    stage.merge("ada", &conflict, "human_escalation", json!({})).ok();
    assert_eq!(stage.send("ada", "DETECT", scan.clone()).ok()["scan_coverage"]["new_conflicts_found"], 0);
    stage.merge("ada", &conflict, "human_escalation", json!({ "winner_id": old })).ok();
    assert_eq!(stage.status(&new), UnitStatus::Superseded);
    let coverage = json!({ "units_scanned": 1, "new_conflicts_found": 0 });
    assert_eq!(stage.send("ada", "DETECT", scan).ok()["scan_coverage"], coverage);
    stage.record("bob", NEW);
    assert_eq!(stage.conflicts("ada").len(), 2, "said again, it is another unit");
}

#[test]
fn what_leaves_the_live_states_takes_its_noticed_conflicts_with_it() {
    let mut stage = Stage::detecting(&["ada", "bob"]);
    let old = stage.record("ada", OLD);
    let new = stage.record("bob", NEW);
    let conflict = new.replace("mem", "conflict");
    // Superseded by a unit that clashes with the partner in its turn: the partner stays contested.
    let third =
        stage.send("bob", "RECORD", related("The market grows by 15% a year.", &[["supersedes", &new]])).ok();
    assert_eq!(stage.events_of_last(), ["RECORD", "CONFLICT_CREATED", "MERGE"]);
    assert_eq!(stage.conflict("ada", &conflict)["resolution"]["winner_id"], json!(old));
    let third = text(&third["memory_unit_id"]);
    assert_eq!([stage.status(&old), stage.status(&third)], [UnitStatus::Contested; 2]);
    stage.give_up("bob", "RETRACT", &third).ok();
    assert_eq!(stage.status(&old), UnitStatus::Active);
    assert!(stage.conflicts("ada").iter().all(|conflict| conflict["status"] == "resolved"));
}

#[test]
fn what_was_not_compared_is_noted_told_and_done_behind_once() {
    let mut stage = Stage::detecting(&["ada", "bob"]);
    stage.detection = Detection::Deferred;
    let first = stage.say_more("ada", "The pump is in Lyon.", json!({}));
    assert_eq!(first.get("conflict_detection"), None, "there was nothing to be compared with");
    let old = stage.record("ada", OLD);
    let answer = stage.say_more("bob", NEW, json!({}));
    assert_eq!(
        (&answer["conflict_detection"], &answer["conflicts_detected"]),
        (&json!("deferred"), &json!([]))
    );
    assert_eq!(answer.get("warning"), None);
    assert_eq!(stage.events_of_last(), ["RECORD", "DETECTION_DEFERRED"]);
    stage.detection = Detection::TimedOut;
    let slow = stage.say_more("bob", "The well is dry.", json!({}));
    assert_eq!(
        (&slow["conflict_detection"], &slow["warning"]["code"]),
        (&json!("deferred"), &json!("DETECTION_TIMEOUT"))
    );
    // Compared with one of five: the rest is left for behind.
    stage.detection = Detection::Part(1);
    let part = stage.say_more("bob", "The market grows by 30% a year.", json!({}));
    assert_eq!((&part["conflict_detection"], &part["conflicts_detected"]), (&json!("deferred"), &json!([])));
    assert_eq!(
        stage.state.world.uncompared.iter().map(|(at, with)| (*at, *with)).collect::<Vec<_>>(),
        [(1, 0), (2, 0), (3, 0), (4, 1)]
    );
    assert_eq!(stage.rebuilt().world, stage.state.world);

    // A crash in between changes nothing: the log says what is left.
    stage.state = stage.rebuilt();
    assert_eq!(stage.catch_up_behind(2), ["CONFLICT_CREATED", "DETECTION_CAUGHT_UP"]);
    assert_eq!(stage.state.world.uncompared.len(), 2);
    let conflict = &stage.conflicts("ada")[0];
    assert_eq!((&conflict["unit_a"], &conflict["unit_b"]), (&json!(old), &answer["memory_unit_id"]));
    let (epoch, entry) = stage.kept.last_key_value().unwrap();
    assert_eq!(conflict["id"], format!("conflict-{epoch}"));
    assert_eq!(Entry::from_json(entry).unwrap().agent_id.as_ref(), "system");
    assert_eq!(stage.catch_up_behind(9), ["CONFLICT_CREATED", "CONFLICT_CREATED", "DETECTION_CAUGHT_UP"]);
    assert!(stage.state.world.uncompared.is_empty());
    assert_eq!(stage.catch_up_behind(9), [""; 0]);
    assert_eq!(stage.conflicts("ada").len(), 3);
    assert_eq!(stage.rebuilt().world, stage.state.world);
}

#[test]
fn conflicts_noticed_behind_are_told_of_like_others() {
    let mut stage = Stage::detecting(&["ada", "bob"]);
    stage.detection = Detection::Deferred;
    stage.record("ada", OLD);
    stage.record("bob", NEW);
    stage.catch_up_behind(9);
    let (_, text) = stage.kept.last_key_value().unwrap();
    let entry = Entry::from_json(text).unwrap();
    let told = notices(&stage.state.world, &entry).unwrap();
    let names: Vec<_> = told.told.iter().map(|notice| notice.event.name()).collect();
    assert_eq!(names, ["conflict.detected", "memory.contested", "memory.contested"]);
    assert_eq!(announced(&entry), told.told.iter().map(|notice| notice.event).collect());
    assert!(told.told.iter().all(|notice| &*notice.actor == "system"));
}

#[test]
fn a_check_compares_one_unit_and_a_scan_all_and_both_list_like_a_list() {
    let mut stage = Stage::with_agents(&["ada", "bob", "kim"]);
    let empty = stage.send("kim", "DETECT", json!({ "mode": "scan" })).ok();
    assert_eq!(empty["scan_coverage"], json!({ "units_scanned": 0, "new_conflicts_found": 0 }));
    let old = stage.record("ada", OLD);
    let pump = stage.record("ada", "The pump is open.");
    let new = stage.record("bob", NEW);
    stage.record("bob", "The pump is closed.");
    assert!(stage.conflicts("kim").is_empty(), "nobody looked");
    let check = |unit: &str| json!({ "mode": "check", "target_id": unit });
    // Whichever of the two is checked, the older one is a.
    let checked = stage.send("kim", "DETECT", check(&old)).ok();
    assert_eq!(checked["scan_coverage"], json!({ "units_scanned": 3, "new_conflicts_found": 1 }));
    let conflict = &list(&checked["conflicts"])[0];
    assert_eq!([&conflict["unit_a"], &conflict["unit_b"]], [&json!(old), &json!(new)]);
    assert_eq!(stage.events_of_last(), ["CONFLICT_CREATED"]);
    let again = stage.send("kim", "DETECT", check(&new)).ok();
    assert_eq!(again["scan_coverage"]["new_conflicts_found"], 0);
    assert_eq!(list(&again["conflicts"]).len(), 1, "the known one of this unit");
    let scanned = stage.send("kim", "DETECT", json!({ "mode": "scan" })).ok();
    assert_eq!(scanned["scan_coverage"], json!({ "units_scanned": 4, "new_conflicts_found": 1 }));
    assert_eq!(list(&scanned["conflicts"]).len(), 2);
    let filter = json!({ "mode": "scan", "filter": { "involving_agents": ["kim"] } });
    assert!(list(&stage.send("kim", "DETECT", filter).ok()["conflicts"]).is_empty());
    let filter = json!({ "mode": "check", "target_id": pump, "filter": { "status": ["resolved"] } });
    assert!(list(&stage.send("kim", "DETECT", filter).ok()["conflicts"]).is_empty());
}

#[test]
fn a_check_of_what_is_not_compared_says_why_and_changes_nothing() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let old = stage.record("ada", OLD);
    let new = stage.send("ada", "RECORD", related(NEW, &[["supersedes", &old]])).unit_id();
    let draft = stage.draft("ada", OLD);
    let gone = stage.record("ada", "The pump is in Lyon.");
    stage.give_up("ada", "RETRACT", &gone).ok();
    let entries = stage.kept.len();
    for (agent, target, code, advice) in [
        ("ada", "mem-999", ErrorCode::UnitNotFound, "Name a unit"),
        ("ada", "nonsense", ErrorCode::UnitNotFound, "Name a unit"),
        ("bob", &*draft, ErrorCode::UnitNotFound, "Name a unit"),
        ("ada", &*draft, ErrorCode::InvalidTransition, "COMMIT the draft"),
        ("bob", &*old, ErrorCode::InvalidTransition, &*format!("Check {new}")),
        ("bob", &*gone, ErrorCode::InvalidTransition, "Check a unit that stands"),
    ] {
        let refusal = stage.send(agent, "DETECT", json!({ "mode": "check", "target_id": target })).refusal();
        assert_eq!(refusal.code, code, "{target}");
        assert!(refusal.suggested_action.starts_with(advice), "{}", refusal.suggested_action);
        assert_eq!(refusal.details["key"], "target_id");
    }
    let refusal = stage.send("ada", "DETECT", json!({ "mode": "check" })).refusal();
    assert_eq!((refusal.code, &refusal.details["key"]), (ErrorCode::InvalidMessage, &json!("target_id")));
    assert_eq!(stage.kept.len(), entries);
}

#[test]
fn below_level_2_nothing_is_noticed() {
    let mut stage = Stage { detection: Detection::Whole, ..Stage::of_level(1) };
    stage.join("ada");
    stage.record("ada", OLD);
    assert_eq!(stage.say_more("ada", NEW, json!({}))["conflicts_detected"], json!([]));
    stage.detection = Detection::Deferred;
    assert_eq!(stage.say_more("ada", NEW, json!({})).get("conflict_detection"), None);
    assert!(stage.state.world.uncompared.is_empty());
}

#[test]
fn a_unit_that_clashes_with_everything_makes_few_conflicts() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    for _ in 0..30 {
        stage.record("ada", OLD);
    }
    stage.detection = Detection::Whole;
    assert_eq!(list(&stage.say_more("bob", NEW, json!({}))["conflicts_detected"]).len(), 8);
}

#[test]
fn large_texts_and_many_assumptions_are_read_in_part() {
    let mut stage = Stage::detecting(&["ada", "bob"]);
    stage.record("ada", OLD);
    let filler = "Nothing of this says much about anything at all. ".repeat(200);
    let hidden = format!("{filler}{NEW}");
    assert_eq!(stage.say_more("bob", &hidden, json!({}))["conflicts_detected"], json!([]));
    let assumptions: Vec<_> =
        (0..64).map(|at| if at == 8 { NEW.to_owned() } else { "word ".repeat(3_000) }).collect();
    let confidence = json!({ "score": 0.5, "reason": "r", "assumptions": assumptions });
    let answer = stage.say_more("bob", "We go to Lyon.", json!({ "confidence": confidence }));
    assert_eq!(answer["conflicts_detected"], json!([]), "the ninth assumption is not read");
}

#[test]
fn what_stands_beside_the_content_tells_units_apart() {
    let raised = |older: Value, newer: Value| {
        let mut stage = Stage::detecting(&["ada", "bob"]);
        stage.say_more("ada", "Growth is 23% a year.", older);
        stage.say_more("bob", "Growth is 14% a year.", newer);
        stage.state.world.conflicts.len()
    };
    let why = |purpose: &str| json!({ "intent": { "purpose": purpose } });
    let task = |task: &str| json!({ "intent": { "purpose": "to know", "task_id": task } });
    assert_eq!(
        raised(why("Size the market"), why("Check the pricing")),
        1,
        "everybody has reasons of his own"
    );
    assert_eq!(raised(why("Size the market in France"), why("Size the market in Spain")), 0);
    assert_eq!(raised(why("Figures of France"), why("Numbers for Spain")), 0);
    assert_eq!(raised(why("Size the market in France"), why("Size the market")), 1);
    assert_eq!(raised(why("release notes of tokio"), why("release notes of serde")), 0);
    assert_eq!(raised(task("t-1"), task("t-2")), 0);
    assert_eq!(raised(task("t-1"), task("t-1")), 1);
    assert_eq!(raised(task("t-1"), json!({})), 1);
    // A name in both contents is about the same thing, whatever the task.
    let mut stage = Stage::detecting(&["ada", "bob"]);
    stage.say_more("ada", "Growth of the Lyon market is 23% a year.", task("t-1"));
    stage.say_more("bob", "Growth of the Lyon market is 14% a year.", task("t-2"));
    assert_eq!(stage.state.world.conflicts.len(), 1);
}

#[test]
fn a_series_is_no_contradiction_but_a_dispute_of_three_is() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let say = |growth: u32| format!("The market grows by {growth}% a year.");
    for growth in [10, 20, 30] {
        stage.record("ada", &say(growth));
    }
    stage.detection = Detection::Whole;
    assert_eq!(list(&stage.say_more("bob", &say(40), json!({}))["conflicts_detected"]), Vec::<Value>::new());
    // Many who say the same are no series.
    let mut stage = Stage::detecting(&["ada", "bob"]);
    for _ in 0..4 {
        stage.record("ada", &say(10));
    }
    assert_eq!(list(&stage.say_more("bob", &say(20), json!({}))["conflicts_detected"]).len(), 4);
    let mut stage = Stage::detecting(&["ada", "bob"]);
    for (growth, conflicts) in [(10, 0), (20, 1), (30, 3)] {
        stage.record("bob", &say(growth));
        assert_eq!(stage.state.world.conflicts.len(), conflicts, "{growth}");
    }
}
