//! The log: the durable, append-only record of one Field's operations.
//!
//! The log is the truth; everything else in a hub can be rebuilt from it. This room stores rows
//! and knows no rules of the Field: a row is an epoch and a text, and what the text says matters
//! only to whoever wrote it (and to [`verify`], which expects a JSON object that names its epoch).
//!
//! # What the room promises
//!
//! * [`Log::append`] that returned `Ok` is durable: it survives a killed process and a lost power
//!   supply, whole. A batch is there whole or not at all.
//! * A failure leaves the truth in the file. An append that returned an error may have taken effect
//!   or not; nobody can know from the error. [`Log::reopen`] throws the old connection away, and
//!   what a reader then finds is what counts. Until then further appends are refused
//!   ([`LogError::Broken`]), so a failed flush is never retried on the same state.
//! * Rows are in strictly ascending order of their epochs, and the clock's reserved mark is never
//!   below the last of them.
//! * Readers see only what is committed, each scan from one moment, and never hold up the writer.
//!
//! One thread owns the [`Log`]; any number of [`LogReader`]s, each with a connection of its own,
//! read beside it. [`SqliteLog`] is the one that lasts, [`MemoryLog`] its twin for tests, with
//! faults on demand. Both pass the same suite (`conformance`).

mod backup;
mod database;
mod error;
mod memory;
mod sqlite;
mod verify;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod crash;

use std::ops::ControlFlow;

pub use backup::{Copied, backup};
pub use error::LogError;
pub use memory::{Faults, MemoryLog, Moment};
pub use sqlite::{SqliteLog, SqliteOptions, open_log_reader};
pub use verify::{Fault, Report, verify};

/// One operation's entry as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The operation's epoch: the row's place in the log, at least 1.
    pub epoch: u64,
    /// JSON text. The log keeps it to the byte and does not look inside.
    pub body: String,
}

/// What one transaction makes durable, whole or not at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch<'a> {
    /// The rows, strictly ascending and above the last row of the log. May be empty.
    pub rows: &'a [Row],
    /// The new high-water mark of the clock. A mark below the present one changes nothing: only
    /// [`Log::release`] lowers it. The log raises the mark by itself to the last row's epoch.
    pub reserve: Option<u64>,
}

impl Batch<'_> {
    /// Checks the order of the rows behind a log that ends with `last`, and returns the epoch that
    /// the log ends with once this batch is in it.
    fn check(&self, mut last: u64) -> Result<u64, LogError> {
        for row in self.rows {
            if row.epoch <= last {
                return Err(LogError::Disorder { epoch: row.epoch, after: last });
            }
            last = row.epoch;
        }
        // The rows ascend, so the last one is the largest.
        for number in [last, self.reserve.unwrap_or(0)] {
            if number > LARGEST {
                return Err(LogError::Range { number });
            }
        }
        Ok(last)
    }
}

/// The largest epoch or mark that a log stores.
const LARGEST: u64 = i64::MAX as u64;

/// The writer's side of a log. One thread owns it.
pub trait Log: Send {
    /// Makes the batch durable and returns only then.
    ///
    /// # Errors
    /// [`LogError::Disorder`] and [`LogError::Range`] for a batch that does not fit: nothing is
    /// written and the log stays usable. After any other error the batch may be in the log or not,
    /// and the log wants [`Log::reopen`] before the next write.
    fn append(&mut self, batch: &Batch<'_>) -> Result<(), LogError>;

    /// A clean end: sets the reserved mark to exactly `clock`, also downwards, and moves everything
    /// into the log's main file.
    ///
    /// # Errors
    /// [`LogError::Disorder`] if `clock` is below the last row's epoch.
    fn release(&mut self, clock: u64) -> Result<(), LogError>;

    /// Housekeeping for a quiet moment. Cheap when there is nothing to do, waits for nobody. An
    /// error here loses nothing and asks for no [`Log::reopen`].
    fn rest(&mut self) -> Result<(), LogError>;

    /// After a failed write: throws the connection away and opens anew. What readers find from
    /// then on is what the log holds.
    fn reopen(&mut self) -> Result<(), LogError>;

    /// Asks whether there is room again, by a small write that really needs some. Leaves no row
    /// and no mark behind. May be asked again after it failed.
    fn probe(&mut self) -> Result<(), LogError>;

    /// A reader with a connection of its own.
    fn reader(&self) -> Result<Box<dyn LogReader>, LogError>;
}

/// A reader's side of a log.
pub trait LogReader: Send {
    /// Calls `each` with every row behind `after`, in order of the epochs, until it breaks. The
    /// rows are those of one moment: what is committed meanwhile is not among them. Rows are
    /// checked on the way; a damaged one ends the scan with [`LogError::Corrupt`].
    ///
    /// `each` should not wait for anything: while a scan is open, the log cannot reuse the space of
    /// its write-ahead file.
    fn scan(&self, after: u64, each: &mut dyn FnMut(u64, &str) -> ControlFlow<()>) -> Result<(), LogError>;

    /// The row of an epoch, if there is one.
    fn get(&self, epoch: u64) -> Result<Option<Row>, LogError>;

    /// The last row's epoch, 0 when the log is empty.
    fn last_epoch(&self) -> Result<u64, LogError>;

    /// The clock's reserved mark, 0 when nothing was ever reserved or appended.
    fn reserved(&self) -> Result<u64, LogError>;

    /// Sizes and ends, all of one moment. Cheap also for a log of millions of rows.
    fn stat(&self) -> Result<Stat, LogError>;
}

/// Sizes and ends of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// How many rows there are.
    pub entries: u64,
    /// The first row's epoch, 0 when empty.
    pub first_epoch: u64,
    /// The last row's epoch, 0 when empty.
    pub last_epoch: u64,
    /// The clock's reserved mark.
    pub reserved: u64,
    /// Bytes on disk: main file and write-ahead file together.
    pub bytes: u64,
    /// Bytes of the write-ahead file alone.
    pub wal_bytes: u64,
    /// Bytes of a page of the main file (0 in memory).
    pub page_bytes: u64,
    /// Pages of the main file.
    pub pages: u64,
    /// Pages of it that are free for reuse.
    pub free_pages: u64,
}
