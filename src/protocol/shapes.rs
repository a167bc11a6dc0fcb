//! The requests as JSON Schema tells them: what a client writes, key by key (section 7).
//!
//! Requests are read by hand (`request`, `scope`, `conflict`, `subscription`), so that each refusal names its key.
//! Nothing is read into these shapes: they are the one source of the schemas that the hub shows, and their words are
//! what a language model reads about the arguments of a tool. The tests hold them against the readers: the same keys,
//! the same names, the same bounds.

#![allow(dead_code, reason = "never filled: only their schemas are used")]

use std::fmt;

use schemars::{JsonSchema, Schema};

use super::compact::CompactStrategy;
use super::conflict::{ConflictStatus, ConflictType, Strategy};
use super::request::{ReplayDepth, ReplayTarget};
use super::scope::{Format, TemporalLayer};
use super::subscription::{Action, EventName};
use super::unit::{MemoryType, Mode, RelationType, wire_names};
use crate::limits::{DEBOUNCE_MAX_MS, ID_MAX_BYTES, INTERESTS_MAX, MAX_UNITS_MAX};

wire_names!(
    /// How DETECT looks.
    DetectMode {
        List = "list",
        Check = "check",
        Scan = "scan",
    }
);

/// REGISTER: join the Field as an agent.
#[derive(JsonSchema)]
#[schemars(rename = "RegisterRequest")]
pub struct Register {
    /// Your agent id, unique in the Field, such as "researcher-01".
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    id: String,
    /// Your role, such as "market_researcher": relevance is judged by it.
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    role: String,
    /// What you care about, a few words each.
    #[schemars(length(max = INTERESTS_MAX))]
    interests: Option<Vec<String>>,
    /// Operations that you cannot do without; if one is not served, the answer's status is "rejected".
    #[schemars(length(max = 64))]
    required_operations: Option<Vec<String>>,
}

/// DEREGISTER: an agent leaves; what it recorded stays.
#[derive(JsonSchema)]
#[schemars(rename = "DeregisterRequest")]
pub struct Deregister {
    /// Who leaves.
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    agent_id: String,
}

/// RECORD: a memory unit enters the Field.
#[derive(JsonSchema)]
#[schemars(rename = "RecordRequest")]
pub struct Record {
    /// "committed" (when left out) is everyone's memory at once; "draft" is yours alone until COMMIT.
    mode: Option<Mode>,
    /// What kind of knowledge it is.
    #[schemars(rename = "type")]
    kind: MemoryType,
    /// One self-contained statement: another agent must understand it without your conversation.
    #[schemars(length(min = 1))]
    content: String,
    /// Why it is recorded.
    intent: Intent,
    /// How sure you are, and why. Required unless mode is "draft".
    confidence: Option<Confidence>,
    /// How it relates to units that you know of. "supersedes" replaces the target; "contradicts" opens a conflict.
    relations: Option<Vec<Relation>>,
}

/// Why a unit is recorded.
#[derive(JsonSchema)]
#[schemars(rename = "RequestIntent")]
struct Intent {
    /// What this knowledge is for, in a sentence. Never empty.
    #[schemars(length(min = 1))]
    purpose: String,
    /// The task that it serves.
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    task_id: Option<String>,
    /// The question that it answers or asks.
    question: Option<String>,
}

/// How sure its author is.
#[derive(JsonSchema)]
#[schemars(rename = "RequestConfidence")]
struct Confidence {
    /// 0 (a guess) to 1 (certain). Required where the unit is committed.
    #[schemars(range(min = 0, max = 1))]
    score: Option<f64>,
    /// The ground for the score. Required where the unit is committed.
    reason: Option<String>,
    /// The older name of reason.
    #[schemars(extend("deprecated" = true))]
    reasoning: Option<String>,
    /// What it rests on: sources, measurements, unit ids.
    evidence: Option<Vec<String>>,
    /// What must hold for it to stand.
    assumptions: Option<Vec<String>>,
}

/// A link to another unit.
#[derive(JsonSchema)]
#[schemars(rename = "RequestRelation")]
struct Relation {
    /// How the new unit relates to the target.
    #[schemars(rename = "type")]
    kind: RelationType,
    /// The other unit's id, such as "mem-42".
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    target_id: String,
    /// More about the link.
    description: Option<String>,
}

/// ATTUNE: be brought what matters.
#[derive(JsonSchema)]
#[schemars(rename = "AttuneRequest")]
pub struct Attune {
    /// For whom, and how much.
    scope: Scope,
    /// What you are about to do or decide, in your own words: the strongest signal of what matters.
    context_hint: Option<String>,
    /// How much of each unit: "full", "summary" (at most 280 characters) or "ids_only".
    format: Option<Format>,
    /// Only units committed at or after this epoch. To poll, send the epoch of your last answer.
    since_epoch: Option<u64>,
    /// Show the factors behind each score (Extension).
    explain: Option<bool>,
}

/// For whom relevance is judged, and what is left out (section 5).
#[derive(JsonSchema)]
#[schemars(rename = "RequestScope")]
struct Scope {
    /// The role for which relevance is judged; mostly your own.
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    role: String,
    /// Most units to bring.
    #[schemars(range(min = 1, max = MAX_UNITS_MAX))]
    max_units: u64,
    /// As since_epoch beside the scope; the larger counts.
    since_epoch: Option<u64>,
    /// Show what was shown once the operation of this epoch was done (Extension).
    as_of_epoch: Option<u64>,
    /// Most tokens that the units may take; what does not fit comes as a summary.
    #[schemars(range(min = 1))]
    max_tokens: Option<u64>,
    /// What you care about now, in place of what you registered with.
    #[schemars(length(max = INTERESTS_MAX))]
    interests: Option<Vec<String>>,
    /// The task that you work on: its units come first.
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    active_task_id: Option<String>,
    /// "past" is concluded knowledge, "present" what holds now, "future" intentions.
    temporal_layers: Option<Vec<TemporalLayer>>,
    /// Leave out what is less relevant.
    #[schemars(range(min = 0, max = 1))]
    relevance_threshold: Option<f64>,
    /// How much newness counts.
    #[schemars(range(min = 0, max = 1))]
    recency_weight: Option<f64>,
    /// Also your own units (Extension).
    include_own: Option<bool>,
    /// Also archived units (Extension).
    include_archived: Option<bool>,
    /// Also your own drafts (Extension).
    include_drafts: Option<bool>,
    /// Only units of this protocol session (Extension).
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    session_id: Option<String>,
    /// Only units of these types (Extension).
    types: Option<Vec<MemoryType>>,
}

/// DETECT: conflicts between units.
#[derive(JsonSchema)]
#[schemars(rename = "DetectRequest")]
pub struct Detect {
    /// "list" shows the known conflicts; "check" compares one unit with the Field, "scan" all of it, where served.
    mode: DetectMode,
    /// The unit to compare, for "check".
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    target_id: Option<String>,
    /// Only known conflicts that match.
    filter: Option<DetectFilter>,
}

/// Which conflicts DETECT lists; an empty list is no condition.
#[derive(JsonSchema)]
#[schemars(rename = "RequestDetectFilter")]
struct DetectFilter {
    /// In one of these states. "detected" and "escalated" ones wait for a decision.
    status: Option<Vec<ConflictStatus>>,
    /// Of one of these types.
    types: Option<Vec<ConflictType>>,
    /// With a unit by one of these agents.
    involving_agents: Option<Vec<String>>,
}

/// MERGE: end a conflict.
#[derive(JsonSchema)]
#[schemars(rename = "MergeRequest")]
pub struct Merge {
    /// The conflict, such as "conflict-42".
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    conflict_id: String,
    /// How it is decided. "synthesis" needs resolution.synthesis, "vote" and a human's decision resolution.winner_id.
    strategy: Strategy,
    /// The decision and its ground.
    resolution: MergeResolution,
}

/// The decision of a MERGE.
#[derive(JsonSchema)]
#[schemars(rename = "RequestResolution")]
struct MergeResolution {
    /// Why it is decided so.
    #[schemars(length(min = 1))]
    rationale: String,
    /// The unit that prevails, where the strategy does not decide by itself.
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    winner_id: Option<String>,
    /// The text of the unit that takes the place of both, for the strategy "synthesis".
    synthesis: Option<String>,
}

/// REPLAY: how something came about, from the log.
#[derive(JsonSchema)]
#[schemars(rename = "ReplayRequest")]
pub struct Replay {
    /// What target_id names.
    target_type: ReplayTarget,
    /// Its id, such as "mem-42", "conflict-42" or a task id.
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    target_id: String,
    /// "summary" is an account to read, "detailed" the key events, "full_trace" every event.
    depth: ReplayDepth,
    /// Only what had happened by then (Extension).
    as_of_epoch: Option<u64>,
}

/// SUBSCRIBE: be told of events.
#[derive(JsonSchema)]
#[schemars(rename = "SubscribeRequest")]
pub struct Subscribe {
    /// What to do.
    action: Action,
    /// Which subscription; not for "list".
    subscription: Option<Subscription>,
}

/// What to be told of.
#[derive(JsonSchema)]
#[schemars(rename = "RequestSubscription")]
struct Subscription {
    /// Its name; made by the Field when left out.
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    id: Option<String>,
    /// Which events; required for a new subscription.
    #[schemars(length(min = 1))]
    events: Option<Vec<EventName>>,
    /// Only of units at least this relevant to your role and interests.
    #[schemars(range(min = 0, max = 1))]
    min_relevance: Option<f64>,
    /// Least time between two notifications for the same unit, conflict or agent, in milliseconds.
    #[schemars(range(max = DEBOUNCE_MAX_MS))]
    debounce_ms: Option<u64>,
    /// A cursor: everything after it is told first.
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+$"))]
    resume_after: Option<String>,
    /// Whether notifications carry the unit that they are about.
    include_unit: Option<bool>,
}

/// COMPACT: archive, summarize or purge older units.
#[derive(JsonSchema)]
#[schemars(rename = "CompactRequest")]
pub struct Compact {
    /// "archive" hides them from ATTUNE, "summarize" also writes syntheses of them, "purge" deletes them for good.
    strategy: CompactStrategy,
    /// Which units; all conditions must hold.
    filter: Option<CompactFilter>,
    /// Why, for the log (Extension).
    reason: Option<String>,
    /// True where a purge may delete everything (Extension).
    confirm: Option<bool>,
    /// True to be told what would be done, and change nothing (Extension).
    dry_run: Option<bool>,
}

/// Which units COMPACT takes.
#[derive(JsonSchema)]
#[schemars(rename = "RequestCompactFilter", extend("additionalProperties" = false))]
struct CompactFilter {
    /// Only units older than so many epochs.
    max_age_epochs: Option<u64>,
    /// Only units of this protocol session.
    session_id: Option<String>,
    /// Only units of these types.
    types: Option<Vec<MemoryType>>,
    /// Only units with one of these statuses, such as "superseded".
    status: Option<Vec<String>>,
}

/// RETRACT or DISCARD: give a unit up.
#[derive(JsonSchema)]
#[schemars(rename = "GiveUpRequest")]
pub struct GiveUp {
    /// The unit, such as "mem-42".
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    memory_unit_id: String,
    /// Why it no longer stands.
    #[schemars(length(min = 1))]
    reason: String,
}

/// COMMIT: make a draft everyone's memory. What is left out is taken from the draft.
#[derive(JsonSchema)]
#[schemars(rename = "CommitRequest")]
pub struct Commit {
    /// The draft.
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    memory_unit_id: String,
    /// How sure you are, and why.
    confidence: Option<Confidence>,
    /// In place of the draft's.
    relations: Option<Vec<Relation>>,
}

/// The envelope of a message (section 2): all eight keys, no others.
#[derive(JsonSchema)]
#[schemars(rename = "Envelope", extend("additionalProperties" = false, "required" = [
    "protocol", "version", "id", "operation", "agent_id", "session_id", "epoch", "payload"
]))]
pub struct Envelope {
    /// Always "akashik".
    #[schemars(extend("const" = super::PROTOCOL))]
    protocol: String,
    /// The protocol's version.
    #[schemars(extend("const" = super::VERSION))]
    version: String,
    /// The sender's name for this message: repeated under the same name, it is done once.
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    id: String,
    /// What is asked.
    operation: super::Operation,
    /// Who asks.
    #[schemars(length(min = 1, max = ID_MAX_BYTES))]
    agent_id: String,
    /// The protocol session that this belongs to, or null.
    session_id: Option<String>,
    /// The greatest epoch that the sender has seen, or 0.
    epoch: u64,
    /// The operation's own request.
    payload: Payload,
}

/// Any object.
struct Payload;

impl JsonSchema for Payload {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Payload".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "object" })
    }
}
