//! Random operations by several agents, whose connections come and go, against the model; and what must hold
//! of any sequence: the log gives the state back, and the same commands give the same bytes.

mod pair;
mod steps;

use proptest::prelude::*;
use serde_json::json;

use pair::Pair;
pub(crate) use steps::{Step, step};

use super::*;
use crate::protocol::Operation;

pub(super) const AGENTS: [&str; 4] = ["ada", "bob", "eve", "kim"];

fn prelude() -> Vec<Step> {
    vec![
        Step::Register { agent: 0, role: 0, over: None },
        Step::Register { agent: 1, role: 0, over: Some(1) },
        Step::Register { agent: 2, role: 1, over: Some(2) },
    ]
}

/// A Field after random operations.
pub(super) fn stage_after(steps: &[Step]) -> Stage {
    let mut pair = Pair::new();
    prelude().iter().chain(steps).for_each(|step| pair.take(step));
    pair.stage
}

/// The same where the texts of what is archived stay in memory.
pub(super) fn keeping_stage_after(steps: &[Step]) -> Stage {
    let mut pair = Pair::new();
    pair.stage.keeps = true;
    prelude().iter().chain(steps).for_each(|step| pair.take(step));
    pair.stage
}

/// The entries of a Field after random operations, as the log gives them back, and its state, with all texts.
pub(crate) fn past(steps: &[Step]) -> (Vec<Entry>, State) {
    let stage = stage_after(steps);
    let entries = stage.kept.values().map(|text| Entry::from_json(text).expect("what was kept can be read"));
    (entries.collect(), State { world: stage.filled(), ..stage.state.clone() })
}

/// A Field after random operations that goes on.
pub(crate) struct Going(Pair);

impl Going {
    pub fn after(steps: &[Step]) -> Self {
        let mut pair = Pair::new();
        prelude().iter().chain(steps).for_each(|step| pair.take(step));
        Self(pair)
    }

    /// Puts another state in the place of this one, as after a commit that failed: who is connected stays, and what
    /// the clock was.
    pub fn replace(&mut self, other: impl Fn(&State) -> State) {
        let state = &mut self.0.stage.state;
        let mut new = other(state);
        new.clock = new.clock.max(state.clock);
        std::mem::swap(&mut new.presence, &mut state.presence);
        *state = new;
    }

    pub fn go(&mut self, steps: &[Step]) {
        steps.iter().for_each(|step| self.0.take(step));
    }

    /// What the log holds.
    pub fn kept(&self) -> &BTreeMap<u64, String> {
        &self.0.stage.kept
    }
}

/// What the model is held against must come about: every way for a conflict to stand.
#[test]
fn random_operations_bring_conflicts_to_every_end() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut met = std::collections::BTreeSet::new();
    for _ in 0..300 {
        let steps = prop::collection::vec(step(), 80).new_tree(&mut runner).unwrap().current();
        for conflict in &stage_after(&steps).state.world.conflicts {
            let by = conflict.resolution.as_ref().map_or("", |resolution| resolution.strategy.name());
            met.insert((conflict.status.name(), by));
        }
    }
    let ends = [
        ("detected", &[""][..]),
        ("resolving", &[""]),
        ("escalated", &["authority", "confidence_weighted", "evidence_count", "human_escalation"]),
        ("resolved", &["authority", "confidence_weighted", "evidence_count", "human_escalation"]),
        ("resolved", &["last_write_wins", "synthesis", "vote"]),
    ];
    for (status, strategies) in ends {
        for by in strategies {
            assert!(met.contains(&(status, *by)), "{status} {by}");
        }
    }
}

/// Everything that may become of a unit while it waits for its embedding.
#[test]
fn random_operations_bring_waiting_units_to_every_end() {
    const WAITING: &str = "pending_enrichment";
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut met = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let steps = prop::collection::vec(step(), 80).new_tree(&mut runner).unwrap().current();
        let mut state = State::default();
        for text in stage_after(&steps).kept.values() {
            let before = state.world.clone();
            let entry = Entry::from_json(text).expect("what was kept can be read");
            apply(&mut state, &entry);
            let after = &state.world;
            for no in after.pending.iter().filter(|no| !before.pending.contains(*no)) {
                met.insert((entry.operation.map_or("none", Operation::name), after.slot(*no).status.name()));
            }
            for no in &before.pending {
                let (then, now) = (before.slot(*no).status.name(), after.slot(*no));
                met.insert((then, if now.purged { "purged" } else { now.status.name() }));
                if after.is_archived(*no) {
                    met.insert((then, "archived"));
                }
                if !after.pending.contains(no) && now.status == UnitStatus::Contested {
                    met.insert((then, "contested, and embedded"));
                }
            }
        }
    }
    let ends: [(&str, &[&str]); 5] = [
        ("RECORD", &[WAITING, "contested"]),
        ("COMMIT", &[WAITING, "contested"]),
        ("MERGE", &[WAITING]),
        (WAITING, &["active", "contested", "superseded", "retracted", "archived", "purged"]),
        ("contested", &[WAITING, "contested, and embedded", "superseded", "retracted"]),
    ];
    for (from, all) in ends {
        for to in all {
            assert!(met.contains(&(from, *to)), "{from} {to}: {met:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_field_agrees_with_the_model(steps in prop::collection::vec(step(), 1..80)) {
        let mut pair = Pair::new();
        for step in prelude().iter().chain(&steps) {
            let before = pair.stage.kept.clone();
            pair.take(step);
            prop_assert!(before.iter().all(|(epoch, text)| pair.stage.kept.get(epoch) == Some(text)), "nothing is rewritten");
            pair.compare();
            super::invariants::check(&pair.stage.state.world);
        }
        let rebuilt = pair.stage.rebuilt();
        prop_assert!(rebuilt.world == pair.stage.state.world, "the log gives the world back");
        prop_assert!(rebuilt.ledger == pair.stage.state.ledger, "the log gives the ledger back");
    }

    #[test]
    fn the_same_commands_give_the_same_bytes(steps in prop::collection::vec(step(), 1..40)) {
        prop_assert_eq!(stage_after(&steps).kept, stage_after(&steps).kept);
    }

    #[test]
    fn any_score_and_any_text_come_back_from_the_log_as_they_were(score in 0.0..=1.0f64, content in ".*\\S.*") {
        let mut stage = Stage::with_agents(&["ada"]);
        let confidence = json!({ "score": score, "reason": content });
        let unit = stage.send("ada", "RECORD", with(finding(&content), json!({ "confidence": confidence })));
        let unit = unit.unit_id();
        prop_assert!(stage.rebuilt().world == stage.state.world);
        prop_assert_eq!(stage.slot(&unit).said().confidence.as_ref().unwrap().score, Some(score));
        prop_assert_eq!(&*stage.slot(&unit).said().content, content.as_str());
    }
}
