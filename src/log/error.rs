//! What can go wrong with a log, and how the causes that SQLite reports are told apart.
//!
//! The one distinction that the hub acts on is *full* against everything else: a full disk or
//! quota passes when somebody makes room, so the hub goes on serving reads and asks again.

use std::io;

use rusqlite::ErrorCode;
use rusqlite::ffi;

/// Why the log could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No room: the disk, a disk quota, a limit on the size of files, or the log's own quota.
    #[error("no room for the log: {0}")]
    Full(String),
    /// The system failed to read or write, or SQLite itself failed.
    #[error("the log cannot be read or written: {0}")]
    Io(String),
    /// What the log holds is damaged.
    #[error("the log is damaged{}: {what}", at(*.epoch))]
    Corrupt {
        /// The row's epoch, where the damage is known to be a row's.
        epoch: Option<u64>,
        /// What is wrong.
        what: String,
    },
    /// An epoch that is not above the one before it. Nothing was written.
    #[error("epoch {epoch} cannot follow epoch {after} in the log")]
    Disorder {
        /// The epoch that does not fit.
        epoch: u64,
        /// The epoch that it would have to be above (or, for a mark, not below).
        after: u64,
    },
    /// A number that the log cannot store. Nothing was written.
    #[error("{number} is larger than any epoch that a log can store")]
    Range {
        /// The number.
        number: u64,
    },
    /// The log was written by another, usually newer, version of the hub.
    #[error("the log has format {found}, this program knows formats up to {supported}")]
    Format {
        /// The format of the file.
        found: u64,
        /// The newest format that this program reads and writes.
        supported: u64,
    },
    /// The file is something else than a hub's log.
    #[error("{0} is not the log of a hub")]
    Foreign(String),
    /// There is no log at that place.
    #[error("there is no log at {0}")]
    Absent(String),
    /// There is something where a copy was to be put.
    #[error("{0} is there already and is left as it is; name a file that is not there yet")]
    Occupied(String),
    /// Somebody else holds the log.
    #[error("the log is in use: {0}")]
    Busy(String),
    /// An earlier write failed and the log was not reopened since.
    #[error("a write to the log failed; it must be reopened before the next one")]
    Broken,
}

/// " at epoch 7", or nothing.
fn at(epoch: Option<u64>) -> String {
    epoch.map_or_else(String::new, |epoch| format!(" at epoch {epoch}"))
}

impl LogError {
    /// A damage that belongs to no row.
    pub(super) fn corrupt(what: impl ToString) -> Self {
        LogError::Corrupt { epoch: None, what: what.to_string() }
    }
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        if says_full(&error) { LogError::Full(error.to_string()) } else { LogError::Io(error.to_string()) }
    }
}

impl From<rusqlite::Error> for LogError {
    fn from(error: rusqlite::Error) -> Self {
        // First of all, before any other call can replace it: the system's own reason, if the
        // failure was a failed system call.
        let system = io::Error::last_os_error();
        match error {
            rusqlite::Error::SqliteFailure(failure, message) => {
                let message = message.unwrap_or_else(|| failure.to_string());
                of_failure(failure, message, &system)
            }
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::InvalidColumnType(..) => LogError::corrupt(error),
            other => LogError::Io(other.to_string()),
        }
    }
}

/// Sorts a failure of SQLite. `system` is the errno of this thread right after it.
fn of_failure(failure: ffi::Error, message: String, system: &io::Error) -> LogError {
    match failure.code {
        // SQLite says this itself for its page limit and for ENOSPC in a plain write.
        ErrorCode::DiskFull => LogError::Full(message),
        // EDQUOT and EFBIG it reports as a failed write, and ENOSPC as well where the file system
        // allocates late (at the flush) or where the shared index file could not grow. These codes
        // always stem from a system call of this thread that has just failed, so its errno is the
        // cause. (`sqlite3_system_errno` holds the same number, but only behind unsafe code.)
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen if stems_from_write(failure) => {
            let text = format!("{message} ({system})");
            if says_full(system) { LogError::Full(text) } else { LogError::Io(text) }
        }
        ErrorCode::DatabaseCorrupt => LogError::corrupt(message),
        ErrorCode::NotADatabase => LogError::Foreign(format!("the file ({message})")),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => LogError::Busy(message),
        _ => LogError::Io(format!("{message} (SQLite {})", failure.extended_code)),
    }
}

/// Whether the failure is that of a call that could have needed room.
fn stems_from_write(failure: ffi::Error) -> bool {
    matches!(
        failure.extended_code,
        ffi::SQLITE_IOERR_WRITE
            | ffi::SQLITE_IOERR_FSYNC
            | ffi::SQLITE_IOERR_DIR_FSYNC
            | ffi::SQLITE_IOERR_TRUNCATE
            | ffi::SQLITE_IOERR_CLOSE
            | ffi::SQLITE_IOERR_SHMOPEN
            | ffi::SQLITE_IOERR_SHMSIZE
            | ffi::SQLITE_IOERR_SHMMAP
            | ffi::SQLITE_CANTOPEN
    )
}

/// Whether the system's reason is that there is no room.
fn says_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(extended_code: i32, errno: i32) -> LogError {
        of_failure(
            ffi::Error::new(extended_code),
            "disk I/O error".to_owned(),
            &io::Error::from_raw_os_error(errno),
        )
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn no_room_is_told_apart_from_a_failing_disk() {
        const EIO: i32 = 5;
        const EFBIG: i32 = 27;
        const ENOSPC: i32 = 28;
        const EDQUOT: i32 = 122;
        assert!(matches!(sorted(ffi::SQLITE_FULL, 0), LogError::Full(_)));
        for errno in [EFBIG, ENOSPC, EDQUOT] {
            for code in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_SHMSIZE] {
                assert!(matches!(sorted(code, errno), LogError::Full(_)));
            }
            // A short read comes from no failed call: an old errno must not colour it.
            let read = sorted(ffi::SQLITE_IOERR_SHORT_READ, errno);
            assert!(matches!(read, LogError::Io(_)));
        }
        assert!(matches!(sorted(ffi::SQLITE_IOERR_FSYNC, EIO), LogError::Io(_)));
    }

    #[test]
    fn messages_read_well() {
        let damaged = LogError::Corrupt { epoch: Some(7), what: "checksum".to_owned() };
        assert_eq!(damaged.to_string(), "the log is damaged at epoch 7: checksum");
        assert_eq!(LogError::corrupt("page 3").to_string(), "the log is damaged: page 3");
    }
}
