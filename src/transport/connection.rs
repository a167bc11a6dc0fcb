//! One connection, from accept to close: HTTP/1.1, and after a handshake the WebSocket, in the same task.

use std::convert::Infallible;
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response, Uri};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tower::{Service, ServiceExt};

use super::routes::{Arrival, Doors, Takeover};
use super::vigil::{Metered, Vigil};
use super::ws;
use crate::hub::Hub;
use crate::limits::HEADER_TIMEOUT_MS;

/// Largest request head, in bytes: ids, tokens and what browsers add fit many times.
const HEAD_MAX_BYTES: usize = 32 * 1024;

/// At shutdown, how long a connection on which nothing has been asked yet may take to ask.
const FRESH_MS: u64 = 200;

/// Attends to a connection until it ends; its slot is held as long.
pub async fn attend<S, B>(
    doors: Arc<Doors>,
    service: Arc<S>,
    tcp: TcpStream,
    _slot: Option<OwnedSemaphorePermit>,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let _open = doors.hub.metrics().connection_opened();
    let takeover = Takeover::default();
    // Boxed, so that a WebSocket does not carry HTTP's state along for the rest of its life.
    let tcp = Metered::new(tcp, Arc::default());
    Box::pin(http(&doors, service, tcp, takeover.clone())).await;
    let Some(mut agreed) = takeover.take() else { return };
    // Fulfilled already, or never: then the peer left during the handshake.
    let Ok(upgraded) = (&mut agreed.upgrade).await else { return };
    let Ok(parts) = upgraded.downcast::<TokioIo<Metered<TcpStream>>>() else { return };
    let tcp = parts.io.into_inner();
    Box::pin(ws::converse(&doors.hub, &agreed, tcp, parts.read_buf)).await;
}

/// Resolves when the hub shuts down.
pub async fn closing(hub: &Hub) {
    let mut closing = hub.sessions().closing();
    // An error would mean that there is no hub any more.
    let _ = closing.wait_for(|closing| *closing).await;
}

/// Stands for a target without a path; no endpoint.
const NO_PATH: &str = "/-";

/// Speaks HTTP until the connection ends or is agreed to become a WebSocket.
async fn http<S, B>(doors: &Doors, service: Arc<S>, tcp: Metered<TcpStream>, takeover: Takeover)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let asked = Arc::new(AtomicBool::new(false));
    let was_asked = Arc::clone(&asked);
    let service = service_fn(move |mut request: Request<Incoming>| {
        asked.store(true, Ordering::Relaxed);
        let arrival = Arrival {
            version: request.version(),
            authority: request.uri().authority().cloned(),
            takeover: takeover.clone(),
        };
        request.extensions_mut().insert(arrival);
        if !request.uri().path().starts_with(['/', '*']) {
            // A target without a path (`GET x`, CONNECT) names nothing here, and warp cannot take it apart.
            *request.uri_mut() = Uri::from_static(NO_PATH);
        }
        S::clone(&service).oneshot(request)
    });
    let pulse = tcp.pulse();
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(HEADER_TIMEOUT_MS))
        .max_buf_size(HEAD_MAX_BYTES)
        .serve_connection(TokioIo::new(tcp), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let mut vigil = Vigil::over_output(doors.hub.config().stall_max_ms);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = vigil.keep(&pulse) => {
            tracing::debug!("a client takes nothing of its response");
            return;
        }
        () = closing(&doors.hub) => {
            connection.as_mut().graceful_shutdown();
            // hyper waits for the first request of a connection that never had one.
            let fresh = !was_asked.load(Ordering::Relaxed);
            let first = if fresh { timeout(Duration::from_millis(FRESH_MS), connection.as_mut()).await.ok() } else { None };
            match first {
                Some(ended) => ended,
                None if fresh && !was_asked.load(Ordering::Relaxed) => return,
                None => connection.await,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended badly");
    }
}
