//! Which units are put away: archived, or purged (COMPACT).
//!
//! Bits beside the units, in blocks that views share: putting a hundred thousand units away copies a few kilobytes,
//! not the units, and asking of one touches no unit.

use std::sync::Arc;

use imbl::Vector;

use super::state::UnitNo;

/// Words of a block: 32,768 units.
pub(super) const WORDS: usize = 512;
const BITS: usize = 64 * WORDS;

/// A set of units. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Marks {
    pub(super) blocks: Vector<Arc<[u64; WORDS]>>,
    pub(super) count: u64,
}

impl Marks {
    /// How many units are in it.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a unit is in it.
    pub fn contains(&self, no: UnitNo) -> bool {
        let (block, bit) = (no as usize / BITS, no as usize % BITS);
        self.count > 0 && self.blocks.get(block).is_some_and(|block| block[bit / 64] >> (bit % 64) & 1 == 1)
    }

    /// Puts a unit in or takes it out; whether that changed anything.
    pub(super) fn set(&mut self, no: UnitNo, marked: bool) -> bool {
        if self.contains(no) == marked {
            return false;
        }
        let (block, bit) = (no as usize / BITS, no as usize % BITS);
        while self.blocks.len() <= block {
            self.blocks.push_back(Arc::new([0; WORDS]));
        }
        let block = Arc::make_mut(&mut self.blocks[block]);
        block[bit / 64] ^= 1 << (bit % 64);
        self.count = if marked { self.count + 1 } else { self.count - 1 };
        true
    }
}

/// Places of the timeline that are counted together.
pub const COLD_BLOCK: usize = 1_024;

/// How many units of each stretch of the timeline are put away, so that a stretch of which all are need not be looked
/// at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Coldness {
    pub(super) blocks: Vector<u16>,
}

impl Coldness {
    /// Counts a place as put away, or no more.
    pub(super) fn count(&mut self, place: u32, cold: bool) {
        let block = place as usize / COLD_BLOCK;
        while self.blocks.len() <= block {
            self.blocks.push_back(0);
        }
        let count = &mut self.blocks[block];
        *count = if cold { *count + 1 } else { *count - 1 };
    }

    /// Whether all units at `count` places from `first` on are put away. May say no where they are.
    pub fn covers(&self, first: u32, count: usize) -> bool {
        let (from, to) = (first as usize / COLD_BLOCK, (first as usize + count).div_ceil(COLD_BLOCK));
        (from..to).all(|block| self.blocks.get(block).is_some_and(|cold| *cold as usize == COLD_BLOCK))
    }

    /// How many places at the beginning are all put away, in whole stretches.
    pub fn prefix(&self) -> u32 {
        let whole = self.blocks.iter().take_while(|cold| **cold as usize == COLD_BLOCK).count();
        u32::try_from(whole * COLD_BLOCK).unwrap_or(u32::MAX)
    }
}

/// What one COMPACT touched, where that is too much to be noted unit by unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// Epoch of its entry.
    pub epoch: u64,
    /// The units, in order.
    pub units: Arc<[UnitNo]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_count_what_they_hold() {
        let mut marks = Marks::default();
        for no in [0, 63, 64, 32_767, 32_768, 100_000] {
            assert!(!marks.contains(no));
            assert!(marks.set(no, true) && !marks.set(no, true) && marks.contains(no));
        }
        let before = marks.clone();
        assert!(marks.set(64, false) && !marks.set(64, false) && !marks.contains(64));
        assert!(before.contains(64), "a view stays as it was");
        assert_eq!((before.len(), marks.len()), (6, 5));
    }

    #[test]
    fn a_stretch_is_cold_when_all_of_it_is() {
        let mut cold = Coldness::default();
        let block = COLD_BLOCK as u32;
        (0..2 * block).for_each(|place| cold.count(place, true));
        assert!(cold.covers(0, 2 * COLD_BLOCK) && !cold.covers(0, 2 * COLD_BLOCK + 1));
        assert_eq!(cold.prefix(), 2 * block);
        cold.count(block + 5, false);
        assert!(cold.covers(0, COLD_BLOCK) && !cold.covers(block, 1));
        assert_eq!(cold.prefix(), block);
    }
}
