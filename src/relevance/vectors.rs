//! The directions of all documents, 8 bits a value, and how near each is to that of a need.
//!
//! Two measures: the signs of a direction's values alone, which are 32 times smaller and tell roughly how far apart
//! two directions are (the share of signs that differ is their angle, give or take), and the cosine of the values as
//! kept. The first one chooses among a million, the second one decides. Both count in integers, so that every
//! processor gives the same, however many values it takes at a time.

use pulp::{Arch, Simd, WithSimd};

use crate::relevance::pace::{self, Pace};

/// Documents stored in one piece. Many pieces, so that growing moves little and wastes little.
const CHUNK: usize = 512;

/// The greatest size of a stored value.
const MOST: f32 = 127.0;

/// The length of what is asked, in steps. A dot product of the longest with the longest stays within 31 bits.
const ASKED_LENGTH: f32 = 16_000.0;

/// Values of a direction at most; `ASKED_LENGTH` counts on it.
pub const DIMENSIONS_MAX: usize = 4_096;

/// A direction as it is kept: each value is a step times `scale`, but for rounding. Scale 0: it points nowhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    /// What a step is worth.
    pub scale: f32,
    /// The steps.
    pub steps: Box<[i8]>,
}

impl Vector {
    /// Takes a direction of any length. `None` if it is empty, too long, points nowhere or is not all numbers.
    #[must_use]
    pub fn new(direction: &[f32]) -> Option<Self> {
        let most = direction.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        let length = direction.iter().map(|value| value * value).sum::<f32>().sqrt();
        let usable = length.is_finite() && length > 1e-12 && direction.len() <= DIMENSIONS_MAX;
        usable.then(|| {
            // Cutting off what is positive is rounding in few instructions.
            let step = |value: &f32| ((value * (MOST / most) + 128.5) as i16 - 128) as i8;
            Self { scale: most / (MOST * length), steps: direction.iter().map(step).collect() }
        })
    }

    /// What stands for a text without a direction, so that it is known not to have one.
    #[must_use]
    pub fn nowhere(dimensions: usize) -> Self {
        Self { scale: 0.0, steps: vec![0; dimensions].into() }
    }
}

/// What is asked, in the forms in which it is compared.
pub(super) struct Asked {
    steps: Box<[i16]>,
    signs: Box<[u64]>,
}

impl Asked {
    /// The same for a direction, whose length does not matter. `None` if it points nowhere or is not all numbers.
    pub fn new(direction: &[f32]) -> Option<Self> {
        let length = direction.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !length.is_finite() || length <= 1e-12 {
            return None;
        }
        let steps: Box<[i16]> =
            direction.iter().map(|value| (value * (ASKED_LENGTH / length)).round() as i16).collect();
        let signs = steps.chunks(64).map(|steps| sign_word(steps.iter().map(|step| *step > 0))).collect();
        Some(Self { steps, signs })
    }
}

/// Up to 64 signs as bits, the first one lowest.
fn sign_word(positive: impl Iterator<Item = bool>) -> u64 {
    positive.enumerate().fold(0, |word, (at, positive)| word | u64::from(positive) << at)
}

/// Some documents' directions, value by value and sign by sign.
#[derive(Default)]
struct Chunk {
    /// A row a document: its scale's bytes, then its steps, so that one look in memory finds both.
    rows: Vec<i8>,
    /// The first word of the signs of each of [`CHUNK`] documents, then the second of each, and so on: so that they are
    /// compared side by side.
    signs: Vec<u64>,
}

/// Rows that are fetched from memory before the first of them is used.
const AHEAD: usize = 32;
/// Documents of which the nearest by signs is told at once.
pub(super) const STRETCH: usize = 64;
/// Bytes that memory gives at a time.
const CACHE_LINE: usize = 64;

/// Bytes of a row before its steps.
const SCALE: usize = size_of::<f32>();

/// By document: where its text points.
pub(super) struct Vectors {
    dimensions: usize,
    chunks: Vec<Chunk>,
}

impl Vectors {
    pub fn new(dimensions: usize) -> Self {
        Self { dimensions, chunks: Vec::new() }
    }

    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Words of signs a document.
    fn sign_words(&self) -> usize {
        self.dimensions.div_ceil(64)
    }

    /// Notes a document's direction. Documents before it that have none yet point nowhere until they do. One of
    /// other dimensions than these is not taken.
    pub fn set(&mut self, document: u32, vector: &Vector) {
        let (dimensions, words) = (self.dimensions, self.sign_words());
        if vector.steps.len() != dimensions {
            return;
        }
        let (chunk, at) = (document as usize / CHUNK, document as usize % CHUNK);
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, Chunk::default);
        }
        let Chunk { rows, signs } = &mut self.chunks[chunk];
        let row_bytes = SCALE + dimensions;
        if (at + 1) * row_bytes > rows.len() {
            rows.resize((at + 1) * row_bytes, 0);
            signs.resize(CHUNK * words, 0);
        }
        let (scale, steps) = rows[at * row_bytes..][..row_bytes].split_at_mut(SCALE);
        scale.copy_from_slice(&vector.scale.to_le_bytes().map(u8::cast_signed));
        steps.copy_from_slice(&vector.steps);
        for (signs, steps) in signs.chunks_exact_mut(CHUNK).zip(vector.steps.chunks(64)) {
            signs[at] = sign_word(steps.iter().map(|step| *step > 0));
        }
    }

    /// Lets go of where a document points.
    pub fn clear(&mut self, document: u32) {
        if self.row(document).is_some() {
            self.set(document, &Vector::nowhere(self.dimensions));
        }
    }

    /// Whether a document points anywhere.
    pub fn points(&self, document: u32) -> bool {
        let scale = self.row(document).and_then(|row| row.first_chunk::<SCALE>());
        scale.is_some_and(|scale| scale.iter().any(|byte| *byte != 0))
    }

    /// Where a document points, if it points anywhere.
    pub fn get(&self, document: u32) -> Option<Vector> {
        let row = self.row(document).filter(|_| self.points(document))?;
        let (scale, steps) = row.split_first_chunk::<SCALE>()?;
        Some(Vector { scale: f32::from_le_bytes(scale.map(i8::cast_unsigned)), steps: steps.into() })
    }

    /// A document's own direction as what is asked; `None` while it points nowhere.
    pub fn asked(&self, document: u32) -> Option<Asked> {
        let (_, steps) = self.row(document).filter(|_| self.points(document))?.split_at(SCALE);
        Asked::new(&steps.iter().map(|step| f32::from(*step)).collect::<Vec<f32>>())
    }

    /// How near a document points to what is asked: their cosine, 0 where they point apart or nowhere.
    pub fn nearness(&self, asked: &Asked, document: u32) -> f32 {
        let mut near = [0.0];
        self.nearnesses(asked, &[document], &mut near);
        near[0]
    }

    /// The same of many documents; best in their order.
    pub fn nearnesses(&self, asked: &Asked, documents: &[u32], near: &mut [f32]) {
        let mut pace = Pace::new();
        for (documents, near) in documents.chunks(AHEAD).zip(near.chunks_mut(AHEAD)) {
            pace.walk(pace::MEASURED * documents.len());
            // Rows lie far apart: asked for one after the other, each would be waited for.
            let touch = |row: &[i8]| row.iter().step_by(CACHE_LINE).fold(0, |all, byte| all ^ byte);
            let touched = documents.iter().filter_map(|document| self.row(*document)).map(touch);
            std::hint::black_box(touched.fold(0, |all, byte| all ^ byte));
            for (document, near) in documents.iter().zip(near) {
                *near = self.row(*document).map_or(0.0, |row| self.near(asked, row));
            }
        }
    }

    /// A document's row: its scale's bytes, then its steps.
    fn row(&self, document: u32) -> Option<&[i8]> {
        let (chunk, at) = (document as usize / CHUNK, document as usize % CHUNK);
        let row_bytes = SCALE + self.dimensions;
        self.chunks.get(chunk)?.rows.get(at * row_bytes..)?.get(..row_bytes)
    }

    fn near(&self, asked: &Asked, row: &[i8]) -> f32 {
        let Some((scale, steps)) = row.split_first_chunk::<SCALE>() else { return 0.0 };
        if asked.steps.len() != steps.len() {
            return 0.0;
        }
        let scale = f32::from_le_bytes(scale.map(i8::cast_unsigned));
        let dot = Arch::new().dispatch(Dot { steps, asked: &asked.steps });
        (dot as f32 * (scale / ASKED_LENGTH)).clamp(0.0, 1.0)
    }

    /// How many signs each of the documents from `first` on differs in from what is asked; one for each of `apart`.
    pub fn signs_apart(&self, asked: &Asked, first: u32, apart: &mut [u16]) {
        let words = self.sign_words();
        let nowhere = u16::try_from(self.dimensions / 2).unwrap_or(u16::MAX);
        apart.fill(nowhere);
        let (mut document, end) = (first as usize, first as usize + apart.len());
        while document < end && asked.signs.len() == words {
            let (chunk, at) = (document / CHUNK, document % CHUNK);
            let count = (CHUNK - at).min(end - document);
            if let Some(Chunk { rows, signs }) = self.chunks.get(chunk) {
                let known = (rows.len() / (SCALE + self.dimensions)).saturating_sub(at).min(count);
                let apart = &mut apart[document - first as usize..][..known];
                Arch::new().dispatch(Apart { signs, at, asked: &asked.signs, apart });
            }
            document += count;
        }
    }

    /// About the cosine of two directions whose signs differ in so many places.
    pub fn likely_nearness(&self, apart: usize) -> f32 {
        (std::f32::consts::PI * apart as f32 / self.dimensions.max(1) as f32).cos().max(0.0)
    }

    pub fn memory_bytes(&self) -> usize {
        let of = |chunk: &Chunk| chunk.rows.capacity() + chunk.signs.capacity() * 8;
        self.chunks.iter().map(of).sum::<usize>() + self.chunks.capacity() * size_of::<Chunk>()
    }
}

/// A dot product. Plain code: inlined, the compiler makes of it what the processor at hand can do.
struct Dot<'a> {
    steps: &'a [i8],
    asked: &'a [i16],
}

impl WithSimd for Dot<'_> {
    type Output = i32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> i32 {
        // The usual dimensions, known to the compiler.
        if let (Ok(steps), Ok(asked)) =
            (<&[i8; 256]>::try_from(self.steps), <&[i16; 256]>::try_from(self.asked))
        {
            return dot(steps, asked);
        }
        dot(self.steps, self.asked)
    }
}

#[inline(always)]
fn dot(steps: &[i8], asked: &[i16]) -> i32 {
    steps.iter().zip(asked).map(|(&step, &asked)| i32::from(step) * i32::from(asked)).sum()
}

/// The least of each [`STRETCH`] of numbers, as many as there is room for.
pub(super) fn least_of_stretches(apart: &[u16], least: &mut [u16]) {
    Arch::new().dispatch(Least { apart, least });
}

/// The least of each stretch.
struct Least<'a> {
    apart: &'a [u16],
    least: &'a mut [u16],
}

impl WithSimd for Least<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (whole, rest) = self.apart.as_chunks::<STRETCH>();
        for (least, stretch) in self.least.iter_mut().zip(whole) {
            *least = stretch.iter().fold(u16::MAX, |least, apart| least.min(*apart));
        }
        if let Some(least) = self.least.get_mut(whole.len()) {
            *least = rest.iter().fold(u16::MAX, |least, apart| least.min(*apart));
        }
    }
}

/// How many signs differ, for documents in a row of one chunk, from `at` on.
struct Apart<'a> {
    signs: &'a [u64],
    at: usize,
    asked: &'a [u64],
    apart: &'a mut [u16],
}

impl WithSimd for Apart<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { signs, at, asked, apart } = self;
        apart.fill(0);
        for (signs, asked) in signs.chunks_exact(CHUNK).zip(asked) {
            for (apart, signs) in apart.iter_mut().zip(&signs[at..]) {
                *apart += (signs ^ asked).count_ones() as u16;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relevance::embed::{DIMENSIONS, Direction};

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

    fn vector(direction: &[f32]) -> Vector {
        Vector::new(direction).expect("a direction")
    }

    fn all_near(vectors: &Vectors, asked: &[f32], count: u32) -> Vec<f32> {
        let mut near = vec![9.0; count as usize];
        let documents: Vec<u32> = (0..count).collect();
        vectors.nearnesses(&Asked::new(asked).unwrap(), &documents, &mut near);
        near
    }

    #[test]
    fn is_the_cosine() {
        let mut vectors = Vectors::new(DIMENSIONS);
        let all: Vec<Direction> = (0..1_200).map(direction).collect();
        for (number, direction) in (0..).zip(&all) {
            vectors.set(number, &vector(direction));
        }
        vectors.set(1_200, &Vector::nowhere(DIMENSIONS));
        let asked = direction(7);
        let found = all_near(&vectors, &asked, 1_203);
        let mut worst = 0.0f32;
        for (document, near) in all.iter().zip(&found) {
            let exact: f32 = document.iter().zip(&asked).map(|(a, b)| a * b).sum();
            worst = worst.max((exact.max(0.0) - near).abs());
        }
        assert!(worst < 0.003, "{worst}");
        assert!(found[7] > 0.99 && found[1_200..] == [0.0; 3]);
        for document in [0, 7, 511, 512, 1_199] {
            let one = vectors.nearness(&Asked::new(&asked).unwrap(), document);
            assert_eq!(one, found[document as usize]);
        }
    }

    #[test]
    fn signs_tell_roughly_how_near() {
        let mut vectors = Vectors::new(DIMENSIONS);
        // Nearer and nearer to the first one.
        let (one, other) = (direction(1), direction(2));
        let mix = |share: f32| -> Direction {
            std::array::from_fn(|at| one[at] * share + other[at] * (1.0 - share))
        };
        for step in 0..=600u32 {
            vectors.set(step, &vector(&mix(step as f32 / 600.0)));
        }
        let asked = Asked::new(&one).unwrap();
        let mut apart = vec![0; 601];
        vectors.signs_apart(&asked, 0, &mut apart);
        assert_eq!(apart[600], 0);
        for (document, apart) in (0..).zip(&apart) {
            let near = vectors.nearness(&asked, document);
            assert!(
                (vectors.likely_nearness(usize::from(*apart)) - near).abs() < 0.25,
                "{document}: {near} {apart}"
            );
        }
        let mut part = vec![0; 100];
        vectors.signs_apart(&asked, 480, &mut part);
        assert_eq!(part, apart[480..580]);
        let mut beyond = vec![0; 10];
        vectors.signs_apart(&asked, 5_000, &mut beyond);
        assert_eq!(beyond, [128; 10]);
    }

    #[test]
    fn the_longest_fit() {
        for dimensions in [1, 63, 64, 256, 1_000, DIMENSIONS_MAX] {
            let mut vectors = Vectors::new(dimensions);
            let turns: Vec<f32> = (0..dimensions).map(|at| if at % 2 == 0 { 5.0 } else { -5.0 }).collect();
            let against: Vec<f32> = turns.iter().map(|value| -value).collect();
            vectors.set(0, &vector(&turns));
            vectors.set(1, &vector(&against));
            let near = all_near(&vectors, &turns, 2);
            assert!(near[0] > 0.999 && near[1] == 0.0, "{dimensions}: {near:?}");
        }
    }

    #[test]
    fn late_and_wrong_ones() {
        let mut vectors = Vectors::new(DIMENSIONS);
        vectors.set(700, &vector(&direction(3)));
        vectors.set(600, &vector(&direction(3)));
        vectors.set(601, &Vector::nowhere(DIMENSIONS - 1));
        let near = all_near(&vectors, &direction(3), 800);
        assert!(near[700] > 0.99 && near[600] > 0.99);
        assert_eq!(near.iter().filter(|near| **near > 0.0).count(), 2);
        assert!(all_near(&vectors, &[1.0, 2.0], 800).iter().all(|near| *near == 0.0));
        for broken in [&[][..], &[0.0; 9], &[f32::NAN, 1.0], &[f32::INFINITY], &[1.0; DIMENSIONS_MAX + 1]] {
            assert_eq!(Vector::new(broken), None);
        }
        assert!(Asked::new(&[0.0; 4]).is_none() && Asked::new(&[f32::NAN]).is_none());
    }
}
