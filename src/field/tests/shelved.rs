//! Archived units whose texts are in the log alone: whatever is asked, the answer is the same as if they were not.

use proptest::prelude::*;
use serde_json::json;

use super::random::{keeping_stage_after, stage_after, step};
use super::*;

/// Two Fields that are told the same: one lets go of the texts of what is archived, one keeps them.
struct Twins {
    lets_go: Stage,
    keeps: Stage,
}

impl Twins {
    fn with_agents(agents: &[&str]) -> Self {
        let mut twins = Self { lets_go: Stage::new(), keeps: Stage { keeps: true, ..Stage::new() } };
        for agent in agents {
            twins.send(agent, "REGISTER", json!({ "id": agent, "role": agent })).unwrap();
        }
        twins
    }

    /// Sends a message to both; they answer the same.
    #[track_caller]
    fn send(&mut self, agent: &str, operation: &'static str, payload: Value) -> Result<Value, ErrorCode> {
        let answer = self.lets_go.send(agent, operation, payload.clone());
        let other = self.keeps.send(agent, operation, payload);
        assert_eq!((answer.epoch, &answer.outcome), (other.epoch, &other.outcome));
        assert!(self.lets_go.kept == self.keeps.kept, "both logs hold the same bytes");
        answer.outcome.map_err(|refusal| refusal.code)
    }

    fn unit(&mut self, agent: &str, unit: Value) -> String {
        text(&self.send(agent, "RECORD", unit).unwrap()["memory_unit_id"])
    }

    fn archive(&mut self, units: usize) {
        let payload = json!({ "strategy": "archive", "filter": { "types": ["finding"] } });
        let reply = self.send("ada", "COMPACT", payload).unwrap();
        assert_eq!(reply["units_affected"], units);
        assert_eq!(self.lets_go.state.world.shelved().count(), units, "their texts are gone");
        assert_eq!(self.keeps.state.world.shelved().count(), 0);
    }

    fn is_shelved(&self, unit: &str) -> bool {
        self.lets_go.slot(unit).is_shelved()
    }
}

/// A finding that says all that a unit can say.
fn full(content: &str, relations: &[[&str; 2]]) -> Value {
    let mut unit = related(content, relations);
    for relation in unit["relations"].as_array_mut().unwrap() {
        relation["description"] = json!("as was seen");
    }
    let confidence = json!({ "score": 0.75, "reason": "counted twice", "evidence": ["a list", "a map"],
        "assumptions": ["nobody lied"] });
    let intent = json!({ "purpose": "to know the market", "task_id": "t-1", "question": "How large is it?" });
    with(unit, json!({ "confidence": confidence, "intent": intent }))
}

/// Three findings: the third supports the first, which is bob's, and depends on the second.
fn three() -> (Twins, [String; 3]) {
    let mut twins = Twins::with_agents(&["ada", "bob"]);
    let a = twins.unit("bob", full("The market grows at 23 % a year.", &[]));
    let b = twins.unit("ada", full("Berlin asks for a permit.", &[]));
    let c = twins.unit("ada", full("The growth was measured.", &[["supports", &a], ["depends_on", &b]]));
    twins.archive(3);
    (twins, [a, b, c])
}

#[test]
fn every_read_of_archived_units_is_answered_as_ever() {
    let (mut twins, [a, b, c]) = three();
    let scope =
        |more: Value| with(json!({ "role": "reader", "include_archived": true, "max_units": 9 }), more);
    for more in [
        json!({}),
        json!({ "include_own": true, "max_tokens": 150 }),
        json!({ "include_own": true, "max_tokens": 4_000, "active_task_id": "t-1" }),
        json!({ "include_own": true, "session_id": "s-9" }),
    ] {
        for format in ["full", "summary", "ids_only"] {
            let payload = json!({ "scope": scope(more.clone()), "context_hint": "market permit", "format": format,
                "explain": true });
            twins.send("ada", "ATTUNE", payload).unwrap();
        }
    }
    for target in [&a, &b, &c] {
        for depth in ["summary", "detailed", "full_trace"] {
            let payload = json!({ "target_type": "memory_unit", "target_id": target, "depth": depth });
            twins.send("bob", "REPLAY", payload).unwrap();
        }
        assert_eq!(twins.lets_go.shown(target), twins.keeps.shown(target));
    }
    twins
        .send("bob", "REPLAY", json!({ "target_type": "task", "target_id": "t-1", "depth": "detailed" }))
        .unwrap();
    let filter =
        UnitFilter { limit: 9, task: Some("t-1".into()), agent: Some("ada".into()), ..UnitFilter::default() };
    let policy = Policy::default();
    let listed = |stage: &Stage| stage.filled().units_shown(&filter, None, &policy).unwrap();
    assert_eq!(listed(&twins.lets_go)["units"].as_array().unwrap().len(), 2);
    assert_eq!(listed(&twins.lets_go), listed(&twins.keeps));
    assert!(
        twins.is_shelved(&a) && twins.is_shelved(&b) && twins.is_shelved(&c),
        "looking brings nothing back"
    );
}

#[test]
fn who_needs_texts_that_are_not_there_says_which() {
    let (twins, [a, b, c]) = three();
    let (world, policy) = (&twins.lets_go.state.world, Policy::default());
    let numbers = [&a, &b, &c].map(|unit| twins.lets_go.unit_no(unit));
    assert_eq!(world.unit_shown(&b, None, &policy), Err(Wanting(vec![numbers[1]])));
    let all = UnitFilter { limit: 9, ..UnitFilter::default() };
    assert_eq!(world.units_shown(&all, None, &policy), Err(Wanting(numbers.to_vec())));
    let entry = Entry::from_json(twins.lets_go.kept.values().last().unwrap()).unwrap();
    assert_eq!(archived(world, &entry, 0, 1..3).unwrap_err(), Wanting(numbers[1..].to_vec()));
    assert!(document(world.slot(numbers[0])).is_none() && Statement::of(world.slot(numbers[0])).is_none());
}

#[test]
fn what_is_contradicted_comes_back_with_its_text() {
    let (mut twins, [a, b, c]) = three();
    let said = twins.unit("ada", related("The market shrinks.", &[["contradicts", &a]]));
    assert!(!twins.is_shelved(&a) && twins.is_shelved(&b), "what is contested is held whole");
    assert_eq!(&*twins.lets_go.slot(&a).said().content, "The market grows at 23 % a year.");
    let conflict = said.replace("mem", "conflict");
    let listed = twins.send("bob", "DETECT", json!({ "mode": "list" })).unwrap();
    assert!(text(&listed["conflicts"][0]["description"]).contains("The market grows at 23 %"), "{listed}");
    // A relation that says itself what the conflict is needs no text, and still brings it back.
    let described =
        json!({ "relations": [{ "type": "contradicts", "target_id": b, "description": "no permit" }] });
    twins.unit("bob", with(finding("Nobody asks for anything."), described));
    assert!(!twins.is_shelved(&b) && twins.is_shelved(&c));
    // The evidence of one side, and the unit on the shelf that supports it, count.
    let payload = json!({ "conflict_id": conflict, "strategy": "evidence_count", "resolution": { "rationale": "more" } });
    let merged = twins.send("ada", "MERGE", payload).unwrap();
    assert_eq!(
        (&merged["status"], &merged["conflict"]["resolution"]["winner_id"]),
        (&json!("resolved"), &json!(a))
    );
    super::invariants::check(&twins.lets_go.state.world);
    assert!(twins.lets_go.filled() == twins.lets_go.rebuilt().world);
}

#[test]
fn archived_units_are_superseded_retracted_and_purged_without_their_texts() {
    let (mut twins, [a, b, c]) = three();
    let relations = [["supersedes", &*b], ["elaborates", &*a]];
    let new = twins.unit("bob", related("Berlin asks for two permits.", &relations));
    assert_eq!(twins.lets_go.status(&b), UnitStatus::Superseded);
    let wrong = json!({ "memory_unit_id": a, "reason": "it was wrong" });
    assert_eq!(twins.send("ada", "RETRACT", wrong.clone()), Err(ErrorCode::Forbidden), "it is bob's");
    assert_eq!(
        twins.send("bob", "COMMIT", json!({ "memory_unit_id": a })),
        Err(ErrorCode::InvalidTransition)
    );
    twins.send("bob", "RETRACT", wrong).unwrap();
    assert!(twins.is_shelved(&a) && twins.is_shelved(&b) && twins.is_shelved(&c));
    for epoch in twins.lets_go.kept.keys() {
        let told = |stage: &Stage| {
            let entry = Entry::from_json(&stage.kept[epoch]).unwrap();
            all_notices(&stage.filled(), &entry)
                .iter()
                .map(|notice| format!("{notice:?}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(told(&twins.lets_go), told(&twins.keeps));
    }
    let payload = json!({ "strategy": "purge", "filter": { "status": ["superseded", "retracted"] } });
    let reply = twins.send("bob", "COMPACT", payload).unwrap();
    assert_eq!(reply["units_affected"], 2);
    let world = &twins.lets_go.state.world;
    assert_eq!(
        world.shelved().collect::<Vec<_>>(),
        [twins.lets_go.unit_no(&c)],
        "no purged unit is looked for"
    );
    let purged = world.find_ever(a.parse().unwrap()).unwrap();
    let told = Entry::from_json(&twins.lets_go.kept[&world.slot(purged).id.epoch]).unwrap();
    let Event::Recorded { unit, .. } = &told.events[0] else { panic!("a RECORD") };
    let mut later = world.clone();
    assert!(!later.give(purged, Arc::clone(unit)), "a purged unit takes nothing back from the log");
    assert!(later == *world && twins.lets_go.shown(&new).is_some());
}

#[test]
fn texts_leave_in_pieces_and_not_before_the_log_holds_them() {
    let mut stage = Stage { keeps: true, ..Stage::with_agents(&["ada"]) };
    let units: Vec<String> = (0..5).map(|number| stage.record("ada", &format!("Number {number}."))).collect();
    let before = stage.state.world.last_epoch;
    stage.touched("archive", json!({}));
    let after = stage.state.world.last_epoch;
    assert!(stage.state.shelve(9, before).is_empty(), "a crash could still take the COMPACT back");
    let whole = stage.state.world.clone();
    assert_eq!(stage.state.shelve(2, after).len(), 2);
    // One is needed again before its turn comes.
    stage.relate("ada", &[["contradicts", &units[3]]]).ok();
    let gone = stage.state.shelve(9, stage.state.world.last_epoch);
    let texts: Vec<_> = gone.iter().map(|unit| &*unit.content).collect();
    assert_eq!(texts, ["Number 2.", "Number 4."]);
    assert!(!stage.state.shelving.is_due(u64::MAX) && !stage.slot(&units[3]).is_shelved());
    assert_eq!(whole.shelved().count(), 0, "a view stays as it was");
    // What is not the unit is not taken for it.
    let (no, other) = (stage.unit_no(&units[0]), Arc::clone(&gone[0]));
    assert!(!stage.state.world.give(no, other) && stage.slot(&units[0]).is_shelved());
}

#[test]
fn what_the_field_itself_wrote_stays() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.record("ada", "The market grows.");
    stage.touched("summarize", json!({}));
    let synthesis = format!("mem-{}", stage.state.clock);
    stage.touched("archive", json!({ "types": ["synthesis"] }));
    assert_eq!(stage.state.world.archived.len(), 2);
    assert!(!stage.slot(&synthesis).is_shelved());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens, the log gets the same bytes whether texts stay in memory or not, and gives all of them back.
    #[test]
    fn letting_go_of_texts_changes_nothing(steps in prop::collection::vec(step(), 1..80)) {
        let (lets_go, keeps) = (stage_after(&steps), keeping_stage_after(&steps));
        prop_assert!(lets_go.kept == keeps.kept);
        prop_assert!(lets_go.state.world == keeps.state.world);
        let rebuilt = lets_go.rebuilt().world;
        prop_assert!(lets_go.filled() == rebuilt && rebuilt.shelved().next().is_none());
        let mut again = lets_go.rebuilt();
        again.shelve(usize::MAX, u64::MAX);
        let shelved = |world: &World| world.shelved().collect::<Vec<_>>();
        prop_assert_eq!(shelved(&again.world), shelved(&lets_go.state.world), "a start lets go of the same");
    }
}
