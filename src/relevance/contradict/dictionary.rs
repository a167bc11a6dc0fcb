//! Words as far as they are known by themselves, each found out once: what it does in a sentence, its stem, its
//! opposites, and where it points in meaning.
//!
//! One dictionary for all texts, because they use the same words: claims then hold a number in place of a direction.
//! It only grows, and is full at [`WORDS_MAX`]; what it does not hold is found out again for each text, with the same
//! outcome.

use std::hash::BuildHasher;
use std::sync::{LazyLock, PoisonError, RwLock, RwLockReadGuard};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::grammar::{Language, Lexicon, Places, Roles, Stem};
use super::scan::{Scan, Sign};
use super::units;
use crate::relevance::embed::{DIMENSIONS, Embedder};

/// Words that are remembered: more than a language's everyday ones. About 10 MiB when full.
const WORDS_MAX: usize = 1 << 17;

/// A word's direction of meaning, by the signs of its values: enough to tell near from far.
pub(super) type Meaning = [u64; DIMENSIONS / 64];

/// A word's direction of meaning as a number: in the dictionary, or among those that its text keeps itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction(u32);

impl Direction {
    const NOWHERE: Self = Self(u32::MAX);
    const OWN: u32 = 1 << 31;

    /// Whether the word points nowhere: the model does not know it.
    pub fn is_nowhere(self) -> bool {
        self == Self::NOWHERE
    }
}

/// What is known of a word in a language.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub roles: Roles,
    pub stem: Stem,
    pub places: Places,
    /// A quantity may begin with it.
    pub begins_quantity: bool,
    pub direction: Direction,
}

impl Default for Known {
    /// Of what is no word.
    fn default() -> Self {
        Self {
            roles: Roles::default(),
            stem: 0,
            places: Places::default(),
            begins_quantity: false,
            direction: Direction::NOWHERE,
        }
    }
}

struct Entry {
    start: u32,
    length: u8,
    language: Language,
    known: Known,
}

/// Words, and where they point.
#[derive(Default)]
pub(super) struct Dictionary {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    entries: Vec<Entry>,
    text: String,
    meanings: Vec<Meaning>,
}

static DICTIONARY: LazyLock<RwLock<Dictionary>> = LazyLock::new(RwLock::default);

/// The dictionary as it is. Nothing of it changes once it is in there.
pub(super) fn dictionary() -> RwLockReadGuard<'static, Dictionary> {
    DICTIONARY.read().unwrap_or_else(PoisonError::into_inner)
}

/// Notes at each word of a text what is known of it. Returns the directions of those that the dictionary has no room for.
pub(super) fn look_up(scan: &mut Scan, lexicon: &Lexicon, language: Language) -> Vec<Meaning> {
    let mut missing = Vec::new();
    let known = dictionary();
    for at in 0..scan.tokens.len() {
        if scan.tokens[at].sign != Sign::Word {
            continue;
        }
        match known.find(scan.lower(&scan.tokens[at]), language) {
            Some(known) => scan.tokens[at].known = known,
            None => missing.push(at),
        }
    }
    drop(known);
    let mut own = Vec::new();
    if missing.is_empty() {
        return own;
    }
    let mut embedder = Embedder::default();
    let learnt: Vec<(Known, Option<Meaning>)> = missing
        .iter()
        .map(|&at| learn(scan.lower(&scan.tokens[at]), lexicon, language, &mut embedder))
        .collect();
    let mut dictionary = DICTIONARY.write().unwrap_or_else(PoisonError::into_inner);
    for (at, (known, meaning)) in missing.into_iter().zip(learnt) {
        let kept = dictionary.enter(scan.lower(&scan.tokens[at]), language, known, meaning);
        scan.tokens[at].known = kept.unwrap_or_else(|| {
            let direction = meaning.map_or(Direction::NOWHERE, |meaning| {
                own.push(meaning);
                Direction(Direction::OWN | (own.len() as u32 - 1))
            });
            Known { direction, ..known }
        });
    }
    own
}

/// Finds out what is to be known of a word; its direction has no number yet.
fn learn(
    word: &str,
    lexicon: &Lexicon,
    language: Language,
    embedder: &mut Embedder,
) -> (Known, Option<Meaning>) {
    let stem = lexicon.stem(word, language);
    let known = Known {
        roles: lexicon.roles(word, language),
        stem,
        places: lexicon.places(stem, language),
        begins_quantity: units::begins_quantity(word, language, lexicon),
        direction: Direction::NOWHERE,
    };
    let meaning = embedder.embed([(word, 1.0)]).map(|direction| {
        let mut meaning = Meaning::default();
        for (at, value) in direction.iter().enumerate() {
            meaning[at / 64] |= u64::from(*value > 0.0) << (at % 64);
        }
        meaning
    });
    (known, meaning)
}

impl Dictionary {
    /// Where a word of a text points that keeps `own` directions; nowhere if it is none.
    pub fn meaning(&self, direction: Direction, own: &[Meaning]) -> Meaning {
        let number = direction.0;
        let found = if direction.is_nowhere() {
            None
        } else if number & Direction::OWN == 0 {
            self.meanings.get(number as usize)
        } else {
            own.get((number & !Direction::OWN) as usize)
        };
        found.copied().unwrap_or_default()
    }

    fn text_of(&self, number: u32) -> (&str, Language) {
        let entry = &self.entries[number as usize];
        let start = entry.start as usize;
        (&self.text[start..start + usize::from(entry.length)], entry.language)
    }

    fn hash(&self, word: &str, language: Language) -> u64 {
        self.hasher.hash_one((word, language as u8))
    }

    fn find(&self, word: &str, language: Language) -> Option<Known> {
        let hash = self.hash(word, language);
        let found = self.table.find(hash, |&number| self.text_of(number) == (word, language))?;
        Some(self.entries[*found as usize].known)
    }

    /// Enters a word, or finds it in here; `None` if there is no room for it.
    fn enter(
        &mut self,
        word: &str,
        language: Language,
        mut known: Known,
        meaning: Option<Meaning>,
    ) -> Option<Known> {
        if let Some(known) = self.find(word, language) {
            return Some(known);
        }
        let (Ok(start), Ok(length), true) =
            (u32::try_from(self.text.len()), u8::try_from(word.len()), self.entries.len() < WORDS_MAX)
        else {
            return None;
        };
        if let Some(meaning) = meaning {
            known.direction = Direction(u32::try_from(self.meanings.len()).ok()?);
            self.meanings.push(meaning);
        }
        let number = u32::try_from(self.entries.len()).ok()?;
        let hash = self.hash(word, language);
        self.text.push_str(word);
        self.entries.push(Entry { start, length, language, known });
        let mut table = std::mem::take(&mut self.table);
        table.insert_unique(hash, number, |&other| {
            let (word, language) = self.text_of(other);
            self.hash(word, language)
        });
        self.table = table;
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relevance::contradict::grammar::lexicon;

    #[test]
    fn a_word_without_room_is_known_all_the_same() {
        let mut dictionary = Dictionary::default();
        let mut embedder = Embedder::default();
        let (known, meaning) = learn("market", lexicon(), Language::English, &mut embedder);
        assert!(meaning.is_some());
        let entered = dictionary.enter("market", Language::English, known, meaning).unwrap();
        assert_eq!(dictionary.meaning(entered.direction, &[]), meaning.unwrap());
        assert!(dictionary.find("market", Language::German).is_none());
        // A full one takes no more.
        let long = "x".repeat(300);
        assert!(dictionary.enter(&long, Language::English, known, meaning).is_none());
        let own = [meaning.unwrap()];
        assert_eq!(dictionary.meaning(Direction(Direction::OWN), &own), own[0]);
        assert_eq!(dictionary.meaning(Direction::NOWHERE, &own), Meaning::default());
    }
}
