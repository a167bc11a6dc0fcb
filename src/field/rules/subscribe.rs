//! SUBSCRIBE (section 7): an agent's standing requests to be told of events.
//!
//! The Field keeps what was asked for; delivery is the hub's. So attaching a known subscription again without a
//! change is answered and remembered, but is no event.

use std::sync::Arc;

use serde_json::json;

use super::super::decide::{Change, Ground};
use super::super::event::Event;
use super::super::state::{AgentNo, World};
use crate::limits::SUBSCRIPTIONS_MAX;
use crate::protocol::{
    Cursor, ErrorCode, EventName, Refusal, SubscribeRequest, Subscribed, Subscription, Subscriptions,
    Unsubscribed, Wish, future_cursor,
};

pub(in super::super) fn subscribe(
    ground: &Ground<'_>,
    request: &SubscribeRequest,
) -> Result<Change, Refusal> {
    match request {
        SubscribeRequest::Subscribe(wish) => wished(ground, wish),
        SubscribeRequest::Unsubscribe { id } => unsubscribe(ground, id),
        // Reads are computed elsewhere; said again here, it changes nothing.
        SubscribeRequest::List => {
            Ok(Change::new(Vec::new(), &subscriptions(&ground.state.world, ground.agent.unwrap_or_default())))
        }
    }
}

/// The response to `list`.
pub fn subscriptions(world: &World, agent: AgentNo) -> Subscriptions {
    let subscriptions = world.subscriptions_of(agent).map(|known| Subscription::clone(known)).collect();
    Subscriptions { status: "ok".to_owned(), subscriptions }
}

fn wished(ground: &Ground<'_>, wish: &Wish) -> Result<Change, Refusal> {
    let world = &ground.state.world;
    let known = match &wish.id {
        Some(id) => own(ground, id)?,
        None => None,
    };
    if let Some(cursor) = wish.resume_after
        && cursor.epoch > ground.state.clock
    {
        return Err(future_cursor("subscription.resume_after", cursor, ground.state.clock));
    }
    let id = wish.id.clone().unwrap_or_else(|| fresh(world, ground.epoch));
    let subscription = wish.applied(id, known.map(|known| &**known)).ok_or_else(no_events)?;
    let has = ground.agent.and_then(|agent| world.subscribed.get(&agent)).map_or(0, imbl::OrdSet::len);
    if known.is_none() && has >= SUBSCRIPTIONS_MAX {
        return Err(enough());
    }
    // After the cursor of this very operation, unless the agent has a place of its own to go on from.
    let cursor = wish.resume_after.unwrap_or(Cursor::new(ground.epoch, 0));
    let reply = Subscribed {
        status: "ok".to_owned(),
        subscription: subscription.clone(),
        cursor,
        websocket_url: None,
        events_url: None,
    };
    let changed = known.is_none_or(|known| **known != subscription);
    let events = changed.then(|| Event::Subscribed { subscription: Arc::new(subscription) });
    Ok(Change::new(events.into_iter().collect(), &reply))
}

fn unsubscribe(ground: &Ground<'_>, id: &str) -> Result<Change, Refusal> {
    let known = own(ground, id)?.ok_or_else(|| unknown(id))?;
    let event = Event::Unsubscribed { subscription_id: Arc::clone(&known.id) };
    Ok(Change::new(vec![event], &Unsubscribed { status: "ok".to_owned() }))
}

/// The sender's subscription of this id; nothing where nobody has it.
fn own<'a>(ground: &Ground<'a>, id: &str) -> Result<Option<&'a Arc<Subscription>>, Refusal> {
    match ground.state.world.subscriptions.get(id) {
        Some(record) if Some(record.agent) != ground.agent => Err(unknown(id)),
        record => Ok(record.map(|record| &record.subscription)),
    }
}

/// An id that nobody has: agents may have chosen one that looks like the Field's.
fn fresh(world: &World, epoch: u64) -> Arc<str> {
    let mut id = format!("sub-{epoch}");
    let mut number = 0;
    while world.subscriptions.contains_key(id.as_str()) {
        number += 1;
        id = format!("sub-{epoch}.{number}");
    }
    id.into()
}

fn unknown(id: &str) -> Refusal {
    Refusal::new(
        ErrorCode::SubscriptionNotFound,
        format!("You have no subscription {id:?}."),
        "List yours with action \"list\"; to make one, subscribe with another id or without one.",
    )
    .with("key", json!("subscription.id"))
}

fn no_events() -> Refusal {
    Refusal::invalid(
        "subscription.events",
        "subscription.events is missing: a new subscription says what it wants to hear of.",
        format!("Send subscription.events as a list of one or more of: {}.", EventName::names()),
    )
}

fn enough() -> Refusal {
    Refusal::invalid(
        "subscription",
        format!("You have {SUBSCRIPTIONS_MAX} subscriptions, as many as an agent can have."),
        "Unsubscribe one that you no longer need, or change one by its id: a subscription can name many events.",
    )
    .with("limit", json!(SUBSCRIPTIONS_MAX))
}
