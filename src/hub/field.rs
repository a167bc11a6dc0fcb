//! A Field as the doors see it: hand a message in, get its answer; look at the durable state.

use std::future::Future;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc as blocking};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use arc_swap::ArcSwap;
use imbl::Vector;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use super::StartError;
use super::actor::{Actor, Call, Parts, Published};
use super::answer::Answer;
use super::courtesy::{INDEX_NICENESS, Writes, Writing, step_back};
use super::detection::{Behind, DetectionDoor, Detector, Scanner};
use super::endpoint::Endpoint;
use super::enricher::{Enricher, embed_behind};
use super::feed::{Bounds, Feed};
use super::index::SharedIndex;
use super::metrics::Metrics;
use super::past::Past;
use super::plans::SummaryDesk;
use super::reads::Reads;
use super::restore::restore;
use super::scribe::Scribe;
use super::sessions::ConnectionId;
use super::shelf::Shelf;
use super::snapshot_keeper::SnapshotKeeper;
use super::vector_file;
use super::vector_keeper::{Identify, VectorKeeper};
use super::view::{Frame, View};
use super::writer;
use crate::field::{Message, Policy, World, log_lines};
use crate::limits::{ACTOR_QUEUE, ACTOR_QUEUE_MAX_BYTES, PAGE_MAX_BYTES, QUEUE_PATIENCE_MS};
use crate::log::{Log, LogError, LogReader};
use crate::protocol::{Capabilities, Cursor, Envelope, ErrorCode, Refusal, Request, Timestamp};
use crate::relevance::{Meaning, embedding};

/// Connections to the log beside those of the read pool's threads.
const READERS_FOR_GETS: usize = 2;

/// How long `is_ready` waits for the actor.
const READY_PATIENCE: Duration = Duration::from_secs(1);

/// One Field of a running hub.
#[derive(Debug)]
pub struct Field {
    frame: Frame,
    calls: mpsc::Sender<Call>,
    /// Embeds messages by a model outside, where one is used.
    enricher: Option<Enricher>,
    /// Compares messages with the Field, where that is wanted.
    detection: Option<DetectionDoor>,
    scanner: Arc<Scanner>,
    writes: Writes,
    /// What the queue of calls may hold in bytes.
    room: Arc<Semaphore>,
    published: Arc<Published>,
    reads: Arc<Reads>,
    feed: Arc<Feed>,
    /// Wakes whoever follows; ended when this is dropped.
    herald: Mutex<JoinSet<()>>,
    threads: Mutex<Threads>,
}

/// A Field's threads, until they are waited for.
#[derive(Debug, Default)]
struct Threads {
    /// The log thread and the indexer.
    working: Vec<thread::JoinHandle<()>>,
    /// Those that write the vectors and the snapshots, which end after them.
    keeping: Vec<thread::JoinHandle<()>>,
}

/// Figures of a Field's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogFigures {
    /// Entries in it.
    pub entries: u64,
    /// Bytes on disk.
    pub bytes: u64,
}

/// What a Field shares with the others of its hub, and where it may keep files.
pub(super) struct Means {
    /// Where reads are computed.
    pub readers: Arc<rayon::ThreadPool>,
    /// Where messages are compared with the Field: not behind reads, since writers wait.
    pub comparers: Arc<rayon::ThreadPool>,
    /// Where many units are indexed at once.
    pub indexers: Arc<rayon::ThreadPool>,
    /// Its writes under way.
    pub writes: Writes,
    pub metrics: Arc<Metrics>,
    /// The Field's own directory, if it has one.
    pub directory: Option<PathBuf>,
    /// The embedding model outside, where one is used.
    pub endpoint: Option<Arc<Endpoint>>,
    /// The language model outside that writes syntheses, where one is used.
    pub scribe: Option<Arc<Scribe>>,
    /// How long a message may be held up to be compared with the Field; nothing turns that off.
    pub detection_budget: Option<Duration>,
    /// Entries between two snapshots of the state; 0 for none.
    pub snapshot_entries: u64,
}

impl Field {
    /// Rebuilds a Field from its log and starts its actor, its log thread and its indexer.
    pub(super) async fn start(
        name: &str,
        policy: Policy,
        log: Box<dyn Log>,
        means: Means,
    ) -> Result<Self, StartError> {
        let failed = |error: LogError| StartError::Log { field: name.to_owned(), error };
        let Means {
            readers: pool,
            comparers,
            indexers,
            writes,
            metrics,
            directory,
            endpoint,
            scribe,
            detection_budget,
            snapshot_entries,
        } = means;
        let endpoint = endpoint.filter(|_| policy.meaning);
        let meaning = match &endpoint {
            Some(endpoint) => Meaning::Given { dimensions: endpoint.dimensions() },
            None if policy.meaning => Meaning::BuiltIn,
            None => Meaning::Nothing,
        };
        let model = endpoint.as_ref().map_or(embedding::NAME, |endpoint| endpoint.model());
        let mut keeping = Vec::new();
        let keeper = match directory.as_ref().filter(|_| policy.meaning) {
            Some(directory) => {
                let path = directory.join(vector_file::FILE_NAME);
                let (jobs, thread) =
                    vector_file::spawn_writer(name, path.clone()).map_err(StartError::Thread)?;
                keeping.push(thread);
                let identify = identify(log.reader().map_err(failed)?);
                VectorKeeper::new(path, model, meaning.dimensions(), identify, jobs)
            }
            None => VectorKeeper::none(),
        };
        let past = Past::new(directory.clone(), meaning, Arc::clone(&indexers));
        // A connection of its own: what it reads behind may take long.
        let own = Shelf::new(log.reader().map_err(failed)?);
        let index = Arc::new(SharedIndex::new(meaning, indexers, keeper).reading(own));
        let shelf = Arc::new(Shelf::new(log.reader().map_err(failed)?));
        let frame = Frame { name: name.into(), policy: Arc::new(policy), index, shelf };
        let published = Arc::new(Published {
            view: ArcSwap::new(frame.view(&World::default(), Vector::new(), 0)),
            clock: AtomicU64::new(0),
        });
        let (indexer, for_indexer) =
            spawn_indexer(name, &published, &frame.index).map_err(StartError::Thread)?;

        let reader = log.reader().map_err(failed)?;
        let progress = {
            let (published, indexer, frame) = (Arc::clone(&published), indexer.clone(), frame.clone());
            move |world: &World| {
                published.view.store(frame.view(world, Vector::new(), 0));
                let _ = indexer.try_send(());
            }
        };
        // Also where none are written any more, an old one is still good for its entries.
        let place = directory.clone();
        let rebuild = move || (restore(reader.as_ref(), place.as_deref(), progress), reader);
        let (restored, reader) = tokio::task::spawn_blocking(rebuild)
            .await
            .map_err(|error| StartError::Thread(std::io::Error::other(error)))?;
        let restored = restored.map_err(failed)?.reborn(Timestamp::now());
        let mut snapshots = SnapshotKeeper::none();
        if let Some(directory) = directory.clone() {
            let taken = (restored.from_snapshot, restored.purges);
            let reader = log.reader().map_err(failed)?;
            let started = SnapshotKeeper::start(name, directory, snapshot_entries, taken, reader);
            let (keeper, thread) = started.map_err(StartError::Thread)?;
            snapshots = keeper;
            keeping.push(thread);
        }
        let state = &restored.state;
        published.view.store(frame.view(&state.world, state.presence.all(), state.clock));
        published.clock.store(state.clock, Ordering::Release);

        let detector = Arc::new(Detector::new(Arc::clone(&frame.index)));
        let (waker, woken) = blocking::sync_channel(1);
        let scanner = Arc::new(Scanner::new(waker.clone()));

        let mut readers = vec![reader];
        while readers.len() < pool.current_num_threads() + READERS_FOR_GETS {
            readers.push(log.reader().map_err(failed)?);
        }
        let (calls, calls_in) = mpsc::channel(ACTOR_QUEUE);
        let detection = detection_budget
            .map(|budget| DetectionDoor::new(Arc::clone(&detector), comparers, writes.clone(), budget));
        let for_detection = (Arc::clone(&detector), Arc::clone(&scanner));
        let policy = Arc::clone(&frame.policy);
        let desk = scribe.map(|scribe| SummaryDesk::new(scribe, Arc::clone(&published)));
        let reads = Reads::new(pool, policy, readers, past, calls.downgrade(), for_detection, desk);
        let reads = Arc::new(reads);
        let told = (Arc::clone(&published), calls.downgrade());
        let behind = Behind::new(&frame.name, detector, &scanner, told, writes.clone(), detection.is_some());
        let for_detector = thread::Builder::new()
            .name(format!("akashik-detect-{name}"))
            .spawn(move || behind.run(&woken))
            .map_err(StartError::Thread)?;
        let (jobs, jobs_in) = blocking::sync_channel(1);
        let (done, done_in) = mpsc::channel(4);
        let for_writer = thread::Builder::new()
            .name(format!("akashik-log-{name}"))
            .spawn(move || writer::run(log, directory, &jobs_in, &done));
        let working = vec![for_writer.map_err(StartError::Thread)?, for_indexer, for_detector];
        frame.index.set_whole();
        let _ = indexer.try_send(());
        let bounds = Bounds::default();
        let feed = Feed::new(Arc::clone(&reads), Arc::clone(&published), frame.policy.meaning, bounds);
        let feed = Arc::new(feed);
        let mut herald = JoinSet::new();
        herald.spawn(Arc::clone(&feed).ring());
        let parts = Parts {
            frame: frame.clone(),
            restored,
            calls: calls_in,
            jobs,
            done: done_in,
            published: Arc::clone(&published),
            reads: Arc::clone(&reads),
            feed: Arc::clone(&feed),
            metrics,
            indexer,
            detector: waker,
            snapshots,
        };
        let calls_back = calls.downgrade();
        tokio::spawn(Actor::new(parts).run());
        let enricher = endpoint.map(|endpoint| {
            let (index, published) = (Arc::clone(&frame.index), Arc::clone(&published));
            tokio::spawn(embed_behind(Arc::clone(&endpoint), index, published, calls_back));
            Enricher::new(endpoint, Arc::clone(&frame.index))
        });
        let room = Arc::new(Semaphore::new(ACTOR_QUEUE_MAX_BYTES));
        Ok(Self {
            frame,
            calls,
            enricher,
            detection,
            scanner,
            writes,
            room,
            published,
            reads,
            feed,
            herald: Mutex::new(herald),
            threads: Mutex::new(Threads { working, keeping }),
        })
    }

    /// The Field's name.
    pub fn name(&self) -> &str {
        &self.frame.name
    }

    /// What an operator decided about it.
    pub(super) fn policy(&self) -> &Policy {
        &self.frame.policy
    }

    /// Where reads are computed.
    pub(super) fn reads(&self) -> &Arc<Reads> {
        &self.reads
    }

    /// Its writes under way.
    #[cfg(test)]
    pub(super) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// The relevance index.
    pub(super) fn index(&self) -> &Arc<SharedIndex> {
        &self.frame.index
    }

    /// What embeds messages by a model outside, where one is used.
    pub(super) fn enricher(&self) -> Option<&Enricher> {
        self.enricher.as_ref()
    }

    /// What it tells an agent that registers.
    pub fn capabilities(&self) -> &Capabilities {
        &self.frame.policy.capabilities
    }

    /// What was made durable, in order.
    pub(super) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// Reads an envelope's payload: the costly part of a message, done at the door. Never fails: what is
    /// wrong with the payload is part of the message, because other rules come first.
    pub fn read(&self, envelope: &Envelope<'_>) -> Message {
        Message::read(envelope, &self.frame.policy)
    }

    /// Hands a message to the actor; waits for room, at most [`QUEUE_PATIENCE_MS`]. Messages that are handed
    /// over one after the other are decided in that order. Once this returns, the operation happens whether
    /// or not the answer is waited for.
    ///
    /// Where an embedding model outside is used, its answer is awaited first, as long as its patience allows.
    pub async fn submit(&self, mut message: Message, connection: Option<ConnectionId>) -> Pending {
        if let Some(enricher) = &self.enricher {
            let view = self.view();
            enricher.embed(&mut message, view.world()).await;
        }
        let writing = is_write(&message).then(|| self.writes.begin());
        if let Some(detection) = self.detection.as_ref().filter(|_| writing.is_some()) {
            detection.look(&mut message, self.view()).await;
        }
        let (to, answer) = oneshot::channel();
        let hand_over = async {
            // One message alone may be larger than the whole queue's bound.
            let bytes = message.bytes.clamp(1, ACTOR_QUEUE_MAX_BYTES) as u32;
            let room = Arc::clone(&self.room).acquire_many_owned(bytes).await.ok()?;
            let connection = connection.map(|id| id.0);
            let call = Call::Message { message: Box::new(message), connection, to, room };
            self.calls.send(call).await.ok()
        };
        let refusal = match tokio::time::timeout(Duration::from_millis(QUEUE_PATIENCE_MS), hand_over).await {
            Ok(Some(())) => return Pending(Stage::Submitted(answer, Arc::clone(&self.published)), writing),
            Ok(None) => Refusal::new(
                ErrorCode::InternalError,
                "This Field is closed: the hub is shutting down, or its log failed.",
                "Repeat the message under the same id once the hub is there again.",
            ),
            Err(_) => Refusal::new(
                ErrorCode::Overloaded,
                "The Field has more messages waiting than it can take.",
                "Repeat the message under the same id after the time given.",
            )
            .with("retry_after_ms", json!(1_000)),
        };
        Pending::answered(Answer { epoch: self.clock(), outcome: Err(refusal) })
    }

    /// Tells the Field that a connection ended.
    pub async fn disconnected(&self, connection: ConnectionId) {
        // An actor that is gone has no agents to fail.
        let _ = self.calls.send(Call::Detach(connection.0)).await;
    }

    /// The Field's clock, for replies to what never reached the actor.
    pub fn clock(&self) -> u64 {
        self.published.clock.load(Ordering::Acquire)
    }

    /// Whether the log is open and the actor answers, within a second.
    pub async fn is_ready(&self) -> bool {
        let ask = async {
            let (to, answer) = oneshot::channel();
            self.calls.send(Call::Ping(to)).await.ok()?;
            answer.await.ok()
        };
        matches!(tokio::time::timeout(READY_PATIENCE, ask).await, Ok(Some(true)))
    }

    /// The newest durable state.
    pub fn view(&self) -> Arc<View> {
        self.published.view.load_full()
    }

    /// The lines of `GET /v1/log` after a cursor, at most `limit`, fewer where they are long; none at the end.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when the log cannot be read.
    pub async fn log_lines(&self, after: Cursor, limit: usize) -> Result<Vec<String>, Refusal> {
        let lines = self.on_log(move |reader| {
            let mut lines: Vec<String> = Vec::new();
            let mut bytes = 0;
            let mut fault = None;
            // The entry at the cursor may hold events after it.
            reader.scan(after.epoch.saturating_sub(1), &mut |epoch, body| {
                let skip = if epoch == after.epoch { after.index as usize + 1 } else { 0 };
                let read = log_lines(body, skip, |line| {
                    bytes += line.len();
                    lines.push(line);
                    lines.len() < limit && bytes <= PAGE_MAX_BYTES
                });
                if let Err(error) = read {
                    fault = Some(LogError::Corrupt { epoch: Some(epoch), what: error.to_string() });
                }
                let full = lines.len() >= limit || bytes > PAGE_MAX_BYTES && !lines.is_empty();
                if fault.is_some() || full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            lines.truncate(limit);
            fault.map_or(Ok(lines), Err)
        });
        lines.await
    }

    /// Figures of the log.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when the log cannot be read.
    pub async fn log_stat(&self) -> Result<LogFigures, Refusal> {
        let stat = self.on_log(|reader| reader.stat()).await?;
        Ok(LogFigures { entries: stat.entries, bytes: stat.bytes })
    }

    /// Reads the log on a blocking thread.
    async fn on_log<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn crate::log::LogReader) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let reads = Arc::clone(&self.reads);
        let outcome = tokio::task::spawn_blocking(move || reads.with_reader(read)).await;
        let said = match outcome {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Err(Refusal::new(
            ErrorCode::InternalError,
            format!("The log could not be read: {said}"),
            "Tell the hub's operator; nothing was changed.",
        ))
    }

    /// Ends what takes long: scans, and comparing behind, which goes on after the next start.
    pub(super) fn wind_down(&self) {
        self.scanner.close();
        self.frame.index.wind_down();
    }

    /// Makes everything that was handed over durable, answers it, closes the log and ends the threads.
    pub(super) async fn stop(&self) {
        self.wind_down();
        let (to, stopped) = oneshot::channel();
        if self.calls.send(Call::Stop(to)).await.is_ok() {
            let _ = stopped.await;
        }
        self.herald.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        let Threads { working, keeping } =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let index = Arc::clone(&self.frame.index);
        let join = |thread: thread::JoinHandle<()>| {
            if thread.join().is_err() {
                tracing::error!("a thread of the Field had panicked");
            }
        };
        let ended = tokio::task::spawn_blocking(move || {
            working.into_iter().for_each(join);
            index.close();
            keeping.into_iter().for_each(join);
        });
        let _ = ended.await;
    }
}

/// Whether a message counts among the writes under way. A COMPACT does not: it is worked out beside the actor, and may
/// wait long for a language model.
fn is_write(message: &Message) -> bool {
    match &message.request {
        Ok(Request::Compact(_)) => false,
        Ok(request) => !request.is_read(),
        // It is refused.
        Err(_) => false,
    }
}

/// Tells the identity of a log by its first entry, once there is one.
fn identify(reader: Box<dyn LogReader>) -> Identify {
    Box::new(move || {
        let mut identity = None;
        let scanned = reader.scan(0, &mut |_, body| {
            identity = Some(vector_file::identity(body));
            ControlFlow::Break(())
        });
        scanned.ok().and(identity)
    })
}

/// Starts the thread that brings the index up to the published view whenever it is told that there is more, and
/// between that embeds what was entered without a vector.
fn spawn_indexer(
    name: &str,
    published: &Arc<Published>,
    index: &Arc<SharedIndex>,
) -> std::io::Result<(blocking::SyncSender<()>, thread::JoinHandle<()>)> {
    let (tell, told) = blocking::sync_channel(1);
    let (published, index) = (Arc::clone(published), Arc::clone(index));
    let work = move || {
        step_back(INDEX_NICENESS);
        let mut behind = false;
        loop {
            let more = if behind { told.try_recv() } else { told.recv().map_err(Into::into) };
            if matches!(more, Err(blocking::TryRecvError::Disconnected)) {
                break;
            }
            // Asked before the view is taken: the view is then no older than the answer.
            let whole = index.is_whole();
            let view = published.view.load_full();
            if more.is_ok() {
                view.catch_up_index(whole);
            }
            behind = view.embed_missing();
        }
    };
    Ok((tell, thread::Builder::new().name(format!("akashik-index-{name}")).spawn(work)?))
}

/// An answer on its way; resolves once everything that it tells of is durable.
#[derive(Debug)]
pub struct Pending(Stage, Option<Writing>);

#[derive(Debug)]
enum Stage {
    /// The actor has the message. The clock is for an answer that is lost with the read that computed it.
    Submitted(oneshot::Receiver<Answer>, Arc<Published>),
    /// The answer is here, until it is taken.
    Answered(Option<Answer>),
}

impl Pending {
    /// An answer that needs no actor: for doors that must keep it in order with others.
    pub fn answered(answer: Answer) -> Self {
        Self(Stage::Answered(Some(answer)), None)
    }
}

impl Future for Pending {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let answered = match &mut self.0 {
            Stage::Submitted(answer, published) => {
                Pin::new(answer).poll(cx).map(|answer| answer.unwrap_or_else(|_| lost(published)))
            }
            Stage::Answered(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
        };
        if answered.is_ready() {
            self.1 = None;
        }
        answered
    }
}

/// What is answered when the answer itself is lost: the read that computed it panicked.
fn lost(published: &Published) -> Answer {
    Answer {
        epoch: published.clock.load(Ordering::Acquire),
        outcome: Err(Refusal::new(
            ErrorCode::InternalError,
            "The hub failed while it answered this message.",
            "Repeat the message under the same id; tell the hub's operator if it fails again.",
        )),
    }
}
