//! The directions of all documents, 8 bits a value, and how near each is to that of a need.
//!
//! The scan is exhaustive, in integers: every document's cosine is needed, since meaning and words are weighed
//! together. It is written so that the compiler makes vector instructions of it that every processor has, and is
//! nearly as fast as the memory.

use crate::relevance::embed::{DIMENSIONS, Direction};

/// Documents stored in one piece. Many pieces, so that growing moves little and wastes little.
const CHUNK: usize = 512;

const PAIRS: usize = DIMENSIONS / 2;

/// The greatest size of a stored value.
const MOST: f32 = 127.0;

/// The length of what is asked, in steps. A stored direction is at most 16 times [`MOST`] long, so that a dot product
/// of the two, divided by 256, stays within 16 bits.
const ASKED_LENGTH: f32 = 4_000.0;

/// What cutting off the fractions of all products takes away, on average.
const CUT_OFF: i32 = DIMENSIONS as i32 / 2;

/// A document's direction: value times `scale`, but for rounding. Scale 0: it has none.
///
/// Two values share 16 bits, the even one low, the odd one high: so each is moved to the upper half by one
/// instruction, for eight pairs at a time.
#[derive(Clone, Copy)]
struct Stored {
    scale: f32,
    pairs: [i16; PAIRS],
}

const NOWHERE: Stored = Stored { scale: 0.0, pairs: [0; PAIRS] };

impl Stored {
    fn new(direction: &Direction) -> Self {
        let most = direction.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        if most <= 0.0 {
            return NOWHERE;
        }
        // Cutting off what is positive is rounding in few instructions.
        let values = direction.map(|value| (value * (MOST / most) + 128.5) as i16 - 128);
        let mut pairs = [0; PAIRS];
        for (pair, [low, high]) in pairs.iter_mut().zip(values.as_chunks().0) {
            *pair = (high << 8) | (low & 0xFF);
        }
        Self { scale: most / MOST, pairs }
    }
}

/// What is asked, in the order in which documents are stored.
struct Asked {
    low: [i16; PAIRS],
    high: [i16; PAIRS],
}

impl Asked {
    fn new(direction: &Direction) -> Self {
        let mut asked = Self { low: [0; PAIRS], high: [0; PAIRS] };
        for (at, pair) in direction.as_chunks().0.iter().enumerate() {
            [asked.low[at], asked.high[at]] = pair.map(|value: f32| (value * ASKED_LENGTH).round() as i16);
        }
        asked
    }
}

/// The dot products of documents with what is asked, each in steps of 256. A function of its own with plain
/// arguments: so the compiler sees all there is to see.
#[inline(never)]
fn scan(part: &[Stored], low: &[i16; PAIRS], high: &[i16; PAIRS], found: &mut [f32]) {
    // The upper half of a product: a single instruction.
    let product = |a: i16, b: i16| ((i32::from(a) * i32::from(b)) >> 16) as i16;
    for (found, stored) in found.iter_mut().zip(part) {
        let products = stored.pairs.iter().zip(low).zip(high);
        let both = products
            .map(|((&pair, &low), &high)| product(pair << 8, low).wrapping_add(product(pair & -256, high)));
        // Sums on the way may wrap, the last one fits and is right.
        let sum = both.fold(0, i16::wrapping_add);
        let cosine = (i32::from(sum) + CUT_OFF) as f32 * (stored.scale * (256.0 / ASKED_LENGTH));
        *found = cosine.clamp(0.0, 1.0);
    }
}

/// By document: where its text points.
#[derive(Default)]
pub(super) struct Vectors {
    chunks: Vec<Vec<Stored>>,
}

impl Vectors {
    /// Adds the next document's direction.
    pub fn push(&mut self, direction: Option<&Direction>) {
        let stored = direction.map_or(NOWHERE, Stored::new);
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(stored),
            _ => self.chunks.push(vec![stored]),
        }
    }

    /// How near each document before the horizon points to a direction: their cosine, 0 where they point apart or
    /// nowhere.
    pub fn nearness(&self, direction: &Direction, horizon: u32) -> Vec<f32> {
        let asked = Asked::new(direction);
        let mut found = vec![0.0; horizon as usize];
        for (part, found) in self.chunks.iter().zip(found.chunks_mut(CHUNK)) {
            scan(part, &asked.low, &asked.high, found);
        }
        found
    }

    pub fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.capacity() * size_of::<Stored>()).sum::<usize>()
            + self.chunks.capacity() * size_of::<Vec<Stored>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directions of every kind, made without chance.
    fn direction(seed: u64) -> Direction {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut values = std::array::from_fn(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % 2_001) as f32 - 1_000.0
        });
        let length = values.iter().map(|value: &f32| value * value).sum::<f32>().sqrt();
        values.iter_mut().for_each(|value| *value /= length);
        values
    }

    #[test]
    fn is_the_cosine() {
        let mut vectors = Vectors::default();
        let all: Vec<Direction> = (0..1_200).map(direction).collect();
        for direction in &all {
            vectors.push(Some(direction));
        }
        vectors.push(None);
        let asked = direction(7);
        let found = vectors.nearness(&asked, 1_201);
        let mut worst = 0.0f32;
        for (document, near) in all.iter().zip(&found) {
            let exact: f32 = document.iter().zip(&asked).map(|(a, b)| a * b).sum();
            worst = worst.max((exact.max(0.0) - near).abs());
        }
        assert!(worst < 0.003, "{worst}");
        assert!(found[7] > 0.99 && found[1_200] == 0.0);
        for horizon in [0, 1, 511, 512, 513, 1_199] {
            assert_eq!(vectors.nearness(&asked, horizon), found[..horizon as usize]);
        }
    }

    #[test]
    fn the_longest_fit() {
        let mut vectors = Vectors::default();
        let flat = |sign: f32| std::array::from_fn(|_| sign / 16.0);
        let turns: Direction = std::array::from_fn(|at| if at % 2 == 0 { 0.0625 } else { -0.0625 });
        for direction in [flat(1.0), flat(-1.0), turns, [0.0; DIMENSIONS]] {
            vectors.push(Some(&direction));
        }
        assert!(vectors.nearness(&flat(1.0), 4)[0] > 0.999);
        assert_eq!(vectors.nearness(&flat(1.0), 4)[1..], [0.0; 3]);
        assert!(vectors.nearness(&flat(-1.0), 4)[1] > 0.999);
        assert!(vectors.nearness(&turns, 4)[2] > 0.999);
    }
}
