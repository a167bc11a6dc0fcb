//! `akashik log`: a Field's log in a data directory, read without a hub.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::exit::Failure;
use super::screen;
use crate::client::is_field_name;
use crate::field;
use crate::log::{self, LogError};

/// Which log.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// Data directory
    #[arg(long, env = "AKASHIK_DATA", value_name = "DIR", default_value = "./akashik-data")]
    data: PathBuf,
    /// The Field
    #[arg(long, value_name = "NAME", default_value = "default")]
    field: String,
    /// Print JSON also on a terminal
    #[arg(long)]
    json: bool,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub(super) enum LogCommand {
    /// Check every entry; exit code 1 when something is wrong
    Verify(Place),
    /// Print the events, one JSON object a line, as GET /v1/log does
    Export(Place),
    /// Print figures
    Stat(Place),
}

impl LogCommand {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Verify(place) => verify(place),
            Self::Export(place) => export(place),
            Self::Stat(place) => stat(place),
        }
    }
}

impl Place {
    fn directory(&self) -> Result<PathBuf, Failure> {
        if !is_field_name(&self.field) {
            return Err(Failure::usage(format!("{:?} is no Field name", self.field)));
        }
        Ok(self.data.join(&self.field))
    }

    fn failed(&self, error: &LogError) -> Failure {
        Failure::failed(format!("{}, Field {}: {error}", self.data.display(), self.field))
    }
}

fn verify(place: &Place) -> Result<(), Failure> {
    let report = log::verify(&place.directory()?).map_err(|error| place.failed(&error))?;
    let faults: Vec<_> =
        report.faults.iter().map(|fault| json!({ "epoch": fault.epoch, "what": fault.what })).collect();
    let value = json!({
        "sound": report.is_sound(), "entries": report.entries, "first_epoch": report.first_epoch,
        "last_epoch": report.last_epoch, "reserved": report.reserved, "bytes": report.bytes,
        "faults": faults,
    });
    screen::show(place.json, &value, screen::figures)?;
    if report.is_sound() { Ok(()) } else { Err(Failure::failed("the log is not sound")) }
}

fn stat(place: &Place) -> Result<(), Failure> {
    let reader = log::open_log_reader(&place.directory()?).map_err(|error| place.failed(&error))?;
    let stat = reader.stat().map_err(|error| place.failed(&error))?;
    let value = json!({
        "entries": stat.entries, "first_epoch": stat.first_epoch, "last_epoch": stat.last_epoch,
        "reserved": stat.reserved, "bytes": stat.bytes, "wal_bytes": stat.wal_bytes,
        "page_bytes": stat.page_bytes, "pages": stat.pages, "free_pages": stat.free_pages,
    });
    screen::show(place.json, &value, screen::figures)
}

fn export(place: &Place) -> Result<(), Failure> {
    let reader = log::open_log_reader(&place.directory()?).map_err(|error| place.failed(&error))?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut failure = None;
    let mut each = |epoch: u64, body: &str| match print_entry(&mut out, epoch, body) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    };
    let scanned = reader.scan(0, &mut each);
    match failure {
        Some(error) => return Err(error),
        None => out.flush()?,
    }
    scanned.map_err(|error| place.failed(&error))
}

fn print_entry(out: &mut impl Write, epoch: u64, body: &str) -> Result<(), Failure> {
    let mut written = Ok(());
    field::log_lines(body, 0, |line| {
        written = writeln!(out, "{line}");
        written.is_ok()
    })
    .map_err(|error| Failure::failed(format!("the entry of epoch {epoch} cannot be read: {error}")))?;
    Ok(written?)
}
