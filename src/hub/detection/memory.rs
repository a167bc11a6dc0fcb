//! What units claim, read once and kept as long as there is room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::field::{Stated, UnitNo};
use crate::limits::CLAIMS_KEPT_MAX_BYTES;

/// Bytes that a unit's claims need at most, give or take: less is no room.
const ROOM_LEAST: usize = 256 * 1024;

/// Two generations: what is used moves to the young one, and when that is full the old one is forgotten.
#[derive(Default)]
struct Generations {
    young: HashMap<UnitNo, Arc<Stated>>,
    old: HashMap<UnitNo, Arc<Stated>>,
    young_bytes: usize,
}

/// Keeps at most [`CLAIMS_KEPT_MAX_BYTES`]. Units of durable states only: their numbers are never given twice.
#[derive(Default)]
pub(super) struct Memory(Mutex<Generations>);

impl Memory {
    pub fn recall(&self, no: UnitNo) -> Option<Arc<Stated>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stated) = kept.young.get(&no) {
            return Some(Arc::clone(stated));
        }
        let stated = kept.old.remove(&no)?;
        kept.enter(no, &stated);
        Some(stated)
    }

    /// Whether more can be kept without forgetting any.
    pub fn has_room(&self) -> bool {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.old.is_empty() || kept.young_bytes < CLAIMS_KEPT_MAX_BYTES / 2 - ROOM_LEAST
    }

    pub fn keep(&self, no: UnitNo, stated: &Arc<Stated>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).enter(no, stated);
    }
}

impl Generations {
    fn enter(&mut self, no: UnitNo, stated: &Arc<Stated>) {
        let bytes = stated.memory_bytes();
        if self.young_bytes + bytes > CLAIMS_KEPT_MAX_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(no, Arc::clone(stated)).is_none() {
            self.young_bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_until_both_generations_are_full() {
        let memory = Memory::default();
        let stated = Arc::new(Stated::default());
        let each = stated.memory_bytes();
        let mut entered = 0;
        while memory.has_room() {
            memory.keep(entered, &stated);
            entered += 1;
        }
        let kept = entered as usize * each;
        assert!(kept <= CLAIMS_KEPT_MAX_BYTES && kept > CLAIMS_KEPT_MAX_BYTES / 10 * 9, "{kept}");
        // Nothing is forgotten yet.
        assert!(memory.recall(0).is_some() && memory.recall(entered - 1).is_some());
    }
}
