//! What a disk takes alone for the same bytes: an append and its flush, nothing else.
//!
//! Disks that others use too change their pace from second to second: measure before and after, and trust a
//! ratio only where both agree.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::tally::Tally;

/// How long to measure.
const DURATION: Duration = Duration::from_secs(1);
/// Enough for a median, should the disk be slow.
const ROUNDS_MIN: u64 = 20;

/// Appends of `bytes`, each with its fdatasync, for a second.
pub(super) fn sample(directory: &Path, bytes: usize) -> io::Result<Tally> {
    let path = directory.join(format!(".akashik-bench-{:016x}", rand::random::<u64>()));
    let measured = measure(&path, bytes);
    // Also after a failure; a file that was never made is none to remove.
    let removed = fs::remove_file(&path);
    let tally = measured?;
    removed?;
    Ok(tally)
}

fn measure(path: &Path, bytes: usize) -> io::Result<Tally> {
    let mut file = OpenOptions::new().create_new(true).append(true).open(path)?;
    let block = vec![b'x'; bytes];
    let mut tally = Tally::new();
    let begin = Instant::now();
    while begin.elapsed() < DURATION || tally.measured() < ROUNDS_MIN {
        let started = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        tally.measure(started.elapsed());
    }
    Ok(tally)
}
