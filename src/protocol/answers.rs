//! The responses (section 7), as data. The hub writes them, the client reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::Agent;
use super::conflict::Conflict;
use super::ids::{ConflictId, UnitId};
use super::time::Timestamp;
use super::unit::MemoryUnit;
use crate::limits;

/// The bounds that a client can meet, as a Field advertises them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Longest content of a unit, bytes of UTF-8.
    pub content_bytes: usize,
    /// Most relations of a unit.
    pub relations: usize,
    /// Most evidence items of a unit.
    pub evidence: usize,
    /// Most assumptions of a unit.
    pub assumptions: usize,
    /// Largest message, bytes.
    pub message_bytes: usize,
    /// Greatest `max_units` of a scope.
    pub max_units: u64,
    /// Most events of a REPLAY response.
    pub replay_events: usize,
    /// Largest REPLAY response, bytes.
    pub replay_bytes: usize,
    /// How far a message's epoch may be ahead of the Field's clock.
    pub epoch_lead: u64,
    /// Ballots of a full vote: more than half of them decide a conflict.
    pub vote_quorum: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            content_bytes: limits::CONTENT_MAX_BYTES,
            relations: limits::RELATIONS_MAX,
            evidence: limits::EVIDENCE_MAX,
            assumptions: limits::EVIDENCE_MAX,
            message_bytes: limits::MESSAGE_MAX_BYTES,
            max_units: limits::MAX_UNITS_MAX,
            replay_events: limits::REPLAY_EVENTS_MAX,
            replay_bytes: limits::REPLAY_MAX_BYTES,
            epoch_lead: limits::EPOCH_LEAD_MAX,
            vote_quorum: limits::VOTE_QUORUM,
        }
    }
}

/// What a Field can do (section 7, REGISTER). It tells the truth: what is not served is not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Capabilities {
    pub conformance_level: u8,
    pub supported_operations: Vec<String>,
    pub protocol_version: String,
    pub persistence: bool,
    pub conflict_strategies: Vec<String>,
    /// Extension.
    pub field: String,
    /// Extension.
    pub memory_types: Vec<String>,
    /// Extension: `null` while relevance is lexical only.
    pub embedding: Option<serde_json::Value>,
    /// Extension.
    pub limits: Limits,
    /// Extension: what is served beyond the conformance level.
    pub extensions: Vec<String>,
}

/// REGISTER's response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Registered {
    pub status: String,
    pub agent: Option<Agent>,
    pub field_capabilities: Capabilities,
    pub rejection_reason: Option<String>,
}

/// What became of a leaving agent's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Cleanup {
    pub units_orphaned: usize,
    pub tasks_reassigned: usize,
}

/// DEREGISTER's response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Deregistered {
    pub status: String,
    pub cleanup: Cleanup,
}

/// `conflict_detection` of a unit that is still to be compared with all or a part of the Field (section 7, RECORD).
pub const DEFERRED: &str = "deferred";

/// RECORD's response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Recorded {
    pub status: String,
    pub memory_unit_id: UnitId,
    pub epoch: u64,
    pub conflicts_detected: Vec<ConflictId>,
    /// [`DEFERRED`] where not all of the Field was compared yet: what else clashes follows as conflicts by `system`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict_detection: Option<String>,
    pub rejection_reason: Option<String>,
    /// What did not go as it should, though the unit is in the Field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<Warning>,
}

/// What did not go as it should in an operation that was done (section 9: `ENRICHMENT_FAILED`, `DETECTION_TIMEOUT`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Warning {
    pub code: String,
    pub message: String,
    pub recoverable: bool,
    pub suggested_action: String,
}

/// The response of RETRACT, COMMIT and DISCARD.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Acknowledged {
    pub status: String,
    pub memory_unit_id: UnitId,
    pub epoch: u64,
    /// COMMIT's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflicts_detected: Option<Vec<ConflictId>>,
    /// COMMIT's alone: as in [`Recorded`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict_detection: Option<String>,
    /// COMMIT's alone: what did not go as it should, though the unit is in the Field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<Warning>,
}

/// One unit that ATTUNE brings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct ScopedMemoryUnit {
    pub memory_unit: MemoryUnit,
    pub relevance_score: f64,
    pub relevance_reason: String,
    pub format: String,
    /// Extension: the table of factors behind the score, by name, where it was asked to explain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<BTreeMap<String, RelevanceFactor>>,
}

/// One factor of a relevance score (section 8).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RelevanceFactor {
    /// How much of it the unit has, 0..=1.
    pub value: f64,
    /// What it adds to the score; the factors' contributions sum to it.
    pub contribution: f64,
}

/// How much ATTUNE brought of how much there was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct ContextBudget {
    pub units_returned: usize,
    pub units_available: usize,
    pub tokens_used: Option<u64>,
    pub tokens_budget: Option<u64>,
}

/// ATTUNE's response, as a client reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Attuned {
    pub status: String,
    pub record: Vec<ScopedMemoryUnit>,
    pub conflicts: Vec<Conflict>,
    pub context_budget: ContextBudget,
    pub epoch: u64,
}

/// How much DETECT looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct ScanCoverage {
    pub units_scanned: usize,
    pub new_conflicts_found: usize,
}

/// DETECT's response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Detected {
    pub status: String,
    pub conflicts: Vec<Conflict>,
    pub scan_coverage: ScanCoverage,
}

/// What a MERGE did beside resolving the conflict.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct SideEffects {
    pub superseded_units: Vec<UnitId>,
    /// The synthesis, where one was made.
    pub new_unit_id: Option<UnitId>,
    /// The authors of the two units that were connected at that moment.
    pub notified_agents: Vec<Arc<str>>,
}

/// MERGE's response. `status` is `resolved`, `escalated` or `pending_vote`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Merged {
    pub status: String,
    pub conflict: Conflict,
    pub side_effects: SideEffects,
    /// Where the synthesis waits for its embedding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<Warning>,
}

/// One event of a REPLAY timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct ReplayEvent {
    pub epoch: u64,
    pub event_type: String,
    pub agent_id: String,
    pub description: String,
    pub memory_unit_id: Option<UnitId>,
    pub task_id: Option<String>,
    /// Extension.
    pub timestamp: Timestamp,
}

/// REPLAY's response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Replayed {
    pub status: String,
    pub timeline: Vec<ReplayEvent>,
    pub summary: String,
    pub agents_involved: Vec<String>,
    pub total_events: usize,
}
