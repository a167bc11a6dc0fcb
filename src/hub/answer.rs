//! What the hub gives a door for one message.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;

use crate::limits::REPLY_MAX_BYTES;
use crate::protocol::{ErrorCode, Refusal};

/// A response payload: JSON text, ready to be sent. Cheap to clone.
pub type Payload = Arc<RawValue>;

/// The refusal of an answer that is larger than [`REPLY_MAX_BYTES`].
pub fn answer_too_large() -> Refusal {
    Refusal::new(
        ErrorCode::MessageTooLarge,
        format!("The answer is larger than {REPLY_MAX_BYTES} bytes."),
        "Ask for less: fewer units, the format summary or ids_only, a narrower filter, or a smaller target.",
    )
    .with("limit", json!(REPLY_MAX_BYTES))
}

/// The outcome of one message.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The operation's own epoch; for a refusal, the Field's clock (section 12).
    pub epoch: u64,
    /// The response, or the Field's no.
    pub outcome: Result<Payload, Refusal>,
}
