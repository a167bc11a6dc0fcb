//! What a Field's snapshot is worth, for whoever asks without a hub: `akashik log verify` and `log stat`.

use std::path::Path;

use super::restore::follow;
use super::snapshot_file::{SnapshotFile, Unusable};
use crate::field::State;
use crate::log::{LogError, LogReader};

/// How closely a snapshot is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scrutiny {
    /// What it says of itself, and whether it belongs to the log.
    Glance,
    /// Besides, every byte of it: the state is put together.
    Whole,
    /// Besides, whether the log comes to the same state. Takes as long as a start without a snapshot, and the memory of
    /// two states.
    Applied,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotReport {
    /// Whether there is a file at all.
    pub is_there: bool,
    /// The last entry that it holds; 0 where it does not say.
    pub epoch: u64,
    /// How many entries it holds.
    pub entries: u64,
    /// How large it is.
    pub bytes: u64,
    /// Why the next start will not use it.
    pub unusable: Option<String>,
    /// Whether the log comes to the same state, where that was asked.
    pub agrees: Option<bool>,
}

/// Looks at the snapshot in a Field's directory.
///
/// # Errors
/// A log that cannot be read. Whatever is wrong with the snapshot is in the report.
pub fn inspect_snapshot(
    directory: &Path,
    reader: &dyn LogReader,
    scrutiny: Scrutiny,
) -> Result<SnapshotReport, LogError> {
    let mut report = SnapshotReport::default();
    match inspect(directory, reader, scrutiny, &mut report) {
        Ok(()) | Err(Unusable::Absent) => Ok(report),
        Err(Unusable::Log(error)) => Err(error),
        Err(reason) => {
            report.is_there = true;
            report.unusable = Some(reason.to_string());
            Ok(report)
        }
    }
}

fn inspect(
    directory: &Path,
    reader: &dyn LogReader,
    scrutiny: Scrutiny,
    report: &mut SnapshotReport,
) -> Result<(), Unusable> {
    let file = SnapshotFile::open(directory)?;
    report.is_there = true;
    (report.epoch, report.entries, report.bytes) = (file.belonging.epoch, file.belonging.entries, file.bytes);
    file.check(reader)?;
    if scrutiny < Scrutiny::Whole {
        return Ok(());
    }
    let state = file.state()?;
    if scrutiny == Scrutiny::Applied {
        let log = follow(reader, State::default(), file.belonging.epoch, |_| {}).map_err(Unusable::Log)?;
        report.agrees = Some(log.world == state.world && log.ledger == state.ledger);
    }
    Ok(())
}
