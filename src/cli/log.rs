//! `akashik log`: a Field's log in a data directory, read without a hub.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::exit::Failure;
use super::screen;
use crate::client::is_field_name;
use crate::field;
use crate::hub::{Scrutiny, SnapshotReport, inspect_snapshot};
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
    /// Check every entry, and the snapshot; exit code 1 when something is wrong with the log
    Verify {
        #[command(flatten)]
        place: Place,
        /// Apply the log, too, and check that it comes to the state in the snapshot
        #[arg(long)]
        apply: bool,
    },
    /// Print the events, one JSON object a line, as GET /v1/log does
    Export(Place),
    /// Print figures
    Stat(Place),
    /// Copy the log to a file that is not there yet, also while the hub runs
    Backup {
        #[command(flatten)]
        place: Place,
        /// Where to: DIR/<field>/field.db can be served with --data DIR
        #[arg(value_name = "FILE")]
        to: PathBuf,
    },
}

impl LogCommand {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Verify { place, apply } => verify(place, *apply),
            Self::Export(place) => export(place),
            Self::Stat(place) => stat(place),
            Self::Backup { place, to } => backup(place, to),
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

fn verify(place: &Place, apply: bool) -> Result<(), Failure> {
    let report = log::verify(&place.directory()?).map_err(|error| place.failed(&error))?;
    let scrutiny = if apply { Scrutiny::Applied } else { Scrutiny::Whole };
    // What a damaged log says of its snapshot is not worth asking for.
    let snapshot = report.is_sound().then(|| snapshot(place, scrutiny)).transpose()?;
    let agrees = snapshot.as_ref().is_none_or(|snapshot| snapshot.agrees != Some(false));
    let faults: Vec<_> =
        report.faults.iter().map(|fault| json!({ "epoch": fault.epoch, "what": fault.what })).collect();
    let value = json!({
        "sound": report.is_sound(), "entries": report.entries, "first_epoch": report.first_epoch,
        "last_epoch": report.last_epoch, "reserved": report.reserved, "bytes": report.bytes,
        "faults": faults, "snapshot": snapshot.as_ref().map(snapshot_figures),
    });
    screen::show(place.json, &value, screen::figures)?;
    match (report.is_sound(), agrees) {
        (true, true) => Ok(()),
        (false, _) => Err(Failure::failed("the log is not sound")),
        (true, false) => Err(Failure::failed(
            "the log is sound, but comes to another state than the snapshot holds; remove state.snapshot, and the next \
             start reads the log",
        )),
    }
}

/// Looks at the snapshot of a log that can be read.
fn snapshot(place: &Place, scrutiny: Scrutiny) -> Result<SnapshotReport, Failure> {
    let directory = place.directory()?;
    let reader = log::open_log_reader(&directory).map_err(|error| place.failed(&error))?;
    inspect_snapshot(&directory, &*reader, scrutiny).map_err(|error| place.failed(&error))
}

/// Null where there is none.
fn snapshot_figures(report: &SnapshotReport) -> Value {
    let SnapshotReport { is_there, epoch, entries, bytes, unusable, agrees } = report;
    if !is_there {
        return Value::Null;
    }
    let mut figures = json!({ "epoch": epoch, "entries": entries, "bytes": bytes, "unusable": unusable });
    if let Some(agrees) = agrees {
        figures["agrees"] = json!(agrees);
    }
    figures
}

fn backup(place: &Place, to: &Path) -> Result<(), Failure> {
    let copied = log::backup(&place.directory()?, to).map_err(|error| match error {
        LogError::Occupied(_) => Failure::failed(error),
        error => place.failed(&error),
    })?;
    let value =
        json!({ "file": to.display().to_string(), "last_epoch": copied.last_epoch, "bytes": copied.bytes });
    screen::show(place.json, &value, screen::figures)
}

fn stat(place: &Place) -> Result<(), Failure> {
    let reader = log::open_log_reader(&place.directory()?).map_err(|error| place.failed(&error))?;
    let stat = reader.stat().map_err(|error| place.failed(&error))?;
    let snapshot = snapshot(place, Scrutiny::Glance)?;
    let value = json!({
        "entries": stat.entries, "first_epoch": stat.first_epoch, "last_epoch": stat.last_epoch,
        "reserved": stat.reserved, "bytes": stat.bytes, "wal_bytes": stat.wal_bytes,
        "page_bytes": stat.page_bytes, "pages": stat.pages, "free_pages": stat.free_pages,
        "snapshot": snapshot_figures(&snapshot),
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
