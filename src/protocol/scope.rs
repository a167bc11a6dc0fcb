//! ATTUNE's request (section 7) and its scope (section 5).

use std::fmt;
use std::sync::Arc;

use serde_json::json;

use super::error::Refusal;
use super::keys::Keys;
use super::unit::{MemoryType, wire_names};
use crate::limits::{HINT_MAX_BYTES, INTERESTS_MAX, MAX_UNITS_MAX};

wire_names!(
    /// How much of each unit ATTUNE shows.
    Format {
        Full = "full",
        Summary = "summary",
        IdsOnly = "ids_only",
    }
);

wire_names!(
    /// What a unit's knowledge is about in time (section 5, `temporal_layers`).
    TemporalLayer {
        Past = "past",
        Present = "present",
        Future = "future",
    }
);

impl TemporalLayer {
    /// The layer of units of a type. A decision is of the present: that of a completed task would be of the past,
    /// but tasks are not completed here (COORDINATE is not served).
    pub const fn of(kind: MemoryType) -> Self {
        match kind {
            MemoryType::Finding
            | MemoryType::Observation
            | MemoryType::Correction
            | MemoryType::Synthesis => Self::Past,
            MemoryType::Decision
            | MemoryType::Constraint
            | MemoryType::Assumption
            | MemoryType::Question
            | MemoryType::Contradiction
            | MemoryType::HumanDirective => Self::Present,
            MemoryType::Intention => Self::Future,
        }
    }
}

/// Which units an agent wants to be brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Scope {
    /// The role for which relevance is judged.
    pub role: Box<str>,
    /// 1..=1000.
    pub max_units: usize,
    /// The keys of level 2; all as if absent where the Field does not read them.
    pub extended: ExtendedScope,
    /// Extension: also the agent's own units.
    pub include_own: bool,
    /// Extension: also archived units.
    pub include_archived: bool,
    /// Extension: also the agent's own drafts.
    pub include_drafts: bool,
    /// Extension: only this session's units.
    pub session_id: Option<Arc<str>>,
    /// Extension: only these types; empty means all.
    pub types: Vec<MemoryType>,
    /// Extension: what the Field would have shown once the operation at this epoch was done.
    pub as_of_epoch: Option<u64>,
}

/// The scope's keys of level 2 (section 5).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExtendedScope {
    /// Most tokens that the units of the answer may have, at least 1.
    pub max_tokens: Option<u64>,
    /// What the agent cares for now, in place of what it said at REGISTER; empty means the latter.
    pub interests: Vec<Box<str>>,
    /// The task that the agent works on.
    pub active_task_id: Option<Arc<str>>,
    /// Only units of these layers; empty means all.
    pub temporal_layers: Vec<TemporalLayer>,
    /// Only units of at least this relevance, 0..=1.
    pub relevance_threshold: Option<f64>,
    /// The part of recency in the score, 0..=1.
    pub recency_weight: Option<f64>,
}

/// What ATTUNE asks.
#[derive(Debug, Clone, PartialEq)]
pub struct AttuneRequest {
    /// The filter.
    pub scope: Scope,
    /// What the agent is about to do.
    pub context_hint: Option<Box<str>>,
    /// How much of each unit is shown.
    pub format: Format,
    /// Only units committed at or after it: the larger of the payload's and the scope's.
    pub since_epoch: Option<u64>,
    /// Extension: show each unit's factors with its score.
    pub explain: bool,
}

/// The level from which the keys of [`ExtendedScope`] are read (section 5).
pub const EXTENDED_SCOPE_LEVEL: u8 = 2;

impl AttuneRequest {
    /// Reads the payload for a Field of `level`.
    pub(super) fn read(mut keys: Keys, level: u8) -> Result<Self, Refusal> {
        let mut inner = keys.required_object("scope")?;
        let role = required_role(&mut inner)?;
        let max_units = max_units(&mut inner)?;
        let scope_since = if level >= 1 { inner.count("since_epoch")? } else { None };
        let scope = Scope {
            role,
            max_units,
            extended: if level >= EXTENDED_SCOPE_LEVEL {
                ExtendedScope::read(&mut inner)?
            } else {
                ExtendedScope::default()
            },
            include_own: inner.flag("include_own")?,
            include_archived: inner.flag("include_archived")?,
            include_drafts: inner.flag("include_drafts")?,
            session_id: inner.id("session_id")?,
            types: inner.names("types", MemoryType::from_name, MemoryType::names)?,
            as_of_epoch: inner.count("as_of_epoch")?,
        };
        let context_hint = keys.text_up_to("context_hint", HINT_MAX_BYTES)?;
        let format = keys.name_or("format", Format::Full, Format::from_name, Format::names)?;
        let since = if level >= 1 { keys.count("since_epoch")? } else { None };
        let explain = keys.flag("explain")?;
        Ok(Self { scope, context_hint, format, since_epoch: since.max(scope_since), explain })
    }
}

impl ExtendedScope {
    fn read(scope: &mut Keys) -> Result<Self, Refusal> {
        Ok(Self {
            max_tokens: max_tokens(scope)?,
            interests: scope.id_length_texts("interests", INTERESTS_MAX)?,
            active_task_id: scope.id("active_task_id")?,
            temporal_layers: scope.names(
                "temporal_layers",
                TemporalLayer::from_name,
                TemporalLayer::names,
            )?,
            relevance_threshold: scope.fraction("relevance_threshold")?,
            recency_weight: scope.fraction("recency_weight")?,
        })
    }
}

fn max_tokens(scope: &mut Keys) -> Result<Option<u64>, Refusal> {
    let name = scope.name("max_tokens");
    match scope.count("max_tokens")? {
        Some(0) => Err(Refusal::invalid(
            &name,
            format!("{name} is 0."),
            format!("Send {name} as an integer of at least 1, or leave it out."),
        )),
        found => Ok(found),
    }
}

fn required_role(scope: &mut Keys) -> Result<Box<str>, Refusal> {
    Ok(Box::from(scope.required_id("role")?.as_ref()))
}

fn max_units(scope: &mut Keys) -> Result<usize, Refusal> {
    let name = scope.name("max_units");
    let expected = format!("an integer from 1 to {MAX_UNITS_MAX}");
    match scope.count("max_units")? {
        Some(n) if (1..=MAX_UNITS_MAX).contains(&n) => Ok(n as usize),
        found => {
            let said = found.map_or_else(|| "missing".to_owned(), |n| n.to_string());
            Err(Refusal::invalid(&name, format!("{name} is {said}."), format!("Send {name} as {expected}."))
                .with("limit", json!(MAX_UNITS_MAX)))
        }
    }
}
