//! The requests (section 7): payloads read into plain data, key by key in the order in which the
//! specification lists them, so that the first wrong key is the one that is named.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::answers::Limits;
use super::compact::CompactRequest;
use super::conflict::{ConflictStatus, ConflictType, MergeRequest};
use super::error::{ErrorCode, Refusal};
use super::keys::{Keys, excerpt};
use super::operation::Operation;
use super::scope::AttuneRequest;
use super::subscription::SubscribeRequest;
use super::unit::{Confidence, Intent, MemoryType, Mode, Relation, RelationType, wire_names};
use crate::limits;

/// A payload, read whole.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum Request {
    Register(RegisterRequest),
    Deregister(DeregisterRequest),
    Record(Box<RecordRequest>),
    Attune(Box<AttuneRequest>),
    Detect(DetectRequest),
    Merge(Box<MergeRequest>),
    Replay(ReplayRequest),
    Subscribe(SubscribeRequest),
    Retract(GiveUpRequest),
    Commit(Box<CommitRequest>),
    Discard(GiveUpRequest),
    Compact(Box<CompactRequest>),
}

/// REGISTER.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct RegisterRequest {
    pub role: Arc<str>,
    pub interests: Vec<Box<str>>,
    pub required_operations: Vec<Box<str>>,
}

/// DEREGISTER.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct DeregisterRequest {
    pub agent_id: Arc<str>,
}

/// RECORD.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct RecordRequest {
    pub mode: Mode,
    pub kind: MemoryType,
    pub content: Box<str>,
    pub intent: Intent,
    pub confidence: Option<Confidence>,
    pub relations: Vec<Relation>,
}

/// What DETECT does.
#[derive(Debug, Clone, PartialEq)]
pub enum DetectMode {
    /// Lists the known conflicts.
    List,
    /// Compares one unit with the Field.
    Check {
        /// The unit.
        target_id: Box<str>,
    },
    /// Compares all units that stand with one another.
    Scan,
}

/// DETECT.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct DetectRequest {
    pub mode: DetectMode,
    pub filter: DetectFilter,
}

/// Which conflicts DETECT lists; an empty list is no condition.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct DetectFilter {
    pub status: Vec<ConflictStatus>,
    pub types: Vec<ConflictType>,
    pub involving_agents: Vec<Box<str>>,
}

wire_names!(
    /// What REPLAY reconstructs.
    ReplayTarget {
        Task = "task",
        MemoryUnit = "memory_unit",
        Decision = "decision",
        Conflict = "conflict",
        Session = "session",
    }
);

wire_names!(
    /// How much of it REPLAY shows.
    ReplayDepth {
        Summary = "summary",
        Detailed = "detailed",
        FullTrace = "full_trace",
    }
);

/// REPLAY.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct ReplayRequest {
    pub target_type: ReplayTarget,
    pub target_id: Box<str>,
    pub depth: ReplayDepth,
    pub as_of_epoch: Option<u64>,
}

/// RETRACT or DISCARD (Extension): a unit given up, and why.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct GiveUpRequest {
    pub memory_unit_id: Box<str>,
    pub reason: Box<str>,
}

/// COMMIT (Extension). What is absent is taken from the draft.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct CommitRequest {
    pub memory_unit_id: Box<str>,
    pub confidence: Option<Confidence>,
    pub relations: Option<Vec<Relation>>,
}

impl Request {
    /// Whether it only looks: such messages are neither remembered nor logged.
    pub fn is_read(&self) -> bool {
        match self {
            Self::Attune(_) | Self::Detect(_) | Self::Replay(_) => true,
            Self::Subscribe(request) => request.is_read(),
            Self::Compact(request) => request.dry_run,
            _ => false,
        }
    }

    /// Reads the payload of `operation`, sent by `agent_id`, for a Field of `level`.
    ///
    /// # Errors
    /// The refusal that section 9 gives for the first wrong key; `UNSUPPORTED_OPERATION` for an operation
    /// or a mode that this Field does not serve.
    pub fn read(
        operation: Operation,
        agent_id: &str,
        payload: Map<String, Value>,
        limits: &Limits,
        level: u8,
    ) -> Result<Self, Refusal> {
        let mut keys = Keys::top(payload);
        Ok(match operation {
            Operation::Register => Self::Register(register(&mut keys, agent_id)?),
            Operation::Deregister => {
                Self::Deregister(DeregisterRequest { agent_id: keys.required_id("agent_id")? })
            }
            Operation::Record => Self::Record(Box::new(record(&mut keys, limits, level)?)),
            Operation::Attune => Self::Attune(Box::new(AttuneRequest::read(keys, level)?)),
            Operation::Detect => Self::Detect(detect(&mut keys, level)?),
            Operation::Merge => Self::Merge(Box::new(MergeRequest::read(&mut keys, limits, level)?)),
            Operation::Replay => Self::Replay(replay(&mut keys)?),
            Operation::Subscribe => Self::Subscribe(SubscribeRequest::read(keys)?),
            Operation::Retract => Self::Retract(give_up(&mut keys)?),
            Operation::Discard => Self::Discard(give_up(&mut keys)?),
            Operation::Commit => Self::Commit(Box::new(commit(&mut keys, limits, level)?)),
            Operation::Compact => Self::Compact(Box::new(CompactRequest::read(&mut keys, level)?)),
            Operation::Coordinate | Operation::Handoff | Operation::Session => {
                return Err(unsupported(operation, level));
            }
        })
    }
}

/// The refusal of an operation that a Field of `level` does not serve.
pub(crate) fn unsupported(operation: Operation, level: u8) -> Refusal {
    let served: Vec<_> =
        Operation::ALL.into_iter().filter(|op| op.is_served_at(level)).map(Operation::name).collect();
    Refusal::new(
        ErrorCode::UnsupportedOperation,
        format!("This Field does not serve {operation}."),
        format!("Use one of the operations it serves: {}.", served.join(", ")),
    )
    .with("supported_operations", json!(served))
}

fn register(keys: &mut Keys, agent_id: &str) -> Result<RegisterRequest, Refusal> {
    let id = keys.required_id("id")?;
    if *id != *agent_id {
        return Err(Refusal::invalid(
            "id",
            format!("The payload registers {id:?} but the envelope's agent_id is {agent_id:?}."),
            "Send the same id in both places: an agent registers itself.",
        ));
    }
    let role = keys.required_id("role")?;
    let interests = keys.id_length_texts("interests", limits::INTERESTS_MAX)?;
    let required_operations = keys.id_length_texts("required_operations", 64)?;
    Ok(RegisterRequest { role, interests, required_operations })
}

fn record(keys: &mut Keys, limits: &Limits, level: u8) -> Result<RecordRequest, Refusal> {
    let mode = keys.name_or("mode", Mode::Committed, Mode::from_name, Mode::names)?;
    let kind = memory_type(keys)?;
    let content = content(keys, limits)?;
    let intent = intent(keys)?;
    let confidence = confidence(keys, limits)?;
    if mode == Mode::Committed && level >= 1 {
        check_committed(confidence.as_ref())?;
    }
    let relations = relations(keys, limits)?;
    Ok(RecordRequest { mode, kind, content, intent, confidence, relations })
}

fn memory_type(keys: &mut Keys) -> Result<MemoryType, Refusal> {
    let found = keys.take("type");
    let known = found.as_ref().and_then(Value::as_str).and_then(MemoryType::from_name);
    known.ok_or_else(|| {
        let said = found.as_ref().map_or_else(|| "missing".to_owned(), excerpt);
        Refusal::new(
            ErrorCode::InvalidType,
            format!("type is {said}."),
            format!("Send type as one of {}.", MemoryType::names()),
        )
        .with("key", json!("type"))
    })
}

fn content(keys: &mut Keys, limits: &Limits) -> Result<Box<str>, Refusal> {
    let content = keys.required_text("content")?;
    if content.len() > limits.content_bytes {
        return Err(Refusal::invalid(
            "content",
            format!("content has {} bytes; at most {} are allowed.", content.len(), limits.content_bytes),
            "Record the essence, or split it into several units that elaborate one another.",
        )
        .with("limit", json!(limits.content_bytes)));
    }
    Ok(content.into_boxed_str())
}

/// Every kind of missing purpose has the protocol's own code, whatever stands in its place.
fn intent(keys: &mut Keys) -> Result<Intent, Refusal> {
    let missing = |said: &str| {
        Refusal::new(
            ErrorCode::MissingIntent,
            format!("{said}: every unit carries why it was recorded."),
            "Send intent: { \"purpose\": \"…\" } that says in a sentence why you record this.",
        )
        .with("key", json!("intent.purpose"))
    };
    let mut intent = match keys.object("intent") {
        Ok(Some(intent)) => intent,
        Ok(None) => return Err(missing("intent is missing")),
        Err(_) => return Err(missing("intent is not an object")),
    };
    let purpose = match intent.short_text("purpose") {
        Ok(Some(purpose)) if !purpose.trim().is_empty() => purpose,
        Ok(_) => return Err(missing("intent.purpose is missing or empty")),
        Err(long) if long.details.get("limit").is_some() => return Err(long),
        Err(_) => return Err(missing("intent.purpose is not a string")),
    };
    Ok(Intent { purpose, task_id: intent.id("task_id")?, question: intent.short_text("question")? })
}

fn invalid_confidence(key: &str, message: String) -> Refusal {
    Refusal::new(
        ErrorCode::InvalidConfidence,
        message,
        "Send confidence: { \"score\": a number from 0 to 1, \"reason\": \"…\" }.",
    )
    .with("key", json!(key))
}

fn confidence(keys: &mut Keys, limits: &Limits) -> Result<Option<Confidence>, Refusal> {
    let mut inner = match keys.object("confidence") {
        Ok(Some(inner)) => inner,
        Ok(None) => return Ok(None),
        Err(_) => return Err(invalid_confidence("confidence", "confidence is not an object.".into())),
    };
    let score = match inner.take("score") {
        None => None,
        Some(value) => match value.as_f64() {
            Some(score) if (0.0..=1.0).contains(&score) => Some(score),
            _ => {
                let said = excerpt(&value);
                return Err(invalid_confidence(
                    "confidence.score",
                    format!("confidence.score is {said}, not a number from 0 to 1."),
                ));
            }
        },
    };
    // The older draft of the protocol said `reasoning`; it is understood, and never said back.
    let reasoning = inner.short_text("reasoning");
    let reason = match (inner.short_text("reason"), reasoning) {
        (Ok(Some(reason)), _) | (Ok(None), Ok(Some(reason))) => Some(reason),
        (Ok(None), Ok(None)) => None,
        (Err(long), _) | (_, Err(long)) if long.details.get("limit").is_some() => return Err(long),
        _ => {
            return Err(invalid_confidence("confidence.reason", "confidence.reason is not a string.".into()));
        }
    };
    Ok(Some(Confidence {
        score,
        reason,
        evidence: inner.texts("evidence", limits.evidence)?,
        assumptions: inner.texts("assumptions", limits.assumptions)?,
    }))
}

/// A committed unit says how sure its author is and why (section 3, level 1 and above).
pub(crate) fn check_committed(confidence: Option<&Confidence>) -> Result<(), Refusal> {
    let lacking = match confidence {
        None => "confidence",
        Some(c) if c.score.is_none() => "confidence.score",
        Some(c) if c.reason.as_deref().is_none_or(|r| r.trim().is_empty()) => "confidence.reason",
        Some(_) => return Ok(()),
    };
    Err(Refusal::new(
        ErrorCode::MissingConfidence,
        format!("{lacking} is missing: a committed unit says how sure its author is and why."),
        "Send confidence: { \"score\": a number from 0 to 1, \"reason\": \"…\" }, or record a draft.",
    )
    .with("key", json!(lacking)))
}

fn relations(keys: &mut Keys, limits: &Limits) -> Result<Vec<Relation>, Refusal> {
    let values = keys.list("relations", limits.relations)?;
    values.into_iter().enumerate().map(|(at, value)| relation(at, value)).collect()
}

fn relation(at: usize, value: Value) -> Result<Relation, Refusal> {
    let path = format!("relations[{at}]");
    let Value::Object(map) = value else {
        return Err(Refusal::invalid(
            &path,
            format!("{path} is not an object."),
            format!("Send {path} as {{ \"type\": \"…\", \"target_id\": \"mem-…\" }}."),
        ));
    };
    let mut keys = Keys::top(map);
    let found = keys.take("type");
    let kind = found.as_ref().and_then(Value::as_str).and_then(RelationType::from_name).ok_or_else(|| {
        let said = found.as_ref().map_or_else(|| "missing".to_owned(), excerpt);
        Refusal::new(
            ErrorCode::InvalidType,
            format!("{path}.type is {said}."),
            format!("Send {path}.type as one of {}.", RelationType::names()),
        )
        .with("key", json!(format!("{path}.type")))
    })?;
    let under = |refusal: Refusal| {
        let key = refusal.details["key"].as_str().unwrap_or_default().to_owned();
        Refusal { message: format!("In {path}: {}", refusal.message).into(), ..refusal }
            .with("key", json!(format!("{path}.{key}")))
    };
    let target_id = keys.required_id("target_id").map_err(under)?;
    let description = keys.short_text("description").map_err(under)?;
    Ok(Relation { kind, target_id: Box::from(target_id.as_ref()), description })
}

/// The conformance level from which DETECT looks for conflicts by itself (section 7).
const DETECTION_LEVEL: u8 = 2;

fn detect(keys: &mut Keys, level: u8) -> Result<DetectRequest, Refusal> {
    let known = || "check, scan, list".to_owned();
    let is_known = |name: &str| ["check", "scan", "list"].contains(&name).then(|| name.to_owned());
    let mode = keys.required_name("mode", is_known, known)?;
    if mode != "list" && level < DETECTION_LEVEL {
        return Err(Refusal::new(
            ErrorCode::UnsupportedOperation,
            format!(
                "This Field does not serve DETECT with mode {mode:?}: it looks for no conflicts by itself."
            ),
            "Use mode \"list\" for the known conflicts; record a contradicts relation to make one known.",
        )
        .with("key", json!("mode")));
    }
    let mode = match &*mode {
        "check" => DetectMode::Check { target_id: Box::from(&*keys.required_id("target_id")?) },
        other => {
            // Of no use to the others, but never nonsense.
            keys.id("target_id")?;
            if other == "scan" { DetectMode::Scan } else { DetectMode::List }
        }
    };
    let Some(mut filter) = keys.object("filter")? else {
        return Ok(DetectRequest { mode, filter: DetectFilter::default() });
    };
    Ok(DetectRequest {
        mode,
        filter: DetectFilter {
            status: filter.names("status", ConflictStatus::from_name, ConflictStatus::names)?,
            types: filter.names("types", ConflictType::from_name, ConflictType::names)?,
            involving_agents: filter.texts("involving_agents", 1_000)?,
        },
    })
}

fn replay(keys: &mut Keys) -> Result<ReplayRequest, Refusal> {
    Ok(ReplayRequest {
        target_type: keys.required_name("target_type", ReplayTarget::from_name, ReplayTarget::names)?,
        target_id: Box::from(&*keys.required_id("target_id")?),
        depth: keys.required_name("depth", ReplayDepth::from_name, ReplayDepth::names)?,
        as_of_epoch: keys.count("as_of_epoch")?,
    })
}

fn give_up(keys: &mut Keys) -> Result<GiveUpRequest, Refusal> {
    Ok(GiveUpRequest {
        memory_unit_id: Box::from(&*keys.required_id("memory_unit_id")?),
        reason: keys.required_short_text("reason")?,
    })
}

fn commit(keys: &mut Keys, limits: &Limits, level: u8) -> Result<CommitRequest, Refusal> {
    let memory_unit_id = Box::from(&*keys.required_id("memory_unit_id")?);
    let confidence = confidence(keys, limits)?;
    // Given, it replaces the draft's, so it must be whole whatever unit is named.
    if level >= 1 && confidence.is_some() {
        check_committed(confidence.as_ref())?;
    }
    let relations = match keys.take("relations") {
        None => None,
        Some(value) => {
            let mut only = Keys::top(Map::from_iter([("relations".to_owned(), value)]));
            Some(relations(&mut only, limits)?)
        }
    };
    Ok(CommitRequest { memory_unit_id, confidence, relations })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
