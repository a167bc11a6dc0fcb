//! What the GET endpoints show, as JSON Schema tells it (wire, section 1). The hub prints it from its state without such
//! types; the tests hold real answers against them.

#![allow(dead_code, reason = "never filled: only their schemas are used")]

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::agent::Agent;
use super::conflict::Conflict;
use super::ids::{ConflictId, Cursor, UnitId};
use super::subscription::Notification;
use super::time::Timestamp;
use super::unit::{MemoryUnit, RelationType, UnitStatus};

/// `GET /v1/field/status`.
#[derive(JsonSchema)]
pub struct FieldStatus {
    /// The Field's name.
    name: String,
    /// Its clock.
    epoch: u64,
    /// The conformance level that it is configured for.
    level: u8,
    /// Units by status.
    units: BTreeMap<UnitStatus, u64>,
    /// Agents that ever registered.
    agents: u64,
    /// Those that are here.
    agents_active: u64,
    /// Conflicts, settled or not.
    conflicts: u64,
    /// Those that wait for a decision.
    conflicts_unresolved: u64,
    /// Subscriptions.
    subscriptions: u64,
    /// Open WebSockets.
    connections: u64,
    /// Entries of the log.
    log_entries: u64,
    /// Size of the log.
    log_bytes: u64,
    /// Since the hub started, milliseconds.
    uptime_ms: u64,
    /// The hub's version.
    version: String,
}

/// `GET /v1/agents`.
#[derive(JsonSchema)]
pub struct Agents {
    /// All that ever registered, in the order in which they first did.
    agents: Vec<AgentHere>,
}

/// An agent, and where it is.
#[derive(JsonSchema)]
struct AgentHere {
    #[schemars(flatten)]
    agent: Agent,
    /// Whether it holds a WebSocket.
    connected: bool,
    /// When it was last heard of.
    last_seen: Option<Timestamp>,
    /// When it registered, the last time.
    registered_epoch: u64,
}

/// `GET /v1/conflicts`.
#[derive(JsonSchema)]
pub struct Conflicts {
    /// In the order in which they were detected; of too many the newest.
    conflicts: Vec<Conflict>,
}

/// `GET /v1/units`.
#[derive(JsonSchema)]
pub struct Units {
    /// In epoch order.
    units: Vec<UnitAtRest>,
    /// Where the next page begins; null at the end.
    cursor: Option<Cursor>,
}

/// A unit, and whether it is archived.
#[derive(JsonSchema)]
struct UnitAtRest {
    #[schemars(flatten)]
    unit: MemoryUnit,
    /// Left out of ATTUNE unless it is asked for.
    archived: bool,
}

/// `GET /v1/units/{id}`.
#[derive(JsonSchema)]
pub struct UnitWhole {
    #[schemars(flatten)]
    unit: MemoryUnit,
    /// Left out of ATTUNE unless it is asked for.
    archived: bool,
    /// The relations of other units to this one.
    inbound_relations: Vec<InboundRelation>,
    /// The conflicts that it is or was in.
    conflicts: Vec<ConflictId>,
}

/// A relation, seen from its target.
#[derive(JsonSchema)]
struct InboundRelation {
    #[schemars(rename = "type")]
    kind: RelationType,
    /// The unit that has the relation.
    source_id: UnitId,
    /// More about the link.
    description: Option<String>,
}

/// `GET /v1/events?poll=true`.
#[derive(JsonSchema)]
pub struct EventsPage {
    /// In order.
    events: Vec<Notification>,
    /// Where to go on.
    cursor: Cursor,
}
