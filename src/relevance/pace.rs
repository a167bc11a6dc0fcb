//! Long walks over an index, and pauses in them.
//!
//! A walk over a million documents takes milliseconds, and a system may not take the processor from a thread before
//! its clock's next tick (Linux without kernel preemption: 4 ms), however gladly the thread would give it to others.
//! So walks pause by themselves now and then. What a pause is, the thread's owner says ([`pause_with`]); without that
//! there is none. It changes no result.

use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    static PAUSE: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
}

/// Documents looked at in passing between two pauses: some tenths of a millisecond.
const STRETCH: usize = 16 * 1024;
/// What it costs to measure one document, in documents looked at in passing.
pub(super) const MEASURED: usize = 8;

/// Has every walk on this thread pause in this way, now and then: at most every some tenths of a millisecond.
pub fn pause_with(pause: impl Fn() + 'static) {
    PAUSE.set(Some(Rc::new(pause)));
}

/// A walk: how far it is since its last pause.
pub(super) struct Pace {
    pause: Option<Rc<dyn Fn()>>,
    walked: usize,
}

impl Pace {
    pub fn new() -> Self {
        Self { pause: PAUSE.with_borrow(Clone::clone), walked: 0 }
    }

    /// Goes past so many documents.
    pub fn walk(&mut self, documents: usize) {
        self.walked += documents;
        if self.walked >= STRETCH {
            self.walked = 0;
            if let Some(pause) = &self.pause {
                pause();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_walk_pauses_after_each_stretch_in_the_way_its_thread_was_told() {
        let pauses = Rc::new(Cell::new(0));
        let mut before = Pace::new();
        let counted = Rc::clone(&pauses);
        pause_with(move || counted.set(counted.get() + 1));
        before.walk(2 * STRETCH);
        let mut pace = Pace::new();
        pace.walk(STRETCH - 1);
        assert_eq!(pauses.get(), 0);
        pace.walk(1);
        assert_eq!(pauses.get(), 1);
        (0..3 * STRETCH / MEASURED).for_each(|_| pace.walk(MEASURED));
        assert_eq!(pauses.get(), 4);
        std::thread::spawn(|| Pace::new().walk(STRETCH)).join().unwrap();
        assert_eq!(pauses.get(), 4, "another thread's walks are its owner's");
    }
}
