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
use tokio::sync::watch;

use super::actor::Published;
use super::bells::Bells;
use super::profiles::Profiles;
use super::reads::Reads;
use super::told::Committed;
use crate::field::{Entry, Subject, World};
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

/// A page of the log, being read or read. It is read to the end whether or not somebody still waits for it.
type Reading = Shared<BoxFuture<'static, Result<Stretch, Arc<LogError>>>>;

/// An operation that the actor hands over: its entry, and the connection that asked for it.
pub(super) type Fresh = (Arc<Entry>, Option<u64>);

impl Feed {
    /// A stream that begins after the last entry of the published state.
    pub fn new(reads: Arc<Reads>, published: Arc<Published>, meaning: bool, bounds: Bounds) -> Self {
        let head = published.view.load().world().last_epoch;
        Self {
            bounds,
            recent: RwLock::new(Recent { from: head, head, bytes: 0, operations: VecDeque::new() }),
            head: watch::Sender::new(head),
            pages: Mutex::default(),
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
        let told = last.told(|| self.world()).len();
        Cursor::new(last.epoch(), told.saturating_sub(1) as u32)
    }

    /// Adds operations that have become durable and whose replies are on their way. `head` is the log's last epoch;
    /// operations up to it that are not given are left to the log.
    pub fn publish(&self, fresh: Vec<Fresh>, head: u64) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        let expected = fresh.last().map_or(recent.head, |(entry, _)| entry.epoch);
        for (entry, origin) in fresh {
            let bytes = entry.likely_bytes();
            recent.bytes += bytes;
            recent.operations.push_back((Arc::new(Committed::new(entry, origin)), bytes));
        }
        if expected != head {
            // What the log holds was read back: it may have more than was handed over.
            *recent = Recent { from: head, head, bytes: 0, operations: VecDeque::new() };
        }
        recent.head = head;
        while recent.operations.len() > self.bounds.operations || recent.bytes > self.bounds.bytes {
            let Some((oldest, bytes)) = recent.operations.pop_front() else { break };
            recent.from = oldest.epoch();
            recent.bytes -= bytes;
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

    /// A page of the log that goes on after an epoch; it may begin earlier. Whoever asks for the same page while it
    /// is read gets that one.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub async fn page(&self, epoch: u64) -> Result<Stretch, Arc<LogError>> {
        let mut after = epoch - epoch % self.bounds.page_epochs;
        loop {
            let outcome = self.reading(after).await;
            if outcome.is_err() {
                // The next to come tries again.
                self.pages().retain(|(known, _)| *known != after);
            }
            let stretch = outcome?;
            if stretch.through > epoch {
                return Ok(stretch);
            }
            // The page ended early.
            after = stretch.through;
        }
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
            pages.pop_front();
        }
        pages.push_back((after, reading.clone()));
        reading
    }

    /// Begins to read a page, up to the end of its range or of the log.
    fn read(&self, after: u64) -> Reading {
        let Bounds { page_epochs, page_bytes, .. } = self.bounds;
        let end = (after - after % page_epochs + page_epochs).min(self.head());
        let reads = Arc::clone(&self.reads);
        let scan = move || reads.with_reader(|reader| scan(reader, after, end, page_bytes));
        let task = tokio::task::spawn_blocking(scan);
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
        for told in operation.told(|| self.world()) {
            if let (EventName::ConflictResolved, Subject::Conflict { authors, .. }) =
                (told.notice.event, &told.notice.subject)
            {
                for author in authors.iter().flatten() {
                    self.bells.ring_agent(author, after, true);
                }
            }
        }
    }
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("head", &self.head()).finish_non_exhaustive()
    }
}

/// Reads the operations after an epoch, up to `end`, fewer where they come to more than `page_bytes`.
fn scan(
    reader: &dyn crate::log::LogReader,
    after: u64,
    end: u64,
    page_bytes: usize,
) -> Result<Stretch, LogError> {
    let mut operations = Vec::new();
    let (mut bytes, mut through, mut fault) = (0, end, None);
    reader.scan(after, &mut |epoch, body| {
        if epoch > end {
            return ControlFlow::Break(());
        }
        match Entry::from_json(body) {
            Ok(entry) => operations.push(Arc::new(Committed::new(Arc::new(entry), None))),
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
