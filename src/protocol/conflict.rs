//! Conflicts (section 6): two units that contradict each other, with a life cycle of their own.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::answers::Limits;
use super::error::{ErrorCode, Refusal};
use super::ids::{ConflictId, UnitId};
use super::keys::Keys;
use super::unit::wire_names;
use crate::limits::RATIONALE_MAX_BYTES;

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

impl Strategy {
    /// The conformance level from which a Field serves it (section 7, MERGE).
    pub const fn served_from_level(self) -> u8 {
        match self {
            Self::LastWriteWins | Self::ConfidenceWeighted | Self::HumanEscalation => 2,
            Self::Authority | Self::EvidenceCount | Self::Synthesis | Self::Vote => 3,
        }
    }

    /// Those that a Field of this level serves.
    pub fn served_at(level: u8) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |strategy| strategy.served_from_level() <= level)
    }
}

/// How a conflict ended, or how it came to wait for a human: then `winner_id` is null, and the other keys tell of
/// the MERGE that escalated it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Resolution {
    pub strategy: Strategy,
    pub winner_id: Option<UnitId>,
    pub rationale: Box<str>,
    pub resolved_by: Arc<str>,
    pub epoch_resolved: u64,
}

/// An agent's say in a vote (Extension): its latest ballot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Ballot {
    pub agent_id: Arc<str>,
    pub winner_id: UnitId,
}

/// A conflict. `unit_a` is the older unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Extension: the ballots of a vote, each agent's latest, in the order in which the agents first voted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ballots: Vec<Ballot>,
    /// Extension: why a human has to decide; it stays once one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation_reason: Option<Box<str>>,
}

impl Conflict {
    /// Ends it.
    pub fn resolve(&mut self, resolution: Resolution) {
        self.status = ConflictStatus::Resolved;
        self.resolution = Some(resolution);
    }

    /// Leaves it to a human.
    pub fn escalate(&mut self, resolution: Resolution, reason: Box<str>) {
        self.status = ConflictStatus::Escalated;
        self.resolution = Some(resolution);
        self.escalation_reason = Some(reason);
    }

    /// Takes a ballot, in place of the agent's earlier one.
    pub fn cast(&mut self, ballot: Ballot) {
        self.status = ConflictStatus::Resolving;
        match self.ballots.iter_mut().find(|known| known.agent_id == ballot.agent_id) {
            Some(known) => *known = ballot,
            None => self.ballots.push(ballot),
        }
    }

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

/// MERGE. What `winner_id` and `synthesis` mean is the strategy's to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct MergeRequest {
    pub conflict_id: Box<str>,
    pub strategy: Strategy,
    pub rationale: Box<str>,
    pub winner_id: Option<Box<str>>,
    pub synthesis: Option<Box<str>>,
}

impl MergeRequest {
    pub(super) fn read(keys: &mut Keys, limits: &Limits, level: u8) -> Result<Self, Refusal> {
        let conflict_id = Box::from(&*keys.required_id("conflict_id")?);
        let strategy = keys.required_name("strategy", Strategy::from_name, Strategy::names)?;
        if strategy.served_from_level() > level {
            return Err(strategy_unsupported(strategy, level));
        }
        let mut resolution = keys.required_object("resolution")?;
        Ok(Self {
            conflict_id,
            strategy,
            rationale: resolution.required_text_up_to("rationale", RATIONALE_MAX_BYTES)?,
            winner_id: resolution.id("winner_id")?.map(|id| Box::from(&*id)),
            synthesis: resolution.text_up_to("synthesis", limits.content_bytes)?,
        })
    }
}

fn strategy_unsupported(strategy: Strategy, level: u8) -> Refusal {
    let served: Vec<_> = Strategy::served_at(level).map(Strategy::name).collect();
    Refusal::new(
        ErrorCode::UnsupportedOperation,
        format!("This Field does not serve MERGE with strategy {strategy}."),
        format!("Use one of the strategies it serves: {}.", served.join(", ")),
    )
    .with("key", json!("strategy"))
    .with("conflict_strategies", json!(served))
}
