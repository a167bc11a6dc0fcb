//! Between the index and the file of vectors: gives what the file has, has written what it lacks.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError};

use super::vector_file::{Belonging, Identity, Job, Record, VectorReader, text_checksum};
use crate::field::{Slot, UnitNo, World, document};
use crate::limits::{VECTOR_BLOCK_RECORDS_MAX, VECTOR_RECORDS_HELD_MAX};
use crate::protocol::UnitId;
use crate::relevance::Vector;

/// Tells the identity of the log, once it has an entry.
pub(super) type Identify = Box<dyn Fn() -> Option<Identity> + Send>;

/// A file of vectors from the side of the index.
pub(super) struct VectorKeeper {
    stage: Stage,
    /// To the thread that writes; `None` where nothing is kept, or nothing any more.
    jobs: Option<SyncSender<Job>>,
    /// Records that wait: for the file to be read to its end, then for a block of them.
    held: Vec<Record>,
    /// Units whose records are to be taken out of the file, once it is written.
    erased: Vec<UnitId>,
}

/// Vectors of units that were entered before without one.
#[derive(Default)]
pub(super) struct Late {
    /// By their place.
    pub known: Vec<(u32, Vector)>,
    /// Of units whose text has to be read before it is known that they are theirs.
    pub unproved: Vec<(UnitNo, u32, Record)>,
}

enum Stage {
    /// The log had no entry yet, or nothing was asked.
    Unopened { path: PathBuf, model: String, dimensions: usize, identify: Identify },
    /// The file is being read. `ahead` are records of the block that ends at `reader.good()` and began at `from`.
    Reading { reader: VectorReader, ahead: VecDeque<Record>, from: u64, belonging: Belonging },
    /// What comes is written.
    Writing,
}

impl VectorKeeper {
    /// Keeps nothing.
    pub fn none() -> Self {
        Self { stage: Stage::Writing, jobs: None, held: Vec::new(), erased: Vec::new() }
    }

    /// Keeps vectors of a model in a file, written by whoever takes these jobs.
    pub fn new(
        path: PathBuf,
        model: &str,
        dimensions: usize,
        identify: Identify,
        jobs: SyncSender<Job>,
    ) -> Self {
        let stage = Stage::Unopened { path, model: model.to_owned(), dimensions, identify };
        Self { stage, jobs: Some(jobs), held: Vec::new(), erased: Vec::new() }
    }

    /// The vector of the unit that is entered next. Records of units that were entered before without one are put
    /// into `late`, by their place.
    pub fn take(&mut self, world: &World, slot: &Slot, late: &mut Late) -> Option<Vector> {
        self.open();
        loop {
            let record = self.next()?;
            if record.unit == slot.id && slot.purged {
                // It is erased before long.
                return None;
            }
            if record.unit == slot.id {
                // Whoever enters a unit holds it whole.
                if document(slot).is_some_and(|doc| record.text == text_checksum(&doc)) {
                    return Some(record.vector);
                }
                // Another log's, or another text's: nothing from here on can be trusted.
                self.put_back(record);
                self.stop_reading();
                return None;
            }
            let place = place_of(world, record.unit);
            if place.is_some_and(|place| Some(place) < slot.place) {
                self.take_late(world, record, late);
            } else {
                // Of a unit that is yet to come.
                self.put_back(record);
                return None;
            }
        }
    }

    /// Reads what is left for units that were entered without a vector, and ends the reading.
    pub fn finish(&mut self, world: &World) -> Late {
        self.open();
        let mut late = Late::default();
        while let Some(record) = self.next() {
            if place_of(world, record.unit).is_none() {
                self.put_back(record);
                self.stop_reading();
                break;
            }
            self.take_late(world, record, &mut late);
        }
        late
    }

    /// Whether the file may still give vectors: what is missing must not be made before it has given all.
    pub fn is_reading(&self) -> bool {
        matches!(self.stage, Stage::Reading { .. })
    }

    /// Has records written that the file does not hold.
    pub fn keep(&mut self, records: impl Iterator<Item = Record>) {
        if self.jobs.is_none() {
            return;
        }
        self.open();
        self.held.extend(records);
        if matches!(self.stage, Stage::Writing) {
            self.flush();
        } else if self.held.len() > VECTOR_RECORDS_HELD_MAX {
            // They are made again after the next start.
            self.held.clear();
        }
    }

    /// Has the records of units, which are purged, taken out of the file.
    pub fn erase(&mut self, units: impl Iterator<Item = UnitId>) {
        if self.jobs.is_none() {
            return;
        }
        self.open();
        self.erased.extend(units);
        let erased: HashSet<UnitId> = self.erased.iter().copied().collect();
        self.held.retain(|record| !erased.contains(&record.unit));
        if matches!(self.stage, Stage::Writing) {
            self.flush();
        }
    }

    /// Nothing is read or kept any more.
    pub fn give_up(&mut self) {
        *self = Self::none();
    }

    fn take_late(&mut self, world: &World, record: Record, late: &mut Late) {
        let Some(no) = world.find(record.unit) else { return };
        let slot = world.slot(no);
        let Some(place) = slot.place else { return };
        match document(slot) {
            Some(doc) if record.text == text_checksum(&doc) => late.known.push((place, record.vector)),
            Some(_) => {}
            None => late.unproved.push((no, place, record)),
        }
    }

    fn open(&mut self) {
        let Stage::Unopened { path, model, dimensions, identify } = &self.stage else { return };
        let Some(log) = identify() else { return };
        let belonging = Belonging { model: model.clone(), dimensions: *dimensions, log };
        match VectorReader::open(path, &belonging) {
            Some(reader) => {
                let from = reader.good();
                self.stage = Stage::Reading { reader, ahead: VecDeque::new(), from, belonging };
            }
            None => self.begin_writing(belonging, 0),
        }
    }

    /// The next record; at the end of the file, writing begins.
    fn next(&mut self) -> Option<Record> {
        let Stage::Reading { reader, ahead, from, .. } = &mut self.stage else { return None };
        while ahead.is_empty() {
            *from = reader.good();
            ahead.extend(
                reader.next_block().unwrap_or_default().into_iter().filter(|record| !record.is_erased()),
            );
            if !ahead.is_empty() || reader.good() == *from {
                break;
            }
            // All of that block was erased.
        }
        let next = ahead.pop_front();
        if next.is_none() {
            self.stop_reading();
        }
        next
    }

    fn put_back(&mut self, record: Record) {
        if let Stage::Reading { ahead, .. } = &mut self.stage {
            ahead.push_front(record);
        }
    }

    /// Writes on behind the last block that was of use whole.
    fn stop_reading(&mut self) {
        if let Stage::Reading { reader, ahead, from, belonging } = &self.stage {
            let keep = if ahead.is_empty() { reader.good() } else { *from };
            self.begin_writing(belonging.clone(), keep);
        }
    }

    fn begin_writing(&mut self, belonging: Belonging, keep: u64) {
        self.stage = Stage::Writing;
        self.send(Job::Begin { belonging, keep });
        self.flush();
    }

    fn flush(&mut self) {
        if !self.erased.is_empty() {
            let erased = std::mem::take(&mut self.erased);
            self.send(Job::Erase(erased));
        }
        if !self.held.is_empty() {
            let records = std::mem::take(&mut self.held);
            self.send(Job::Append(records));
        }
    }

    /// Never waits: where the disk is too slow, vectors are made again after the next start.
    fn send(&mut self, job: Job) {
        let Some(jobs) = &self.jobs else { return };
        match jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(Job::Append(records))) => {
                self.held = records;
                if self.held.len() > VECTOR_RECORDS_HELD_MAX {
                    self.held.truncate(VECTOR_BLOCK_RECORDS_MAX);
                }
            }
            Err(TrySendError::Full(Job::Erase(units))) => self.erased = units,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.jobs = None,
        }
    }
}

fn place_of(world: &World, unit: UnitId) -> Option<u32> {
    world.find_ever(unit).and_then(|no| world.slot(no).place)
}
