//! Where terms stand: for each the documents that have it, in their order, and how often.

/// Documents that the index can hold: what a posting's 27 bits can number. Later ones are counted and ranked, but
/// their words are not found.
const MAX_DOCUMENTS: u32 = 1 << 27;

/// One document in a term's postings: 27 bits of document, 5 bits of weighted frequency.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting(u32);

impl Posting {
    /// The greatest frequency that is told from greater ones.
    pub const FREQUENCY: u32 = 31;

    pub fn document(self) -> u32 {
        self.0 >> 5
    }

    pub fn frequency(self) -> u32 {
        self.0 & Self::FREQUENCY
    }
}

/// Where a term stands, in the order of documents.
#[derive(Clone, Debug, Default)]
pub(super) struct Postings {
    list: Vec<Posting>,
    /// Document of the last posting, kept here so that a new one need not wait for the end of a cold list.
    last: u32,
}

impl Postings {
    /// Enters occurrences in a document, the last one or a new one.
    fn add(&mut self, document: u32, frequency: u32) {
        if self.last == document
            && let Some(posting) = self.list.last_mut()
        {
            posting.0 = document << 5 | (posting.frequency() + frequency).min(Posting::FREQUENCY);
            return;
        }
        self.last = document;
        if self.list.len() == self.list.capacity() {
            // A half more, not double: postings are most of the memory.
            self.list.reserve_exact((self.list.len() / 2).max(4));
        }
        self.list.push(Posting(document << 5 | frequency.min(Posting::FREQUENCY)));
    }

    /// Takes documents out, which stand in order. What is left keeps its order; the last document stays the bound.
    pub fn forget(&mut self, documents: &[u32]) {
        let (Some(first), Some(last)) = (documents.first(), documents.last()) else { return };
        let from = self.list.partition_point(|posting| posting.document() < *first);
        let is_touched = self.list.get(from).is_some_and(|posting| posting.document() <= *last);
        if is_touched {
            self.list.retain(|posting| documents.binary_search(&posting.document()).is_err());
            self.list.shrink_to_fit();
        }
    }

    /// The postings of documents before the horizon.
    pub fn before(&self, horizon: u32) -> &[Posting] {
        if self.last < horizon {
            return &self.list;
        }
        &self.list[..self.list.partition_point(|posting| posting.document() < horizon)]
    }

    /// All of them.
    pub fn list(&self) -> &[Posting] {
        &self.list
    }

    /// The memory that they hold beside themselves, with what its allocation costs.
    pub fn memory_bytes(&self) -> usize {
        self.list.capacity() * size_of::<Posting>() + 16
    }
}

/// Looks at where these terms will be entered. They lie far apart, and entered one after the other, each would be waited
/// for.
pub(super) fn touch(postings: &[Postings], terms: &[(u32, u32)]) {
    let ends = terms.iter().filter_map(|(term, _)| postings.get(*term as usize)?.list.last());
    std::hint::black_box(ends.fold(0, |all, end| all ^ end.0));
}

/// Enters occurrences of a term in a document, the last one or a new one.
pub(super) fn add(postings: &mut Vec<Postings>, term: u32, document: u32, frequency: u32) {
    if document >= MAX_DOCUMENTS {
        return;
    }
    let at = term as usize;
    if at >= postings.len() {
        postings.resize_with(at + 1, Postings::default);
    }
    postings[at].add(document, frequency);
}
