//! The directions of all documents, 8 bits a value, and how near each is to that of a need.
//!
//! The scan is exhaustive and exact in integers: every document's cosine is needed, since meaning and words are
//! weighed together. It is written so that the compiler makes vector instructions of it that every processor has,
//! and is nearly as fast as the memory.

use crate::relevance::embed::{DIMENSIONS, Direction};

/// Documents stored in one piece. Many pieces, so that growing moves little and wastes little.
const CHUNK: usize = 512;

const PAIRS: usize = DIMENSIONS / 2;

/// What the low value of a pair is kept too high by, so that it is never negative.
const OFFSET: i16 = 128;

/// A document's direction: value times `scale`, but for rounding. Scale 0: it has none.
///
/// Two values share 16 bits, the width at which processors multiply and add: the even one low, the odd one high.
/// They come apart by a mask and by a shift, where single bytes would have to be moved.
#[derive(Clone, Copy)]
struct Stored {
    scale: f32,
    pairs: [i16; PAIRS],
}

const NOWHERE: Stored = Stored { scale: 0.0, pairs: [0; PAIRS] };

impl Stored {
    fn new(direction: &Direction) -> Self {
        let Some((scale, values)) = rounded(direction) else { return NOWHERE };
        let mut pairs = [0; PAIRS];
        for (pair, [low, high]) in pairs.iter_mut().zip(values.as_chunks().0) {
            *pair = (high << 8) | (low + OFFSET);
        }
        Self { scale, pairs }
    }
}

/// What is asked, in the order in which documents are stored.
struct Asked {
    scale: f32,
    low: [i16; PAIRS],
    high: [i16; PAIRS],
    /// What all the offsets of a document come to.
    offsets: i32,
}

impl Asked {
    fn new(direction: &Direction) -> Option<Self> {
        let (scale, values) = rounded(direction)?;
        let pairs = values.as_chunks::<2>().0;
        let mut asked = Self { scale, low: [0; PAIRS], high: [0; PAIRS], offsets: 0 };
        for (at, &[low, high]) in pairs.iter().enumerate() {
            (asked.low[at], asked.high[at]) = (low, high);
            asked.offsets += i32::from(OFFSET) * i32::from(low);
        }
        Some(asked)
    }

    /// What is left to do to a dot product to make it a cosine; 0 for directions that point apart.
    fn cosine(&self, dot: i32, scale: f32) -> f32 {
        ((dot - self.offsets) as f32 * (scale * self.scale)).clamp(0.0, 1.0)
    }
}

/// Appends the cosine of each document with what is asked. A function of its own with plain arguments: so the compiler
/// sees all there is to see, and multiplies many values at a time.
#[inline(never)]
fn scan(part: &[Stored], low: &[i16; PAIRS], high: &[i16; PAIRS], asked: &Asked, found: &mut [f32]) {
    for (found, stored) in found.iter_mut().zip(part) {
        // At most 128 · 127 · 255 a sum: nothing overflows.
        let lows: i32 = stored.pairs.iter().zip(low).map(|(&a, &b)| i32::from(a & 0xFF) * i32::from(b)).sum();
        let highs: i32 = stored.pairs.iter().zip(high).map(|(&a, &b)| i32::from(a >> 8) * i32::from(b)).sum();
        *found = asked.cosine(lows + highs, stored.scale);
    }
}

/// The values rounded to -127..=127, and what they are to be multiplied by. `None` if all are 0.
fn rounded(direction: &Direction) -> Option<(f32, [i16; DIMENSIONS])> {
    let most = direction.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    // Cutting off what is positive is rounding in few instructions.
    let round = |value: f32| (value * (127.0 / most) + 128.5) as i16 - 128;
    (most > 0.0).then(|| (most / 127.0, direction.map(round)))
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
        let Some(asked) = Asked::new(direction) else { return Vec::new() };
        let mut found = vec![0.0; horizon as usize];
        for (part, found) in self.chunks.iter().zip(found.chunks_mut(CHUNK)) {
            scan(part, &asked.low, &asked.high, &asked, found);
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
    fn equals_the_definition() {
        let mut vectors = Vectors::default();
        let all: Vec<Direction> = (0..1_200).map(direction).collect();
        for direction in &all {
            vectors.push(Some(direction));
        }
        vectors.push(None);
        let asked = direction(7);
        let found = vectors.nearness(&asked, 1_201);
        for (document, near) in all.iter().zip(&found) {
            let (a, b) = (rounded(document).unwrap(), rounded(&asked).unwrap());
            let dot: i32 = a.1.iter().zip(b.1).map(|(&a, b)| i32::from(a) * i32::from(b)).sum();
            assert_eq!((dot as f32 * (a.0 * b.0)).clamp(0.0, 1.0), *near);
            let exact: f32 = document.iter().zip(&asked).map(|(a, b)| a * b).sum();
            assert!((exact.max(0.0) - near).abs() < 0.01);
        }
        assert!(found[7] > 0.99 && found[1_200] == 0.0);
        for horizon in [0, 1, 511, 512, 513, 1_199] {
            assert_eq!(vectors.nearness(&asked, horizon), found[..horizon as usize]);
        }
    }

    #[test]
    fn the_ends_of_the_range_are_exact() {
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
        assert!(vectors.nearness(&[0.0; DIMENSIONS], 4).is_empty());
    }
}
