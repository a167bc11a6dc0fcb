//! The one table from refusals to what a door shows (law 8), and the making of HTTP responses.

use bytes::Bytes;
use http::StatusCode;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use serde::Serialize;
use serde_json::Value;

use crate::hub::{Answer, Payload};
use crate::protocol::{ErrorCode, Operation, Refusal};

/// What a route answers.
pub type Response = warp::reply::Response;

/// Carries an operation's epoch beside the bare payload.
pub const EPOCH: HeaderName = HeaderName::from_static("akashik-epoch");
/// The content type of every body that is not said to be something else.
pub const JSON: &str = "application/json";

/// The HTTP status of a code (section 9).
pub const fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::MissingIntent
        | ErrorCode::MissingConfidence
        | ErrorCode::InvalidConfidence
        | ErrorCode::InvalidType => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::AgentNotRegistered | ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::AgentIdTaken
        | ErrorCode::InvalidTransition
        | ErrorCode::MergeFailed
        | ErrorCode::EpochOverflow => StatusCode::CONFLICT,
        ErrorCode::ConflictNotFound
        | ErrorCode::UnitNotFound
        | ErrorCode::FieldNotFound
        | ErrorCode::SubscriptionNotFound => StatusCode::NOT_FOUND,
        ErrorCode::UnsupportedOperation => StatusCode::NOT_IMPLEMENTED,
        // Warnings: they stand in answers that succeeded.
        ErrorCode::EnrichmentFailed | ErrorCode::DetectionTimeout => StatusCode::OK,
        ErrorCode::ReplayTooLarge | ErrorCode::MessageTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        ErrorCode::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::InvalidMessage => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// The WebSocket close code of a code that ends a connection (wire, section 2); most do not.
pub const fn close_code(code: ErrorCode) -> Option<u16> {
    match code {
        ErrorCode::MessageTooLarge => Some(1009),
        ErrorCode::Unauthenticated => Some(4001),
        ErrorCode::Forbidden => Some(4003),
        ErrorCode::RateLimited => Some(4029),
        _ => None,
    }
}

/// The no of a route: a refusal with its place in HTTP.
#[derive(Debug)]
pub struct Fault {
    status: StatusCode,
    refusal: Box<Refusal>,
    operation: Option<Operation>,
    /// Mostly nothing.
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self {
            status: status(refusal.code),
            refusal: Box::new(refusal),
            operation: None,
            headers: Vec::new(),
        }
    }
}

impl Fault {
    /// A fault of HTTP itself: its status is not the one that the table gives its code.
    pub fn at(
        status: StatusCode,
        message: impl Into<std::borrow::Cow<'static, str>>,
        suggested_action: impl Into<std::borrow::Cow<'static, str>>,
    ) -> Self {
        let refusal = Refusal::new(ErrorCode::InvalidMessage, message, suggested_action);
        Self { status, ..Self::from(refusal) }
    }

    /// The status that will be answered.
    #[cfg(test)]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// Says which operation was asked for, where that is known already.
    #[must_use]
    pub fn of(mut self, operation: Option<Operation>) -> Self {
        self.operation = self.operation.or(operation);
        self
    }

    /// The error body (section 9), whole.
    pub fn response(self) -> Response {
        let mut response = value(self.status, &self.refusal.body(self.operation));
        let wait = self.refusal.details.get("retry_after_ms").and_then(Value::as_u64);
        if let Some(wait) = wait {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.div_ceil(1_000)));
        }
        response.headers_mut().extend(self.headers);
        response
    }
}

/// 404 for a path that leads nowhere.
pub fn unknown_path() -> Fault {
    Fault::at(
        StatusCode::NOT_FOUND,
        "There is nothing at this path.",
        "Use one of the endpoints that GET / lists; operations are POST /v1/{operation}.",
    )
}

/// 405, naming what the path does allow.
pub fn wrong_method(allowed: &'static str) -> Fault {
    Fault::at(
        StatusCode::METHOD_NOT_ALLOWED,
        "This path does not serve this method.",
        format!("Use {allowed} here."),
    )
    .with_header(ALLOW, allowed)
}

/// A body of some other type than JSON.
pub fn typed(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(body.into().into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A JSON body.
pub fn value(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(text) => typed(status, JSON, text),
        // Nothing that is printed here has non-string keys or failing parts; still, never an empty body.
        Err(_) => typed(StatusCode::INTERNAL_SERVER_ERROR, JSON, &b"{\"code\":\"INTERNAL_ERROR\"}"[..]),
    }
}

/// Lets a shared payload be a body without copying it.
struct Text(Payload);

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.get().as_bytes()
    }
}

/// The response to an operation: the bare payload or the error body, and the epoch in its header.
pub fn answer(operation: Operation, answer: Answer) -> Response {
    let mut response = match answer.outcome {
        Ok(payload) => typed(StatusCode::OK, JSON, Bytes::from_owner(Text(payload))),
        Err(refusal) => Fault::from(refusal).of(Some(operation)).response(),
    };
    response.headers_mut().insert(EPOCH, HeaderValue::from(answer.epoch));
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_code_has_the_status_of_section_9() {
        let table: &[(u16, &[&str])] = &[
            (422, &["MISSING_INTENT", "MISSING_CONFIDENCE", "INVALID_CONFIDENCE", "INVALID_TYPE"]),
            (403, &["AGENT_NOT_REGISTERED", "FORBIDDEN"]),
            (409, &["AGENT_ID_TAKEN", "INVALID_TRANSITION", "MERGE_FAILED", "EPOCH_OVERFLOW"]),
            (404, &["CONFLICT_NOT_FOUND", "UNIT_NOT_FOUND", "FIELD_NOT_FOUND", "SUBSCRIPTION_NOT_FOUND"]),
            (501, &["UNSUPPORTED_OPERATION"]),
            (200, &["ENRICHMENT_FAILED", "DETECTION_TIMEOUT"]),
            (413, &["REPLAY_TOO_LARGE", "MESSAGE_TOO_LARGE"]),
            (507, &["STORAGE_FULL"]),
            (500, &["INTERNAL_ERROR"]),
            (400, &["INVALID_MESSAGE"]),
            (401, &["UNAUTHENTICATED"]),
            (429, &["RATE_LIMITED"]),
            (503, &["OVERLOADED"]),
        ];
        let mut seen = 0;
        for (expected, names) in table {
            for name in *names {
                let code = ErrorCode::from_name(name).unwrap();
                assert_eq!(status(code).as_u16(), *expected, "{name}");
                seen += 1;
            }
        }
        assert_eq!(seen, ErrorCode::ALL.len(), "each code stands in the table once");
    }

    #[test]
    fn a_fault_keeps_its_headers_and_says_when_to_come_back() {
        let response = wrong_method("GET, HEAD").response();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["allow"]),
            (405, &"GET, HEAD".parse().unwrap())
        );
        let busy = Refusal::new(ErrorCode::Overloaded, "busy", "wait").with("retry_after_ms", json!(1_500));
        let response = Fault::from(busy).response();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["retry-after"]),
            (503, &HeaderValue::from(2))
        );
    }
}
