//! What the hub counts, and its Prometheus text.
//!
//! The registry belongs to one hub, so that several can run in one process. What is counted on the way of
//! an operation is resolved beforehand: a count costs an index and an atomic addition, no lock and no
//! allocation. Gauges are set when somebody asks.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;

use super::{Door, Field, Hub};
use crate::protocol::Operation;

/// The content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

/// The outcome of an operation that was not refused.
pub const OK: &str = "ok";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    field: String,
    operation: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FieldLabels {
    field: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UnitLabels {
    field: String,
    status: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DoorLabels {
    door: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabels {
    class: &'static str,
}

type UnsignedGauge = Gauge<u64, AtomicU64>;
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// 10 µs to 5 s.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(10e-6, 2.5, 15))
}

/// 1 to 4,096.
fn sizes() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 13))
}

/// One Field's handles, resolved.
#[derive(Debug)]
struct FieldHandles {
    name: Box<str>,
    ok: [OnceLock<Counter>; Operation::ALL.len()],
    commit_entries: Histogram,
    commit_seconds: Histogram,
}

/// Everything a hub counts.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    fields: Vec<FieldHandles>,
    operations: Family<OperationLabels, Counter>,
    http_seconds: Histogram,
    websocket_seconds: Histogram,
    notifications_websocket: Counter,
    notifications_events: Counter,
    /// By the first digit of the status, from 1.
    responses: [Counter; 5],
    open: Arc<()>,
    scraped: Mutex<Scraped>,
}

/// What is set when somebody asks.
#[derive(Debug, Default)]
struct Scraped {
    connections: Family<DoorLabels, UnsignedGauge>,
    mcp_sessions: Family<FieldLabels, UnsignedGauge>,
    units: Family<UnitLabels, UnsignedGauge>,
    entries: Family<FieldLabels, UnsignedGauge>,
    bytes: Family<FieldLabels, UnsignedGauge>,
    clock: Family<FieldLabels, UnsignedGauge>,
    backlog: Family<FieldLabels, UnsignedGauge>,
    uptime: UnsignedGauge,
    memory: UnsignedGauge,
}

/// An open connection, counted until it is dropped.
#[derive(Debug)]
pub struct OpenConnection(#[expect(dead_code, reason = "its being alive is what counts")] Arc<()>);

impl Metrics {
    /// The metrics of a hub with Fields of these names.
    pub fn new<'a>(fields: impl IntoIterator<Item = &'a str>) -> Self {
        let mut registry = Registry::with_prefix("akashik");
        let operations = Family::default();
        registry.register("operations", "Operations answered, by outcome", operations.clone());
        let by_door = Histograms::<DoorLabels>::new_with_constructor(seconds);
        let help = "From a message's arrival to its answer, durable";
        registry.register_with_unit("operation", help, Unit::Seconds, by_door.clone());
        let entries = Histograms::<FieldLabels>::new_with_constructor(sizes);
        registry.register("commit_entries", "Log entries made durable together", entries.clone());
        let commits = Histograms::<FieldLabels>::new_with_constructor(seconds);
        registry.register_with_unit(
            "commit",
            "Time of one commit of the log",
            Unit::Seconds,
            commits.clone(),
        );
        let responses = Family::<ClassLabels, Counter>::default();
        registry.register("http_responses", "HTTP responses, by class of status", responses.clone());
        let notifications = Family::<DoorLabels, Counter>::default();
        registry.register("notifications", "Notifications sent, by door", notifications.clone());
        let notified = |door: Door| notifications.get_or_create_owned(&DoorLabels { door: door.name() });
        let (notifications_websocket, notifications_events) =
            (notified(Door::WebSocket), notified(Door::Events));
        let scraped = Scraped::default();
        registry.register("connections", "Open connections", scraped.connections.clone());
        registry.register("mcp_sessions", "MCP sessions over HTTP", scraped.mcp_sessions.clone());
        registry.register("units", "Memory units, by status", scraped.units.clone());
        registry.register("log_entries", "Entries of the log", scraped.entries.clone());
        registry.register_with_unit("log", "Size of the log", Unit::Bytes, scraped.bytes.clone());
        let help = "Units that are still to be compared with the Field";
        registry.register("detection_backlog", help, scraped.backlog.clone());
        registry.register("clock", "The Field's epoch", scraped.clock.clone());
        registry.register_with_unit(
            "uptime",
            "Time since the hub started",
            Unit::Seconds,
            scraped.uptime.clone(),
        );
        if resident_bytes().is_some() {
            let help = "Memory of the hub's process that is resident";
            registry.register_with_unit("memory", help, Unit::Bytes, scraped.memory.clone());
        }
        let handles = |name: &str| {
            let labels = FieldLabels { field: name.to_owned() };
            FieldHandles {
                name: name.into(),
                ok: Default::default(),
                commit_entries: entries.get_or_create_owned(&labels),
                commit_seconds: commits.get_or_create_owned(&labels),
            }
        };
        let class = |class| responses.get_or_create_owned(&ClassLabels { class });
        Self {
            fields: fields.into_iter().map(handles).collect(),
            operations,
            http_seconds: by_door.get_or_create_owned(&DoorLabels { door: "http" }),
            websocket_seconds: by_door.get_or_create_owned(&DoorLabels { door: "websocket" }),
            notifications_websocket,
            notifications_events,
            responses: ["1xx", "2xx", "3xx", "4xx", "5xx"].map(class),
            open: Arc::new(()),
            scraped: Mutex::new(scraped),
            registry,
        }
    }

    /// Counts an answered operation. `outcome` is [`OK`] or the name of the refusal's code.
    pub fn operation(&self, field: &str, operation: Operation, outcome: &'static str) {
        let count = || {
            let labels = OperationLabels { field: field.to_owned(), operation: operation.name(), outcome };
            self.operations.get_or_create_owned(&labels)
        };
        match self.handles(field) {
            Some(handles) if outcome == OK => handles.ok[operation as usize].get_or_init(count).inc(),
            // Refusals are rarer, and looking up their labels is still far below a microsecond.
            _ => count().inc(),
        };
    }

    /// Counts a commit of the log: how many entries it made durable, and how long that took.
    pub fn commit(&self, field: &str, entries: usize, seconds: f64) {
        if let Some(handles) = self.handles(field) {
            handles.commit_entries.observe(entries as f64);
            handles.commit_seconds.observe(seconds);
        }
    }

    /// A hub has few Fields: looking along the list is faster than hashing.
    fn handles(&self, field: &str) -> Option<&FieldHandles> {
        self.fields.iter().find(|handles| &*handles.name == field)
    }

    /// Counts the time of an operation that came over HTTP.
    pub fn answered_http(&self, took: Duration) {
        self.http_seconds.observe(took.as_secs_f64());
    }

    /// Counts the time of an operation that came over a WebSocket.
    pub fn answered_websocket(&self, took: Duration) {
        self.websocket_seconds.observe(took.as_secs_f64());
    }

    /// Counts a notification.
    pub fn notified(&self, door: Door) {
        match door {
            Door::WebSocket => self.notifications_websocket.inc(),
            Door::Events => self.notifications_events.inc(),
        };
    }

    /// Counts an HTTP response.
    pub fn http_response(&self, status: u16) {
        let class = usize::from(status / 100).wrapping_sub(1);
        if let Some(counter) = self.responses.get(class) {
            counter.inc();
        }
    }

    /// Counts an open connection, of whatever kind, until the returned guard is dropped.
    pub fn connection_opened(&self) -> OpenConnection {
        OpenConnection(Arc::clone(&self.open))
    }

    /// The Prometheus text of everything, the gauges as they are now. The door counts the MCP sessions of each Field.
    pub async fn render(&self, hub: &Hub, mcp_sessions: &[(&str, usize)]) -> String {
        let mut logs = Vec::new();
        for field in hub.fields() {
            // A log that cannot be read shows no figures; the rest is still worth showing.
            logs.push((field, field.log_stat().await.ok()));
        }
        // Held while printing, so that two who ask at once do not mix their figures.
        let scraped = self.scraped.lock().unwrap_or_else(PoisonError::into_inner);
        scraped.units.clear();
        for &(field, count) in mcp_sessions {
            let labels = FieldLabels { field: field.to_owned() };
            scraped.mcp_sessions.get_or_create(&labels).set(count as u64);
        }
        let (mut websockets, mut events) = (0, 0);
        for (field, log) in logs {
            websockets += hub.sessions().count(Door::WebSocket, field.name());
            events += hub.sessions().count(Door::Events, field.name());
            let labels = FieldLabels { field: field.name().to_owned() };
            scraped.clock.get_or_create(&labels).set(field.clock());
            let backlog = field.view().status().get("detection_backlog").and_then(Value::as_u64).unwrap_or(0);
            scraped.backlog.get_or_create(&labels).set(backlog);
            if let Some(log) = log {
                scraped.entries.get_or_create(&labels).set(log.entries);
                scraped.bytes.get_or_create(&labels).set(log.bytes);
            }
            set_units(&scraped.units, field);
        }
        let sockets = (Arc::strong_count(&self.open) - 1).saturating_sub(websockets + events);
        for (door, count) in [("http", sockets), ("websocket", websockets), ("events", events)] {
            scraped.connections.get_or_create(&DoorLabels { door }).set(count as u64);
        }
        scraped.uptime.set(hub.uptime_ms() / 1_000);
        scraped.memory.set(resident_bytes().unwrap_or_default());
        self.text()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(_) => String::new(),
        }
    }
}

/// What the process holds in memory, where the system tells.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1_024)
}

/// The counts of units, from the Field's own status.
fn set_units(units: &Family<UnitLabels, UnsignedGauge>, field: &Field) {
    let status = field.view().status();
    let Some(Value::Object(counts)) = status.get("units") else { return };
    for (status, count) in counts {
        if let Some(count) = count.as_u64() {
            let labels = UnitLabels { field: field.name().to_owned(), status: status.clone() };
            units.get_or_create(&labels).set(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_show_in_the_text() {
        let metrics = Metrics::new(["default", "team"]);
        metrics.operation("default", Operation::Record, OK);
        metrics.operation("default", Operation::Record, OK);
        metrics.operation("team", Operation::Attune, "INVALID_MESSAGE");
        metrics.commit("default", 128, 0.002);
        metrics.answered_websocket(Duration::from_micros(300));
        metrics.http_response(404);
        metrics.http_response(999);
        let text = metrics.text();
        for line in [
            "akashik_operations_total{field=\"default\",operation=\"RECORD\",outcome=\"ok\"} 2",
            "akashik_operations_total{field=\"team\",operation=\"ATTUNE\",outcome=\"INVALID_MESSAGE\"} 1",
            "akashik_commit_entries_sum{field=\"default\"} 128",
            "akashik_commit_seconds_count{field=\"default\"} 1",
            "akashik_operation_seconds_count{door=\"websocket\"} 1",
            "akashik_http_responses_total{class=\"4xx\"} 1",
        ] {
            assert!(text.lines().any(|found| found.starts_with(line)), "{line}\nis not in\n{text}");
        }
    }

    #[test]
    fn operations_index_their_own_counters() {
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, index);
        }
    }

    #[test]
    fn an_open_connection_counts_until_it_is_dropped() {
        let metrics = Metrics::new([]);
        let open = metrics.connection_opened();
        assert_eq!(Arc::strong_count(&metrics.open), 2);
        drop(open);
        assert_eq!(Arc::strong_count(&metrics.open), 1);
    }
}
