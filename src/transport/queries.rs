//! The GET endpoints: what can be looked at without sending a message.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use super::answers::Answers;
use super::guard::Identity;
use super::paths::{LISTED, Query};
use super::reply::{self, Fault, Response};
use super::rest::agent;
use crate::hub::{Door, Field, Hub, UnitFilter, View, answer_too_large};
use crate::limits::{PAGE_DEFAULT, PAGE_MAX, PAGE_MAX_BYTES, REPLY_MAX_BYTES};
use crate::protocol::{
    ConflictStatus, Cursor, ErrorCode, MemoryType, PROTOCOL, Refusal, UnitStatus, VERSION, check_id,
};

/// `GET /`: what this is and where to go on.
pub fn root() -> Response {
    let page = json!({
        "name": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": PROTOCOL,
        "protocol_version": VERSION,
        "endpoints": LISTED,
        "fields": "each /v1/… endpoint also stands under /v1/fields/{field}/…",
    });
    reply::value(StatusCode::OK, &page)
}

/// `GET /healthz`: the process answers.
pub fn health() -> Response {
    reply::value(StatusCode::OK, &json!({ "status": "ok" }))
}

/// `GET /readyz`: every log is open and every actor answers.
///
/// # Errors
/// 503 naming the Fields that are not ready.
pub async fn ready(hub: &Hub) -> Result<Response, Fault> {
    let asked = hub.fields().iter().map(|field| async move { (field.name(), field.is_ready().await) });
    let fields = futures::future::join_all(asked).await;
    let shown: Map<String, Value> =
        fields.iter().map(|(name, ready)| ((*name).into(), json!(ready))).collect();
    if fields.iter().all(|(_, ready)| *ready) {
        return Ok(reply::value(StatusCode::OK, &json!({ "status": "ready", "fields": shown })));
    }
    let refusal = Refusal::new(
        ErrorCode::Overloaded,
        "Not every Field of this hub is ready.",
        "Ask again in a second.",
    );
    Err(refusal.with("fields", Value::Object(shown)).with("retry_after_ms", json!(1_000)).into())
}

/// `GET /v1/field/status`.
///
/// # Errors
/// The log's no, when its figures cannot be read.
pub async fn status(hub: &Hub, field: &Field) -> Result<Response, Fault> {
    Ok(reply::value(StatusCode::OK, &figures(hub, field).await?))
}

/// A Field's figures.
///
/// # Errors
/// The log's no, when they cannot be read.
pub async fn figures(hub: &Hub, field: &Field) -> Result<Map<String, Value>, Refusal> {
    let log = field.log_stat().await?;
    let mut status = match field.view().status() {
        Value::Object(map) => map,
        other => Map::from_iter([("state".to_owned(), other)]),
    };
    for (key, value) in [
        ("epoch", json!(field.clock())),
        ("connections", json!(hub.sessions().count(Door::WebSocket, field.name()))),
        ("log_entries", json!(log.entries)),
        ("log_bytes", json!(log.bytes)),
        ("uptime_ms", json!(hub.uptime_ms())),
        ("version", json!(env!("CARGO_PKG_VERSION"))),
    ] {
        status.insert(key.to_owned(), value);
    }
    Ok(status)
}

/// `GET /v1/field/capabilities`: what REGISTER tells, without registering.
pub fn capabilities(field: &Field) -> Response {
    reply::value(StatusCode::OK, field.capabilities())
}

/// `GET /v1/agents`.
pub async fn agents(field: &Field) -> Result<Response, Fault> {
    list(field, |view| view.agents()).await
}

/// `GET /v1/conflicts?status=`, the unresolved ones when no status is given.
pub async fn conflicts(field: &Field, query: &Query) -> Result<Response, Fault> {
    let expected = || format!("one or more of {}, separated by commas", ConflictStatus::names());
    let read = |text: &str| text.split(',').map(|name| ConflictStatus::from_name(name.trim())).collect();
    // Without a status the view lists the unresolved ones.
    let wanted: Vec<_> = query.value("status", expected, read)?.unwrap_or_default();
    list(field, move |view| view.conflicts(&wanted)).await
}

/// Who asks, where the asking is allowed to speak for it.
fn asker(headers: &HeaderMap, identity: &Identity) -> Result<Option<String>, Refusal> {
    let Some(asker) = agent(headers)? else { return Ok(None) };
    identity.may_speak_for(asker)?;
    Ok(Some(asker.to_owned()))
}

/// `GET /v1/units/{id}`.
///
/// # Errors
/// `UNIT_NOT_FOUND`, also where the asker may not see it.
pub async fn unit(
    field: &Field,
    id: &str,
    headers: &HeaderMap,
    identity: &Identity,
) -> Result<Response, Fault> {
    let asker = asker(headers, identity)?;
    let named = id.to_owned();
    let shown = print(field, move |view| view.unit(&named, asker.as_deref())).await?;
    let shown = shown.map(|body| reply::typed(StatusCode::OK, reply::JSON, body));
    shown.ok_or_else(|| no_unit(id).into())
}

/// The refusal of a unit that is not there, or not for the asker.
pub fn no_unit(id: &str) -> Refusal {
    let said: String = id.chars().take(80).collect();
    let refusal = Refusal::new(
        ErrorCode::UnitNotFound,
        format!("There is no unit {said:?} here that you can see."),
        "List the units with GET /v1/units.",
    );
    refusal.with("memory_unit_id", json!(said))
}

/// `GET /v1/units?after=&before=&order=&limit=&type=&status=&archived=&agent=&task=&session=`.
pub async fn units(
    field: &Field,
    query: &Query,
    headers: &HeaderMap,
    identity: &Identity,
    answers: &Answers,
) -> Result<Response, Fault> {
    let asker = asker(headers, identity)?;
    let filter = UnitFilter {
        after: after(query)?,
        before: place(query, "before")?,
        newest_first: query.value("order", || one_of("oldest, newest"), newest_first)?.unwrap_or(false),
        limit: limit(query)?,
        kind: query.value("type", || one_of(&MemoryType::names()), MemoryType::from_name)?,
        status: query.value("status", || one_of(&UnitStatus::names()), UnitStatus::from_name)?,
        agent: id(query, "agent")?,
        task: id(query, "task")?,
        session: id(query, "session")?,
        archived: query.value("archived", || one_of("true, false"), |text| text.parse().ok())?,
    };
    let room = answers.room(2 * PAGE_MAX_BYTES).await?;
    let view = field.view();
    let print = move || {
        view.units(&filter, asker.as_deref())
            .map(|page| serde_json::to_string(&page).map_err(|_| not_shown()))
    };
    match tokio::task::spawn_blocking(print).await {
        Ok(Err(refusal)) => Err(refusal.into()),
        Ok(Ok(Ok(text))) => Ok(reply::typed(StatusCode::OK, reply::JSON, room.hold(text))),
        _ => Err(not_shown().into()),
    }
}

fn newest_first(name: &str) -> Option<bool> {
    match name {
        "oldest" => Some(false),
        "newest" => Some(true),
        _ => None,
    }
}

fn one_of(names: &str) -> String {
    format!("one of {names}")
}

/// `GET /v1/log?after=&limit=`: one JSON object a line.
pub async fn log(field: &Field, query: &Query, answers: &Answers) -> Result<Response, Fault> {
    let room = answers.room(2 * PAGE_MAX_BYTES).await?;
    let lines = field.log_lines(after(query)?.unwrap_or_default(), limit(query)?).await?;
    let mut body = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in &lines {
        body.push_str(line);
        body.push('\n');
    }
    Ok(reply::typed(StatusCode::OK, "application/x-ndjson", room.hold(body)))
}

fn after(query: &Query) -> Result<Option<Cursor>, Refusal> {
    place(query, "after")
}

fn place(query: &Query, key: &str) -> Result<Option<Cursor>, Refusal> {
    query.value(key, || "a cursor, such as 42.0".into(), |text| text.parse().ok())
}

/// How many things a page may have.
pub fn limit(query: &Query) -> Result<usize, Refusal> {
    Ok(query.number("limit", 1, PAGE_MAX as u64)?.map_or(PAGE_DEFAULT, |limit| limit as usize))
}

fn id(query: &Query, key: &str) -> Result<Option<String>, Refusal> {
    let text = query.text(key)?;
    if let Some(text) = &text {
        check_id(key, text)?;
    }
    Ok(text)
}

/// Prints something of the newest state, if it is there. It can be large, so not on a thread that serves
/// connections.
async fn look(
    field: &Field,
    show: impl FnOnce(&View) -> Result<Option<Value>, Refusal> + Send + 'static,
) -> Result<Option<Response>, Fault> {
    let shown = print(field, show).await?;
    Ok(shown.map(|body| reply::typed(StatusCode::OK, reply::JSON, body)))
}

/// The same as JSON text.
///
/// # Errors
/// `MESSAGE_TOO_LARGE` for more than one answer may hold.
pub async fn print(
    field: &Field,
    show: impl FnOnce(&View) -> Result<Option<Value>, Refusal> + Send + 'static,
) -> Result<Option<String>, Refusal> {
    let view: Arc<View> = field.view();
    let print = move || {
        let written = |value: Value| serde_json::to_string(&value).map_err(|_| not_shown());
        show(&view)?.map(written).transpose()
    };
    match tokio::task::spawn_blocking(print).await {
        Ok(Ok(Some(body))) if body.len() > REPLY_MAX_BYTES => Err(answer_too_large()),
        Ok(shown) => shown,
        Err(_) => Err(not_shown()),
    }
}

fn not_shown() -> Refusal {
    Refusal::new(
        ErrorCode::InternalError,
        "The state could not be shown.",
        "Ask again; if it persists, report it with the hub's log.",
    )
}

/// The same for what is always there.
async fn list(field: &Field, show: impl FnOnce(&View) -> Value + Send + 'static) -> Result<Response, Fault> {
    let shown = look(field, |view| Ok(Some(show(view)))).await?;
    Ok(shown.unwrap_or_else(|| reply::value(StatusCode::OK, &Value::Null)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_exact_bounds() {
        let limit_of = |raw: &str| limit(&Query::new(raw.to_owned()));
        assert_eq!(limit_of(""), Ok(PAGE_DEFAULT));
        assert_eq!((limit_of("limit=1"), limit_of("limit=1000")), (Ok(1), Ok(1000)));
        for raw in ["limit=0", "limit=1001", "limit=-1", "limit=%2B5", "limit=x", "limit="] {
            assert_eq!(limit_of(raw).unwrap_err().details["key"], "limit", "{raw}");
        }
        assert_eq!(after(&Query::new("after=9.1".into())), Ok(Some(Cursor::new(9, 1))));
        assert!(after(&Query::new("after=9".into())).is_err());
    }
}
