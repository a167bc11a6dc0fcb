//! The relevance index of one Field, following its units.
//!
//! The index is no part of the state: it is a cache over the append-only sequence of units, so it can be
//! behind (whoever needs it catches up from its own view) or ahead (a request names its horizon). Nobody in
//! the actor ever waits for it.

use std::sync::{PoisonError, RwLock};

use crate::field::{Slot, World};
use crate::relevance::{Document, Index};

/// Units indexed under one write lock: short enough that readers hardly wait.
const STEP: usize = 256;

/// An index that readers share and that any of them brings up to date.
#[derive(Default)]
pub(super) struct SharedIndex {
    index: RwLock<Index>,
}

impl SharedIndex {
    /// Runs `read` with an index that knows at least the units of `world`.
    pub fn with<R>(&self, world: &World, read: impl FnOnce(&Index) -> R) -> R {
        self.catch_up(world);
        // A reader that panicked left the index as it was; it is still good.
        read(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Indexes what `world` has and the index lacks.
    pub fn catch_up(&self, world: &World) {
        loop {
            let known = self.index.read().unwrap_or_else(PoisonError::into_inner).len() as usize;
            if known >= world.units.len() {
                return;
            }
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            // Somebody else may have been faster.
            let known = index.len() as usize;
            for slot in world.units.skip(known.min(world.units.len())).iter().take(STEP) {
                index.push(&document(slot));
            }
        }
    }
}

fn document(slot: &Slot) -> Document<'_> {
    let unit = &slot.unit;
    Document {
        content: &unit.content,
        purpose: &unit.intent.purpose,
        question: unit.intent.question.as_deref(),
        author: &unit.source.agent_id,
        role: &unit.source.agent_role,
    }
}

impl std::fmt::Debug for SharedIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedIndex").finish_non_exhaustive()
    }
}
