//! Text that looks like text to an index: made-up words, as unevenly frequent as in a language.

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

/// How many words there are.
const VOCABULARY: usize = 20_000;
/// How many words are drawn ahead; a power of two, so that drawing one of them is a mask.
const DRAWN: usize = 1 << 18;
/// How fast frequency falls with rank (Zipf and Mandelbrot, as measured on English).
const EXPONENT: f64 = 1.07;
/// Mandelbrot's shift, which flattens the head.
const SHIFT: f64 = 2.7;

/// A vocabulary and draws from it in its frequencies.
pub(super) struct Words {
    words: Vec<String>,
    /// Indices of words; each word as often as it is frequent.
    drawn: Vec<u16>,
}

impl Words {
    /// The vocabulary of a seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let words = (0..VOCABULARY).map(|rank| word(&mut rng, rank)).collect();
        let weights = (0..VOCABULARY).map(|rank| (rank as f64 + SHIFT).powf(-EXPONENT));
        let cumulated: Vec<f64> = weights
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        let total = cumulated.last().copied().unwrap_or(1.0);
        let drawn = (0..DRAWN)
            .map(|_| {
                let at = rng.random_range(0.0..total);
                let index = cumulated.partition_point(|sum| *sum <= at).min(VOCABULARY - 1);
                u16::try_from(index).unwrap_or(u16::MAX)
            })
            .collect();
        Self { words, drawn }
    }

    fn draw(&self, rng: &mut SmallRng) -> &str {
        let at = rng.next_u32() as usize % DRAWN;
        &self.words[usize::from(self.drawn[at])]
    }

    /// Appends words up to `bytes` bytes, the last one cut if need be.
    pub fn write(&self, rng: &mut SmallRng, bytes: usize, out: &mut String) {
        let end = out.len() + bytes;
        while out.len() < end {
            out.push_str(self.draw(rng));
            out.push(' ');
        }
        // Words are ASCII, so any place is a boundary; a blank at the end is no word's part.
        out.truncate(end);
        if out.ends_with(' ') {
            out.pop();
            out.push('.');
        }
    }

    /// Appends this many words.
    pub fn write_words(&self, rng: &mut SmallRng, count: usize, out: &mut String) {
        for at in 0..count {
            if at > 0 {
                out.push(' ');
            }
            out.push_str(self.draw(rng));
        }
    }
}

/// A pronounceable word; frequent ones are short, and hardly two are the same.
fn word(rng: &mut SmallRng, rank: usize) -> String {
    const HEADS: [&str; 16] =
        ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "pl"];
    const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "ea", "io", "ou"];
    const TAILS: [&str; 8] = ["", "", "n", "r", "s", "t", "l", "nd"];
    // The rank written in syllables keeps words apart; a random tail keeps them from looking numbered.
    let mut word = String::new();
    let mut rest = rank;
    loop {
        word.push_str(HEADS[rest % HEADS.len()]);
        rest /= HEADS.len();
        word.push_str(VOWELS[rest % VOWELS.len()]);
        rest /= VOWELS.len();
        if rest == 0 {
            break;
        }
    }
    word.push_str(TAILS[rng.random_range(0..TAILS.len())]);
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_same_seed_writes_the_same_uneven_text() {
        let text = |seed: u64| {
            let mut out = String::from("x");
            Words::new(seed).write(&mut SmallRng::seed_from_u64(9), 60_000, &mut out);
            out
        };
        let one = text(1);
        assert_eq!((one.len(), &one), (60_001, &text(1)));
        assert_ne!(one, text(2));
        let mut counts = HashMap::<&str, usize>::new();
        for word in one[1..].split(' ') {
            *counts.entry(word).or_default() += 1;
        }
        let most = counts.values().max().unwrap();
        assert!(*most > 200 && counts.len() > 2_000, "{most} of {}", counts.len());
    }
}
