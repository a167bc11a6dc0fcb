//! Conflicts (section 6): two units that contradict each other, with a life cycle of their own.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ids::{ConflictId, UnitId};
use super::unit::wire_names;

wire_names!(
    /// What two units disagree about.
    ConflictType {
        Factual = "factual",
        Interpretive = "interpretive",
        Strategic = "strategic",
        Priority = "priority",
    }
);

wire_names!(
    /// Where a conflict stands. `resolved` is final.
    ConflictStatus {
        Detected = "detected",
        Resolving = "resolving",
        Resolved = "resolved",
        Escalated = "escalated",
    }
);

wire_names!(
    /// How a conflict was noticed.
    DetectedBy {
        Explicit = "explicit",
        Semantic = "semantic",
        Logical = "logical",
        Temporal = "temporal",
    }
);

wire_names!(
    /// How a conflict is decided (section 7, MERGE).
    Strategy {
        LastWriteWins = "last_write_wins",
        ConfidenceWeighted = "confidence_weighted",
        HumanEscalation = "human_escalation",
        Authority = "authority",
        EvidenceCount = "evidence_count",
        Synthesis = "synthesis",
        Vote = "vote",
    }
);

/// How a conflict ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Resolution {
    pub strategy: Strategy,
    pub winner_id: Option<UnitId>,
    pub rationale: Box<str>,
    pub resolved_by: Arc<str>,
    pub epoch_resolved: u64,
}

/// A conflict. `unit_a` is the older unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Conflict {
    pub id: ConflictId,
    #[serde(rename = "type")]
    pub kind: ConflictType,
    pub status: ConflictStatus,
    pub unit_a: UnitId,
    pub unit_b: UnitId,
    pub description: Box<str>,
    pub detected_by: DetectedBy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
}

impl Conflict {
    /// Whether it still waits for a decision.
    pub fn is_unresolved(&self) -> bool {
        self.status != ConflictStatus::Resolved
    }

    /// The other unit of the pair, where `unit` is one of them.
    pub fn partner_of(&self, unit: UnitId) -> Option<UnitId> {
        if unit == self.unit_a {
            Some(self.unit_b)
        } else if unit == self.unit_b {
            Some(self.unit_a)
        } else {
            None
        }
    }
}
