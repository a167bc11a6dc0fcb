//! The relevance index of one Field, following its units.
//!
//! The index is no part of the state: it is a cache over the append-only sequence of commits, so it can be
//! behind (whoever needs it catches up from its own view) or ahead (a request names its horizon). Nobody in
//! the actor ever waits for it.
//!
//! Following (`index_follow`) is done by one at a time, whose turn it is: documents are read without the index being
//! held, many of them on all cores, and entered in short strides between which others read. Vectors come from the file beside the
//! log where it has them (`vector_keeper`). A few units without one are embedded at once, so that whoever recorded one
//! finds it by its meaning; many are entered with their words alone and embedded behind (`embed_missing`).

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rayon::prelude::*;

use super::index_lock::{Entering, IndexLock};
use super::shelf::Shelf;
use super::vector_file::{Record, text_checksum};
use super::vector_keeper::{Late, VectorKeeper};
use crate::field::{Slot, UnitNo, World, document};
use crate::limits::{EMBEDDED_TEXT_MAX_BYTES, EMBEDDINGS_PARKED_MAX};
use crate::log::LogError;
use crate::relevance::{Document, Index, Meaning, Reader, Vector, WordDirections};

/// Units entered under one write lock: short enough that readers hardly wait.
const STRIDE: usize = 32;
/// Terms that purged units are taken out of under one write lock.
const TERMS_STRIDE: usize = 1_024;
/// Units embedded behind in one go.
const BEHIND: usize = 2_048;

/// An index that readers share and that any of them brings up to date.
pub(super) struct SharedIndex {
    meaning: Meaning,
    index: IndexLock,
    turn: Mutex<Follower>,
    /// Where many documents are read.
    pool: Arc<rayon::ThreadPool>,
    /// What each thread of the pool reads with.
    crew: Vec<Mutex<Reader>>,
    /// Whether the state has been read back from the log.
    whole: AtomicBool,
    /// Whether the hub is about to end.
    winding_down: AtomicBool,
    /// What a model outside made at the doors.
    parked: Mutex<Parked>,
    /// How many purges of the world were followed.
    forgotten: AtomicUsize,
    /// Where texts are that memory does not hold, if anywhere.
    shelf: Option<Shelf>,
}

/// What whoever's turn it is works with.
struct Follower {
    reader: Reader,
    keeper: VectorKeeper,
    /// Documents that were entered without a vector, oldest first.
    missing: VecDeque<u32>,
}

/// Vectors of texts that are on their way to becoming units, by a hash of the text.
#[derive(Default)]
struct Parked {
    vectors: HashMap<u128, Vector>,
    /// Oldest first.
    order: VecDeque<u128>,
}

impl SharedIndex {
    /// An empty index that takes in so much meaning, reads on this pool and has its vectors kept.
    pub fn new(meaning: Meaning, pool: Arc<rayon::ThreadPool>, keeper: VectorKeeper) -> Self {
        let crew = (0..pool.current_num_threads()).map(|_| Mutex::default()).collect();
        let follower = Follower { reader: Reader::default(), keeper, missing: VecDeque::new() };
        let (index, turn) = (IndexLock::new(Index::of(meaning)), Mutex::new(follower));
        Self {
            meaning,
            index,
            turn,
            pool,
            crew,
            winding_down: AtomicBool::new(false),
            whole: AtomicBool::new(false),
            parked: Mutex::default(),
            forgotten: AtomicUsize::new(0),
            shelf: None,
        }
    }

    /// The same, reading texts that memory does not hold from this log.
    pub fn reading(mut self, shelf: Shelf) -> Self {
        self.shelf = Some(shelf);
        self
    }

    /// The world with these units held whole: itself where they are. Those whose texts cannot be read stay as they are.
    fn readable<'w>(&self, world: &'w World, units: impl Iterator<Item = UnitNo>) -> Cow<'w, World> {
        let shelved: Vec<UnitNo> = units.filter(|no| world.slot(*no).is_shelved()).collect();
        if shelved.is_empty() {
            return Cow::Borrowed(world);
        }
        let mut whole = world.clone();
        let given =
            self.shelf.as_ref().ok_or(LogError::Broken).and_then(|shelf| shelf.give(&mut whole, &shelved));
        if let Err(error) = given {
            tracing::error!(%error, "texts of archived units cannot be read");
        }
        Cow::Owned(whole)
    }

    /// Late vectors by their place; where a text has to be read first, they are those of that text.
    fn proved(&self, world: &World, late: Late) -> Vec<(u32, Vector)> {
        let Late { mut known, unproved } = late;
        for some in unproved.chunks(BEHIND) {
            let world = self.readable(world, some.iter().map(|(no, ..)| *no));
            for (no, place, record) in some {
                let doc = document(world.slot(*no));
                if doc.is_some_and(|doc| text_checksum(&doc) == record.text) {
                    known.push((*place, record.vector.clone()));
                }
            }
        }
        known
    }

    /// Runs `read` with an index that knows at least the committed units of `world`, if not all their vectors.
    pub fn with<R>(&self, world: &World, read: impl FnOnce(&Index) -> R) -> R {
        self.catch_up(world);
        read(&self.index.read())
    }

    /// Runs `read` with the index as it is, which may lack the newest units: before whoever waits to enter some. Nothing
    /// where those have waited too long.
    pub fn as_it_is<R>(&self, read: impl FnOnce(&Index) -> R) -> Option<R> {
        self.index.read_first().map(|index| read(&index))
    }

    /// Whether somebody waits to enter documents.
    #[cfg(test)]
    pub fn is_awaited(&self) -> bool {
        self.index.is_awaited()
    }

    /// Indexes what `world` has and the index lacks.
    pub fn catch_up(&self, world: &World) {
        self.catch_up_while(world, &|| true);
    }

    fn catch_up_while(&self, world: &World, go_on: &impl Fn() -> bool) {
        while (self.index.is_broken() || self.len() < world.timeline.len()) && go_on() {
            let mut turn = self.turn();
            self.heal(&mut turn);
            // Somebody else may have been faster.
            let start = self.len();
            if start < world.timeline.len() {
                self.follow(world, start, &mut turn, go_on);
            }
        }
    }

    /// Lets go of what the index and the file of vectors still know of units that are purged in this world. For the
    /// indexer alone: nobody is shown them meanwhile, because the world says which units there are.
    pub fn forget(&self, world: &World) {
        if world.purges.len() <= self.forgotten.load(Ordering::Acquire) {
            return;
        }
        // Whoever follows an older view, or fills it, would bring back what that shows.
        let mut turn = self.turn();
        self.heal(&mut turn);
        let done = self.forgotten.load(Ordering::Acquire);
        if self.lacks(world) > 0 {
            // It had to start anew, and an older view may enter what is purged: it is forgotten once all is entered.
            return;
        }
        let units: Vec<UnitNo> =
            world.purges.iter().skip(done).flat_map(|sweep| sweep.units.to_vec()).collect();
        let mut places: Vec<u32> = units.iter().filter_map(|no| world.slot(*no).place).collect();
        places.sort_unstable();
        self.write().forget(&places);
        let mut first = 0;
        while self.write().forget_words(first, TERMS_STRIDE, &places) {
            first += TERMS_STRIDE;
        }
        turn.keeper.erase(units.iter().map(|no| world.slot(*no).id));
        self.forgotten.store(world.purges.len(), Ordering::Release);
    }

    /// Whether this view may show units that are purged and forgotten. For whoever's turn it is: otherwise they may be
    /// forgotten right after.
    fn is_outdated(&self, world: &World) -> bool {
        world.purges.len() < self.forgotten.load(Ordering::Acquire)
    }

    /// How many committed units of `world` it does not know yet.
    pub fn lacks(&self, world: &World) -> usize {
        world.timeline.len().saturating_sub(self.len())
    }

    /// From now on the newest view holds all of the log.
    pub fn set_whole(&self) {
        self.whole.store(true, Ordering::Release);
    }

    /// Whether a view that is taken from now on holds all of the log.
    pub fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Acquire)
    }

    /// Nothing is kept any more: lets go of the thread that writes vectors.
    pub fn close(&self) {
        self.turn().keeper.give_up();
    }

    /// Nobody new will ask: the indexer need not follow to the end, which may be far after a start.
    pub fn wind_down(&self) {
        self.winding_down.store(true, Ordering::Release);
    }

    /// Brings the index up to a view, for the indexer alone: unless the hub winds down. `whole` if the view holds all of
    /// the log; whatever the file of vectors says beyond it is then of no use.
    pub fn follow_view(&self, world: &World, whole: bool) {
        let goes_on = || !self.winding_down.load(Ordering::Acquire);
        self.catch_up_while(world, &goes_on);
        if self.lacks(world) > 0 {
            return;
        }
        if whole {
            let late = self.turn().keeper.finish(world);
            let late = self.proved(world, late);
            self.take_in(late.iter().map(|(place, vector)| (*place, vector)));
        }
        self.forget(world);
    }

    /// Embeds units that were entered without a vector; whether there may be more that can be embedded now. For the
    /// indexer alone.
    pub fn embed_missing(&self, world: &World) -> bool {
        if self.meaning != Meaning::BuiltIn {
            return false;
        }
        let places = self.missing_places(BEHIND);
        let numbers =
            places.iter().filter_map(|place| world.timeline.get(*place as usize)).map(|(_, no)| *no);
        let world = &*self.readable(world, numbers);
        let of = |place: &u32| world.timeline.get(*place as usize).map(|(_, no)| world.slot(*no));
        let known = places.iter().filter_map(|place| of(place).map(|slot| (*place, slot)));
        let (unread, known): (Vec<_>, Vec<(u32, &Slot)>) = known.partition(|(_, slot)| is_unread(slot));
        // Where the log gave none of their texts, it is not asked again before there is more to do.
        let more = !known.is_empty() || unread.is_empty() && !places.is_empty();
        self.give_back(unread.into_iter().map(|(place, _)| place));
        let embed = |(place, slot): &(u32, &Slot)| {
            let mut reader = self.crew_member();
            Some((*place, record(slot, reader.embed(&document(slot)?))?))
        };
        let made: Vec<(u32, Record)> = self.pool.install(|| known.par_iter().filter_map(embed).collect());
        self.supply(world, made);
        more
    }

    /// Holds the vector of a text until its unit is entered.
    pub fn park(&self, text: &str, vector: Vector) {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        let key = text_key(text);
        if parked.vectors.insert(key, vector).is_none() {
            parked.order.push_back(key);
        }
        if parked.order.len() > EMBEDDINGS_PARKED_MAX
            && let Some(oldest) = parked.order.pop_front()
        {
            parked.vectors.remove(&oldest);
        }
    }

    /// Whether the vector of a text is at hand.
    pub fn is_parked(&self, text: &str) -> bool {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner).vectors.contains_key(&text_key(text))
    }

    fn parked(&self, slot: &Slot) -> Option<Vector> {
        let key = text_key(&embedded_text(&document(slot)?));
        self.parked.lock().unwrap_or_else(PoisonError::into_inner).vectors.get(&key).cloned()
    }

    /// Units that were entered without a vector, with their texts; they are missing no more until given back.
    pub fn take_missing(&self, world: &World, most: usize) -> Vec<(u32, String)> {
        let places = self.missing_places(most);
        let (known, unknown): (Vec<u32>, Vec<u32>) =
            places.into_iter().partition(|place| (*place as usize) < world.timeline.len());
        self.give_back(unknown.into_iter());
        let world = &*self.readable(world, known.iter().map(|place| world.timeline[*place as usize].1));
        let slot = |place: &u32| world.slot(world.timeline[*place as usize].1);
        let (unread, known): (Vec<u32>, Vec<u32>) =
            known.into_iter().partition(|place| is_unread(slot(place)));
        self.give_back(unread.into_iter());
        let text = |place: u32| {
            let slot = slot(&place);
            // Of what is purged there is nothing to be asked.
            document(slot).filter(|_| !slot.purged).map(|doc| (place, embedded_text(&doc)))
        };
        known.into_iter().filter_map(text).collect()
    }

    /// Takes out places of units without a vector; none as long as the file may have it.
    fn missing_places(&self, most: usize) -> Vec<u32> {
        let mut turn = self.turn();
        if turn.keeper.is_reading() {
            return Vec::new();
        }
        let index = self.index.read();
        let mut places = Vec::new();
        while places.len() < most
            && let Some(place) = turn.missing.pop_front()
        {
            // The file may have had it after all.
            if !index.has_vector(place) {
                places.push(place);
            }
        }
        places
    }

    /// Takes back what could not be embedded.
    pub fn give_back(&self, places: impl Iterator<Item = u32>) {
        self.turn().missing.extend(places);
    }

    /// Takes in vectors that were made behind. What cannot be said to be its unit's is missing again.
    pub fn fill(&self, world: &World, made: Vec<(u32, Vector)>) {
        let numbers =
            made.iter().filter_map(|(place, _)| world.timeline.get(*place as usize)).map(|(_, no)| *no);
        let world = &*self.readable(world, numbers);
        let mut unread = Vec::new();
        let named = |(place, vector): (u32, Vector)| {
            let slot = world.slot(world.timeline.get(place as usize)?.1);
            if is_unread(slot) {
                unread.push(place);
            }
            if slot.purged { None } else { record(slot, vector).map(|record| (place, record)) }
        };
        let named = made.into_iter().filter_map(named).collect();
        self.give_back(unread.into_iter());
        self.supply(world, named);
    }

    /// Whether a unit's vector is known.
    pub fn has_vector(&self, place: u32) -> bool {
        self.index.read().has_vector(place)
    }

    /// Takes in vectors of units of this view, and keeps them; where it is outdated, they are missing again.
    fn supply(&self, world: &World, made: Vec<(u32, Record)>) {
        let mut turn = self.turn();
        if self.is_outdated(world) {
            turn.missing.extend(made.into_iter().map(|(place, _)| place));
            return;
        }
        self.take_in(made.iter().map(|(place, record)| (*place, &record.vector)));
        turn.keeper.keep(made.into_iter().map(|(_, record)| record));
    }

    fn take_in<'a>(&self, vectors: impl Iterator<Item = (u32, &'a Vector)>) {
        let mut vectors = vectors.peekable();
        while vectors.peek().is_some() {
            let mut index = self.write();
            vectors.by_ref().take(8 * STRIDE).for_each(|(place, vector)| index.set_vector(place, vector));
        }
    }

    /// Runs work on the pool where many documents are read.
    pub fn on_crew<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let shared = || self.pool.install(work);
        if rayon::current_thread_index().is_none() {
            return shared();
        }
        // A thread of another pool would, while it waits here, begin other reads of its own pool, and these would
        // wait for the turn that it holds itself. So another thread waits for it.
        thread::scope(|scope| match scope.spawn(shared).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// Where the texts of units point, all by the same means: as the index knows it; what it does not know yet is read
    /// now, where that is the built-in model's to tell. Where some cannot be told, the words of all tell instead.
    pub fn directions(&self, world: &World, units: &[UnitNo]) -> Vec<Vector> {
        self.catch_up(world);
        let mut known: Vec<Option<Vector>> = Vec::with_capacity(units.len());
        for some in units.chunks(8 * STRIDE) {
            let index = self.index.read();
            let place = |no: &UnitNo| world.slot(*no).place;
            known.extend(some.iter().map(|no| place(no).and_then(|place| index.direction_of(place))));
        }
        // Of what is to be summarized nothing is archived yet.
        let doc = |no: &UnitNo| entered(world.slot(*no));
        let all = known.iter().all(Option::is_some);
        match self.meaning {
            _ if all => known.into_iter().flatten().collect(),
            Meaning::BuiltIn => self.on_crew(|| {
                let fill = |(no, known): (&UnitNo, &mut Option<Vector>)| {
                    known.take().unwrap_or_else(|| self.crew_member().embed(&doc(no)))
                };
                units.par_iter().zip(known.par_iter_mut()).map(fill).collect()
            }),
            _ => self.on_crew(|| {
                units.par_iter().map_init(WordDirections::default, |words, no| words.of(&doc(no))).collect()
            }),
        }
    }

    /// The reader of the pool's thread that asks.
    fn crew_member(&self) -> MutexGuard<'_, Reader> {
        let at = rayon::current_thread_index().unwrap_or(0) % self.crew.len();
        self.crew[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> MutexGuard<'_, Follower> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> Entering<'_> {
        self.index.write()
    }

    /// A unit that was left half entered: start anew rather than go on with it.
    fn heal(&self, turn: &mut Follower) {
        if self.index.is_broken() {
            turn.missing.clear();
            turn.keeper.give_up();
            // It may be followed anew by a view in which nothing is purged yet.
            self.forgotten.store(0, Ordering::Release);
            self.index.replace(Index::of(self.meaning));
        }
    }

    fn len(&self) -> usize {
        self.index.len()
    }
}

/// What of a document a model outside is given: its content, the question that it answers, its purpose.
pub(super) fn embedded_text(doc: &Document<'_>) -> String {
    let mut text = String::new();
    for part in [doc.content, doc.question.unwrap_or_default(), doc.purpose] {
        let room = EMBEDDED_TEXT_MAX_BYTES.saturating_sub(text.len() + 1);
        if !part.is_empty() && room > 0 {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&part[..part.floor_char_boundary(room)]);
        }
    }
    text
}

fn text_key(text: &str) -> u128 {
    let mut key = [0; 16];
    key.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    u128::from_le_bytes(key)
}

/// A unit as it is entered: without words where its text could not be read, which was said then.
fn entered(slot: &Slot) -> Document<'_> {
    let nothing = Document { content: "", purpose: "", question: None, author: "", role: "", session: None };
    document(slot).unwrap_or(nothing)
}

/// Whether a unit's text is in the log alone, and would be given to whoever can read it.
fn is_unread(slot: &Slot) -> bool {
    slot.is_shelved() && !slot.purged
}

fn record(slot: &Slot, vector: Vector) -> Option<Record> {
    Some(Record { unit: slot.id, text: text_checksum(&document(slot)?), vector })
}

impl std::fmt::Debug for SharedIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedIndex").finish_non_exhaustive()
    }
}

#[path = "index_follow.rs"]
mod follow;

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
