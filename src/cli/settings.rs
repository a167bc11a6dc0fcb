//! Flags, environment and file, merged into one validated [`Config`].
//!
//! [`Settings`] is the one table: each field is a flag, an environment variable and a TOML key. clap puts
//! flags before environment; [`Settings::or`] puts both before the file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::exit::Failure;
use super::logging::LogFormat;
use crate::client::is_field_name;
use crate::config::Config;
use crate::hub::Audit;
use crate::limits::{EPOCH_CEILING, QUEUE_PATIENCE_MS, REPLY_MAX_BYTES, VOTE_QUORUM_MAX};
use crate::protocol::Limits;

/// Who sees drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drafts {
    /// Their authors alone.
    Private,
    /// Every agent.
    Shared,
}

/// Which ATTUNEs are noted in the log. What was yes and no before there was a choice still means all and none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditReads {
    /// None.
    #[value(aliases = ["false", "no", "0"])]
    Off,
    /// Those that showed what units say, noted behind the answer, which never waits.
    Delivered,
    /// Every one that was answered, also with nothing; the answer leaves once it is noted.
    #[value(aliases = ["true", "yes", "on", "1"])]
    All,
}

impl<'de> Deserialize<'de> for AuditReads {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let said = match toml::Value::deserialize(from)? {
            toml::Value::String(name) => name,
            other => other.to_string(),
        };
        Self::from_str(&said, false)
            .map_err(|_| serde::de::Error::custom("audit_reads must be \"off\", \"delivered\" or \"all\""))
    }
}

impl From<AuditReads> for Audit {
    fn from(said: AuditReads) -> Self {
        match said {
            AuditReads::Off => Self::Off,
            AuditReads::Delivered => Self::Delivered,
            AuditReads::All => Self::All,
        }
    }
}

impl From<Audit> for AuditReads {
    fn from(audit: Audit) -> Self {
        match audit {
            Audit::Off => Self::Off,
            Audit::Delivered => Self::Delivered,
            Audit::All => Self::All,
        }
    }
}

/// Defines [`Settings`] together with its merge, so that no field can be forgotten.
macro_rules! settings {
    ($($(#[$meta:meta])* $name:ident: $type:ty,)+) => {
        /// Everything that can be set for `akashik serve`, as far as it was said.
        #[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Settings {
            $($(#[$meta])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $name: Option<$type>,)+

            /// Configuration file (TOML); its keys are the flags' names with '_' for '-'
            #[arg(long, env = "AKASHIK_CONFIG", value_name = "FILE")]
            #[serde(skip)]
            pub config: Option<PathBuf>,
            /// Print the effective configuration as TOML and exit
            #[arg(long)]
            #[serde(skip)]
            pub print_config: bool,
            /// The same as --drafts shared
            #[arg(long, conflicts_with = "drafts")]
            #[serde(skip)]
            pub shared_drafts: bool,
            /// The same as --meaning=false
            #[arg(long, conflicts_with = "meaning")]
            #[serde(skip)]
            pub no_meaning: bool,
        }

        impl Settings {
            /// What is said here, else what is said there.
            fn or(self, file: Self) -> Self {
                Self {
                    $($name: self.$name.or(file.$name),)+
                    config: self.config,
                    print_config: self.print_config,
                    shared_drafts: self.shared_drafts,
                    no_meaning: self.no_meaning,
                }
            }
        }
    };
}

settings! {
    /// Address to listen on; port 0 means any free one [default: 127.0.0.1:7420]
    #[arg(long, env = "AKASHIK_LISTEN", value_name = "ADDR:PORT")]
    listen: String,
    /// Data directory, made when absent [default: ./akashik-data]
    #[arg(long, env = "AKASHIK_DATA", value_name = "DIR")]
    data: PathBuf,
    /// A Field to serve; repeat it for more, the first one is under /v1/ [default: default]
    #[arg(long, env = "AKASHIK_FIELD", value_name = "NAME", value_delimiter = ',')]
    field: Vec<String>,
    /// Highest conformance level to serve, 0 to 3 [default: 3]
    #[arg(long, env = "AKASHIK_LEVEL", value_name = "0..3")]
    level: u8,
    /// Tokens file (not served yet)
    #[arg(long, env = "AKASHIK_TOKENS", value_name = "FILE")]
    tokens: PathBuf,
    /// Allow an address that is not loopback without tokens
    #[arg(
        long, env = "AKASHIK_INSECURE", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = BoolishValueParser::new(),
    )]
    insecure: bool,
    /// Who sees drafts [default: private]
    #[arg(long, env = "AKASHIK_DRAFTS")]
    drafts: Drafts,
    /// Let meaning count in relevance, at level 2 and above: finds what shares no word with the need [default: true]
    #[arg(
        long, env = "AKASHIK_MEANING", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = BoolishValueParser::new(),
    )]
    meaning: bool,
    /// An embedding model outside: an OpenAI-compatible endpoint, http:// or https://; its key is read from AKASHIK_EMBEDDING_KEY [default: the built-in model]
    #[arg(long, env = "AKASHIK_EMBEDDING_URL", value_name = "URL")]
    embedding_url: String,
    /// What the model is called there
    #[arg(long, env = "AKASHIK_EMBEDDING_MODEL", value_name = "NAME")]
    embedding_model: String,
    /// Dimensions of its embeddings [default: what it answers at the start]
    #[arg(long, env = "AKASHIK_EMBEDDING_DIMENSIONS", value_name = "COUNT")]
    embedding_dimensions: usize,
    /// Certificates in PEM form to trust beside those that this machine trusts
    #[arg(long, env = "AKASHIK_EMBEDDING_CA_FILE", value_name = "FILE")]
    embedding_ca_file: PathBuf,
    /// How long its answer may take; then the unit is recorded without, and embedded later [default: 2]
    #[arg(long, env = "AKASHIK_EMBEDDING_TIMEOUT_SECONDS", value_name = "SECONDS")]
    embedding_timeout_seconds: f64,
    /// A language model outside writes the syntheses of COMPACT: an OpenAI-compatible endpoint, http:// or https://; its key is read from AKASHIK_SUMMARY_KEY [default: they quote their originals]
    #[arg(long, env = "AKASHIK_SUMMARY_URL", value_name = "URL")]
    summary_url: String,
    /// What the model is called there
    #[arg(long, env = "AKASHIK_SUMMARY_MODEL", value_name = "NAME")]
    summary_model: String,
    /// Certificates in PEM form to trust beside those that this machine trusts
    #[arg(long, env = "AKASHIK_SUMMARY_CA_FILE", value_name = "FILE")]
    summary_ca_file: PathBuf,
    /// How long its answer for one synthesis may take; then that one quotes its originals [default: 10]
    #[arg(long, env = "AKASHIK_SUMMARY_TIMEOUT_SECONDS", value_name = "SECONDS")]
    summary_timeout_seconds: f64,
    /// How long its answers for all syntheses of a COMPACT may take [default: 20]
    #[arg(long, env = "AKASHIK_SUMMARY_TOTAL_SECONDS", value_name = "SECONDS")]
    summary_total_seconds: f64,
    /// How long looking for contradictions may hold up a RECORD; what takes longer is compared behind, 0 turns it off [default: 50]
    #[arg(long, env = "AKASHIK_DETECTION_BUDGET_MS", value_name = "MS")]
    detection_budget_ms: u64,
    /// Log what ATTUNEs showed, for REPLAY of decisions; alone it means all [default: delivered]
    #[arg(
        long, env = "AKASHIK_AUDIT_READS", num_args = 0..=1, default_missing_value = "all",
    )]
    audit_reads: AuditReads,
    /// How long an agent whose connection dropped may take to return [default: 30]
    #[arg(long, env = "AKASHIK_GRACE_SECONDS", value_name = "SECONDS")]
    grace_seconds: f64,
    /// How often a WebSocket peer is pinged [default: 20]
    #[arg(long, env = "AKASHIK_HEARTBEAT_SECONDS", value_name = "SECONDS")]
    heartbeat_seconds: f64,
    /// How long nothing may be heard from a WebSocket peer [default: 60]
    #[arg(long, env = "AKASHIK_SILENCE_SECONDS", value_name = "SECONDS")]
    silence_seconds: f64,
    /// How long a peer may take nothing of what waits for it [default: 30]
    #[arg(long, env = "AKASHIK_STALL_SECONDS", value_name = "SECONDS")]
    stall_seconds: f64,
    /// Most open connections [default: 16384]
    #[arg(long, env = "AKASHIK_CONNECTIONS_MAX", value_name = "COUNT")]
    connections_max: usize,
    /// Most MCP sessions of one Field [default: 1024]
    #[arg(long, env = "AKASHIK_MCP_SESSIONS_MAX", value_name = "COUNT")]
    mcp_sessions_max: usize,
    /// How long nothing may happen in an MCP session before it ends [default: 14400]
    #[arg(long, env = "AKASHIK_MCP_IDLE_SECONDS", value_name = "SECONDS")]
    mcp_idle_seconds: f64,
    /// Largest size of each Field's log file; its journal, usually 8 MiB, comes on top [default: as much as the disk holds]
    #[arg(long, env = "AKASHIK_MAX_LOG_BYTES", value_name = "BYTES")]
    max_log_bytes: u64,
    /// Write a snapshot of each Field's state after so many log entries, so that the hub starts sooner; 0 writes none [default: 100000]
    #[arg(long, env = "AKASHIK_SNAPSHOT_ENTRIES", value_name = "COUNT")]
    snapshot_entries: u64,
    /// An origin that browsers may call from; repeat it for more
    #[arg(long, env = "AKASHIK_ALLOW_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    allow_origin: Vec<String>,
    /// A host name under which the hub may be reached; repeat it for more
    #[arg(long, env = "AKASHIK_ALLOW_HOST", value_name = "HOST", value_delimiter = ',')]
    allow_host: Vec<String>,
    /// Largest message in, HTTP or WebSocket [default: 1048576]
    #[arg(long, env = "AKASHIK_MESSAGE_MAX_BYTES", value_name = "BYTES")]
    message_max_bytes: usize,
    /// Longest content of a unit [default: 262144]
    #[arg(long, env = "AKASHIK_CONTENT_MAX_BYTES", value_name = "BYTES")]
    content_max_bytes: usize,
    /// Most relations of a unit [default: 64]
    #[arg(long, env = "AKASHIK_RELATIONS_MAX", value_name = "COUNT")]
    relations_max: usize,
    /// Most evidence items of a unit [default: 64]
    #[arg(long, env = "AKASHIK_EVIDENCE_MAX", value_name = "COUNT")]
    evidence_max: usize,
    /// Most assumptions of a unit [default: 64]
    #[arg(long, env = "AKASHIK_ASSUMPTIONS_MAX", value_name = "COUNT")]
    assumptions_max: usize,
    /// Most events of a REPLAY response [default: 10000]
    #[arg(long, env = "AKASHIK_REPLAY_MAX_EVENTS", value_name = "COUNT")]
    replay_max_events: usize,
    /// Largest REPLAY response [default: 8388608]
    #[arg(long, env = "AKASHIK_REPLAY_MAX_BYTES", value_name = "BYTES")]
    replay_max_bytes: usize,
    /// How far a message's epoch may be ahead of the Field's clock [default: 1000000]
    #[arg(long, env = "AKASHIK_EPOCH_LEAD", value_name = "EPOCHS")]
    epoch_lead: u64,
    /// Ballots of a full vote on a conflict; more than half of them decide it [default: 3]
    #[arg(long, env = "AKASHIK_VOTE_QUORUM", value_name = "COUNT")]
    vote_quorum: usize,
    /// How log lines look, on stderr [default: text]
    #[arg(long, env = "AKASHIK_LOG_FORMAT")]
    log_format: LogFormat,
    /// Which log lines are written, in tracing's directives [default: info]
    #[arg(long, env = "AKASHIK_LOG_FILTER", value_name = "DIRECTIVES")]
    log_filter: String,
}

/// What `serve` runs with.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// The hub's configuration.
    pub config: Config,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written.
    pub log_filter: String,
}

impl Settings {
    /// Reads the file that was named, if any, merges and validates.
    pub(super) fn resolve(self) -> Result<Effective, Failure> {
        let file = self.config.as_deref().map_or_else(|| Ok(Self::default()), Self::read)?;
        let mut merged = self.or(file);
        if merged.shared_drafts {
            merged.drafts = Some(Drafts::Shared);
        }
        if merged.no_meaning {
            merged.meaning = Some(false);
        }
        merged.validate().map_err(Failure::Usage)
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::usage(format!("cannot read the configuration file {shown}: {error}"))
        })?;
        toml::from_str(&text)
            .map_err(|error| Failure::usage(format!("the configuration file {shown} is wrong: {error}")))
    }

    /// Fills in the defaults and checks every bound.
    fn validate(self) -> Result<Effective, String> {
        let default = Config::default();
        if self.tokens.is_some() {
            return Err("tokens are not served yet: leave --tokens (AKASHIK_TOKENS, tokens) out".to_owned());
        }
        let limits = self.limits()?;
        let embedding = self.embedding()?;
        let summary = self.summary()?;
        let config = Config {
            listen: self.listen.as_deref().map_or(Ok(default.listen), listen_address)?,
            data: self.data.unwrap_or(default.data),
            fields: field_names(self.field.unwrap_or(default.fields))?,
            level: bounded("level", self.level, default.level, 0, 3)?,
            insecure: self.insecure.unwrap_or(default.insecure),
            meaning: self.meaning.unwrap_or(default.meaning),
            embedding,
            summary,
            detection_budget_ms: bounded(
                "detection_budget_ms",
                self.detection_budget_ms,
                default.detection_budget_ms,
                0,
                QUEUE_PATIENCE_MS,
            )?,
            audit_reads: self.audit_reads.map_or(default.audit_reads, Audit::from),
            shared_drafts: self.drafts.map_or(default.shared_drafts, |d| d == Drafts::Shared),
            grace_ms: milliseconds("grace_seconds", self.grace_seconds, default.grace_ms)?,
            limits,
            allowed_origins: origins(self.allow_origin.unwrap_or(default.allowed_origins))?,
            allowed_hosts: hosts(self.allow_host.unwrap_or(default.allowed_hosts))?,
            heartbeat_ms: milliseconds("heartbeat_seconds", self.heartbeat_seconds, default.heartbeat_ms)?,
            silence_max_ms: milliseconds("silence_seconds", self.silence_seconds, default.silence_max_ms)?,
            stall_max_ms: milliseconds("stall_seconds", self.stall_seconds, default.stall_max_ms)?,
            connections_max: bounded(
                "connections_max",
                self.connections_max,
                default.connections_max,
                1,
                1 << 20,
            )?,
            mcp_sessions_max: bounded(
                "mcp_sessions_max",
                self.mcp_sessions_max,
                default.mcp_sessions_max,
                0,
                1 << 20,
            )?,
            mcp_idle_ms: milliseconds("mcp_idle_seconds", self.mcp_idle_seconds, default.mcp_idle_ms)?,
            max_log_bytes: self.max_log_bytes,
            snapshot_entries: self.snapshot_entries.unwrap_or(default.snapshot_entries),
        };
        if config.max_log_bytes.is_some_and(|bytes| bytes < MAX_LOG_BYTES_MIN) {
            return Err(format!("max_log_bytes must be at least {MAX_LOG_BYTES_MIN}"));
        }
        if config.silence_max_ms <= config.heartbeat_ms {
            return Err("silence_seconds must be more than heartbeat_seconds".to_owned());
        }
        if !config.insecure && !config.listen.ip().to_canonical().is_loopback() {
            return Err(format!(
                "{} is not a loopback address: without tokens anybody who reaches it can read and write. \
                 Listen on 127.0.0.1, or give --insecure",
                config.listen
            ));
        }
        let log_filter = self.log_filter.unwrap_or_else(|| "info".to_owned());
        Ok(Effective { config, log_format: self.log_format.unwrap_or_default(), log_filter })
    }

    fn limits(&self) -> Result<Limits, String> {
        let default = Limits::default();
        let limits = Limits {
            content_bytes: bounded(
                "content_max_bytes",
                self.content_max_bytes,
                default.content_bytes,
                1,
                BYTES_MAX,
            )?,
            relations: bounded("relations_max", self.relations_max, default.relations, 0, ITEMS_MAX)?,
            evidence: bounded("evidence_max", self.evidence_max, default.evidence, 0, ITEMS_MAX)?,
            assumptions: bounded("assumptions_max", self.assumptions_max, default.assumptions, 0, ITEMS_MAX)?,
            message_bytes: bounded(
                "message_max_bytes",
                self.message_max_bytes,
                default.message_bytes,
                MESSAGE_BYTES_MIN,
                BYTES_MAX,
            )?,
            max_units: default.max_units,
            replay_events: bounded(
                "replay_max_events",
                self.replay_max_events,
                default.replay_events,
                1,
                1 << 24,
            )?,
            replay_bytes: bounded(
                "replay_max_bytes",
                self.replay_max_bytes,
                default.replay_bytes,
                MESSAGE_BYTES_MIN,
                // The doors send no more, whatever REPLAY would give.
                REPLY_MAX_BYTES,
            )?,
            epoch_lead: bounded("epoch_lead", self.epoch_lead, default.epoch_lead, 1, EPOCH_CEILING)?,
            vote_quorum: bounded("vote_quorum", self.vote_quorum, default.vote_quorum, 1, VOTE_QUORUM_MAX)?,
        };
        if limits.content_bytes > limits.message_bytes {
            return Err("content_max_bytes must not be more than message_max_bytes".to_owned());
        }
        Ok(limits)
    }
}

/// A message carries an envelope, which alone takes some hundred bytes.
const MESSAGE_BYTES_MIN: usize = 4 * 1024;
/// Messages are held in memory, one a connection.
const BYTES_MAX: usize = 256 * 1024 * 1024;
/// Items of a unit are all part of its one entry.
const ITEMS_MAX: usize = 4096;
/// An empty log takes some pages already.
const MAX_LOG_BYTES_MIN: u64 = 256 * 1024;
/// A day: nothing that is waited for takes longer.
const SECONDS_MAX: f64 = 86_400.0;

pub(super) fn bounded<T: PartialOrd + std::fmt::Display>(
    key: &str,
    said: Option<T>,
    default: T,
    least: T,
    most: T,
) -> Result<T, String> {
    let value = said.unwrap_or(default);
    if value < least || value > most {
        return Err(format!("{key} is {value}; it must be from {least} to {most}"));
    }
    Ok(value)
}

pub(super) fn milliseconds(key: &str, said: Option<f64>, default: u64) -> Result<u64, String> {
    let Some(seconds) = said else { return Ok(default) };
    if !(0.001..=SECONDS_MAX).contains(&seconds) {
        return Err(format!("{key} is {seconds}; it must be from 0.001 to {SECONDS_MAX}"));
    }
    // In range as just checked, so the conversion is exact to the millisecond.
    Ok((seconds * 1000.0).round() as u64)
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    // The one name that everybody types; any other name would need a resolver's say.
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let numeric = numeric.as_deref().unwrap_or(text);
    numeric.parse().map_err(|_| format!("listen is {text:?}; it must be ADDR:PORT, such as 127.0.0.1:7420"))
}

fn field_names(names: Vec<String>) -> Result<Vec<String>, String> {
    if names.is_empty() {
        return Err("field is an empty list; name at least one Field".to_owned());
    }
    for (at, name) in names.iter().enumerate() {
        if !is_field_name(name) {
            return Err(format!("field {name:?} is no Field name: 1 to 64 letters, digits, '_' and '-'"));
        }
        // Each Field has a directory of its name, and some file systems do not tell cases apart.
        if let Some(other) = names[..at].iter().find(|other| other.eq_ignore_ascii_case(name)) {
            return Err(format!("field {name:?} is named twice (as {other:?}; cases are not told apart)"));
        }
    }
    Ok(names)
}

fn origins(origins: Vec<String>) -> Result<Vec<String>, String> {
    for origin in &origins {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if host.is_none_or(|host| host.is_empty() || host.contains(['/', '*', ' '])) {
            return Err(format!("allow_origin {origin:?} is no origin such as https://app.example"));
        }
    }
    Ok(origins)
}

fn hosts(hosts: Vec<String>) -> Result<Vec<String>, String> {
    for host in &hosts {
        if host.is_empty() || host.contains(['/', '*', ' ', '@']) {
            return Err(format!("allow_host {host:?} is no host name such as hub.example"));
        }
    }
    Ok(hosts)
}

impl Effective {
    /// The whole configuration as TOML that `--config` takes back.
    pub(super) fn to_toml(&self) -> Result<String, Failure> {
        toml::to_string(&self.settings()).map_err(|error| {
            Failure::failed(format!("this configuration cannot be written as TOML: {error}"))
        })
    }

    fn settings(&self) -> Settings {
        let Config { listen, data, fields, level, insecure, shared_drafts, grace_ms, limits, .. } =
            self.config.clone();
        let Config { allowed_origins, allowed_hosts, heartbeat_ms, silence_max_ms, .. } = self.config.clone();
        let seconds = |ms: u64| Some(ms as f64 / 1000.0);
        let embedding = self.config.embedding.as_ref();
        let summary = self.config.summary.as_ref();
        Settings {
            listen: Some(listen.to_string()),
            data: Some(data),
            field: Some(fields),
            level: Some(level),
            tokens: None,
            insecure: Some(insecure),
            drafts: Some(if shared_drafts { Drafts::Shared } else { Drafts::Private }),
            meaning: Some(self.config.meaning),
            embedding_url: embedding.map(|embedding| embedding.url.clone()),
            embedding_model: embedding.map(|embedding| embedding.model.clone()),
            embedding_dimensions: embedding.and_then(|embedding| embedding.dimensions),
            embedding_ca_file: embedding.and_then(|embedding| embedding.ca_file.clone()),
            embedding_timeout_seconds: embedding.and_then(|embedding| seconds(embedding.timeout_ms)),
            summary_url: summary.map(|summary| summary.url.clone()),
            summary_model: summary.map(|summary| summary.model.clone()),
            summary_ca_file: summary.and_then(|summary| summary.ca_file.clone()),
            summary_timeout_seconds: summary.and_then(|summary| seconds(summary.timeout_ms)),
            summary_total_seconds: summary.and_then(|summary| seconds(summary.total_ms)),
            detection_budget_ms: Some(self.config.detection_budget_ms),
            audit_reads: Some(self.config.audit_reads.into()),
            grace_seconds: seconds(grace_ms),
            heartbeat_seconds: seconds(heartbeat_ms),
            silence_seconds: seconds(silence_max_ms),
            stall_seconds: seconds(self.config.stall_max_ms),
            connections_max: Some(self.config.connections_max),
            mcp_sessions_max: Some(self.config.mcp_sessions_max),
            mcp_idle_seconds: seconds(self.config.mcp_idle_ms),
            max_log_bytes: self.config.max_log_bytes,
            snapshot_entries: Some(self.config.snapshot_entries),
            allow_origin: Some(allowed_origins),
            allow_host: Some(allowed_hosts),
            message_max_bytes: Some(limits.message_bytes),
            content_max_bytes: Some(limits.content_bytes),
            relations_max: Some(limits.relations),
            evidence_max: Some(limits.evidence),
            assumptions_max: Some(limits.assumptions),
            replay_max_events: Some(limits.replay_events),
            replay_max_bytes: Some(limits.replay_bytes),
            epoch_lead: Some(limits.epoch_lead),
            vote_quorum: Some(limits.vote_quorum),
            log_format: Some(self.log_format),
            log_filter: Some(self.log_filter.clone()),
            config: None,
            print_config: false,
            shared_drafts: false,
            no_meaning: false,
        }
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
