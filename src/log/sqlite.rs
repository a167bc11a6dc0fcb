//! The log that lasts: one SQLite database, write-ahead journal, flushed at every commit.
//!
//! `<dir>/field.db` holds the table `entries`, one row an operation, and a few numbers in `meta`.
//! Beside it SQLite keeps `-wal` (commits not yet copied over; part of the truth) and `-shm` (an
//! index of it; rebuilt when missing), and the hub `.lock` (one writer only).
//!
//! # Decisions
//!
//! * What SQLite recovers from a cut or garbled `-wal` is always a prefix of the commits: frames
//!   are chained by checksums.
//! * Copying the journal over (a checkpoint) belongs into [`Log::rest`]; under steady load a commit
//!   does it now and then, so the journal stays bounded unless one scan goes on and on.
//! * The quota counts pages of the main file. The journal comes on top, some 8 MiB in ordinary use.
//! * Counting rows would read the whole file, so a tally is kept in `meta`, renewed once in
//!   [`TALLY_ROWS`] rows; only the rows behind it are counted.
//! * After a failed commit the journal may hold its frames although nobody sees them, and a killed
//!   process could bring them back. [`Log::reopen`] therefore commits a trifle over them. If even
//!   that fails, the next successful commit does it.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::log::database::{
    LOCK_WAIT, WAL_KEEP_BYTES, beside, checksum, count_after, ends, file_of, identity, intact, lock,
    mark_made, meta, open_reader, open_writer, set_meta, stored,
};
use crate::log::{Batch, LARGEST, Log, LogError, LogReader, Row, Stat};

/// How many rows may follow the tally in `meta` before it is renewed.
const TALLY_ROWS: u64 = 4096;
/// What [`Log::probe`] writes. Some pages more than any commit of a single small row needs.
const PROBE_BYTES: u32 = 64 * 1024;

/// How long the last checkpoint before the end waits for readers.
const READER_WAIT: Duration = Duration::from_secs(1);

/// Size of the journal at which a commit waits for readers, and how long at most.
const WAL_LARGE_BYTES: u64 = 4 * WAL_KEEP_BYTES as u64;
const REIN_WAIT: Duration = Duration::from_millis(100);

/// How a [`SqliteLog`] is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqliteOptions {
    /// Quota for the main file in bytes, rounded down to pages. A log that is larger already keeps
    /// what it has and takes nothing new.
    pub max_bytes: Option<u64>,
}

/// The writer's side of a log in a SQLite database.
pub struct SqliteLog {
    file: PathBuf,
    options: SqliteOptions,
    /// Kept for its lock, which goes with it.
    lock: File,
    /// Which file it is; nothing before it was first opened.
    identity: Option<(u64, u64)>,
    /// Nothing after a failure, until opened again.
    connection: Option<Connection>,
    tail: Tail,
    /// An append or release failed: nothing more is written until the owner reopens.
    broken: bool,
    /// Something may wait to be copied from the journal.
    unrested: bool,
    /// Bytes appended since the journal's size was last looked at.
    since_look: u64,
}

/// What the writer remembers of the file, so that a commit reads nothing.
#[derive(Clone, Copy, Default)]
struct Tail {
    last: u64,
    reserved: u64,
    entries: u64,
    /// Rows since the tally in `meta`.
    untallied: u64,
}

impl SqliteLog {
    /// Opens the log in a directory (or at a path that ends in `.db`), and creates it if there is
    /// none.
    ///
    /// # Errors
    /// [`LogError::Busy`] if another hub has it open, [`LogError::Format`] or [`LogError::Foreign`]
    /// if the file is not for us; it is left as it is.
    pub fn open(dir_or_file: &Path, options: SqliteOptions) -> Result<Self, LogError> {
        let file = file_of(dir_or_file);
        let mut log = SqliteLog {
            lock: lock(&file)?,
            identity: None,
            file,
            options,
            connection: None,
            tail: Tail::default(),
            broken: false,
            unrested: true,
            since_look: 0,
        };
        log.connect()?;
        match mark_made(&log.lock) {
            // On a full disk the log can still be read; the next opening marks it.
            Ok(()) | Err(LogError::Full(_)) => {}
            Err(error) => return Err(error),
        }
        log.identity = identity(&log.file);
        Ok(log)
    }

    /// The database file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Opens the connection, if there is none, and reads what the log ends with.
    fn connect(&mut self) -> Result<&mut Connection, LogError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.open_anew()?,
        };
        Ok(self.connection.insert(connection))
    }

    /// What is written to a file that nobody can reach any more would be lost with the process.
    fn check_place(&self) -> Result<(), LogError> {
        if self.identity.is_none() || identity(&self.file) == self.identity {
            return Ok(());
        }
        Err(LogError::Io(format!("{} is gone or was replaced while it was open", self.file.display())))
    }

    fn open_anew(&mut self) -> Result<Connection, LogError> {
        self.check_place()?;
        let connection = open_writer(&self.file, self.options.max_bytes)?;
        // What the journal holds counts from now on, also what a killed hub wrote and had not
        // flushed yet. Nobody may see it before it is durable: this flushes the journal first and
        // then copies it. Only for the copy there may be no room, and it can wait.
        match copy_over(&connection, false, Duration::ZERO) {
            Ok(_) | Err(LogError::Full(_)) => {}
            Err(error) => return Err(error),
        }
        // A probe may have been cut off between its two halves. No room to tidy up is no reason
        // not to open.
        let _ = clear_padding(&connection);
        let counted = meta(&connection, "tally_entries")?;
        let untallied = count_after(&connection, meta(&connection, "tally_epoch")?)?;
        self.tail = Tail {
            last: ends(&connection)?.1,
            reserved: meta(&connection, "reserved")?,
            entries: counted + untallied,
            untallied,
        };
        self.unrested = true;
        Ok(connection)
    }

    /// Runs a write. If it fails, the log is broken and the connection is not used again.
    fn write(&mut self, work: impl FnOnce(&mut Connection) -> Result<(), LogError>) -> Result<(), LogError> {
        if self.broken {
            return Err(LogError::Broken);
        }
        let done = self.check_place().and_then(|()| self.connect()).and_then(work);
        self.unrested = true;
        if done.is_err() {
            self.broken = true;
            self.connection = None;
        }
        done
    }

    /// Copies the journal over, see [`copy_over`], and remembers whether that was all of it.
    fn checkpoint(&mut self, shorten: bool, patience: Duration) -> Result<(), LogError> {
        self.unrested = !copy_over(self.connect()?, shorten, patience)?;
        Ok(())
    }

    /// Keeps the journal bounded also where scans overlap all the time. SQLite starts it anew only
    /// when it finds no reader in it, which a commit right after a checkpoint hardly ever does;
    /// while this waits, new readers need the main file only, and the old ones leave.
    fn rein_in(&mut self, written: u64) {
        self.since_look += written;
        if self.since_look < u64::from(WAL_KEEP_BYTES) {
            return;
        }
        self.since_look = 0;
        if wal_bytes(&self.file) > WAL_LARGE_BYTES {
            // The commit is durable whatever becomes of this; it will be tried again.
            let _ = self.checkpoint(true, REIN_WAIT);
        }
    }
}

impl Log for SqliteLog {
    fn append(&mut self, batch: &Batch<'_>) -> Result<(), LogError> {
        if self.broken {
            return Err(LogError::Broken);
        }
        self.connect()?;
        let before = self.tail;
        let last = batch.check(before.last)?;
        let reserved = before.reserved.max(batch.reserve.unwrap_or(0)).max(last);
        let added = batch.rows.len() as u64;
        if added == 0 && reserved == before.reserved {
            return Ok(());
        }
        let mut after =
            Tail { last, reserved, entries: before.entries + added, untallied: before.untallied + added };
        let tally = after.untallied >= TALLY_ROWS;
        if tally {
            after.untallied = 0;
        }
        self.write(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            insert(&transaction, batch.rows)?;
            if after.reserved != before.reserved {
                set_meta(&transaction, "reserved", after.reserved)?;
            }
            if tally {
                set_meta(&transaction, "tally_entries", after.entries)?;
                set_meta(&transaction, "tally_epoch", after.last)?;
            }
            Ok(transaction.commit()?)
        })?;
        self.tail = after;
        self.rein_in(batch.rows.iter().map(|row| row.body.len() as u64).sum());
        Ok(())
    }

    fn release(&mut self, clock: u64) -> Result<(), LogError> {
        if self.broken {
            return Err(LogError::Broken);
        }
        self.connect()?;
        let last = self.tail.last;
        if clock < last {
            return Err(LogError::Disorder { epoch: clock, after: last });
        }
        if clock > LARGEST {
            return Err(LogError::Range { number: clock });
        }
        if clock != self.tail.reserved {
            self.write(|connection| set_meta(connection, "reserved", clock))?;
            self.tail.reserved = clock;
        }
        self.checkpoint(true, READER_WAIT)
    }

    fn rest(&mut self) -> Result<(), LogError> {
        if self.broken || !self.unrested {
            return Ok(());
        }
        let large = wal_bytes(&self.file) > u64::from(WAL_KEEP_BYTES);
        self.checkpoint(large, Duration::ZERO)
    }

    fn reopen(&mut self) -> Result<(), LogError> {
        self.connection = None;
        self.connect()?;
        self.broken = false;
        let covered = self.write(|connection| {
            connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'reopened'", [])?;
            Ok(())
        });
        if covered.is_err() {
            // Still no room, most likely. What can be read now counts nevertheless.
            self.broken = false;
            self.connect()?;
        }
        Ok(())
    }

    fn probe(&mut self) -> Result<(), LogError> {
        if self.broken {
            return Err(LogError::Broken);
        }
        // The journal first: if it cannot be copied over, the room that there is now would be gone
        // at the next checkpoint.
        self.checkpoint(false, Duration::ZERO)?;
        // Two commits: within a single one the pages would be given back before being written.
        let done = self.write(|connection| {
            connection.execute(
                "INSERT OR REPLACE INTO meta(key, value) VALUES ('padding', zeroblob(?1))",
                [PROBE_BYTES],
            )?;
            clear_padding(connection)
        });
        // Nothing of the Field's was at stake, so the owner need not reopen: the next call does.
        self.broken = false;
        done
    }

    fn reader(&self) -> Result<Box<dyn LogReader>, LogError> {
        Ok(Box::new(SqliteReader { connection: open_reader(&self.file)?, file: self.file.clone() }))
    }
}

/// Copies the journal into the main file as far as readers allow, and shortens it if asked to.
/// Waits for readers at most so long. Returns whether everything was copied; if a reader still
/// needs an older state that is no fault, and a later call goes on.
fn copy_over(connection: &Connection, shorten: bool, patience: Duration) -> Result<bool, LogError> {
    let mode = if shorten { "TRUNCATE" } else { "PASSIVE" };
    connection.busy_timeout(patience)?;
    let done = connection
        .query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .map_err(LogError::from);
    connection.busy_timeout(LOCK_WAIT)?;
    let (busy, frames, copied): (i64, i64, i64) = done?;
    Ok(busy == 0 && frames == copied)
}

/// Removes what a probe has written.
fn clear_padding(connection: &Connection) -> Result<(), LogError> {
    connection.execute("DELETE FROM meta WHERE key = 'padding'", [])?;
    Ok(())
}

/// Inserts rows, in the transaction that is open.
fn insert(connection: &Connection, rows: &[Row]) -> Result<(), LogError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut statement =
        connection.prepare_cached("INSERT INTO entries(epoch, crc, body) VALUES (?1, ?2, ?3)")?;
    for row in rows {
        let crc = checksum(row.epoch, row.body.as_bytes());
        statement.execute((stored(row.epoch)?, crc, row.body.as_str()))?;
    }
    Ok(())
}

/// Bytes of the journal, 0 when there is none.
fn wal_bytes(file: &Path) -> u64 {
    fs::metadata(beside(file, "-wal")).map_or(0, |metadata| metadata.len())
}

/// Opens a reader on the log in a directory (or at a path that ends in `.db`), also beside the hub that writes it.
///
/// # Errors
/// [`LogError::Absent`] if there is no log, [`LogError::Format`] or [`LogError::Foreign`] if the file is not for
/// us, [`LogError::Io`] and the like if it cannot be read.
pub fn open_log_reader(dir: &Path) -> Result<Box<dyn LogReader>, LogError> {
    let file = file_of(dir);
    Ok(Box::new(SqliteReader { connection: open_reader(&file)?, file }))
}

/// A reader with its own connection.
struct SqliteReader {
    connection: Connection,
    file: PathBuf,
}

impl LogReader for SqliteReader {
    fn scan(&self, after: u64, each: &mut dyn FnMut(u64, &str) -> ControlFlow<()>) -> Result<(), LogError> {
        // Nothing lies behind the largest number, so a larger cursor means the same.
        let after = stored(after.min(LARGEST))?;
        let mut statement = self
            .connection
            .prepare_cached("SELECT epoch, crc, body FROM entries WHERE epoch > ?1 ORDER BY epoch")?;
        let mut rows = statement.query([after])?;
        while let Some(row) = rows.next()? {
            let (epoch, body) = intact(row)?;
            if each(epoch, body).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn get(&self, epoch: u64) -> Result<Option<Row>, LogError> {
        if epoch > LARGEST {
            return Ok(None);
        }
        let mut statement =
            self.connection.prepare_cached("SELECT epoch, crc, body FROM entries WHERE epoch = ?1")?;
        let found = statement
            .query_row([stored(epoch)?], |row| {
                Ok(intact(row).map(|(epoch, body)| Row { epoch, body: body.to_owned() }))
            })
            .optional()?;
        found.transpose()
    }

    fn last_epoch(&self) -> Result<u64, LogError> {
        Ok(ends(&self.connection)?.1)
    }

    fn reserved(&self) -> Result<u64, LogError> {
        meta(&self.connection, "reserved")
    }

    fn stat(&self) -> Result<Stat, LogError> {
        // One read transaction, so that all numbers are of one moment.
        let moment = self.connection.unchecked_transaction()?;
        let number = |pragma: &str| -> Result<u64, LogError> {
            let value: i64 = moment.pragma_query_value(None, pragma, |row| row.get(0))?;
            Ok(value.unsigned_abs())
        };
        let (first_epoch, last_epoch) = ends(&moment)?;
        let page_bytes = number("page_size")?;
        let pages = number("page_count")?;
        let wal_bytes = wal_bytes(&self.file);
        let main_bytes = fs::metadata(&self.file)?.len();
        Ok(Stat {
            entries: meta(&moment, "tally_entries")? + count_after(&moment, meta(&moment, "tally_epoch")?)?,
            first_epoch,
            last_epoch,
            reserved: meta(&moment, "reserved")?,
            bytes: main_bytes + wal_bytes,
            wal_bytes,
            page_bytes,
            pages,
            free_pages: number("freelist_count")?,
        })
    }
}
