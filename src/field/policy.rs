//! What an operator decided about a Field: the arguments of its rules.

use serde_json::json;

use crate::limits;
use crate::protocol::{Capabilities, EXTENDED_SCOPE_LEVEL, Limits, MemoryType, Operation, Strategy, VERSION};
use crate::relevance::embedding;

/// Which ATTUNEs are noted in the log, so that REPLAY of a decision tells what its author had been shown (section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Audit {
    /// None.
    #[default]
    Off,
    /// Those that showed what units say, behind their answers: a crash may lose the notes of the last moment.
    Delivered,
    /// All that were answered, also with ids alone or with nothing, before their answers leave.
    All,
}

/// The settings that the rules read. Constant while the hub runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The configured level: operations and keys of higher levels are not served. The conformance level that is told
    /// may be lower, where not all of a level is served.
    pub level: u8,
    /// Whether meaning counts in relevance, and what was said next to what is near.
    pub meaning: bool,
    /// Whether drafts are shown to every agent (section 3).
    pub shared_drafts: bool,
    /// Which ATTUNEs are noted (section 7, REPLAY of a decision).
    pub audit: Audit,
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

    /// The highest level that can be configured, which is also the usual one.
    const TOP_LEVEL: u8 = 3;

    /// What is served at every level beyond what the levels name.
    const EXTENSIONS: [&str; 8] = [
        "retract",
        "commit",
        "discard",
        "idempotent-messages",
        "scope-extensions",
        "explain",
        "look",
        "attune-as-of-epoch",
    ];
    /// What is served of level 2, from that configured level on.
    const EXTENSIONS_OF_LEVEL_2: [&str; 13] = [
        "extended-scope",
        "token-budget",
        "push",
        "sse",
        "polling",
        "resume",
        "conflict-escalated",
        "conflict-ballots",
        "compact-reason",
        "compact-confirm",
        "compact-dry-run",
        "detect-check",
        "detect-scan",
    ];
    /// What is served where units are compared with the Field when they are committed.
    const DETECTS: &str = "automatic-detection";

    /// The policy of the Field `name`.
    pub fn new(name: &str, level: u8, shared_drafts: bool, grace_ms: u64, limits: Limits) -> Self {
        let meaning = level >= EXTENDED_SCOPE_LEVEL;
        let further = if meaning { &Self::EXTENSIONS_OF_LEVEL_2[..] } else { &[] };
        let conformance_level = level.min(Self::HIGHEST_LEVEL);
        let merge = Operation::Merge.is_served_at(level);
        let strategies: Vec<_> = Strategy::served_at(level).filter(|_| merge).collect();
        let beyond = |strategy: &Strategy| strategy.served_from_level() == Self::TOP_LEVEL;
        let beyond = conformance_level < Self::TOP_LEVEL && strategies.iter().any(beyond);
        let beyond = beyond.then_some("level-3-merge-strategies");
        let purges = conformance_level < Self::TOP_LEVEL && level == Self::TOP_LEVEL;
        let purges = purges.then_some("level-3-purge");
        let served = |op: &Operation| op.is_served_at(level);
        let capabilities = Capabilities {
            conformance_level,
            supported_operations: Operation::ALL
                .iter()
                .filter(|op| served(op))
                .map(|op| op.name().to_owned())
                .collect(),
            protocol_version: VERSION.to_owned(),
            persistence: true,
            conflict_strategies: strategies.iter().map(|strategy| strategy.name().to_owned()).collect(),
            field: name.to_owned(),
            memory_types: MemoryType::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
            embedding: meaning.then(|| json!({"name": embedding::NAME, "dimensions": embedding::DIMENSIONS})),
            limits: limits.clone(),
            extensions: Self::EXTENSIONS
                .iter()
                .chain(further)
                .copied()
                .chain(beyond)
                .chain(purges)
                .map(str::to_owned)
                .collect(),
        };
        Self { level, meaning, shared_drafts, audit: Audit::Off, grace_ms, limits, capabilities }
    }

    /// Whether scopes are extended (section 5), tasks and declared relations count in relevance (section 8) and token
    /// budgets are kept (section 7).
    pub fn extended_scope(&self) -> bool {
        self.level >= EXTENDED_SCOPE_LEVEL
    }

    /// The same, where meaning counts only if it is `wanted`, and the level allows it.
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
    /// The same, where units are compared with the Field when they are committed; without a say where the level does not
    /// allow it.
    #[must_use]
    pub fn with_detection(mut self, wanted: bool) -> Self {
        if wanted && self.extended_scope() {
            self.capabilities.extensions.push(Self::DETECTS.to_owned());
        }
        self
    }

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
        Self::new("default", Self::TOP_LEVEL, false, limits::GRACE_MS, Limits::default())
    }
}
