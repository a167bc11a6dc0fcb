//! Decides what a message does: the order of the rules (section 12), then the operation's own rule.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::command::{Command, Embedded, Message};
use super::event::{Entry, Event};
use super::kept::Wanting;
use super::policy::Policy;
use super::rules::compact::Outcome;
use super::rules::{self, Preparation};
use super::state::{AgentNo, State, UnitNo};
use super::suspicion::Finding;
use crate::limits::EPOCH_CEILING;
use crate::protocol::{
    AgentStatus, AttuneRequest, DetectRequest, ErrorCode, Operation, Refusal, ReplayRequest, Request, SYSTEM,
    ScanCoverage, SubscribeRequest, Timestamp, Unit, UnitId, epoch_overflow, unsupported,
};

/// What a message comes to.
#[derive(Debug)]
pub enum Verdict {
    /// It changes the Field: log the entry, apply it, and once it is durable give its reply.
    Change(Entry),
    /// It was answered before: give the reply of the entry at this epoch.
    Repeat {
        /// Epoch of the entry that holds the first answer.
        epoch: u64,
    },
    /// It looks: compute the answer from a view of the world taken now.
    Read(Read),
    /// It is a COMPACT whose plan is to be worked out from a view of the world taken now; decide it again with that.
    Prepare(Preparation),
    /// It needs the texts of units that are in the log alone: decide it again with these ([`Message::recalled`]).
    Fetch(Wanting),
    /// No, and nothing is changed.
    Refuse(Refusal),
}

/// A read, stamped.
#[derive(Debug, Clone)]
pub struct Read {
    /// The operation's epoch.
    pub epoch: u64,
    /// Who asks.
    pub asker: AgentNo,
    /// The protocol session, if any.
    pub session_id: Option<Arc<str>>,
    /// What is asked.
    pub query: Query,
    /// What became of the need at an embedding model outside.
    pub embedded: Embedded,
}

/// What a read asks.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum Query {
    Attune(Box<AttuneRequest>),
    Detect(DetectRequest),
    /// The end of a check or a scan, once what it found is in the Field.
    Detected(DetectRequest, ScanCoverage),
    Replay(ReplayRequest),
    Subscriptions,
    /// What a COMPACT would do.
    Compact(Preparation),
}

/// What a rule may look at.
pub(super) struct Ground<'a> {
    pub state: &'a State,
    pub policy: &'a Policy,
    /// The operation's epoch.
    pub epoch: u64,
    pub at: Timestamp,
    /// The sender, where it is registered and active.
    pub agent: Option<AgentNo>,
    /// Whether the message came over a connection that lasts: then its sender is connected.
    pub connected: bool,
    pub message: &'a Message,
}

impl<'a> Ground<'a> {
    /// A unit that is held whole, or that the message brings along.
    pub fn whole(&self, no: UnitNo) -> Option<&'a Unit> {
        let slot = self.state.world.slot(no);
        let recalled = || self.message.recalled.iter().find(|unit| unit.id == slot.id);
        slot.whole().or_else(|| recalled().filter(|_| !slot.purged)).map(|unit| &**unit)
    }
}

/// Why a rule does not come to a change.
pub(super) enum Halt {
    No(Refusal),
    Wanting(Wanting),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::No(refusal)
    }
}

impl From<Wanting> for Halt {
    fn from(wanting: Wanting) -> Self {
        Self::Wanting(wanting)
    }
}

/// What a rule that changes the Field comes to.
pub(super) struct Change {
    pub events: Vec<Event>,
    pub reply: Arc<RawValue>,
}

impl Change {
    /// Events and the response that tells of them.
    pub fn new(events: Vec<Event>, reply: &impl Serialize) -> Self {
        Self { events, reply: json_text(reply) }
    }
}

/// A response as JSON text.
pub(super) fn json_text(reply: &impl Serialize) -> Arc<RawValue> {
    serde_json::value::to_raw_value(reply).expect("a response is always writable").into()
}

/// Decides. Pure: the same state, policy and command give the same verdict.
pub fn decide(state: &State, policy: &Policy, command: &Command) -> Verdict {
    let message = &command.message;
    let operation = message.operation;
    if !operation.is_served_at(policy.level) {
        return Verdict::Refuse(unsupported(operation, policy.level));
    }
    // Reads are not remembered, so they are not looked up either.
    let is_read = message.request.as_ref().map_or(operation.is_read(), Request::is_read);
    let before = if is_read { None } else { state.ledger.get(message.key) };
    if let Some(before) = before
        && before.digest == message.digest
    {
        return Verdict::Repeat { epoch: before.epoch };
    }
    let stamped = next_epoch(state.clock, message.epoch, policy).and_then(|epoch| {
        let agent = registered(state, message)?;
        if before.is_some() {
            return Err(reused_id(message));
        }
        let connected = command.connection.is_some();
        Ok(Ground { state, policy, epoch, at: command.at, agent, connected, message })
    });
    match stamped.map_err(Halt::from).and_then(|ground| by_operation(&ground, command)) {
        Ok(verdict) => verdict,
        Err(Halt::No(refusal)) => Verdict::Refuse(refusal),
        Err(Halt::Wanting(wanting)) => Verdict::Fetch(wanting),
    }
}

fn by_operation(ground: &Ground<'_>, command: &Command) -> Result<Verdict, Halt> {
    let asker = ground.agent.unwrap_or_default();
    let session_id = || ground.message.session_id.clone();
    let embedded = || ground.message.embedded.clone();
    let read = |query| {
        let session_id = session_id();
        Ok(Verdict::Read(Read { epoch: ground.epoch, asker, session_id, query, embedded: embedded() }))
    };
    let change = match ground.message.request.as_ref().map_err(Refusal::clone)? {
        Request::Attune(request) => return read(Query::Attune(request.clone())),
        Request::Detect(request) => return read(Query::Detect(request.clone())),
        Request::Replay(request) => return read(Query::Replay(request.clone())),
        Request::Subscribe(SubscribeRequest::List) => return read(Query::Subscriptions),
        Request::Subscribe(request) => rules::subscribe::subscribe(ground, request)?,
        Request::Register(request) => rules::register::register(ground, request)?,
        Request::Deregister(request) => rules::register::deregister(ground, request),
        Request::Record(request) => rules::record::record(ground, request)?,
        Request::Merge(request) => rules::merge::merge(ground, request)?,
        Request::Retract(request) => rules::lifecycle::retract(ground, request)?,
        Request::Commit(request) => rules::lifecycle::commit(ground, request)?,
        Request::Discard(request) => rules::lifecycle::discard(ground, request)?,
        Request::Compact(request) => match rules::compact::compact(ground, request)? {
            Outcome::Prepare(preparation) if request.dry_run => return read(Query::Compact(preparation)),
            Outcome::Prepare(preparation) => return Ok(Verdict::Prepare(preparation)),
            Outcome::Done(change) => change,
        },
    };
    Ok(Verdict::Change(entry(ground, command, change)))
}

/// The epoch that an operation gets (section 2, clock), or why the message's own is not adopted.
fn next_epoch(clock: u64, theirs: u64, policy: &Policy) -> Result<u64, Refusal> {
    if theirs > clock.saturating_add(policy.limits.epoch_lead) || theirs >= EPOCH_CEILING - 1 {
        return Err(epoch_overflow(&theirs.to_string()).with("clock", json!(clock)));
    }
    let next = clock.max(theirs) + 1;
    if next >= EPOCH_CEILING {
        return Err(epoch_overflow(&next.to_string()).with("clock", json!(clock)));
    }
    Ok(next)
}

/// The sender's number, where it may send this operation.
fn registered(state: &State, message: &Message) -> Result<Option<AgentNo>, Refusal> {
    if message.operation == Operation::Register {
        return Ok(None);
    }
    let known = state.world.agent_no(&message.agent_id);
    let status = known.map(|no| state.world.agent(no).agent.status);
    if status.is_some_and(AgentStatus::is_active) {
        return Ok(known);
    }
    let id = &message.agent_id;
    let said = match status {
        None => format!("The agent {id:?} is not registered."),
        Some(AgentStatus::Failed) => {
            format!("The agent {id:?} has failed: its connection was gone too long.")
        }
        Some(_) => format!("The agent {id:?} has left this Field."),
    };
    Err(Refusal::new(
        ErrorCode::AgentNotRegistered,
        said,
        "Call REGISTER with your id and role, then repeat.",
    )
    .with("agent_id", json!(id))
    .with("status", json!(status)))
}

fn reused_id(message: &Message) -> Refusal {
    Refusal::invalid(
        "id",
        format!("The message id {:?} was used before with another payload.", message.id),
        "Send a new message under a new id; the same id is only for repeating the same message.",
    )
}

fn entry(ground: &Ground<'_>, command: &Command, change: Change) -> Entry {
    let Change { mut events, reply } = change;
    if command.connection.is_some() && begins_to_hold(ground, &events) {
        events.push(Event::Connected { agent: Arc::clone(&ground.message.agent_id) });
    }
    let message = ground.message;
    Entry {
        epoch: ground.epoch,
        at: ground.at,
        operation: Some(message.operation),
        agent_id: ground.agent.map_or_else(
            || Arc::clone(&message.agent_id),
            |no| Arc::clone(&ground.state.world.agent(no).agent.id),
        ),
        session_id: message.session_id.as_ref().map(|id| ground.state.world.interned_session(id)),
        message_id: Some(message.id.clone()),
        key: Some(message.key),
        digest: Some(message.digest),
        events,
        reply: Some(reply),
    }
}

/// Whether the sender, after these events, lives by connections for the first time since it registered.
fn begins_to_hold(ground: &Ground<'_>, events: &[Event]) -> bool {
    let world = &ground.state.world;
    match events.first() {
        Some(Event::Registered { resumed, .. }) => !resumed,
        Some(Event::Deregistered { agent }) if *agent == ground.message.agent_id => false,
        _ => ground.agent.is_some_and(|no| !world.agent(no).holder),
    }
}

/// The Field's own entry for an agent whose first message over a connection changed nothing.
pub fn connect(state: &State, agent: AgentNo, at: Timestamp) -> Option<Entry> {
    let record = state.world.agent(agent);
    if record.holder || !record.is_active() {
        return None;
    }
    systems(state, at, Event::Connected { agent: Arc::clone(&record.agent.id) })
}

/// The Field's own entry for one agent whose time to return is over (section 4, liveness); call it until it
/// gives nothing.
pub fn overdue(state: &State, policy: &Policy, now: Timestamp) -> Option<Entry> {
    let agent = state.presence.overdue(now, policy.grace_ms)?;
    let id = Arc::clone(&state.world.agent(agent).agent.id);
    systems(state, now, Event::Failed { agent: id })
}

/// The entry that tells what an ATTUNE showed (section 7, REPLAY of a decision).
pub fn audit(state: &State, at: Timestamp, read: &Read, shown: Vec<UnitId>) -> Option<Entry> {
    let asker = state.world.agents.get(read.asker as usize)?;
    let mut entry = systems(state, at, Event::Attuned { read_epoch: read.epoch, shown })?;
    entry.operation = Some(Operation::Attune);
    entry.agent_id = Arc::clone(&asker.agent.id);
    entry.session_id = read.session_id.as_ref().map(|id| state.world.interned_session(id));
    Some(entry)
}

/// The Field's own entry for units whose embedding was made at last (section 3, life of a unit): those of them that
/// still wait for it.
pub fn enriched(state: &State, at: Timestamp, units: &[UnitId]) -> Option<Entry> {
    let world = &state.world;
    let waits = |id: &&UnitId| world.find(**id).is_some_and(|no| world.pending.contains(&no));
    let mut events = units.iter().filter(waits).map(|id| Event::Enriched { memory_unit_id: *id });
    let mut entry = systems(state, at, events.next()?)?;
    entry.events.extend(events);
    Some(entry)
}

/// The Field's own entry for what was noticed between units (section 7, DETECT and RECORD): the findings that hold
/// now, as conflicts, and `through`: that the units up to this one need not be compared any more.
pub fn detected(
    state: &State,
    at: Timestamp,
    findings: &[Finding],
    through: Option<UnitId>,
) -> Option<Entry> {
    let world = &state.world;
    let epoch = state.clock + 1;
    let mut events = rules::detected::findings(world, epoch, findings);
    let place = through.and_then(|id| world.find_ever(id)).and_then(|no| world.slot(no).place);
    let waits =
        place.is_some_and(|place| world.uncompared.get_min().is_some_and(|(first, _)| *first <= place));
    events.extend(through.filter(|_| waits).map(|through| Event::DetectionCaughtUp { through }));
    let mut events = events.into_iter();
    let mut entry = systems(state, at, events.next()?)?;
    entry.events.extend(events);
    Some(entry)
}

fn systems(state: &State, at: Timestamp, event: Event) -> Option<Entry> {
    let epoch = state.clock + 1;
    (epoch < EPOCH_CEILING).then(|| Entry {
        epoch,
        at,
        operation: None,
        agent_id: SYSTEM.into(),
        session_id: None,
        message_id: None,
        key: None,
        digest: None,
        events: vec![event],
        reply: None,
    })
}
