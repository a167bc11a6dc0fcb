//! A Field as it was: for ATTUNEs that ask for an earlier epoch (Extension `scope.as_of_epoch`).
//!
//! The state of that epoch is made of the log, from the snapshot on where that is older, and an index of its units is
//! built; both on a thread of the asker's own, so that neither the actor nor other reads wait. The last one is kept for
//! whoever asks for the same epoch again. One is made at a time, few may wait for it, and a past of very many units is
//! not made at all: it would take the memory of a second Field.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::index::SharedIndex;
use super::reads::Reads;
use super::restore::follow;
use super::shelf;
use super::snapshot_file::SnapshotFile;
use super::vector_keeper::VectorKeeper;
use super::waiting::overloaded_refusal;
use crate::field::{State, UnitNo, World};
use crate::limits::{PAST_READS_MAX, PAST_UNITS_MAX};
use crate::log::{LogError, LogReader};
use crate::protocol::{Refusal, UnitStatus};
use crate::relevance::Meaning;

/// A Field's past.
pub(super) struct Past {
    /// Where the snapshot lies, if anywhere.
    directory: Option<PathBuf>,
    meaning: Meaning,
    /// Where many units are indexed at once.
    pool: Arc<rayon::ThreadPool>,
    last: Mutex<Option<Arc<Then>>>,
    /// Reads of the past that were begun and are not finished.
    open: AtomicUsize,
}

/// A Field at an epoch.
pub(super) struct Then {
    epoch: u64,
    /// How many purges and discarded drafts it knows of.
    gone: (usize, u64),
    /// Its world, with the agents that registered since: whoever asks now is among them.
    pub world: World,
    pub index: SharedIndex,
}

/// A read of the past that was begun; finished when this is dropped.
pub(super) struct Visit(Arc<Past>);

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a past cannot be shown.
pub(super) enum Closed {
    /// It is refused.
    Refused(Refusal),
    /// The log cannot be read.
    Unreadable(LogError),
}

impl Past {
    /// Nothing is made before it is asked for.
    pub fn new(directory: Option<PathBuf>, meaning: Meaning, pool: Arc<rayon::ThreadPool>) -> Self {
        Self { directory, meaning, pool, last: Mutex::default(), open: AtomicUsize::new(0) }
    }

    /// Begins a read of the past, unless there are too many already.
    pub fn visit(self: &Arc<Self>) -> Result<Visit, Refusal> {
        let visit = Visit(Arc::clone(self));
        if self.open.fetch_add(1, Ordering::Relaxed) < PAST_READS_MAX {
            Ok(visit)
        } else {
            Err(overloaded_refusal())
        }
    }

    /// The Field as it was once the operation at `epoch` was applied; `present` is what it is now.
    pub fn at(&self, reads: &Reads, present: &World, epoch: u64) -> Result<Arc<Then>, Closed> {
        let units = present.committed_before(epoch.saturating_add(1));
        if units > PAST_UNITS_MAX {
            return Err(Closed::Refused(too_large(units)));
        }
        // Whoever comes second waits for the first one, and may find that it was made for him.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(then) = last.as_ref().filter(|then| then.epoch == epoch && then.knows_all_of(present)) {
            return Ok(Arc::clone(then));
        }
        // There is room for one.
        *last = None;
        // A connection to the log is borrowed for no longer than it is read: others wait for one.
        let state = reads.with_reader(|reader| self.state(reader, epoch));
        let mut world = state.map_err(Closed::Unreadable)?.world;
        world.admit(present);
        world.forget(present);
        // What the snapshot left to the log is read once, for the index and for whoever asks.
        let shelved: Vec<UnitNo> = world.shelved().collect();
        let given = reads.with_reader(|reader| shelf::give(reader, &mut world, &shelved));
        given.map_err(Closed::Unreadable)?;
        let index = SharedIndex::new(self.meaning, Arc::clone(&self.pool), VectorKeeper::none());
        index.catch_up(&world);
        // In the memory of the process it is a past like the present was: all its units by their meaning, too.
        while index.embed_missing(&world) {}
        let then = Arc::new(Then { epoch, gone: gone(present), world, index });
        *last = Some(Arc::clone(&then));
        Ok(then)
    }

    fn state(&self, reader: &dyn LogReader, epoch: u64) -> Result<State, LogError> {
        let file = self.directory.as_deref().and_then(|directory| SnapshotFile::open(directory).ok());
        let file = file.filter(|file| file.belonging.epoch <= epoch && file.check(reader).is_ok());
        // What is wrong with a snapshot was said at the start; the log has it all.
        let state = file.and_then(|file| file.state().ok()).unwrap_or_default();
        follow(reader, state, epoch, |_| {})
    }
}

impl Then {
    /// Whether everybody who may ask now is known, and all that was purged or discarded is gone.
    fn knows_all_of(&self, present: &World) -> bool {
        self.world.agents.len() >= present.agents.len() && self.gone == gone(present)
    }
}

/// How much of a world no past shows any more: purges, and retracted units, drafts that were discarded among them.
fn gone(world: &World) -> (usize, u64) {
    (world.purges.len(), world.count(UnitStatus::Retracted))
}

fn too_large(units: usize) -> Refusal {
    Refusal::invalid(
        "scope.as_of_epoch",
        format!("The Field had {units} units then; a past of more than {PAST_UNITS_MAX} is not made."),
        "Ask for an earlier epoch, or for the present with since_epoch; REPLAY tells the past of single things.",
    )
    .with("limit", json!(PAST_UNITS_MAX))
}
