//! The actor: one task per Field that owns its state and orders everything.
//!
//! It never waits for a session, computes nothing that could be computed elsewhere, and is never ahead of
//! the log by more than one batch in flight and one being gathered. A failed commit is not papered over
//! (law 4): everything that waited is refused, the state is thrown away, and what the log really holds is
//! read back before anything else is decided.
//!
//! Here is the loop and what reaches it; what becomes of a message (`messages`), how it becomes durable (`commits`), and what
//! others see of it (`publishing`) are beside it.

mod commits;
mod messages;
mod publishing;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};

use super::answer::Answer;
use super::feed::{Feed, Fresh};
use super::metrics::Metrics;
use super::reads::{Begun, Reads};
use super::restore::Restored;
use super::scribe::Errand;
use super::snapshot_keeper::SnapshotKeeper;
use super::view::{Frame, View};
use super::waiting::Queue;
use super::writer::{Done, Job};
use crate::field::{Finding, Message, Read, Snapshot, State, World, enriched, overdue};
use crate::limits::{ACTOR_QUEUE_MAX_BYTES, ACTOR_TURN, BATCH_ENTRIES_MAX, RESERVE_EPOCHS};
use crate::protocol::{Refusal, Timestamp, Unit, UnitId};

/// How often the actor looks at what only time changes: agents overdue, space on the disk.
const TICK: Duration = Duration::from_millis(500);

/// Room in the queue, by bytes; given back when the message has been decided.
pub(super) type Room = tokio::sync::OwnedSemaphorePermit;

/// What reaches the actor.
#[derive(Debug)]
pub(super) enum Call {
    /// A message, the connection it came over, and where its answer goes.
    Message { message: Box<Message>, connection: Option<u64>, to: oneshot::Sender<Answer>, room: Room },
    /// A COMPACT was planned and is to be decided, or a message has the texts that its rule wanted. The errand is what the
    /// COMPACT may still ask of a language model outside, and ends when it is decided.
    Planned {
        message: Box<Message>,
        connection: Option<u64>,
        to: oneshot::Sender<Answer>,
        errand: Option<Arc<Errand>>,
    },
    /// Notes of ATTUNEs wait to be entered.
    Noted,
    /// An ATTUNE was computed and is to be noted; before it is answered, where its answer waits for that.
    Shown { read: Box<Read>, shown: Vec<UnitId>, waits: Option<(Answer, oneshot::Sender<Answer>)> },
    /// Embeddings were made at last that these units may have waited for.
    Enriched(Vec<UnitId>),
    /// Units were compared behind: what was found, and up to which unit none is left. Answers with the epoch of the
    /// last entry and how many conflicts were made, or with why nothing can be kept.
    Detected {
        findings: Vec<Finding>,
        through: Option<UnitId>,
        to: oneshot::Sender<Result<(u64, usize), Refusal>>,
    },
    /// A check or a scan ends: so many units looked at, so many conflicts made on the way, and these found last.
    Examined {
        read: Box<Read>,
        findings: Vec<Finding>,
        scanned: usize,
        made: usize,
        to: oneshot::Sender<Answer>,
        begun: Begun,
    },
    /// A connection ended.
    Detach(u64),
    /// Are you there? Answers whether the log is open.
    Ping(oneshot::Sender<bool>),
    /// The end: make everything durable, close the log, then say so.
    Stop(oneshot::Sender<()>),
}

/// How the log is.
#[derive(Debug, Clone, PartialEq)]
enum Mode {
    /// Reads and writes are served.
    Open,
    /// A commit failed, for want of space or worse: reads are served, writes refused, until a probe succeeds.
    ReadOnly(Refusal),
    /// The state is being read back; nothing is decided meanwhile.
    Reloading(Refusal),
    /// The log cannot even be read: everything is refused until it can.
    Broken(Refusal),
}

/// A batch on its way to the disk.
#[derive(Debug)]
struct InFlight {
    last: u64,
    reserve: Option<u64>,
    world: World,
    entries: Vec<Fresh>,
    /// Units whose texts had left the state by then, not let go of yet.
    shelved: Vec<Arc<Unit>>,
    /// The state with this batch, where it is time to write one.
    snapshot: Option<Snapshot>,
}

/// Where the durable state is published.
#[derive(Debug)]
pub struct Published {
    pub view: ArcSwap<View>,
    /// The newest epoch that may be shown.
    pub clock: AtomicU64,
}

/// What an actor is made of.
pub(super) struct Parts {
    pub frame: Frame,
    pub restored: Restored,
    pub calls: mpsc::Receiver<Call>,
    pub jobs: SyncSender<Job>,
    pub done: mpsc::Receiver<Done>,
    pub published: Arc<Published>,
    pub reads: Arc<Reads>,
    /// Where durable operations go for whoever follows them.
    pub feed: Arc<Feed>,
    pub metrics: Arc<Metrics>,
    /// Wakes whoever keeps the index up to date.
    pub indexer: SyncSender<()>,
    /// Wakes whoever compares what is still to be compared.
    pub detector: SyncSender<()>,
    pub snapshots: SnapshotKeeper,
}

pub(super) struct Actor {
    parts: Parts,
    state: State,
    mode: Mode,
    gathered: Vec<Fresh>,
    /// Bytes of the messages whose entries are gathered.
    gathered_bytes: usize,
    waiting: Queue,
    in_flight: Option<InFlight>,
    /// Durable, and told of once the replies have left.
    untold: Vec<Fresh>,
    /// Whether the log thread works on anything.
    log_busy: bool,
    durable: u64,
    reserved: u64,
    durable_world: World,
    /// The greatest epoch that anybody was shown; what lies above it is free to be handed out again.
    shown: u64,
    /// While the log is full: whether to ask for space next, or for epochs.
    probe_next: bool,
    stopping: Option<oneshot::Sender<()>>,
    /// Units whose texts have left the state since a batch was last sent or a view of it published, not let go of yet.
    shelved: Vec<Arc<Unit>>,
}

impl Actor {
    pub fn new(mut parts: Parts) -> Self {
        let state = std::mem::take(&mut parts.restored.state);
        Self {
            mode: Mode::Open,
            gathered: Vec::new(),
            gathered_bytes: 0,
            waiting: Queue::default(),
            in_flight: None,
            untold: Vec::new(),
            log_busy: false,
            durable: state.world.last_epoch,
            reserved: parts.restored.reserved,
            durable_world: state.world.clone(),
            shown: state.clock,
            probe_next: false,
            stopping: None,
            shelved: Vec::new(),
            state,
            parts,
        }
    }

    /// Runs until it is stopped or every door is gone.
    pub async fn run(mut self) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut calls = Vec::with_capacity(ACTOR_TURN);
        loop {
            self.send_batch();
            if self.is_finished() {
                break;
            }
            let takes_calls = self.takes_calls();
            tokio::select! {
                biased;
                done = self.parts.done.recv() => match done {
                    Some(done) => self.log_answered(done),
                    None => break self.log_thread_died(),
                },
                _ = tick.tick() => self.time_passed(),
                taken = self.parts.calls.recv_many(&mut calls, ACTOR_TURN), if takes_calls => {
                    if taken == 0 {
                        break;
                    }
                    for call in calls.drain(..) {
                        self.take(call);
                    }
                }
                // Nobody asks for anything: the next texts.
                () = tokio::task::yield_now(), if self.has_to_shelve() => {}
            }
            self.release_ready();
            self.tell();
            self.shelve();
        }
        self.release_log().await;
    }

    /// Calls wait in their channel, and behind it at the doors, while the actor has enough to do.
    fn takes_calls(&self) -> bool {
        self.stopping.is_none()
            && !matches!(self.mode, Mode::Reloading(_))
            && self.gathered.len() < BATCH_ENTRIES_MAX
            && self.gathered_bytes < ACTOR_QUEUE_MAX_BYTES
            && self.waiting.len() < 4 * BATCH_ENTRIES_MAX
    }

    fn is_finished(&self) -> bool {
        self.stopping.is_some() && !self.log_busy && self.gathered.is_empty() && self.waiting.len() == 0
    }

    fn take(&mut self, call: Call) {
        match call {
            Call::Message { message, connection, to, room } => {
                self.message(*message, connection, to, None);
                drop(room);
            }
            Call::Planned { message, connection, to, errand } => {
                self.message(*message, connection, to, errand);
            }
            Call::Shown { read, shown, waits: Some((answer, to)) } => {
                self.note_shown(&read, shown, answer, to);
            }
            Call::Noted => self.enter_notes(),
            Call::Shown { read, shown, waits: None } => {
                self.enter_notes();
                self.enter_note(&read, shown);
            }
            Call::Enriched(units) => {
                if matches!(self.mode, Mode::Open)
                    && let Some(entry) = enriched(&self.state, Timestamp::now(), &units)
                {
                    self.enter(entry, None);
                }
            }
            Call::Detected { findings, through, to } => {
                let made = self.enter_findings(&findings, through);
                let _ = to.send(made.map(|made| (self.state.world.last_epoch, made)));
            }
            Call::Examined { read, findings, scanned, made, to, begun } => {
                self.tell_examined(*read, &findings, (scanned, made), to, begun);
            }
            Call::Detach(connection) => {
                self.state.presence.detach(connection, Timestamp::now());
                self.publish(Vec::new());
            }
            Call::Ping(to) => {
                let _ = to.send(matches!(self.mode, Mode::Open | Mode::ReadOnly(_)));
            }
            Call::Stop(to) => {
                self.enter_notes();
                self.stopping = Some(to);
            }
        }
    }

    fn time_passed(&mut self) {
        match &self.mode {
            Mode::ReadOnly(_) if !self.log_busy => {
                let low = self.state.clock + RESERVE_EPOCHS / 2 > self.reserved;
                let mark = self.state.clock + RESERVE_EPOCHS;
                // Taking turns: a mark often fits where a row does not.
                self.probe_next = !low || !self.probe_next;
                self.ask_log(if self.probe_next { Job::Probe } else { Job::Reserve(mark) });
            }
            Mode::Broken(_) if !self.log_busy => self.ask_log(Job::Reload),
            Mode::Open => {
                self.enter_notes();
                let now = Timestamp::now();
                // Those beyond one batch have their turn at the next tick.
                while self.gathered.len() < BATCH_ENTRIES_MAX
                    && let Some(entry) = overdue(&self.state, &self.parts.frame.policy, now)
                {
                    self.enter(entry, None);
                }
                self.publish(Vec::new());
                // One that became due while another was being written.
                let settled = !self.log_busy && self.gathered.is_empty();
                if settled && self.parts.snapshots.is_due(&self.state.world) {
                    self.parts.snapshots.keep(Snapshot::of(&self.state));
                }
            }
            _ => {}
        }
    }
}
