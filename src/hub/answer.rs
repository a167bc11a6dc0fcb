//! What the hub gives a door for one message.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::protocol::Refusal;

/// A response payload: JSON text, ready to be sent. Cheap to clone.
pub type Payload = Arc<RawValue>;

/// The outcome of one message.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The operation's own epoch; for a refusal, the Field's clock (section 12).
    pub epoch: u64,
    /// The response, or the Field's no.
    pub outcome: Result<Payload, Refusal>,
}
