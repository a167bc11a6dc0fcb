//! The built-in embedding model: text to a direction, so that texts close in meaning point the same way.
//!
//! A static embedding: each token has a row, and the direction of a text is that of the sum of its tokens' rows. The
//! rows are in the binary (`assets/README.md` says how they were made), 256 values of 4 bits and one scale each.
//! Sums run in the order of the text, so that the same text gives the same values, bit for bit.

use std::sync::LazyLock;

use pulp::{Arch, Simd, WithSimd};

use crate::relevance::wordpiece::{Memory, Vocabulary};

/// What the model is called.
pub const NAME: &str = "static-256-int4";
/// Values of a direction.
pub const DIMENSIONS: usize = 256;

/// Bytes of a text that are read for its meaning. The sum of a longer text says little about any of it, and this
/// bounds what a text made to have no tokens can cost.
const MAX_TEXT_BYTES: usize = 16 * 1024;

static FILE: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/static-256-int4.bin"));
const MAGIC: &[u8] = b"STEMB001";
const HEADER: usize = 64;
const ALIGNMENT: usize = 64;
/// Tokens at the start of the vocabulary that stand for no text.
const SPECIAL_TOKENS: usize = 2;

/// The model, read on first use. `None` would be a file that is not one, which a test excludes.
static MODEL: LazyLock<Option<Model>> = LazyLock::new(|| Model::read(FILE));

/// A row: byte `k` holds value `k` in its low half and value `k + 128` in its high one, each 8 too high.
type Row = [u8; DIMENSIONS / 2];

/// A direction: its values' squares sum to 1.
pub type Direction = [f32; DIMENSIONS];

struct Model {
    vocabulary: Vocabulary,
    scales: Vec<f32>,
    rows: &'static [Row],
}

/// Makes directions of texts; keeps its memory between them.
#[derive(Default)]
pub struct Embedder {
    memory: Memory,
    tokens: Vec<u32>,
    /// By token: where its row is, and what it is multiplied by.
    rows: Vec<(u32, f32)>,
}

impl Embedder {
    /// The direction of texts together, each with what its words count. `None` if no token of theirs is known.
    pub fn embed<'a>(&mut self, texts: impl IntoIterator<Item = (&'a str, f32)>) -> Option<Direction> {
        let model = MODEL.as_ref()?;
        self.rows.clear();
        for (text, weight) in texts.into_iter().filter(|(text, _)| !text.is_empty()) {
            let end = text.floor_char_boundary(MAX_TEXT_BYTES);
            self.tokens.clear();
            model.vocabulary.tokens(&text[..end], &mut self.memory, &mut self.tokens);
            let scaled = |&token: &u32| Some((token, model.scales.get(token as usize)? * weight));
            self.rows.extend(self.tokens.iter().filter_map(scaled));
        }
        model.direction(&self.rows)
    }
}

/// What the row of the word in the middle is multiplied by, of those that are tokens.
const MIDDLE_SCALE: f32 = 0.007_94;

/// How much a lower-case word changes the direction of a text in which it stands, against the word in the middle. `None`
/// where it is no token as a whole.
pub(super) fn weight(word: &str) -> Option<f32> {
    let model = MODEL.as_ref()?;
    let token = model.vocabulary.word(word)?;
    Some(model.scales.get(token as usize)? / MIDDLE_SCALE)
}

/// Bytes of a row that are summed at a time: their sums stay in the processor while the rows pass.
const BLOCK: usize = 32;

impl Model {
    fn read(file: &'static [u8]) -> Option<Self> {
        let number = |at: usize| Some(u32::from_le_bytes(*file.get(at..)?.first_chunk()?) as usize);
        let (rows, dimensions, bits, vocabulary) = (number(8)?, number(12)?, number(16)?, number(20)?);
        if !file.starts_with(MAGIC) || dimensions != DIMENSIONS || bits != 4 {
            return None;
        }
        let scales_at = (HEADER + vocabulary).next_multiple_of(ALIGNMENT);
        let rows_at = (scales_at + rows * 4).next_multiple_of(ALIGNMENT);
        let scales = file.get(scales_at..)?.as_chunks().0.get(..rows)?;
        Some(Self {
            vocabulary: Vocabulary::new(file.get(HEADER..HEADER + vocabulary)?, SPECIAL_TOKENS),
            scales: scales.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            rows: file.get(rows_at..)?.as_chunks().0.get(..rows)?,
        })
    }

    fn direction(&self, rows: &[(u32, f32)]) -> Option<Direction> {
        // Each value is kept 8 too high: taken off at once.
        let high_by = 8.0 * rows.iter().map(|(_, scale)| scale).sum::<f32>();
        let mut sum = [-high_by; DIMENSIONS];
        Arch::new().dispatch(Sum { table: self.rows, rows, sum: &mut sum });
        let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        if length < 1e-6 {
            return None;
        }
        sum.iter_mut().for_each(|value| *value /= length);
        Some(sum)
    }
}

/// Adds rows, each times its scale, to `sum`. Every value is summed by itself in the order of the text, however many
/// at a time: so all processors give the same.
struct Sum<'a> {
    table: &'a [Row],
    rows: &'a [(u32, f32)],
    sum: &'a mut Direction,
}

impl WithSimd for Sum<'_> {
    type Output = ();

    /// Plain code: inlined, the compiler makes of it what the processor at hand can do.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (low, high) = self.sum.split_at_mut(DIMENSIONS / 2);
        let blocks = low.as_chunks_mut::<BLOCK>().0.iter_mut().zip(high.as_chunks_mut::<BLOCK>().0);
        for (block, (low, high)) in blocks.enumerate() {
            let (mut lows, mut highs) = (*low, *high);
            for &(row, scale) in self.rows {
                let Some(row) = self.table.get(row as usize) else { continue };
                let bytes: &[u8; BLOCK] = &row.as_chunks().0[block];
                for at in 0..BLOCK {
                    lows[at] += scale * f32::from(bytes[at] & 15);
                    highs[at] += scale * f32::from(bytes[at] >> 4);
                }
            }
            (*low, *high) = (lows, highs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text, then the numbers of its tokens, then its first values; made with the tokenizer the model was made with.
    const GOLDEN: &str = include_str!("embed_golden.tsv");

    fn embed(text: &str) -> Option<Direction> {
        Embedder::default().embed([(text, 1.0)])
    }

    #[test]
    fn the_file_is_whole() {
        assert_eq!((FILE.len(), &FILE[..8]), (4_470_144, MAGIC));
        let model = MODEL.as_ref().expect("a model");
        assert_eq!((model.rows.len(), model.scales.len()), (32_000, 32_000));
        let digest = blake3::hash(FILE).to_hex();
        assert_eq!(digest.as_str(), "2c764b369215fabdb0d38a99a997b53dbc3e408ea42e9092a529e7881ce67f69");
    }

    #[test]
    fn a_broken_file_is_no_model() {
        for file in [&b""[..], b"STEMB001", &FILE[..63], &FILE[..1_000], &FILE[..FILE.len() - 1], &FILE[1..]]
        {
            assert!(Model::read(file).is_none());
        }
    }

    #[test]
    fn golden_values() {
        let model = MODEL.as_ref().expect("a model");
        let mut lines = 0;
        for line in GOLDEN.lines() {
            let mut fields = line.split('\t');
            let text: String = serde_json::from_str(fields.next().unwrap()).unwrap();
            let ids: Vec<u32> = serde_json::from_str(fields.next().unwrap()).unwrap();
            let values: Vec<f32> = serde_json::from_str(fields.next().unwrap()).unwrap();
            let mut tokens = Vec::new();
            model.vocabulary.tokens(&text, &mut Memory::default(), &mut tokens);
            assert_eq!(tokens, ids, "{text:?}");
            let found = embed(&text).unwrap_or([0.0; DIMENSIONS]);
            for (found, value) in found.iter().zip(values) {
                assert!((found - value).abs() < 2e-6, "{text:?}: {found} is not {value}");
            }
            lines += 1;
        }
        assert_eq!(lines, 26);
    }

    #[test]
    fn a_direction_has_length_one() {
        for text in ["a", "market growth", "Größe", &"word ".repeat(100_000)] {
            let squares: f32 = embed(text).unwrap().iter().map(|value| value * value).sum();
            assert!((squares - 1.0).abs() < 1e-4, "{squares}");
        }
    }

    #[test]
    fn what_has_no_token_has_no_direction() {
        for text in ["", " \n", "\0\u{200b}", "Доля рынка", "市场增长", "السوق", &"x".repeat(101)]
        {
            assert_eq!(embed(text), None, "{text}");
        }
    }

    #[test]
    fn a_hostile_text_is_no_trouble() {
        let marks = format!("e{}", "\u{301}".repeat(100_000));
        let odd: String = (0..5_000).map(|i| format!("{}q\u{e9} ", "zqxj".repeat(i % 26))).collect();
        for text in [&*marks, &odd, &"\u{fdfa}".repeat(50_000), &"ß".repeat(20_000), &"#".repeat(1 << 20)] {
            embed(text);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in "(?s).{0,200}") {
            let one = embed(&text);
            assert_eq!(one, embed(&text));
            assert!(one.is_none_or(|values| values.iter().all(|value| value.is_finite())));
        }
    }
}
