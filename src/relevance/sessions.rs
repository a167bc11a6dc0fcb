//! What was said next to what: each document's neighbours in its session.

use crate::relevance::lexicon::Names;

/// No document.
const NONE: u32 = u32::MAX;

/// A side of a document in its session.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Before,
    After,
}

impl Side {
    pub const BOTH: [Self; 2] = [Self::Before, Self::After];
}

/// By document: the one before and the one after it in the same session.
#[derive(Default)]
pub(super) struct Sessions {
    names: Names,
    /// By session: its last document.
    last: Vec<u32>,
    before: Vec<u32>,
    after: Vec<u32>,
}

impl Sessions {
    /// Adds the next document, of this session or of none.
    pub fn push(&mut self, session: Option<&str>) {
        let document = u32::try_from(self.before.len()).unwrap_or(NONE);
        let mut before = NONE;
        if let Some(session) = session.and_then(|session| self.names.number(session)) {
            let session = session as usize;
            if session == self.last.len() {
                self.last.push(NONE);
            }
            before = std::mem::replace(&mut self.last[session], document);
        }
        if let Some(after) = self.after.get_mut(before as usize) {
            *after = document;
        }
        self.before.push(before);
        self.after.push(NONE);
    }

    /// Of the first documents: the one before and the one after each in its session. A number beyond all documents
    /// is none.
    pub fn neighbours(
        &self,
        documents: usize,
    ) -> impl DoubleEndedIterator<Item = [u32; 2]> + ExactSizeIterator {
        let documents = documents.min(self.before.len());
        self.before[..documents].iter().zip(&self.after[..documents]).map(|(&before, &after)| [before, after])
    }

    /// What was said right before a document, or right after it, in its session; before this horizon.
    pub fn next_to(&self, document: u32, side: Side, horizon: u32) -> Option<u32> {
        let column = match side {
            Side::Before => &self.before,
            Side::After => &self.after,
        };
        column.get(document as usize).copied().filter(|next| *next < horizon)
    }

    pub fn memory_bytes(&self) -> usize {
        (self.last.capacity() + self.before.capacity() + self.after.capacity()) * 4
            + self.names.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_woven() {
        let mut sessions = Sessions::default();
        for session in [Some("a"), Some("b"), None, Some("a"), Some("b"), Some("a"), None] {
            sessions.push(session);
        }
        let found: Vec<_> = sessions.neighbours(99).collect();
        let expected = [[NONE, 3], [NONE, 4], [NONE; 2], [0, 5], [1, NONE], [3, NONE], [NONE; 2]];
        assert_eq!(found, expected);
        assert_eq!(sessions.neighbours(2).len(), 2);
        assert_eq!(sessions.next_to(3, Side::Before, 9), Some(0));
        assert_eq!(sessions.next_to(3, Side::After, 9), Some(5));
        assert_eq!(sessions.next_to(3, Side::After, 5), None);
        assert_eq!([0, 77].map(|document| sessions.next_to(document, Side::Before, 9)), [None; 2]);
    }
}
