//! Verification: reads a whole log and says what is wrong with it, if anything.
//!
//! Works offline and beside a running hub, all of it on one moment's state, and writes nothing into
//! the database. Beside a running hub it keeps the journal from being reused while it reads.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::value::RawValue;

use crate::log::LogError;
use crate::log::database::{beside, ends, file_of, intact, meta, open_reader};

/// At most so many faults are listed: a log that has more needs no longer list.
const FAULTS: usize = 1000;

/// Something wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The row's epoch, if it is a row that is wrong.
    pub epoch: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epoch {
            Some(epoch) => write!(to, "epoch {epoch}: {}", self.what),
            None => to.write_str(&self.what),
        }
    }
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows read.
    pub entries: u64,
    /// The first row's epoch, 0 when empty.
    pub first_epoch: u64,
    /// The last row's epoch, 0 when empty.
    pub last_epoch: u64,
    /// The clock's reserved mark.
    pub reserved: u64,
    /// Bytes on disk: main file and journal.
    pub bytes: u64,
    /// What is wrong, at most the first thousand things.
    pub faults: Vec<Fault>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    fn note(&mut self, epoch: Option<u64>, what: impl Into<String>) {
        if self.faults.len() < FAULTS {
            let what = what.into();
            self.faults.push(Fault { epoch, what });
        }
    }
}

/// Verifies the log in a directory (or at a path that ends in `.db`).
///
/// Damage is not an error but a fault in the report. Checked are the database's own structure,
/// every row's checksum, that every body is a JSON object whose `epoch` is the row's, the order of
/// the rows, their number against the log's own tally, and the reserved mark.
///
/// # Errors
/// [`LogError::Absent`] if there is no log, [`LogError::Format`] or [`LogError::Foreign`] if the
/// file is not for us, [`LogError::Io`] and the like if it cannot be read at all.
pub fn verify(dir: &Path) -> Result<Report, LogError> {
    let file = file_of(dir);
    let mut report = Report::default();
    let connection = match open_reader(&file) {
        Ok(connection) => connection,
        Err(LogError::Corrupt { epoch, what }) => {
            report.note(epoch, what);
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    let wal = fs::metadata(beside(&file, "-wal")).map_or(0, |metadata| metadata.len());
    report.bytes = fs::metadata(&file)?.len() + wal;
    // One read transaction: everything below is of one moment.
    let moment = connection.unchecked_transaction()?;
    for check in [check_structure as Check, check_rows, check_numbers] {
        match check(&moment, &mut report) {
            // Damage that keeps one check from going on does not keep the others.
            Err(LogError::Corrupt { epoch, what }) => report.note(epoch, what),
            other => other?,
        }
    }
    Ok(report)
}

/// A part of the verification.
type Check = fn(&Connection, &mut Report) -> Result<(), LogError>;

/// SQLite's own check of pages, order and types.
fn check_structure(connection: &Connection, report: &mut Report) -> Result<(), LogError> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            report.note(None, line);
        }
    }
    Ok(())
}

/// Every row: checksum, order, and what a body must look like.
fn check_rows(connection: &Connection, report: &mut Report) -> Result<(), LogError> {
    let mut statement = connection.prepare("SELECT epoch, crc, body FROM entries ORDER BY epoch")?;
    let mut rows = statement.query([])?;
    let mut last = 0;
    while let Some(row) = rows.next()? {
        report.entries += 1;
        let (epoch, body) = match intact(row) {
            Ok(whole) => whole,
            Err(LogError::Corrupt { epoch, what }) => {
                report.note(epoch, what);
                last = epoch.unwrap_or(last);
                continue;
            }
            Err(other) => return Err(other),
        };
        if epoch <= last {
            report.note(Some(epoch), format!("comes behind epoch {last}"));
        }
        last = epoch;
        if let Err(what) = check_body(epoch, body) {
            report.note(Some(epoch), what);
        }
    }
    Ok(())
}

/// A body is a JSON object that names the row's epoch.
fn check_body(epoch: u64, body: &str) -> Result<(), String> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(body)
        .map_err(|error| format!("the body is no well-formed JSON object: {error}"))?;
    let Some(named) = members.get("epoch") else {
        return Err("the body names no epoch".to_owned());
    };
    if named.get().parse() != Ok(epoch) {
        return Err(format!("the body names the epoch {}", named.get()));
    }
    Ok(())
}

/// The numbers beside the rows.
fn check_numbers(connection: &Connection, report: &mut Report) -> Result<(), LogError> {
    (report.first_epoch, report.last_epoch) = ends(connection)?;
    report.reserved = meta(connection, "reserved")?;
    if report.reserved < report.last_epoch {
        report.note(
            None,
            format!(
                "the clock's reserved mark {} is below the last epoch {}",
                report.reserved, report.last_epoch
            ),
        );
    }
    let tallied_to = meta(connection, "tally_epoch")?;
    let tally = meta(connection, "tally_entries")?;
    let counted: i64 = connection.query_row(
        "SELECT count(*) FROM entries WHERE epoch <= ?1",
        [i64::try_from(tallied_to).unwrap_or(i64::MAX)],
        |row| row.get(0),
    )?;
    if u64::try_from(counted) != Ok(tally) {
        report.note(None, format!("{tally} rows were written up to epoch {tallied_to}, {counted} are there"));
    }
    Ok(())
}
