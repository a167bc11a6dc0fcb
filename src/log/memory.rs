//! The log's twin in memory: the same promises for as long as the process lives, and faults on
//! demand.
//!
//! A [`MemoryLog`] is a handle. Its clones share the rows, so "the hub was killed and starts again"
//! is: drop everything that used one handle, and open the next from a clone. [`Faults`] makes the
//! shared memory misbehave, the way that disks do.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::log::{Batch, LARGEST, Log, LogError, LogReader, Row, Stat};

/// Rows that a scan takes at once, so that it neither copies everything nor holds up the writer.
const SCAN_ROWS: usize = 256;

/// A log in memory.
pub struct MemoryLog {
    shared: Arc<Shared>,
    /// A write through this handle failed and it was not reopened since.
    broken: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Rung whenever a fault is set or lifted, and when an append begins to hang.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    rows: BTreeMap<u64, Arc<str>>,
    bytes: u64,
    reserved: u64,
    appends: u64,
    /// What is to happen to an append, by its number.
    failing: BTreeMap<u64, (Moment, LogError)>,
    hanging: BTreeSet<u64>,
    waiting: usize,
    probe_error: Option<LogError>,
    full: bool,
}

/// When a failing append fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nothing of the batch is in the log.
    Before,
    /// All of the batch is in the log, and the writer is told that it failed.
    After,
}

impl MemoryLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::on(Arc::default())
    }

    fn on(shared: Arc<Shared>) -> Self {
        MemoryLog { shared, broken: false }
    }

    /// The means to make this log, and all handles on the same rows, misbehave.
    pub fn faults(&self) -> Faults {
        Faults { shared: Arc::clone(&self.shared) }
    }
}

impl Default for MemoryLog {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for MemoryLog {
    /// Another handle on the same rows, as if opened anew.
    fn clone(&self) -> Self {
        Self::on(Arc::clone(&self.shared))
    }
}

impl Shared {
    /// The state. A test that panicked elsewhere leaves it consistent, so poison is ignored.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done`, at most until `deadline`. Returns whether it came to be.
    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        deadline: Option<Instant>,
        done: impl Fn(&State) -> bool,
    ) -> (MutexGuard<'a, State>, bool) {
        while !done(&state) {
            let left = deadline.map_or(Duration::from_secs(3600), |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return (state, false);
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        (state, true)
    }
}

impl State {
    fn last(&self) -> u64 {
        self.rows.last_key_value().map_or(0, |(epoch, _)| *epoch)
    }

    fn take(&mut self, batch: &Batch<'_>, last: u64) {
        for row in batch.rows {
            self.bytes += row.body.len() as u64;
            self.rows.insert(row.epoch, row.body.as_str().into());
        }
        self.reserved = self.reserved.max(batch.reserve.unwrap_or(0)).max(last);
    }
}

impl Log for MemoryLog {
    fn append(&mut self, batch: &Batch<'_>) -> Result<(), LogError> {
        if self.broken {
            return Err(LogError::Broken);
        }
        let mut state = self.shared.state();
        let last = batch.check(state.last())?;
        state.appends += 1;
        let number = state.appends;
        if state.hanging.contains(&number) {
            state.waiting += 1;
            self.shared.changed.notify_all();
            state = self.shared.wait(state, None, |state| !state.hanging.contains(&number)).0;
            state.waiting -= 1;
        }
        let mut outcome = Ok(());
        if let Some((moment, error)) = state.failing.remove(&number) {
            if moment == Moment::After {
                state.take(batch, last);
            }
            outcome = Err(error);
        } else if state.full {
            outcome = Err(no_room());
        } else {
            state.take(batch, last);
        }
        self.broken = outcome.is_err();
        outcome
    }

    fn release(&mut self, clock: u64) -> Result<(), LogError> {
        if self.broken {
            return Err(LogError::Broken);
        }
        let mut state = self.shared.state();
        let last = state.last();
        if clock < last {
            return Err(LogError::Disorder { epoch: clock, after: last });
        }
        if clock > LARGEST {
            return Err(LogError::Range { number: clock });
        }
        state.reserved = clock;
        Ok(())
    }

    fn rest(&mut self) -> Result<(), LogError> {
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), LogError> {
        self.broken = false;
        Ok(())
    }

    fn probe(&mut self) -> Result<(), LogError> {
        if self.broken {
            return Err(LogError::Broken);
        }
        let state = self.shared.state();
        match &state.probe_error {
            Some(error) => Err(error.clone()),
            None if state.full => Err(no_room()),
            None => Ok(()),
        }
    }

    fn reader(&self) -> Result<Box<dyn LogReader>, LogError> {
        Ok(Box::new(MemoryReader { shared: Arc::clone(&self.shared) }))
    }
}

fn no_room() -> LogError {
    LogError::Full("the test wants it so".to_owned())
}

/// Makes a [`MemoryLog`] misbehave. Clones act on the same log.
///
/// Appends are counted from now on when a fault is set: 1 is the next one. Only appends that fit
/// the log's order and find it unbroken count.
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Shared>,
}

impl Faults {
    /// Lets the `nth` append from now fail, before or after it takes effect.
    pub fn fail_append(&self, nth: u64, moment: Moment, error: LogError) {
        let mut state = self.shared.state();
        let number = state.appends + nth.max(1);
        state.failing.insert(number, (moment, error));
    }

    /// Lets the `nth` append from now hang before it takes effect, until [`Faults::resume`]. It
    /// may be set to fail as well, which it then does afterwards.
    pub fn hang_append(&self, nth: u64) {
        let mut state = self.shared.state();
        let number = state.appends + nth.max(1);
        state.hanging.insert(number);
    }

    /// Waits until an append hangs. Returns false if none did within `patience`.
    pub fn wait_for_hanging(&self, patience: Duration) -> bool {
        let deadline = Some(Instant::now() + patience);
        let state = self.shared.state();
        self.shared.wait(state, deadline, |state| state.waiting > 0).1
    }

    /// Lets the first append that hangs, or is to hang, go on; those behind it hang as they were told.
    pub fn resume_first(&self) {
        self.shared.state().hanging.pop_first();
        self.shared.changed.notify_all();
    }

    /// Lets all hanging appends go on, and no later one hang.
    pub fn resume(&self) {
        self.shared.state().hanging.clear();
        self.shared.changed.notify_all();
    }

    /// Lets probes fail with this error until told otherwise by `None`.
    pub fn fail_probes(&self, error: Option<LogError>) {
        self.shared.state().probe_error = error;
    }

    /// Makes the log full, or gives it room again: while full, appends and probes fail with
    /// [`LogError::Full`] and nothing takes effect.
    pub fn set_full(&self, full: bool) {
        self.shared.state().full = full;
    }

    /// How many appends there were, failed ones included.
    pub fn appends(&self) -> u64 {
        self.shared.state().appends
    }
}

/// A reader of the shared rows.
struct MemoryReader {
    shared: Arc<Shared>,
}

impl LogReader for MemoryReader {
    fn scan(
        &self,
        mut after: u64,
        each: &mut dyn FnMut(u64, &str) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        // Rows only ever come behind the last one, so up to it they are those of this moment.
        let end = self.shared.state().last();
        while after < end {
            let some: Vec<(u64, Arc<str>)> = self
                .shared
                .state()
                .rows
                .range(after + 1..=end)
                .take(SCAN_ROWS)
                .map(|(epoch, body)| (*epoch, Arc::clone(body)))
                .collect();
            for (epoch, body) in &some {
                if each(*epoch, body).is_break() {
                    return Ok(());
                }
            }
            after = some.last().map_or(end, |(epoch, _)| *epoch);
        }
        Ok(())
    }

    fn get(&self, epoch: u64) -> Result<Option<Row>, LogError> {
        let state = self.shared.state();
        Ok(state.rows.get(&epoch).map(|body| Row { epoch, body: body.to_string() }))
    }

    fn last_epoch(&self) -> Result<u64, LogError> {
        Ok(self.shared.state().last())
    }

    fn reserved(&self) -> Result<u64, LogError> {
        Ok(self.shared.state().reserved)
    }

    fn stat(&self) -> Result<Stat, LogError> {
        let state = self.shared.state();
        Ok(Stat {
            entries: state.rows.len() as u64,
            first_epoch: state.rows.first_key_value().map_or(0, |(epoch, _)| *epoch),
            last_epoch: state.last(),
            reserved: state.reserved,
            bytes: state.bytes,
            ..Stat::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn row(epoch: u64) -> [Row; 1] {
        [Row { epoch, body: format!("{{\"epoch\":{epoch}}}") }]
    }

    fn append(log: &mut MemoryLog, epoch: u64) -> Result<(), LogError> {
        log.append(&Batch { rows: &row(epoch), reserve: None })
    }

    #[test]
    fn a_failing_append_has_taken_effect_or_not_as_told() {
        let mut log = MemoryLog::new();
        let faults = log.faults();
        let reader = log.reader().expect("reader");
        let error = LogError::Io("pulled".to_owned());
        faults.fail_append(2, Moment::Before, error.clone());
        append(&mut log, 1).expect("the first is well");
        assert_eq!(append(&mut log, 2), Err(error.clone()));
        assert_eq!(append(&mut log, 2), Err(LogError::Broken));
        assert_eq!(reader.last_epoch(), Ok(1));
        log.reopen().expect("reopen");
        faults.fail_append(1, Moment::After, error.clone());
        assert_eq!(append(&mut log, 2), Err(error));
        assert_eq!(reader.last_epoch(), Ok(2));
        assert_eq!(faults.appends(), 3);
        // The next life finds it, too.
        let mut next = log.clone();
        drop(log);
        append(&mut next, 3).expect("a new handle is unbroken");
        assert_eq!(reader.last_epoch(), Ok(3));
    }

    #[test]
    fn an_append_hangs_until_resumed() {
        let mut log = MemoryLog::new();
        let faults = log.faults();
        let reader = log.reader().expect("reader");
        faults.hang_append(1);
        let writer = thread::spawn(move || append(&mut log, 1));
        assert!(faults.wait_for_hanging(Duration::from_secs(10)));
        assert_eq!(reader.last_epoch(), Ok(0));
        faults.resume();
        writer.join().expect("no panic").expect("append");
        assert_eq!(reader.last_epoch(), Ok(1));
        assert!(!faults.wait_for_hanging(Duration::from_millis(1)));
    }

    #[test]
    fn full_until_there_is_room() {
        let mut log = MemoryLog::new();
        let faults = log.faults();
        faults.set_full(true);
        assert!(matches!(append(&mut log, 1), Err(LogError::Full(_))));
        log.reopen().expect("reopen");
        assert!(matches!(log.probe(), Err(LogError::Full(_))));
        faults.set_full(false);
        faults.fail_probes(Some(LogError::Io("not yet".to_owned())));
        assert!(matches!(log.probe(), Err(LogError::Io(_))));
        faults.fail_probes(None);
        log.probe().expect("room");
        append(&mut log, 1).expect("room");
    }
}
