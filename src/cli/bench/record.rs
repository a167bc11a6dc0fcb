//! `akashik bench record`: acknowledged RECORDs a second.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::super::exit::Failure;
use super::super::screen;
use super::load::{Load, Until};
use super::tally::rounded;
use super::words::Words;
use super::{fsync, run_name};
use crate::client::HubAddress;

/// Which hub is measured.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// The hub
    #[arg(long, env = "AKASHIK_URL", value_name = "URL", default_value = "http://127.0.0.1:7420")]
    url: String,
    /// The Field
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// Token, where the hub asks for one
    #[arg(long, env = "AKASHIK_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Where the made-up text begins
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print JSON also on a terminal
    #[arg(long)]
    pub json: bool,
}

impl Target {
    /// The hub's address.
    pub fn address(&self) -> Result<HubAddress, Failure> {
        let address: HubAddress = self.url.parse().map_err(Failure::usage)?;
        match &self.field {
            None => Ok(address),
            Some(field) => address.with_field(field).map_err(Failure::usage),
        }
    }
}

/// A measurement of RECORD.
#[derive(Debug, Args)]
pub(in crate::cli) struct Record {
    #[command(flatten)]
    target: Target,
    /// Agents, each with its own connection
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    agents: u16,
    /// RECORDs in flight per agent
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    depth: u16,
    /// How long to measure, after a second of warm-up
    #[arg(long, default_value_t = 10.0, value_parser = super::super::ask::number)]
    seconds: f64,
    /// Stop after so many acknowledged units in place of a time; all of them count
    #[arg(long, conflicts_with = "seconds")]
    units: Option<u64>,
    /// Content of each unit
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    content_bytes: u32,
    /// Where to measure the bare disk [default: the current directory]
    #[arg(long, value_name = "DIR")]
    fsync_dir: Option<PathBuf>,
}

impl Record {
    /// Runs the measurement.
    pub fn run(&self) -> Result<(), Failure> {
        let until = match self.units {
            Some(units) => Until::Units(units),
            None => Until::Time(duration(self.seconds)?),
        };
        let load = Load {
            address: self.target.address()?,
            token: self.target.token.clone(),
            words: Arc::new(Words::new(self.target.seed)),
            seed: self.target.seed,
            run: run_name(),
            agents: usize::from(self.agents),
            depth: usize::from(self.depth),
            content_bytes: self.content_bytes as usize,
            until,
        };
        let directory = self.fsync_dir.clone().unwrap_or_else(|| PathBuf::from("."));
        let bytes = load.message_bytes();
        let bare = || {
            let failed =
                |error| Failure::failed(format!("cannot measure in {}: {error}", directory.display()));
            fsync::sample(&directory, bytes).map_err(failed)
        };
        let mut disk = bare()?;
        let before = disk.quantile_ms(0.5);
        let run = load.run.clone();
        // One thread is enough for the clients, and leaves the other ones to the hub.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let written = runtime.block_on(load.run())?;
        let after = bare()?;
        let after_ms = after.quantile_ms(0.5);
        disk.add(after);
        let both = disk.quantile_ms(0.5);
        let single = self.agents == 1 && self.depth == 1;
        let ratio = single.then(|| rounded(written.tally.quantile_ms(0.5) / both.max(1e-6)));
        let report = json!({
            "bench": "record", "run": run, "seed": self.target.seed, "agents": self.agents,
            "depth": self.depth, "content_bytes": self.content_bytes,
            "message_bytes": written.message_bytes, "seconds": rounded(written.seconds),
            "acknowledged": written.tally.acknowledged,
            "record": written.tally.figures(written.seconds),
            "fsync_p50_ms": both, "fsync_before_p50_ms": before, "fsync_after_p50_ms": after_ms,
            "p50_to_fsync": ratio,
        });
        screen::show(self.target.json, &report, screen::figures)?;
        outcome(written.tally.errors)
    }
}

/// A time to measure.
pub(super) fn duration(seconds: f64) -> Result<Duration, Failure> {
    if seconds > 0.0 {
        Duration::try_from_secs_f64(seconds).map_err(Failure::usage)
    } else {
        Err(Failure::usage("--seconds must be more than 0"))
    }
}

/// A measurement with errors is not a good one.
pub(super) fn outcome(errors: u64) -> Result<(), Failure> {
    if errors == 0 { Ok(()) } else { Err(Failure::failed(format!("{errors} errors"))) }
}
