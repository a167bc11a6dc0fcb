//! From a request to its answer: warp takes the request apart, the table of endpoints says what it is for,
//! and every no becomes a JSON error body.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{CACHE_CONTROL, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::uri::Authority;
use http::{HeaderMap, Method, Request, StatusCode, Version};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use tower::{Service, ServiceBuilder};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tower_http::cors::{AllowOrigin, CorsLayer};
use warp::Filter;

use super::answers::Answers;
use super::body::Upload;
use super::guard::{Guard, Identity};
use super::mcp::{self, Mcp};
use super::paths::{Endpoint, Query, Target};
use super::reply::{self, Fault, Response};
use super::urls::Base;
use super::{dashboard, description, events, handshake, queries, rest};
use crate::hub::{Field, Hub, Listener};
use crate::limits::COMPRESS_MIN_BYTES;
use crate::protocol::{Cursor, ErrorCode, Refusal};

/// What all connections share.
pub struct Doors {
    /// The hub behind the doors.
    pub hub: Arc<Hub>,
    /// Who may come in.
    pub guard: Guard,
    /// How much may wait to be taken.
    pub answers: Answers,
    /// The sessions of MCP.
    pub mcp: Mcp,
}

/// What is known of a request beside what warp hands out; put into its extensions by the connection.
#[derive(Clone)]
pub struct Arrival {
    /// HTTP/1.0 or 1.1.
    pub version: Version,
    /// The host of a request target in absolute form.
    pub authority: Option<Authority>,
    /// Where a WebSocket handshake leaves word for the connection to go on as one.
    pub takeover: Takeover,
}

/// A WebSocket that was agreed on.
pub struct Agreed {
    /// Resolves to the raw connection once the response is out.
    pub upgrade: OnUpgrade,
    /// The Field it speaks to.
    pub field: String,
    /// On whose behalf it may speak.
    pub identity: Identity,
    /// How the hub was addressed.
    pub base: Base,
    /// What an observer is told over it, from which place on.
    pub watched: Option<(Listener, Option<Cursor>)>,
}

/// The place of one agreement.
#[derive(Clone, Default)]
pub struct Takeover(Arc<Mutex<Option<Agreed>>>);

impl Takeover {
    /// Leaves word.
    pub fn put(&self, agreed: Agreed) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(agreed);
    }

    /// Takes the word, if there is one.
    pub fn take(&self) -> Option<Agreed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A request, taken apart.
struct Call {
    method: Method,
    path: warp::path::FullPath,
    query: Query,
    headers: HeaderMap,
    upgrade: Option<OnUpgrade>,
    arrival: Option<Arrival>,
}

/// The service of all connections: the routes, with compression and CORS around them.
pub fn service(
    doors: Arc<Doors>,
) -> impl Service<
    Request<Incoming>,
    Response = http::Response<
        impl hyper::body::Body<Data = impl Send, Error = impl Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + 'static,
    >,
    Error = Infallible,
    Future: Send,
> + Clone
+ Send
+ Sync
+ 'static {
    let streams = NotForContentType::SSE;
    let compression =
        CompressionLayer::new().compress_when(SizeAbove::new(COMPRESS_MIN_BYTES.into()).and(streams));
    let cors = cors(&doors.hub.config().allowed_origins);
    ServiceBuilder::new().layer(compression).option_layer(cors).service(warp::service(routes(doors)))
}

/// CORS, where origins are configured.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    // As browsers write them.
    let written = |origin: &String| origin.trim_end_matches('/').to_ascii_lowercase();
    let origins = origins.iter().filter_map(|origin| HeaderValue::try_from(written(origin)).ok());
    let headers: [HeaderName; 11] = [
        mcp::SESSION,
        mcp::PROTOCOL_VERSION,
        mcp::METHOD,
        mcp::NAME,
        mcp::LAST_EVENT_ID,
        rest::AGENT,
        rest::SESSION,
        reply::EPOCH,
        rest::IDEMPOTENCY_KEY,
        http::header::CONTENT_TYPE,
        http::header::AUTHORIZATION,
    ];
    Some(
        CorsLayer::new()
            .allow_origin(AllowOrigin::list(origins))
            .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::DELETE])
            .allow_headers(headers)
            .expose_headers([reply::EPOCH, mcp::SESSION]),
    )
}

fn routes(
    doors: Arc<Doors>,
) -> impl Filter<Extract = (Response,), Error = warp::Rejection, Future: Send> + Clone + Send + Sync + 'static
{
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    warp::method()
        .and(warp::path::full())
        .and(query)
        .and(warp::header::headers_cloned())
        .and(warp::ext::optional::<OnUpgrade>())
        .and(warp::ext::optional::<Arrival>())
        .and(warp::body::stream())
        .then(move |method, path, query, headers, upgrade, arrival, body| {
            let upload = Upload::new(&headers, body);
            let query = Query::new(query);
            let call = Call { method, path, query, headers, upgrade, arrival };
            answer(Arc::clone(&doors), call, upload)
        })
}

/// Answers a request, whatever it is.
async fn answer(doors: Arc<Doors>, call: Call, mut upload: Upload) -> Response {
    let target = Target::parse(call.path.as_str());
    let operation = target.as_ref().and_then(|target| target.endpoint.operation());
    let mut response = match dispatch(&doors, &call, target.as_ref(), &mut upload).await {
        Ok(response) => response,
        Err(fault) => {
            upload.discard().await;
            let mut response = fault.of(operation).response();
            stamp(&doors, target.as_ref(), &mut response);
            response
        }
    };
    doors.hub.metrics().http_response(response.status().as_u16());
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A refused operation shows the Field's clock, like one that the Field itself refused.
fn stamp(doors: &Doors, target: Option<&Target>, response: &mut Response) {
    let Some(target) = target else { return };
    if !matches!(target.endpoint, Endpoint::Operation(_) | Endpoint::Messages) {
        return;
    }
    if let Some(field) = doors.hub.field(target.field.as_deref()) {
        response.headers_mut().insert(reply::EPOCH, HeaderValue::from(field.clock()));
    }
}

async fn dispatch(
    doors: &Doors,
    call: &Call,
    target: Option<&Target>,
    upload: &mut Upload,
) -> Result<Response, Fault> {
    let (hub, guard, headers) = (&doors.hub, &doors.guard, &call.headers);
    let arrival = call.arrival.as_ref().ok_or_else(unprepared)?;
    guard.check_host(arrival.version, headers, arrival.authority.as_ref())?;
    let target = target.ok_or_else(reply::unknown_path)?;
    let endpoint = &target.endpoint;
    if !endpoint.allows(&call.method) {
        return Err(reply::wrong_method(endpoint.allowed()));
    }
    match endpoint {
        Endpoint::Root => return Ok(dashboard::root(headers)),
        Endpoint::Asset(name) => return dashboard::asset(name, headers),
        Endpoint::Health => return Ok(queries::health()),
        Endpoint::Ready => return queries::ready(hub).await,
        Endpoint::Description => return Ok(description::whole(hub)),
        Endpoint::Schema(name) => return description::schema(name),
        Endpoint::Metrics => {
            let text = hub.metrics().render(hub, &doors.mcp.open().await).await;
            return Ok(reply::typed(StatusCode::OK, crate::hub::metrics::CONTENT_TYPE, text));
        }
        _ => {}
    }
    let changes = matches!(endpoint, Endpoint::Operation(_) | Endpoint::Messages);
    let stays = matches!(endpoint, Endpoint::WebSocket | Endpoint::Events | Endpoint::Mcp);
    if changes || stays || matches!(endpoint, Endpoint::Look(_)) {
        guard.check_origin(headers)?;
    }
    let identity = guard.identify(headers)?;
    let field = named_field(hub, target.field.as_deref())?;
    let base = || Base::new(headers, guard.port(), hub, field);
    match endpoint {
        Endpoint::Status => queries::status(hub, field).await,
        Endpoint::Capabilities => Ok(queries::capabilities(field)),
        Endpoint::Look(operation) => rest::look(hub, field, *operation, headers, upload).await,
        Endpoint::Agents => queries::agents(field).await,
        Endpoint::Conflicts => queries::conflicts(field, &call.query).await,
        Endpoint::Unit(id) => queries::unit(field, id, headers, &identity).await,
        Endpoint::Units => queries::units(field, &call.query, headers, &identity, &doors.answers).await,
        Endpoint::Log => queries::log(field, &call.query, &doors.answers).await,
        Endpoint::Events => events::events(doors, field, &call.query, headers, &identity).await,
        Endpoint::WebSocket => {
            let watched = events::watched(field, &call.query)?;
            let answer = handshake::accept(arrival.version, headers)?;
            let upgrade = call.upgrade.clone().ok_or_else(handshake::not_upgradable)?;
            let field = field.name().to_owned();
            arrival.takeover.put(Agreed { upgrade, field, identity, base: base(), watched });
            Ok(answer)
        }
        Endpoint::Mcp => {
            let asked = mcp::Asked { method: &call.method, headers, identity };
            doors.mcp.answer(hub, field, asked, upload).await
        }
        Endpoint::Operation(operation) => {
            rest::operate(hub, field, Some(*operation), &identity, headers, upload, base).await
        }
        _ => rest::operate(hub, field, None, &identity, headers, upload, base).await,
    }
}

fn named_field<'a>(hub: &'a Hub, name: Option<&str>) -> Result<&'a Field, Refusal> {
    hub.field(name).ok_or_else(|| {
        let shown: String = name.unwrap_or_default().chars().take(64).collect();
        let served: Vec<_> = hub.fields().iter().map(Field::name).collect();
        Refusal::new(
            ErrorCode::FieldNotFound,
            format!("This hub has no Field {shown:?}."),
            format!("Use one of its Fields: {}.", served.join(", ")),
        )
        .with("field", serde_json::json!(shown))
    })
}

fn unprepared() -> Refusal {
    Refusal::new(
        ErrorCode::InternalError,
        "The request came by a way that no door prepared.",
        "Report this: it is a fault of the hub.",
    )
}
