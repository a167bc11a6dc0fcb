//! The delivery engine, held against a naive reading of what it is to deliver.
//!
//! The [`Rig`] is a stream with nothing around it: entries are put in by hand, bounds are tiny, the log's readers are
//! watched. [`stage`] is a whole Field instead, with a log that fails on demand; [`comparing`] looks at one whose reads
//! take long.

mod compacting;
mod comparing;
mod delivery;
mod detecting;
mod follower;
mod outbox;
mod shelved;
mod stage;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc as mpsc_blocking};

use arc_swap::ArcSwap;
use imbl::Vector;
use tokio::sync::mpsc;

use super::actor::Published;
use super::detection::{Detector, Scanner};
use super::feed::{Bounds, Feed};
use super::index::SharedIndex;
use super::past::Past;
use super::push::Push;
use super::reads::Reads;
use super::shelf::Shelf;
use super::vector_keeper::VectorKeeper;
use super::view::Frame;
use crate::field::tests::all_notices;
use crate::field::{Concern, Entry, Event, Listener, Policy, State, Subject, World, apply};
use crate::log::{Batch, Log, LogError, LogReader, MemoryLog, Row, Stat};
use crate::protocol::{Cursor, EventName, Subscription};
use crate::relevance::Meaning;

/// A stream whose operations are put in by hand.
struct Rig {
    feed: Arc<Feed>,
    published: Arc<Published>,
    frame: Frame,
    log: MemoryLog,
    state: State,
    watch: Arc<Watch>,
    /// The same for the reader of texts that memory does not hold.
    shelf: Arc<Watch>,
}

/// What the readers of a rig's log are watched for, and made to fail.
#[derive(Default)]
struct Watch {
    scans: AtomicUsize,
    /// How many scans, which do so after their first row, and look-ups of one row still fail.
    failing: AtomicUsize,
    /// Whether what is looked for is damaged, whenever it is.
    damaged: AtomicBool,
}

impl Watch {
    fn is_whole(&self) -> Result<(), LogError> {
        match self.damaged.load(Ordering::SeqCst) {
            true => Err(LogError::Corrupt { epoch: None, what: "the test wants it so".to_owned() }),
            false => Ok(()),
        }
    }

    fn fails(&self) -> bool {
        let fails = |left: usize| left.checked_sub(1);
        self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok()
    }
}

fn pulled() -> LogError {
    LogError::Io("the test wants it so".to_owned())
}

struct Watched(Box<dyn LogReader>, Arc<Watch>);

impl LogReader for Watched {
    fn scan(&self, after: u64, each: &mut dyn FnMut(u64, &str) -> ControlFlow<()>) -> Result<(), LogError> {
        self.1.scans.fetch_add(1, Ordering::SeqCst);
        self.1.is_whole()?;
        if self.1.fails() {
            self.0.scan(after, &mut |epoch, body| {
                let _ = each(epoch, body);
                ControlFlow::Break(())
            })?;
            return Err(pulled());
        }
        self.0.scan(after, each)
    }

    fn get(&self, epoch: u64) -> Result<Option<Row>, LogError> {
        self.1.is_whole()?;
        if self.1.fails() { Err(pulled()) } else { self.0.get(epoch) }
    }

    fn last_epoch(&self) -> Result<u64, LogError> {
        self.0.last_epoch()
    }

    fn reserved(&self) -> Result<u64, LogError> {
        self.0.reserved()
    }

    fn stat(&self) -> Result<Stat, LogError> {
        self.0.stat()
    }
}

impl Rig {
    fn new(bounds: Bounds) -> Self {
        static POOL: OnceLock<Arc<rayon::ThreadPool>> = OnceLock::new();
        let pool = POOL.get_or_init(|| {
            Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread"))
        });
        let (policy, log) = (Arc::new(Policy::default()), MemoryLog::new());
        let (watch, texts) = (Arc::new(Watch::default()), Arc::new(Watch::default()));
        let index = Arc::new(SharedIndex::new(Meaning::Nothing, Arc::clone(pool), VectorKeeper::none()));
        let watched = |watch: &Arc<Watch>| {
            Box::new(Watched(log.reader().expect("memory can be read"), Arc::clone(watch)))
        };
        let shelf = Arc::new(Shelf::new(watched(&texts)));
        let frame = Frame { name: "rig".into(), policy: Arc::clone(&policy), index, shelf };
        let view = ArcSwap::new(frame.view(&World::default(), Vector::new(), 0));
        let published = Arc::new(Published { view, clock: AtomicU64::new(0) });
        let reader = watched(&watch);
        let actor = mpsc::channel(1).0.downgrade();
        let detector = Arc::new(Detector::new(Arc::clone(&frame.index)));
        let detection = (detector, Arc::new(Scanner::new(mpsc_blocking::sync_channel(1).0)));
        let past = Past::new(None, Meaning::Nothing, Arc::clone(pool));
        let readers: Vec<Box<dyn crate::log::LogReader>> = vec![reader];
        let reads = Arc::new(Reads::new(Arc::clone(pool), policy, readers, past, actor, detection, None));
        let feed = Arc::new(Feed::new(reads, Arc::clone(&published), false, bounds));
        Self { feed, published, frame, log, state: State::default(), watch, shelf: texts }
    }

    /// Lets go of the texts of all that is archived, as a Field does behind a COMPACT.
    fn shelve(&mut self) {
        drop(self.state.shelve(usize::MAX, u64::MAX));
        self.show();
    }

    fn show(&self) {
        let view = self.frame.view(&self.state.world, Vector::new(), self.state.clock);
        self.published.view.store(view);
    }

    /// Makes operations durable as one batch, and gives them to whoever follows.
    fn publish(&mut self, entries: &[Entry]) {
        self.publish_of(entries, None);
    }

    /// The same for operations that a connection asked for.
    fn publish_of(&mut self, entries: &[Entry], origin: Option<u64>) {
        let rows: Vec<_> =
            entries.iter().map(|entry| Row { epoch: entry.epoch, body: entry.to_json() }).collect();
        self.log.append(&Batch { rows: &rows, reserve: None }).expect("memory can be written");
        entries.iter().for_each(|entry| apply(&mut self.state, entry));
        self.show();
        let fresh = entries.iter().map(|entry| (Arc::new(entry.clone()), origin)).collect();
        self.feed.publish(fresh, self.state.world.last_epoch);
    }
}

/// A notice that is to be told, as the specification reads: its place, its name, what it is about.
type Due = (Cursor, EventName, Concern);

/// Whether nobody is told this any more: it is about what is purged.
fn is_gone(world: &World, (_, event, concern): &Due) -> bool {
    match concern {
        Concern::Unit(unit) => world.find(*unit).is_none(),
        Concern::Conflict(id) if *event == EventName::ConflictDetected => {
            world.find_conflict(*id).map(|no| &world.conflicts[no as usize]).is_none_or(|conflict| {
                [conflict.unit_a, conflict.unit_b].iter().any(|unit| world.find(*unit).is_none())
            })
        }
        _ => false,
    }
}

/// What a listener is to be told of `entries` after a place: everything that it asks for at that point of the order,
/// its own doings only where they touch a conflict of its units, until its subscription ends.
fn due(entries: &[Entry], world: &World, listener: &Listener, place: Cursor) -> Vec<Due> {
    let (agent, id) = (listener.agent.as_deref(), &listener.subscription.id);
    let mut events = listener.subscription.events.clone();
    let mut all = Vec::new();
    for entry in entries.iter().filter(|entry| entry.epoch >= place.epoch) {
        for event in entry.events.iter().filter(|_| agent.is_some() && entry.epoch > listener.since()) {
            // Once it has ended, its name may be another's.
            let by_itself = Some(&*entry.agent_id) == agent;
            match event {
                Event::Subscribed { subscription } if by_itself && subscription.id == *id => {
                    events.clone_from(&subscription.events);
                }
                Event::Unsubscribed { subscription_id } if by_itself && subscription_id == id => return all,
                Event::Deregistered { agent: left } if Some(&**left) == agent => return all,
                _ => {}
            }
        }
        for notice in all_notices(world, entry) {
            let is_own = Some(&*notice.actor) == agent;
            let on_own_unit = match &notice.subject {
                Subject::Conflict { authors, .. } => authors.iter().any(|author| author.as_deref() == agent),
                _ => false,
            };
            if notice.cursor > place && events.contains(&notice.event) && (!is_own || on_own_unit) {
                all.push((notice.cursor, notice.event, notice.concern()));
            }
        }
    }
    all
}

/// What a push tells.
fn told(push: &Push) -> Due {
    let notice = &push.page[push.at].notice;
    (notice.cursor, notice.event, notice.concern())
}

fn subscription(id: &str, events: &[EventName], debounce_ms: u64) -> Arc<Subscription> {
    let events = events.to_vec();
    Subscription { id: id.into(), events, min_relevance: 0.0, debounce_ms, include_unit: false }.into()
}

/// Somebody who watches these events, or all that there are.
fn observer(events: &[EventName]) -> Listener {
    Listener::observer(subscription("watch", events, 0))
}

/// A history in which nobody asks for a pause: that has a test of its own.
fn undebounced(mut entries: Vec<Entry>) -> Vec<Entry> {
    for event in entries.iter_mut().flat_map(|entry| &mut entry.events) {
        if let Event::Subscribed { subscription } = event {
            *subscription = Subscription { debounce_ms: 0, ..Subscription::clone(subscription) }.into();
        }
    }
    entries
}

/// All subscriptions that were ever made or changed, as they were from then on.
fn subscribers(entries: &[Entry]) -> Vec<Listener> {
    let made = |entry: &Entry, event: &Event| match event {
        Event::Subscribed { subscription } => {
            Some(Listener::new(Arc::clone(&entry.agent_id), Arc::clone(subscription), entry.epoch))
        }
        _ => None,
    };
    entries.iter().flat_map(|entry| entry.events.iter().filter_map(move |event| made(entry, event))).collect()
}

/// All places that a history knows, and some that it does not.
fn places(entries: &[Entry], world: &World) -> Vec<Cursor> {
    let mut places = vec![Cursor::default()];
    for entry in entries {
        places.extend(all_notices(world, entry).iter().map(|notice| notice.cursor));
        places.push(Cursor::new(entry.epoch, 0));
        places.push(Cursor::new(entry.epoch, u32::MAX));
    }
    places
}
