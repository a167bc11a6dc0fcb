//! The words of documents: an inverted index, and how well a document's words meet those of a need (BM25).
//!
//! The index only grows. A request names its horizon, the number of documents that exist for it; frequencies and
//! the average length are those of these documents, so that the answer stays the same whatever is pushed later.
//! Postings of a term stand in the order of documents, so what lies before the horizon is a prefix.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::relevance::embed::{self, Embedder};
use crate::relevance::lexicon::{Lexicon, Names, Term};
use crate::relevance::pace::Pace;
use crate::relevance::postings::{self, Posting, Postings};
use crate::relevance::query::{Query, QueryTerm};
use crate::relevance::reading::{Known, Reader, Reading};
use crate::relevance::score::Kind;
use crate::relevance::sessions::Sessions;
use crate::relevance::standings::Standings;
use crate::relevance::tokenize::Tokenizer;
use crate::relevance::vectors::{Asked, Vector, Vectors};
use crate::relevance::weights::{self, B, FIELD, K1};

/// One unit's text, as indexed.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// What the unit says.
    pub content: &'a str,
    /// Its intent's purpose.
    pub purpose: &'a str,
    /// Its intent's question.
    pub question: Option<&'a str>,
    /// The author's agent id.
    pub author: &'a str,
    /// The author's role.
    pub role: &'a str,
    /// Where it was said, if in a session: what stands next to it there belongs to it.
    pub session: Option<&'a str>,
}

/// Distinct terms kept of one document. A book has fewer; it bounds what a document of made-up words can cost.
pub(super) const MAX_TERMS_A_DOCUMENT: usize = 8_192;

/// Words read of an author's id or a role.
const MAX_TERMS_A_NAME: usize = 64;

/// Documents between two kept sums of lengths.
const LENGTH_BLOCK: usize = 256;

/// Documents whose words are matched before those of the next: their sums stay in the nearest cache. A power of two.
const MATCHED: usize = 2_048;

/// What an index takes in of what texts mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing: words alone count.
    Nothing,
    /// What the built-in model makes of them.
    BuiltIn,
    /// What it is given, in directions of so many values.
    Given {
        /// Values of a direction.
        dimensions: usize,
    },
}

impl Meaning {
    /// Values of a direction; 0 where there are none.
    #[must_use]
    pub fn dimensions(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::BuiltIn => embed::DIMENSIONS,
            Self::Given { dimensions } => dimensions,
        }
    }
}

/// Inverted index over documents numbered from 0 in the order pushed; append only.
pub struct Index {
    /// Shared with who reads documents; grows only while nobody does, or is copied.
    lexicon: Arc<Lexicon>,
    tokenizer: Tokenizer,
    /// By term.
    postings: Vec<Postings>,
    /// By document, in words, with the weights of the fields.
    lengths: Vec<u16>,
    /// Sum of the lengths before each block of documents, and of all.
    length_sums: Vec<u64>,
    length_sum: u64,
    /// By document: the author's id, as a number of `names`.
    authors: Vec<u32>,
    /// By document: the author's role, as a number of `names`, and what it is, as a number of `standings`; as they were
    /// entered.
    standing: Vec<u32>,
    standings: Standings,
    names: Names,
    /// By name: its terms, sorted, each once.
    name_terms: Vec<Vec<u32>>,
    /// By document: the number of its task, 0 for none, as it was entered; for estimates.
    tasks: Vec<u32>,
    /// Whether meaning and sessions are taken in.
    meaning: Meaning,
    vectors: Vectors,
    sessions: Sessions,
    /// For documents that are read and entered in one go.
    reader: Reader,
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// An index without documents, with the built-in model.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Meaning::BuiltIn)
    }

    /// An index without documents that takes in their meaning by the built-in model, or their words alone.
    #[must_use]
    pub fn taking_in(meaning: bool) -> Self {
        Self::of(if meaning { Meaning::BuiltIn } else { Meaning::Nothing })
    }

    /// An index without documents that takes in so much of their meaning.
    #[must_use]
    pub fn of(meaning: Meaning) -> Self {
        Self {
            lexicon: Arc::new(Lexicon::new()),
            tokenizer: Tokenizer::default(),
            postings: Vec::new(),
            lengths: Vec::new(),
            length_sums: Vec::new(),
            length_sum: 0,
            authors: Vec::new(),
            standing: Vec::new(),
            standings: Standings::default(),
            names: Names::default(),
            name_terms: Vec::new(),
            tasks: Vec::new(),
            meaning,
            vectors: Vectors::new(meaning.dimensions()),
            sessions: Sessions::default(),
            reader: Reader::default(),
        }
    }

    /// What it takes in of what texts mean.
    pub(super) fn meaning(&self) -> Meaning {
        self.meaning
    }

    /// Where a term stands in documents before the horizon.
    pub(super) fn postings_of(&self, term: u32, horizon: u32) -> &[Posting] {
        self.postings[term as usize].before(horizon)
    }

    /// Whether needs can be met by meaning.
    pub(super) fn knows_meaning(&self) -> bool {
        self.meaning != Meaning::Nothing
    }

    /// Documents pushed so far.
    #[must_use]
    pub fn len(&self) -> u32 {
        u32::try_from(self.lengths.len()).unwrap_or(u32::MAX)
    }

    /// Whether nothing was pushed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// What it knows of words as of now, with which documents are read.
    #[must_use]
    pub fn known(&self) -> Known {
        Known { lexicon: Arc::clone(&self.lexicon), meaning: self.meaning }
    }

    /// Takes up what a document that was read has of words and names that are new here, before it is entered. Entering
    /// it changes then nothing of what was given out by [`Index::known`], which therefore need not be copied.
    pub fn take_up(&mut self, doc: &Document<'_>, reading: &mut Reading) {
        for name in [doc.author, doc.role] {
            self.name_number(name);
        }
        if reading.unknown().next().is_some() {
            let lexicon = Arc::make_mut(&mut self.lexicon);
            reading.make_known(|stem| lexicon.number_of_stem(stem));
        }
    }

    /// Adds a document that was read; its number is [`Index::len`] before the call. Tasks have numbers of the caller's.
    pub fn enter(&mut self, doc: &Document<'_>, kind: Kind, task: Option<NonZeroU32>, reading: &Reading) {
        let number = self.len();
        let (author, role) = (self.name_number(doc.author), self.name_number(doc.role));
        let mut length = reading.length;
        for (name, weight) in [(author, FIELD.author), (role, FIELD.role)] {
            for &term in self.name_terms.get(name as usize).map_or(&[][..], Vec::as_slice) {
                length = length.saturating_add(weight);
                postings::add(&mut self.postings, term, number, weight);
            }
        }
        postings::touch(&self.postings, &reading.terms);
        for &(term, frequency) in &reading.terms {
            postings::add(&mut self.postings, term, number, frequency);
        }
        for (stem, frequency) in reading.unknown() {
            if let Some(term) = Arc::make_mut(&mut self.lexicon).number_of_stem(stem) {
                postings::add(&mut self.postings, term, number, frequency);
            }
        }
        let length = u16::try_from(length / weights::OCCURRENCE).unwrap_or(u16::MAX);
        if self.lengths.len().is_multiple_of(LENGTH_BLOCK) {
            self.length_sums.push(self.length_sum);
        }
        self.length_sum += u64::from(length);
        self.lengths.push(length);
        self.authors.push(author);
        self.standing.push(self.standings.number(role, kind));
        self.tasks.push(task.map_or(0, NonZeroU32::get));
        if self.knows_meaning() {
            self.sessions.push(doc.session);
            if let Some(vector) = &reading.vector {
                self.vectors.set(number, vector);
            }
        }
    }

    /// Reads and adds a document, whose kind and task do not matter; its number is [`Index::len`] before the call.
    pub fn push(&mut self, doc: &Document<'_>) {
        let mut reader = std::mem::take(&mut self.reader);
        let reading = self.known().read(&mut reader, doc, false);
        self.reader = reader;
        self.enter(doc, Kind::Finding, None, &reading);
    }

    /// Whether it is known where a document points.
    #[must_use]
    pub fn has_vector(&self, document: u32) -> bool {
        self.vectors.points(document)
    }

    /// Where a document points, if that is known.
    #[must_use]
    pub fn direction_of(&self, document: u32) -> Option<Vector> {
        self.vectors.get(document)
    }

    /// Lets go of what documents said, which stand in order, each once: of where they point and how long they were.
    /// Their words go by [`Index::forget_words`].
    pub fn forget(&mut self, documents: &[u32]) {
        for document in documents {
            let at = *document as usize;
            if at >= self.lengths.len() {
                break;
            }
            let length = u64::from(std::mem::take(&mut self.lengths[at]));
            self.length_sum -= length;
            self.length_sums.iter_mut().skip(at / LENGTH_BLOCK + 1).for_each(|sum| *sum -= length);
            self.vectors.clear(*document);
        }
    }

    /// Takes documents, which stand in order, out of the postings of some terms, `count` of them from `first` on.
    /// Whether there are more terms.
    pub fn forget_words(&mut self, first: usize, count: usize, documents: &[u32]) -> bool {
        let end = self.postings.len().min(first + count);
        self.postings[first.min(end)..end].iter_mut().for_each(|postings| postings.forget(documents));
        end < self.postings.len()
    }

    /// Notes where a document points; for one that is not there yet it waits until it is. A direction of other
    /// dimensions than the index's is not taken.
    pub fn set_vector(&mut self, document: u32, vector: &Vector) {
        self.vectors.set(document, vector);
    }

    /// The number of an author or a role, whose terms are found once and for all.
    fn name_number(&mut self, name: &str) -> u32 {
        let Some(number) = self.names.number(name) else { return u32::MAX };
        let Self { lexicon, tokenizer, name_terms, .. } = self;
        if number as usize >= name_terms.len() {
            let lexicon = Arc::make_mut(lexicon);
            let mut terms = Vec::new();
            tokenizer.each(name, &mut |word| {
                if terms.len() < MAX_TERMS_A_NAME {
                    terms.extend(lexicon.number(word.text));
                }
            });
            terms.sort_unstable();
            terms.dedup();
            name_terms.push(terms);
        }
        number
    }

    /// Estimate of the memory that the index holds, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let lists = self.postings.capacity() * size_of::<Postings>();
        let postings: usize = self.postings.iter().map(Postings::memory_bytes).sum();
        let names: usize =
            self.name_terms.iter().map(|terms| size_of::<Vec<u32>>() + terms.capacity() * 4).sum();
        let columns = self.lengths.capacity() * 2
            + (self.authors.capacity() + self.standing.capacity() + self.tasks.capacity()) * 4
            + self.standings.memory_bytes();
        lists
            + postings
            + names
            + columns
            + self.length_sums.capacity() * 8
            + self.lexicon.memory_bytes()
            + self.names.memory_bytes()
            + self.vectors.memory_bytes()
            + self.sessions.memory_bytes()
    }

    /// What texts say, as a direction to which documents can be near. `None` if they say nothing that the built-in
    /// model knows, or the index has no directions of that model.
    pub(super) fn direction<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Option<Asked> {
        if self.meaning != Meaning::BuiltIn {
            return None;
        }
        let direction = Embedder::default().embed(texts.into_iter().map(|text| (text, 1.0)))?;
        Asked::new(&direction)
    }

    /// The directions of the documents.
    pub(super) fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// What was said next to what.
    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The standing of documents in a row: equal numbers are equal roles of authors and kinds.
    pub(super) fn standing(&self, first: u32, count: usize) -> &[u32] {
        &self.standing[first as usize..first as usize + count]
    }

    /// By the number of a standing: the author's role, as by [`Index::role`], and the kind.
    pub(super) fn standings(&self) -> &[(u32, Kind)] {
        self.standings.all()
    }

    /// The tasks of documents in a row; 0 is none.
    pub(super) fn tasks(&self, first: u32, count: usize) -> &[u32] {
        &self.tasks[first as usize..first as usize + count]
    }

    /// The author of a document, as a small number that equal authors share.
    pub(super) fn author(&self, document: u32) -> u32 {
        self.authors[document as usize]
    }

    /// The role of a document's author, as a small number that equal roles share, below [`Index::names`].
    pub(super) fn role(&self, document: u32) -> u32 {
        self.standings.all()[self.standing[document as usize] as usize].0
    }

    /// How many authors and roles there are.
    pub(super) fn names(&self) -> usize {
        self.names.len()
    }

    /// The text of an author's or a role's number.
    pub(super) fn name(&self, number: u32) -> &str {
        self.names.text(number)
    }

    /// The terms of a role, sorted.
    pub(super) fn role_terms(&self, role: u32) -> &[u32] {
        self.name_terms.get(role as usize).map_or(&[], Vec::as_slice)
    }

    /// The terms of any text: those known, sorted, and how many there are in all.
    pub(super) fn terms_of(&self, text: &str) -> (Vec<u32>, usize) {
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        Tokenizer::default().each(text, &mut |word| match self.lexicon.find(word.text) {
            Term::Known(term) => known.push(term),
            Term::Unknown(stem) => unknown.push(stem),
        });
        known.sort_unstable();
        known.dedup();
        unknown.sort_unstable();
        unknown.dedup();
        let all = known.len() + unknown.len();
        (known, all)
    }

    /// Average length of the documents before the horizon, in words.
    fn average_length(&self, horizon: u32) -> f32 {
        let horizon = horizon as usize;
        let block = (horizon / LENGTH_BLOCK).min(self.length_sums.len().saturating_sub(1));
        let before = self.length_sums.get(block).copied().unwrap_or(0);
        let rest: u64 =
            self.lengths[block * LENGTH_BLOCK..horizon].iter().map(|&length| u64::from(length)).sum();
        ((before + rest) as f32 / horizon.max(1) as f32).max(1.0)
    }

    /// How many documents before the horizon have the term.
    pub(super) fn documents_with(&self, term: u32, horizon: u32) -> usize {
        self.postings[term as usize].before(horizon).len()
    }

    /// The term of a word, for asking.
    pub(super) fn term(&self, word: &str) -> Term {
        self.lexicon.find(word)
    }

    /// How well each document before the horizon meets the query, but for those before `warm`: 0 is not at all, 1 is every word once in a
    /// document of average length; at most `K1 + 1` times a little more.
    pub(super) fn matches(&self, query: &Query, warm: u32, horizon: u32) -> Vec<f32> {
        let norms = Norms::new(self, horizon);
        // As `Norms::of` reckons, the part that depends on the frequency alone kept by frequency.
        let frequencies: [(f32, f32); Posting::FREQUENCY as usize + 1] = std::array::from_fn(|steps| {
            let frequency = steps as f32 / weights::OCCURRENCE as f32;
            (frequency, frequency + norms.fixed)
        });
        let mut lists: Vec<(f32, &[Posting])> = Vec::with_capacity(query.terms.len());
        for term in &query.terms {
            let list = &self.postings[term.term as usize].list()[..term.documents];
            let cold = if warm == 0 { 0 } else { list.partition_point(|posting| posting.document() < warm) };
            lists.push((query.weight(term), &list[cold..]));
        }
        // Some documents after the other, so that what is summed up stays close by for all terms.
        let mut sums = vec![0.0f32; (horizon as usize).next_multiple_of(MATCHED)];
        let mut by_length = [0.0f32; MATCHED];
        let mut pace = Pace::new();
        let lengths = self.lengths[..horizon as usize].chunks(MATCHED);
        for ((end, sums), lengths) in (1u32..).zip(sums.as_chunks_mut::<MATCHED>().0).zip(lengths) {
            let end = end.saturating_mul(MATCHED as u32);
            pace.walk(MATCHED);
            for (by_length, length) in by_length.iter_mut().zip(lengths) {
                *by_length = norms.by_length * f32::from(*length);
            }
            for (weight, list) in &mut lists {
                let mut met = 0;
                for posting in list.iter().take_while(|posting| posting.document() < end) {
                    let at = posting.document() as usize % MATCHED;
                    let (frequency, with_fixed) = frequencies[posting.frequency() as usize];
                    sums[at] += *weight * (frequency / (with_fixed + by_length[at]));
                    met += 1;
                }
                *list = &list[met..];
            }
        }
        sums.truncate(horizon as usize);
        sums
    }

    /// The same for one document.
    pub(super) fn match_of(&self, query: &Query, norms: &Norms, document: u32) -> f32 {
        let mut sum = 0.0;
        for term in &query.terms {
            let list = &self.postings[term.term as usize].list()[..term.documents];
            if let Ok(at) = list.binary_search_by_key(&document, |posting| posting.document()) {
                sum += query.weight(term) * norms.of(list[at], self.lengths[document as usize]);
            }
        }
        sum
    }

    /// Whether a document has the term of a query.
    pub(super) fn has(&self, document: u32, term: &QueryTerm) -> bool {
        let list = &self.postings[term.term as usize].list()[..term.documents];
        list.binary_search_by_key(&document, |posting| posting.document()).is_ok()
    }
}

/// What the length of a document makes of the frequency of its words (BM25).
pub(super) struct Norms {
    fixed: f32,
    by_length: f32,
}

impl Norms {
    pub fn new(index: &Index, horizon: u32) -> Self {
        Self { fixed: K1 * (1.0 - B), by_length: K1 * B / index.average_length(horizon) }
    }

    fn of(&self, posting: Posting, length: u16) -> f32 {
        let frequency = posting.frequency() as f32 / weights::OCCURRENCE as f32;
        frequency / (frequency + self.fixed + self.by_length * f32::from(length))
    }
}

#[cfg(test)]
#[path = "lexical_tests.rs"]
mod tests;
