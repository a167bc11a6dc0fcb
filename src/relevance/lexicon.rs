//! Words to small numbers. Each distinct stem has a number; each distinct word is stemmed once, as far as its
//! cache reaches.

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::relevance::words::Stems;

/// Words remembered with the number of their stem; about 4 MiB when full. More than any language's everyday
/// words, so that only a flood of made-up words fills it, and then it starts anew.
const CACHED_WORDS: usize = 1 << 17;

/// Longer words are rarely seen twice and not worth remembering.
const CACHED_WORD_BYTES: usize = 24;

/// Distinct strings, numbered in the order of their first sight, in one allocation.
#[derive(Clone, Default)]
pub(super) struct Names {
    text: String,
    ends: Vec<u32>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Names {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The string with this number; empty for a number that was never given.
    pub fn text(&self, number: u32) -> &str {
        let at = number as usize;
        let start =
            at.checked_sub(1).map_or(0, |before| self.ends.get(before).map_or(0, |&end| end as usize));
        self.ends.get(at).and_then(|&end| self.text.get(start..end as usize)).unwrap_or("")
    }

    pub fn find(&self, text: &str) -> Option<u32> {
        self.table.find(self.hasher.hash_one(text), |&number| self.text(number) == text).copied()
    }

    /// The number of `text`, new if need be. `None` when 4 GiB of distinct text are full.
    pub fn number(&mut self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        if let Some(&number) = self.table.find(hash, |&number| self.text(number) == text) {
            return Some(number);
        }
        let end = u32::try_from(self.text.len() + text.len()).ok()?;
        let number = u32::try_from(self.ends.len()).ok()?;
        self.text.push_str(text);
        self.ends.push(end);
        let (known, ends, hasher) = (&self.text, &self.ends, &self.hasher);
        self.table.insert_unique(hash, number, |&other| {
            let at = other as usize;
            let start = if at == 0 { 0 } else { ends[at - 1] as usize };
            hasher.hash_one(&known[start..ends[at] as usize])
        });
        Some(number)
    }

    /// Forgets all, keeping the room.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.table.clear();
    }

    pub fn memory_bytes(&self) -> usize {
        self.text.capacity()
            + self.ends.capacity() * size_of::<u32>()
            + self.table.capacity() * (size_of::<u32>() + 2)
    }
}

/// Words as the tokenizer gives them, each with the number of its stem. Holds the text within reach of the table's
/// entry: looking up a word is most of the work of reading it.
#[derive(Clone, Default)]
pub(super) struct Cache {
    text: String,
    table: HashTable<Cached>,
    hasher: DefaultHashBuilder,
}

#[derive(Clone, Copy)]
struct Cached {
    start: u32,
    term: u32,
    length: u8,
}

impl Cached {
    fn text(self, all: &str) -> &[u8] {
        let start = self.start as usize;
        &all.as_bytes()[start..start + usize::from(self.length)]
    }
}

impl Cache {
    /// Forgets all words.
    pub fn clear(&mut self) {
        self.text.clear();
        self.table.clear();
    }

    fn find(&self, word: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(word.as_bytes());
        let found = self.table.find(hash, |cached| cached.text(&self.text) == word.as_bytes());
        found.map(|cached| cached.term)
    }

    /// Remembers a word that is not in here yet and not longer than [`CACHED_WORD_BYTES`].
    fn add(&mut self, word: &str, term: u32) {
        if self.table.len() >= CACHED_WORDS {
            self.table.clear();
            self.text.clear();
        }
        let (Ok(start), Ok(length)) = (u32::try_from(self.text.len()), u8::try_from(word.len())) else {
            return;
        };
        self.text.push_str(word);
        let Self { text, table, hasher } = self;
        let entry = Cached { start, term, length };
        table.insert_unique(hasher.hash_one(word.as_bytes()), entry, |cached| {
            hasher.hash_one(cached.text(text))
        });
    }
}

/// All stems of an index. A copy goes by the same identity: it numbers what both know alike, and only one of the two may
/// grow.
#[derive(Clone)]
pub(super) struct Lexicon {
    stems: Stems,
    terms: Names,
    identity: Arc<()>,
}

/// A word as the lexicon knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Term {
    Known(u32),
    /// Never pushed so far; its stem, since two forms of an unknown word are still one word.
    Unknown(String),
}

impl Lexicon {
    pub fn new() -> Self {
        Self { stems: Stems::new(), terms: Names::default(), identity: Arc::new(()) }
    }

    /// The same thing for the same lexicon, by which a cache of its numbers can be told from another's.
    pub fn identity(&self) -> &Arc<()> {
        &self.identity
    }

    /// A word for asking.
    pub fn find(&self, word: &str) -> Term {
        let stem = self.stems.stem(word);
        self.terms.find(&stem).map_or_else(|| Term::Unknown(stem.into_owned()), Term::Known)
    }

    /// The term of a word, or its stem if that is not known; `cache` remembers what was found.
    pub fn recall<'a>(&self, word: &'a str, cache: &mut Cache) -> Result<u32, Cow<'a, str>> {
        // Numbers and identifiers have no stem to save the search for.
        if word.len() > CACHED_WORD_BYTES || word.bytes().any(|b| b.is_ascii_digit()) {
            let stem = self.stems.stem(word);
            return self.terms.find(&stem).ok_or(stem);
        }
        if let Some(term) = cache.find(word) {
            return Ok(term);
        }
        let stem = self.stems.stem(word);
        let Some(term) = self.terms.find(&stem) else { return Err(stem) };
        cache.add(word, term);
        Ok(term)
    }

    /// The term of a stem, new if need be. `None` when the lexicon is full.
    pub fn number_of_stem(&mut self, stem: &str) -> Option<u32> {
        self.terms.number(stem)
    }

    /// The term of a word, new if need be. `None` when the lexicon is full.
    pub fn number(&mut self, word: &str) -> Option<u32> {
        self.terms.number(&self.stems.stem(word))
    }

    pub fn memory_bytes(&self) -> usize {
        self.terms.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_share_a_number() {
        let mut lexicon = Lexicon::new();
        let one = lexicon.number("growing");
        assert_eq!(lexicon.number("grows"), one);
        assert_ne!(lexicon.number("market"), one);
        assert_eq!(lexicon.find("grow"), Term::Known(0));
        assert_eq!(lexicon.find("shrinks"), Term::Unknown("shrink".to_owned()));
    }

    #[test]
    fn a_flood_of_words_changes_no_number() {
        let (mut lexicon, mut cache) = (Lexicon::new(), Cache::default());
        let one = lexicon.number("market");
        for i in 0..CACHED_WORDS + 10 {
            let word: String = i.to_string().bytes().map(|b| char::from(b - b'0' + b'p')).collect();
            let number = lexicon.number(&word);
            assert_eq!(lexicon.recall(&word, &mut cache).ok(), number);
        }
        assert!(cache.table.len() <= CACHED_WORDS);
        assert_eq!(lexicon.number("markets"), one);
        assert_eq!(lexicon.recall("markets", &mut cache).ok(), one);
        assert_eq!(lexicon.recall("shrinks", &mut cache), Err("shrink".into()));
        assert_eq!(lexicon.find("market"), Term::Known(0));
    }

    #[test]
    fn strings_come_back() {
        let mut names = Names::default();
        for (number, text) in ["", "b", "ccc", "é"].into_iter().enumerate() {
            assert_eq!(names.number(text), u32::try_from(number).ok());
        }
        assert_eq!(names.number("ccc"), Some(2));
        assert_eq!((names.text(0), names.text(2), names.text(3), names.text(9)), ("", "ccc", "é", ""));
    }
}
