//! A first look at two claims: whether anything in them could clash at all. It costs a few instructions and is never
//! wrong when it says no: each rule of the judgement needs what is looked for here.

use super::claims::{Marks, Word};
use super::quantities::Quantity;

/// Ways in which a name can be the one answer to something, one bit each (`naming`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Namings(u8);

impl Namings {
    const IDENTITY: u8 = 1;
    const SINGLE: u8 = 1 << 1;
    const TITLE: u8 = 1 << 2;
    const ROLE: u8 = 1 << 3;
    const CHOSEN: u8 = 1 << 4;

    /// Those for which the words have what `naming` asks for.
    fn of(words: &[Word], is_personal: bool) -> Self {
        let mut found = 0;
        let mut titled = false;
        let mut before: Option<&Word> = None;
        for word in words {
            let has = |mark: Marks| word.marks.has(mark);
            if !has(Marks::LIGHT) {
                let named = has(Marks::NAME);
                let mut add = |bit: u8, when: bool| found |= if when { bit } else { 0 };
                add(Self::IDENTITY, has(Marks::NAMED) && ((named && !is_personal) || titled));
                add(Self::ROLE, named && has(Marks::AS));
                if let Some(before) = before.filter(|_| named) {
                    add(Self::SINGLE, before.marks.has(Marks::SINGLE));
                    add(Self::CHOSEN, !is_personal && before.marks.has(Marks::CHOSEN) && !before.is_first());
                }
            }
            if has(Marks::TITLE) && has(Marks::SAID) {
                found |= Self::TITLE;
            }
            titled |= has(Marks::TITLE);
            before = Some(word);
        }
        Self(found)
    }
}

/// What of a claim, or of all claims of a text, is looked at first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sight {
    /// One bit for each stem and group of opposites, for whether two claims share anything.
    bits: u64,
    /// The axes of its words' places, see `Place::sides`.
    sides: [u64; 2],
    /// One bit for each measure of its quantities.
    measures: u32,
    namings: Namings,
    is_negated: bool,
    /// It has one word only.
    is_short: bool,
}

impl Sight {
    pub fn of(words: &[Word], quantities: &[Quantity], is_personal: bool) -> Self {
        let mut new = Self {
            namings: Namings::of(words, is_personal),
            is_negated: words.iter().any(Word::is_negated),
            is_short: words.len() == 1,
            ..Self::default()
        };
        for word in words {
            new.bits |= bit(word.stem);
            for place in word.places.list() {
                new.bits |= bit(place.axis_number());
                new.sides.iter_mut().zip(place.sides()).for_each(|(all, side)| *all |= side);
            }
        }
        new.measures = quantities.iter().fold(0, |all, quantity| all | quantity.measure.bit());
        new
    }

    /// What either of two has.
    pub fn and(mut self, other: &Self) -> Self {
        self.bits |= other.bits;
        self.sides = [self.sides[0] | other.sides[0], self.sides[1] | other.sides[1]];
        self.measures |= other.measures;
        self.namings = Namings(self.namings.0 | other.namings.0);
        self.is_negated |= other.is_negated;
        self.is_short |= other.is_short;
        self
    }

    /// Whether two claims have enough in common to be about one thing. This one is a rule of the judgement.
    pub fn may_share_a_subject(&self, other: &Self) -> bool {
        let needed = if self.is_short || other.is_short { 1 } else { 2 };
        (self.bits & other.bits).count_ones() >= needed
    }

    /// Whether there may be a denial, two words that exclude each other, two quantities of one measure or two names in one
    /// role. Without any there is nothing to judge.
    pub fn may_clash(&self, other: &Self) -> bool {
        self.is_negated
            || other.is_negated
            || self.may_oppose(other)
            || self.measures & other.measures != 0
            || self.namings.0 & other.namings.0 != 0
    }

    pub fn is_negated(&self) -> bool {
        self.is_negated
    }

    fn may_oppose(&self, other: &Self) -> bool {
        (self.sides[0] & other.sides[1]) | (self.sides[1] & other.sides[0]) != 0
    }
}

/// One of 64 bits for a number.
pub(super) fn bit(number: u32) -> u64 {
    1 << (number.wrapping_mul(0x9e37_79b1) >> 26)
}
