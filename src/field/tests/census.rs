//! What the GET endpoints show of a world (wire, section 1).

use proptest::prelude::*;
use serde_json::json;

use super::random::{stage_after, step};
use super::*;

fn page(stage: &Stage, filter: &UnitFilter, asker: Option<&str>) -> (Vec<String>, Option<String>) {
    let shown = stage.filled().units_shown(filter, asker, &stage.policy).unwrap();
    let units = list(&shown["units"]).iter().map(|unit| text(&unit["id"])).collect();
    (units, shown["cursor"].as_str().map(str::to_owned))
}

/// All pages of a listing, one after the other.
fn pages(stage: &Stage, mut filter: UnitFilter, asker: Option<&str>) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let (units, cursor) = page(stage, &filter, asker);
        assert!(units.len() <= filter.limit && (!units.is_empty() || cursor.is_none()));
        all.extend(units);
        let Some(cursor) = cursor else { return all };
        let place = if filter.newest_first { &mut filter.before } else { &mut filter.after };
        *place = Some(cursor.parse().expect("a cursor"));
    }
}

#[test]
fn units_are_listed_in_the_order_of_their_commits_and_filtered_by_every_key() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let late = stage.draft("ada", "late");
    let decision = json!({ "type": "decision", "intent": { "purpose": "p", "task_id": "t" } });
    let message = saying("bob", "RECORD", with(finding("x"), decision)).session("s");
    let early = stage.say(message).unit_id();
    stage.commit("ada", &late).ok();
    let all = UnitFilter { limit: 9, ..UnitFilter::default() };
    let of_kind = Some(crate::protocol::MemoryType::Decision);
    let (late, early) = (late.as_str(), early.as_str());
    for (filter, expected) in [
        (all.clone(), vec![early, late]),
        (UnitFilter { kind: of_kind, ..all.clone() }, vec![early]),
        (UnitFilter { agent: Some("ada".into()), ..all.clone() }, vec![late]),
        (UnitFilter { task: Some("t".into()), ..all.clone() }, vec![early]),
        (UnitFilter { session: Some("s".into()), ..all.clone() }, vec![early]),
        (UnitFilter { status: Some(UnitStatus::Active), ..all.clone() }, vec![early, late]),
        (UnitFilter { status: Some(UnitStatus::Draft), ..all.clone() }, vec![]),
        (UnitFilter { kind: of_kind, agent: Some("ada".into()), ..all.clone() }, vec![]),
    ] {
        assert_eq!(
            page(&stage, &filter, Some("ada")),
            (expected.iter().map(ToString::to_string).collect(), None)
        );
    }
    let first = UnitFilter { limit: 1, ..all };
    let epoch = stage.slot(early).epoch;
    assert_eq!(page(&stage, &first, None), (vec![early.to_owned()], Some(format!("{epoch}.0"))));
}

#[test]
fn the_status_counts_units_agents_and_conflicts() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.record("ada", "x");
    stage.relate("ada", &[["contradicts", &unit]]).ok();
    stage.draft("ada", "draft");
    stage.send("bob", "DEREGISTER", json!({ "agent_id": "bob" })).ok();
    let status = stage.state.world.status();
    assert_eq!(status["units"]["contested"], 2);
    assert_eq!((&status["units"]["draft"], &status["units"]["active"]), (&json!(1), &json!(0)));
    assert_eq!((&status["agents"], &status["agents_active"]), (&json!(2), &json!(1)));
    assert_eq!((&status["conflicts"], &status["conflicts_unresolved"]), (&json!(1), &json!(1)));
    assert_eq!(status["log_entries"], json!(stage.kept.len()));
}

#[test]
fn conflicts_are_the_unresolved_ones_unless_a_status_is_named() {
    use crate::protocol::ConflictStatus::{Detected, Resolved};
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.record("ada", "x");
    let rival = stage.relate("ada", &[["contradicts", &unit]]).unit_id();
    stage.relate("ada", &[["contradicts", &unit]]).ok();
    stage.give_up("ada", "RETRACT", &rival).ok();
    for (status, count) in [(&[][..], 1), (&[Detected], 1), (&[Resolved], 1), (&[Detected, Resolved], 2)] {
        assert_eq!(list(&stage.state.world.conflicts_shown(status)["conflicts"]).len(), count);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_of_any_size_make_up_the_whole_without_gap_or_repeat(
        steps in prop::collection::vec(step(), 10..60), limit in 1..5usize,
        status in prop::option::of(prop::sample::select(UnitStatus::ALL)),
    ) {
        let stage = stage_after(&steps);
        for asker in [Some("ada"), None] {
            let filter = UnitFilter { limit, status, ..UnitFilter::default() };
            let whole = UnitFilter { limit: 1_000, ..filter.clone() };
            let (expected, cursor) = page(&stage, &whole, asker);
            prop_assert!(cursor.is_none());
            // Syntheses of one COMPACT share an epoch.
            let place = |unit: &String| (stage.slot(unit).epoch, stage.slot(unit).id.number);
            let places: Vec<_> = expected.iter().map(place).collect();
            prop_assert!(places.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(pages(&stage, filter.clone(), asker), expected.clone());
            let backwards = UnitFilter { newest_first: true, ..filter };
            prop_assert_eq!(pages(&stage, backwards, asker), expected.into_iter().rev().collect::<Vec<_>>());
        }
    }
}
