//! `GET /v1/events`: what is told, as a stream of Server-Sent Events or by long polling (wire, section 3).
//!
//! The body of a stream is made as the peer takes it, so a slow reader makes nothing pile up here either: hyper asks
//! for the next piece only when there is room for it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use tokio::time::{Instant, sleep_until};
use warp::Reply;

use super::connection::closing;
use super::guard::Identity;
use super::paths::Query;
use super::queries::limit;
use super::reply::{self, Fault, Response};
use super::routes::Doors;
use crate::hub::{Door, Field, Hub, Listener, LiveSession, Outbox, Push};
use crate::limits::{PAGE_MAX_BYTES, POLL_WAIT_MAX_MS};
use crate::protocol::{Cursor, ErrorCode, EventName, Operation, Refusal, Wish, check_id, read_cursor};

/// Where a browser goes on after its stream broke off.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Keeps nginx from holding the stream back.
pub const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How long a browser waits before it comes back, milliseconds.
const RETRY_MS: u64 = 2_000;
/// About how much is gathered into one piece of the body, where that much is at hand.
const PIECE_BYTES: usize = 16 * 1024;
/// How long a poll waits when it does not say.
const POLL_WAIT_MS: u64 = 25_000;

/// Under which name a listener without a subscription in the Field is told.
const STREAM: &str = "stream";
pub const OBSERVER: &str = "observer";

/// Answers `GET /v1/events`.
///
/// # Errors
/// `INVALID_MESSAGE` naming the key, `SUBSCRIPTION_NOT_FOUND`, `AGENT_NOT_REGISTERED`; `UNSUPPORTED_OPERATION` at a
/// level without SUBSCRIBE, but for observers.
pub async fn events(
    doors: &Doors,
    field: &Field,
    query: &Query,
    headers: &HeaderMap,
    identity: &Identity,
) -> Result<Response, Fault> {
    let hub = &doors.hub;
    let listener = listener(field, query, identity)?;
    let (after, key) = place(query, headers)?;
    if !flag(query, "poll")? {
        let outbox = field.stream(listener, after, key)?;
        return Ok(stream(hub, field, outbox));
    }
    let limit = limit(query)?;
    let wait = query.number("wait_ms", 0, POLL_WAIT_MAX_MS)?.unwrap_or(POLL_WAIT_MS);
    let debounced = listener.subscription.debounce_ms > 0;
    let outbox = field.stream(listener.at_once(), after, key)?;
    let first = first(hub, outbox, Duration::from_millis(wait)).await;
    // Room is asked for once there is something to put into it: who waits for news takes none.
    let room = doors.answers.room(2 * PAGE_MAX_BYTES).await?;
    let text = page(hub, first, limit, debounced);
    Ok(reply::typed(StatusCode::OK, reply::JSON, room.hold(text)))
}

/// Who listens, and to what: a subscription of the Field, an agent for as long as the stream lives, or an observer.
fn listener(field: &Field, query: &Query, identity: &Identity) -> Result<Listener, Refusal> {
    let subscription = query.text("subscription_id")?;
    let agent = query.text("agent_id")?;
    let observer = flag(query, "observer")?;
    match (subscription, agent, observer) {
        (Some(id), None, false) => {
            subscribed(field)?;
            if let Some(key) =
                first_given(query, &["events", "min_relevance", "debounce_ms", "include_unit"])?
            {
                return Err(Refusal::invalid(
                    key,
                    format!("{key} is given beside subscription_id, which says it already."),
                    "Leave it out, or change the subscription by SUBSCRIBE with its id.",
                ));
            }
            let found = field.subscription(&id).ok_or_else(|| unknown(&id))?;
            identity.may_speak_for(found.agent.as_deref().unwrap_or_default())?;
            Ok(found)
        }
        (None, Some(agent), false) => {
            subscribed(field)?;
            check_id("agent_id", &agent)?;
            identity.may_speak_for(&agent)?;
            let wish = Wish::from_texts(|key| query.text(key))?;
            let subscription = wish.applied(STREAM.into(), None).ok_or_else(no_events)?;
            field.listener(&agent, subscription).ok_or_else(|| not_here(&agent))
        }
        (None, None, true) => observing(query),
        (None, None, false) => Err(who("Nothing says who listens.")),
        _ => Err(who("More than one of subscription_id, agent_id and observer is given.")),
    }
}

/// Nobody in particular: is told of everyone's doings.
fn observing(query: &Query) -> Result<Listener, Refusal> {
    let mut wish = Wish::from_texts(|key| query.text(key))?;
    wish.events.get_or_insert_with(|| EventName::ALL.to_vec());
    let subscription = wish.applied(OBSERVER.into(), None).ok_or_else(no_events)?;
    Ok(Listener::observer(Arc::new(subscription)))
}

/// What `GET /v1/ws?observer=true` is told beside replies, and from which place on: the same as a stream of the same
/// query, as pushes with the subscription id `observer` and an empty agent id (Extension). So a browser watches and acts
/// over one connection.
///
/// # Errors
/// `INVALID_MESSAGE` naming the key; a place ahead of the Field included.
pub fn watched(field: &Field, query: &Query) -> Result<Option<(Listener, Option<Cursor>)>, Refusal> {
    if !flag(query, "observer")? {
        return Ok(None);
    }
    let listener = observing(query)?;
    let after = query.text("after")?.map(|text| read_cursor("after", &text)).transpose()?;
    if let Some(after) = after {
        field.check_place(after, "after")?;
    }
    Ok(Some((listener, after)))
}

/// The place after which to go on, and the key that says so.
fn place(query: &Query, headers: &HeaderMap) -> Result<(Option<Cursor>, &'static str), Refusal> {
    if let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) {
        let text = String::from_utf8_lossy(value.as_bytes());
        return Ok((Some(read_cursor("Last-Event-ID", &text)?), "Last-Event-ID"));
    }
    let after = query.text("after")?.map(|text| read_cursor("after", &text)).transpose()?;
    Ok((after, "after"))
}

fn subscribed(field: &Field) -> Result<(), Refusal> {
    field.serves(Operation::Subscribe)
}

fn flag(query: &Query, key: &str) -> Result<bool, Refusal> {
    let read = |text: &str| text.parse().ok();
    Ok(query.value(key, || "true or false".to_owned(), read)?.unwrap_or(false))
}

fn first_given(query: &Query, keys: &[&'static str]) -> Result<Option<&'static str>, Refusal> {
    for key in keys {
        if query.text(key)?.is_some() {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

fn who(said: &'static str) -> Refusal {
    Refusal::invalid(
        "subscription_id",
        said,
        "Send one of: subscription_id=… of a subscription, agent_id=… with events=…, or observer=true.",
    )
}

fn unknown(id: &str) -> Refusal {
    let said: String = id.chars().take(80).collect();
    Refusal::new(
        ErrorCode::SubscriptionNotFound,
        format!("There is no subscription {said:?}."),
        "SUBSCRIBE first, or give agent_id and events for a stream of its own.",
    )
    .with("key", serde_json::json!("subscription_id"))
}

fn no_events() -> Refusal {
    Refusal::invalid(
        "events",
        "events is missing: a stream for an agent says what it wants to hear of.",
        format!("Send events as a list, separated by commas, out of: {}.", EventName::names()),
    )
}

fn not_here(agent: &str) -> Refusal {
    Refusal::new(
        ErrorCode::AgentNotRegistered,
        format!("The agent {agent:?} is not registered here."),
        "Call REGISTER with its id and role, then open the stream again; or give observer=true to watch.",
    )
    .with("agent_id", serde_json::json!(agent))
}

/// A stream that lives as long as both sides.
struct Streaming {
    hub: Arc<Hub>,
    outbox: Outbox,
    /// Counts the stream among the live sessions.
    _live: LiveSession,
    begun: bool,
    quiet_until: Instant,
}

fn stream(hub: &Arc<Hub>, field: &Field, outbox: Outbox) -> Response {
    let live = hub.sessions().open(Door::Events, field.name());
    let streaming =
        Streaming { hub: Arc::clone(hub), outbox, _live: live, begun: false, quiet_until: Instant::now() };
    let mut response = warp::reply::stream(streaming.pieces()).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

impl Streaming {
    /// The body, piece by piece; it ends with the subscription or with the hub.
    fn pieces(self) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send {
        futures::stream::unfold(self, |mut streaming| async move {
            let piece = streaming.piece().await?;
            streaming.quiet_until = Instant::now() + streaming.heartbeat();
            Some((Ok(piece.into()), streaming))
        })
    }

    /// How long nothing may go out: shorter than between two pings of a WebSocket, so that what lets those through
    /// lets streams through too; 15 s as it comes.
    fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.hub.config().heartbeat_ms / 4 * 3)
    }

    async fn piece(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.begun, true) {
            return Some(format!("retry: {RETRY_MS}\n{}", self.sign_of_life()));
        }
        let first = tokio::select! {
            biased;
            () = closing(&self.hub) => return None,
            push = self.outbox.next() => push?,
            () = sleep_until(self.quiet_until) => return Some(format!(":\n{}", self.sign_of_life())),
        };
        let mut piece = String::new();
        let mut next = Some(first);
        while let Some(push) = next {
            self.hub.metrics().notified(Door::Events);
            push.write_event(&mut piece);
            next = if piece.len() < PIECE_BYTES { self.outbox.ready() } else { None };
        }
        Some(piece)
    }

    /// Tells where to go on, so that a quiet stream can be resumed too: an id without data is no event.
    fn sign_of_life(&self) -> String {
        self.outbox.cursor().map_or_else(|| "\n".to_owned(), |cursor| format!("id: {cursor}\n\n"))
    }
}

/// What there is, or what comes within `wait`.
async fn first(hub: &Hub, mut outbox: Outbox, wait: Duration) -> (Outbox, Option<Push>) {
    let deadline = Instant::now() + wait;
    // What there is comes at once, however long the log takes; the wait is for what is still to come.
    let first = tokio::select! {
        biased;
        push = outbox.present() => push,
        () = closing(hub) => None,
    };
    let first = match first {
        Some(push) => Some(push),
        None => tokio::select! {
            biased;
            push = outbox.next() => push,
            () = sleep_until(deadline) => None,
            () = closing(hub) => None,
        },
    };
    (outbox, first)
}

/// The answer to a poll: the first push, and what is at hand behind it.
fn page(hub: &Hub, (mut outbox, first): (Outbox, Option<Push>), limit: usize, debounced: bool) -> String {
    let mut pushes: Vec<Push> = Vec::new();
    let (mut texts, mut bytes) = (Vec::new(), 0);
    let mut next = first;
    while let Some(push) = next {
        let text = push.payload();
        bytes += text.len();
        texts.push(text);
        pushes.push(push);
        next = if pushes.len() < limit && bytes < PAGE_MAX_BYTES { outbox.ready() } else { None };
    }
    if debounced {
        texts = last_states(&pushes, texts);
    }
    texts.iter().for_each(|_| hub.metrics().notified(Door::Events));
    let cursor = outbox.cursor().or(pushes.last().map(Push::cursor)).unwrap_or_default();
    format!(r#"{{"events":[{}],"cursor":"{cursor}"}}"#, texts.join(","))
}

/// Of each entity the last. The pace is the poller's own; within one answer this is what debouncing leaves.
fn last_states(pushes: &[Push], texts: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut kept: Vec<_> = pushes
        .iter()
        .zip(texts)
        .rev()
        .filter(|(push, _)| seen.insert(push.concern()))
        .map(|(_, text)| text)
        .collect();
    kept.reverse();
    kept
}
