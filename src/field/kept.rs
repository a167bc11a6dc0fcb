//! What memory holds of a unit: all of it, or, once it is archived and nobody is expected to ask, what rules and lists
//! need. The rest, its texts, is then the log's alone: in the entry at the slot's epoch.
//!
//! Whether a unit is held whole is a matter of memory and no part of what the Field knows: two worlds that differ in
//! nothing else are equal. Whoever needs a text that is not there says so ([`Wanting`]), and is asked again with a world
//! that was given it ([`World::give`]). A unit that is not archived is always whole.

use std::collections::VecDeque;
use std::sync::Arc;

use super::state::{Slot, State, UnitNo, World};
use crate::protocol::{Confidence, Relation, SYSTEM, Unit};

/// A unit, or what is left of it in memory.
#[derive(Debug, Clone)]
pub enum Kept {
    /// All of it.
    Whole(Arc<Unit>),
    /// Its texts are in the log.
    Shelved(Arc<Stub>),
}

/// What rules and lists need of a unit beside its slot. Relations are among it, with what is said of each: the units
/// that they point to show it as theirs.
#[derive(Debug, Clone, PartialEq)]
pub struct Stub {
    pub(super) session: Option<Arc<str>>,
    pub(super) relations: Box<[Relation]>,
    pub(super) score: Option<f64>,
    /// How many items of evidence there are.
    pub(super) evidence: u32,
    /// [`Unit::text_bytes`].
    pub(super) text_bytes: u32,
}

impl Stub {
    fn of(unit: &Unit) -> Self {
        let confidence = unit.confidence.as_ref();
        Self {
            session: unit.source.session_id.clone(),
            relations: unit.relations.clone().into(),
            score: confidence.and_then(|confidence| confidence.score),
            evidence: evidence(confidence),
            text_bytes: short(unit.text_bytes()),
        }
    }
}

fn evidence(confidence: Option<&Confidence>) -> u32 {
    confidence.map_or(0, |confidence| short(confidence.evidence.len()))
}

fn short(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What is held whole and what is not are the same unit where all agrees that both tell.
impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => one == other,
            (Self::Shelved(one), Self::Shelved(other)) => one == other,
            (Self::Whole(unit), Self::Shelved(stub)) | (Self::Shelved(stub), Self::Whole(unit)) => {
                Stub::of(unit) == **stub
            }
        }
    }
}

impl Slot {
    /// The unit itself, unless its texts are in the log alone.
    pub fn whole(&self) -> Option<&Arc<Unit>> {
        match &self.kept {
            Kept::Whole(unit) => Some(unit),
            Kept::Shelved(_) => None,
        }
    }

    /// The unit as a test knows it to be there.
    #[cfg(test)]
    pub(crate) fn said(&self) -> &Arc<Unit> {
        self.whole().expect("a unit that is held whole")
    }

    /// Whether its texts are in the log alone.
    pub fn is_shelved(&self) -> bool {
        matches!(self.kept, Kept::Shelved(_))
    }

    /// Its relations; none once it is purged.
    pub fn relations(&self) -> &[Relation] {
        match &self.kept {
            Kept::Whole(unit) => &unit.relations,
            Kept::Shelved(stub) => &stub.relations,
        }
    }

    /// The session in which it was recorded.
    pub fn session(&self) -> Option<&Arc<str>> {
        match &self.kept {
            Kept::Whole(unit) => unit.source.session_id.as_ref(),
            Kept::Shelved(stub) => stub.session.as_ref(),
        }
    }

    /// How sure its author is.
    pub fn score(&self) -> Option<f64> {
        match &self.kept {
            Kept::Whole(unit) => unit.confidence.as_ref().and_then(|confidence| confidence.score),
            Kept::Shelved(stub) => stub.score,
        }
    }

    /// How many items of evidence its author named.
    pub fn evidence_items(&self) -> u32 {
        match &self.kept {
            Kept::Whole(unit) => evidence(unit.confidence.as_ref()),
            Kept::Shelved(stub) => stub.evidence,
        }
    }

    /// Bytes of all its texts, wherever they are: see [`Unit::text_bytes`].
    pub fn text_bytes(&self) -> usize {
        match &self.kept {
            Kept::Whole(unit) => unit.text_bytes(),
            Kept::Shelved(stub) => stub.text_bytes as usize,
        }
    }
}

/// The units whose texts are needed and not there, each once: give them to a clone of the world, and ask that again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanting(pub Vec<UnitNo>);

impl Wanting {
    /// # Errors
    /// Itself, where some of these units are shelved in this world.
    pub fn check(world: &World, units: impl IntoIterator<Item = UnitNo>) -> Result<(), Self> {
        let mut wanting: Vec<UnitNo> = units.into_iter().filter(|no| world.slot(*no).is_shelved()).collect();
        if wanting.is_empty() {
            return Ok(());
        }
        wanting.sort_unstable();
        wanting.dedup();
        Err(Self(wanting))
    }
}

/// Units whose texts are to leave memory, and those that came back without theirs. No part of what the log says: a state
/// that is read back makes it anew.
#[derive(Debug, Clone, Default)]
pub struct Shelving {
    /// What was archived, oldest first.
    due: VecDeque<Due>,
    /// Taken back while their texts were in the log alone: they are to be given them at once.
    back: Vec<UnitNo>,
}

/// Units archived by one entry.
#[derive(Debug, Clone)]
struct Due {
    epoch: u64,
    units: Arc<[UnitNo]>,
    /// How many of them were looked at.
    done: usize,
}

impl Shelving {
    /// What of a world that was read back is still to leave memory.
    pub(super) fn of(world: &World) -> Self {
        let mut shelving = Self::default();
        if !world.archived.is_empty() {
            let units = 0..UnitNo::try_from(world.units.len()).unwrap_or(UnitNo::MAX);
            shelving.archived(0, units.filter(|no| world.may_be_shelved(*no)).collect());
        }
        shelving
    }

    /// Notes that the entry at `epoch` archived these.
    pub(super) fn archived(&mut self, epoch: u64, units: Vec<UnitNo>) {
        self.due.push_back(Due { epoch, units: units.into(), done: 0 });
    }

    /// Notes that a unit is needed again.
    pub(super) fn taken_back(&mut self, no: UnitNo) {
        self.back.push(no);
    }

    /// Whether there is anything that a log which holds the entries up to `durable` can keep in our place.
    pub fn is_due(&self, durable: u64) -> bool {
        self.due.front().is_some_and(|due| due.epoch <= durable)
    }

    /// Takes the units that came back without their texts.
    pub fn take_back(&mut self) -> Vec<UnitNo> {
        std::mem::take(&mut self.back)
    }
}

impl State {
    /// Lets go of the texts of archived units, looking at `most` of them at most, as far as the log durably holds them: up
    /// to the entry at `durable`. Gives what nobody else may hold any more: dropping it takes its time, wherever that is
    /// done.
    pub fn shelve(&mut self, most: usize, durable: u64) -> Vec<Arc<Unit>> {
        let mut gone = Vec::new();
        let mut left = most;
        while left > 0 && self.shelving.is_due(durable) {
            let Some(due) = self.shelving.due.front_mut() else { break };
            let some = &due.units[due.done..];
            let some = &some[..some.len().min(left)];
            gone.extend(some.iter().filter_map(|no| self.world.shelve(*no)));
            left -= some.len();
            due.done += some.len();
            if due.done == due.units.len() {
                self.shelving.due.pop_front();
                left = left.saturating_sub(1);
            }
        }
        gone
    }
}

impl World {
    /// Whether a unit's texts may be the log's alone. What the Field itself wrote stays: a COMPACT writes thousands of
    /// syntheses in one entry, which would be read whole for each of them.
    fn may_be_shelved(&self, no: UnitNo) -> bool {
        let slot = self.slot(no);
        self.is_archived(no)
            && !slot.purged
            && !slot.is_shelved()
            && *self.agent(slot.author).agent.id != *SYSTEM
    }

    fn shelve(&mut self, no: UnitNo) -> Option<Arc<Unit>> {
        if !self.may_be_shelved(no) {
            return None;
        }
        let slot = &mut self.units[no as usize];
        let stub = Stub::of(slot.whole()?);
        match std::mem::replace(&mut slot.kept, Kept::Shelved(Arc::new(stub))) {
            Kept::Whole(unit) => Some(unit),
            Kept::Shelved(_) => None,
        }
    }

    /// The units whose texts are in the log alone.
    pub fn shelved(&self) -> impl Iterator<Item = UnitNo> {
        (0..).zip(&self.units).filter(|(_, slot)| slot.is_shelved()).map(|(no, _)| no)
    }

    /// Gives a unit its texts back, as the entry at its slot's epoch tells it; whether it is that unit.
    pub fn give(&mut self, no: UnitNo, unit: Arc<Unit>) -> bool {
        let slot = self.slot(no);
        let Kept::Shelved(stub) = &slot.kept else { return !slot.purged };
        let is_it = unit.id == slot.id && unit.mode == slot.mode && Stub::of(&unit) == **stub;
        if is_it {
            self.units[no as usize].kept = Kept::Whole(unit);
        }
        is_it
    }

    /// The id of a unit's author.
    pub fn author_of(&self, slot: &Slot) -> &Arc<str> {
        &self.agent(slot.author).agent.id
    }

    /// The id of the task that a unit serves; of none once it is purged.
    pub fn task_of(&self, slot: &Slot) -> Option<&Arc<str>> {
        slot.task.filter(|_| !slot.purged).and_then(|task| self.task_id(task))
    }
}
