//! Recovery: the state rebuilt from a snapshot, where there is one, and the log behind it, by applying and nothing else.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use super::shelf;
use super::snapshot_file::{self, SnapshotFile, Unusable};
use crate::field::{Entry, State, World, apply};
use crate::log::{LogError, LogReader};
use crate::protocol::Timestamp;

/// A state as the log tells it, and how far the clock was reserved.
#[derive(Debug)]
pub(super) struct Restored {
    pub state: State,
    pub reserved: u64,
    /// How many entries came from a snapshot.
    pub from_snapshot: u64,
    /// Of how many purges that snapshot knows.
    pub purges: usize,
}

impl Restored {
    /// The state with which a new process begins: its clock starts at the reserved mark, so that no epoch
    /// that anybody was ever shown is handed out again (section 2, restart), and whoever lives by connections
    /// has the full grace time to return.
    pub fn reborn(mut self, now: Timestamp) -> Self {
        self.state.clock = self.state.clock.max(self.reserved);
        self.state.presence.resume(&self.state.world, now);
        self
    }
}

/// How many entries are applied between two calls of `progress`.
const STRIDE: u64 = 4_096;

/// Reads the log, behind the snapshot in `directory` if there is one that belongs to it. `progress` is shown the growing world now and then: units can be indexed while the rest
/// is read.
///
/// # Errors
/// A log that cannot be read, or an entry that this version did not write.
pub(super) fn restore(
    reader: &dyn LogReader,
    directory: Option<&Path>,
    progress: impl Fn(&World),
) -> Result<Restored, LogError> {
    let state = directory.and_then(|directory| from_snapshot(reader, directory)).unwrap_or_default();
    let (from_snapshot, purges) = (state.world.entries, state.world.purges.len());
    progress(&state.world);
    let mut state = follow(reader, state, u64::MAX, |world| {
        if world.entries.is_multiple_of(STRIDE) {
            progress(world);
        }
    })?;
    shelf::settle(reader, &mut state)?;
    Ok(Restored { state, reserved: reader.reserved()?, from_snapshot, purges })
}

/// A state, and what the log holds behind it up to an epoch, applied; `each` is shown the world after every entry.
///
/// # Errors
/// A log that cannot be read, or an entry that this version did not write.
pub(super) fn follow(
    reader: &dyn LogReader,
    mut state: State,
    until: u64,
    each: impl Fn(&World),
) -> Result<State, LogError> {
    let mut fault = None;
    reader.scan(state.world.last_epoch, &mut |epoch, body| {
        if epoch > until {
            return ControlFlow::Break(());
        }
        match Entry::from_json(body) {
            Ok(mut entry) => {
                entry.intern(&state.world);
                apply(&mut state, &entry);
                each(&state.world);
                ControlFlow::Continue(())
            }
            Err(error) => {
                fault = Some(LogError::Corrupt { epoch: Some(epoch), what: error.to_string() });
                ControlFlow::Break(())
            }
        }
    })?;
    fault.map_or(Ok(state), Err)
}

/// The state that the snapshot in a Field's directory holds. Whatever is wrong with it is said, and the log read in its
/// place.
fn from_snapshot(reader: &dyn LogReader, directory: &Path) -> Option<State> {
    let began = Instant::now();
    snapshot_file::tidy(directory);
    let read = SnapshotFile::open(directory).and_then(|file| {
        file.check(reader)?;
        file.state()
    });
    match read {
        Ok(state) => {
            let (epoch, took_ms) = (state.world.last_epoch, began.elapsed().as_millis());
            tracing::info!(
                epoch,
                entries = state.world.entries,
                took_ms,
                "the state was read from a snapshot"
            );
            Some(state)
        }
        Err(Unusable::Absent) => None,
        Err(reason) => {
            let directory_shown = directory.display();
            tracing::warn!(
                "the snapshot in {directory_shown} is not used, the log is read from its beginning: {reason}"
            );
            if let Unusable::OtherLog(_) = reason {
                // It would never be of use again, and might be taken for a copy of what the log once was.
                snapshot_file::remove(directory);
            }
            None
        }
    }
}
