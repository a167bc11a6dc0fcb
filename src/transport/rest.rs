//! Operations over HTTP: the envelope as the body, or the bare payload with the rest in headers (wire, 1).

use std::borrow::Cow;
use std::time::Instant;

use http::header::HeaderName;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;

use super::body::{Upload, check_type};
use super::events::OBSERVER;
use super::guard::Identity;
use super::reply::{self, Fault, Response};
use super::urls::Base;
use crate::hub::{Field, Hub};
use crate::protocol::{Envelope, Operation, Refusal, check_id, epoch_overflow};

/// Names the agent that asks.
pub const AGENT: HeaderName = HeaderName::from_static("akashik-agent");
/// Names the protocol session.
pub const SESSION: HeaderName = HeaderName::from_static("akashik-session");
/// Becomes the message id.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Answers `POST /v1/{operation}` and, where the path names none, `POST /v1/messages`.
///
/// # Errors
/// What is wrong with the request before the Field sees it; the Field's own no is a response.
pub async fn operate(
    hub: &Hub,
    field: &Field,
    named: Option<Operation>,
    identity: &Identity,
    headers: &HeaderMap,
    upload: &mut Upload,
    base: impl FnOnce() -> Base,
) -> Result<Response, Fault> {
    check_type(headers)?;
    let body = upload.read(hub.config().limits.message_bytes).await?;
    let since = Instant::now();
    let text = std::str::from_utf8(&body)
        .map_err(|_| Fault::at(StatusCode::BAD_REQUEST, "The body is not UTF-8.", "Send JSON in UTF-8."))?;
    let envelope = envelope(named, headers, text)?;
    let operation = envelope.operation;
    identity.may_speak_for(&envelope.agent_id).map_err(|refusal| Fault::from(refusal).of(Some(operation)))?;
    let message = field.read(&envelope);
    let subscribes = message.wish().is_some();
    // From here on the operation happens, whether or not the client stays to hear of it.
    let mut answer = field.submit(message, None).await.await;
    if subscribes && let Ok(payload) = &mut answer.outcome {
        *payload = base().announce(payload);
    }
    hub.metrics().answered_http(since.elapsed());
    Ok(reply::answer(operation, answer))
}

/// Answers `POST /v1/look/{operation}`: the bare payload in, what the operation would answer out (Extension). The header
/// `Akashik-Agent` names through whose eyes, if through any agent's. Whoever looks sees no drafts by it, so that it needs
/// no leave to speak for that agent.
///
/// # Errors
/// What is wrong with the request before the Field sees it; the Field's own no is a response.
pub async fn look(
    hub: &Hub,
    field: &Field,
    operation: Operation,
    headers: &HeaderMap,
    upload: &mut Upload,
) -> Result<Response, Fault> {
    check_type(headers)?;
    field.serves(operation)?;
    let body = upload.read(hub.config().limits.message_bytes).await?;
    let payload: &RawValue = serde_json::from_slice(&body).map_err(|error| {
        Refusal::invalid("payload", format!("The body is not valid JSON: {error}."), "Send one JSON object.")
    })?;
    let eyes = agent(headers)?;
    let agent_id = Cow::Borrowed(eyes.unwrap_or(OBSERVER));
    let envelope = Envelope { id: "look".into(), operation, agent_id, session_id: None, epoch: 0, payload };
    Ok(reply::answer(operation, field.look(field.read(&envelope), eyes).await))
}

/// The envelope, in whichever of its two forms it came.
fn envelope<'a>(
    named: Option<Operation>,
    headers: &'a HeaderMap,
    text: &'a str,
) -> Result<Envelope<'a>, Fault> {
    let Some(operation) = named else { return whole(text) };
    if is_bare(text) {
        return Ok(convenience(operation, headers, text)?);
    }
    let envelope = whole(text)?;
    if envelope.operation == operation {
        return Ok(envelope);
    }
    let refusal = Refusal::invalid(
        "operation",
        format!("The path asks for {operation}, the envelope's operation is {}.", envelope.operation),
        "Send both the same, or use POST /v1/messages.",
    );
    Err(refusal.into())
}

fn whole(text: &str) -> Result<Envelope<'_>, Fault> {
    Envelope::parse(text)
        .map_err(|faulty| Fault::from(faulty.refusal).of(Operation::from_name(&faulty.operation)))
}

/// Whether the body is an object without the key `protocol`: the bare payload. What is no object at all is
/// left to the envelope's own diagnosis.
fn is_bare(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Probe {
        #[serde(default, deserialize_with = "seen")]
        protocol: bool,
    }
    fn seen<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
        IgnoredAny::deserialize(d).map(|_| true)
    }
    let is_object = text.trim_start().starts_with('{');
    is_object && serde_json::from_str::<Probe>(text).is_ok_and(|probe| !probe.protocol)
}

/// The envelope made of the bare payload and the headers.
fn convenience<'a>(
    operation: Operation,
    headers: &'a HeaderMap,
    text: &'a str,
) -> Result<Envelope<'a>, Refusal> {
    let agent_id = agent(headers)?.ok_or_else(|| {
        Refusal::invalid(
            "Akashik-Agent",
            "The body is a bare payload, but no header says who sends it.",
            "Send the header Akashik-Agent with your agent id, or the whole envelope as the body.",
        )
    })?;
    let session_id = identifier(headers, &SESSION, "Akashik-Session")?;
    let epoch = epoch(headers)?;
    let id = identifier(headers, &IDEMPOTENCY_KEY, "Idempotency-Key")?;
    let id = id.map_or_else(|| Cow::Owned(fresh_id("http")), Cow::Borrowed);
    let payload: &RawValue = serde_json::from_str(text).map_err(|error| {
        Refusal::invalid("payload", format!("The body is not valid JSON: {error}."), "Send one JSON object.")
    })?;
    let (agent_id, session_id) = (Cow::Borrowed(agent_id), session_id.map(Cow::Borrowed));
    Ok(Envelope { id, operation, agent_id, session_id, epoch, payload })
}

/// Who asks, by the header `Akashik-Agent`.
///
/// # Errors
/// `INVALID_MESSAGE` naming the header, for a value that is no id.
pub fn agent(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    identifier(headers, &AGENT, "Akashik-Agent")
}

/// A header that carries an identifier; held to the same rules as the envelope's.
fn identifier<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    shown: &str,
) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Refusal::invalid(
            shown,
            format!("{shown} was sent more than once."),
            format!("Send {shown} once."),
        ));
    }
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| {
        Refusal::invalid(shown, format!("{shown} is not UTF-8."), format!("Send {shown} in UTF-8."))
    })?;
    check_id(shown, text)?;
    Ok(Some(text))
}

/// The greatest epoch that the client has seen, by the header `Akashik-Epoch`.
fn epoch(headers: &HeaderMap) -> Result<u64, Refusal> {
    let Some(text) = identifier(headers, &reply::EPOCH, "Akashik-Epoch")? else { return Ok(0) };
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map_err(|_| epoch_overflow(text));
    }
    Err(Refusal::invalid(
        "Akashik-Epoch",
        format!("Akashik-Epoch is {text:?}, not an integer of at least 0."),
        "Send the greatest epoch you have seen, or leave the header out.",
    ))
}

/// A message id that nobody has used: 128 random bits.
pub fn fresh_id(door: &str) -> String {
    format!("{door}-{:032x}", rand::random::<u128>())
}

#[cfg(test)]
mod tests {
    use super::super::guard::tests::headers;
    use super::*;
    use crate::protocol::ErrorCode;

    #[test]
    fn the_key_protocol_decides_which_form_it_is() {
        for text in ["{}", " {\"a\":1}\n", "{\"payload\":{\"protocol\":1}}"] {
            assert!(is_bare(text), "{text:?}");
        }
        for text in ["{\"protocol\":null}", "{\"a\":[],\"protocol\":\"akashik\"}", "[]", "7", "", "{", "{}x"]
        {
            assert!(!is_bare(text), "{text:?}");
        }
        // Deep nesting is skipped without recursion.
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
        let _ = is_bare(&deep);
    }

    #[test]
    fn headers_make_the_envelope() {
        let sent = headers(&[
            ("akashik-agent", "researcher-é"),
            ("akashik-session", "s-1"),
            ("akashik-epoch", "12"),
            ("idempotency-key", "once"),
        ]);
        let made = convenience(Operation::Record, &sent, " {\"x\": 1} ").unwrap();
        assert_eq!((made.id.as_ref(), made.agent_id.as_ref(), made.epoch), ("once", "researcher-é", 12));
        assert_eq!((made.session_id.as_deref(), made.payload.get()), (Some("s-1"), "{\"x\": 1}"));
        let few = headers(&[("akashik-agent", "a")]);
        let first = convenience(Operation::Record, &few, "{}").unwrap();
        let second = convenience(Operation::Record, &few, "{}").unwrap();
        assert_eq!((first.epoch, first.session_id.is_none(), first.id.len()), (0, true, 37));
        assert_ne!(first.id, second.id);
    }

    #[test]
    fn wrong_headers_are_named() {
        let long = "x".repeat(300);
        for (key, pairs) in [
            ("Akashik-Agent", &[][..]),
            ("Akashik-Agent", &[("akashik-agent", " ")]),
            ("Akashik-Agent", &[("akashik-agent", long.as_str())]),
            ("Akashik-Agent", &[("akashik-agent", "a"), ("akashik-agent", "b")]),
            ("Akashik-Session", &[("akashik-agent", "a"), ("akashik-session", "")]),
            ("Akashik-Epoch", &[("akashik-agent", "a"), ("akashik-epoch", "-1")]),
            ("Akashik-Epoch", &[("akashik-agent", "a"), ("akashik-epoch", "1.0")]),
            ("Idempotency-Key", &[("akashik-agent", "a"), ("idempotency-key", "a\tb")]),
        ] {
            let sent = headers(pairs);
            let refusal = convenience(Operation::Record, &sent, "{}").unwrap_err();
            assert_eq!(refusal.details["key"], key, "{pairs:?}");
        }
        let beyond = headers(&[("akashik-agent", "a"), ("akashik-epoch", "99999999999999999999999")]);
        let refusal = convenience(Operation::Record, &beyond, "{}").unwrap_err();
        assert_eq!(refusal.code, ErrorCode::EpochOverflow);
    }

    #[test]
    fn path_and_envelope_must_agree() {
        let text = r#"{"protocol":"akashik","version":"0.1.0","id":"m","operation":"RECORD","agent_id":"a",
            "session_id":null,"epoch":0,"payload":{}}"#;
        let none = HeaderMap::new();
        assert!(envelope(Some(Operation::Record), &none, text).is_ok());
        assert!(envelope(None, &none, text).is_ok());
        assert_eq!(envelope(Some(Operation::Attune), &none, text).unwrap_err().status(), 400);
        assert_eq!(envelope(None, &none, "{}").unwrap_err().status(), 400);
    }
}
