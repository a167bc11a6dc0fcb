//! SUBSCRIBE's requests, and what a client does with them.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Client;
use super::error::ClientError;
use super::inbox::Inbox;
use super::notifications::{DirectNotifications, Notifications, Taker};
use super::pending::Effect;
use crate::protocol::{
    Cursor, DIRECT, EventName, Operation, Subscribed, Subscription, Subscriptions, Unsubscribed,
};

/// SUBSCRIBE's request: what to be told of. What is left out stays as it is where the subscription is known.
///
/// ```no_run
/// # async fn example(client: akashik_hub::client::Client) -> Result<(), akashik_hub::client::ClientError> {
/// use akashik_hub::client::Subscribe;
/// use akashik_hub::protocol::EventName;
///
/// let wish = Subscribe::to([EventName::ConflictDetected]).named("conflicts").debounce_ms(500);
/// let mut news = client.subscribe(wish).await?;
/// if let Some(notification) = news.next().await {
///     println!("{}", notification?.summary);
/// }
/// let place = news.cursor();
/// drop(news);
/// // Another time, also from another process: from there on, without a gap.
/// let news = client.subscribe(Subscribe::again("conflicts").resume_after(place)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Subscribe {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    events: Vec<EventName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_relevance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    debounce_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include_unit: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume_after: Option<Cursor>,
}

impl Subscribe {
    /// To these events.
    pub fn to(events: impl IntoIterator<Item = EventName>) -> Self {
        Self { events: events.into_iter().collect(), ..Self::default() }
    }

    /// To what the agent's subscription of this id asks for: takes up one that was made before.
    pub fn again(id: impl Into<String>) -> Self {
        Self::default().named(id)
    }

    /// Under this id, so that it can be found again; without one the Field gives an id.
    #[must_use]
    pub fn named(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Not of units that are less relevant to the agent's role and interests, 0 to 1.
    #[must_use]
    pub fn min_relevance(mut self, least: f64) -> Self {
        self.min_relevance = Some(least);
        self
    }

    /// At least so long between two notifications for the same entity, milliseconds.
    #[must_use]
    pub fn debounce_ms(mut self, pause: u64) -> Self {
        self.debounce_ms = Some(pause);
        self
    }

    /// With the units themselves (Extension).
    #[must_use]
    pub fn include_unit(mut self) -> Self {
        self.include_unit = Some(true);
        self
    }

    /// First everything after this cursor, then what comes. Without it: from now on.
    #[must_use]
    pub fn resume_after(mut self, cursor: Cursor) -> Self {
        self.resume_after = Some(cursor);
        self
    }

    fn payload(&self) -> Value {
        json!({ "action": "subscribe", "subscription": self })
    }
}

impl Client {
    /// SUBSCRIBE: makes a subscription, or takes up a known one, and streams its notifications.
    ///
    /// The stream outlives lost connections and restarts of the hub: nothing is lost and, without `debounce_ms`,
    /// nothing comes twice. An agent that was away for so long that it counts as failed is registered again, as it was
    /// over this client. A taker may be slow: see [`Notifications`].
    ///
    /// A client has one stream for each subscription: a second one of the same id ends the first.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn subscribe(&self, request: Subscribe) -> Result<Notifications, ClientError> {
        let inbox = Inbox::new(Arc::clone(&self.attached.bell));
        // Made before it is asked for: were this future dropped, it would detach what the link has attached.
        let taker = Taker::new(inbox, Arc::clone(&self.attached));
        let effect = Effect::Attaches(Arc::clone(taker.inbox()));
        let answer: Subscribed = self.call_for(Operation::Subscribe, &request.payload(), effect).await?;
        Ok(Notifications::new(answer.subscription, taker))
    }

    /// SUBSCRIBE, action `unsubscribe`: ends a subscription, and with it its stream, once what is queued is taken.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn unsubscribe(&self, id: &str) -> Result<(), ClientError> {
        let payload = json!({ "action": "unsubscribe", "subscription": { "id": id } });
        let Unsubscribed { status } =
            self.call_for(Operation::Subscribe, &payload, Effect::Ends(id.into())).await?;
        if status == "ok" {
            return Ok(());
        }
        Err(ClientError::Protocol(Cow::Owned(format!("unsubscribe was answered {status:?}"))))
    }

    /// SUBSCRIBE, action `list`: the agent's subscriptions, attached or not.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn subscriptions(&self) -> Result<Vec<Subscription>, ClientError> {
        let answer: Subscriptions = self.call(Operation::Subscribe, &json!({ "action": "list" })).await?;
        Ok(answer.subscriptions)
    }

    /// What the agent is told without a subscription: that a conflict of its units was resolved. Not resumable: see
    /// [`DirectNotifications`]. A second call ends the first one's stream.
    pub fn direct(&self) -> DirectNotifications {
        let inbox = Inbox::direct(Arc::clone(&self.attached.bell));
        self.attached.enter(DIRECT, Arc::clone(&inbox));
        DirectNotifications::new(Taker::new(inbox, Arc::clone(&self.attached)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Limits, Request, SubscribeRequest};

    #[test]
    fn a_hub_understands_what_the_builder_writes() {
        let read = |request: Subscribe| {
            let Value::Object(map) = request.payload() else { panic!("no object") };
            let read = Request::read(Operation::Subscribe, "a", map, &Limits::default(), 3).unwrap();
            let Request::Subscribe(SubscribeRequest::Subscribe(wish)) = read else { panic!("{read:?}") };
            wish
        };
        let wish = read(
            Subscribe::to([EventName::MemoryRecorded])
                .named("mine")
                .min_relevance(0.25)
                .debounce_ms(50)
                .include_unit()
                .resume_after(Cursor::new(4, 1)),
        );
        assert_eq!(
            (wish.id.as_deref(), wish.min_relevance, wish.debounce_ms),
            (Some("mine"), Some(0.25), Some(50))
        );
        assert_eq!((wish.include_unit, wish.resume_after), (Some(true), Some(Cursor::new(4, 1))));
        assert_eq!(wish.events.as_deref(), Some(&[EventName::MemoryRecorded][..]));
        let again = read(Subscribe::again("mine"));
        assert_eq!((again.events.as_ref(), again.resume_after), (None, None), "unsaid is not sent");
    }
}
