//! Where a subscriber goes on: addresses in the words in which the hub itself was addressed.

use std::fmt::Write as _;
use std::sync::Arc;

use http::HeaderMap;
use http::header::HOST;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::hub::{Field, Hub, Payload};

/// How a client addressed the hub and one of its Fields.
#[derive(Debug, Clone)]
pub struct Base(Arc<str>);

impl Base {
    /// From the Host of a request that the guard has let in; without one (HTTP/1.0), the hub's own port.
    pub fn new(headers: &HeaderMap, port: u16, hub: &Hub, field: &Field) -> Self {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host.map_or_else(|| format!("127.0.0.1:{port}"), str::to_owned);
        let first = hub.field(None).is_some_and(|first| first.name() == field.name());
        Self(if first { format!("{host}/v1") } else { format!("{host}/v1/fields/{}", field.name()) }.into())
    }

    /// Adds the addresses to the answer to a `subscribe`: they depend on how the hub was addressed, so they are no
    /// part of what the log keeps.
    pub fn announce(&self, answer: &Payload) -> Payload {
        let text = answer.get();
        let id = serde_json::from_str::<Value>(text).ok().and_then(|answer| {
            let id = answer.get("subscription")?.get("id")?.as_str()?;
            Some(encoded(id))
        });
        let (Some(id), Some(open)) = (id, text.trim_end().strip_suffix('}')) else {
            return Arc::clone(answer);
        };
        let websocket = json!(format!("ws://{}/ws", self.0));
        let events = json!(format!("http://{}/events?subscription_id={id}", self.0));
        let whole = format!(r#"{open},"websocket_url":{websocket},"events_url":{events}}}"#);
        RawValue::from_string(whole).map_or_else(|_| Arc::clone(answer), Into::into)
    }
}

/// A value of a query, percent-encoded.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            let written = write!(encoded, "%{byte:02X}");
            debug_assert!(written.is_ok(), "a String takes everything");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_added_to_what_has_a_subscription() {
        let base = Base("hub.local:7420/v1".into());
        let payload = |text: &str| Payload::from(RawValue::from_string(text.to_owned()).unwrap());
        let answer = payload(r#"{"status":"ok","subscription":{"id":"ä b&c"},"cursor":"4.0"}"#);
        let announced: Value = serde_json::from_str(base.announce(&answer).get()).unwrap();
        assert_eq!(announced["websocket_url"], "ws://hub.local:7420/v1/ws");
        let events = "http://hub.local:7420/v1/events?subscription_id=%C3%A4%20b%26c";
        assert_eq!((&announced["events_url"], &announced["cursor"]), (&json!(events), &json!("4.0")));
        let other = payload(r#"{"status":"ok"}"#);
        assert_eq!(base.announce(&other).get(), other.get());
    }
}
