//! The actor: one task per Field that owns its state and orders everything.
//!
//! It never waits for a session, computes nothing that could be computed elsewhere, and is never ahead of
//! the log by more than one batch in flight and one being gathered. A failed commit is not papered over
//! (law 4): everything that waited is refused, the state is thrown away, and what the log really holds is
//! read back before anything else is decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};

use super::answer::Answer;
use super::feed::{Feed, Fresh};
use super::metrics::{Metrics, OK};
use super::plans::Planning;
use super::reads::{Begun, Reads};
use super::restore::Restored;
use super::scribe::Errand;
use super::snapshot_keeper::SnapshotKeeper;
use super::view::{Frame, View};
use super::waiting::{
    Computation, Fetching, Queue, Then, Waiting, overloaded_refusal, storage_refusal, unreadable_refusal,
};
use super::writer::{Done, Job};
use crate::field::{
    AgentNo, Command, Entry, Finding, Message, Preparation, Query, Read, Snapshot, State, Verdict, Wanting,
    World, apply, audit, connect, decide, detected, enriched, overdue,
};
use crate::limits::{ACTOR_QUEUE_MAX_BYTES, ACTOR_TURN, BATCH_ENTRIES_MAX, RESERVE_EPOCHS};
use crate::log::LogError;
use crate::protocol::{Refusal, ScanCoverage, Timestamp, Unit, UnitId};

/// How often the actor looks at what only time changes: agents overdue, space on the disk.
const TICK: Duration = Duration::from_millis(500);
/// Archived units whose texts are let go of between two turns of the actor: some tens of microseconds.
const SHELVED_A_TURN: usize = 128;
/// Where nothing else changes, a view is published after so many.
const SHELVED_A_VIEW: usize = 8 * 1_024;

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
    /// last entry and how many conflicts were made, or nothing where nothing can be kept.
    Detected { findings: Vec<Finding>, through: Option<UnitId>, to: oneshot::Sender<Option<(u64, usize)>> },
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

    fn has_to_shelve(&self) -> bool {
        matches!(self.mode, Mode::Open) && self.state.shelving.is_due(self.durable)
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
                let made = self.enter_findings(&findings, through).ok();
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

    fn message(
        &mut self,
        message: Message,
        connection: Option<u64>,
        to: oneshot::Sender<Answer>,
        errand: Option<Arc<Errand>>,
    ) {
        let operation = message.operation;
        if !operation.is_read() {
            // What somebody decides on stands before the decision, and goes to the disk with it.
            self.enter_notes();
        }
        let command = Command { at: Timestamp::now(), connection, message };
        let verdict = match &self.mode {
            Mode::Open => decide(&self.state, &self.parts.frame.policy, &command),
            Mode::ReadOnly(refusal) => match decide(&self.state, &self.parts.frame.policy, &command) {
                // What changes nothing needs no log, but an epoch, as a read does.
                Verdict::Change(entry) if !entry.events.is_empty() || entry.epoch > self.reserved => {
                    Verdict::Refuse(refusal.clone())
                }
                // Reads need epochs of their own; those that were reserved before may be used up.
                Verdict::Read(read) if read.epoch > self.reserved => Verdict::Refuse(refusal.clone()),
                verdict => verdict,
            },
            Mode::Broken(refusal) | Mode::Reloading(refusal) => {
                // Nothing is decided, so there is nothing to wait for.
                self.parts.metrics.operation(&self.parts.frame.name, operation, refusal.code.name());
                let _ = to.send(Answer { epoch: self.shown, outcome: Err(refusal.clone()) });
                return;
            }
        };
        let verdict = match verdict {
            Verdict::Prepare(preparation) => match self.parts.reads.begin() {
                Some(begun) => return self.prepare(preparation, command, to, (errand, begun)),
                None => Verdict::Refuse(overloaded_refusal()),
            },
            Verdict::Fetch(wanting) => match self.parts.reads.begin() {
                Some(begun) => return self.fetch(wanting, command, to, begun),
                None => Verdict::Refuse(overloaded_refusal()),
            },
            verdict => verdict,
        };
        let (shows, then) = self.carry_out(verdict, command.message.bytes, connection);
        self.give_back(&command.message.recalled);
        let refusal = match &then {
            Then::Answer(answer) => answer.outcome.as_ref().err(),
            _ => None,
        };
        let outcome = refusal.map_or(OK, |refusal| refusal.code.name());
        self.parts.metrics.operation(&self.parts.frame.name, operation, outcome);
        let lives = refusal.is_none();
        self.waiting.push(Waiting { entry: self.state.world.last_epoch, shows, to, then });
        if lives {
            self.note_life(&command);
        }
    }

    /// Has a COMPACT planned from the state as it is; it comes back with its plan.
    fn prepare(
        &mut self,
        preparation: Preparation,
        command: Command,
        to: oneshot::Sender<Answer>,
        (errand, begun): (Option<Arc<Errand>>, Begun),
    ) {
        self.note_life(&command);
        let Command { connection, message, .. } = command;
        let (world, index) = (self.state.world.clone(), Arc::clone(&self.parts.frame.index));
        let planning = Planning { preparation, message, connection, world, index, errand, begun };
        let entry = self.state.world.last_epoch;
        let then = Then::Prepare(Box::new(planning));
        self.waiting.push(Waiting { entry, shows: self.shown, to, then });
    }

    /// Has texts read that a message's rule wants; it comes back with them.
    fn fetch(&mut self, wanting: Wanting, command: Command, to: oneshot::Sender<Answer>, begun: Begun) {
        self.note_life(&command);
        let Command { connection, message, .. } = command;
        let world = self.state.world.clone();
        let fetching =
            Fetching { wanting, message: Box::new(message), connection, world, shows: self.shown, begun };
        let entry = self.state.world.last_epoch;
        self.waiting.push(Waiting { entry, shows: self.shown, to, then: Then::Fetch(Box::new(fetching)) });
    }

    /// Notes what an ATTUNE showed; its answer leaves once that is durable. Where nothing can be written, reads
    /// are served all the same.
    fn note_shown(&mut self, read: &Read, shown: Vec<UnitId>, answer: Answer, to: oneshot::Sender<Answer>) {
        self.enter_note(read, shown);
        let entry = self.state.world.last_epoch;
        self.waiting.push(Waiting { entry, shows: answer.epoch, to, then: Then::Answer(answer) });
    }

    /// Enters conflicts that were noticed; tells how many.
    fn enter_findings(&mut self, findings: &[Finding], through: Option<UnitId>) -> Result<usize, Refusal> {
        match &self.mode {
            Mode::Open => {}
            Mode::ReadOnly(refusal) | Mode::Reloading(refusal) | Mode::Broken(refusal) => {
                return Err(refusal.clone());
            }
        }
        let Some(entry) = detected(&self.state, Timestamp::now(), findings, through) else { return Ok(0) };
        let before = self.state.world.conflicts.len();
        self.enter(entry, None);
        Ok(self.state.world.conflicts.len() - before)
    }

    /// Answers a check or a scan once what it found is durable.
    fn tell_examined(
        &mut self,
        read: Read,
        findings: &[Finding],
        (units_scanned, made): (usize, usize),
        to: oneshot::Sender<Answer>,
        begun: Begun,
    ) {
        let entered = if findings.is_empty() { Ok(0) } else { self.enter_findings(findings, None) };
        let Query::Detect(request) = read.query else { return };
        let then = match entered {
            Ok(more) => {
                // The answer tells of entries younger than the question.
                let epoch = read.epoch.max(self.state.world.last_epoch);
                let coverage = ScanCoverage { units_scanned, new_conflicts_found: made + more };
                let read = Read { epoch, query: Query::Detected(request, coverage), ..read };
                let (world, index) = (self.state.world.clone(), Arc::clone(&self.parts.frame.index));
                Then::Compute(Box::new(Computation { read, world, index, _begun: begun }))
            }
            Err(refusal) => Then::Answer(Answer { epoch: self.shown, outcome: Err(refusal) }),
        };
        let shows = match &then {
            Then::Compute(computation) => computation.read.epoch,
            _ => self.shown,
        };
        self.waiting.push(Waiting { entry: self.state.world.last_epoch, shows, to, then });
    }

    /// Enters the notes of ATTUNEs that were answered already: with the next change, or at the next tick. Where nothing can
    /// be written they are lost.
    fn enter_notes(&mut self) {
        for (read, shown) in self.parts.reads.notes().take() {
            self.enter_note(&read, shown);
        }
    }

    fn enter_note(&mut self, read: &Read, shown: Vec<UnitId>) {
        if matches!(self.mode, Mode::Open)
            && let Some(entry) = audit(&self.state, Timestamp::now(), read, shown)
        {
            self.enter(entry, None);
        }
    }

    /// Does what was decided; tells the greatest epoch that the reply shows, and how it is made.
    fn carry_out(&mut self, verdict: Verdict, bytes: usize, origin: Option<u64>) -> (u64, Then) {
        let refusal = match verdict {
            Verdict::Change(entry) => {
                let (epoch, reply) = (entry.epoch, entry.reply.clone());
                if matches!(self.mode, Mode::Open) {
                    self.gathered_bytes += bytes;
                    self.enter(entry, origin);
                } else {
                    // It changes nothing and is not remembered: a repeat is decided anew, and comes to the same.
                    self.state.clock = epoch;
                }
                let answered = |reply| Then::Answer(Answer { epoch, outcome: Ok(reply) });
                return (epoch, reply.map_or(Then::Recall { epoch }, answered));
            }
            Verdict::Repeat { epoch } => return (epoch, Then::Recall { epoch }),
            Verdict::Read(read) => match self.parts.reads.begin() {
                Some(begun) => {
                    self.state.clock = read.epoch;
                    let (epoch, world) = (read.epoch, self.state.world.clone());
                    let index = Arc::clone(&self.parts.frame.index);
                    return (
                        epoch,
                        Then::Compute(Box::new(Computation { read, world, index, _begun: begun })),
                    );
                }
                None => overloaded_refusal(),
            },
            Verdict::Refuse(refusal) => refusal,
            // They are planned, or given their texts, before.
            Verdict::Prepare(_) | Verdict::Fetch(_) => overloaded_refusal(),
        };
        // A refusal takes no epoch; what it shows of the clock is settled when it leaves.
        let epoch = self.shown;
        (epoch, Then::Answer(Answer { epoch, outcome: Err(refusal) }))
    }

    /// What is archived no more is held whole, before anybody looks.
    fn give_back(&mut self, recalled: &[Arc<Unit>]) {
        for no in self.state.shelving.take_back() {
            let id = self.state.world.slot(no).id;
            let unit = recalled.iter().find(|unit| unit.id == id);
            if !unit.is_some_and(|unit| self.state.world.give(no, Arc::clone(unit))) {
                tracing::error!(field = %self.parts.frame.name, %id, "an archived unit came back without its text");
            }
        }
    }

    /// Lets go of some texts of archived units, which the log holds. Whoever drops the last hold on one has work, so they
    /// are held until no view of ours does, and let go of elsewhere.
    fn shelve(&mut self) {
        if !self.has_to_shelve() {
            return;
        }
        self.shelved.extend(self.state.shelve(SHELVED_A_TURN, self.durable));
        let enough = self.shelved.len() >= SHELVED_A_VIEW || !self.has_to_shelve();
        if enough && self.state.world.last_epoch == self.durable {
            // Nothing may come for a long time: what is published lets go, too. Where a batch is under way, that is done when it
            // has ended.
            self.publish_state();
        }
    }

    /// The sender lives; and if it came over a connection, it holds one.
    fn note_life(&mut self, command: &Command) {
        let world = &self.state.world;
        let Some(agent) = world.agent_no(&command.message.agent_id) else { return };
        let record = world.agent(agent);
        let (active, holder) = (record.is_active(), record.holder);
        self.state.presence.seen(agent, command.at);
        let Some(connection) = command.connection.filter(|_| active) else { return };
        // An agent that is attached but no holder lost that entry to a failed commit.
        if !holder || !self.state.presence.is_attached(agent, connection) {
            self.attach(agent, connection, command.at);
        }
    }

    fn attach(&mut self, agent: AgentNo, connection: u64, at: Timestamp) {
        self.state.presence.attach(agent, connection);
        if matches!(self.mode, Mode::Open)
            && let Some(entry) = connect(&self.state, agent, at)
        {
            self.enter(entry, None);
        }
        self.publish(Vec::new());
    }

    /// `origin`: the connection that asked for it.
    fn enter(&mut self, entry: Entry, origin: Option<u64>) {
        apply(&mut self.state, &entry);
        self.gathered.push((Arc::new(entry), origin));
    }

    /// Gives what has become durable to whoever follows; their replies are out by now.
    fn tell(&mut self) {
        let fresh = std::mem::take(&mut self.untold);
        if !fresh.is_empty() || self.durable != self.parts.feed.head() {
            self.parts.feed.publish(fresh, self.durable);
        }
    }

    /// Hands the log thread the next batch, when it is free and there is one.
    fn send_batch(&mut self) {
        if self.log_busy || !matches!(self.mode, Mode::Open) {
            return;
        }
        // Nothing waits to show more than the clock, so a mark above it serves everything that waits.
        let low = match self.stopping {
            None => self.state.clock + RESERVE_EPOCHS / 2 > self.reserved,
            Some(_) => self.waiting.len() > 0 && self.state.clock > self.reserved,
        };
        let reserve = low.then(|| self.state.clock + RESERVE_EPOCHS);
        if self.gathered.is_empty() && reserve.is_none() {
            return;
        }
        let gathered = std::mem::take(&mut self.gathered);
        self.gathered_bytes = 0;
        let entries = gathered.iter().map(|(entry, _)| Arc::clone(entry)).collect();
        let last = self.state.world.last_epoch;
        let world = self.state.world.clone();
        let due = self.parts.snapshots.is_due(&world);
        let snapshot = due.then(|| Snapshot::of(&self.state));
        let shelved = std::mem::take(&mut self.shelved);
        self.in_flight = Some(InFlight { last, reserve, world, entries: gathered, shelved, snapshot });
        self.ask_log(Job::Append { entries, reserve });
    }

    fn ask_log(&mut self, job: Job) {
        // The channel holds one job and none is in flight, so this never waits; a dead thread shows itself
        // as the end of its answers.
        self.log_busy = true;
        let _ = self.parts.jobs.try_send(job);
    }

    fn log_answered(&mut self, done: Done) {
        self.log_busy = false;
        match done {
            Done::Appended { result: Ok(()), entries, took } => {
                self.parts.metrics.commit(&self.parts.frame.name, entries, took.as_secs_f64());
                if let Some(batch) = self.in_flight.take() {
                    self.durable = batch.last;
                    self.reserved = self.reserved.max(batch.reserve.unwrap_or(0)).max(batch.last);
                    self.untold.extend(batch.entries);
                    if let Some(snapshot) = batch.snapshot {
                        self.parts.snapshots.keep(snapshot);
                    }
                    if self.state.world.last_epoch == batch.last {
                        // The same, but for texts that have left it since the batch was sent.
                        self.shelved.extend(batch.shelved);
                        self.publish_state();
                    } else {
                        self.durable_world = batch.world;
                        self.publish(batch.shelved);
                    }
                }
            }
            Done::Appended { result: Err(error), .. } => self.commit_failed(&error),
            Done::Reserved(Ok(mark)) => self.reserved = self.reserved.max(mark),
            Done::Reserved(Err(error)) => tracing::debug!(%error, "no epochs could be reserved"),
            Done::Probed(Ok(())) if matches!(self.mode, Mode::ReadOnly(_)) => {
                tracing::info!(field = %self.parts.frame.name, "the log can be written again; writes are served");
                self.mode = Mode::Open;
            }
            Done::Probed(Err(error)) => tracing::debug!(%error, "the log still cannot be written"),
            Done::Probed(Ok(())) | Done::Released(_) => {}
            Done::Reloaded(outcome) => self.reloaded(*outcome),
        }
    }

    fn commit_failed(&mut self, error: &LogError) {
        let full = matches!(error, LogError::Full(_));
        tracing::error!(field = %self.parts.frame.name, %error, "a commit failed; the state is read back from the log");
        let refusal = storage_refusal(full, &error.to_string());
        // What waits is answered when it is known what the log holds: a failed commit may have taken effect.
        self.gathered.clear();
        self.gathered_bytes = 0;
        if let Some(batch) = self.in_flight.take() {
            self.shelved.extend(batch.shelved);
        }
        self.mode = Mode::Reloading(refusal);
        self.ask_log(Job::Reload);
    }

    fn reloaded(&mut self, outcome: Result<Restored, LogError>) {
        let (Mode::Reloading(refusal) | Mode::Broken(refusal) | Mode::ReadOnly(refusal)) = self.mode.clone()
        else {
            return;
        };
        match outcome {
            Ok(Restored { mut state, reserved, from_snapshot: _, purges: _ }) => {
                // The process goes on: it knows who is connected.
                std::mem::swap(&mut state.presence, &mut self.state.presence);
                state.presence.resume(&state.world, Timestamp::now());
                self.durable = state.world.last_epoch;
                self.reserved = reserved;
                self.durable_world = state.world.clone();
                let lost = std::mem::replace(&mut self.state, state);
                // Letting go of a large state takes its time.
                let shelved = std::mem::take(&mut self.shelved);
                tokio::task::spawn_blocking(move || drop((lost, shelved)));
                // What turned out to be durable is answered as it was decided. Then the clock is where it was
                // last shown, and the reads that still wait are stamped anew.
                self.release_ready();
                self.state.clock = self.state.clock.max(self.shown);
                self.waiting.face(&mut self.state, self.reserved, &refusal, self.shown);
                self.mode = Mode::ReadOnly(refusal);
                self.publish(Vec::new());
            }
            Err(error) => {
                tracing::error!(field = %self.parts.frame.name, %error, "the log cannot be read back");
                let refusal = unreadable_refusal(&error.to_string());
                self.waiting.refuse_all(&refusal, self.shown);
                self.mode = Mode::Broken(refusal);
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

    /// Lets go of every reply whose grounds are durable.
    fn release_ready(&mut self) {
        while let Some(waiting) = self.waiting.pop_ready(self.durable, self.reserved) {
            self.shown = self.shown.max(waiting.shows);
            // First the clock, then the reply: whoever has the reply finds the clock there.
            self.parts.published.clock.store(self.shown, Ordering::Release);
            match waiting.then {
                Then::Answer(Answer { outcome: Err(refusal), .. }) => {
                    let _ = waiting.to.send(Answer { epoch: self.shown, outcome: Err(refusal) });
                }
                // A door that went away needs no answer; its operation happened all the same.
                Then::Answer(answer) => drop(waiting.to.send(answer)),
                then => self.parts.reads.spawn(then, waiting.to),
            }
        }
    }

    /// Publishes the state as it is, of which everything is durable.
    fn publish_state(&mut self) {
        self.durable_world = self.state.world.clone();
        let shelved = std::mem::take(&mut self.shelved);
        self.publish(shelved);
    }

    /// Publishes the durable state, and lets go of units whose texts have left it.
    fn publish(&mut self, shelved: Vec<Arc<Unit>>) {
        let whereabouts = self.state.presence.all();
        let view = self.parts.frame.view(&self.durable_world, whereabouts, self.shown);
        let before = self.parts.published.view.swap(view);
        if before.world().purges.len() != self.durable_world.purges.len() || !shelved.is_empty() {
            // Nobody else may hold the units that were purged, or the texts that are in the log now: letting go of a hundred
            // thousand takes its time.
            self.parts.reads.let_go((before, shelved));
        }
        // A signal that is already there will do.
        let _ = self.parts.indexer.try_send(());
        if !self.durable_world.uncompared.is_empty() {
            let _ = self.parts.detector.try_send(());
        }
    }

    fn log_thread_died(&mut self) {
        tracing::error!(field = %self.parts.frame.name, "the log thread ended; this Field is closed");
        let refusal = unreadable_refusal("its thread ended");
        self.waiting.refuse_all(&refusal, self.shown);
        self.log_busy = true;
    }

    /// Gives back the reserved epochs that nobody was shown, closes the log, tells who asked for the end.
    async fn release_log(mut self) {
        if !self.log_busy && matches!(self.mode, Mode::Open) {
            self.ask_log(Job::Release(self.state.clock));
            if let Some(Done::Released(Err(error))) = self.parts.done.recv().await {
                tracing::warn!(field = %self.parts.frame.name, %error, "the log was not closed cleanly; it will recover");
            }
            let Self { parts, state, .. } = &mut self;
            parts.snapshots.finish(|| Snapshot::of(state), &state.world);
        }
        if let Some(stopping) = self.stopping.take() {
            let _ = stopping.send(());
        }
    }
}
