//! What happened, as the log keeps it: entries and their events.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::state::World;
use super::unit_ids::UnitIds;
use crate::protocol::{
    Conflict, ConflictId, Cursor, Mode, Operation, Resolution, Strategy, Subscription, Timestamp, Unit,
    UnitId, UnitStatus,
};

/// One operation, whole: its events, and the reply that repeats of its message get. An operation that was
/// answered but changed nothing (a second RETRACT) has no events.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// The operation's epoch; unique.
    pub epoch: u64,
    /// When it was decided.
    pub at: Timestamp,
    /// What was asked; absent for the Field's own entries.
    pub operation: Option<Operation>,
    /// Who asked; [`crate::protocol::SYSTEM`] for the Field's own entries.
    pub agent_id: Arc<str>,
    /// The protocol session of the message.
    pub session_id: Option<Arc<str>>,
    /// The sender's name for the message; absent for the Field's own entries.
    pub message_id: Option<Box<str>>,
    /// Names the message for repeats; made of agent and message id again when the entry comes from the log.
    #[serde(skip)]
    pub key: Option<u128>,
    /// Stands for the payload when the message is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<u64>,
    /// What happened, in order; an event's place here is its cursor's index.
    pub events: Vec<Event>,
    /// The response that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Arc<RawValue>>,
}

/// A fact. Each holds all that [`super::apply`] needs; the names in the log are those of REPLAY (section 7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum Event {
    /// The entry's agent joined, or came back with `resumed`.
    #[serde(rename = "REGISTER")]
    Registered { role: Arc<str>, interests: Vec<Box<str>>, resumed: bool },
    #[serde(rename = "DEREGISTER")]
    Deregistered { agent: Arc<str> },
    /// The agent holds a connection for the first time since it registered: from now on its life is tied to
    /// connections (section 4, liveness).
    #[serde(rename = "AGENT_CONNECTED")]
    Connected { agent: Arc<str> },
    #[serde(rename = "AGENT_FAILED")]
    Failed { agent: Arc<str> },
    /// A unit was recorded; `supersedes` names the units that it replaced.
    #[serde(rename = "RECORD")]
    Recorded { unit: Arc<Unit>, supersedes: Vec<UnitId> },
    /// A draft became everyone's; the unit as it now is.
    #[serde(rename = "COMMIT")]
    Committed { unit: Arc<Unit>, supersedes: Vec<UnitId> },
    #[serde(rename = "DISCARD")]
    Discarded { memory_unit_id: UnitId, reason: Box<str> },
    #[serde(rename = "RETRACT")]
    Retracted { memory_unit_id: UnitId, reason: Box<str> },
    /// A conflict was made; `contested` names the units that stood unquestioned until now.
    #[serde(rename = "CONFLICT_CREATED")]
    ConflictCreated { conflict: Arc<Conflict>, contested: Vec<UnitId> },
    /// What an ATTUNE showed the entry's agent, where reads are audited. `read_epoch` is the ATTUNE's own.
    #[serde(rename = "ATTUNE")]
    Attuned {
        read_epoch: u64,
        #[serde(with = "short_ids")]
        shown: Vec<UnitId>,
    },
    /// The unit that was just committed waits for its embedding, which could not be made.
    #[serde(rename = "ENRICHMENT_PENDING")]
    Unenriched { memory_unit_id: UnitId },
    /// The embedding was made at last.
    #[serde(rename = "ENRICHED")]
    Enriched { memory_unit_id: UnitId },
    /// The unit that was just committed is still to be compared with the Field, but for the first `compared` committed
    /// units.
    #[serde(rename = "DETECTION_DEFERRED")]
    DetectionDeferred { memory_unit_id: UnitId, compared: u32 },
    /// Every unit that was still to be compared, up to this one in the order of commits, has been.
    #[serde(rename = "DETECTION_CAUGHT_UP")]
    DetectionCaughtUp { through: UnitId },
    /// A conflict was resolved; `superseded` names the units that the winner replaced.
    #[serde(rename = "MERGE")]
    Merged { conflict_id: ConflictId, resolution: Resolution, superseded: Vec<UnitId> },
    /// The entry's agent cast its ballot in a conflict, or another one in place of its first.
    #[serde(rename = "VOTE")]
    Voted { conflict_id: ConflictId, winner_id: UnitId, rationale: Box<str> },
    /// A conflict was left to a human; `reason` says why no strategy decided it.
    #[serde(rename = "CONFLICT_ESCALATED")]
    Escalated { conflict_id: ConflictId, resolution: Resolution, reason: Box<str> },
    /// The entry's agent has this subscription from now on: a new one, or a known one changed.
    #[serde(rename = "SUBSCRIBE")]
    Subscribed { subscription: Arc<Subscription> },
    #[serde(rename = "UNSUBSCRIBE")]
    Unsubscribed { subscription_id: Arc<str> },
    /// Units, all in one status, were put away: ATTUNE leaves them out unless asked. One event in the log, one for each
    /// unit in REPLAY and in the lines of the log.
    #[serde(rename = "ARCHIVE")]
    Archived { status: UnitStatus, units: UnitIds, reason: Box<str> },
    /// Units were deleted: their tombstones. The time of deletion is the entry's.
    #[serde(rename = "PURGE")]
    Purged { units: UnitIds, reason: Box<str> },
}

impl Event {
    /// The name in the log and in REPLAY.
    pub fn event_type(&self) -> &'static str {
        match self {
            Self::Registered { .. } => "REGISTER",
            Self::Deregistered { .. } => "DEREGISTER",
            Self::Connected { .. } => "AGENT_CONNECTED",
            Self::Failed { .. } => "AGENT_FAILED",
            Self::Recorded { .. } => "RECORD",
            Self::Committed { .. } => "COMMIT",
            Self::Discarded { .. } => "DISCARD",
            Self::Retracted { .. } => "RETRACT",
            Self::ConflictCreated { .. } => "CONFLICT_CREATED",
            Self::Attuned { .. } => "ATTUNE",
            Self::Unenriched { .. } => "ENRICHMENT_PENDING",
            Self::Enriched { .. } => "ENRICHED",
            Self::DetectionDeferred { .. } => "DETECTION_DEFERRED",
            Self::DetectionCaughtUp { .. } => "DETECTION_CAUGHT_UP",
            Self::Merged { .. } => "MERGE",
            Self::Voted { .. } => "VOTE",
            Self::Escalated { .. } => "CONFLICT_ESCALATED",
            Self::Subscribed { .. } => "SUBSCRIBE",
            Self::Unsubscribed { .. } => "UNSUBSCRIBE",
            Self::Archived { .. } => "ARCHIVE",
            Self::Purged { .. } => "PURGE",
        }
    }

    /// The units that it is about, where it tells the same of many.
    pub fn units(&self) -> Option<&UnitIds> {
        match self {
            Self::Archived { units, .. } | Self::Purged { units, .. } => Some(units),
            _ => None,
        }
    }

    /// How many cursors it takes: one, but one a unit where it tells the same of many.
    pub fn width(&self) -> u32 {
        self.units().map_or(1, |units| u32::try_from(units.len()).unwrap_or(u32::MAX))
    }

    /// Whose subscriptions it changes, or who is listened for: `author` is the entry's agent.
    pub fn changes_listening_of<'a>(&'a self, author: &'a str) -> Option<&'a str> {
        match self {
            Self::Subscribed { .. } | Self::Unsubscribed { .. } | Self::Registered { .. } => Some(author),
            Self::Deregistered { agent } => Some(agent),
            _ => None,
        }
    }

    /// Whether the Field itself did it, as a consequence of somebody's operation.
    pub fn is_systems(&self) -> bool {
        match self {
            Self::ConflictCreated { .. }
            | Self::Connected { .. }
            | Self::Failed { .. }
            | Self::Unenriched { .. }
            | Self::Enriched { .. }
            | Self::DetectionDeferred { .. }
            | Self::DetectionCaughtUp { .. } => true,
            Self::Merged { resolution, .. } => &*resolution.resolved_by == crate::protocol::SYSTEM,
            // A synthesis that COMPACT made.
            Self::Recorded { unit, .. } => &*unit.source.agent_id == crate::protocol::SYSTEM,
            _ => false,
        }
    }
}

impl Entry {
    /// The unit that a MERGE made out of the two that contradicted each other.
    pub fn synthesis(&self) -> Option<&Unit> {
        let made = |event: &Event| matches!(event, Event::Merged { resolution, .. } if resolution.strategy == Strategy::Synthesis);
        let recorded = self.events.iter().find_map(|event| match event {
            Event::Recorded { unit, .. } => Some(&**unit),
            _ => None,
        });
        recorded.filter(|_| self.events.iter().any(made))
    }

    /// A committed unit as this entry holds it, if it is one that this entry recorded or committed.
    pub fn unit(&self, id: UnitId) -> Option<&Arc<Unit>> {
        self.events.iter().find_map(|event| match event {
            Event::Recorded { unit, .. } | Event::Committed { unit, .. }
                if unit.id == id && unit.mode == Mode::Committed =>
            {
                Some(unit)
            }
            _ => None,
        })
    }

    /// Reads an entry from the log.
    ///
    /// # Errors
    /// A text that this version did not write.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Lets the entry's texts of agents and sessions be those that the world holds already, so that a million
    /// recovered units do not carry a million copies.
    pub fn intern(&mut self, world: &World) {
        if let Some(no) = world.agent_no(&self.agent_id) {
            self.agent_id = Arc::clone(&world.agent(no).agent.id);
        }
        if let Some(session) = &mut self.session_id {
            *session = world.interned_session(session);
        }
        for event in &mut self.events {
            match event {
                Event::Recorded { unit, .. } | Event::Committed { unit, .. } => intern_unit(unit, world),
                Event::Merged { resolution, .. } | Event::Escalated { resolution, .. }
                    if resolution.resolved_by == self.agent_id =>
                {
                    resolution.resolved_by = Arc::clone(&self.agent_id);
                }
                _ => {}
            }
        }
    }

    /// The text that the log keeps.
    pub fn to_json(&self) -> String {
        // Growing step by step would copy most texts three times.
        let mut text = Vec::with_capacity(self.likely_bytes());
        serde_json::to_writer(&mut text, self).expect("an entry is always writable");
        String::from_utf8(text).expect("JSON is UTF-8")
    }

    /// About how long that text is, and how much memory the entry takes.
    pub fn likely_bytes(&self) -> usize {
        let of_event = |event: &Event| match event {
            Event::Recorded { unit, .. } | Event::Committed { unit, .. } => {
                unit.content.len() + unit.intent.purpose.len() + 64 * unit.relations.len() + 640
            }
            Event::Merged { resolution, .. } | Event::Escalated { resolution, .. } => {
                resolution.rationale.len() + 512
            }
            Event::Voted { rationale, .. } => rationale.len() + 256,
            Event::Archived { units, reason, .. } | Event::Purged { units, reason } => {
                units.len() * size_of::<UnitId>() + reason.len() + 256
            }
            _ => 512,
        };
        let reply = self.reply.as_ref().map_or(0, |reply| reply.get().len());
        512 + reply + self.events.iter().map(of_event).sum::<usize>()
    }

    /// The events, each with the index of its cursor, the first of them where it takes several.
    pub fn placed(&self) -> impl Iterator<Item = (u32, &Event)> {
        self.events.iter().scan(0u32, |next, event| {
            let index = *next;
            *next = next.saturating_add(event.width());
            Some((index, event))
        })
    }

    /// The lines of `GET /v1/log`, one per event and unit (wire, section 1), without the first `skip`. Drafts appear
    /// without what they say; the COMMIT carries it.
    pub fn lines(&self, skip: usize) -> impl Iterator<Item = String> {
        let each = self.placed().flat_map(move |(index, event)| {
            let from = u32::try_from(skip).unwrap_or(u32::MAX).saturating_sub(index);
            (from..event.width()).map(move |at| (index, event, at))
        });
        each.map(|(index, event, at)| self.line(index + at, event, at as usize))
    }

    /// The line of one event; `at` says of which of its units.
    fn line(&self, index: u32, event: &Event, at: usize) -> String {
        let mut line = Map::new();
        let agent = if event.is_systems() { crate::protocol::SYSTEM } else { &*self.agent_id };
        line.insert("cursor".into(), json!(Cursor::new(self.epoch, index)));
        line.insert("epoch".into(), json!(self.epoch));
        line.insert("event_type".into(), json!(event.event_type()));
        line.insert("operation".into(), json!(self.operation));
        line.insert("agent_id".into(), json!(agent));
        line.insert("session_id".into(), json!(self.session_id));
        line.insert("message_id".into(), json!(self.message_id));
        line.insert("timestamp".into(), json!(self.at));
        let own = match event {
            Event::Recorded { unit, .. } if unit.mode == Mode::Draft => {
                json!({ "unit": { "id": unit.id, "mode": unit.mode, "type": unit.kind } })
            }
            Event::Discarded { memory_unit_id, .. } => json!({ "memory_unit_id": memory_unit_id }),
            Event::Archived { units, reason, .. } => {
                json!({ "memory_unit_id": units.as_slice().get(at), "reason": reason })
            }
            Event::Purged { units, reason } => {
                json!({ "memory_unit_id": units.as_slice().get(at), "reason": reason, "deleted_at": self.at })
            }
            Event::Attuned { read_epoch, shown } => json!({ "read_epoch": read_epoch, "shown": shown }),
            other => {
                let tagged = serde_json::to_value(other).expect("an event is always writable");
                match tagged {
                    Value::Object(map) => map.into_iter().next().map_or(Value::Null, |(_, own)| own),
                    _ => Value::Null,
                }
            }
        };
        if let Value::Object(own) = own {
            line.extend(own);
        }
        Value::Object(line).to_string()
    }
}

/// Units' ids as the log keeps many of them: the bare epoch where that names the unit. Written out they are read as well.
mod short_ids {
    use serde::ser::SerializeSeq;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::protocol::UnitId;

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum ShortId {
        Epoch(u64),
        Whole(UnitId),
    }

    pub fn serialize<S: Serializer>(ids: &[UnitId], to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(ids.len()))?;
        for id in ids {
            let short = if id.number == 0 { ShortId::Epoch(id.epoch) } else { ShortId::Whole(*id) };
            list.serialize_element(&short)?;
        }
        list.end()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<UnitId>, D::Error> {
        let whole = |short| match short {
            ShortId::Epoch(epoch) => UnitId::new(epoch, 0),
            ShortId::Whole(id) => id,
        };
        Ok(Vec::deserialize(from)?.into_iter().map(whole).collect())
    }
}

fn intern_unit(unit: &mut Arc<Unit>, world: &World) {
    let Some(unit) = Arc::get_mut(unit) else { return };
    let Some(no) = world.agent_no(&unit.source.agent_id) else { return };
    let agent = &world.agent(no).agent;
    unit.source.agent_id = Arc::clone(&agent.id);
    if unit.source.agent_role == agent.role {
        unit.source.agent_role = Arc::clone(&agent.role);
    }
    unit.source.session_id = unit.source.session_id.as_ref().map(|id| world.interned_session(id));
}

/// Has `each` take the lines of `GET /v1/log` for one stored entry, without the first `skip`, until it says no.
///
/// # Errors
/// A text that this version did not write.
pub fn log_lines(body: &str, skip: usize, each: impl FnMut(String) -> bool) -> Result<(), serde_json::Error> {
    let entry = Entry::from_json(body)?;
    // Line by line: one entry may tell of a million units.
    entry.lines(skip).all(each);
    Ok(())
}
