//! Units whose embedding a model outside could not make (section 3): told of, live, and active at last.

use serde_json::json;

use super::*;
use crate::protocol::{Operation, Request};

impl Stage {
    /// A model outside is down.
    fn without_embeddings(agents: &[&str]) -> Self {
        let mut stage = Self::with_agents(agents);
        stage.embedded = Embedded::Failed("it is down".into());
        stage
    }

    /// Its embeddings were made at last; what the entry says happened.
    pub(super) fn enriched(&mut self, ids: &[&str]) -> Vec<String> {
        self.now += 1;
        let ids: Vec<_> = ids.iter().map(|id| id.parse().expect("an id")).collect();
        let Some(entry) = enriched(&self.state, Timestamp(self.now), &ids) else { return Vec::new() };
        self.enter(&entry);
        assert!(all_notices(&self.filled(), &entry).is_empty(), "it changes nothing for anybody");
        entry.events.iter().map(|event| event.event_type().to_owned()).collect()
    }

    /// The notices of the last operation, as name and status; what is announced agrees with them.
    fn told(&self) -> Vec<(String, Option<UnitStatus>)> {
        let (_, text) = self.kept.last_key_value().expect("an entry");
        let entry = Entry::from_json(text).expect("an entry");
        let told = all_notices(&self.filled(), &entry);
        assert_eq!(announced(&entry), told.iter().map(|notice| notice.event).collect());
        let status = |notice: &Notice| match &notice.subject {
            Subject::Unit { status, .. } => Some(*status),
            _ => None,
        };
        told.iter().map(|notice| (notice.event.to_string(), status(notice))).collect()
    }
}

fn named(event: &str, status: UnitStatus) -> (String, Option<UnitStatus>) {
    (event.to_owned(), Some(status))
}

#[test]
fn a_pending_unit_is_told_of_as_pending_and_its_turn_is_no_news() {
    let mut stage = Stage::without_embeddings(&["ada", "bob"]);
    let reply = stage.send("ada", "RECORD", finding("The pump leaks")).ok();
    assert_eq!(reply["warning"]["code"], "ENRICHMENT_FAILED");
    let unit = text(&reply["memory_unit_id"]);
    assert_eq!(stage.status(&unit), UnitStatus::PendingEnrichment);
    assert_eq!(stage.told(), [named("memory.recorded", UnitStatus::PendingEnrichment)]);
    // Contested at once counts for more; the other unit is pending behind its conflict.
    let other = stage.send("bob", "RECORD", related("It does not", &[["contradicts", &unit]])).unit_id();
    let contested = UnitStatus::Contested;
    let told = stage.told();
    assert_eq!(told[0], named("memory.recorded", contested));
    assert_eq!(told[2..], [named("memory.contested", contested), named("memory.contested", contested)]);
    assert_eq!(stage.enriched(&[&unit, &unit]), ["ENRICHED", "ENRICHED"]);
    assert_eq!([stage.status(&unit), stage.status(&other)], [contested; 2]);
    assert_eq!(stage.enriched(&[&unit]), [""; 0], "once is enough");
    stage.give_up("bob", "RETRACT", &other).ok();
    assert_eq!(stage.status(&unit), UnitStatus::Active);
    assert_eq!(stage.rebuilt().world, stage.state.world);
}

#[test]
fn a_synthesis_waits_for_its_embedding_as_any_unit_does() {
    for fails in [true, false] {
        let mut stage = Stage::with_agents(&["ada", "bob"]);
        let one = stage.record("ada", "The pump leaks");
        let reply = stage.send("bob", "RECORD", related("It does not", &[["contradicts", &one]])).ok();
        let conflict = text(&reply["conflicts_detected"][0]);
        if fails {
            stage.embedded = Embedded::Failed("it is down".into());
        }
        let merged =
            stage.merge("ada", &conflict, "synthesis", json!({ "synthesis": "It leaks at night" })).ok();
        let made = text(&merged["side_effects"]["new_unit_id"]);
        assert_eq!(merged["warning"]["code"] == "ENRICHMENT_FAILED", fails, "{merged}");
        let status = if fails { UnitStatus::PendingEnrichment } else { UnitStatus::Active };
        assert_eq!(stage.status(&made), status);
        assert_eq!(stage.told()[0], named("memory.recorded", status));
        assert_eq!(stage.enriched(&[&made]).len(), usize::from(fails));
        assert_eq!(stage.status(&made), UnitStatus::Active);
        assert_eq!(stage.rebuilt().world, stage.state.world);
        // What is told beforehand of a MERGE is what it then does.
        let no = stage.state.world.find(made.parse().unwrap()).unwrap();
        let unit = stage.state.world.slot(no).said();
        let before = stage.rebuilt_as_of(stage.state.world.slot(no).epoch - 1).world;
        let payload = json!({ "conflict_id": conflict, "strategy": "synthesis",
            "resolution": { "rationale": "so it is", "synthesis": "It leaks at night" } });
        let Value::Object(payload) = payload else { panic!("an object") };
        let request = Request::read(Operation::Merge, "ada", payload, &stage.policy.limits, 3);
        let Ok(Request::Merge(request)) = request else { panic!("a good request") };
        let Writes::Unit(content, intent) = writes(&before, &request) else { panic!("a unit") };
        assert_eq!((content, intent), (&*unit.content, unit.intent.clone()));
        assert!(matches!(writes(&stage.state.world, &request), Writes::Nothing), "it is resolved");
        assert!(matches!(writes(&World::default(), &request), Writes::Unknown));
    }
}

#[test]
fn a_merge_that_makes_no_unit_leaves_nothing_pending() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let one = stage.record("ada", "The pump leaks");
    let reply = stage.send("bob", "RECORD", related("It does not", &[["contradicts", &one]])).ok();
    stage.embedded = Embedded::Failed("it is down".into());
    let conflict = text(&reply["conflicts_detected"][0]);
    let merged = stage.merge("ada", &conflict, "last_write_wins", json!({})).ok();
    assert!(merged.get("warning").is_none());
    assert!(stage.state.world.pending.is_empty());
}
