//! COMPACT, as it is asked for.

use serde::Serialize;

use crate::protocol::{CompactStrategy, MemoryType, UnitStatus};

#[derive(Debug, Clone, Default, Serialize)]
struct Filter {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_age_epochs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    types: Vec<MemoryType>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    status: Vec<UnitStatus>,
}

/// COMPACT's request: of every unit, until conditions are added.
#[derive(Debug, Clone, Serialize)]
pub struct Compact {
    strategy: CompactStrategy,
    filter: Filter,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    confirm: bool,
    dry_run: bool,
}

impl Compact {
    /// Archives units: they are out of ATTUNE unless asked for.
    pub fn archive() -> Self {
        Self::by(CompactStrategy::Archive)
    }

    /// Archives units behind syntheses of them.
    pub fn summarize() -> Self {
        Self::by(CompactStrategy::Summarize)
    }

    /// Deletes units for good; the Field wants at least one condition.
    pub fn purge() -> Self {
        Self::by(CompactStrategy::Purge)
    }

    /// By a strategy.
    pub fn by(strategy: CompactStrategy) -> Self {
        Self { strategy, filter: Filter::default(), reason: None, confirm: false, dry_run: false }
    }

    /// Only units that are older than so many epochs.
    #[must_use]
    pub fn older_than(mut self, epochs: u64) -> Self {
        self.filter.max_age_epochs = Some(epochs);
        self
    }

    /// Only units of this session.
    #[must_use]
    pub fn of_session(mut self, session: impl Into<String>) -> Self {
        self.filter.session_id = Some(session.into());
        self
    }

    /// Only units of this type, or of one that was added before.
    #[must_use]
    pub fn of_type(mut self, kind: MemoryType) -> Self {
        self.filter.types.push(kind);
        self
    }

    /// Only units with this status, or with one that was added before.
    #[must_use]
    pub fn with_status(mut self, status: UnitStatus) -> Self {
        self.filter.status.push(status);
        self
    }

    /// Why; kept in the log.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Also where a purge would leave nothing.
    #[must_use]
    pub fn confirmed(mut self) -> Self {
        self.confirm = true;
        self
    }

    /// Changes nothing: the answer tells what would be done.
    #[must_use]
    pub fn previewed(mut self) -> Self {
        self.dry_run = true;
        self
    }
}
