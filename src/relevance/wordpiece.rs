//! Text to the tokens of the embedding model: BERT's uncased WordPiece, step by step.
//!
//! Controls are dropped, accents too; letters are lower case; every sign of punctuation and every ideograph is a
//! word of its own. A word that the vocabulary lacks is cut greedily into the longest pieces it has; without a full
//! segmentation it adds nothing. The classes of characters are those that BERT's tokenizer knows.

use hashbrown::HashMap;
use unicode_normalization::UnicodeNormalization;

/// Longer words are not cut into pieces.
const MAX_WORD_CHARS: usize = 100;

/// What a piece that continues a word begins with in the vocabulary.
const CONTINUES: &[u8] = b"##";

/// Words that are remembered with their pieces; a few MiB when full, and then it starts anew.
const REMEMBERED_WORDS: usize = 1 << 15;

/// Longer words are rarely seen twice and not worth remembering.
const REMEMBERED_WORD_BYTES: usize = 32;

/// No token.
const NONE: u32 = u32::MAX;

type Tokens = HashMap<&'static [u8], u32>;

/// The tokens of the model, by their text.
pub(super) struct Vocabulary {
    words: Tokens,
    /// Pieces that continue a word, without their mark.
    pieces: Tokens,
    /// Bytes of the longest of both.
    longest: usize,
    /// By ASCII sign: its token, for those that are words of their own.
    signs: [u32; 128],
}

/// What whoever cuts texts keeps between them. What is in here changes no token.
#[derive(Default)]
pub(super) struct Memory {
    /// The text, or a piece of it, in the form that the vocabulary knows.
    lower: Vec<u8>,
    /// Words that are no token, and which of `pieces` they are made of: finding them takes many a look.
    known: HashMap<Box<[u8]>, (u32, u32)>,
    pieces: Vec<u32>,
}

impl Memory {
    fn recall(&self, word: &[u8]) -> Option<&[u32]> {
        let &(start, end) = self.known.get(word)?;
        self.pieces.get(start as usize..end as usize)
    }

    fn remember(&mut self, word: &[u8], tokens: &[u32]) {
        if word.len() > REMEMBERED_WORD_BYTES {
            return;
        }
        if self.known.len() >= REMEMBERED_WORDS {
            self.known.clear();
            self.pieces.clear();
        }
        let start = self.pieces.len();
        self.pieces.extend_from_slice(tokens);
        // A word has fewer pieces than bytes, so that these fit by far.
        self.known.insert(word.into(), (start as u32, self.pieces.len() as u32));
    }
}

impl Vocabulary {
    /// The token of a lower-case word that is one as a whole.
    pub fn word(&self, word: &str) -> Option<u32> {
        self.words.get(word.as_bytes()).copied()
    }

    /// Reads tokens that stand one a line, numbered from 0; the first `special` stand for no text.
    pub fn new(lines: &'static [u8], special: usize) -> Self {
        let mut new = Self { words: Tokens::new(), pieces: Tokens::new(), longest: 0, signs: [NONE; 128] };
        for (number, token) in (0..).zip(lines.split(|&byte| byte == b'\n')).skip(special) {
            let (text, map) = match token.strip_prefix(CONTINUES) {
                Some(piece) if !piece.is_empty() => (piece, &mut new.pieces),
                _ => (token, &mut new.words),
            };
            new.longest = new.longest.max(text.len());
            map.insert(text, number);
        }
        for (sign, token) in (0u8..).zip(&mut new.signs) {
            if sign.is_ascii_punctuation() {
                *token = new.words.get(&[sign][..]).copied().unwrap_or(NONE);
            }
        }
        new
    }

    /// Appends the tokens of a text.
    pub fn tokens(&self, text: &str, memory: &mut Memory, out: &mut Vec<u32>) {
        if text.is_ascii() {
            return self.tokens_of_ascii(text.as_bytes(), memory, out);
        }
        // White space parts words, whatever is around it; so most pieces of most texts are ASCII for themselves.
        for piece in text.split([' ', '\t', '\n', '\r']) {
            if piece.is_ascii() {
                self.tokens_of_ascii(piece.as_bytes(), memory, out);
            } else {
                self.tokens_of_unicode(piece, memory, out);
            }
        }
    }

    fn tokens_of_unicode(&self, piece: &str, memory: &mut Memory, out: &mut Vec<u32>) {
        let mut word = std::mem::take(&mut memory.lower);
        word.clear();
        for c in piece.chars().filter(|&c| !is_control(c)).nfd().filter(|&c| !is_accent(c)) {
            let alone = is_ideograph(c) || is_punctuation(c);
            if alone || c.is_whitespace() {
                self.pieces(&word, memory, out);
                word.clear();
            }
            if alone {
                self.pieces(c.encode_utf8(&mut [0; 4]).as_bytes(), memory, out);
            } else if c.is_ascii() {
                word.push(c.to_ascii_lowercase() as u8);
            } else if !c.is_whitespace() {
                c.to_lowercase().for_each(|c| word.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()));
            }
        }
        self.pieces(&word, memory, out);
        memory.lower = word;
    }

    /// The same for the usual case, without a look at Unicode.
    fn tokens_of_ascii(&self, text: &[u8], memory: &mut Memory, out: &mut Vec<u32>) {
        let mut lower = std::mem::take(&mut memory.lower);
        lower.clear();
        lower.extend_from_slice(text);
        lower.make_ascii_lowercase();
        let parts = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        // Controls are dropped first: what stands around them is one word.
        if lower.iter().any(|&byte| byte.is_ascii_control() && !parts(byte)) {
            lower.retain(|&byte| !byte.is_ascii_control() || parts(byte));
        }
        let mut rest = &lower[..];
        while let Some(&first) = rest.first() {
            let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end.max(1));
            if end > 0 {
                self.pieces(word, memory, out);
            } else if !parts(first) {
                out.extend(self.signs.get(usize::from(first)).filter(|&&token| token != NONE));
            }
            rest = after;
        }
        memory.lower = lower;
    }

    /// The tokens of one word; none if it has no full segmentation.
    fn pieces(&self, word: &[u8], memory: &mut Memory, out: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        if let Some(&token) = self.words.get(word) {
            out.push(token);
        } else if let Some(tokens) = memory.recall(word) {
            out.extend_from_slice(tokens);
        } else {
            let before = out.len();
            if !self.segment(word, out) {
                out.truncate(before);
            }
            memory.remember(word, &out[before..]);
        }
    }

    /// Cuts a word greedily into the longest pieces; whether there is no rest.
    fn segment(&self, word: &[u8], out: &mut Vec<u32>) -> bool {
        if word.iter().filter(|&&byte| starts_char(byte)).count() > MAX_WORD_CHARS {
            return false;
        }
        let (mut rest, mut map) = (word, &self.words);
        while !rest.is_empty() {
            let longest = rest.len().min(self.longest);
            let ends = (1..=longest).rev().filter(|&end| rest.get(end).is_none_or(|&byte| starts_char(byte)));
            let found =
                ends.map(|end| rest.split_at(end)).find_map(|(piece, after)| Some((map.get(piece)?, after)));
            let Some((&token, after)) = found else { return false };
            out.push(token);
            (rest, map) = (after, &self.pieces);
        }
        true
    }
}

fn starts_char(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// Controls and format characters, which show nothing; white space is none of them.
fn is_control(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        '\u{ad}'
        | '\u{600}'..='\u{605}'
        | '\u{61c}'
        | '\u{6dd}'
        | '\u{70f}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{fffd}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{e0001}'
        | '\u{e0020}'..='\u{e007f}' => true,
        _ => c.is_control(),
    }
}

/// Combining marks without width, as decomposition leaves them (the main blocks).
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c2}'
        | '\u{5c4}'..='\u{5c5}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}'
        | '\u{93c}' | '\u{941}'..='\u{948}' | '\u{94d}' | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{3099}'..='\u{309a}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}'
    )
}

fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{2A6DF}'
        | '\u{2A700}'..='\u{2B81F}' | '\u{2B920}'..='\u{2CEAF}' | '\u{2F800}'..='\u{2FA1F}'
    )
}

/// Every ASCII symbol, and Unicode's classes of punctuation.
fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(c,
            '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}' | '\u{37e}' | '\u{387}'
            | '\u{55a}'..='\u{55f}' | '\u{589}' | '\u{58a}' | '\u{5be}' | '\u{5c0}' | '\u{5c3}' | '\u{5c6}' | '\u{5f3}'
            | '\u{5f4}' | '\u{60c}' | '\u{60d}' | '\u{61b}' | '\u{61e}' | '\u{61f}' | '\u{66a}'..='\u{66d}' | '\u{6d4}'
            | '\u{964}' | '\u{965}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{2043}' | '\u{2045}'..='\u{2051}'
            | '\u{2053}'..='\u{205e}' | '\u{207d}' | '\u{207e}' | '\u{208d}' | '\u{208e}' | '\u{2308}'..='\u{230b}'
            | '\u{2329}' | '\u{232a}' | '\u{2768}'..='\u{2775}' | '\u{27e6}'..='\u{27ef}' | '\u{2983}'..='\u{2998}'
            | '\u{2e00}'..='\u{2e2e}' | '\u{2e30}'..='\u{2e4f}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}'
            | '\u{3014}'..='\u{301f}' | '\u{3030}' | '\u{303d}' | '\u{30a0}' | '\u{30fb}' | '\u{fe10}'..='\u{fe19}'
            | '\u{fe30}'..='\u{fe52}' | '\u{fe54}'..='\u{fe61}' | '\u{fe63}' | '\u{fe68}' | '\u{fe6a}' | '\u{fe6b}'
            | '\u{ff01}'..='\u{ff03}' | '\u{ff05}'..='\u{ff0a}' | '\u{ff0c}'..='\u{ff0f}' | '\u{ff1a}' | '\u{ff1b}'
            | '\u{ff1f}' | '\u{ff20}' | '\u{ff3b}'..='\u{ff3d}' | '\u{ff3f}' | '\u{ff5b}' | '\u{ff5d}'
            | '\u{ff5f}'..='\u{ff65}'
        )
}
