//! A text cut into the signs that matter to what it claims: words, numbers, marks, and where sentences end.

use std::ops::Range;

use crate::relevance::fold;

/// What a sign is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// A word, or a mark that is read like one: `$`, `%`.
    Word,
    /// Digits with what joins them: `1,000`, `9:30`, `2026-03-01`, `10-20`.
    Number,
    /// A comma, a colon, a bracket, a dash.
    Pause,
    /// The end of a sentence or line.
    End,
    /// The end of a question.
    Question,
}

/// A sign of a text.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub sign: Sign,
    /// Where its lower-case form stands in [`Scan::lower`].
    lower: Range<u32>,
    /// Where it stands in [`Scan::text`].
    pub span: Range<u32>,
    /// Begins with a capital letter.
    pub capital: bool,
    /// Follows the sign before it without a space.
    pub glued: bool,
}

/// A text, cut.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The text, folded.
    pub text: String,
    lower: String,
    pub tokens: Vec<Token>,
}

/// Longest word that is compared whole, in bytes; longer ones are cut here.
const WORD_MAX_BYTES: usize = 64;

impl Scan {
    /// Cuts a text.
    pub fn of(text: &str) -> Self {
        let mut scan = Self::default();
        if text.is_ascii() {
            scan.text.push_str(text);
        } else {
            fold::fold(text, &mut scan.text);
        }
        let mut at = 0;
        while let Some(first) = scan.text[at..].chars().next() {
            at = scan.step(at, first);
        }
        scan
    }

    /// A token's lower-case form.
    pub fn lower(&self, token: &Token) -> &str {
        &self.lower[token.lower.start as usize..token.lower.end as usize]
    }

    /// A token as written, but for accents.
    pub fn written(&self, token: &Token) -> &str {
        &self.text[token.span.start as usize..token.span.end as usize]
    }

    /// Takes up the sign at `at`; returns where the next one begins.
    fn step(&mut self, at: usize, first: char) -> usize {
        let next = at + first.len_utf8();
        let digit_follows = self.text.as_bytes().get(next).is_some_and(u8::is_ascii_digit);
        match first {
            '0'..='9' => self.number(at),
            '-' | '\u{2212}' if digit_follows && !self.ends_at(at) => self.number(at),
            '\n' => self.push(Sign::End, at..next),
            c if c.is_whitespace() => next,
            c if fold::is_unspaced(c) => self.pair(at, next),
            c if c.is_alphabetic() => self.word(at),
            '$' | '€' | '£' | '¥' | '%' | '°' | '~' | '<' | '>' | '≤' | '≥' | '+' => {
                self.push(Sign::Word, at..next)
            }
            '.' if self.is_abbreviated(at) => next,
            '.' | '!' | ';' | '。' | '！' | '；' | '|' => self.push(Sign::End, at..next),
            '?' | '？' => self.push(Sign::Question, at..next),
            ',' | ':' | '(' | ')' | '[' | ']' | '—' | '–' | '-' | '"' | '、' | '，' => {
                self.push(Sign::Pause, at..next)
            }
            _ => next,
        }
    }

    /// Whether the point at `at` belongs to the word before it.
    fn is_abbreviated(&self, at: usize) -> bool {
        let Some(last) = self.tokens.last().filter(|_| self.ends_at(at)) else { return false };
        matches!(
            self.lower(last),
            "dr" | "mr"
                | "mrs"
                | "ms"
                | "prof"
                | "st"
                | "vs"
                | "approx"
                | "ca"
                | "eg"
                | "bzw"
                | "sr"
                | "sra"
                | "mme"
        )
    }

    /// Whether the last sign ends right before `at`.
    fn ends_at(&self, at: usize) -> bool {
        self.tokens.last().is_some_and(|token| token.span.end as usize == at)
    }

    /// Takes up a number, with digits joined by `. , : / -` or by the single space of `1 000`.
    fn number(&mut self, start: usize) -> usize {
        let bytes = self.text.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let mut from = start + self.text[start..].chars().next().map_or(1, char::len_utf8);
        if bytes[start].is_ascii_digit() {
            from = start;
        }
        let mut at = digits(from);
        let mut first = at - from;
        loop {
            let joint = self.text[at..].chars().next().unwrap_or('\0');
            let after = at + joint.len_utf8();
            let end = digits(after.min(bytes.len()));
            let group = end.saturating_sub(after);
            let joins = match joint {
                '.' | ',' | ':' | '/' | '-' | '–' => group > 0,
                // A space groups thousands, and only in a number that is nothing else yet.
                ' ' => (1..=3).contains(&first) && group == 3 && !glued_letter(bytes, end),
                _ => false,
            };
            if !joins {
                break;
            }
            if joint != ' ' {
                first = 0;
            }
            at = end;
        }
        let end = self.push(Sign::Number, start..at);
        // "12. März": the point of an ordinal is no end.
        let ordinal = bytes_are(self.text.as_bytes(), end, b". ")
            && at - start <= 2
            && self.text[end + 2..].chars().next().is_some_and(char::is_uppercase);
        if ordinal { end + 1 } else { end }
    }

    /// Takes up a word with its inner joints, an article that is written together with it apart.
    fn word(&mut self, start: usize) -> usize {
        let text = &self.text[start..];
        let mut chars = text.char_indices().peekable();
        let mut end = text.len();
        while let Some((at, c)) = chars.next() {
            let joint = matches!(c, '\'' | '-' | '_' | '.' | '&' | '/')
                && chars.peek().is_some_and(|&(_, c)| c.is_alphanumeric());
            let letter = (c.is_alphanumeric() && !fold::is_unspaced(c)) || is_mark(c);
            if !letter && !joint {
                end = at;
                break;
            }
            // "l'interface": what stands before is a word of its own.
            if c == '\'' && joint && (at <= 1 || matches!(&text[..at], "qu" | "Qu")) {
                end = at;
                break;
            }
        }
        let word = &text[..end];
        if let Some(cut) = sentence_point(word) {
            end = cut;
        }
        let kept = text[..end].floor_char_boundary(WORD_MAX_BYTES);
        let word = match text[..kept].rsplit_once('\'') {
            Some((before, "s" | "S" | "m" | "d" | "ll" | "re" | "ve")) => before.len(),
            _ => kept,
        };
        self.push(Sign::Word, start..start + word);
        start + end
    }

    /// Takes up two neighbouring characters of a script without spaces; the second begins the next pair.
    fn pair(&mut self, at: usize, next: usize) -> usize {
        let second = self.text[next..].chars().next().filter(|&c| fold::is_unspaced(c));
        match second {
            Some(c) => {
                let end = next + c.len_utf8();
                self.push(Sign::Word, at..end);
                let more = self.text[end..].chars().next().is_some_and(fold::is_unspaced);
                if more { next } else { end }
            }
            None => self.push(Sign::Word, at..next),
        }
    }

    fn push(&mut self, sign: Sign, span: Range<usize>) -> usize {
        let start = self.lower.len();
        let written = &self.text[span.clone()];
        self.lower.extend(written.chars().filter(|&c| c != '\'').flat_map(char::to_lowercase));
        let capital = written.starts_with(char::is_uppercase);
        let glued = self.ends_at(span.start);
        let end = span.end;
        let range = |range: Range<usize>| range.start as u32..range.end as u32;
        let lower = range(start..self.lower.len());
        self.tokens.push(Token { sign, lower, span: range(span), capital, glued });
        end
    }
}

fn glued_letter(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(u8::is_ascii_alphabetic)
}

fn bytes_are(bytes: &[u8], at: usize, wanted: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(wanted))
}

fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

/// Where a sentence ends inside what looks like one word: "done.Next" was meant as two.
fn sentence_point(word: &str) -> Option<usize> {
    let (before, after) = word.rsplit_once('.')?;
    let ends = before.len() > 2 && before.chars().all(char::is_lowercase);
    (ends && after.starts_with(char::is_uppercase) && after.len() > 1).then_some(before.len())
}
