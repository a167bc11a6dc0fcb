//! How threads that compute let those pass that somebody waits for.
//!
//! Writes go first: a writer's few microseconds must not wait for a reader's milliseconds. Threads that compute step
//! back in the system's order of threads, once ([`step_back`]), and where that does not help, because the system lets
//! a running thread run on until the clock's next tick, their walks over the index give the processor up by themselves
//! while there are writes under way ([`Writes::let_pass`]). Only then: a thread that gives up the processor beside
//! other busy programs gets it back late.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::relevance::pause_with;

/// How far what a writer waits for itself steps back behind the actor and the doors, in steps of the system's niceness.
pub(super) const DOOR_NICENESS: i32 = 2;
/// How far reads step back: with every core busy a writer hardly notices, and on an idle machine neither do reads.
pub(super) const READ_NICENESS: i32 = 5;
/// How far the indexer steps back: nobody waits for it until an ATTUNE does, and then helps.
pub(super) const INDEX_NICENESS: i32 = 10;
/// How far what is compared behind steps back.
pub(super) const DETECTION_NICENESS: i32 = 15;

/// The writes under way in a Field, and in all of its hub: messages that may change a Field, from their door to their
/// answers.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes {
    hub: Arc<AtomicUsize>,
    field: Arc<AtomicUsize>,
}

/// A write under way, until this is dropped.
#[derive(Debug)]
pub(super) struct Writing(Writes);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.hub.fetch_sub(1, Ordering::Relaxed);
        self.0.field.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Writes {
    /// Those of another Field of the same hub.
    pub fn of_another_field(&self) -> Self {
        Self { hub: Arc::clone(&self.hub), field: Arc::default() }
    }

    /// Notes one more of this Field.
    pub fn begin(&self) -> Writing {
        self.hub.fetch_add(1, Ordering::Relaxed);
        self.field.fetch_add(1, Ordering::Relaxed);
        Writing(self.clone())
    }

    /// How many of this Field there are.
    pub fn count(&self) -> usize {
        self.field.load(Ordering::Relaxed)
    }

    /// Has walks over an index on this thread give the processor up now and then while the hub has more than `own`: those
    /// that the thread itself computes for.
    pub fn let_pass(&self, own: usize) {
        let hub = Arc::clone(&self.hub);
        pause_with(move || {
            if hub.load(Ordering::Relaxed) > own {
                std::thread::yield_now();
            }
        });
    }

    /// Makes a pool of a thread for each core, which steps back and lets these writes pass, but for `own`. What panics
    /// there harms nobody else: who waits for it gets `INTERNAL_ERROR`.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn pool(&self, name: &'static str, niceness: i32, own: usize) -> std::io::Result<rayon::ThreadPool> {
        let writes = self.clone();
        rayon::ThreadPoolBuilder::new()
            .thread_name(move |at| format!("{name}-{at}"))
            .start_handler(move |_| {
                step_back(niceness);
                writes.let_pass(own);
            })
            .panic_handler(|_| tracing::error!("a read panicked; its caller gets INTERNAL_ERROR"))
            .build()
            .map_err(std::io::Error::other)
    }
}

/// Lets the calling thread step back. A courtesy: where the system has none, or refuses, nothing is lost.
pub(super) fn step_back(niceness: i32) {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, niceness) {
        tracing::debug!(%error, "a thread keeps its priority");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = niceness;
}
