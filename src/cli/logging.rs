//! Where the program's own log goes: stderr, as text or JSON.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;

use super::exit::Failure;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One readable line each.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging. Only `serve` does: a client command says what it has to say by itself.
pub(super) fn start(format: LogFormat, filter: &str) -> Result<(), Failure> {
    // Its lines name MCP sessions, and who knows a session's name can speak in it: they come only where asked for.
    let quiet = if filter.contains("rmcp") { String::new() } else { "rmcp=off,".to_owned() };
    let filter = EnvFilter::try_new(quiet + filter)
        .map_err(|error| Failure::usage(format!("log_filter {filter:?}: {error}")))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(Failure::failed)
}
