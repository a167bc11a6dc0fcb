//! The memory unit (section 3): the atom of knowledge, immutable once committed.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::UnitId;
use super::time::Timestamp;

/// Defines an enum of wire names: serde form, `name()`, `ALL` and parsing agree by construction.
macro_rules! wire_names {
    ($(#[$doc:meta])* $enum:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[allow(missing_docs, reason = "the names are the protocol's own")]
        pub enum $enum { $($(#[$vdoc])* #[serde(rename = $name)] $variant),+ }

        impl $enum {
            /// All values, in the order in which the specification lists them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The value of this exact name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.name() == name)
            }

            /// All names, for messages that tell what would be accepted.
            pub fn names() -> String {
                Self::ALL.iter().map(|v| v.name()).collect::<Vec<_>>().join(", ")
            }
        }

        impl fmt::Display for $enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl schemars::JsonSchema for $enum {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($enum).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let names: Vec<_> = Self::ALL.iter().map(|v| v.name()).collect();
                schemars::json_schema!({ "type": "string", "enum": names })
            }
        }
    };
}
pub(super) use wire_names;

wire_names!(
    /// What kind of knowledge a unit is (section 3).
    MemoryType {
        Finding = "finding",
        Decision = "decision",
        Observation = "observation",
        Intention = "intention",
        Assumption = "assumption",
        Constraint = "constraint",
        Question = "question",
        Contradiction = "contradiction",
        Synthesis = "synthesis",
        Correction = "correction",
        HumanDirective = "human_directive",
    }
);

wire_names!(
    /// How a unit relates to another one (section 3).
    RelationType {
        Supports = "supports",
        Contradicts = "contradicts",
        DependsOn = "depends_on",
        Supersedes = "supersedes",
        CausedBy = "caused_by",
        Elaborates = "elaborates",
        Answers = "answers",
        Blocks = "blocks",
        Informs = "informs",
    }
);

wire_names!(
    /// Whether a unit is its author's own draft or everyone's memory.
    Mode {
        Draft = "draft",
        Committed = "committed",
    }
);

wire_names!(
    /// Where a unit stands in its life (section 3, life of a unit).
    UnitStatus {
        Active = "active",
        Draft = "draft",
        Superseded = "superseded",
        Retracted = "retracted",
        Contested = "contested",
        PendingEnrichment = "pending_enrichment",
    }
);

impl UnitStatus {
    /// Whether the unit still speaks: it can be superseded, contradicted, retracted and is shown by ATTUNE.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Active | Self::Contested | Self::PendingEnrichment)
    }
}

/// Why a unit was recorded. `purpose` is never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Intent {
    pub purpose: Box<str>,
    #[serde(default)]
    pub task_id: Option<Arc<str>>,
    #[serde(default)]
    pub question: Option<Box<str>>,
}

/// How sure the author is, and why. Never a factor of relevance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confidence {
    /// 0..=1; absent only in drafts and at level 0.
    pub score: Option<f64>,
    /// The ground for the score.
    pub reason: Option<Box<str>>,
    /// What the claim rests on.
    #[serde(default)]
    pub evidence: Vec<Box<str>>,
    /// What must hold for it to stand.
    #[serde(default)]
    pub assumptions: Vec<Box<str>>,
}

/// Who recorded a unit, in which role and session, and when. The Field's alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Source {
    pub agent_id: Arc<str>,
    pub agent_role: Arc<str>,
    pub session_id: Option<Arc<str>>,
    pub timestamp: Timestamp,
}

/// A link from one unit to another. The target is a text: it may name a unit that does not exist yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Relation {
    #[serde(rename = "type")]
    pub kind: RelationType,
    pub target_id: Box<str>,
    pub description: Option<Box<str>>,
}

/// The part of a memory unit that does not change once it is committed; what the log keeps of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Unit {
    pub id: UnitId,
    pub mode: Mode,
    #[serde(rename = "type")]
    pub kind: MemoryType,
    pub content: Box<str>,
    pub intent: Intent,
    pub confidence: Option<Confidence>,
    pub source: Source,
    pub relations: Vec<Relation>,
}

impl Unit {
    /// Bytes of all the texts in it: about how long it is when written.
    pub fn text_bytes(&self) -> usize {
        let of_list = |texts: &[Box<str>]| texts.iter().map(|text| text.len()).sum::<usize>();
        let confidence = self.confidence.as_ref().map_or(0, |confidence| {
            let reason = confidence.reason.as_deref().map_or(0, str::len);
            reason + of_list(&confidence.evidence) + of_list(&confidence.assumptions)
        });
        let of_relation = |relation: &Relation| {
            relation.target_id.len() + relation.description.as_deref().map_or(0, str::len)
        };
        self.content.len()
            + self.intent.purpose.len()
            + self.intent.question.as_deref().map_or(0, str::len)
            + confidence
            + self.relations.iter().map(of_relation).sum::<usize>()
    }
}

/// A memory unit as the doors show it: the unit with its present status and the epoch of its commit.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct ShownUnit<'a> {
    pub id: UnitId,
    pub mode: Mode,
    #[serde(rename = "type")]
    pub kind: MemoryType,
    pub content: Cow<'a, str>,
    pub intent: &'a Intent,
    pub confidence: Option<&'a Confidence>,
    pub source: &'a Source,
    pub relations: &'a [Relation],
    pub status: UnitStatus,
    pub epoch: u64,
}

impl<'a> ShownUnit<'a> {
    /// Joins a unit with what changes about it.
    pub fn new(unit: &'a Unit, status: UnitStatus, epoch: u64) -> Self {
        Self {
            id: unit.id,
            mode: unit.mode,
            kind: unit.kind,
            content: Cow::Borrowed(&unit.content),
            intent: &unit.intent,
            confidence: unit.confidence.as_ref(),
            source: &unit.source,
            relations: &unit.relations,
            status,
            epoch,
        }
    }
}

/// Who recorded a unit, as a client receives it: a summary within a budget tells neither session nor time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct SeenSource {
    pub agent_id: String,
    pub agent_role: String,
    #[serde(default)]
    pub session_id: Option<String>,
    #[serde(default)]
    pub timestamp: Option<Timestamp>,
}

/// A memory unit as a client receives it. With format `ids_only` everything but the id is absent; a summary within a
/// budget of tokens has no `mode` and no `relations`, and of `confidence` the score alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct MemoryUnit {
    pub id: String,
    #[serde(default)]
    pub mode: Option<Mode>,
    #[serde(default, rename = "type")]
    pub kind: Option<MemoryType>,
    #[serde(default)]
    pub content: Option<String>,
    #[serde(default)]
    pub intent: Option<Intent>,
    #[serde(default)]
    pub confidence: Option<Confidence>,
    #[serde(default)]
    pub source: Option<SeenSource>,
    #[serde(default)]
    pub relations: Vec<Relation>,
    #[serde(default)]
    pub status: Option<UnitStatus>,
    #[serde(default)]
    pub epoch: Option<u64>,
}
