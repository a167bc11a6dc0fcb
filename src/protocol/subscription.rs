//! SUBSCRIBE's data (section 7): what can be heard of, and an agent's standing request to be told.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::Refusal;
use super::ids::Cursor;
use super::keys::Keys;
use super::unit::wire_names;
use crate::limits::DEBOUNCE_MAX_MS;

wire_names!(
    /// What a subscription can ask for. The names that no operation of this hub brings about yet can be asked for
    /// all the same: who subscribes today hears of them once they are served.
    EventName {
        MemoryRecorded = "memory.recorded",
        MemorySuperseded = "memory.superseded",
        MemoryContested = "memory.contested",
        ConflictDetected = "conflict.detected",
        ConflictResolved = "conflict.resolved",
        TaskStateChanged = "task.state_changed",
        TaskAssigned = "task.assigned",
        TaskCompleted = "task.completed",
        HandoffIncoming = "handoff.incoming",
        AgentJoined = "agent.joined",
        AgentFailed = "agent.failed",
        SessionPaused = "session.paused",
        SessionEnded = "session.ended",
        /// Extension.
        MemoryRetracted = "memory.retracted",
        /// Extension.
        MemoryArchived = "memory.archived",
        /// Extension.
        AgentLeft = "agent.left",
        /// Extension: a conflict waits for a human's decision.
        ConflictEscalated = "conflict.escalated",
    }
);

/// A set of event names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventSet(u32);

impl EventSet {
    /// No event at all.
    pub const NONE: Self = Self(0);
    /// Every event.
    pub const ALL: Self = Self(u32::MAX);

    /// Whether an event is in the set.
    pub fn contains(self, event: EventName) -> bool {
        self.0 & (1 << event as u32) != 0
    }

    /// Whether the sets have an event in common.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The set with one more event.
    #[must_use]
    pub fn with(self, event: EventName) -> Self {
        Self(self.0 | 1 << event as u32)
    }

    /// What is in either set.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<EventName> for EventSet {
    fn from_iter<I: IntoIterator<Item = EventName>>(events: I) -> Self {
        events.into_iter().fold(Self::NONE, Self::with)
    }
}

/// An agent's standing request to be told of events, as the doors show it and the log keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subscription {
    /// Its name: chosen by the agent, or `sub-<epoch>`.
    pub id: Arc<str>,
    /// What it asks for; not empty.
    pub events: Vec<EventName>,
    /// Units less relevant to the agent's role and interests are not told of; 0..=1.
    pub min_relevance: f64,
    /// Least time between two notifications for the same entity, milliseconds.
    pub debounce_ms: u64,
    /// Extension: whether notifications carry the unit that they are about.
    pub include_unit: bool,
}

/// SUBSCRIBE.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscribeRequest {
    /// Make a subscription, attach it again, or change it.
    Subscribe(Box<Wish>),
    /// End a subscription.
    Unsubscribe {
        /// Which one.
        id: Arc<str>,
    },
    /// Tell the agent's subscriptions.
    List,
}

/// What a `subscribe` says. What is absent stays as it is, or gets its usual value where the subscription is new.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Wish {
    pub id: Option<Arc<str>>,
    pub events: Option<Vec<EventName>>,
    pub min_relevance: Option<f64>,
    pub debounce_ms: Option<u64>,
    pub resume_after: Option<Cursor>,
    pub include_unit: Option<bool>,
}

/// The name under which authors hear of resolved conflicts without a subscription; none can be called so.
pub const DIRECT: &str = "direct";

wire_names!(
    /// What SUBSCRIBE is to do.
    Action {
        Subscribe = "subscribe",
        Unsubscribe = "unsubscribe",
        List = "list",
    }
);

impl SubscribeRequest {
    pub(super) fn read(mut keys: Keys) -> Result<Self, Refusal> {
        let action = keys.required_name("action", Action::from_name, Action::names)?;
        if action == Action::List {
            return Ok(Self::List);
        }
        let mut inner = keys.required_object("subscription")?;
        if action == Action::Unsubscribe {
            return Ok(Self::Unsubscribe { id: inner.required_id("id")? });
        }
        let id = inner.id("id")?;
        if id.as_deref() == Some(DIRECT) {
            return Err(Refusal::invalid(
                &inner.name("id"),
                format!("{DIRECT:?} names what authors are told without a subscription."),
                "Choose another id, or leave it out and the Field gives one.",
            ));
        }
        Ok(Self::Subscribe(Box::new(Wish {
            id,
            events: events(&mut inner)?,
            min_relevance: inner.fraction("min_relevance")?,
            debounce_ms: debounce(&mut inner)?,
            resume_after: cursor(&mut inner, "resume_after")?,
            include_unit: inner.optional_flag("include_unit")?,
        })))
    }

    /// Whether it only looks.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::List)
    }
}

impl Wish {
    /// Reads what the query of `GET /v1/events` asks for; `None` for a key that is absent.
    ///
    /// # Errors
    /// As SUBSCRIBE itself.
    pub fn from_texts(text: impl Fn(&str) -> Result<Option<String>, Refusal>) -> Result<Self, Refusal> {
        let mut map = Map::new();
        if let Some(events) = text("events")? {
            map.insert("events".into(), events.split(',').map(|name| json!(name.trim())).collect());
        }
        for key in ["min_relevance", "debounce_ms", "include_unit"] {
            if let Some(value) = text(key)? {
                // A number or a truth value; anything else stays a text, and is refused as one.
                let value = serde_json::from_str::<Value>(&value).unwrap_or(Value::String(value));
                map.insert(key.to_owned(), value);
            }
        }
        let mut keys = Keys::top(map);
        Ok(Self {
            events: events(&mut keys)?,
            min_relevance: keys.fraction("min_relevance")?,
            debounce_ms: debounce(&mut keys)?,
            include_unit: keys.optional_flag("include_unit")?,
            ..Self::default()
        })
    }

    /// The subscription that this makes of an earlier one, or a new one; `None` where it says no events and there
    /// is no earlier one.
    pub fn applied(&self, id: Arc<str>, before: Option<&Subscription>) -> Option<Subscription> {
        let events = self.events.clone().or_else(|| before.map(|known| known.events.clone()))?;
        Some(Subscription {
            id,
            events,
            min_relevance: self.min_relevance.or(before.map(|known| known.min_relevance)).unwrap_or(0.0),
            debounce_ms: self.debounce_ms.or(before.map(|known| known.debounce_ms)).unwrap_or(0),
            include_unit: self.include_unit.or(before.map(|known| known.include_unit)).unwrap_or(false),
        })
    }
}

fn events(keys: &mut Keys) -> Result<Option<Vec<EventName>>, Refusal> {
    let Some(value) = keys.take("events") else { return Ok(None) };
    let mut only = keys.alone("events", value);
    let mut events = only.names("events", EventName::from_name, EventName::names)?;
    if events.is_empty() {
        let name = keys.name("events");
        return Err(Refusal::invalid(
            &name,
            format!("{name} is empty."),
            format!("Send {name} as a list of one or more of: {}.", EventName::names()),
        ));
    }
    events.sort_unstable();
    events.dedup();
    Ok(Some(events))
}

fn debounce(keys: &mut Keys) -> Result<Option<u64>, Refusal> {
    let ms = keys.count("debounce_ms")?;
    if ms.is_some_and(|ms| ms > DEBOUNCE_MAX_MS) {
        let name = keys.name("debounce_ms");
        return Err(Refusal::invalid(
            &name,
            format!("{name} is more than {DEBOUNCE_MAX_MS}."),
            format!("Send {name} as an integer from 0 to {DEBOUNCE_MAX_MS}, in milliseconds."),
        )
        .with("limit", json!(DEBOUNCE_MAX_MS)));
    }
    Ok(ms)
}

fn cursor(keys: &mut Keys, key: &str) -> Result<Option<Cursor>, Refusal> {
    let Some(text) = keys.text(key)? else { return Ok(None) };
    read_cursor(&keys.name(key), &text).map(Some)
}

/// A place in the stream of events, as a client gives it back.
///
/// # Errors
/// `INVALID_MESSAGE` naming the key.
pub fn read_cursor(key: &str, text: &str) -> Result<Cursor, Refusal> {
    text.parse().map_err(|_| {
        let said: String = text.chars().take(60).collect();
        Refusal::invalid(
            key,
            format!("{key} is {said:?}, which is no cursor."),
            "Send the cursor of the last notification you have, such as \"42.0\"; \"0.0\" is the beginning.",
        )
    })
}

/// The refusal of a cursor that is ahead of the Field's clock.
pub fn future_cursor(key: &str, cursor: Cursor, clock: u64) -> Refusal {
    Refusal::invalid(
        key,
        format!("{key} is {cursor}, but the Field's clock is at {clock}: that has not happened."),
        "Resume with a cursor that this Field gave you; after a change of Fields or data, subscribe without one.",
    )
    .with("clock", json!(clock))
}

/// SUBSCRIBE's response to `subscribe`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subscribed {
    /// `ok`.
    pub status: String,
    /// As it now is.
    pub subscription: Subscription,
    /// Where delivery goes on: everything after it is told. Good for resuming before the first notification.
    pub cursor: Cursor,
    /// Where to hold a WebSocket; put in at the door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket_url: Option<String>,
    /// Where to stream or poll; put in at the door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_url: Option<String>,
}

/// SUBSCRIBE's response to `list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subscriptions {
    /// `ok`.
    pub status: String,
    /// The agent's subscriptions, by id.
    pub subscriptions: Vec<Subscription>,
}

/// SUBSCRIBE's response to `unsubscribe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unsubscribed {
    /// `ok`.
    pub status: String,
}

/// What is pushed, as a client reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub struct Notification {
    pub subscription_id: String,
    pub event: EventName,
    pub epoch: u64,
    pub relevance_score: f64,
    pub summary: String,
    pub memory_unit_id: Option<super::ids::UnitId>,
    pub conflict_id: Option<super::ids::ConflictId>,
    pub requires_action: bool,
    /// Extension: where to resume.
    pub cursor: Cursor,
    /// Extension: whose doing it was; of `agent.*`, who it is about.
    pub agent_id: String,
    /// Extension.
    pub task_id: Option<String>,
    /// Extension, where the subscription asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_unit: Option<super::unit::MemoryUnit>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ErrorCode;

    fn read(payload: Value) -> Result<SubscribeRequest, Refusal> {
        let Value::Object(map) = payload else { panic!("an object") };
        SubscribeRequest::read(Keys::top(map))
    }

    #[test]
    fn reads_every_action() {
        let whole = json!({ "action": "subscribe", "subscription": { "id": "s", "events": ["agent.left",
            "memory.recorded", "agent.left"], "min_relevance": 0.5, "debounce_ms": 10, "resume_after": "4.1",
            "include_unit": true } });
        let Ok(SubscribeRequest::Subscribe(wish)) = read(whole) else { panic!("a wish") };
        assert_eq!(wish.events, Some(vec![EventName::MemoryRecorded, EventName::AgentLeft]));
        assert_eq!((wish.min_relevance, wish.debounce_ms), (Some(0.5), Some(10)));
        assert_eq!((wish.resume_after, wish.include_unit), (Some(Cursor::new(4, 1)), Some(true)));
        let ended = read(json!({ "action": "unsubscribe", "subscription": { "id": "s" } }));
        assert_eq!(ended, Ok(SubscribeRequest::Unsubscribe { id: "s".into() }));
        assert_eq!(read(json!({ "action": "list" })), Ok(SubscribeRequest::List));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let of = |subscription: Value| json!({ "action": "subscribe", "subscription": subscription });
        for (key, payload) in [
            ("action", json!({})),
            ("action", json!({ "action": "watch" })),
            ("subscription", json!({ "action": "subscribe" })),
            ("subscription.id", json!({ "action": "unsubscribe", "subscription": {} })),
            ("subscription.id", of(json!({ "id": "direct", "events": ["agent.left"] }))),
            ("subscription.id", of(json!({ "id": "a\nb", "events": ["agent.left"] }))),
            ("subscription.events", of(json!({ "events": [] }))),
            ("subscription.events", of(json!({ "events": ["memory.exploded"] }))),
            ("subscription.events", of(json!({ "events": "memory.recorded" }))),
            ("subscription.min_relevance", of(json!({ "min_relevance": 1.01 }))),
            ("subscription.min_relevance", of(json!({ "min_relevance": -0.1 }))),
            ("subscription.min_relevance", of(json!({ "min_relevance": "high" }))),
            ("subscription.debounce_ms", of(json!({ "debounce_ms": -1 }))),
            ("subscription.debounce_ms", of(json!({ "debounce_ms": 86_400_001u64 }))),
            ("subscription.resume_after", of(json!({ "resume_after": "4" }))),
            ("subscription.resume_after", of(json!({ "resume_after": 4.0 }))),
            ("subscription.include_unit", of(json!({ "include_unit": 1 }))),
        ] {
            let refusal = read(payload.clone()).expect_err("refused");
            assert_eq!(
                (refusal.code, &refusal.details["key"]),
                (ErrorCode::InvalidMessage, &json!(key)),
                "{payload}"
            );
        }
    }

    #[test]
    fn a_query_says_the_same() {
        let asked = |key: &str| {
            Ok(match key {
                "events" => Some("memory.recorded, conflict.detected".to_owned()),
                "min_relevance" => Some("0.3".to_owned()),
                "include_unit" => Some("true".to_owned()),
                _ => None,
            })
        };
        let wish = Wish::from_texts(asked).expect("readable");
        assert_eq!(wish.events, Some(vec![EventName::MemoryRecorded, EventName::ConflictDetected]));
        assert_eq!((wish.min_relevance, wish.debounce_ms, wish.include_unit), (Some(0.3), None, Some(true)));
        for (key, value) in
            [("events", "x"), ("min_relevance", "2"), ("debounce_ms", "-1"), ("include_unit", "maybe")]
        {
            let refusal =
                Wish::from_texts(|asked| Ok((asked == key).then(|| value.to_owned()))).expect_err("refused");
            assert_eq!(refusal.details["key"], key);
        }
    }

    #[test]
    fn sets_of_events() {
        let set: EventSet = [EventName::AgentLeft, EventName::MemoryRecorded].into_iter().collect();
        for event in EventName::ALL {
            assert!(EventSet::ALL.contains(*event) && !EventSet::NONE.contains(*event));
            assert_eq!(
                set.contains(*event),
                matches!(event, EventName::AgentLeft | EventName::MemoryRecorded)
            );
        }
        assert!(set.meets(EventSet::ALL) && !set.meets(EventSet::NONE));
        assert!(!set.meets(EventSet::NONE.with(EventName::AgentJoined)));
    }
}
