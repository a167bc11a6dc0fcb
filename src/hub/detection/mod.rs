//! Looking for contradictions: what a unit clashes with, found on a view of the world and handed to the heart as
//! suspicions.
//!
//! In reading order: `memory`: what units claim, kept as long as there is room; [`Detector`]: one statement against the
//! units nearest to it; `door`: what a message says is looked at before it is decided, within a budget of time; `behind`:
//! what there was no time for, and scans, by one thread that steps back behind everything else.
//!
//! A pair of units is looked at once: by the newer of the two against those before it, at the door as far as they were
//! durable, behind for the rest. What is still to be looked at stands in the state (`World::uncompared`).

mod behind;
mod door;
mod memory;

use std::ops::Range;
use std::sync::Arc;

pub(super) use behind::{Behind, Scan, Scanner};
pub(super) use door::DetectionDoor;

use super::index::SharedIndex;
use crate::field::{Finding, Stated, Statement, Suspected, Suspicion, UnitNo, World, stands, suspicions};
use crate::relevance::{Document, Index, Reader, Sought};
use memory::Memory;

/// As long as no more units than this are to be compared with, each one is, and none is searched for.
const EACH: u32 = 48;

/// Finds what units clash with.
pub(super) struct Detector {
    index: Arc<SharedIndex>,
    memory: Memory,
}

impl std::fmt::Debug for Detector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Detector").finish_non_exhaustive()
    }
}

impl Detector {
    /// One for the units of this index.
    pub fn new(index: Arc<SharedIndex>) -> Self {
        Self { index, memory: Memory::default() }
    }

    /// Compares what is about to be committed with all units of `world`; ends early where `stop` says so. `direction` is
    /// the text's own by a model outside. Nobody waits for the index: where it lacks much, or others have to come first,
    /// that is for later.
    fn at_the_door(
        &self,
        world: &World,
        statement: &Statement<'_>,
        direction: Option<&[f32]>,
        reader: &mut Reader,
        stop: impl Fn() -> bool,
    ) -> Suspected {
        let later = Suspected::Deferred { timed_out: false };
        // What it lacks is compared each.
        if self.index.lacks(world) > EACH as usize {
            return later;
        }
        let stated = statement.read();
        if stated.is_empty() {
            return Suspected::Unasked;
        }
        let all = 0..u32::try_from(world.timeline.len()).unwrap_or(u32::MAX);
        let others = if all.len() <= EACH as usize {
            all.clone().filter_map(|place| unit_at(world, place)).collect()
        } else {
            let found = self.index.as_it_is(|index| {
                let sought = |reader: &mut Reader, doc: &Document<'_>| index.sought(reader, doc, direction);
                let indexed = index.len().min(all.end);
                (indexed, rivals(index, world, statement, 0..indexed, reader, sought))
            });
            let Some((indexed, mut others)) = found else { return later };
            others.extend((indexed..all.end).filter_map(|place| unit_at(world, place)));
            others
        };
        let suspicions = self.suspicions(world, statement, &stated, others, stop);
        Suspected::Compared { with: all.end, suspicions: suspicions.into() }
    }

    /// Compares a unit of the Field with those at these places of the timeline.
    pub fn findings(
        &self,
        world: &World,
        no: UnitNo,
        places: Range<u32>,
        reader: &mut Reader,
        stop: impl Fn() -> bool,
    ) -> Vec<Finding> {
        let slot = world.slot(no);
        let (Some(place), true) = (slot.place, stands(world, no)) else { return Vec::new() };
        // What stands is held whole.
        let Some(statement) = Statement::of(slot) else { return Vec::new() };
        if places.is_empty() || !statement.claims() {
            return Vec::new();
        }
        let stated = self.stated(world, no);
        if stated.is_empty() {
            return Vec::new();
        }
        let others = if places.len() <= EACH as usize {
            places.filter_map(|place| unit_at(world, place)).collect()
        } else {
            self.index.with(world, |index| {
                let sought = |reader: &mut Reader, doc: &Document<'_>| index.sought_by(reader, doc, place);
                rivals(index, world, &statement, places, reader, sought)
            })
        };
        let found = self.suspicions(world, &statement, &stated, others, stop);
        found.into_iter().map(|suspicion| Finding { unit: slot.id, suspicion }).collect()
    }

    fn suspicions(
        &self,
        world: &World,
        statement: &Statement<'_>,
        stated: &Stated,
        others: Vec<UnitNo>,
        stop: impl Fn() -> bool,
    ) -> Vec<Suspicion> {
        let recall = |no| (!stop()).then(|| self.stated(world, no));
        suspicions(world, statement, stated, others.into_iter(), recall)
    }

    /// Reads what the units at these places of the timeline claim, before anybody asks; whether there is room for more.
    fn read_ahead(&self, world: &World, places: Range<u32>) -> bool {
        for place in places {
            let Some((_, no)) = world.timeline.get(place as usize) else { continue };
            if !self.memory.has_room() {
                return false;
            }
            if stands(world, *no) && Statement::of(world.slot(*no)).is_some_and(|said| said.claims()) {
                self.stated(world, *no);
            }
        }
        true
    }

    /// What a unit of the Field claims.
    fn stated(&self, world: &World, no: UnitNo) -> Arc<Stated> {
        self.memory.recall(no).unwrap_or_else(|| {
            // What is archived claims nothing here, but may come back.
            let Some(said) = Statement::of(world.slot(no)) else { return Arc::default() };
            let stated = Arc::new(said.read());
            self.memory.keep(no, &stated);
            stated
        })
    }
}

/// The unit at a place of the timeline.
fn unit_at(world: &World, place: u32) -> Option<UnitNo> {
    world.timeline.get(place as usize).map(|(_, no)| *no)
}

/// The units at these places of the timeline that may be about what a statement, or an assumption of its, is about.
fn rivals(
    index: &Index,
    world: &World,
    statement: &Statement<'_>,
    places: Range<u32>,
    reader: &mut Reader,
    sought: impl FnOnce(&mut Reader, &Document<'_>) -> Sought,
) -> Vec<UnitNo> {
    let may = |place: u32| unit_at(world, place).is_some_and(|no| stands(world, no));
    let mut found = index.rivals(&sought(reader, &statement.document()), places.clone(), may);
    for assumption in statement.assumptions() {
        let doc = Document { content: assumption, purpose: "", question: None, ..statement.document() };
        let of_this = index.sought(reader, &doc, None);
        for place in index.rivals(&of_this, places.clone(), may) {
            if !found.contains(&place) {
                found.push(place);
            }
        }
    }
    found.into_iter().filter_map(|place| unit_at(world, place)).collect()
}
