//! Errors (section 9): every no of the Field says what was wrong and what to do next.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::operation::Operation;
use super::unit::wire_names;

wire_names!(
    /// The codes that an answer can carry.
    ErrorCode {
        MissingIntent = "MISSING_INTENT",
        MissingConfidence = "MISSING_CONFIDENCE",
        InvalidConfidence = "INVALID_CONFIDENCE",
        InvalidType = "INVALID_TYPE",
        AgentNotRegistered = "AGENT_NOT_REGISTERED",
        AgentIdTaken = "AGENT_ID_TAKEN",
        InvalidTransition = "INVALID_TRANSITION",
        MergeFailed = "MERGE_FAILED",
        ConflictNotFound = "CONFLICT_NOT_FOUND",
        UnitNotFound = "UNIT_NOT_FOUND",
        UnsupportedOperation = "UNSUPPORTED_OPERATION",
        EnrichmentFailed = "ENRICHMENT_FAILED",
        DetectionTimeout = "DETECTION_TIMEOUT",
        ReplayTooLarge = "REPLAY_TOO_LARGE",
        StorageFull = "STORAGE_FULL",
        EpochOverflow = "EPOCH_OVERFLOW",
        InternalError = "INTERNAL_ERROR",
        /// Extension.
        InvalidMessage = "INVALID_MESSAGE",
        /// Extension.
        MessageTooLarge = "MESSAGE_TOO_LARGE",
        /// Extension.
        Unauthenticated = "UNAUTHENTICATED",
        /// Extension.
        Forbidden = "FORBIDDEN",
        /// Extension.
        FieldNotFound = "FIELD_NOT_FOUND",
        /// Extension.
        SubscriptionNotFound = "SUBSCRIPTION_NOT_FOUND",
        /// Extension.
        RateLimited = "RATE_LIMITED",
        /// Extension.
        Overloaded = "OVERLOADED",
    }
);

impl ErrorCode {
    /// Whether the same agent can succeed after changing something or waiting (section 9).
    pub const fn is_recoverable(self) -> bool {
        !matches!(
            self,
            Self::ConflictNotFound
                | Self::UnitNotFound
                | Self::UnsupportedOperation
                | Self::StorageFull
                | Self::EpochOverflow
                | Self::InternalError
                | Self::Forbidden
                | Self::FieldNotFound
                | Self::SubscriptionNotFound
        )
    }
}

/// The Field's no, before it is put into the words of a door. Nothing was changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// What kind of no.
    pub code: ErrorCode,
    /// What was wrong with which value.
    pub message: Cow<'static, str>,
    /// What to do next, in words a language model can act on.
    pub suggested_action: Cow<'static, str>,
    /// The offending key, the limit, the current state; `null` when there is nothing to add.
    pub details: Value,
}

impl Refusal {
    /// A refusal without details.
    pub fn new(
        code: ErrorCode,
        message: impl Into<Cow<'static, str>>,
        suggested_action: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            code,
            message: message.into(),
            suggested_action: suggested_action.into(),
            details: Value::Null,
        }
    }

    /// `INVALID_MESSAGE` about one key, which `details` names.
    pub fn invalid(
        key: &str,
        message: impl Into<Cow<'static, str>>,
        suggested_action: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(ErrorCode::InvalidMessage, message, suggested_action).with("key", json!(key))
    }

    /// Adds one detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        match &mut self.details {
            Value::Object(map) => {
                map.insert(key.to_owned(), value);
            }
            other => *other = json!({ key: value }),
        }
        self
    }

    /// The body that answers `operation` with this refusal. RECORD and REGISTER also carry their own
    /// `status` and `rejection_reason` (section 9).
    pub fn body(&self, operation: Option<Operation>) -> ErrorBody {
        let rejects = matches!(operation, Some(Operation::Record | Operation::Register));
        ErrorBody {
            status: rejects.then(|| "rejected".to_owned()),
            code: self.code,
            message: self.message.to_string(),
            operation: operation.map_or_else(String::new, |op| op.name().to_owned()),
            recoverable: self.code.is_recoverable(),
            suggested_action: self.suggested_action.to_string(),
            rejection_reason: rejects.then(|| self.message.to_string()),
            details: self.details.clone(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.code, self.message, self.suggested_action)
    }
}

impl std::error::Error for Refusal {}

/// The error body on the wire (section 9).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct ErrorBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    pub code: ErrorCode,
    pub message: String,
    pub operation: String,
    pub recoverable: bool,
    pub suggested_action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

impl fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.code, self.message, self.suggested_action)
    }
}

impl std::error::Error for ErrorBody {}
