//! Standings: what the role of a document's author and its kind are, as one small number.

use hashbrown::HashMap;

use crate::relevance::score::Kind;

/// The pairs of a role and a kind that there are: few, where documents are many.
#[derive(Default)]
pub(super) struct Standings {
    all: Vec<(u32, Kind)>,
    numbers: HashMap<(u32, Kind), u32>,
}

impl Standings {
    /// The number of a pair, a new one if it is new.
    pub fn number(&mut self, role: u32, kind: Kind) -> u32 {
        *self.numbers.entry((role, kind)).or_insert_with(|| {
            self.all.push((role, kind));
            self.all.len() as u32 - 1
        })
    }

    /// By number: role and kind.
    pub fn all(&self) -> &[(u32, Kind)] {
        &self.all
    }

    pub fn memory_bytes(&self) -> usize {
        self.all.capacity() * size_of::<(u32, Kind)>() + self.numbers.allocation_size()
    }
}
