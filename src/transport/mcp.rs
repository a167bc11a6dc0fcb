//! `/mcp`: MCP over Streamable HTTP (wire, section 4), for each Field its own.
//!
//! Requests come through the same guard, limits and table of errors as all others; `rmcp` takes the JSON-RPC in them
//! apart, keeps the sessions and negotiates versions. A session is no connection: an agent that speaks MCP stays until
//! it deregisters (section 4).

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, BodyStream, Full};
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use warp::Reply;

use super::body::Upload;
use super::connection::closing;
use super::events::ACCEL_BUFFERING;
use super::guard::Identity;
use super::queries::{figures, no_unit, print};
use super::reply::{self, Fault, Response};
use super::rest::fresh_id;
use crate::hub::{Field, Hub, Listener, Outbox};
use crate::mcp::{Backend, Call, Server, Sight, Watch};
use crate::protocol::{
    Envelope, ErrorBody, ErrorCode, EventName, Notification, Operation, Refusal, Wish, check_id,
};

/// Names an MCP session.
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Names the version of MCP that was agreed on.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// What newer clients say of a request beside its body.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// See [`METHOD`].
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Where a client goes on after its stream broke off.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How long sessions may take to end once they are told to.
const CLOSING: Duration = Duration::from_secs(1);
/// How often it is looked whether they have.
const CLOSING_LOOK: Duration = Duration::from_millis(5);

type Service = StreamableHttpService<Server<Inside>, LocalSessionManager>;

/// The MCP sessions of all Fields.
pub struct Mcp {
    served: Vec<Served>,
    ended: CancellationToken,
    sessions_max: usize,
}

/// One Field's.
struct Served {
    field: String,
    service: Service,
    sessions: Arc<LocalSessionManager>,
    /// Held while a session begins, so that their number is exact.
    beginning: Mutex<()>,
}

/// What is asked, beside the body.
pub struct Asked<'a> {
    /// GET, POST or DELETE.
    pub method: &'a Method,
    /// As they came.
    pub headers: &'a HeaderMap,
    /// On whose behalf.
    pub identity: Identity,
}

impl Mcp {
    /// Sessions for each Field of a hub: none yet.
    pub fn new(hub: &Arc<Hub>) -> Self {
        let ended = CancellationToken::new();
        let serve = |field: &Field| {
            let mut config = SessionConfig::default();
            config.keep_alive = Some(Duration::from_millis(hub.config().mcp_idle_ms));
            // What was sent and not taken is not kept: a session could pile up large answers. Who lost one asks again,
            // under the same message_id.
            config.completed_cache_ttl = Duration::ZERO;
            config.sse_retry = None;
            let mut sessions = LocalSessionManager::default();
            sessions.session_config = config;
            let sessions = Arc::new(sessions);
            let inside = Arc::new(Inside { hub: Arc::clone(hub), field: field.name().to_owned() });
            let heartbeat = Duration::from_millis(hub.config().heartbeat_ms / 4 * 3);
            // The guard has judged Host and Origin by then, and the body was read within the hub's own limit.
            let config = StreamableHttpServerConfig::default()
                .disable_allowed_hosts()
                .with_sse_keep_alive(Some(heartbeat))
                .with_sse_retry(None)
                .with_json_response(true)
                .with_max_request_body_bytes(hub.config().limits.message_bytes)
                .with_cancellation_token(ended.clone());
            let make = move || Ok(Server::new(Arc::clone(&inside), None));
            let service = StreamableHttpService::new(make, Arc::clone(&sessions), config);
            Served { field: field.name().to_owned(), service, sessions, beginning: Mutex::new(()) }
        };
        let served = hub.fields().iter().map(serve).collect();
        Self { served, ended, sessions_max: hub.config().mcp_sessions_max }
    }

    /// How many sessions are open, by Field.
    pub async fn open(&self) -> Vec<(&str, usize)> {
        let mut open = Vec::with_capacity(self.served.len());
        for served in &self.served {
            open.push((served.field.as_str(), served.sessions.sessions.read().await.len()));
        }
        open
    }

    /// Answers a request.
    ///
    /// # Errors
    /// What is wrong with it before a session sees it; `OVERLOADED` for one session too many.
    pub async fn answer(
        &self,
        hub: &Arc<Hub>,
        field: &Field,
        asked: Asked<'_>,
        upload: &mut Upload,
    ) -> Result<Response, Fault> {
        let Some(served) = self.served.iter().find(|served| served.field == field.name()) else {
            return Err(reply::unknown_path());
        };
        let body = match *asked.method {
            Method::POST => upload.read(hub.config().limits.message_bytes).await?,
            _ => Bytes::new(),
        };
        let since = Instant::now();
        let begins = !asked.headers.contains_key(SESSION) && is_initialize(&body);
        let (is_post, is_delete) = (asked.method == Method::POST, asked.method == Method::DELETE);
        let is_json = asked
            .headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        let request = request(asked, body);
        let response = if begins {
            let _alone = served.beginning.lock().await;
            if served.sessions.sessions.read().await.len() >= self.sessions_max {
                return Err(too_many(self.sessions_max).into());
            }
            served.service.handle(request).await
        } else {
            served.service.handle(request).await
        };
        if is_post {
            hub.metrics().answered_http(since.elapsed());
        }
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json {
            // The type is right, the body is not what it says.
            return Err(no_message());
        }
        let mut response = respond(hub, response, !is_post).await?;
        if is_delete && response.status() == StatusCode::ACCEPTED {
            // Done, not only taken: some clients take nothing else for a success.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        Ok(response)
    }

    /// Ends all sessions, and waits a moment for their tasks.
    pub async fn close(&self) {
        self.ended.cancel();
        let ended = timeout(CLOSING, async {
            for served in &self.served {
                while !served.sessions.sessions.read().await.is_empty() {
                    sleep(CLOSING_LOOK).await;
                }
            }
        });
        if ended.await.is_err() {
            tracing::warn!("MCP sessions were still busy when the hub stopped");
        }
    }
}

/// The request as `rmcp` takes it.
fn request(asked: Asked<'_>, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = asked.method.clone();
    *request.headers_mut() = asked.headers.clone();
    // Judged already; HTTP/1.0 needs none.
    request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
    request.extensions_mut().insert(asked.identity);
    request
}

/// Whether a body asks for a new session.
fn is_initialize(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Probe<'a> {
        #[serde(borrow, default)]
        method: Cow<'a, str>,
    }
    serde_json::from_slice::<Probe<'_>>(body).is_ok_and(|probe| probe.method == "initialize")
}

fn too_many(limit: usize) -> Refusal {
    Refusal::new(
        ErrorCode::Overloaded,
        format!("{limit} MCP sessions are open, as many as may be."),
        "End sessions that are not used any more (DELETE /mcp with their Mcp-Session-Id), or come back later.",
    )
    .with("limit", json!(limit))
    .with("retry_after_ms", json!(30_000))
}

/// The answer of `rmcp` as this door gives it: streams end with the hub, and every no is a JSON body.
async fn respond(
    hub: &Arc<Hub>,
    response: http::Response<BoxBody<Bytes, Infallible>>,
    outlives: bool,
) -> Result<Response, Fault> {
    let (parts, body) = response.into_parts();
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        let pieces = BodyStream::new(body)
            .filter_map(|frame| async { frame.ok()?.into_data().ok().map(Ok::<Bytes, Infallible>) });
        // An answer on its way is let finish; a stream that waits for news is not.
        let hub = Arc::clone(hub);
        let end = async move { if outlives { closing(&hub).await } else { std::future::pending().await } };
        let mut response = warp::reply::stream(pieces.take_until(Box::pin(end))).into_response();
        *response.status_mut() = parts.status;
        response.headers_mut().extend(parts.headers);
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
        response.headers_mut().insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
        return Ok(response);
    }
    let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes);
    if parts.status.is_success() || kind.starts_with(reply::JSON) {
        let mut response = Response::new(body.into());
        *response.status_mut() = parts.status;
        *response.headers_mut() = parts.headers;
        return Ok(response);
    }
    let said = String::from_utf8_lossy(&body).into_owned();
    let mut fault = Fault::at(parts.status, said, advice(parts.status));
    if parts.headers.contains_key(ALLOW) {
        fault = fault.with_header(ALLOW, "GET, POST, DELETE");
    }
    Err(fault)
}

fn no_message() -> Fault {
    Fault::at(
        StatusCode::BAD_REQUEST,
        "The body is no JSON-RPC message.".to_owned(),
        "Send one JSON object with jsonrpc \"2.0\", a method, params, and for a request an id that is a text or an \
         integer.",
    )
}

/// What to do about a request that is no proper MCP.
fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => {
            "The session has ended, or is another Field's: begin a new one with initialize."
        }
        StatusCode::NOT_ACCEPTABLE => "Send Accept: application/json, text/event-stream.",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "Send Content-Type: application/json.",
        StatusCode::METHOD_NOT_ALLOWED => "Use POST; GET and DELETE belong to sessions.",
        status if status.is_server_error() => "Begin a new session with initialize, then repeat the call.",
        _ => {
            "Send one JSON-RPC message: initialize first, then others with the Mcp-Session-Id that it was answered \
              with."
        }
    }
}

/// A Field of this process, as MCP asks it.
pub struct Inside {
    /// The hub whose it is.
    pub hub: Arc<Hub>,
    /// Its name.
    pub field: String,
}

impl Inside {
    fn field(&self) -> Result<&Field, Refusal> {
        self.hub.field(Some(&self.field)).ok_or_else(|| {
            Refusal::new(ErrorCode::FieldNotFound, "The Field is not here any more.", "Begin a new session.")
        })
    }

    async fn submit(&self, call: Call, from: &Extensions) -> Result<Value, Refusal> {
        let field = self.field()?;
        check_id("agent_id", &call.agent_id)?;
        identity(from).may_speak_for(&call.agent_id)?;
        let payload = to_raw_value(&call.payload).map_err(|error| {
            Refusal::invalid("payload", format!("The arguments cannot be written: {error}."), "Send others.")
        })?;
        let id = call.message_id.unwrap_or_else(|| fresh_id("mcp"));
        let envelope = Envelope {
            id: Cow::Owned(id),
            operation: call.operation,
            agent_id: Cow::Owned(call.agent_id),
            session_id: call.session_id.map(Cow::Owned),
            epoch: 0,
            payload: &payload,
        };
        let message = field.read(&envelope);
        // From here on the operation happens, whether or not the client stays to hear of it.
        let answer = field.submit(message, None).await.await;
        let payload = answer.outcome?;
        serde_json::from_str(payload.get()).map_err(|error| {
            Refusal::new(
                ErrorCode::InternalError,
                format!("The answer cannot be read: {error}."),
                "Report this: it is a fault of the hub.",
            )
        })
    }

    async fn show(&self, sight: Sight, agent: Option<&str>, from: &Extensions) -> Result<String, Refusal> {
        let field = self.field()?;
        match sight {
            Sight::Status => Ok(Value::Object(figures(&self.hub, field).await?).to_string()),
            Sight::Conflicts => {
                let shown = print(field, |view| Ok(Some(view.conflicts(&[])))).await?;
                Ok(shown.unwrap_or_default())
            }
            Sight::Unit(id) => {
                if let Some(agent) = agent {
                    identity(from).may_speak_for(agent)?;
                }
                let (named, agent) = (id.clone(), agent.map(str::to_owned));
                let shown = print(field, move |view| view.unit(&named, agent.as_deref())).await?;
                shown.ok_or_else(|| no_unit(&id))
            }
        }
    }

    fn listen(&self) -> Result<Listening, Refusal> {
        let wish = Wish { events: Some(EventName::ALL.to_vec()), ..Wish::default() };
        let subscription = wish.applied("mcp".into(), None).ok_or_else(no_events)?;
        let outbox = self.field()?.stream(Listener::observer(Arc::new(subscription)), None, "after")?;
        Ok(Listening { hub: Arc::clone(&self.hub), outbox })
    }
}

fn no_events() -> Refusal {
    Refusal::new(
        ErrorCode::InternalError,
        "There is nothing to watch.",
        "Report this: it is a fault of the hub.",
    )
}

/// On whose behalf a request came, by this door's own word; what came by no door is believed.
fn identity(from: &Extensions) -> Identity {
    let parts = from.get::<http::request::Parts>();
    parts.and_then(|parts| parts.extensions.get::<Identity>()).cloned().unwrap_or(Identity::Anyone)
}

impl Backend for Inside {
    type Watch = Listening;

    async fn served(&self) -> Vec<Operation> {
        let Ok(field) = self.field() else { return Vec::new() };
        Operation::ALL.into_iter().filter(|operation| field.serves(*operation).is_ok()).collect()
    }

    async fn operate(&self, call: Call, from: &Extensions) -> Result<Value, Box<ErrorBody>> {
        let operation = call.operation;
        self.submit(call, from).await.map_err(|no| Box::new(no.body(Some(operation))))
    }

    async fn look(
        &self,
        sight: Sight,
        agent_id: Option<&str>,
        from: &Extensions,
    ) -> Result<String, Box<ErrorBody>> {
        self.show(sight, agent_id, from).await.map_err(|no| Box::new(no.body(None)))
    }

    async fn watch(&self) -> Result<Listening, Box<ErrorBody>> {
        self.listen().map_err(|no| Box::new(no.body(None)))
    }
}

/// Follows the Field's events; nothing queues up here for whoever is slow.
pub struct Listening {
    hub: Arc<Hub>,
    outbox: Outbox,
}

/// Events that are told of together.
const TOGETHER_MAX: usize = 256;

impl Watch for Listening {
    async fn next(&mut self) -> Option<Vec<Notification>> {
        let first = tokio::select! {
            biased;
            () = closing(&self.hub) => return None,
            push = self.outbox.next() => push?,
        };
        let mut told = Vec::new();
        let mut next = Some(first);
        while let Some(push) = next {
            told.extend(serde_json::from_str(&push.payload()));
            next = if told.len() < TOGETHER_MAX { self.outbox.ready() } else { None };
        }
        Some(told)
    }
}
