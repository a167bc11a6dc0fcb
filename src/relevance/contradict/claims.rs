//! What a text claims, as it is kept: claims, their words and their quantities in few pieces of memory.

use std::ops::{Deref, Range};

use super::dictionary::{Direction, Meaning};
use super::grammar::{Places, Stem};
use super::quantities::Quantity;
use super::read;
use super::sight::Sight;

/// Bytes of a text that are read for what it claims. Units are a few sentences; what a longer text claims first is
/// what it is about.
const TEXT_MAX_BYTES: usize = 8 * 1024;
/// Most claims of a text that are kept, the first: each is held against each of another text.
pub(super) const CLAIMS_MAX: usize = 16;
/// Most words of a claim that are kept.
pub(super) const WORDS_MAX: usize = 40;

/// What is known of a word where it stands: any of these together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    /// Its claim says that it is not so.
    pub const NEGATED: Self = Self(1);
    /// A name: a capital inside a sentence, or digits in it.
    pub const NAME: Self = Self(1 << 1);
    /// Says little of what the claim is about.
    pub const LIGHT: Self = Self(1 << 2);
    /// Stands behind "is" or its like: it is what is said of the subject.
    pub const SAID: Self = Self(1 << 3);
    /// See `single` in `grammar.txt`.
    pub const SINGLE: Self = Self(1 << 4);
    /// See `title` in `grammar.txt`.
    pub const TITLE: Self = Self(1 << 5);
    /// See `once` in `grammar.txt`.
    pub const ONCE: Self = Self(1 << 6);
    /// See `verb` in `grammar.txt`.
    pub const VERB: Self = Self(1 << 7);
    /// Stands right behind "is" or its like, or behind "called".
    pub const NAMED: Self = Self(1 << 9);
    /// Stands before "as": "Kafka as the broker".
    pub const AS: Self = Self(1 << 11);
    /// Belongs to the word right after it and says which: "the old dashboard".
    pub const WHICH: Self = Self(1 << 10);
    /// Begins a group of words: it stands first, or behind an article, a preposition or their like.
    pub const LED: Self = Self(1 << 12);
    /// See `chosen` in `grammar.txt`.
    pub const CHOSEN: Self = Self(1 << 13);
    /// Says of which kind something is, or what is spoken of, and not that it is so: "the minimum supported version is",
    /// "Implementing a protocol".
    pub const UNSAID: Self = Self(1 << 14);

    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub fn add(&mut self, other: Self, when: bool) {
        if when {
            self.0 |= other.0;
        }
    }

    pub fn drop(&mut self, other: Self, when: bool) {
        if when {
            self.0 &= !other.0;
        }
    }

    pub fn flip(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}

/// A span of a text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub start: u32,
    length: u16,
}

impl Span {
    /// The same range, cut off at 64 KiB: more than is read of a text.
    pub fn of(range: &Range<u32>) -> Self {
        let length = u16::try_from(range.end.saturating_sub(range.start)).unwrap_or(u16::MAX);
        Self { start: range.start, length }
    }

    pub fn end(self) -> u32 {
        self.start + u32::from(self.length)
    }

    pub fn range(self) -> Range<u32> {
        self.start..self.end()
    }
}

/// A word that matters to a claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub stem: Stem,
    /// Where it points in meaning.
    pub direction: Direction,
    /// Where it stands in the text.
    pub span: Span,
    /// The number of its token in the claim.
    pub token: u16,
    pub marks: Marks,
    /// Its places among its opposites.
    pub places: Places,
}

impl Word {
    /// How much the word counts in what two claims have in common.
    pub fn weight(&self) -> f32 {
        if self.marks.has(Marks::LIGHT) { 0.3 } else { 1.0 }
    }

    /// Whether its claim begins with it.
    pub fn is_first(&self) -> bool {
        self.token == 0
    }

    /// Whether there is one such thing: "owner", "default".
    pub fn is_title(&self) -> bool {
        self.marks.has(Marks::TITLE)
    }

    /// Whether the other word of the same claim stands right behind this one.
    pub fn is_before(&self, next: &Self) -> bool {
        self.token + 1 == next.token
    }

    pub fn is_negated(&self) -> bool {
        self.marks.has(Marks::NEGATED)
    }

    /// Whether a word that is only near in meaning may stand for it: names are the same or not.
    pub fn may_be_near(&self) -> bool {
        !self.direction.is_nowhere() && !self.marks.has(Marks::NAME)
    }
}

/// What kind of claim it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// Begins with some thing that is not known yet: "a dog", "a user".
    pub is_indefinite: bool,
    /// Speaks of whoever wrote it, or to whoever reads it.
    pub is_personal: bool,
    /// Speaks of "this" or "it": what that is stands elsewhere.
    pub is_pointing: bool,
    /// Tells what something does without saying what does it: "Returns the count."
    pub is_bare: bool,
    /// Holds only in a case that it names.
    pub is_conditional: bool,
    /// Says what is allowed, with "may": only what must be otherwise contradicts it.
    pub is_allowed: bool,
    /// Says what must be.
    pub is_required: bool,
    /// Its subject is "the same" thing as one that another text names.
    pub is_same: bool,
    /// What it denies tells which thing is meant: "loops that do not use it".
    pub denies_aside: bool,
}

/// One thing that a text says: a sentence, or the part of one up to "but".
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// Where its words and quantities are among those of the text.
    pub words: Range<u16>,
    pub quantities: Range<u16>,
    /// For a first look.
    pub sight: Sight,
    pub manner: Manner,
    /// Where it stands in the text, and the first word that negates in it.
    pub span: Span,
    pub negator: Option<Span>,
    /// When, as far as it is told by words like "before" and "last", one bit each.
    pub when: u64,
}

impl Deref for Claim {
    type Target = Manner;

    fn deref(&self) -> &Manner {
        &self.manner
    }
}

/// A claim with its words and quantities at hand.
#[derive(Clone, Copy)]
pub(super) struct Said<'a> {
    pub claim: &'a Claim,
    pub words: &'a [Word],
    pub quantities: &'a [Quantity],
    /// Directions that the text keeps itself.
    pub own: &'a [Meaning],
}

impl Deref for Said<'_> {
    type Target = Claim;

    fn deref(&self) -> &Claim {
        self.claim
    }
}

/// What a text claims, made once for each text and compared with others'.
///
/// Made of the first 8 KiB of a text and at most 16 sentences. Questions, wishes and possibilities are no
/// claims; what holds in some case only is compared with the like. Some 700 bytes for a unit of two sentences; the text
/// itself is not among them.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    pub(super) sight: Sight,
    pub(super) claims: Box<[Claim]>,
    pub(super) words: Box<[Word]>,
    pub(super) quantities: Box<[Quantity]>,
    pub(super) own: Box<[Meaning]>,
}

impl Claims {
    /// What a text claims.
    #[must_use]
    pub fn of(text: &str) -> Self {
        read::claims(&text[..text.floor_char_boundary(TEXT_MAX_BYTES)])
    }

    /// Estimate of the memory that they hold, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.claims)
            + size_of_val(&*self.words)
            + size_of_val(&*self.quantities)
            + size_of_val(&*self.own)
    }

    /// Whether the text claims nothing that could be contradicted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// The claims, with what each consists of.
    pub(super) fn said(&self) -> impl Iterator<Item = Said<'_>> {
        (0..self.claims.len()).filter_map(|at| self.claim(at))
    }

    /// The claim of this number.
    pub(super) fn claim(&self, number: usize) -> Option<Said<'_>> {
        let claim = self.claims.get(number)?;
        let range = |range: &Range<u16>| usize::from(range.start)..usize::from(range.end);
        Some(Said {
            claim,
            words: self.words.get(range(&claim.words))?,
            quantities: self.quantities.get(range(&claim.quantities))?,
            own: &self.own,
        })
    }
}
