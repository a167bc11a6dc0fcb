//! ATTUNE's request (section 7) and its scope (section 5).

use std::fmt;
use std::sync::Arc;

use serde_json::json;

use super::error::Refusal;
use super::keys::Keys;
use super::unit::{MemoryType, wire_names};
use crate::limits::{HINT_MAX_BYTES, MAX_UNITS_MAX};

wire_names!(
    /// How much of each unit ATTUNE shows.
    Format {
        Full = "full",
        Summary = "summary",
        IdsOnly = "ids_only",
    }
);

/// Which units an agent wants to be brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Scope {
    /// The role for which relevance is judged.
    pub role: Box<str>,
    /// 1..=1000.
    pub max_units: usize,
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
}

/// What ATTUNE asks. The scope's keys of level 2 (`max_tokens`, `interests`, `active_task_id`,
/// `temporal_layers`, `relevance_threshold`, `recency_weight`) are not read below that level.
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
}

impl AttuneRequest {
    pub(super) fn read(mut keys: Keys, level: u8) -> Result<Self, Refusal> {
        let mut inner = keys.required_object("scope")?;
        let scope = Scope {
            role: required_role(&mut inner)?,
            max_units: max_units(&mut inner)?,
            include_own: inner.flag("include_own")?,
            include_archived: inner.flag("include_archived")?,
            include_drafts: inner.flag("include_drafts")?,
            session_id: inner.id("session_id")?,
            types: inner.names("types", MemoryType::from_name, MemoryType::names)?,
        };
        let scope_since = if level >= 1 { inner.count("since_epoch")? } else { None };
        let context_hint = keys.text_up_to("context_hint", HINT_MAX_BYTES)?;
        let format = keys.name_or("format", Format::Full, Format::from_name, Format::names)?;
        let since = if level >= 1 { keys.count("since_epoch")? } else { None };
        Ok(Self { scope, context_hint, format, since_epoch: since.max(scope_since) })
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
