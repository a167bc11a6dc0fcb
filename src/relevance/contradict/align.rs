//! Two claims laid side by side: which words of one are which of the other, and which exclude one another.

use super::claims::{Claim, Marks, Meaning, WORDS_MAX, Word};
use super::grammar::Kind;

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
    pub a: &'a Claim,
    pub b: &'a Claim,
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
    pub fn of(a: &'a Claim, b: &'a Claim) -> Self {
        let mut new = Self { a, b, from_a: [Link::None; WORDS_MAX], from_b: [Link::None; WORDS_MAX] };
        new.link(|one, other| (one.stem == other.stem).then_some(true));
        new.link(|one, other| listed(one, other).filter(|&alike| alike));
        new.link(listed);
        new.near();
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

    /// Links the first free words of both that `say` something of: whether they are the same or opposed.
    fn link(&mut self, say: impl Fn(&Word, &Word) -> Option<bool>) {
        for (i, one) in self.a.words.iter().enumerate() {
            if self.from_a[i] != Link::None {
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

    fn near(&mut self) {
        let means = |word: &Word| word.marks.has(Marks::MEANS) && !word.marks.has(Marks::NAME);
        for (i, one) in self.a.words.iter().enumerate() {
            if self.from_a[i] != Link::None || !means(one) {
                continue;
            }
            let mut best = (NEAR, None);
            for (j, other) in self.b.words.iter().enumerate() {
                if self.from_b[j] == Link::None && means(other) {
                    let near = nearness(&one.meaning, &other.meaning);
                    if near > best.0 {
                        best = (near, Some(j));
                    }
                }
            }
            if let (near, Some(j)) = best {
                (self.from_a[i], self.from_b[j]) = (Link::Near(j as u8, near), Link::Near(i as u8, near));
            }
        }
    }

    /// How well the words of `a` that pass are covered by `b`; words nearer than `nearest` count as met.
    pub fn cover_a(&self, nearest: f32, pass: impl Fn(&Word) -> bool) -> Cover {
        cover(&self.a.words, &self.from_a, nearest, pass)
    }

    /// See [`Self::cover_a`].
    pub fn cover_b(&self, nearest: f32, pass: impl Fn(&Word) -> bool) -> Cover {
        cover(&self.b.words, &self.from_b, nearest, pass)
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
    for place in one.places {
        for other_place in other.places {
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

/// The cosine of two meanings, told from how many of their signs differ.
pub(super) fn nearness(a: &Meaning, b: &Meaning) -> f32 {
    let differ: u32 = a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
    COSINES[differ as usize]
}

/// cos(π · n / 256) for n from 0 to 256.
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
