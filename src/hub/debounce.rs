//! At least so long between two notifications for the same entity, and the last state always arrives.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use crate::field::Concern;
use crate::limits::DEBOUNCED_MAX;
use crate::protocol::Cursor;

/// What a debounced subscription remembers; `T` is what is held back.
pub(super) struct Debounce<T> {
    pause: Duration,
    /// Entities that were told of within the pause, by when they may be told of again.
    quiet: VecDeque<(Instant, Concern)>,
    held: HashMap<Concern, Option<Held<T>>>,
    /// By the place of what is held back: the place before it.
    before: BTreeMap<Cursor, Cursor>,
}

struct Held<T> {
    at: Cursor,
    what: T,
}

/// What is to be done with something new.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Now<T> {
    /// Tell it.
    Tell(T),
    /// It is held back until its time, and whatever was held back for the same entity is forgotten.
    Held,
    /// There is no room: come again with it then.
    Full(Instant, T),
}

impl<T> Debounce<T> {
    pub fn new(pause_ms: u64) -> Self {
        Self {
            pause: Duration::from_millis(pause_ms),
            quiet: VecDeque::new(),
            held: HashMap::new(),
            before: BTreeMap::new(),
        }
    }

    /// Changes the pause. A shorter one counts for what is held back, too: else it, and all that is told later, would
    /// wait for an end that nobody wants any more.
    pub fn set_pause(&mut self, pause_ms: u64, now: Instant) {
        self.pause = Duration::from_millis(pause_ms);
        for (due, _) in &mut self.quiet {
            *due = (*due).min(now + self.pause);
        }
    }

    /// Something new at a place; `before` is the last place that was passed before it.
    pub fn offer(&mut self, concern: Concern, what: T, at: Cursor, before: Cursor, now: Instant) -> Now<T> {
        if let Some(held) = self.held.get_mut(&concern) {
            if let Some(older) = held.replace(Held { at, what }) {
                self.before.remove(&older.at);
            }
            self.before.insert(at, before);
            return Now::Held;
        }
        if self.pause.is_zero() {
            return Now::Tell(what);
        }
        if let Some((due, _)) = self.quiet.front().filter(|_| self.quiet.len() >= DEBOUNCED_MAX) {
            return Now::Full(*due, what);
        }
        self.quiet.push_back((now + self.pause, concern.clone()));
        self.held.insert(concern, None);
        Now::Tell(what)
    }

    /// The next that was held back and whose time has come.
    pub fn due(&mut self, now: Instant) -> Option<T> {
        while self.quiet.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, concern)) = self.quiet.pop_front() else { break };
            match self.held.get_mut(&concern).and_then(Option::take) {
                Some(Held { at, what }) => {
                    self.before.remove(&at);
                    self.quiet.push_back((now + self.pause, concern));
                    return Some(what);
                }
                None => drop(self.held.remove(&concern)),
            }
        }
        None
    }

    /// When to look again, if anything is held back.
    pub fn next(&self) -> Option<Instant> {
        if self.before.is_empty() { None } else { self.quiet.front().map(|(due, _)| *due) }
    }

    /// The last place before everything that is held back.
    pub fn safe(&self) -> Option<Cursor> {
        self.before.first_key_value().map(|(_, before)| *before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str) -> Concern {
        Concern::Agent(id.into())
    }

    const fn at(epoch: u64) -> Cursor {
        Cursor::new(epoch, 0)
    }

    #[test]
    fn the_last_state_arrives_after_the_pause() {
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        let mut debounce = Debounce::new(100);
        assert_eq!(debounce.offer(agent("a"), 1, at(1), at(0), start), Now::Tell(1));
        assert_eq!(debounce.safe(), None);
        assert_eq!(debounce.offer(agent("a"), 2, at(2), at(1), ms(10)), Now::Held);
        assert_eq!(debounce.offer(agent("b"), 3, at(3), at(2), ms(20)), Now::Tell(3));
        assert_eq!(debounce.safe(), Some(at(1)));
        assert_eq!(debounce.offer(agent("a"), 4, at(4), at(3), ms(30)), Now::Held);
        assert_eq!(debounce.safe(), Some(at(3)), "what was replaced holds nothing back");
        assert_eq!((debounce.due(ms(99)), debounce.next()), (None, Some(ms(100))));
        assert_eq!((debounce.due(ms(100)), debounce.safe()), (Some(4), None));
        assert_eq!(debounce.offer(agent("a"), 5, at(5), at(4), ms(150)), Now::Held);
        assert_eq!((debounce.due(ms(199)), debounce.due(ms(200))), (None, Some(5)));
        assert_eq!(debounce.due(ms(1_000)), None);
        assert!(debounce.held.is_empty() && debounce.quiet.is_empty());
    }

    #[test]
    fn a_shorter_pause_counts_at_once_and_a_longer_one_from_now_on() {
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        let mut debounce = Debounce::new(86_400_000);
        assert_eq!(debounce.offer(agent("a"), 1, at(1), at(0), start), Now::Tell(1));
        assert_eq!(debounce.offer(agent("a"), 2, at(2), at(1), start), Now::Held);
        debounce.set_pause(100, ms(10));
        assert_eq!(debounce.offer(agent("b"), 3, at(3), at(2), ms(20)), Now::Tell(3));
        assert_eq!(debounce.offer(agent("b"), 4, at(4), at(3), ms(30)), Now::Held);
        assert_eq!((debounce.due(ms(109)), debounce.due(ms(110))), (None, Some(2)));
        assert_eq!((debounce.due(ms(119)), debounce.due(ms(120))), (None, Some(4)));
        debounce.set_pause(1_000, ms(130));
        assert_eq!(debounce.offer(agent("a"), 5, at(5), at(4), ms(140)), Now::Held);
        assert_eq!((debounce.due(ms(209)), debounce.due(ms(210))), (None, Some(5)), "as it was promised");
        assert_eq!(debounce.offer(agent("a"), 6, at(6), at(5), ms(300)), Now::Held);
        assert_eq!((debounce.due(ms(1_209)), debounce.due(ms(1_210))), (None, Some(6)));
        debounce.set_pause(0, ms(1_300));
        assert_eq!(debounce.due(ms(1_300)), None);
        assert_eq!(debounce.offer(agent("a"), 7, at(7), at(6), ms(1_300)), Now::Tell(7));
    }

    #[test]
    fn a_full_memory_waits_for_the_oldest() {
        let start = Instant::now();
        let mut debounce = Debounce::new(100);
        for number in 0..DEBOUNCED_MAX {
            let told = debounce.offer(agent(&number.to_string()), (), at(1), at(0), start);
            assert_eq!(told, Now::Tell(()));
        }
        let due = start + Duration::from_millis(100);
        assert_eq!(debounce.offer(agent("one more"), (), at(2), at(1), start), Now::Full(due, ()));
        assert_eq!(
            debounce.offer(agent("7"), (), at(2), at(1), start),
            Now::Held,
            "a known one has its room"
        );
        assert_eq!(debounce.due(due), Some(()));
        assert_eq!(debounce.offer(agent("one more"), (), at(3), at(2), due), Now::Tell(()));
    }
}
