//! A copy of a log, made while a hub writes it.
//!
//! SQLite's own way of copying pages, all of them in one step: a step reads from one moment, and would begin anew
//! whenever a commit came between two. Writers do not wait for it; their journal grows meanwhile. The copy gets its name
//! only once it is whole and on the disk.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::log::LogError;
use crate::log::database::{beside, directory_of, ends, file_of, open_reader, sync_directory};

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The last row's epoch, 0 when there are none.
    pub last_epoch: u64,
    /// How large the copy is.
    pub bytes: u64,
}

/// Copies the log in a directory (or at a path that ends in `.db`) to a file that is not there yet, and makes the
/// directory for it where that is missing.
///
/// # Errors
/// [`LogError::Occupied`] if there is something at `to` already, which is left as it is; [`LogError::Busy`] if another
/// copy to it is being made; [`LogError::Full`] if it does not fit. Then nothing is there by that name.
pub fn backup(dir: &Path, to: &Path) -> Result<Copied, LogError> {
    let source = open_reader(&file_of(dir))?;
    if to.file_name().is_none() || fs::symlink_metadata(to).is_ok() {
        return Err(LogError::Occupied(to.display().to_string()));
    }
    let directory = directory_of(to);
    fs::create_dir_all(directory)?;
    let unfinished = beside(to, ".unfinished");
    let copying = claim(&unfinished)?;
    let copied = copy(&source, &unfinished).and_then(|copied| {
        copying.sync_all()?;
        // A link, unlike a new name, never takes the place of what somebody else put there meanwhile.
        match fs::hard_link(&unfinished, to) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(LogError::Occupied(to.display().to_string()));
            }
            // Not every file system has links.
            Err(_) => fs::rename(&unfinished, to)?,
        }
        sync_directory(directory)?;
        Ok(copied)
    });
    clear(&unfinished);
    copied
}

/// Makes the file that the copy is written to, for us alone: what an interrupted copy left there is written over.
fn claim(unfinished: &Path) -> Result<File, LogError> {
    let file = File::options().create(true).truncate(false).write(true).open(unfinished)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(LogError::Busy(format!("{} is being written", unfinished.display())));
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    for ending in ["-journal", "-wal", "-shm"] {
        let _ = fs::remove_file(beside(unfinished, ending));
    }
    file.set_len(0)?;
    Ok(file)
}

fn copy(source: &Connection, unfinished: &Path) -> Result<Copied, LogError> {
    let mut target = Connection::open(unfinished)?;
    // Nobody has seen this file yet: what goes wrong is thrown away, and it is flushed once, at the end.
    target.pragma_update_and_check(None, "journal_mode", "off", |_| Ok(()))?;
    target.pragma_update(None, "synchronous", "off")?;
    match Backup::new(source, &mut target)?.step(-1)? {
        StepResult::Done => {}
        _ => return Err(LogError::Busy("the log could not be read just now; try again".to_owned())),
    }
    let (_, last_epoch) = ends(&target)?;
    target.close().map_err(|(_, error)| LogError::from(error))?;
    Ok(Copied { last_epoch, bytes: fs::metadata(unfinished)?.len() })
}

/// Removes what was only needed meanwhile.
fn clear(unfinished: &Path) {
    let names: [PathBuf; 4] = ["", "-journal", "-wal", "-shm"].map(|ending| beside(unfinished, ending));
    for name in names {
        // Most of them are not there.
        let _ = fs::remove_file(name);
    }
}
