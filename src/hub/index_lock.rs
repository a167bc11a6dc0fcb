//! The lock around an index: many read it at once, one enters.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::relevance::Index;

/// How long whoever waits to enter lets others read first; after that nobody does, or it might wait for ever.
const PATIENCE: Duration = Duration::from_millis(100);

/// An index that is read and entered into by turns. Whoever reads may take milliseconds, so whoever enters may wait as
/// long; and who reads after that waits behind it.
pub(super) struct IndexLock {
    index: RwLock<Index>,
    /// How many documents the index has: known without waiting.
    documents: AtomicUsize,
    /// Whether entering panicked, so that a document may be half entered.
    broken: AtomicBool,
    /// Since when somebody waits to enter, if somebody does. Mostly one at a time does, whoever's turn it is; where the
    /// indexer takes late vectors in beside, who began last.
    waits: Mutex<Option<Instant>>,
}

impl IndexLock {
    pub fn new(index: Index) -> Self {
        let documents = AtomicUsize::new(index.len() as usize);
        Self { index: RwLock::new(index), documents, broken: AtomicBool::new(false), waits: Mutex::default() }
    }

    /// How many documents the index has.
    pub fn len(&self) -> usize {
        self.documents.load(Ordering::Acquire)
    }

    /// The index, to read.
    pub fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read()
    }

    /// The index, to read before whoever waits to enter: for who has no time to wait for others that read. Nothing where
    /// somebody has waited for long, or a document may be half entered.
    pub fn read_first(&self) -> Option<RwLockReadGuard<'_, Index>> {
        let waited = self.waits.lock().unwrap_or_else(PoisonError::into_inner).map(|since| since.elapsed());
        if self.is_broken() || waited.is_some_and(|waited| waited > PATIENCE) {
            return None;
        }
        Some(self.index.read_recursive())
    }

    /// The index, to enter into.
    pub fn write(&self) -> Entering<'_> {
        let waits = |since| *self.waits.lock().unwrap_or_else(PoisonError::into_inner) = since;
        waits(Some(Instant::now()));
        let index = self.index.write();
        waits(None);
        Entering { index, lock: self }
    }

    /// Whether somebody enters, or waits for that.
    #[cfg(test)]
    pub fn is_awaited(&self) -> bool {
        self.index.try_read().is_none()
    }

    /// Whether a document may be half entered.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Begins anew with this index.
    pub fn replace(&self, index: Index) {
        let mut entering = self.write();
        *entering = index;
        self.broken.store(false, Ordering::Release);
    }
}

/// An index that is entered into.
pub(super) struct Entering<'a> {
    index: RwLockWriteGuard<'a, Index>,
    lock: &'a IndexLock,
}

impl Deref for Entering<'_> {
    type Target = Index;

    fn deref(&self) -> &Index {
        &self.index
    }
}

impl DerefMut for Entering<'_> {
    fn deref_mut(&mut self) -> &mut Index {
        &mut self.index
    }
}

impl Drop for Entering<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.lock.broken.store(true, Ordering::Release);
        }
        self.lock.documents.store(self.index.len() as usize, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relevance::Meaning;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn a_panic_while_entering_is_noticed_until_the_index_is_replaced() {
        let lock = IndexLock::new(Index::of(Meaning::Nothing));
        let entering = std::panic::AssertUnwindSafe(|| {
            let _index = lock.write();
            panic!("as if a document could not be entered");
        });
        assert!(std::panic::catch_unwind(entering).is_err());
        assert!(lock.is_broken() && lock.read_first().is_none());
        assert_eq!(lock.read().len(), 0, "it can be read all the same");
        lock.replace(Index::of(Meaning::Nothing));
        assert!(!lock.is_broken());
    }

    /// Somebody reads, another waits to enter: a third who is in haste reads nevertheless.
    #[test]
    fn who_is_in_haste_reads_before_who_waits_to_enter() {
        let lock = IndexLock::new(Index::of(Meaning::Nothing));
        thread::scope(|scope| {
            let reading = lock.read();
            let (about_to, told) = mpsc::channel();
            let entered = scope.spawn({
                let lock = &lock;
                move || {
                    about_to.send(()).unwrap();
                    drop(lock.write());
                }
            });
            told.recv().unwrap();
            // Once somebody waits to enter, others who read are no longer let in.
            while !lock.is_awaited() {
                thread::yield_now();
            }
            assert!(!entered.is_finished());
            assert!(lock.read_first().is_some());
            // Not for ever: who waits to enter comes before those who come one after the other.
            while lock.read_first().is_some() {
                thread::yield_now();
            }
            assert!(!entered.is_finished());
            drop(reading);
            entered.join().unwrap();
            assert!(lock.read_first().is_some());
        });
    }
}
