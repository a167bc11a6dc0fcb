//! One subscription's way through the stream, wherever it is attached: the one delivery engine under WebSocket pushes,
//! event streams and polling.
//!
//! A follower has a place and takes what comes after it, from memory or from the log, at its reader's pace. There is
//! no state "live" or "catching up" that could flip at the wrong moment: only the place.

use std::sync::Arc;
use std::time::Instant;

use super::debounce::{Debounce, Now};
use super::feed::{After, Feed, Stretch};
use super::profiles::Known;
use super::push::{Labels, Push};
use super::told::{Committed, Told};
use crate::field::{Event, Listener, Turn};
use crate::log::LogError;
use crate::protocol::{Cursor, EventName, EventSet};

/// Operations that are taken at a time.
const STRIDE: usize = 64;
/// Operations and notices that are gone through before others have their turn: what nobody is told of takes time too.
const LOOKS: usize = 64;

/// One subscription on its way.
pub(super) struct Follower {
    listener: Listener,
    /// Nobody in particular finds nothing less relevant.
    profile: Option<Arc<Known>>,
    labels: Arc<Labels>,
    /// The last place that was passed.
    place: Cursor,
    /// Every operation up to this epoch was passed.
    passed: u64,
    taken: Option<Taken>,
    /// Where the last page of the log ended.
    page_end: Option<u64>,
    /// Not before then the log is read again.
    reads_again: Option<Instant>,
    debounce: Option<Debounce<Push>>,
    /// The place after which it listens for resolved conflicts, if it does.
    resolved_after: Option<Cursor>,
    /// It has seen all there was, and waits for its bell.
    waits: bool,
    /// Its subscription has ended.
    ended: bool,
}

/// Operations at hand, and how far they were gone through.
struct Taken {
    stretch: Stretch,
    operation: usize,
    /// Which page of its notices, once one was looked at, and which of them.
    page: Option<usize>,
    notice: usize,
    /// Of how many purges that page knew.
    purges: usize,
    /// Whether what the operation changes about the listener was noted.
    noted: bool,
}

impl Taken {
    fn next_operation(&mut self) {
        (self.operation, self.page, self.notice, self.noted) = (self.operation + 1, None, 0, false);
    }
}

/// What becomes of a notice that a subscription asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is told.
    Tell,
    /// It is nothing for this one.
    Leave,
    /// That is not known yet: not before others have come as far.
    Later,
}

/// What comes next.
pub(super) enum Step {
    /// Push this.
    Push(Push),
    /// Nothing, until the bell rings or that time has come.
    Wait(Option<Instant>),
    /// What stands in the log after this epoch; where it goes on, the last page ended exactly there.
    Fetch { after: u64, goes_on: bool },
    /// The log could not be read for texts that come next: whoever drives this says when it is tried again.
    Unread(LogError),
    /// More, once others had their turn.
    Again,
    /// Nothing before something else: the reply to an operation of the reader's own connection, or another follower.
    Hold,
    /// Nothing any more.
    Ended,
}

/// How far the reader's own connection is: operations of its own are pushed only once they are replied to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gate {
    pub connection: Option<u64>,
    pub replied: u64,
}

impl Gate {
    fn holds(&self, operation: &Committed) -> bool {
        self.connection.is_some() && operation.origin == self.connection && operation.epoch() > self.replied
    }
}

impl Follower {
    /// A follower that is told everything after `place`.
    pub fn new(feed: &Feed, listener: Listener, place: Cursor) -> Self {
        let profile = listener.agent.as_ref().and_then(|agent| {
            let world = feed.world();
            let known = &world.agent(world.agent_no(agent)?).agent;
            Some(feed.profiles.of(&known.role, &known.interests))
        });
        let labels = Arc::new(Labels::of(&listener));
        let debounce = debounce(&listener);
        // The operation at the place may have more to tell.
        let passed = place.epoch.saturating_sub(1);
        let resolved_after = hears_resolved(&listener).then_some(place);
        Self {
            listener,
            profile,
            labels,
            place,
            passed,
            taken: None,
            page_end: None,
            reads_again: None,
            debounce,
            resolved_after,
            waits: false,
            ended: false,
        }
    }

    /// The subscription.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// What it listens for; nothing once it has ended.
    pub fn events(&self) -> EventSet {
        if self.ended { EventSet::NONE } else { self.listener.events() }
    }

    /// The last place at or before which nothing is held back: where to resume.
    pub fn safe(&self) -> Cursor {
        self.debounce.as_ref().and_then(Debounce::safe).unwrap_or(self.place)
    }

    /// Puts a page of the log at hand.
    pub fn give_page(&mut self, page: Stretch) {
        (self.page_end, self.reads_again) = (Some(page.through), None);
        self.give(page);
    }

    /// The log could not be read; it is left in peace until then.
    pub fn read_again_at(&mut self, then: Instant) {
        self.reads_again = Some(then);
    }

    fn give(&mut self, stretch: Stretch) {
        self.waits = false;
        self.taken = Some(Taken { stretch, operation: 0, page: None, notice: 0, purges: 0, noted: false });
    }

    /// Its bell has rung: there may be something for it, which it must look at itself.
    pub fn wake(&mut self) {
        self.waits = false;
    }

    /// Passes over everything up to an epoch, which is known to concern nobody who waits.
    pub fn skip(&mut self, through: u64) {
        if self.waits && through > self.passed {
            self.pass(Cursor::new(through, 0));
            self.passed = through;
        }
    }

    /// The last place that was passed.
    pub fn place(&self) -> Cursor {
        self.place
    }

    /// The place after which it listens for resolved conflicts, if it does at its place.
    pub fn hears_resolved_after(&self) -> Option<Cursor> {
        self.resolved_after.filter(|_| !self.ended)
    }

    /// The next step. `heard` decides about each notice that the subscription asks for.
    pub fn step(&mut self, feed: &Feed, gate: Gate, now: Instant, heard: impl Fn(&Told) -> Heard) -> Step {
        if self.ended {
            return Step::Ended;
        }
        if let Some(mut push) = self.debounce.as_mut().and_then(|debounce| debounce.due(now)) {
            push.cursor = self.safe();
            return Step::Push(push);
        }
        let due = |this: &Self| this.debounce.as_ref().and_then(Debounce::next);
        for _ in 0..LOOKS {
            let Some(taken) = self.taken.as_mut() else {
                match feed.after(self.passed, STRIDE) {
                    After::Here(stretch) => self.give(stretch),
                    After::Nothing => {
                        self.waits = true;
                        return Step::Wait(due(self));
                    }
                    After::InLog => {
                        self.waits = false;
                        if let Some(then) = self.reads_again.filter(|then| *then > now) {
                            return Step::Wait(due(self).into_iter().chain([then]).min());
                        }
                        let goes_on = self.page_end == Some(self.passed);
                        return Step::Fetch { after: self.passed, goes_on };
                    }
                }
                continue;
            };
            let Some(operation) = taken.stretch.operations.get(taken.operation) else {
                let through = taken.stretch.through;
                self.pass(Cursor::new(through, 0));
                self.passed = through;
                self.taken = None;
                continue;
            };
            if operation.epoch() <= self.passed {
                // A page may begin before the place.
                taken.operation += 1;
                continue;
            }
            if gate.holds(operation) {
                return Step::Hold;
            }
            let operation = Arc::clone(operation);
            if !std::mem::replace(&mut taken.noted, true) && self.note(feed, &operation, now) {
                self.ended = true;
                return Step::Ended;
            }
            if let Some(step) = self.advance(feed, &operation, now, &heard) {
                return step;
            }
        }
        Step::Again
    }

    /// The next push out of one operation; `None` when it is done with, or nothing of this notice is to be told.
    fn advance(
        &mut self,
        feed: &Feed,
        operation: &Arc<Committed>,
        now: Instant,
        heard: impl Fn(&Told) -> Heard,
    ) -> Option<Step> {
        let taken = self.taken.as_mut()?;
        if !operation.announced.meets(self.listener.events()) {
            taken.next_operation();
            self.passed = operation.epoch();
            self.pass(Cursor::new(operation.epoch(), 0));
            return None;
        }
        let (purges, place) = (feed.purges(), self.place);
        // Whoever has come far into it need not look at what was before.
        let begins = || {
            let within = place.epoch == operation.epoch();
            if within { operation.page_after(place.index) } else { 0 }
        };
        let number = *taken.page.get_or_insert_with(begins);
        if let Some(then) = self.reads_again.filter(|then| *then > now) {
            let due = self.debounce.as_ref().and_then(Debounce::next);
            return Some(Step::Wait(due.into_iter().chain([then]).min()));
        }
        let page = match operation.page(number, purges, || feed.view()) {
            Ok(Some(page)) => page,
            Ok(None) => {
                taken.next_operation();
                self.passed = operation.epoch();
                self.pass(Cursor::new(operation.epoch(), operation.last_index()));
                return None;
            }
            // Nothing of it is passed: it is made again.
            Err(error) => return Some(Step::Unread(error)),
        };
        self.reads_again = None;
        if std::mem::replace(&mut taken.purges, purges) != purges {
            // Some of the page may be told no more: what comes next is what comes after the place.
            taken.notice = page.partition_point(|one| one.notice.cursor <= place);
        }
        let at = taken.notice;
        let Some(one) = page.get(at) else {
            (taken.page, taken.notice) = (Some(number + 1), 0);
            return None;
        };
        let (cursor, before) = (one.notice.cursor, self.place);
        let heard =
            if cursor > before && self.listener.hears(&one.notice) { heard(one) } else { Heard::Leave };
        if heard == Heard::Later {
            return Some(Step::Hold);
        }
        if heard == Heard::Leave {
            taken.notice += 1;
            self.pass(cursor);
            return None;
        }
        let relevance = self.profile.as_ref().map_or(1.0, |profile| feed.profiles.relevance(one, profile));
        // In the precision in which it is shown: who asks for what it was shown gets that.
        if relevance < self.listener.subscription.min_relevance as f32 {
            taken.notice += 1;
            self.pass(cursor);
            return None;
        }
        let interested =
            || self.profile.as_ref().is_some_and(|profile| feed.profiles.interested(one, profile));
        let push = Push {
            page: Arc::clone(&page),
            at,
            labels: Arc::clone(&self.labels),
            with_unit: self.listener.subscription.include_unit,
            relevance,
            requires_action: self.listener.must_act(&one.notice, interested),
            cursor,
        };
        let outcome = match &mut self.debounce {
            None => Now::Tell(push),
            Some(debounce) => debounce.offer(one.notice.concern(), push, cursor, before, now),
        };
        let mut push = match outcome {
            // Not passed: it is offered again.
            Now::Full(due, _) => return Some(Step::Wait(Some(due))),
            Now::Held => None,
            Now::Tell(push) => Some(push),
        };
        self.taken.as_mut()?.notice += 1;
        self.pass(cursor);
        if let Some(push) = &mut push {
            push.cursor = self.safe();
        }
        push.map(Step::Push)
    }

    fn pass(&mut self, place: Cursor) {
        self.place = self.place.max(place);
    }

    /// Takes note of what an operation changes about the subscription; true when it ends it.
    fn note(&mut self, feed: &Feed, operation: &Committed, now: Instant) -> bool {
        match self.listener.pass(&operation.entry) {
            Turn::None => {}
            Turn::Ended => return true,
            Turn::Changed => {
                self.labels = Arc::new(Labels::of(&self.listener));
                let from_here = Cursor::new(operation.epoch(), 0);
                self.resolved_after =
                    hears_resolved(&self.listener).then(|| self.resolved_after.unwrap_or(from_here));
                let pause = self.listener.subscription.debounce_ms;
                match &mut self.debounce {
                    Some(debounce) => debounce.set_pause(pause, now),
                    None => self.debounce = debounce(&self.listener),
                }
            }
            Turn::Profile => {
                let registered = operation.entry.events.iter().find_map(|event| match event {
                    Event::Registered { role, interests, .. } => Some((role, interests)),
                    _ => None,
                });
                if let Some((role, interests)) = registered {
                    self.profile = Some(feed.profiles.of(role, interests));
                }
            }
        }
        false
    }
}

fn hears_resolved(listener: &Listener) -> bool {
    listener.events().contains(EventName::ConflictResolved)
}

fn debounce(listener: &Listener) -> Option<Debounce<Push>> {
    let pause = listener.subscription.debounce_ms;
    (pause > 0).then(|| Debounce::new(pause))
}
