//! Suspicions: contradictions that were noticed in what units say, before anybody decided that they are conflicts.
//!
//! Noticing costs far more than deciding, so it is done elsewhere, on a view of the world, and its outcome is an
//! argument (law 1). The rules look at each suspicion again: the world may have moved on since.

use std::sync::Arc;

use crate::protocol::{DetectedBy, UnitId};

/// A contradiction between a unit at hand and another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspicion {
    /// The other unit.
    pub against: UnitId,
    /// What kind of contradiction it is.
    pub by: DetectedBy,
    /// What clashes, in words.
    pub description: Box<str>,
}

/// A suspicion between two units that are both in the Field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The one.
    pub unit: UnitId,
    /// The other, and what clashes.
    pub suspicion: Suspicion,
}

/// What was looked for on behalf of a message that commits a unit, before the message is decided (section 7, RECORD).
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Suspected {
    /// Nothing is to be looked for: the message commits no unit, the unit claims nothing, or automatic detection is off.
    #[default]
    Unasked,
    /// The unit was compared with the first committed units of the Field.
    Compared {
        /// With so many of them, in the order of their commits.
        with: u32,
        /// What was noticed.
        suspicions: Arc<[Suspicion]>,
    },
    /// It was not compared: there was too much to do, or the time did not suffice.
    Deferred {
        /// Whether it was begun and ran over its budget.
        timed_out: bool,
    },
}
