//! A text cut into the signs that matter to what it claims: words, numbers, marks, and where sentences end.

use std::ops::Range;

use super::dictionary::Known;
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
    /// What is known of a word.
    pub known: Known,
}

/// A text, cut.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The text, folded.
    pub text: String,
    lower: String,
    pub tokens: Vec<Token>,
    /// Where pieces of the folded text begin, there and in the text itself; none where the two are the same.
    origins: Vec<(u32, u32)>,
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
            scan.fold(text);
        }
        scan.tokens.reserve(text.len() / 4);
        scan.lower.reserve(text.len());
        let mut at = 0;
        while let Some(first) = scan.text[at..].chars().next() {
            at = scan.step(at, first);
        }
        scan
    }

    /// Folds a text piece by piece: each character with the marks behind it, so that what is folded is the same as if
    /// the text were folded at once, and every piece knows where it comes from.
    fn fold(&mut self, text: &str) {
        let mut chars = text.char_indices().peekable();
        while let Some((start, first)) = chars.next() {
            while chars.next_if(|&(_, c)| joins_before(c)).is_some() {}
            let end = chars.peek().map_or(text.len(), |&(at, _)| at);
            self.origins.push((self.text.len() as u32, start as u32));
            if first.is_ascii() && end == start + 1 {
                self.text.push(first);
            } else {
                fold::fold(&text[start..end], &mut self.text);
            }
        }
        self.origins.push((self.text.len() as u32, text.len() as u32));
    }

    /// Where a span of the folded text stands in the text itself.
    pub fn origin(&self, span: &Range<u32>) -> Range<u32> {
        if self.origins.is_empty() {
            return span.clone();
        }
        let piece = |at: u32| self.origins.partition_point(|(folded, _)| *folded <= at).saturating_sub(1);
        let origin = |piece: usize| self.origins.get(piece).map_or(0, |&(_, origin)| origin);
        let start = origin(piece(span.start));
        let last = piece(span.end.saturating_sub(1).max(span.start));
        // What is folded to nothing stands before the next piece.
        start..origin((last + 1).min(self.origins.len() - 1)).max(start)
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
            // The name of a macro: `println!`, vec![].
            '!' if self.ends_at(at) && self.text[next..].starts_with(['`', '(', '[', '{']) => next,
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
        if written.is_ascii() {
            let bytes = written.bytes().filter(|&byte| byte != b'\'');
            self.lower.extend(bytes.map(|byte| char::from(byte.to_ascii_lowercase())));
        } else {
            self.lower.extend(written.chars().filter(|&c| c != '\'').flat_map(char::to_lowercase));
        }
        let capital = written.starts_with(char::is_uppercase);
        let glued = self.ends_at(span.start);
        let end = span.end;
        let range = |range: Range<usize>| range.start as u32..range.end as u32;
        let lower = range(start..self.lower.len());
        let known = Known::default();
        self.tokens.push(Token { sign, lower, span: range(span), capital, glued, known });
        end
    }
}

fn glued_letter(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(u8::is_ascii_alphabetic)
}

fn bytes_are(bytes: &[u8], at: usize, wanted: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(wanted))
}

/// Whether a character may become one with those before it when it is folded.
fn joins_before(c: char) -> bool {
    // Vowels and finals of Hangul that is written letter by letter.
    !c.is_ascii() && (is_mark(c) || matches!(c, '\u{1160}'..='\u{11FF}'))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn folded_at_once(text: &str) -> String {
        let mut folded = String::new();
        fold::fold(text, &mut folded);
        folded
    }

    #[test]
    fn spans_lead_back_to_what_was_written() {
        let text = "Die Größe von Café\u{301}s wächst, 市場は\u{feff} ﬁnal über 5\u{a0}%.";
        let scan = Scan::of(text);
        let written: Vec<&str> = scan
            .tokens
            .iter()
            .map(|token| {
                let span = scan.origin(&token.span);
                &text[span.start as usize..span.end as usize]
            })
            .collect();
        for word in ["Die", "Größe", "Café\u{301}s", "wächst", "über", "5", "%"] {
            assert!(written.contains(&word), "{word}: {written:?}");
        }
        assert!(written.iter().any(|word| word.starts_with("ﬁnal")), "{written:?}");
    }

    proptest::proptest! {
        #[test]
        fn folding_by_pieces_is_folding(text in "(?s).{0,60}", hangul in "[\u{1100}-\u{11ff}\u{ac00}-\u{ac40}]{0,12}",
            marked in "[a-zäйи\u{300}-\u{310}\u{5b0}-\u{5b8}\u{9c7}\u{9be}\u{b92}\u{bd7} ]{0,20}") {
            for text in [text, hangul, marked] {
                let scan = Scan::of(&text);
                assert_eq!(&scan.text, &folded_at_once(&text));
                for token in &scan.tokens {
                    let span = scan.origin(&token.span);
                    assert!(text.get(span.start as usize..span.end as usize).is_some(), "{text:?} {span:?}");
                }
            }
        }
    }
}
