//! What is asked of the Field: messages decided, computed elsewhere, answered once their grounds are durable; and what the
//! Field enters by itself on the way.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::{Actor, Mode};
use crate::field::{
    AgentNo, Command, Entry, Finding, Message, Preparation, Query, Read, Verdict, Wanting, apply, audit,
    connect, decide, detected,
};
use crate::hub::answer::Answer;
use crate::hub::metrics::OK;
use crate::hub::plans::Planning;
use crate::hub::reads::Begun;
use crate::hub::scribe::Errand;
use crate::hub::waiting::{Computation, Fetching, Then, Waiting, overloaded_refusal};
use crate::protocol::{Refusal, ScanCoverage, Timestamp, Unit, UnitId};

impl Actor {
    pub(super) fn message(
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
        let may_ask = matches!(self.mode, Mode::Open);
        let planning = Planning { preparation, message, connection, world, index, may_ask, errand, begun };
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

    /// Notes what an ATTUNE showed; its answer leaves once that is durable. Where nothing can be written, reads
    /// are served all the same.
    pub(super) fn note_shown(
        &mut self,
        read: &Read,
        shown: Vec<UnitId>,
        answer: Answer,
        to: oneshot::Sender<Answer>,
    ) {
        self.enter_note(read, shown);
        let entry = self.state.world.last_epoch;
        self.waiting.push(Waiting { entry, shows: answer.epoch, to, then: Then::Answer(answer) });
    }

    /// Enters conflicts that were noticed; tells how many.
    pub(super) fn enter_findings(
        &mut self,
        findings: &[Finding],
        through: Option<UnitId>,
    ) -> Result<usize, Refusal> {
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
    pub(super) fn tell_examined(
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
    pub(super) fn enter_notes(&mut self) {
        for (read, shown) in self.parts.reads.notes().take() {
            self.enter_note(&read, shown);
        }
    }

    pub(super) fn enter_note(&mut self, read: &Read, shown: Vec<UnitId>) {
        if matches!(self.mode, Mode::Open)
            && let Some(entry) = audit(&self.state, Timestamp::now(), read, shown)
        {
            self.enter(entry, None);
        }
    }

    /// `origin`: the connection that asked for it.
    pub(super) fn enter(&mut self, entry: Entry, origin: Option<u64>) {
        apply(&mut self.state, &entry);
        self.gathered.push((Arc::new(entry), origin));
    }

    /// Lets go of every reply whose grounds are durable.
    pub(super) fn release_ready(&mut self) {
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
}
