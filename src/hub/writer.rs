//! The log thread: the only writer of a Field's log.
//!
//! It does what costs time, so that the actor decides on: turning entries into text, the flush, reading the
//! log back after a failure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Sender;

use super::restore::{Restored, restore};
use crate::field::Entry;
use crate::log::{Batch, Log, LogError, Row};

/// How long the thread stays awake after a job, letting others run: a lone agent's next message comes within it, and
/// being woken from sleep costs about as much as half a flush. An idle hub does not notice.
const LINGER: Duration = Duration::from_micros(250);

/// How long nothing must be asked before the log gets time for housekeeping.
const QUIET: Duration = Duration::from_millis(200);

/// What the actor asks of the log thread. One job at a time is in flight, but for `Release`, the last.
#[derive(Debug)]
pub(super) enum Job {
    /// Make entries durable, and the clock's mark with them.
    Append { entries: Vec<Arc<Entry>>, reserve: Option<u64> },
    /// Raise the clock's mark while the log is full; nothing else depends on it.
    Reserve(u64),
    /// Is there space again?
    Probe,
    /// Throw the connection away and tell what the log really holds.
    Reload,
    /// The end: the mark is set to the clock exactly.
    Release(u64),
}

/// What the log thread answers.
#[derive(Debug)]
pub(super) enum Done {
    Appended { result: Result<(), LogError>, entries: usize, took: Duration },
    Reserved(Result<u64, LogError>),
    Probed(Result<(), LogError>),
    Reloaded(Box<Result<Restored, LogError>>),
    Released(Result<(), LogError>),
}

/// Runs until the actor goes away or releases the log.
/// In this directory, if in any, lies the snapshot of the state.
pub(super) fn run(
    mut log: Box<dyn Log>,
    directory: Option<PathBuf>,
    jobs: &Receiver<Job>,
    done: &Sender<Done>,
) {
    // Whether anything was written since the last housekeeping.
    let mut stirred = true;
    loop {
        let job = match next(jobs, stirred) {
            Ok(job) => job,
            Err(RecvTimeoutError::Timeout) => {
                if stirred && let Err(error) = log.rest() {
                    tracing::debug!(%error, "the log's housekeeping is put off");
                }
                stirred = false;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        stirred = true;
        let last = matches!(job, Job::Release(_));
        if done.blocking_send(perform(log.as_mut(), directory.as_deref(), job)).is_err() || last {
            return;
        }
    }
}

/// The next job: looked for while awake, if something was done just now, then waited for.
fn next(jobs: &Receiver<Job>, linger: bool) -> Result<Job, RecvTimeoutError> {
    let began = Instant::now();
    while linger && began.elapsed() < LINGER {
        if let Ok(job) = jobs.try_recv() {
            return Ok(job);
        }
        thread::yield_now();
    }
    jobs.recv_timeout(QUIET)
}

fn perform(log: &mut dyn Log, directory: Option<&Path>, job: Job) -> Done {
    match job {
        Job::Append { entries, reserve } => {
            let began = Instant::now();
            let rows: Vec<_> =
                entries.iter().map(|entry| Row { epoch: entry.epoch, body: entry.to_json() }).collect();
            let result = log.append(&Batch { rows: &rows, reserve });
            Done::Appended { result, entries: rows.len(), took: began.elapsed() }
        }
        Job::Reserve(mark) => {
            let result = log.append(&Batch { rows: &[], reserve: Some(mark) });
            if result.is_err() {
                // No row was at stake, so nothing needs to be read back.
                if let Err(error) = log.reopen() {
                    return Done::Reserved(Err(error));
                }
            }
            Done::Reserved(result.map(|()| mark))
        }
        Job::Probe => Done::Probed(log.probe()),
        Job::Reload => Done::Reloaded(Box::new(reload(log, directory))),
        Job::Release(clock) => Done::Released(log.release(clock)),
    }
}

fn reload(log: &mut dyn Log, directory: Option<&Path>) -> Result<Restored, LogError> {
    log.reopen()?;
    let reader = log.reader()?;
    restore(reader.as_ref(), directory, |_| ())
}
