//! The envelope (section 2): eight keys, all required, no others.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::error::{ErrorCode, Refusal};
use super::operation::Operation;
use super::{PROTOCOL, VERSION};
use crate::limits;

/// The envelope's keys, in the order in which the specification lists them.
const KEYS: [&str; 8] =
    ["protocol", "version", "id", "operation", "agent_id", "session_id", "epoch", "payload"];

/// A request's envelope, its payload still unread.
#[derive(Debug, Clone)]
pub struct Envelope<'a> {
    /// The sender's name for this message, part of its identity for repeats.
    pub id: Cow<'a, str>,
    /// What is asked.
    pub operation: Operation,
    /// Who asks.
    pub agent_id: Cow<'a, str>,
    /// The protocol session that this belongs to, if any.
    pub session_id: Option<Cow<'a, str>>,
    /// The greatest epoch that the sender has seen.
    pub epoch: u64,
    /// The request itself: JSON text of an object.
    pub payload: &'a RawValue,
}

/// What could be read of a frame that is no valid envelope, and why it is not one.
#[derive(Debug, Clone)]
pub struct FaultyEnvelope {
    /// `""` where it could not be read.
    pub id: String,
    /// `""` where it could not be read.
    pub agent_id: String,
    /// `""` where it could not be read; may be unknown.
    pub operation: String,
    /// `None` where it could not be read.
    pub session_id: Option<String>,
    /// What to answer.
    pub refusal: Refusal,
}

/// Lets a missing key be an error although `null` is fine (serde would take a missing option as `None`).
fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    Ok(Option::<Borrowed<'de>>::deserialize(d)?.map(|b| b.0))
}

/// Borrows a string where it has no escapes; `Option<Cow>` alone would always copy.
#[derive(Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire<'a> {
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    version: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    operation: Cow<'a, str>,
    #[serde(borrow)]
    agent_id: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "present")]
    session_id: Option<Cow<'a, str>>,
    epoch: u64,
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl<'a> Envelope<'a> {
    /// Reads an envelope whole.
    ///
    /// # Errors
    /// `INVALID_MESSAGE` that names the key, with whatever could be read for the reply;
    /// `EPOCH_OVERFLOW` for an epoch that no counter can hold.
    pub fn parse(text: &'a str) -> Result<Self, Box<FaultyEnvelope>> {
        let faulty = |refusal| Box::new(salvage(text, refusal));
        let wire: Wire<'a> = match serde_json::from_str(text) {
            Ok(wire) => wire,
            Err(error) => return Err(diagnose(text, &error)),
        };
        if wire.protocol != PROTOCOL {
            return Err(faulty(wrong_constant("protocol", &wire.protocol, PROTOCOL)));
        }
        if wire.version != VERSION {
            return Err(faulty(wrong_constant("version", &wire.version, VERSION)));
        }
        check_id("id", &wire.id).map_err(faulty)?;
        let operation = Operation::from_name(&wire.operation)
            .ok_or_else(|| faulty(unknown_operation(&wire.operation)))?;
        check_id("agent_id", &wire.agent_id).map_err(faulty)?;
        if let Some(session) = &wire.session_id {
            check_id("session_id", session).map_err(faulty)?;
        }
        if !wire.payload.get().starts_with('{') {
            return Err(faulty(Refusal::invalid(
                "payload",
                "The envelope's payload is not a JSON object.",
                "Send the operation's payload as an object.",
            )));
        }
        Ok(Self {
            id: wire.id,
            operation,
            agent_id: wire.agent_id,
            session_id: wire.session_id,
            epoch: wire.epoch,
            payload: wire.payload,
        })
    }
}

/// Checks an identifier that a client chose: not blank, not too long, no control characters (they would
/// forge lines in event streams and logs).
pub(crate) fn check_id(key: &str, value: &str) -> Result<(), Refusal> {
    if value.trim().is_empty() {
        return Err(Refusal::invalid(
            key,
            format!("{key} is empty."),
            format!("Send a non-empty string as {key}."),
        ));
    }
    if value.len() > limits::ID_MAX_BYTES {
        return Err(Refusal::invalid(
            key,
            format!("{key} has {} bytes; at most {} are allowed.", value.len(), limits::ID_MAX_BYTES),
            format!("Send a shorter {key}."),
        )
        .with("limit", json!(limits::ID_MAX_BYTES)));
    }
    if value.chars().any(char::is_control) {
        return Err(Refusal::invalid(
            key,
            format!("{key} contains a control character."),
            format!("Send {key} without line breaks, tabs or other control characters."),
        ));
    }
    Ok(())
}

fn wrong_constant(key: &str, found: &str, expected: &str) -> Refusal {
    let found: String = found.chars().take(40).collect();
    Refusal::invalid(
        key,
        format!("{key} is {found:?}; this hub speaks {expected:?}."),
        format!("Send {key}: {expected:?}."),
    )
}

fn unknown_operation(found: &str) -> Refusal {
    let found: String = found.chars().take(40).collect();
    let served = Operation::ALL.into_iter().filter(|op| op.served_from_level().is_some());
    let known = served.map(Operation::name).collect::<Vec<_>>().join(", ");
    Refusal::invalid(
        "operation",
        format!("The operation {found:?} is unknown."),
        format!("Send one of {known}, in capitals."),
    )
}

/// Reads from a refused frame what its reply should echo.
fn salvage(text: &str, refusal: Refusal) -> FaultyEnvelope {
    let map = serde_json::from_str::<Map<String, Value>>(text).unwrap_or_default();
    let read = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    FaultyEnvelope {
        id: read("id").to_owned(),
        agent_id: read("agent_id").to_owned(),
        operation: read("operation").to_owned(),
        session_id: map.get("session_id").and_then(Value::as_str).map(str::to_owned),
        refusal,
    }
}

/// Finds out, off the fast path, which key makes `text` no envelope.
fn diagnose(text: &str, error: &serde_json::Error) -> Box<FaultyEnvelope> {
    let refusal = match serde_json::from_str::<Value>(text) {
        Err(malformed) => Refusal::new(
            ErrorCode::InvalidMessage,
            format!("The message cannot be read as JSON: {malformed}."),
            "Correct it and send one JSON object, in UTF-8.",
        ),
        Ok(Value::Object(map)) => wrong_key(&map, error),
        Ok(_) => Refusal::new(
            ErrorCode::InvalidMessage,
            "The message is valid JSON but not an object.",
            "Send one JSON object: the envelope, or over HTTP the bare payload.",
        ),
    };
    Box::new(salvage(text, refusal))
}

fn wrong_key(map: &Map<String, Value>, error: &serde_json::Error) -> Refusal {
    if let Some(key) = KEYS.into_iter().find(|key| !map.contains_key(*key)) {
        return Refusal::invalid(
            key,
            format!("The envelope lacks the key {key}."),
            format!("Send all eight keys: {}.", KEYS.join(", ")),
        );
    }
    if let Some(key) = map.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let key: String = key.chars().take(80).collect();
        return Refusal::invalid(
            &key,
            format!("The envelope has the unknown key {key:?}."),
            format!("Send only the eight keys: {}.", KEYS.join(", ")),
        );
    }
    for key in ["protocol", "version", "id", "operation", "agent_id"] {
        if !map[key].is_string() {
            return Refusal::invalid(
                key,
                format!("{key} is not a string."),
                format!("Send {key} as a string."),
            );
        }
    }
    if !map["session_id"].is_string() && !map["session_id"].is_null() {
        return Refusal::invalid(
            "session_id",
            "session_id is neither a string nor null.",
            "Send a session id as a string, or null.",
        );
    }
    if map["epoch"].as_u64().is_none() {
        return match map["epoch"].as_f64() {
            Some(huge) if huge >= limits::EPOCH_CEILING as f64 => epoch_overflow(&map["epoch"].to_string()),
            _ => Refusal::invalid(
                "epoch",
                format!("epoch is {}, not an integer of at least 0.", map["epoch"]),
                "Send the greatest epoch you have seen, or 0.",
            ),
        };
    }
    let said = error.to_string();
    let twice = KEYS.into_iter().find(|key| said.contains(&format!("duplicate field `{key}`")));
    Refusal::invalid(
        twice.unwrap_or_default(),
        format!("The message is no valid envelope: {said}."),
        "Send each of the eight keys once.",
    )
}

/// The refusal of an epoch that the Field will not adopt.
pub(crate) fn epoch_overflow(found: &str) -> Refusal {
    Refusal::new(
        ErrorCode::EpochOverflow,
        format!("The message's epoch {found} is too far ahead of the Field's clock."),
        "Send the greatest epoch that this Field has shown you, or 0.",
    )
    .with("key", json!("epoch"))
}

/// A reply's envelope, its payload already JSON.
#[derive(Debug, Serialize)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct ReplyEnvelope<'a> {
    pub protocol: &'static str,
    pub version: &'static str,
    pub id: &'a str,
    pub operation: &'a str,
    pub agent_id: &'a str,
    pub session_id: Option<&'a str>,
    pub epoch: u64,
    pub payload: &'a RawValue,
}

/// An envelope that owns its parts: what a client sends and what it receives.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct RequestEnvelope {
    pub protocol: Cow<'static, str>,
    pub version: Cow<'static, str>,
    pub id: Arc<str>,
    pub operation: Cow<'static, str>,
    pub agent_id: Arc<str>,
    pub session_id: Option<Arc<str>>,
    pub epoch: u64,
    pub payload: Box<RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(change: impl FnOnce(&mut Map<String, Value>)) -> String {
        let mut map = json!({
            "protocol": "akashik", "version": "0.1.0", "id": "m-1", "operation": "RECORD",
            "agent_id": "a", "session_id": null, "epoch": 3, "payload": {"x": 1}
        });
        change(map.as_object_mut().unwrap());
        map.to_string()
    }

    fn key_of(text: &str) -> Value {
        Envelope::parse(text).unwrap_err().refusal.details["key"].clone()
    }

    #[test]
    fn reads_a_whole_envelope() {
        let text = envelope(|_| {});
        let read = Envelope::parse(&text).unwrap();
        assert_eq!((read.id.as_ref(), read.agent_id.as_ref(), read.epoch), ("m-1", "a", 3));
        assert_eq!((read.operation, read.session_id), (Operation::Record, None));
        assert_eq!(read.payload.get(), r#"{"x":1}"#);
    }

    #[test]
    fn names_each_missing_extra_and_wrong_key() {
        for key in KEYS {
            assert_eq!(key_of(&envelope(|m| drop(m.remove(key)))), key);
            assert_eq!(key_of(&envelope(|m| drop(m.insert(key.into(), json!([1]))))), key);
        }
        assert_eq!(key_of(&envelope(|m| drop(m.insert("trace".into(), json!(1))))), "trace");
        for (key, value) in [
            ("protocol", json!("mcp")),
            ("version", json!("9.0.0")),
            ("operation", json!("record")),
            ("id", json!(" ")),
            ("agent_id", json!("")),
            ("agent_id", json!("a\nb")),
            ("id", json!("x".repeat(1000))),
            ("session_id", json!("")),
            ("epoch", json!(-1)),
            ("epoch", json!(1.5)),
            ("epoch", json!("3")),
            ("payload", json!("text")),
        ] {
            assert_eq!(key_of(&envelope(|m| drop(m.insert(key.into(), value)))), key);
        }
    }

    #[test]
    fn an_epoch_beyond_every_counter_is_an_overflow() {
        let text = envelope(|_| {}).replace("\"epoch\":3", "\"epoch\":99999999999999999999999");
        assert_eq!(Envelope::parse(&text).unwrap_err().refusal.code, ErrorCode::EpochOverflow);
    }

    #[test]
    fn echoes_what_could_be_read() {
        let fault = Envelope::parse(&envelope(|m| drop(m.remove("payload")))).unwrap_err();
        assert_eq!((fault.id.as_str(), fault.agent_id.as_str()), ("m-1", "a"));
        assert_eq!(fault.operation, "RECORD");
        for broken in ["", "{", "[]", "7", "\"x\"", "{\"id\":", "nul"] {
            assert_eq!(Envelope::parse(broken).unwrap_err().id, "");
        }
    }

    #[test]
    fn deep_nesting_and_duplicate_keys_are_refused() {
        let deep = envelope(|_| {}).replace("{\"x\":1}", &"[".repeat(100_000));
        assert!(Envelope::parse(&deep).is_err());
        let twice = envelope(|_| {}).replacen("{", "{\"id\":\"other\",", 1);
        assert_eq!(key_of(&twice), "id");
    }
}
