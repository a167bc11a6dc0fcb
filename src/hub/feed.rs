//! What was made durable, in order, for whoever follows it: the newest operations from memory, older ones from the
//! log. One and the same for pushes over WebSocket, event streams and polling.
//!
//! Nothing is queued for anybody. Each follower keeps its own place and takes from here at its own pace; one that is
//! slow, or comes back after a year, costs no more than its place. The newest operations are bounded in number and
//! bytes; pages of the log are shared by all who are on the same way.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::sync::{Semaphore, watch};

use super::actor::Published;
use super::bells::Bells;
use super::profiles::Profiles;
use super::reads::Reads;
use super::told::Committed;
use super::view::View;
use crate::field::{Entry, World, resolved_of};
use crate::limits;
use crate::log::LogError;
use crate::protocol::{Cursor, EventName, EventSet};

/// How much is kept in memory; the defaults are those of [`limits`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub operations: usize,
    pub bytes: usize,
    pub page_epochs: u64,
    pub page_bytes: usize,
    pub pages: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            operations: limits::RECENT_OPERATIONS_MAX,
            bytes: limits::RECENT_MAX_BYTES,
            page_epochs: limits::HISTORY_PAGE_EPOCHS,
            page_bytes: limits::HISTORY_PAGE_MAX_BYTES,
            pages: limits::HISTORY_PAGES_MAX,
        }
    }
}

/// The stream of a Field's durable operations.
pub(super) struct Feed {
    bounds: Bounds,
    recent: RwLock<Recent>,
    head: watch::Sender<u64>,
    /// By the epoch after which they begin, the one used last at the end.
    pages: Mutex<VecDeque<(u64, Reading)>>,
    /// Leave to read a page.
    turns: Arc<Semaphore>,
    reads: Arc<Reads>,
    published: Arc<Published>,
    pub bells: Arc<Bells>,
    pub profiles: Profiles,
}

/// The newest operations.
struct Recent {
    /// All operations after this epoch are here.
    from: u64,
    head: u64,
    bytes: usize,
    operations: VecDeque<(Arc<Committed>, usize)>,
    /// The connections that asked for what is no longer here, by epoch.
    origins: VecDeque<(u64, u64)>,
}

impl Recent {
    fn starting_at(head: u64) -> Self {
        Self { from: head, head, bytes: 0, operations: VecDeque::new(), origins: VecDeque::new() }
    }

    /// Lets go of the oldest operation.
    fn forget_oldest(&mut self) {
        let Some((oldest, bytes)) = self.operations.pop_front() else { return };
        self.from = oldest.epoch();
        self.bytes -= bytes;
        if let Some(origin) = oldest.origin {
            self.origins.push_back((oldest.epoch(), origin));
            if self.origins.len() > ORIGINS_MAX {
                self.origins.pop_front();
            }
        }
    }

    fn origins_after(&self, epoch: u64) -> Vec<(u64, u64)> {
        let first = self.origins.partition_point(|(known, _)| *known <= epoch);
        self.origins.range(first..).copied().collect()
    }
}

/// Operations in order, and how far they are all that there are.
#[derive(Clone)]
pub(super) struct Stretch {
    pub operations: Arc<[Arc<Committed>]>,
    /// There is no other operation up to here.
    pub through: u64,
}

/// What there is after a place.
pub(super) enum After {
    /// These.
    Here(Stretch),
    /// Nothing yet.
    Nothing,
    /// It stands in the log alone.
    InLog,
}

/// Pages that are read at the same time; each takes a connection to the log.
const READING_AT_ONCE: usize = 2;
/// How many times the pages that are kept may be waited for at the same time.
const READINGS_MAX: usize = 8;

/// Operations that have left memory while their replies may still be on their way, and who asked for them.
const ORIGINS_MAX: usize = 32 * 1024;

/// A page of the log, being read or read.
type Reading = Shared<BoxFuture<'static, Result<Stretch, Arc<LogError>>>>;

/// An operation that the actor hands over: its entry, and the connection that asked for it.
pub(super) type Fresh = (Arc<Entry>, Option<u64>);

impl Feed {
    /// A stream that begins after the last entry of the published state.
    pub fn new(reads: Arc<Reads>, published: Arc<Published>, meaning: bool, bounds: Bounds) -> Self {
        let head = published.view.load().world().last_epoch;
        Self {
            bounds,
            recent: RwLock::new(Recent::starting_at(head)),
            head: watch::Sender::new(head),
            pages: Mutex::default(),
            turns: Arc::new(Semaphore::new(READING_AT_ONCE)),
            reads,
            published,
            bells: Arc::default(),
            profiles: Profiles::new(meaning),
        }
    }

    /// Epoch of the last operation.
    pub fn head(&self) -> u64 {
        *self.head.borrow()
    }

    /// The newest durable state; it has applied every operation that was ever taken from here.
    pub fn world(&self) -> World {
        self.published.view.load().world().clone()
    }

    /// The same with the way to what memory does not hold of it.
    pub fn view(&self) -> Arc<View> {
        self.published.view.load_full()
    }

    /// How many purges the newest durable state knows of.
    pub fn purges(&self) -> usize {
        self.published.view.load().world().purges.len()
    }

    /// The place of what has just happened: everything up to the clock, which is durable.
    pub fn now(&self, clock: u64) -> Cursor {
        let last = {
            let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
            recent.operations.back().map(|(last, _)| Arc::clone(last)).filter(|last| last.epoch() >= clock)
        };
        let Some(last) = last else {
            // An operation whose reply is out may be on its way here: none of it is after now.
            let on_its_way = self.published.view.load().world().last_epoch == clock && self.head() < clock;
            return Cursor::new(clock, if on_its_way { u32::MAX } else { 0 });
        };
        Cursor::new(last.epoch(), last.last_index())
    }

    /// Adds operations that have become durable and whose replies are on their way. `head` is the log's last epoch;
    /// operations up to it that are not given are left to the log.
    pub fn publish(&self, fresh: Vec<Fresh>, head: u64) {
        let fresh: Vec<_> = fresh.into_iter().map(|(entry, origin)| (without_reply(entry), origin)).collect();
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        let expected = fresh.last().map_or(recent.head, |(entry, _)| entry.epoch);
        for (entry, origin) in fresh {
            let bytes = entry.likely_bytes();
            recent.bytes += bytes;
            recent.operations.push_back((Arc::new(Committed::new(entry, origin)), bytes));
        }
        if expected != head {
            // What the log holds was read back: it may have more than was handed over.
            while !recent.operations.is_empty() {
                recent.forget_oldest();
            }
            recent.from = head;
        }
        recent.head = head;
        while recent.operations.len() > self.bounds.operations || recent.bytes > self.bounds.bytes {
            recent.forget_oldest();
        }
        drop(recent);
        self.head.send_replace(head);
    }

    /// At most `most` operations after an epoch.
    pub fn after(&self, epoch: u64, most: usize) -> After {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        if epoch >= recent.head {
            return After::Nothing;
        }
        if epoch < recent.from {
            return After::InLog;
        }
        let first = recent.operations.partition_point(|(operation, _)| operation.epoch() <= epoch);
        let taken = recent.operations.range(first..).take(most);
        let operations: Arc<[_]> = taken.map(|(operation, _)| Arc::clone(operation)).collect();
        let all = first + operations.len() == recent.operations.len();
        let last = operations.last().map_or(recent.head, |last| last.epoch());
        After::Here(Stretch { operations, through: if all { recent.head } else { last } })
    }

    /// Whether a conflict was resolved after an epoch, as far as that is known without the log.
    pub fn may_have_resolved_since(&self, epoch: u64) -> bool {
        match self.after(epoch, usize::MAX) {
            After::Nothing => false,
            After::InLog => true,
            After::Here(stretch) => {
                let resolved = |one: &Arc<Committed>| one.announced.contains(EventName::ConflictResolved);
                stretch.operations.iter().any(resolved)
            }
        }
    }

    /// A page of the log that goes on after an epoch; it may begin earlier. Whoever asks for the same page while it
    /// is read gets that one. `goes_on`: the last page ended exactly there.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub async fn page(&self, epoch: u64, goes_on: bool) -> Result<Stretch, Arc<LogError>> {
        let boundary = epoch - epoch % self.bounds.page_epochs;
        let covering = self.covering(epoch);
        let stretch = self.finished(covering.unwrap_or(if goes_on { epoch } else { boundary })).await?;
        if stretch.through > epoch {
            return Ok(stretch);
        }
        // That one ended early: from its boundary on there are too many bytes to walk through them.
        self.finished(epoch).await
    }

    /// Where a page begins that is read already and has what comes after an epoch.
    fn covering(&self, epoch: u64) -> Option<u64> {
        let covers = |(after, reading): &&(u64, Reading)| {
            let through = || reading.peek().and_then(|read| read.as_ref().ok()).map(|read| read.through);
            *after <= epoch && through().is_some_and(|through| through > epoch)
        };
        self.pages().iter().find(covers).map(|(after, _)| *after)
    }

    async fn finished(&self, after: u64) -> Result<Stretch, Arc<LogError>> {
        let outcome = self.reading(after).await;
        if outcome.is_err() {
            // The next to come tries again.
            self.pages().retain(|(known, _)| *known != after);
        }
        outcome
    }

    fn pages(&self) -> MutexGuard<'_, VecDeque<(u64, Reading)>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reading(&self, after: u64) -> Reading {
        let mut pages = self.pages();
        let known = pages.iter().position(|(known, _)| *known == after);
        let reading = match known.and_then(|at| pages.remove(at)) {
            Some((_, reading)) => reading,
            None => self.read(after),
        };
        if pages.len() >= self.bounds.pages {
            // One that is still read is waited for by somebody.
            let idle = pages.iter().position(|(_, reading)| reading.peek().is_some());
            if idle.is_some() || pages.len() >= READINGS_MAX * self.bounds.pages {
                pages.remove(idle.unwrap_or(0));
            }
        }
        pages.push_back((after, reading.clone()));
        reading
    }

    /// Begins to read a page, up to the end of its range or to what is kept in memory.
    fn read(&self, after: u64) -> Reading {
        let Bounds { page_epochs, page_bytes, .. } = self.bounds;
        let (from, origins) = {
            let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
            (recent.from, recent.origins_after(after))
        };
        let end = (after - after % page_epochs + page_epochs).min(from);
        let (reads, turns) = (Arc::clone(&self.reads), Arc::clone(&self.turns));
        // A task of its own: it is read to the end whether or not somebody still waits for it.
        let task = tokio::spawn(async move {
            let _turn = turns.acquire_owned().await;
            let scan = move || reads.with_reader(|reader| scan(reader, after, end, page_bytes, &origins));
            tokio::task::spawn_blocking(scan).await.unwrap_or(Err(LogError::Broken))
        });
        async move { task.await.unwrap_or(Err(LogError::Broken)).map_err(Arc::new) }.boxed().shared()
    }

    /// Wakes those whom operations concern, as they come, until the Field ends: everything after this call, however
    /// late the task gets its first turn.
    pub fn ring(self: Arc<Self>) -> impl Future<Output = ()> + Send {
        let mut heads = self.head.subscribe();
        let mut done = *heads.borrow_and_update();
        async move {
            // The sender is in the feed itself: the task is ended by whoever started it.
            while heads.changed().await.is_ok() {
                heads.borrow_and_update();
                done = self.ring_since(done);
                self.bells.set_examined(done);
            }
        }
    }

    fn ring_since(&self, mut done: u64) -> u64 {
        // Read before anybody is counted: who begins to listen later looks for itself at everything up to here.
        let head = self.head();
        if self.bells.is_empty() {
            return head;
        }
        let (mut events, began) = (EventSet::NONE, done);
        loop {
            let stretch = match self.after(done, usize::MAX) {
                After::Here(stretch) => stretch,
                After::Nothing => break,
                After::InLog => {
                    // More than is kept has come at once: everybody looks for themselves, up to here at least.
                    let head = self.head();
                    self.bells.ring_all(done);
                    done = head;
                    continue;
                }
            };
            for operation in &*stretch.operations {
                events = events.or(operation.announced);
                self.ring_agents(operation);
            }
            done = stretch.through;
        }
        self.bells.ring(events, began);
        done
    }

    /// Wakes agents whose subscriptions an operation changes, and authors whose conflict it resolves.
    fn ring_agents(&self, operation: &Committed) {
        let entry = &operation.entry;
        let after = entry.epoch - 1;
        for agent in entry.events.iter().filter_map(|event| event.changes_listening_of(&entry.agent_id)) {
            self.bells.ring_agent(agent, after, false);
        }
        if !operation.announced.contains(EventName::ConflictResolved) {
            return;
        }
        for author in resolved_of(self.view().world(), entry) {
            self.bells.ring_agent(&author, after, true);
        }
    }
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("head", &self.head()).finish_non_exhaustive()
    }
}

/// Nobody is told of an operation's reply, and a REGISTER's is the most of it.
fn without_reply(entry: Arc<Entry>) -> Arc<Entry> {
    match Arc::try_unwrap(entry) {
        Ok(entry) => Arc::new(Entry { reply: None, ..entry }),
        // The log thread still looks at it.
        Err(entry) => entry,
    }
}

/// Reads the operations after an epoch, up to `end`, fewer where they come to more than `page_bytes`. `origins`: who
/// asked for which, as far as that is known.
fn scan(
    reader: &dyn crate::log::LogReader,
    after: u64,
    end: u64,
    page_bytes: usize,
    origins: &[(u64, u64)],
) -> Result<Stretch, LogError> {
    let mut operations = Vec::new();
    let (mut bytes, mut through, mut fault) = (0, end, None);
    reader.scan(after, &mut |epoch, body| {
        if epoch > end {
            return ControlFlow::Break(());
        }
        match Entry::from_json(body) {
            Ok(entry) => {
                let known = origins.binary_search_by_key(&epoch, |(epoch, _)| *epoch);
                let origin = known.ok().map(|at| origins[at].1);
                operations.push(Arc::new(Committed::new(Arc::new(entry), origin)));
            }
            Err(error) => {
                fault = Some(LogError::Corrupt { epoch: Some(epoch), what: error.to_string() });
                return ControlFlow::Break(());
            }
        }
        bytes += body.len();
        if bytes > page_bytes {
            through = epoch;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    match fault {
        Some(fault) => Err(fault),
        None => Ok(Stretch { operations: operations.into(), through }),
    }
}
