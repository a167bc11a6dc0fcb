//! A follower at any place, fed from memory and from the log in any mix: exactly what comes after its place.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::Index;
use tokio::runtime::Runtime;

use super::super::follower::{Follower, Gate, Heard, Step};
use super::*;
use crate::field::tests::random::{past, step};

/// Of no connection: nothing is held back.
const OPEN: Gate = Gate { connection: None, replied: 0 };

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime")
    })
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let bytes = prop_oneof![Just(usize::MAX), 600..6_000usize];
    (0..8usize, bytes.clone(), 1..24u64, bytes, 1..4usize).prop_map(
        |(operations, bytes, page_epochs, page_bytes, pages)| Bounds {
            operations,
            bytes,
            page_epochs,
            page_bytes,
            pages,
        },
    )
}

/// One follower's way: what it was told, and what it should have been.
struct Way {
    follower: Follower,
    place: Cursor,
    listener: Listener,
    told: Vec<Due>,
    done: bool,
}

impl Way {
    /// Lets it take a step; true where it waits or has ended.
    fn step(&mut self, feed: &Feed, mut between: impl FnMut()) -> bool {
        match self.follower.step(feed, OPEN, Instant::now(), |_| Heard::Tell) {
            Step::Push(push) => {
                assert_eq!(push.cursor(), told(&push).0, "undebounced, it resumes at its own place");
                self.told.push(told(&push));
            }
            Step::Fetch { after, goes_on } => {
                let reading = async { feed.page(after, goes_on).await };
                let page = runtime().block_on(reading).expect("memory can be read");
                // Whatever happens while it reads.
                between();
                self.follower.give_page(page);
            }
            Step::Again => {}
            Step::Wait(None) => return true,
            Step::Ended => {
                self.done = true;
                return true;
            }
            Step::Unread(error) => panic!("memory can be read: {error}"),
            Step::Wait(Some(_)) | Step::Hold => panic!("nothing is debounced, nobody is replied to"),
        }
        false
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_gets_exactly_what_comes_after_its_place(
        steps in prop::collection::vec(step(), 1..80),
        bounds in bounds(),
        picks in prop::collection::vec((any::<Index>(), any::<Index>()), 4),
        turns in prop::collection::vec((0..5usize, 0..4usize, 1..12usize), 1..60),
    ) {
        let (entries, last) = past(&steps);
        let entries = undebounced(entries);
        let places = places(&entries, &last.world);
        let mut listeners = subscribers(&entries);
        listeners.push(observer(EventName::ALL));
        listeners.push(observer(&[EventName::AgentJoined, EventName::ConflictResolved]));

        let mut rig = Rig::new(bounds);
        let mut ways: Vec<_> = picks
            .iter()
            .map(|(listener, place)| {
                let (listener, place) = (listener.get(&listeners).clone(), *place.get(&places));
                let follower = Follower::new(&rig.feed, listener.clone(), place);
                Way { follower, place, listener, told: Vec::new(), done: false }
            })
            .collect();
        let mut unpublished = &entries[..];
        let mut publish = |rig: &mut Rig, count: usize| {
            let (now, later) = unpublished.split_at(count.min(unpublished.len()));
            unpublished = later;
            if !now.is_empty() {
                rig.publish(now);
            }
        };
        for (count, way, often) in turns {
            publish(&mut rig, count);
            let feed = Arc::clone(&rig.feed);
            for _ in 0..often {
                ways[way].step(&feed, || publish(&mut rig, 1));
            }
        }
        publish(&mut rig, usize::MAX);
        for way in &mut ways {
            let mut steps = 0;
            while !way.step(&rig.feed, || {}) {
                steps += 1;
                assert!(steps < 10_000, "it comes to an end");
            }
            let due = due(&entries, &last.world, &way.listener, way.place);
            // What it was told of units that were purged later it was told in time.
            way.told.retain(|told| !is_gone(&last.world, told));
            prop_assert_eq!(&way.told, &due, "{:?} after {}", way.listener, way.place);
            if !way.done {
                prop_assert!(way.follower.safe().epoch >= last.world.last_epoch, "it knows that it has seen all");
            }
        }
    }

    /// What a debounced follower is told: no two of the same entity within the pause, each entity's last state in the
    /// end; and whoever resumes at the place of any of its pushes misses nothing.
    #[test]
    fn debounced_it_tells_the_last_state_and_its_places_are_safe(
        steps in prop::collection::vec(step(), 1..80),
        pause in 1..200u64,
        turns in prop::collection::vec((0..4usize, 0..80u64, 1..6usize), 1..120),
    ) {
        let (entries, last) = past(&steps);
        let mut rig = Rig::new(Bounds { operations: 3, page_epochs: 16, ..Bounds::default() });
        let listener = Listener::observer(subscription("watch", EventName::ALL, pause));
        let mut follower = Follower::new(&rig.feed, listener.clone(), Cursor::default());
        let due = due(&entries, &last.world, &listener, Cursor::default());
        let (start, mut now, mut at) = (Instant::now(), Duration::ZERO, 0);
        let mut pushes: Vec<(Duration, Cursor, Due)> = Vec::new();
        // The turns, and then as many as it takes, a pause apart.
        let rest = std::iter::repeat_n((4, pause, usize::MAX), entries.len() + due.len() + 2);
        for (count, passes, often) in turns.into_iter().chain(rest) {
            let until = entries.len().min(at + count);
            if until > at {
                rig.publish(&entries[at..until]);
                at = until;
            }
            now += Duration::from_millis(passes);
            for _ in 0..often {
                match follower.step(&rig.feed, OPEN, start + now, |_| Heard::Tell) {
                    Step::Push(push) => pushes.push((now, push.cursor(), told(&push))),
                    Step::Again => {}
                    Step::Fetch { after, goes_on } => {
                        let reading = async { rig.feed.page(after, goes_on).await };
                        follower.give_page(runtime().block_on(reading).expect("memory can be read"));
                    }
                    Step::Wait(until) => {
                        prop_assert!(until.is_none_or(|until| until > start + now), "it waits for the future");
                        break;
                    }
                    Step::Unread(error) => panic!("memory can be read: {error}"),
                    Step::Hold | Step::Ended => panic!("nobody is replied to, and nothing ends it"),
                }
            }
        }
        prop_assert!(pushes.is_sorted_by_key(|(_, cursor, _)| *cursor), "places never go back");
        for (nth, (when, cursor, (place, _, concern))) in pushes.iter().enumerate() {
            let before = pushes[..nth].iter().rev().find(|(_, _, (_, _, other))| other == concern);
            if let Some((earlier, _, (older, ..))) = before {
                prop_assert!(*when - *earlier >= Duration::from_millis(pause), "{:?} too soon", concern);
                prop_assert!(older < place, "an entity's states come in order");
            }
            // Whatever stands at or before its place was told, or a later state of the same entity was, or comes after it.
            for (passed, _, concern) in due.iter().filter(|(passed, ..)| passed <= cursor) {
                let told = |(_, _, (place, _, other)): &(_, _, Due)| other == concern && place >= passed;
                let comes = |(place, _, other): &Due| other == concern && place > cursor;
                let safe = pushes[..=nth].iter().any(told) || due.iter().any(comes);
                prop_assert!(safe, "{} is lost when resumed after {}", passed, cursor);
            }
        }
        for (place, _, concern) in &due {
            let told = |(_, _, (later, _, other)): &(_, _, Due)| other == concern && later >= place;
            prop_assert!(pushes.iter().any(told), "the last state of {:?} never came", concern);
        }
    }
}
