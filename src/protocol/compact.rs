//! COMPACT (seed `compact.md`, sections 7 and 12): what it asks and what is answered.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::answers::Warning;
use super::error::{ErrorCode, Refusal};
use super::keys::Keys;
use super::unit::{MemoryType, UnitStatus, wire_names};
use crate::limits;

wire_names!(
    /// What becomes of the units that match.
    CompactStrategy {
        Archive = "archive",
        Summarize = "summarize",
        Purge = "purge",
    }
);

impl CompactStrategy {
    /// The conformance level from which a Field serves it.
    pub const fn served_from_level(self) -> u8 {
        match self {
            Self::Archive | Self::Summarize => 2,
            Self::Purge => 3,
        }
    }
}

/// COMPACT.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactRequest {
    /// What is to become of the units that match.
    pub strategy: CompactStrategy,
    /// Which units.
    pub filter: CompactFilter,
    /// Extension: why; kept with what is done.
    pub reason: Option<Box<str>>,
    /// Extension: a purge that would leave nothing is meant.
    pub confirm: bool,
    /// Extension: nothing is to be changed, only told what would be.
    pub dry_run: bool,
}

/// Which units COMPACT affects: those that meet every condition. An empty list is no condition.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompactFilter {
    /// Only units for which the operation's epoch less their own is greater than this.
    pub max_age_epochs: Option<u64>,
    /// Only units of this session.
    pub session_id: Option<Arc<str>>,
    /// Only units of these types.
    pub types: Vec<MemoryType>,
    /// Only units in one of these statuses.
    pub status: Vec<UnitStatus>,
}

impl CompactFilter {
    /// Whether it has no condition.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The filter in words.
impl fmt::Display for CompactFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = Vec::new();
        if let Some(age) = self.max_age_epochs {
            said.push(format!("older than {age} epoch{}", if age == 1 { "" } else { "s" }));
        }
        if let Some(session) = &self.session_id {
            said.push(format!("of session {session}"));
        }
        let names = |names: Vec<&str>| names.join(" or ");
        if !self.types.is_empty() {
            said.push(format!("of type {}", names(self.types.iter().map(|kind| kind.name()).collect())));
        }
        if !self.status.is_empty() {
            said.push(format!("with status {}", names(self.status.iter().map(|one| one.name()).collect())));
        }
        if said.is_empty() { f.write_str("all units") } else { write!(f, "units {}", said.join(", ")) }
    }
}

/// COMPACT's response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compacted {
    /// `ok`.
    pub status: String,
    /// Units that were archived or purged.
    pub units_affected: u64,
    /// Units that were made of those that were archived.
    pub synthesis_units_created: u64,
    /// What the active store gave back; `null` where units were archived.
    pub storage_reclaimed_bytes: Option<u64>,
    /// Extension: true where nothing was changed, because a preview was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Extension: what did not go as it should, though the COMPACT was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<Warning>,
}

impl CompactRequest {
    /// Reads the payload for a Field of `level`.
    pub(super) fn read(keys: &mut Keys, level: u8) -> Result<Self, Refusal> {
        let names = CompactStrategy::names;
        let strategy = keys.required_name("strategy", CompactStrategy::from_name, names)?;
        if strategy.served_from_level() > level {
            return Err(unserved(strategy, level));
        }
        let filter = match keys.object("filter")? {
            Some(mut filter) => read_filter(&mut filter)?,
            None => CompactFilter::default(),
        };
        if strategy == CompactStrategy::Purge && filter.is_empty() {
            return Err(Refusal::invalid(
                "filter",
                "filter has no condition: a purge without one would delete every unit.",
                "Send filter with one or more of max_age_epochs, session_id, types, status. To delete every unit \
                 all the same, send filter: { \"max_age_epochs\": 0 } and confirm: true.",
            ));
        }
        let reason = keys.text_up_to("reason", limits::RATIONALE_MAX_BYTES)?;
        Ok(Self {
            strategy,
            filter,
            reason: reason.filter(|reason| !reason.trim().is_empty()),
            confirm: keys.flag("confirm")?,
            dry_run: keys.flag("dry_run")?,
        })
    }
}

/// Elsewhere in a payload what is unknown is ignored. Here a misspelt condition would be one that is missing, and
/// would reach units that nobody meant.
fn read_filter(filter: &mut Keys) -> Result<CompactFilter, Refusal> {
    let read = CompactFilter {
        max_age_epochs: filter.count("max_age_epochs")?,
        session_id: filter.id("session_id")?,
        types: filter.names("types", MemoryType::from_name, MemoryType::names)?,
        status: filter.names("status", UnitStatus::from_name, UnitStatus::names)?,
    };
    match filter.left_over() {
        None => Ok(read),
        Some(key) => Err(Refusal::invalid(
            &key,
            format!("{key} is no condition that COMPACT knows."),
            "Send in filter only max_age_epochs, session_id, types, status; nothing was changed.",
        )),
    }
}

fn unserved(strategy: CompactStrategy, level: u8) -> Refusal {
    let from = strategy.served_from_level();
    let served: Vec<_> = CompactStrategy::ALL.iter().filter(|one| one.served_from_level() <= level).collect();
    let names: Vec<_> = served.iter().map(|one| one.name()).collect();
    Refusal::new(
        ErrorCode::UnsupportedOperation,
        format!("COMPACT with strategy {strategy} needs conformance level {from}; this Field serves level {level}."),
        format!("Use one of the strategies it serves: {}.", names.join(", ")),
    )
    .with("key", json!("strategy"))
    .with("level", json!(level))
    .with("required_level", json!(from))
}
