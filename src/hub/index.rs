//! The relevance index of one Field, following its units.
//!
//! The index is no part of the state: it is a cache over the append-only sequence of commits, so it can be
//! behind (whoever needs it catches up from its own view) or ahead (a request names its horizon). Nobody in
//! the actor ever waits for it.

use std::sync::{PoisonError, RwLock};

use crate::field::{World, document};
use crate::relevance::Index;

/// Bytes of text indexed under one write lock: short enough that readers hardly wait.
const STEP_BYTES: usize = 64 * 1024;

/// An index that readers share and that any of them brings up to date.
pub(super) struct SharedIndex {
    /// Whether it takes in meaning.
    meaning: bool,
    index: RwLock<Index>,
}

impl SharedIndex {
    /// An empty index that takes in meaning, or words alone.
    pub fn new(meaning: bool) -> Self {
        Self { meaning, index: RwLock::new(Index::taking_in(meaning)) }
    }

    /// Runs `read` with an index that knows at least the committed units of `world`.
    pub fn with<R>(&self, world: &World, read: impl FnOnce(&Index) -> R) -> R {
        self.catch_up(world);
        read(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Indexes what `world` has and the index lacks.
    pub fn catch_up(&self, world: &World) {
        while self.index.is_poisoned() || self.len() < world.timeline.len() {
            let mut index = match self.index.write() {
                Ok(index) => index,
                Err(poisoned) => {
                    // A unit was left half entered: start anew rather than go on with it.
                    let mut index = poisoned.into_inner();
                    *index = Index::taking_in(self.meaning);
                    self.index.clear_poison();
                    index
                }
            };
            // Somebody else may have been faster.
            let missing = world.timeline.skip((index.len() as usize).min(world.timeline.len()));
            let mut bytes = 0;
            for (_, no) in &missing {
                let slot = world.slot(*no);
                index.push(&document(slot));
                bytes += slot.unit.text_bytes();
                if bytes > STEP_BYTES {
                    break;
                }
            }
        }
    }

    fn len(&self) -> usize {
        self.index.read().unwrap_or_else(PoisonError::into_inner).len() as usize
    }
}

impl std::fmt::Debug for SharedIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedIndex").finish_non_exhaustive()
    }
}
