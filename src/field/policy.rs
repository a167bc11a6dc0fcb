//! What an operator decided about a Field: the arguments of its rules.

use serde_json::json;

use crate::limits;
use crate::protocol::{Capabilities, Limits, MemoryType, Operation, VERSION};
use crate::relevance::embedding;

/// The settings that the rules read. Constant while the hub runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The conformance level served: the configured one, or the highest that the hub meets.
    pub level: u8,
    /// Whether meaning and relations count in relevance.
    pub meaning: bool,
    /// Whether drafts are shown to every agent (section 3).
    pub shared_drafts: bool,
    /// Whether what an ATTUNE shows is logged (section 7, REPLAY of a decision).
    pub audit_reads: bool,
    /// How long an agent whose connection dropped may take to return, milliseconds (section 4).
    pub grace_ms: u64,
    /// The bounds that clients can meet.
    pub limits: Limits,
    /// What REGISTER tells of all this.
    pub capabilities: Capabilities,
}

impl Policy {
    /// The highest level met in full: level 2 needs embeddings, MERGE, push and COMPACT.
    pub const HIGHEST_LEVEL: u8 = 1;

    /// The level from which meaning and relations count (section 8).
    pub const MEANING_LEVEL: u8 = 2;

    /// The policy of the Field `name`, with `level` lowered to what is served.
    pub fn new(name: &str, level: u8, shared_drafts: bool, grace_ms: u64, limits: Limits) -> Self {
        let meaning = level >= Self::MEANING_LEVEL;
        let level = level.min(Self::HIGHEST_LEVEL);
        let served = |op: &Operation| op.served_from_level().is_some_and(|from| from <= level);
        let capabilities = Capabilities {
            conformance_level: level,
            supported_operations: Operation::ALL
                .iter()
                .filter(|op| served(op))
                .map(|op| op.name().to_owned())
                .collect(),
            protocol_version: VERSION.to_owned(),
            persistence: true,
            conflict_strategies: Vec::new(),
            field: name.to_owned(),
            memory_types: MemoryType::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
            embedding: meaning.then(|| json!({"name": embedding::NAME, "dimensions": embedding::DIMENSIONS})),
            limits: limits.clone(),
            extensions: ["retract", "commit", "discard", "idempotent-messages", "scope-extensions"]
                .map(str::to_owned)
                .to_vec(),
        };
        Self { level, meaning, shared_drafts, audit_reads: false, grace_ms, limits, capabilities }
    }
}

impl Policy {
    /// The same, where meaning and relations count only if they are `wanted`, and the level allows them.
    #[must_use]
    pub fn with_meaning(mut self, wanted: bool) -> Self {
        if !wanted {
            self.meaning = false;
            self.capabilities.embedding = None;
        }
        self
    }
}

impl Policy {
    /// The same, where a model outside of the hub makes the embeddings; without a say where meaning does not count.
    #[must_use]
    pub fn with_model(mut self, name: &str, dimensions: usize) -> Self {
        if self.meaning {
            self.capabilities.embedding = Some(json!({ "name": name, "dimensions": dimensions }));
        }
        self
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new("default", Self::MEANING_LEVEL, false, limits::GRACE_MS, Limits::default())
    }
}
