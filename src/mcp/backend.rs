//! What an MCP server stands on.

use rmcp::model::Extensions;
use serde_json::{Map, Value};

use crate::protocol::{ErrorBody, Notification, Operation};

/// One operation that a tool asks for: a message of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// What is asked.
    pub operation: Operation,
    /// Who asks.
    pub agent_id: String,
    /// The protocol session that this belongs to.
    pub session_id: Option<String>,
    /// The message's name, for repeats; a fresh one when absent.
    pub message_id: Option<String>,
    /// The request itself.
    pub payload: Map<String, Value>,
}

/// What can be looked at without sending a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// The Field's figures.
    Status,
    /// The unresolved conflicts.
    Conflicts,
    /// A memory unit.
    Unit(String),
}

/// A Field that can be asked, wherever it is.
pub trait Backend: Send + Sync + 'static {
    /// What tells of events.
    type Watch: Watch;

    /// The operations that the Field serves; where that cannot be known now, those that this program knows.
    fn served(&self) -> impl Future<Output = Vec<Operation>> + Send;

    /// Asks one operation; `from` is what came along with the request. Returns the response payload.
    fn operate(
        &self,
        call: Call,
        from: &Extensions,
    ) -> impl Future<Output = Result<Value, Box<ErrorBody>>> + Send;

    /// Looks at something, as an agent where one is named. Returns JSON text.
    fn look(
        &self,
        sight: Sight,
        agent_id: Option<&str>,
        from: &Extensions,
    ) -> impl Future<Output = Result<String, Box<ErrorBody>>> + Send;

    /// Begins to watch: everything public that happens from now on.
    fn watch(&self) -> impl Future<Output = Result<Self::Watch, Box<ErrorBody>>> + Send;
}

/// Tells of what happens, in order.
pub trait Watch: Send + 'static {
    /// What happened next; nothing once the Field is closed or out of reach.
    fn next(&mut self) -> impl Future<Output = Option<Vec<Notification>>> + Send;
}
