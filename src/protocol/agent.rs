//! Agents (section 4): whoever sends protocol messages.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unit::wire_names;

wire_names!(
    /// What an agent is doing, as the Field knows it.
    AgentStatus {
        Idle = "idle",
        Working = "working",
        Waiting = "waiting",
        Offline = "offline",
        Failed = "failed",
    }
);

impl AgentStatus {
    /// Whether the agent may send operations without registering again.
    pub const fn is_active(self) -> bool {
        !matches!(self, Self::Offline | Self::Failed)
    }
}

/// An agent as the doors show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Agent {
    pub id: Arc<str>,
    pub role: Arc<str>,
    pub status: AgentStatus,
    pub interests: Vec<Box<str>>,
    pub current_task_id: Option<Arc<str>>,
}
