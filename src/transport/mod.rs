//! The doors: how operations come in over HTTP and WebSocket, and how answers go out.
//!
//! Doors are thin (law 8): they read, call the hub and print. In reading order: [`serve`] accepts
//! connections; `connection` speaks HTTP on one and hands it over to `ws` after a handshake; `routes` takes a
//! request apart and says which endpoint it is for (`paths`); `rest` are the operations, `queries` the GET
//! endpoints, `events` the streams and polls, `mcp` the sessions of language models' clients; `dashboard` is the page
//! for browsers; `description` what all of these take and give; `guard` says who may come in; `reply` is the one table
//! from refusals to statuses.
//!
//! A connection is one task from its first byte to its last, WebSocket included. [`serve`] owns all of these
//! tasks and has seen each of them end when it returns.

mod answers;
mod body;
mod connection;
mod dashboard;
mod description;
mod events;
mod farewell;
mod guard;
mod handshake;
mod mcp;
mod paths;
mod queries;
mod reply;
mod rest;
mod routes;
mod urls;
mod vigil;
mod ws;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use self::answers::Answers;
use self::guard::Guard;
use self::mcp::Mcp;
use self::routes::Doors;
use crate::hub::Hub;
use crate::limits::DRAIN_MS;

pub(crate) use self::mcp::Inside;

/// How long accepting pauses when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves the hub on a listening socket until `shutdown` resolves; then stops accepting, lets connections
/// answer what is in flight, at most `limits::DRAIN_MS`, and returns when the last one has ended.
///
/// # Errors
/// When the listener has no address: it is no listening socket. Whatever a client does is no error.
pub async fn serve(
    hub: Arc<Hub>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let guard = Guard::new(hub.config(), listener.local_addr()?.port());
    let mcp = Mcp::new(&hub);
    let doors = Arc::new(Doors { hub: Arc::clone(&hub), guard, answers: Answers::default(), mcp });
    let service = Arc::new(routes::service(Arc::clone(&doors)));
    // Slots bound the open connections: without one, nothing more is accepted, and the kernel's backlog
    // and the clients wait.
    let slots = Arc::new(Semaphore::new(hub.config().connections_max.clamp(1, Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => note(ended),
            (slot, tcp) = next(&slots, &listener) => {
                connections.spawn(connection::attend(Arc::clone(&doors), Arc::clone(&service), tcp, slot));
            }
        }
    }
    drop(listener);
    hub.wind_down();
    hub.sessions().close_all();
    let drained = timeout(Duration::from_millis(DRAIN_MS), async {
        while let Some(ended) = connections.join_next().await {
            note(ended);
        }
    });
    if drained.await.is_err() {
        tracing::warn!(open = connections.len(), "connections were still busy when the drain time was over");
        connections.shutdown().await;
    }
    doors.mcp.close().await;
    Ok(())
}

/// The next connection and its slot. Dropping this future loses neither.
async fn next(slots: &Arc<Semaphore>, listener: &TcpListener) -> (Option<OwnedSemaphorePermit>, TcpStream) {
    // The semaphore is never closed, so there always is a slot in the end.
    let slot = Arc::clone(slots).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => {
                // Small messages must not wait for the peer's acknowledgement of earlier ones.
                let _ = tcp.set_nodelay(true);
                return (slot, tcp);
            }
            Err(error) if is_the_peers(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections at the moment");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether accepting failed because that one peer has gone already.
fn is_the_peers(error: &io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

fn note(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection's task panicked");
    }
}
