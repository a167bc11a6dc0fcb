//! Notes of ATTUNEs that were answered already: what each showed, left for the actor to enter with its next change.
//!
//! They lie beside its queue, not in it: for a note alone the actor need not be woken. Before it decides anything that
//! changes the Field it takes up what lies here, and it looks once in a while; so a note that was left before an answer
//! went out stands in the log before whatever the asker does with that answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::field::Read;
use crate::limits::NOTES_MAX;
use crate::protocol::UnitId;

/// An ATTUNE and the units that it showed.
pub(super) type Note = (Box<Read>, Vec<UnitId>);

/// Notes that wait, at most [`NOTES_MAX`].
#[derive(Default)]
pub(super) struct Notes(Mutex<Vec<Note>>);

impl Notes {
    /// Leaves a note; whether it is time to wake the actor.
    ///
    /// # Errors
    /// Gives it back where there is no room.
    pub fn leave(&self, note: Note) -> Result<bool, Note> {
        let mut notes = self.lock();
        if notes.len() >= NOTES_MAX {
            return Err(note);
        }
        notes.push(note);
        Ok(notes.len() == NOTES_MAX / 2)
    }

    /// All that wait, oldest first.
    pub fn take(&self) -> Vec<Note> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
