//! A document read: what of entering it into an index costs, done without changing the index.
//!
//! Many threads may read documents with the same index at the same time; entering them, one after the other and in
//! their order, is short. What a reading says of words that the index did not know yet is kept as text.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::relevance::embed::{Direction, Embedder};
use crate::relevance::lexical::{Document, MAX_TERMS_A_DOCUMENT, Meaning};
use crate::relevance::lexicon::{Cache, Lexicon, Names};
use crate::relevance::postings::Posting;
use crate::relevance::tokenize::Tokenizer;
use crate::relevance::vectors::Vector;
use crate::relevance::weights::{FIELD, MEANT};

/// Bytes of a text for each word of it, about, with the blank behind it.
const BYTES_A_WORD: usize = 7;
/// Terms of a document that room is made for before it is read: what a long one repeats is not known before.
const TERMS_EXPECTED_MAX: usize = 256;

/// What one thread needs to read documents; it gets faster with each. What is in here changes no reading.
#[derive(Default)]
pub struct Reader {
    tokenizer: Tokenizer,
    embedder: Embedder,
    /// Words as the lexicon that is named beside knows them.
    cache: Cache,
    lexicon: Option<Arc<()>>,
    /// Of the document at hand: where each known term stands in the reading.
    places: HashMap<u32, usize>,
    unknown: Names,
}

/// What a document says, ready to be entered.
#[derive(Debug, Default)]
pub struct Reading {
    /// Its texts' words, weighed.
    pub(super) length: u32,
    /// Known terms, each once, with their weighed frequency.
    pub(super) terms: Vec<(u32, u32)>,
    /// Stems that the index does not know, one behind the other.
    unknown_text: String,
    /// Where each ends, and its weighed frequency.
    unknown: Vec<(usize, u32)>,
    /// Where its text points, if that was asked and is known.
    pub(super) vector: Option<Vector>,
}

impl Reading {
    /// The stems that the index did not know, with their frequency, in the order of their first sight.
    pub(super) fn unknown(&self) -> impl Iterator<Item = (&str, u32)> {
        let mut start = 0;
        self.unknown.iter().map(move |&(end, frequency)| {
            let stem = &self.unknown_text[start..end];
            start = end;
            (stem, frequency)
        })
    }

    /// Makes terms of the stems that the index did not know, by the numbers that it gives them now.
    pub(super) fn make_known(&mut self, mut number: impl FnMut(&str) -> Option<u32>) {
        let found: Vec<(u32, u32)> =
            self.unknown().filter_map(|(stem, frequency)| Some((number(stem)?, frequency))).collect();
        self.terms.extend(found);
        self.unknown_text.clear();
        self.unknown.clear();
    }

    /// Says where the text points.
    pub fn set_vector(&mut self, vector: Vector) {
        self.vector = Some(vector);
    }

    /// Where the text points, taken out, if that was read.
    pub fn take_vector(&mut self) -> Option<Vector> {
        self.vector.take()
    }
}

/// What an index knows of words: enough to read documents, while others are entered or before the index is asked.
#[derive(Clone)]
pub struct Known {
    pub(super) lexicon: Arc<Lexicon>,
    pub(super) meaning: Meaning,
}

impl Known {
    /// Reads a document, for [`Index::enter`]: its words, and where it points if the index has that of the built-in
    /// model and the caller does not know it already.
    #[must_use]
    pub fn read(&self, reader: &mut Reader, doc: &Document<'_>, vector_known: bool) -> Reading {
        let mut reading = reader.words(&self.lexicon, doc);
        if self.meaning == Meaning::BuiltIn && !vector_known {
            reading.vector = Some(reader.embed(doc));
        }
        reading
    }
}

impl Reader {
    /// Reads the words of a document.
    pub(super) fn words(&mut self, lexicon: &Lexicon, doc: &Document<'_>) -> Reading {
        if !self.lexicon.as_ref().is_some_and(|known| Arc::ptr_eq(known, lexicon.identity())) {
            // Another index numbers its terms otherwise.
            self.cache.clear();
            self.lexicon = Some(Arc::clone(lexicon.identity()));
        }
        // About as many terms as there are words in the content, so that the list of them need not grow.
        let terms = Vec::with_capacity((doc.content.len() / BYTES_A_WORD).min(TERMS_EXPECTED_MAX));
        let mut reading = Reading { terms, ..Reading::default() };
        let Self { tokenizer, cache, places, unknown, .. } = self;
        places.clear();
        unknown.clear();
        let question = doc.question.unwrap_or_default();
        let texts = [(doc.purpose, FIELD.purpose), (question, FIELD.question), (doc.content, FIELD.content)];
        for (text, weight) in texts {
            tokenizer.each(text, &mut |word| {
                reading.length = reading.length.saturating_add(weight);
                let room = reading.terms.len() + reading.unknown.len() < MAX_TERMS_A_DOCUMENT;
                let frequency = match lexicon.recall(word.text, cache) {
                    Ok(term) => match places.get(&term) {
                        Some(&at) => &mut reading.terms[at].1,
                        None if room => {
                            places.insert(term, reading.terms.len());
                            reading.terms.push((term, 0));
                            &mut reading.terms[places.len() - 1].1
                        }
                        None => return,
                    },
                    Err(stem) => {
                        let known = unknown.find(&stem);
                        let number = known.or_else(|| if room { unknown.number(&stem) } else { None });
                        let Some(number) = number.map(|number| number as usize) else { return };
                        if number == reading.unknown.len() {
                            reading.unknown_text.push_str(&stem);
                            reading.unknown.push((reading.unknown_text.len(), 0));
                        }
                        &mut reading.unknown[number].1
                    }
                };
                *frequency = frequency.saturating_add(weight).min(Posting::FREQUENCY);
            });
        }
        reading
    }

    /// What texts say together, each as much as the others, as a direction of the built-in model; `None` if it knows none
    /// of their words.
    pub(super) fn direction<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> Option<Direction> {
        self.embedder.embed(texts.into_iter().map(|text| (text, 1.0)))
    }

    /// Where a document's text points, by the built-in model; nowhere if it knows none of its words.
    pub fn embed(&mut self, doc: &Document<'_>) -> Vector {
        let question = doc.question.unwrap_or_default();
        let meant = [(doc.content, MEANT.content), (question, MEANT.question), (doc.purpose, MEANT.purpose)];
        let direction = self.embedder.embed(meant);
        let vector = direction.and_then(|direction| Vector::new(&direction));
        vector.unwrap_or_else(|| Vector::nowhere(crate::relevance::embed::DIMENSIONS))
    }
}
