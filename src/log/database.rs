//! The database file of a log: where it lies, what is in it, how a connection to it is set up.
//!
//! Shared by the log itself, its readers, the verifier and the copier.
//!
//! A caution for whoever works here: on Unix a process loses SQLite's locks on a file as soon as
//! it closes *any* descriptor of that file. Never open the database with `std::fs` while a
//! connection is open; `metadata` is harmless.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row as SqlRow, types::ValueRef};

use crate::log::LogError;

/// Marks a database as ours in its header: "AKSH".
const APPLICATION_ID: u32 = 0x414b_5348;
/// The format that this program writes and the newest that it reads.
const FORMAT: u64 = 1;
/// Bytes of a page. Measured against 8 KiB, which saves a little in large batches and doubles
/// what a small commit writes.
const PAGE_BYTES: u32 = 4096;
/// Page cache of the writer in KiB: a batch of usual size fits, a larger one spills early.
const WRITER_CACHE_KIB: i64 = 1024;
/// Page cache of a reader in KiB: it streams, so it needs hardly more than the path to a leaf.
const READER_CACHE_KIB: i64 = 128;
/// Prepared statements kept by a connection: all that this room uses.
const STATEMENTS: usize = 16;
/// How long to wait for a lock that another process holds, such as a user's `sqlite3` shell.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(5);
/// How long to wait for the lock of a hub that was killed just now and is still being cleared away.
const PREDECESSOR_WAIT: Duration = Duration::from_secs(2);
/// Pages in the write-ahead file at which a commit copies them over itself. Large enough that an
/// idle moment usually comes first, small enough to bound the file and the stall.
const CHECKPOINT_PAGES: u32 = 2048;
/// Bytes that the write-ahead file may keep for reuse: what [`CHECKPOINT_PAGES`] amount to.
pub(super) const WAL_KEEP_BYTES: u32 = CHECKPOINT_PAGES * PAGE_BYTES;

const SCHEMA: &str = "
    CREATE TABLE entries(
        epoch INTEGER PRIMARY KEY,
        crc INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE TABLE meta(
        key TEXT PRIMARY KEY,
        value ANY NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT INTO meta(key, value) VALUES
        ('reserved', 0), ('tally_entries', 0), ('tally_epoch', 0), ('reopened', 0);
";

/// The database file that a path means: itself if it is a file or ends in `.db`, otherwise
/// `field.db` in it.
pub(super) fn file_of(path: &Path) -> PathBuf {
    if path.is_file() || path.extension().is_some_and(|extension| extension == "db") {
        path.to_path_buf()
    } else {
        path.join("field.db")
    }
}

/// A file that SQLite keeps beside the database, by its ending.
pub(super) fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// The directory that a file is in.
pub(super) fn directory_of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes sure that nobody else writes this log, as long as the file returned is kept.
pub(super) fn lock(file: &Path) -> Result<File, LogError> {
    let directory = directory_of(file);
    if !directory.exists() {
        fs::create_dir_all(directory)?;
        sync_directory(directory_of(directory))?;
    }
    let place = beside(file, ".lock");
    let lock = File::options().create(true).truncate(false).write(true).open(&place)?;
    // Whatever is in it says that the log was made once; see `mark_made`.
    let was_made = lock.metadata()?.len() > 0;
    if was_made && fs::metadata(file).map_or(true, |metadata| metadata.len() == 0) {
        return Err(LogError::Corrupt {
            epoch: None,
            what: format!(
                "{} was there before and is missing or empty now: restore it, or remove {} to begin anew",
                file.display(),
                directory.display()
            ),
        });
    }
    let deadline = Instant::now() + PREDECESSOR_WAIT;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                let place = place.display();
                return Err(LogError::Busy(format!("another hub has locked {place}")));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
}

/// Notes in the lock's file that the log exists from now on, so that a lost file is not taken for a new log.
pub(super) fn mark_made(mut lock: &File) -> Result<(), LogError> {
    if lock.metadata()?.len() == 0 {
        lock.write_all(b"The log beside this file was made. Remove both to begin anew.\n")?;
        lock.sync_all()?;
    }
    Ok(())
}

/// Which file stands at a path: another one under the same name is another log. Nothing where the system cannot
/// tell, or where there is none.
pub(super) fn identity(file: &Path) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(file).ok().map(|metadata| (metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        None
    }
}

/// Opens the writer's connection and creates what is not there yet.
pub(super) fn open_writer(file: &Path, max_bytes: Option<u64>) -> Result<Connection, LogError> {
    let connection =
        connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE, WRITER_CACHE_KIB)
            .map_err(|error| named(error, file))?;
    // Look before touching: a file that is not ours stays as it is.
    let fresh = is_blank(&connection)?;
    if !fresh {
        check_format(&connection, file)?;
    }
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(LogError::Io(format!(
            "the file system allows no write-ahead log (journal mode stays {mode})"
        )));
    }
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", WAL_KEEP_BYTES)?;
    if fresh {
        connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {SCHEMA}
             INSERT INTO meta(key, value) VALUES ('format', {FORMAT});
             PRAGMA application_id = {APPLICATION_ID}; COMMIT;"
        ))?;
        // The file's name must last as surely as what is in it.
        sync_directory(directory_of(file))?;
    }
    if let Some(max_bytes) = max_bytes {
        // SQLite never sets this below the present size: then the log is simply full.
        let pages = i64::try_from((max_bytes / u64::from(PAGE_BYTES)).clamp(1, 0xffff_fffe)).unwrap_or(1);
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(connection)
}

/// Opens a connection that cannot write. The file has to be there.
pub(super) fn open_reader(file: &Path) -> Result<Connection, LogError> {
    if !file.is_file() {
        return Err(LogError::Absent(file.display().to_string()));
    }
    match open_checked(file, file, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        // On a read-only medium SQLite cannot create the files that it keeps beside the database.
        // Without a journal nobody has it open, so it may be read as something that never changes.
        Err(LogError::Io(_)) if !beside(file, "-wal").exists() => open_unchanging(file),
        other => other,
    }
}

/// Opens a reader's connection by the name that SQLite is to use.
fn open_checked(name: &Path, file: &Path, flags: OpenFlags) -> Result<Connection, LogError> {
    let connection = connect(name, flags, READER_CACHE_KIB).map_err(|error| named(error, file))?;
    check_format(&connection, file)?;
    Ok(connection)
}

/// Opens a file that nobody can be writing, without any file beside it.
fn open_unchanging(file: &Path) -> Result<Connection, LogError> {
    let mut name = String::from("file:");
    for part in file.to_string_lossy().chars() {
        match part {
            '%' => name.push_str("%25"),
            '?' => name.push_str("%3f"),
            '#' => name.push_str("%23"),
            plain => name.push(plain),
        }
    }
    name.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    open_checked(Path::new(&name), file, flags)
}

/// Opens a connection and sets it up. This reads the file's first page already.
fn connect(file: &Path, flags: OpenFlags, cache_kib: i64) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(LOCK_WAIT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Negative means KiB. No memory map: a failing disk would end the process by a signal.
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Whether there is nothing in the database: just created, or left so by a hub that was killed
/// while it created it.
fn is_blank(connection: &Connection) -> Result<bool, LogError> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok(tables == 0 && id == 0)
}

/// Refuses a database that is not ours or newer than this program.
fn check_format(connection: &Connection, file: &Path) -> Result<(), LogError> {
    let id: i64 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(|error| named(error, file))?;
    if id != i64::from(APPLICATION_ID) {
        return Err(LogError::Foreign(file.display().to_string()));
    }
    let found = meta(connection, "format")?;
    if found != FORMAT {
        return Err(LogError::Format { found, supported: FORMAT });
    }
    Ok(())
}

/// Puts the file's name into the error for something that is no database at all.
fn named(error: rusqlite::Error, file: &Path) -> LogError {
    match LogError::from(error) {
        LogError::Foreign(_) => LogError::Foreign(file.display().to_string()),
        other => other,
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(directory: &Path) -> Result<(), LogError> {
    // Elsewhere a directory cannot be opened as a file, and the system looks after its names.
    if cfg!(unix) {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// A number of the `meta` table, 0 when it is not there.
pub(super) fn meta(connection: &Connection, key: &str) -> Result<u64, LogError> {
    let value: Option<i64> = connection
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    u64::try_from(value.unwrap_or(0)).map_err(|_| LogError::corrupt(format!("{key} is a negative number")))
}

/// Sets a number of the `meta` table.
pub(super) fn set_meta(connection: &Connection, key: &str, value: u64) -> Result<(), LogError> {
    let value = stored(value)?;
    connection.prepare_cached("UPDATE meta SET value = ?2 WHERE key = ?1")?.execute((key, value))?;
    Ok(())
}

/// The first and last epoch, 0 and 0 when there are no rows.
pub(super) fn ends(connection: &Connection) -> Result<(u64, u64), LogError> {
    // Two subqueries: SQLite looks each end up directly, but scans for both at once.
    let (first, last) = connection
        .prepare_cached(
            "SELECT ifnull((SELECT min(epoch) FROM entries), 0),
                    ifnull((SELECT max(epoch) FROM entries), 0)",
        )?
        .query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    Ok((epoch_of(first)?, epoch_of(last)?))
}

/// How many rows there are behind an epoch. Reads them all, so the tail should be short.
pub(super) fn count_after(connection: &Connection, epoch: u64) -> Result<u64, LogError> {
    let count: i64 = connection
        .prepare_cached("SELECT count(*) FROM entries WHERE epoch > ?1")?
        .query_row([stored(epoch)?], |row| row.get(0))?;
    epoch_of(count)
}

/// A number as SQLite stores it.
pub(super) fn stored(number: u64) -> Result<i64, LogError> {
    i64::try_from(number).map_err(|_| LogError::Range { number })
}

/// An epoch as SQLite returns it.
pub(super) fn epoch_of(value: i64) -> Result<u64, LogError> {
    u64::try_from(value).map_err(|_| LogError::corrupt(format!("a row has the epoch {value}")))
}

/// The checksum of a row. The epoch is part of it, so that a body under a wrong epoch is noticed.
pub(super) fn checksum(epoch: u64, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&epoch.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// Takes `epoch, crc, body` out of a result row and checks them.
pub(super) fn intact<'a>(row: &'a SqlRow<'_>) -> Result<(u64, &'a str), LogError> {
    let epoch = epoch_of(row.get(0)?)?;
    let damaged = |what: &str| LogError::Corrupt { epoch: Some(epoch), what: what.to_owned() };
    let crc: i64 = row.get(1)?;
    let ValueRef::Text(bytes) = row.get_ref(2)? else {
        return Err(damaged("the body is no text"));
    };
    if crc != i64::from(checksum(epoch, bytes)) {
        return Err(damaged("the checksum does not match the body"));
    }
    let body = std::str::from_utf8(bytes).map_err(|_| damaged("the body is not UTF-8"))?;
    Ok((epoch, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_a_file() {
        assert_eq!(file_of(Path::new("a/b")), Path::new("a/b/field.db"));
        assert_eq!(file_of(Path::new("a/b.db")), Path::new("a/b.db"));
        assert_eq!(beside(Path::new("a/b.db"), "-wal"), Path::new("a/b.db-wal"));
        assert_eq!(directory_of(Path::new("b.db")), Path::new("."));
    }

    #[test]
    fn a_file_that_never_changes_is_read_without_files_beside_it() {
        let dir = tempfile::tempdir().expect("tempdir");
        let file = dir.path().join("50% of? #1.db");
        drop(open_writer(&file, None).expect("create"));
        let connection = open_unchanging(&file).expect("open");
        assert_eq!(ends(&connection), Ok((0, 0)));
        assert_eq!(fs::read_dir(dir.path()).expect("list").count(), 1);
    }
}
