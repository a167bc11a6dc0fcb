//! Replies that wait until what they tell of is durable.
//!
//! Everything leaves in the order in which it was decided, reads and refusals included: a reply may tell of
//! any change before it, and nobody is ever told of something that a crash could take back.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::answer::Answer;
use super::index::SharedIndex;
use crate::field::{Read, World};
use crate::protocol::{ErrorCode, Refusal};

/// What is done once its grounds are durable.
#[derive(Debug)]
pub(super) enum Then {
    /// Give this answer.
    Answer(Answer),
    /// Compute a read.
    Compute(Box<Computation>),
    /// Give the first answer of a repeated message, from the log entry of this epoch.
    Recall { epoch: u64 },
}

/// A read, and the world as it was when the read was stamped.
#[derive(Debug)]
pub(super) struct Computation {
    pub read: Read,
    pub world: World,
    pub index: Arc<SharedIndex>,
}

/// One reply that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The last entry that it may tell of.
    pub entry: u64,
    /// The greatest epoch that it shows.
    pub shows: u64,
    /// Whom it goes to.
    pub to: oneshot::Sender<Answer>,
    pub then: Then,
}

/// The replies that wait, oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<Waiting>);

impl Queue {
    pub fn push(&mut self, waiting: Waiting) {
        self.0.push_back(waiting);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the next reply whose grounds are durable: entries up to `durable`, the clock up to `reserved`.
    pub fn pop_ready(&mut self, durable: u64, reserved: u64) -> Option<Waiting> {
        let ready = self.0.front().is_some_and(|w| w.entry <= durable && w.shows <= reserved);
        if ready { self.0.pop_front() } else { None }
    }

    /// The greatest epoch that a waiting reply shows.
    pub fn last_shown(&self) -> u64 {
        self.0.back().map_or(0, |waiting| waiting.shows)
    }

    /// Answers everything that waits with a refusal: what it would have told of did not become durable.
    pub fn refuse_all(&mut self, refusal: &Refusal, clock: u64) {
        for waiting in self.0.drain(..) {
            // A door that went away needs no answer.
            let _ = waiting.to.send(Answer { epoch: clock, outcome: Err(refusal.clone()) });
        }
    }
}

/// What an operation gets when the log could not take it and was found to be without it.
pub(super) fn storage_refusal(full: bool, said: &str) -> Refusal {
    if full {
        Refusal::new(
            ErrorCode::StorageFull,
            format!("The log has no space left: {said}. Nothing was changed."),
            "Free or add disk space; the hub takes writes again by itself. Reads are served meanwhile.",
        )
    } else {
        Refusal::new(
            ErrorCode::InternalError,
            format!("The log could not be written: {said}. Nothing was changed."),
            "Repeat the message under the same id; tell the hub's operator if it fails again.",
        )
    }
}

/// What an operation gets while nobody knows what the log holds.
pub(super) fn unreadable_refusal(said: &str) -> Refusal {
    Refusal::new(
        ErrorCode::InternalError,
        format!("The log cannot be read: {said}. Whether this operation was kept is not known."),
        "Repeat the message under the same id later: it is done once, whatever became of the first try.",
    )
}
