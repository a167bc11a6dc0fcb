//! The validated configuration of a hub: what flags, environment and file come down to (wire, section 5).

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::field::Audit;
use crate::limits;
use crate::protocol::Limits;

/// An embedding model outside of the hub.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmbeddingSettings {
    /// Where it is asked: `http://host:port/path`, or `https://`; without a path, `/v1/embeddings`.
    pub url: String,
    /// What it is called there.
    pub model: String,
    /// Values of a direction; asked of the model at the start where this is not set.
    pub dimensions: Option<usize>,
    /// Sent as a bearer token.
    pub key: Option<String>,
    /// PEM file of certificates that are trusted beside those that the machine trusts, for `https://`.
    pub ca_file: Option<PathBuf>,
    /// How long an answer may take, milliseconds.
    pub timeout_ms: u64,
}

/// A language model outside of the hub that writes the syntheses of COMPACT.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SummarySettings {
    /// Where it is asked: `http://host:port/path`, or `https://`; without a path, `/v1/chat/completions`.
    pub url: String,
    /// What it is called there.
    pub model: String,
    /// Sent as a bearer token.
    pub key: Option<String>,
    /// PEM file of certificates that are trusted beside those that the machine trusts, for `https://`.
    pub ca_file: Option<PathBuf>,
    /// How long an answer may take, milliseconds.
    pub timeout_ms: u64,
    /// How long all answers for one COMPACT may take, milliseconds.
    pub total_ms: u64,
}

/// Everything an operator can set, checked. Made from the command line by `cli`, or by hand in tests.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where to listen; port 0 means any free one.
    pub listen: SocketAddr,
    /// The data directory, made when absent.
    pub data: PathBuf,
    /// Names of the Fields; the first is the one under `/v1/…`. Never empty.
    pub fields: Vec<String>,
    /// The highest conformance level to serve, 0..=3; what the hub cannot do it does not serve anyway.
    pub level: u8,
    /// Allows an address that is not loopback without tokens.
    pub insecure: bool,
    /// Shows drafts to every agent (section 3, drafts).
    pub shared_drafts: bool,
    /// Lets meaning and nearness in a session count in relevance (section 8), where the level allows it.
    pub meaning: bool,
    /// The embedding model; without one the built-in model.
    pub embedding: Option<EmbeddingSettings>,
    /// The language model that writes syntheses; without one they quote their originals.
    pub summary: Option<SummarySettings>,
    /// How long looking for contradictions may hold up a RECORD, milliseconds; 0 turns automatic detection off
    /// (section 7).
    pub detection_budget_ms: u64,
    /// Which ATTUNEs are noted in the log, so that REPLAY of a decision tells what its author knew (section 7).
    pub audit_reads: Audit,
    /// How long an agent whose connection dropped may take to return, milliseconds (section 4).
    pub grace_ms: u64,
    /// The bounds that clients can meet.
    pub limits: Limits,
    /// Origins that browsers may call from, besides the hub's own; empty turns CORS off.
    pub allowed_origins: Vec<String>,
    /// Host names under which the hub may be reached, besides loopback names and plain addresses.
    pub allowed_hosts: Vec<String>,
    /// How often a WebSocket peer is pinged, milliseconds.
    pub heartbeat_ms: u64,
    /// How long nothing may be heard from a WebSocket peer, milliseconds.
    pub silence_max_ms: u64,
    /// How long a peer may take no bytes while output is pending, milliseconds.
    pub stall_max_ms: u64,
    /// Most open connections.
    pub connections_max: usize,
    /// Most MCP sessions of one Field.
    pub mcp_sessions_max: usize,
    /// How long nothing may happen in an MCP session, milliseconds.
    pub mcp_idle_ms: u64,
    /// Largest size of each Field's log file, bytes (its journal comes on top); nothing means as much as the
    /// disk holds.
    pub max_log_bytes: Option<u64>,
    /// Entries after which a snapshot of each Field's state is written; 0 is never.
    pub snapshot_entries: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7420)),
            data: PathBuf::from("./akashik-data"),
            fields: vec!["default".to_owned()],
            level: 3,
            insecure: false,
            shared_drafts: false,
            meaning: true,
            embedding: None,
            summary: None,
            detection_budget_ms: limits::DETECTION_BUDGET_MS,
            audit_reads: Audit::Delivered,
            grace_ms: limits::GRACE_MS,
            limits: Limits::default(),
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            heartbeat_ms: limits::HEARTBEAT_MS,
            silence_max_ms: limits::SILENCE_MAX_MS,
            stall_max_ms: limits::STALL_MAX_MS,
            connections_max: limits::CONNECTIONS_MAX,
            mcp_sessions_max: limits::MCP_SESSIONS_MAX,
            mcp_idle_ms: limits::MCP_IDLE_MS,
            max_log_bytes: None,
            snapshot_entries: limits::SNAPSHOT_ENTRIES,
        }
    }
}

/// The conformance level from which a Field looks for contradictions by itself (section 10).
const DETECTION_LEVEL: u8 = 2;

impl Config {
    /// Whether units are compared with the Field when they are committed.
    pub fn detects(&self) -> bool {
        self.level >= DETECTION_LEVEL && self.detection_budget_ms > 0
    }
}
