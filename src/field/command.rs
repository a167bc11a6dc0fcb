//! What arrives at the heart: a message, read at the door, and its stamp.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::policy::Policy;
use super::rules::Plan;
use super::suspicion::Suspected;
use crate::protocol::{Envelope, Operation, Refusal, Request, SubscribeRequest, Timestamp, Unit, Wish};

/// What became of a message's text at an embedding model outside of the hub, asked before the message is decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Embedded {
    /// Nothing was to be asked: there is no such model, or no text for it.
    #[default]
    Unasked,
    /// It gave this direction.
    Given(Arc<[f32]>),
    /// It gave none: why not.
    Failed(Box<str>),
}

/// A message whose payload has been read. Reading costs more than deciding, so it is done at the door,
/// in parallel, and what is wrong with the payload is carried along: other rules come first (section 12).
#[derive(Debug, Clone)]
pub struct Message {
    /// The sender's name for this message.
    pub id: Box<str>,
    /// What is asked.
    pub operation: Operation,
    /// Who asks.
    pub agent_id: Arc<str>,
    /// The protocol session, if any.
    pub session_id: Option<Arc<str>>,
    /// The greatest epoch that the sender has seen.
    pub epoch: u64,
    /// Names the message for repeats: a hash of agent and id.
    pub key: u128,
    /// Stands for operation and payload: equal for the same JSON whatever its spacing and key order.
    pub digest: u64,
    /// How much of it arrived, bytes.
    pub bytes: usize,
    /// The payload, or what is wrong with it.
    pub request: Result<Request, Refusal>,
    /// What became of its text at a model outside.
    pub embedded: Embedded,
    /// What a COMPACT is to do, once that was worked out.
    pub plan: Option<Arc<Plan>>,
    /// What was noticed in its text.
    pub suspected: Suspected,
    /// Units of which a rule needs the texts and memory does not hold them, as the log tells them.
    pub recalled: Vec<Arc<Unit>>,
}

impl Message {
    /// Reads an envelope's payload for a Field with this policy.
    pub fn read(envelope: &Envelope<'_>, policy: &Policy) -> Self {
        let text = envelope.payload.get();
        let (request, digest) = match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(map) => {
                let digest = digest(envelope.operation, &canonical(&map));
                let agent = &envelope.agent_id;
                let Policy { limits, level, .. } = policy;
                (Request::read(envelope.operation, agent, map, limits, *level), digest)
            }
            Err(error) => {
                let refusal = Refusal::invalid(
                    "payload",
                    format!("The payload cannot be read: {error}."),
                    "Send the payload as a JSON object with finite numbers and shallow nesting.",
                );
                (Err(refusal), digest(envelope.operation, text.as_bytes()))
            }
        };
        Self {
            id: envelope.id.as_ref().into(),
            operation: envelope.operation,
            agent_id: envelope.agent_id.as_ref().into(),
            session_id: envelope.session_id.as_deref().map(Arc::from),
            epoch: envelope.epoch,
            key: message_key(&envelope.agent_id, &envelope.id),
            digest,
            bytes: text.len() + envelope.id.len() + envelope.agent_id.len(),
            request,
            embedded: Embedded::Unasked,
            plan: None,
            suspected: Suspected::Unasked,
            recalled: Vec::new(),
        }
    }
}

impl Message {
    /// What it wants to be told of, where it is a readable `subscribe`.
    pub fn wish(&self) -> Option<&Wish> {
        match &self.request {
            Ok(Request::Subscribe(SubscribeRequest::Subscribe(wish))) => Some(wish),
            _ => None,
        }
    }
}

/// Hashes the pair that names a message. Wide enough that no two messages meet, so that memory needs no texts.
pub fn message_key(agent_id: &str, message_id: &str) -> u128 {
    let mut hasher = blake3::Hasher::new();
    // The length keeps ("ab", "c") and ("a", "bc") apart.
    hasher.update(&(agent_id.len() as u64).to_le_bytes());
    hasher.update(agent_id.as_bytes());
    hasher.update(message_id.as_bytes());
    let bytes = hasher.finalize();
    u128::from_le_bytes(bytes.as_bytes()[..16].try_into().expect("a hash has 32 bytes"))
}

/// The payload with sorted keys and without spacing. `serde_json`'s map sorts by itself, unless a crate
/// somewhere turns its `preserve_order` on; a test watches that.
fn canonical(map: &Map<String, Value>) -> Vec<u8> {
    serde_json::to_vec(map).expect("a JSON value is always writable")
}

fn digest(operation: Operation, payload: &[u8]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(operation.name().as_bytes());
    hasher.update(payload);
    let bytes = hasher.finalize();
    u64::from_le_bytes(bytes.as_bytes()[..8].try_into().expect("a hash has 32 bytes"))
}

/// A message with its stamp: everything uncertain that a rule may need.
#[derive(Debug, Clone)]
pub struct Command {
    /// When it was taken up.
    pub at: Timestamp,
    /// The open connection that it came over, if it came over one that lasts.
    pub connection: Option<u64>,
    /// The message.
    pub message: Message,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(payload: &str, agent: &str, id: &str) -> Message {
        let text = format!(
            r#"{{"protocol":"akashik","version":"0.1.0","id":"{id}","operation":"RECORD","agent_id":"{agent}","session_id":null,"epoch":0,"payload":{payload}}}"#
        );
        Message::read(&Envelope::parse(&text).unwrap(), &Policy::default())
    }

    #[test]
    fn the_same_payload_in_other_clothes_is_the_same() {
        let one = read(r#"{"type":"finding","content":"x"}"#, "a", "1");
        let two = read(r#"{ "content" : "\u0078", "type":"finding" }"#, "a", "1");
        let other = read(r#"{"type":"finding","content":"y"}"#, "a", "1");
        assert_eq!(one.digest, two.digest);
        assert_ne!(one.digest, other.digest);
    }

    #[test]
    fn messages_are_named_by_agent_and_id_together() {
        assert_ne!(message_key("ab", "c"), message_key("a", "bc"));
        assert_ne!(message_key("a", "1"), message_key("b", "1"));
        assert_eq!(message_key("a", "1"), message_key("a", "1"));
    }

    #[test]
    fn a_payload_nested_too_deep_is_a_refusal_not_a_crash() {
        let deep = format!("{{\"content\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
        assert!(read(&deep, "a", "1").request.is_err());
        assert!(read(r#"{"content":1e999}"#, "a", "1").request.is_err());
    }
}
