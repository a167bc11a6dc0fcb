//! Following the units: batches of documents are gathered, read and entered.
//!
//! Of many units a batch is read on all cores while the one before it is entered, which one alone can do. What the index
//! knows of words stands still for those who read; therefore what a batch has of new words is taken up before the next
//! one is read.

use std::borrow::Cow;
use std::ops::Range;
use std::thread;

use rayon::prelude::*;

use super::{Follower, STRIDE, SharedIndex, entered, record};
use crate::field::{Slot, UnitNo, World, kind};
use crate::hub::vector_keeper::Late;
use crate::relevance::{Known, Meaning, Reader, Reading, Vector};

/// Bytes of text of a batch when few units are missing.
const STEP_BYTES: usize = 64 * 1024;
/// The same when many are: enough for all cores.
const LONG_STEP_BYTES: usize = 2 * 1024 * 1024;
/// Units that are read by whoever's turn it is; more are shared among the cores.
const ALONE: usize = 64;
/// Units after which the turn is given up for a moment.
const TURN_UNITS: usize = 16 * 1024;
/// As long as no more units than this are missing, each is embedded before it is entered.
const EMBEDDED_AT_ONCE: usize = 512;

/// Units in a row that the index lacks.
struct Batch<'a> {
    places: Range<usize>,
    /// A view that holds their texts.
    world: Cow<'a, World>,
    numbers: Vec<UnitNo>,
    /// What the file of vectors has of them, one each.
    kept: Vec<Option<Vector>>,
    /// What it has of units before them, by place.
    late: Late,
    /// Whether each is embedded before it is entered.
    at_once: bool,
}

impl Batch<'_> {
    fn slots(&self) -> Vec<&Slot> {
        self.numbers.iter().map(|no| self.world.slot(*no)).collect()
    }
}

impl SharedIndex {
    /// The units from a place on, as many as make a batch.
    fn gather<'a>(&self, world: &'a World, start: usize, turn: &mut Follower) -> Batch<'a> {
        let few = world.timeline.len() - start <= EMBEDDED_AT_ONCE;
        let mut room = if few { STEP_BYTES } else { LONG_STEP_BYTES };
        let mut numbers: Vec<UnitNo> = Vec::new();
        for (_, no) in &world.timeline.skip(start) {
            numbers.push(*no);
            match room.checked_sub(world.slot(*no).text_bytes()) {
                Some(left) => room = left,
                None => break,
            }
        }
        let whole = self.readable(world, numbers.iter().copied());
        let mut late = Late::default();
        let slots = numbers.iter().map(|no| whole.slot(*no));
        let mut kept: Vec<Option<Vector>> = match self.meaning {
            Meaning::Nothing => slots.map(|_| None).collect(),
            _ => slots.map(|slot| turn.keeper.take(&whole, slot, &mut late)).collect(),
        };
        late.known.retain(|(place, vector)| {
            let own = (*place as usize).checked_sub(start).and_then(|at| kept.get_mut(at));
            own.map(|own| *own = Some(vector.clone())).is_none()
        });
        // While the file may still have its vector, no unit is embedded again.
        let at_once = few && !turn.keeper.is_reading();
        Batch { places: start..start + numbers.len(), world: whole, numbers, kept, late, at_once }
    }

    /// Follows from a place on towards the end of `world`, as long as it is to go on and for not too many units: others wait
    /// for the turn. For whoever's turn it is.
    pub(super) fn follow(&self, world: &World, start: usize, turn: &mut Follower, go_on: &impl Fn() -> bool) {
        let mut reader = std::mem::take(&mut turn.reader);
        let mut batch = self.gather(world, start, turn);
        let mut readings = self.read(&self.known(), &batch, &mut reader);
        while batch.places.end < world.timeline.len() && batch.places.start < start + TURN_UNITS && go_on() {
            self.take_up(&batch, &mut readings);
            let next = self.gather(world, batch.places.end, turn);
            let known = self.known();
            readings = thread::scope(|scope| {
                let ahead = scope.spawn(|| self.read(&known, &next, &mut reader));
                self.enter(world, batch, readings, turn);
                ahead.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            batch = next;
        }
        self.enter(world, batch, readings, turn);
        turn.reader = reader;
    }

    fn known(&self) -> Known {
        self.index.read().known()
    }

    fn read(&self, known: &Known, batch: &Batch<'_>, reader: &mut Reader) -> Vec<Reading> {
        let read = |reader: &mut Reader, (slot, kept): (&&Slot, &Option<Vector>)| {
            known.read(reader, &entered(slot), kept.is_some() || !batch.at_once)
        };
        let slots = batch.slots();
        let both = slots.iter().zip(&batch.kept);
        let mut readings: Vec<Reading> = if slots.len() <= ALONE {
            both.map(|both| read(reader, both)).collect()
        } else {
            self.on_crew(|| {
                let both = slots.par_iter().zip(&batch.kept).with_min_len(16);
                both.map(|both| read(&mut self.crew_member(), both)).collect()
            })
        };
        if matches!(self.meaning, Meaning::Given { .. }) {
            for ((slot, kept), reading) in slots.iter().zip(&batch.kept).zip(&mut readings) {
                if let Some(vector) = kept.is_none().then(|| self.parked(slot)).flatten() {
                    reading.set_vector(vector);
                }
            }
        }
        readings
    }

    /// Makes the index know the words of a batch, so that entering it changes nothing of what is known.
    fn take_up(&self, batch: &Batch<'_>, readings: &mut [Reading]) {
        for (slots, readings) in batch.slots().chunks(STRIDE).zip(readings.chunks_mut(STRIDE)) {
            let mut index = self.write();
            slots.iter().zip(readings).for_each(|(slot, reading)| index.take_up(&entered(slot), reading));
        }
    }

    fn enter(&self, world: &World, batch: Batch<'_>, readings: Vec<Reading>, turn: &mut Follower) {
        let slots = batch.slots();
        let Batch { places, kept, .. } = &batch;
        let mut fresh = Vec::new();
        let places = u32::try_from(places.start).unwrap_or(u32::MAX)..;
        let mut entering = places.zip(slots.iter().zip(readings).zip(kept)).peekable();
        while entering.peek().is_some() {
            let mut index = self.write();
            for (place, ((slot, mut reading), kept)) in entering.by_ref().take(STRIDE) {
                index.enter(&entered(slot), kind(slot.kind), slot.task, &reading);
                let made = reading.take_vector();
                if slot.purged {
                    // It says nothing, and points nowhere.
                    continue;
                }
                match (kept, made) {
                    (Some(vector), _) => index.set_vector(place, vector),
                    (None, Some(vector)) => match record(slot, vector) {
                        Some(record) => fresh.push(record),
                        // What was embedded is not its text, which could not be read.
                        None => turn.missing.push_back(place),
                    },
                    (None, None) if self.meaning != Meaning::Nothing => turn.missing.push_back(place),
                    (None, None) => {}
                }
            }
        }
        drop(slots);
        let late = self.proved(world, batch.late);
        self.take_in(late.iter().map(|(place, vector)| (*place, vector)));
        turn.keeper.keep(fresh.into_iter());
    }
}
