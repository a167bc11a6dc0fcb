//! When a Field's snapshot is written, and by whom: a thread of its own, behind everybody else.
//!
//! The actor takes the snapshot, which costs it a few pointers, when so many entries came since the last one, and hands
//! it over once these are durable; so a snapshot is never ahead of the log. One is written at a time. A purge makes
//! one due at once, and the old one, which still tells what was purged, goes before it is written. The thread writes a
//! little, flushes it, and waits as long as that took: the disk and the processor are the writers' first. Where it fails,
//! a line in the log says so, and the next one comes in its time.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::courtesy::{INDEX_NICENESS, step_back};
use super::snapshot_file::{self, Belonging};
use crate::field::{Snapshot, World};
use crate::limits::{SNAPSHOT_AT_STOP_MS, SNAPSHOT_SLICE_BYTES};
use crate::log::LogReader;

/// A Field that holds many more entries than come between two snapshots writes one after this part of them, so that
/// what is written stays in proportion to what came.
const GROWTH: u64 = 8;

/// How a snapshot is written.
#[derive(Debug)]
enum Job {
    /// Slowly, while others work.
    Behind(Snapshot),
    /// At once and not for long: the hub stops.
    Last(Snapshot),
}

/// What the actor and the thread share.
#[derive(Debug, Default)]
struct Course {
    /// One is being written.
    busy: AtomicBool,
    /// Whoever writes gives up.
    stopping: AtomicBool,
    /// Entries in the newest one that was written, or tried.
    taken: AtomicU64,
    /// Of how many purges the file knows, if there is one.
    purges: AtomicUsize,
}

/// The actor's side.
#[derive(Debug)]
pub(super) struct SnapshotKeeper {
    /// Entries between two; 0 is never.
    every: u64,
    course: Arc<Course>,
    jobs: Option<SyncSender<Job>>,
}

impl SnapshotKeeper {
    /// Writes none.
    pub fn none() -> Self {
        Self { every: 0, course: Arc::default(), jobs: None }
    }

    /// Writes one after every so many entries, 0 for never, into a Field's directory. `taken` are the entries of the one
    /// that is there, and of how many purges it knows.
    pub fn start(
        field: &str,
        directory: PathBuf,
        every: u64,
        taken: (u64, usize),
        reader: Box<dyn LogReader>,
    ) -> io::Result<(Self, thread::JoinHandle<()>)> {
        let (jobs, jobs_in) = sync_channel(1);
        let (taken, purges) = (AtomicU64::new(taken.0), AtomicUsize::new(taken.1));
        let course = Arc::new(Course { taken, purges, ..Course::default() });
        let course_too = Arc::clone(&course);
        let writer =
            Writer { field: field.to_owned(), directory, reader, writes: every > 0, course: course_too };
        let thread = thread::Builder::new()
            .name(format!("akashik-snap-{field}"))
            .spawn(move || writer.run(&jobs_in))?;
        Ok((Self { every, course, jobs: Some(jobs) }, thread))
    }

    /// Whether it is time for one, in such a Field.
    pub fn is_due(&self, world: &World) -> bool {
        let taken = self.course.taken.load(Ordering::Acquire);
        let every = self.every.max(taken / GROWTH);
        let many = self.every > 0 && world.entries.saturating_sub(taken) >= every;
        (many || self.tells_too_much(world))
            && self.jobs.is_some()
            && !self.course.busy.load(Ordering::Acquire)
    }

    /// Whether there may be one that still tells what was purged since.
    fn tells_too_much(&self, world: &World) -> bool {
        world.purges.len() > self.course.purges.load(Ordering::Acquire)
    }

    /// Has one written whose entries are durable.
    pub fn keep(&self, snapshot: Snapshot) {
        self.send(Job::Behind(snapshot));
    }

    /// The hub stops: has a last one written if that spares the next start something, and none after it.
    pub fn finish(&mut self, snapshot: impl FnOnce() -> Snapshot, world: &World) {
        self.course.stopping.store(true, Ordering::Release);
        let since = world.entries.saturating_sub(self.course.taken.load(Ordering::Acquire));
        // One that was begun is given up, so what it would have held counts as well.
        let unfinished = self.course.busy.load(Ordering::Acquire);
        let many = self.every > 0 && (unfinished || since >= self.every.div_ceil(GROWTH));
        if many || self.tells_too_much(world) {
            self.send(Job::Last(snapshot()));
        }
        self.jobs = None;
    }

    fn send(&self, job: Job) {
        let Some(jobs) = &self.jobs else { return };
        self.course.busy.store(true, Ordering::Release);
        // There is room for one, and only the last comes while another is being written.
        if jobs.try_send(job).is_err() {
            self.course.busy.store(false, Ordering::Release);
        }
    }
}

/// However the actor ends, what is being written is given up.
impl Drop for SnapshotKeeper {
    fn drop(&mut self) {
        self.course.stopping.store(true, Ordering::Release);
    }
}

struct Writer {
    field: String,
    directory: PathBuf,
    reader: Box<dyn LogReader>,
    /// Whether any are written; else old ones are removed at most.
    writes: bool,
    course: Arc<Course>,
}

impl Writer {
    fn run(self, jobs: &Receiver<Job>) {
        step_back(INDEX_NICENESS);
        while let Ok(job) = jobs.recv() {
            match job {
                Job::Behind(snapshot) => {
                    let mut pace = Pace::new(&self.course.stopping);
                    self.write(&snapshot, &mut |file, bytes| pace.written(file, bytes));
                }
                Job::Last(snapshot) => {
                    let until = Instant::now() + Duration::from_millis(SNAPSHOT_AT_STOP_MS);
                    self.write(&snapshot, &mut |_, _| match Instant::now() < until {
                        true => Ok(()),
                        false => Err(io::ErrorKind::TimedOut.into()),
                    });
                }
            }
            // The snapshot itself is gone by now: letting go of a large one takes its time, too.
            self.course.busy.store(false, Ordering::Release);
        }
    }

    fn write(&self, snapshot: &Snapshot, pause: &mut dyn FnMut(&File, usize) -> io::Result<()>) {
        let (epoch, entries) = (snapshot.epoch(), snapshot.entries());
        let began = Instant::now();
        let field = &*self.field;
        if snapshot.purges() > self.course.purges.load(Ordering::Acquire) {
            if !snapshot_file::remove(&self.directory) {
                return;
            }
            self.course.purges.store(snapshot.purges(), Ordering::Release);
        }
        if !self.writes {
            return;
        }
        match write(&self.directory, &*self.reader, snapshot, pause) {
            Ok(bytes) => {
                let took_ms = began.elapsed().as_millis();
                tracing::info!(field, epoch, entries, bytes, took_ms, "a snapshot was written");
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                tracing::info!(
                    field,
                    "a snapshot would have taken too long; the next start reads more of the log"
                );
            }
            Err(error) => {
                tracing::warn!(field, %error, "a snapshot could not be written; the next start reads more of the log");
            }
        }
        self.course.taken.store(entries, Ordering::Release);
    }
}

fn write(
    directory: &Path,
    reader: &dyn LogReader,
    snapshot: &Snapshot,
    pause: &mut dyn FnMut(&File, usize) -> io::Result<()>,
) -> io::Result<u64> {
    let belonging = Belonging::of(reader, snapshot.epoch(), snapshot.entries()).map_err(io::Error::other)?;
    // It was durable when this was asked for: so the log is not what it was.
    let belonging = belonging.ok_or_else(|| io::Error::other("the log does not hold its last entry"))?;
    snapshot_file::write(directory, snapshot, &belonging, pause)
}

/// Lets others come first.
struct Pace<'a> {
    stopping: &'a AtomicBool,
    unflushed: usize,
    since: Instant,
}

impl<'a> Pace<'a> {
    fn new(stopping: &'a AtomicBool) -> Self {
        Self { stopping, unflushed: 0, since: Instant::now() }
    }

    fn written(&mut self, file: &File, bytes: usize) -> io::Result<()> {
        if self.stopping.load(Ordering::Acquire) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.unflushed += bytes;
        if self.unflushed >= SNAPSHOT_SLICE_BYTES {
            // A flush of the log would have to wait for all that is not on the disk yet.
            file.sync_data()?;
            thread::sleep(self.since.elapsed());
            (self.unflushed, self.since) = (0, Instant::now());
        }
        Ok(())
    }
}
