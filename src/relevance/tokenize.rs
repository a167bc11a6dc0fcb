//! Text to words, the same for what is stored and for what is asked.
//!
//! Words come out folded and in lower case, not yet stemmed. `snake_case`, `kebab-case`, `camelCase` and dotted
//! names give their parts and the whole without its joints, so each spelling finds the others. Numbers, versions
//! and percentages stay whole. Scripts written without spaces give pairs of neighbouring characters. Text that is
//! plain ASCII is never normalised and never copied but for its lower case.

use unicode_normalization::char::is_combining_mark;

use crate::relevance::fold;

/// Longest word kept, in bytes; longer ones are cut here. A SHA-256 in hexadecimal just fits, and a megabyte
/// without a space becomes one short word.
pub(super) const MAX_WORD_BYTES: usize = 64;

/// What the buffer for folded text keeps of its room: some texts have no space in a megabyte.
const KEPT_BUFFER_BYTES: usize = 4_096;

/// One word of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    /// The word in the form that is compared: folded, lower case, at most [`MAX_WORD_BYTES`].
    pub text: &'a str,
    /// The same word as written, but for accents.
    pub written: &'a str,
    /// The stretch without white space that it came from, untouched.
    pub piece: &'a str,
}

/// Cuts texts into words; owns the buffers that this takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokenizer {
    folded: String,
    lower: String,
}

impl Tokenizer {
    /// Calls `emit` with each word of `text`, in order.
    pub fn each(&mut self, text: &str, emit: &mut impl FnMut(Word<'_>)) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            let mut seen = 0u8;
            while at < bytes.len() && !bytes[at].is_ascii_whitespace() {
                seen |= bytes[at];
                at += 1;
            }
            if at > start {
                let piece = &text[start..at];
                if seen.is_ascii() {
                    ascii_runs(piece, &mut self.lower, emit);
                } else {
                    fold::fold(piece, &mut self.folded);
                    unicode_runs(&self.folded, piece, &mut self.lower, emit);
                    self.folded.clear();
                    self.folded.shrink_to(KEPT_BUFFER_BYTES);
                }
            }
            at += 1;
        }
    }
}

/// The runs of an ASCII piece. Most are plain words, which take the short way.
fn ascii_runs(piece: &str, lower: &mut String, emit: &mut impl FnMut(Word<'_>)) {
    let bytes = piece.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        let mut plain = true;
        while let Some(&byte) = bytes.get(at) {
            let joins = is_joint(byte) && bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
            if !byte.is_ascii_alphanumeric() && !joins {
                break;
            }
            plain &= byte.is_ascii_lowercase() || (at == start && byte.is_ascii_uppercase());
            at += 1;
        }
        let run = &piece[start..at];
        if plain && run.len() <= MAX_WORD_BYTES {
            if bytes[start].is_ascii_lowercase() {
                emit(Word { text: run, written: run, piece });
            } else {
                emit_lower(run, piece, lower, emit);
            }
        } else {
            compound(run, piece, lower, emit);
        }
        at += signed(run, &piece[at..], piece, lower, emit);
    }
}

/// The runs of a folded piece that is not all ASCII.
fn unicode_runs(folded: &str, piece: &str, lower: &mut String, emit: &mut impl FnMut(Word<'_>)) {
    let mut rest = folded;
    while let Some(first) = rest.chars().next() {
        if fold::is_unspaced(first) {
            let end = rest.find(|c| !fold::is_unspaced(c)).unwrap_or(rest.len());
            pairs(&rest[..end], piece, emit);
            rest = &rest[end..];
        } else if is_word(first) {
            let end = run_end(rest);
            let (run, after) = rest.split_at(end);
            compound(run, piece, lower, emit);
            rest = &after[signed(run, after, piece, lower, emit)..];
        } else {
            let (mark, after) = rest.split_at(first.len_utf8());
            if fold::is_pictograph(first) {
                emit(Word { text: mark, written: mark, piece });
            }
            rest = after;
        }
    }
}

/// Where the run of letters, digits and joints at the start of `text` ends.
fn run_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let joins =
            u8::try_from(c).is_ok_and(is_joint) && chars.peek().is_some_and(|&(_, next)| is_word(next));
        if !is_word(c) && !joins {
            return at;
        }
    }
    text.len()
}

fn is_word(c: char) -> bool {
    (c.is_alphanumeric() || is_combining_mark(c)) && !fold::is_unspaced(c)
}

fn is_joint(byte: u8) -> bool {
    matches!(byte, b'_' | b'-' | b'.' | b'\'' | b',')
}

/// Pairs of neighbouring characters; a character that stands alone is a word.
fn pairs(run: &str, piece: &str, emit: &mut impl FnMut(Word<'_>)) {
    let mut starts = run.char_indices().map(|(at, _)| at).chain([run.len()]);
    let (Some(mut first), Some(mut second)) = (starts.next(), starts.next()) else { return };
    if second == run.len() {
        emit(Word { text: run, written: run, piece });
    }
    for third in starts {
        let pair = &run[first..third];
        emit(Word { text: pair, written: pair, piece });
        (first, second) = (second, third);
    }
}

/// A sign that belongs to the run before it: "23%", "C++", "C#". Returns how many bytes it took.
fn signed(run: &str, after: &str, piece: &str, lower: &mut String, emit: &mut impl FnMut(Word<'_>)) -> usize {
    let digit = run.ends_with(|c: char| c.is_ascii_digit());
    let sign = match after.as_bytes() {
        [b'%', ..] if digit => "%",
        [b'#', ..] if !digit => "#",
        [b'+', b'+', ..] if !digit => "++",
        _ => return 0,
    };
    let start =
        run.rfind(|c: char| u8::try_from(c).is_ok_and(|b| is_joint(b) && b != b'.')).map_or(0, |at| at + 1);
    let last = &run[start..];
    if last.len() + sign.len() <= MAX_WORD_BYTES {
        lower.clear();
        lower.extend(last.chars().flat_map(char::to_lowercase));
        lower.push_str(sign);
        emit(Word { text: lower, written: lower, piece });
    }
    sign.len()
}

/// A run with joints, humps or digits: its parts, and if there are several, the whole.
fn compound(run: &str, piece: &str, lower: &mut String, emit: &mut impl FnMut(Word<'_>)) {
    if run.contains(',') {
        return with_commas(run, piece, lower, emit);
    }
    let run = match run.rsplit_once('\'') {
        Some((before, "s" | "S" | "m" | "d" | "ll" | "re" | "ve")) => before,
        Some((before, "t")) if before.ends_with('n') => return emit_joined(run, run, piece, lower, emit),
        _ => run,
    };
    let mut parts = 0;
    let mut rest = run;
    while !rest.is_empty() {
        let (part, after) = first_part(rest);
        let next = after.trim_start_matches(|c| u8::try_from(c).is_ok_and(is_joint));
        let only = parts == 0 && next.is_empty();
        // Single letters of "e.g." or "iPhone" say nothing beside the whole.
        if only || part.len() > 1 || part.as_bytes()[0].is_ascii_digit() {
            emit_lower(part, piece, lower, emit);
            if let Some(version) =
                part.strip_prefix(['v', 'V']).filter(|v| v.bytes().all(|b| b == b'.' || b.is_ascii_digit()))
                && !version.is_empty()
            {
                emit(Word { text: version, written: part, piece });
            }
        }
        parts += 1;
        rest = next;
    }
    if parts > 1 && run.len() <= MAX_WORD_BYTES {
        emit_joined(run, run, piece, lower, emit);
    }
}

/// "1,000,000" is one number; other commas part words.
fn with_commas(run: &str, piece: &str, lower: &mut String, emit: &mut impl FnMut(Word<'_>)) {
    let mut groups = run.split(',');
    let whole_number =
        groups.next().is_some_and(|first| first.len() <= 3 && first.bytes().all(|b| b.is_ascii_digit()))
            && groups.all(|group| {
                let digits = group.split_once('.').map_or(group, |(whole, _)| whole);
                digits.len() == 3 && group.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            });
    if whole_number && run.len() <= MAX_WORD_BYTES {
        lower.clear();
        lower.extend(run.chars().filter(|&c| c != ','));
        emit(Word { text: lower, written: run, piece });
    } else {
        for part in run.split(',').filter(|part| !part.is_empty()) {
            compound(part, piece, lower, emit);
        }
    }
}

/// Splits off the part at the start of `run`: up to a joint, a hump, or the letters after leading digits.
fn first_part(run: &str) -> (&str, &str) {
    let mut chars = run.char_indices().peekable();
    let mut before = ' ';
    let mut numeric = true;
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |&(_, next)| next);
        let ends = if u8::try_from(c).is_ok_and(is_joint) {
            !(c == '.' && before.is_ascii_digit() && next.is_ascii_digit())
        } else if at == 0 {
            false
        } else if numeric {
            c.is_alphabetic()
        } else {
            c.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && next.is_lowercase()))
        };
        if ends {
            return run.split_at(at);
        }
        numeric &= c.is_ascii_digit() || c == '.';
        before = c;
    }
    (run, "")
}

fn emit_lower(written: &str, piece: &str, lower: &mut String, emit: &mut impl FnMut(Word<'_>)) {
    lower.clear();
    if written.is_ascii() {
        lower.push_str(&written[..written.len().min(MAX_WORD_BYTES)]);
        lower.make_ascii_lowercase();
    } else {
        push_lower(written.chars(), lower);
    }
    emit(Word { text: lower, written, piece });
}

/// The whole of a compound, without its joints but for the dots of a number.
fn emit_joined(run: &str, written: &str, piece: &str, lower: &mut String, emit: &mut impl FnMut(Word<'_>)) {
    lower.clear();
    let bytes = run.as_bytes();
    let in_number = |at: usize| {
        at > 0 && bytes[at - 1].is_ascii_digit() && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
    };
    let kept = run
        .char_indices()
        .filter(|&(at, c)| !u8::try_from(c).is_ok_and(is_joint) || (c == '.' && in_number(at)));
    push_lower(kept.map(|(_, c)| c), lower);
    emit(Word { text: lower, written, piece });
}

fn push_lower(chars: impl Iterator<Item = char>, lower: &mut String) {
    for c in chars.flat_map(char::to_lowercase) {
        if lower.len() + c.len_utf8() > MAX_WORD_BYTES {
            break;
        }
        lower.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Tokenizer::default().each(text, &mut |word| found.push(word.text.to_owned()));
        found
    }

    #[test]
    fn prose() {
        assert_eq!(
            words("The quick, brown FOX: it's Caroline's \"own\"!"),
            ["the", "quick", "brown", "fox", "it", "caroline", "own"]
        );
        assert_eq!(words("don’t can't we'll O'Brien"), ["dont", "cant", "we", "brien", "obrien"]);
        assert_eq!(words("  \n\t ... --- '' "), Vec::<String>::new());
    }

    #[test]
    fn identifiers_give_parts_and_whole() {
        assert_eq!(words("market_researcher"), ["market", "researcher", "marketresearcher"]);
        assert_eq!(words("marketResearcher"), ["market", "researcher", "marketresearcher"]);
        assert_eq!(words("go-to-market"), ["go", "to", "market", "gotomarket"]);
        assert_eq!(words("HTTPServer"), ["http", "server", "httpserver"]);
        assert_eq!(words("src/main.rs"), ["src", "main", "rs", "mainrs"]);
        assert_eq!(words("U.S. iPhone"), ["us", "phone", "iphone"]);
        assert_eq!(words("__init__"), ["init"]);
    }

    #[test]
    fn numbers_stay_findable() {
        assert_eq!(words("23% 3.14 1,000,000 1,5"), ["23", "23%", "3.14", "1000000", "1", "5"]);
        assert_eq!(words("v1.2 v2"), ["v1.2", "1.2", "v2", "2"]);
        assert_eq!(words("mem-42"), ["mem", "42", "mem42"]);
        assert_eq!(words("2026-03-01"), ["2026", "03", "01", "20260301"]);
        assert_eq!(words("3pm 31st 10.0.0.1 k8s"), ["3", "pm", "3pm", "31", "st", "31st", "10.0.0.1", "k8s"]);
        assert_eq!(words("C++ and C#"), ["c", "c++", "and", "c", "c#"]);
    }

    #[test]
    fn scripts() {
        assert_eq!(words("Müller ÜBER café Straße"), ["muller", "uber", "cafe", "strasse"]);
        assert_eq!(words("Москва ЁЛКА"), ["москва", "елка"]);
        assert_eq!(words("市场增长, 猫"), ["市场", "场增", "增长", "猫"]);
        assert_eq!(words("東京タワー"), ["東京", "京タ", "タワ", "ワー"]);
        assert_eq!(words("시장 성장률"), ["시장", "성장", "장률"]);
        assert_eq!(words("نمو السوق"), ["نمو", "السوق"]);
        assert_eq!(words("Ελλάς"), ["ελλασ"]);
        assert_eq!(words("हिन्दी भाषा"), ["हिन्दी", "भाषा"]);
        assert_eq!(words("done 🎉👍🏽!"), ["done", "🎉", "👍"]);
        assert_eq!(words("用Rust写3个"), ["用", "rust", "写", "3", "个"]);
    }

    #[test]
    fn words_are_cut_at_the_bound() {
        for text in [
            "a".repeat(100_000),
            "é".repeat(100_000),
            "A".repeat(999),
            "a-".repeat(50_000),
            "ß".repeat(500),
            "1,".repeat(999),
        ] {
            for word in words(&text) {
                assert!(!word.is_empty() && word.len() <= MAX_WORD_BYTES, "{word}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in "(?s).{0,200}") {
            Tokenizer::default().each(&text, &mut |word| {
                assert!(!word.text.is_empty() && word.text.len() <= MAX_WORD_BYTES);
                assert!(!word.text.contains(char::is_whitespace));
            });
        }
    }
}
