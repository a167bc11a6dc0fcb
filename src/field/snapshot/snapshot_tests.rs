//! States go out as bytes and come back as they were, and go on as if nothing had been.

use proptest::prelude::*;

use super::{Assembly, Part, Snapshot, State, World, read_part, snapshot_format};
use crate::field::tests::random::{Going, past, step};

/// The parts of a snapshot, as they were given.
pub(crate) fn parts(state: &State) -> Vec<(Part, Vec<u8>)> {
    let mut parts = Vec::new();
    let written = Snapshot::of(state).write::<()>(&mut |part, bytes| {
        parts.push((part, bytes.to_vec()));
        Ok(())
    });
    assert_eq!(written, Ok(()));
    parts
}

fn assembled(parts: &[(Part, Vec<u8>)]) -> Option<State> {
    let mut assembly = Assembly::default();
    for (part, bytes) in parts {
        assembly.take(read_part(*part, bytes)?)?;
    }
    assembly.finish()
}

/// A state through bytes and back.
fn returned(state: &State) -> State {
    assembled(&parts(state)).expect("what was written can be read")
}

fn some_state() -> State {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    past(&prop::collection::vec(step(), 120).new_tree(&mut runner).expect("steps").current()).1
}

#[test]
fn an_empty_state_comes_back() {
    let state = returned(&State::default());
    assert!(state.world == World::default() && state.ledger.is_empty() && state.clock == 0);
}

#[test]
fn a_part_that_is_missing_or_there_twice_is_noticed() {
    let whole = parts(&some_state());
    assert!(assembled(&whole).is_some());
    let kinds: std::collections::HashSet<Part> = whole.iter().map(|(part, _)| *part).collect();
    assert!(kinds.contains(&Part::Conflicts) && kinds.contains(&Part::Subscriptions), "{kinds:?}");
    for at in 0..whole.len() {
        let mut fewer = whole.clone();
        let (part, bytes) = fewer.remove(at);
        assert!(assembled(&fewer).is_none(), "without {part:?}");
        // What has a key and stands there twice is still one thing; whoever keeps the parts counts them.
        let keyed = !matches!(part, Part::Slots | Part::Chains | Part::Timeline | Part::Ledger | Part::Seen);
        let mut more = whole.clone();
        more.insert(at, (part, bytes));
        assert!(keyed || assembled(&more).is_none(), "twice {part:?}");
    }
}

#[test]
fn no_cut_and_no_wrong_byte_brings_it_down() {
    for (part, bytes) in parts(&some_state()) {
        for cut in 0..bytes.len().min(2_000) {
            // Cut between two values it still is a part, only not of this state.
            let _ = read_part(part, &bytes[..cut]);
            let mut flipped = bytes.clone();
            flipped[cut] ^= 0x55;
            let _ = read_part(part, &flipped);
        }
    }
}

#[test]
fn the_format_knows_its_lists() {
    assert_eq!(snapshot_format(), snapshot_format());
    for (at, part) in Part::ALL.iter().enumerate() {
        assert_eq!(*part as usize, at, "{part:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_state_comes_back(steps in prop::collection::vec(step(), 1..80)) {
        let (entries, state) = past(&steps);
        let back = returned(&state);
        prop_assert!(back.world == state.world, "the world");
        prop_assert!(back.ledger == state.ledger, "the ledger");
        prop_assert_eq!(back.clock, state.world.last_epoch);
        // What the log gives is the same.
        let mut from_log = State::default();
        entries.iter().for_each(|entry| crate::field::apply(&mut from_log, entry));
        prop_assert!(back.world == from_log.world && back.ledger == from_log.ledger);
        let seen = |state: &State| state.presence.all().iter().map(|here| here.last_seen).collect::<Vec<_>>();
        prop_assert_eq!(seen(&back), seen(&state));
    }

    #[test]
    fn what_came_back_goes_on_the_same(
        before in prop::collection::vec(step(), 1..50),
        after in prop::collection::vec(step(), 1..50),
    ) {
        let mut straight = Going::after(&before);
        let mut by_way_of_bytes = Going::after(&before);
        by_way_of_bytes.replace(returned);
        straight.go(&after);
        by_way_of_bytes.go(&after);
        prop_assert_eq!(straight.kept(), by_way_of_bytes.kept());
    }
}
