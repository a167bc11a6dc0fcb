//! What is known of words: what they do in a sentence (`grammar.txt`) and which exclude one another or say the
//! same (`opposites.txt`), in English, German, Spanish and French.
//!
//! Both lists are of the general language and were written for this purpose. They are read once, on first use.

use std::borrow::Cow;
use std::sync::LazyLock;

use hashbrown::HashMap;
use rust_stemmers::{Algorithm, Stemmer};

use crate::relevance::words::Stems;

static GRAMMAR: &str = include_str!("grammar.txt");
static OPPOSITES: &str = include_str!("opposites.txt");

static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::read);

/// The lists, read.
pub(super) fn lexicon() -> &'static Lexicon {
    &LEXICON
}

/// A language whose grammar is known. A text in another one is read as English: names and numbers still count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Language {
    #[default]
    English,
    German,
    Spanish,
    French,
}

impl Language {
    pub const ALL: [Self; 4] = [Self::English, Self::German, Self::Spanish, Self::French];

    fn named(code: &str) -> Option<Self> {
        Some(match code {
            "en" => Self::English,
            "de" => Self::German,
            "es" => Self::Spanish,
            "fr" => Self::French,
            _ => return None,
        })
    }
}

/// What a word does in a sentence: any of the `grammar.txt` roles together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Roles(u32);

impl Roles {
    pub const FUNCTION: Self = Self(1);
    pub const LIGHT: Self = Self(1 << 1);
    pub const COPULA: Self = Self(1 << 2);
    pub const NEGATOR: Self = Self(1 << 3);
    pub const NOTHING: Self = Self(1 << 4);
    pub const LACKING: Self = Self(1 << 5);
    pub const HEDGE: Self = Self(1 << 6);
    pub const CONDITION: Self = Self(1 << 7);
    pub const QUOTED: Self = Self(1 << 8);
    pub const HOWEVER: Self = Self(1 << 9);
    pub const WHICH: Self = Self(1 << 10);
    pub const AND: Self = Self(1 << 11);
    pub const INDEFINITE: Self = Self(1 << 12);
    pub const PREPOSITION: Self = Self(1 << 13);
    pub const PERSON: Self = Self(1 << 14);
    pub const ABOUT: Self = Self(1 << 15);
    pub const AT_LEAST: Self = Self(1 << 16);
    pub const AT_MOST: Self = Self(1 << 17);
    pub const PER: Self = Self(1 << 18);
    pub const SINGLE: Self = Self(1 << 19);
    pub const TITLE: Self = Self(1 << 20);
    pub const ONCE: Self = Self(1 << 21);
    pub const OR: Self = Self(1 << 22);
    pub const WHEN: Self = Self(1 << 23);
    pub const NUMBERED: Self = Self(1 << 24);
    pub const BARE: Self = Self(1 << 26);
    pub const CHOSEN: Self = Self(1 << 27);
    /// Part of the word before it: "longer" in "no longer". In no list: it is told by that word.
    pub const PARTICLE: Self = Self(1 << 25);

    /// Roles that a word can have and still be what a sentence is about.
    const OF_CONTENT: u32 = Self::LIGHT.0
        | Self::SINGLE.0
        | Self::TITLE.0
        | Self::ONCE.0
        | Self::WHEN.0
        | Self::NUMBERED.0
        | Self::CHOSEN.0
        | Self::BARE.0;

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "function" => Self::FUNCTION,
            "light" => Self::LIGHT,
            "copula" => Self::COPULA,
            "negator" => Self::NEGATOR,
            "nothing" => Self::NOTHING,
            "lacking" => Self::LACKING,
            "hedge" => Self::HEDGE,
            "condition" => Self::CONDITION,
            "quoted" => Self::QUOTED,
            "however" => Self::HOWEVER,
            "which" => Self::WHICH,
            "and" => Self::AND,
            "indefinite" => Self::INDEFINITE,
            "preposition" => Self::PREPOSITION,
            "person" => Self::PERSON,
            "about" => Self::ABOUT,
            "atleast" => Self::AT_LEAST,
            "atmost" => Self::AT_MOST,
            "per" => Self::PER,
            "single" => Self::SINGLE,
            "title" => Self::TITLE,
            "once" => Self::ONCE,
            "or" => Self::OR,
            "when" => Self::WHEN,
            "numbered" => Self::NUMBERED,
            "chosen" => Self::CHOSEN,
            "bare" => Self::BARE,
            _ => return None,
        })
    }

    /// Both together.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any role of `other` is among these.
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a word that says nothing by itself may still be opposed to another: "all", "before".
    pub const fn is_opposable(self) -> bool {
        self.0
            & !(Self::OF_CONTENT
                | Self::FUNCTION.0
                | Self::PREPOSITION.0
                | Self::AT_LEAST.0
                | Self::AT_MOST.0)
            == 0
    }

    /// Whether the word says something by itself.
    pub const fn is_content(self) -> bool {
        self.0 & !Self::OF_CONTENT == 0
    }
}

/// How the groups of an axis stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Antonyms.
    Opposite,
    /// States of which a thing has one.
    State,
    /// One group, of words that say the same.
    Alike,
}

/// A word's place among its opposites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    axis: u16,
    group: u8,
    pub kind: Kind,
}

impl Place {
    /// A number for its axis that no stem is likely to have.
    pub fn axis_number(self) -> u32 {
        u32::from(self.axis).wrapping_add(1) << 16
    }

    /// How the words at two places stand to each other, if they are on one axis: whether they say the same.
    pub fn against(self, other: Self) -> Option<bool> {
        (self.axis == other.axis).then_some(self.group == other.group)
    }
}

/// A word's stem as a number. Two stems that share one are taken for the same word: with the few dozen words that
/// are ever compared, that happens once in about a hundred million comparisons.
pub(super) type Stem = u32;

/// The lists of all languages.
pub(super) struct Lexicon {
    roles: HashMap<&'static str, [Roles; Language::ALL.len()]>,
    places: [HashMap<Stem, Vec<Place>>; Language::ALL.len()],
    english: Stems,
    others: [Stemmer; Language::ALL.len() - 1],
}

impl Lexicon {
    fn read() -> Self {
        let others = [Algorithm::German, Algorithm::Spanish, Algorithm::French].map(Stemmer::create);
        let mut new =
            Self { roles: HashMap::new(), places: Default::default(), english: Stems::new(), others };
        for line in lines(GRAMMAR) {
            let Some((language, role, words)) = heading(line, Roles::named) else { continue };
            for word in words.split_whitespace() {
                let roles = &mut new.roles.entry(word).or_default()[language as usize];
                *roles = roles.and(role);
            }
        }
        for (axis, line) in (0..).zip(lines(OPPOSITES)) {
            let Some((language, kind, groups)) = heading(line, kind_named) else { continue };
            for (group, words) in (0..).zip(groups.split('|')) {
                for word in words.split_whitespace() {
                    let stem = match word.split_once('_') {
                        Some((first, second)) => {
                            Self::phrase(new.stem(first, language), new.stem(second, language))
                        }
                        None => new.stem(word, language),
                    };
                    let places = new.places[language as usize].entry(stem).or_default();
                    let place = Place { axis, group, kind };
                    if !places.contains(&place) {
                        places.push(place);
                    }
                }
            }
        }
        new
    }

    /// What a folded lower-case word does in a sentence of this language.
    pub fn roles(&self, word: &str, language: Language) -> Roles {
        self.roles.get(word).map_or(Roles::default(), |roles| roles[language as usize])
    }

    /// Whether the word is one of grammar in any language, or one that carries little.
    pub fn is_grammar(&self, word: &str) -> bool {
        self.roles.get(word).is_some_and(|roles| roles.iter().any(|roles| *roles != Roles::default()))
    }

    /// In which languages the word is one of grammar.
    pub fn spoken(&self, word: &str) -> [bool; Language::ALL.len()] {
        self.roles.get(word).map_or_else(Default::default, |roles| roles.map(|roles| !roles.is_content()))
    }

    /// The word's stem in this language.
    pub fn stem(&self, word: &str, language: Language) -> Stem {
        let stem = match language {
            Language::English => self.english.stem(word),
            _ if word.len() < 4 => Cow::Borrowed(word),
            _ => self.others[language as usize - 1].stem(word),
        };
        stem.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ Stem::from(byte)).wrapping_mul(0x0100_0193))
    }

    /// The number of a phrase of two words.
    pub fn phrase(first: Stem, second: Stem) -> Stem {
        first.rotate_left(7) ^ second.wrapping_mul(0x9e37_79b1)
    }

    /// The places of a word, or of a phrase, among its opposites.
    pub fn places(&self, stem: Stem, language: Language) -> &[Place] {
        self.places[language as usize].get(&stem).map_or(&[], Vec::as_slice)
    }
}

fn kind_named(name: &str) -> Option<Kind> {
    Some(match name {
        "opposite" => Kind::Opposite,
        "state" => Kind::State,
        "alike" => Kind::Alike,
        _ => return None,
    })
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// A line's language, what `named` makes of its second word, and the rest.
fn heading<T>(line: &'static str, named: fn(&str) -> Option<T>) -> Option<(Language, T, &'static str)> {
    let (language, rest) = line.split_once(' ')?;
    let (name, rest) = rest.split_once(' ')?;
    Some((Language::named(language)?, named(name)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_lists_is_read() {
        for line in lines(GRAMMAR) {
            assert!(heading(line, Roles::named).is_some(), "{line}");
        }
        for line in lines(OPPOSITES) {
            let (_, kind, groups) = heading(line, kind_named).expect(line);
            assert_eq!(kind == Kind::Alike, !groups.contains('|'), "{line}");
        }
    }

    #[test]
    fn words_are_folded_and_in_lower_case() {
        for line in lines(GRAMMAR).chain(lines(OPPOSITES)) {
            assert!(line.chars().all(|c| c.is_ascii() && !c.is_ascii_uppercase()), "{line}");
        }
    }

    #[test]
    fn no_word_excludes_itself() {
        let lexicon = lexicon();
        for places in lexicon.places.iter().flat_map(HashMap::values) {
            for place in places {
                let same_axis = places.iter().filter(|other| other.axis == place.axis);
                assert!(same_axis.map(|other| other.group).all(|group| group == place.group), "{places:?}");
            }
        }
    }

    #[test]
    fn stems_of_a_language_meet() {
        let lexicon = lexicon();
        assert_eq!(
            lexicon.stem("increased", Language::English),
            lexicon.stem("increases", Language::English)
        );
        assert_eq!(lexicon.stem("kunden", Language::German), lexicon.stem("kunde", Language::German));
        assert_ne!(lexicon.stem("open", Language::English), lexicon.stem("closed", Language::English));
    }
}
