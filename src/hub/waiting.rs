//! Replies that wait until what they tell of is durable.
//!
//! Everything leaves in the order in which it was decided, reads and refusals included: a reply may tell of
//! any change before it, and nobody is ever told of something that a crash could take back.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::oneshot;

use super::answer::Answer;
use super::index::SharedIndex;
use super::plans::Planning;
use super::reads::Begun;
use crate::field::{Message, Query, Read, State, Wanting, World};
use crate::protocol::{ErrorCode, Refusal};

/// What is done once its grounds are durable.
#[derive(Debug)]
pub(super) enum Then {
    /// Give this answer.
    Answer(Answer),
    /// Compute a read.
    Compute(Box<Computation>),
    /// Work out the plan of a COMPACT.
    Prepare(Box<Planning>),
    /// Read texts that the message's rule wants.
    Fetch(Box<Fetching>),
    /// Give the first answer of a repeated message, from the log entry of this epoch.
    Recall { epoch: u64 },
}

/// A read, and the world as it was when the read was stamped.
#[derive(Debug)]
pub(super) struct Computation {
    pub read: Read,
    pub world: World,
    pub index: Arc<SharedIndex>,
    /// Counts the read until it is finished.
    pub _begun: Begun,
}

/// A message on its way to texts that are in the log alone.
#[derive(Debug)]
pub(super) struct Fetching {
    pub wanting: Wanting,
    pub message: Box<Message>,
    /// The connection that it came over.
    pub connection: Option<u64>,
    pub world: World,
    /// What its answer shows of the clock if the log cannot be read.
    pub shows: u64,
    /// Counts it among the reads until it is done.
    pub begun: Begun,
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

    /// Answers everything that waits with a refusal: what it would have told of is not known to be durable.
    pub fn refuse_all(&mut self, refusal: &Refusal, clock: u64) {
        for waiting in self.0.drain(..) {
            // A door that went away needs no answer.
            let _ = waiting.to.send(Answer { epoch: clock, outcome: Err(refusal.clone()) });
        }
    }

    /// The state was read back: reads look at that instead, under new epochs as long as some are reserved;
    /// repeats of what is durable still get their answer; the rest, whose grounds are gone, is refused.
    pub fn face(&mut self, state: &mut State, reserved: u64, refusal: &Refusal, shown: u64) {
        let mut kept = VecDeque::new();
        for mut waiting in self.0.drain(..) {
            let stands = match &mut waiting.then {
                Then::Answer(_) => false,
                Then::Recall { epoch } => *epoch <= state.world.last_epoch,
                // What it wants may have changed with the state; repeated, it says so anew.
                Then::Fetch(_) => false,
                // It has changed nothing yet, and is decided once it is planned.
                Then::Prepare(planning) => {
                    planning.world = state.world.clone();
                    true
                }
                Then::Compute(computation) => {
                    let asker = state.world.agents.get(computation.read.asker as usize);
                    // What a check or a scan found may be gone with the state.
                    let found = matches!(computation.read.query, Query::Detected(..));
                    let active = asker.is_some_and(|record| record.is_active());
                    let stands = active && !found && state.clock < reserved;
                    if stands {
                        state.clock += 1;
                        computation.read.epoch = state.clock;
                        computation.world = state.world.clone();
                        waiting.shows = state.clock;
                    }
                    stands
                }
            };
            if stands {
                waiting.entry = state.world.last_epoch;
                kept.push_back(waiting);
            } else {
                let _ = waiting.to.send(Answer { epoch: shown, outcome: Err(refusal.clone()) });
            }
        }
        self.0 = kept;
    }
}

/// What an operation gets when the log cannot take it: nothing was changed.
pub(super) fn storage_refusal(full: bool, said: &str) -> Refusal {
    if full {
        Refusal::new(
            ErrorCode::StorageFull,
            format!("The log has no space left: {said}. Nothing was changed."),
            "Free or add disk space, or raise the hub's max_log_bytes where that is what is full; the hub takes writes \
             again by itself once there is room. Reads are served meanwhile.",
        )
    } else {
        Refusal::new(
            ErrorCode::InternalError,
            format!("The log cannot be written: {said}. Nothing was changed."),
            "Repeat the message under the same id in a second; tell the hub's operator if it goes on.",
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

/// What a read gets when too many wait already.
pub(super) fn overloaded_refusal() -> Refusal {
    Refusal::new(
        ErrorCode::Overloaded,
        "The Field has more reads waiting than it can take.",
        "Repeat the message after the time given.",
    )
    .with("retry_after_ms", json!(500))
}
