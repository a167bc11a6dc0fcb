//! The live sessions: every connection that is open, in one DashMap.
//!
//! It decides nothing (law 5): it serves counting, telling connections to close, and finding none left
//! behind. What a rule must know of connections reaches the Field's actor as commands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use tokio::sync::watch;

/// Names an open connection for the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Through which door a connection came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Door {
    /// A WebSocket.
    WebSocket,
    /// A stream of Server-Sent Events.
    Events,
}

impl Door {
    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::Events => "events",
        }
    }
}

/// What is known of an open connection.
#[derive(Debug, Clone)]
struct Entry {
    door: Door,
    field: Arc<str>,
}

/// All live sessions of a hub.
#[derive(Debug)]
pub struct Sessions {
    open: DashMap<ConnectionId, Entry>,
    next: AtomicU64,
    closing: watch::Sender<bool>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self { open: DashMap::new(), next: AtomicU64::new(1), closing: watch::Sender::new(false) }
    }
}

impl Sessions {
    /// Enters a connection; it leaves when the returned guard is dropped.
    pub fn open(self: &Arc<Self>, door: Door, field: &str) -> LiveSession {
        let id = ConnectionId(self.next.fetch_add(1, Ordering::Relaxed));
        self.open.insert(id, Entry { door, field: field.into() });
        LiveSession { id, sessions: Arc::clone(self) }
    }

    /// How many connections are open, in all.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no connection is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// How many connections to a Field are open through a door.
    pub fn count(&self, door: Door, field: &str) -> usize {
        self.open.iter().filter(|e| e.door == door && &*e.field == field).count()
    }

    /// Tells every connection, now and later, that the hub shuts down.
    pub fn close_all(&self) {
        self.closing.send_replace(true);
    }

    /// Becomes true when the hub shuts down.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }
}

/// A live session's entry in the map; dropping it takes the entry out.
#[derive(Debug)]
pub struct LiveSession {
    id: ConnectionId,
    sessions: Arc<Sessions>,
}

impl LiveSession {
    /// The connection's name.
    pub fn id(&self) -> ConnectionId {
        self.id
    }
}

impl Drop for LiveSession {
    fn drop(&mut self) {
        self.sessions.open.remove(&self.id);
    }
}
