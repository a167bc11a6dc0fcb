//! Two claims laid side by side: which words of one are which of the other, and which exclude one another.

use pulp::{Arch, Simd, WithSimd};

use super::claims::{Marks, Said, WORDS_MAX, Word};
use super::dictionary::{Meaning, dictionary};
use super::grammar::Kind;
use crate::relevance::embed::DIMENSIONS;

/// How two words that were laid side by side stand to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Link {
    /// The word has no counterpart.
    #[default]
    None,
    /// The same word, or one that the lists say means the same.
    Same(u8),
    /// A word near in meaning, and how near.
    Near(u8, f32),
    /// A word that excludes it.
    Opposed(u8),
}

/// Nearness in meaning from which two words may stand for the same thing.
pub(super) const NEAR: f32 = 0.6;

/// The words of two claims, side by side.
pub(super) struct Alignment<'a> {
    pub a: Said<'a>,
    pub b: Said<'a>,
    /// By word of `a` and by word of `b`.
    pub from_a: [Link; WORDS_MAX],
    pub from_b: [Link; WORDS_MAX],
}

/// How much of a claim's words, by weight, has a counterpart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cover {
    pub whole: f32,
    pub met: f32,
    /// Of words that are no light ones.
    pub unmet: f32,
}

impl Cover {
    /// In 0..=1; a claim without words is covered.
    pub fn share(self) -> f32 {
        if self.whole > 0.0 { self.met / self.whole } else { 1.0 }
    }
}

impl<'a> Alignment<'a> {
    /// Lays two claims side by side. The same words meet first, then those that the lists hold together or apart,
    /// then those near in meaning.
    pub fn of(a: Said<'a>, b: Said<'a>) -> Self {
        let mut new = Self::by_lists(a, b);
        new.near(&Pointing::of(&new));
        new
    }

    /// The same without the last step.
    pub fn by_lists(a: Said<'a>, b: Said<'a>) -> Self {
        let mut new = Self { a, b, from_a: [Link::None; WORDS_MAX], from_b: [Link::None; WORDS_MAX] };
        new.link(|_| true, |one, other| (one.stem == other.stem).then_some(true));
        let placed = |word: &Word| !word.places.is_empty();
        new.link(placed, |one, other| listed(one, other).filter(|&alike| alike));
        new.link(placed, listed);
        new
    }

    /// The linked pairs of words.
    pub fn pairs(&self) -> impl Iterator<Item = (&'a Word, &'a Word, Link)> {
        self.a.words.iter().zip(&self.from_a).filter_map(|(word, link)| match *link {
            Link::None => None,
            Link::Same(at) | Link::Near(at, _) | Link::Opposed(at) => {
                Some((word, &self.b.words[at as usize], *link))
            }
        })
    }

    /// Links the first free words of both, of those that may be linked, that `say` something of: whether they are the
    /// same or opposed.
    fn link(&mut self, may: impl Fn(&Word) -> bool, say: impl Fn(&Word, &Word) -> Option<bool>) {
        for (i, one) in self.a.words.iter().enumerate() {
            if self.from_a[i] != Link::None || !may(one) {
                continue;
            }
            for (j, other) in self.b.words.iter().enumerate() {
                if self.from_b[j] != Link::None {
                    continue;
                }
                if let Some(same) = say(one, other) {
                    let link = if same { Link::Same } else { Link::Opposed };
                    (self.from_a[i], self.from_b[j]) = (link(j as u8), link(i as u8));
                    break;
                }
            }
        }
    }

    /// Links words that are free and near in meaning: each of `a` in its order with the nearest of `b`.
    pub fn near(&mut self, pointing: &Pointing) {
        let theirs = &pointing.b;
        for (&i, meaning) in pointing.a.words() {
            let apart = theirs.apart_from(meaning);
            let mut best = (NEAR, None);
            for (&(mut apart), &j) in apart.iter().zip(&theirs.at) {
                if self.from_b[usize::from(j)] != Link::None {
                    apart = DIMENSIONS as u16;
                }
                let near = COSINES[usize::from(apart)];
                if near > best.0 {
                    best = (near, Some(j));
                }
            }
            if let (near, Some(j)) = best {
                self.from_a[usize::from(i)] = Link::Near(j, near);
                self.from_b[usize::from(j)] = Link::Near(i, near);
            }
        }
    }

    /// How well the words of `a` that pass are covered by `b`; words nearer than `nearest` count as met.
    pub fn cover_a(&self, nearest: f32, pass: impl Fn(&Word) -> bool) -> Cover {
        cover(self.a.words, &self.from_a, nearest, pass)
    }

    /// See [`Self::cover_a`].
    pub fn cover_b(&self, nearest: f32, pass: impl Fn(&Word) -> bool) -> Cover {
        cover(self.b.words, &self.from_b, nearest, pass)
    }
}

fn cover(words: &[Word], links: &[Link], nearest: f32, pass: impl Fn(&Word) -> bool) -> Cover {
    let mut cover = Cover::default();
    for (word, link) in words.iter().zip(links).filter(|(word, _)| pass(word)) {
        let weight = word.weight();
        cover.whole += weight;
        match *link {
            Link::Same(_) | Link::Opposed(_) => cover.met += weight,
            Link::Near(_, near) if near >= nearest => cover.met += weight * near,
            _ if word.marks.has(Marks::LIGHT) => {}
            _ => cover.unmet += weight,
        }
    }
    cover
}

/// Whether the lists say that two words are the same (`true`) or exclude one another.
fn listed(one: &Word, other: &Word) -> Option<bool> {
    let mut found = None;
    for place in one.places.list() {
        for other_place in other.places.list() {
            match place.against(*other_place) {
                Some(true) => return Some(true),
                // States exclude one another only as what is said of a thing.
                Some(false) if place.kind != Kind::State || (is_said(one) && is_said(other)) => {
                    found = Some(false)
                }
                _ => {}
            }
        }
    }
    found
}

fn is_said(word: &Word) -> bool {
    word.marks.has(Marks::SAID)
}

/// Words of a claim that may be linked to words near in meaning, and where they point.
pub(super) struct Free {
    at: [u8; WORDS_MAX],
    meanings: [Meaning; WORDS_MAX],
    count: usize,
}

/// Such words of both claims of an alignment.
pub(super) struct Pointing {
    pub a: Free,
    pub b: Free,
}

impl Pointing {
    /// Of the words that are not linked yet.
    pub fn of(alignment: &Alignment<'_>) -> Self {
        let dictionary = dictionary();
        let free = |said: &Said<'_>, links: &[Link]| {
            let mut free = Free { at: [0; WORDS_MAX], meanings: [Meaning::default(); WORDS_MAX], count: 0 };
            for (at, (word, link)) in (0..).zip(said.words.iter().zip(links)) {
                if *link == Link::None && word.may_be_near() {
                    free.at[free.count] = at;
                    free.meanings[free.count] = dictionary.meaning(word.direction, said.own);
                    free.count += 1;
                }
            }
            free
        };
        Self { a: free(&alignment.a, &alignment.from_a), b: free(&alignment.b, &alignment.from_b) }
    }
}

impl Free {
    /// The words, by their number in the claim, with their meaning.
    fn words(&self) -> impl Iterator<Item = (&u8, &Meaning)> {
        self.at.iter().zip(&self.meanings).take(self.count)
    }

    /// In how many signs each of them differs from a meaning.
    fn apart_from(&self, meaning: &Meaning) -> Apart {
        let mut apart = Apart { signs: [0; WORDS_MAX], count: self.count };
        let others = &self.meanings[..self.count];
        Arch::new().dispatch(Differ { meaning, others, apart: &mut apart.signs });
        apart
    }

    /// How near the nearest of `others` is to the word of this number; none where that cannot be near any.
    pub fn nearest(&self, word: usize, others: &Self) -> f32 {
        let found = self.words().find(|(at, _)| usize::from(**at) == word);
        found.map_or(0.0, |(_, meaning)| {
            let least = others.apart_from(meaning).iter().min().copied();
            least.map_or(0.0, |apart| COSINES[usize::from(apart)])
        })
    }
}

/// How many signs differ, by word.
struct Apart {
    signs: [u16; WORDS_MAX],
    count: usize,
}

impl Apart {
    fn iter(&self) -> std::slice::Iter<'_, u16> {
        self.signs[..self.count].iter()
    }
}

/// Counts signs that differ. Plain code: inlined, the compiler makes of it what the processor at hand can do.
struct Differ<'a> {
    meaning: &'a Meaning,
    others: &'a [Meaning],
    apart: &'a mut [u16; WORDS_MAX],
}

impl WithSimd for Differ<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (apart, other) in self.apart.iter_mut().zip(self.others) {
            *apart = self.meaning.iter().zip(other).map(|(a, b)| (a ^ b).count_ones() as u16).sum();
        }
    }
}

/// The cosine of two directions by how many of their signs differ: cos(π · n / 256) for n from 0 to 256.
static COSINES: [f32; 257] = cosines();

const fn cosines() -> [f32; 257] {
    // By the angle-sum formulas, since `cos` is not const; f64 keeps the error below 1e-12.
    const STEP_COS: f64 = 0.999_924_701_839_144_5;
    const STEP_SIN: f64 = 0.012_271_538_285_719_925;
    let mut table = [0.0; 257];
    let (mut cos, mut sin) = (1.0_f64, 0.0_f64);
    let mut at = 0;
    while at < 257 {
        table[at] = cos as f32;
        (cos, sin) = (cos * STEP_COS - sin * STEP_SIN, sin * STEP_COS + cos * STEP_SIN);
        at += 1;
    }
    table
}
