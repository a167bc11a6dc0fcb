//! A verdict in words, all of them quoted from the two texts.

use std::ops::Range;

use super::align::{Alignment, Link};
use super::claims::{Claims, Marks, Said, Span, Word};
use super::judge::{Clash, Grounds};

/// Bytes of each thing that clashes that are quoted, and of each clause.
const QUOTED_BYTES: usize = 64;
const CLAUSE_BYTES: usize = 100;
/// Words of the subject that are quoted, small ones included.
const SUBJECT_WORDS: usize = 8;

/// What two texts claim, and the texts.
type Side<'a> = (&'a Claims, &'a str);

impl Clash {
    /// What clashes, and for what: `"23%" against "14%" for European market`; of a denial the two clauses; at most about
    /// 300 characters. All of it is quoted as it is written in the texts whose claims clash. Empty if these are not
    /// the claims that were compared.
    #[must_use]
    pub fn words(&self, a: Side<'_>, b: Side<'_>) -> String {
        let (Some(ours), Some(theirs)) = (a.0.claim(self.claims.0), b.0.claim(self.claims.1)) else {
            return String::new();
        };
        self.tell(&Alignment::of(ours, theirs), a.1, b.1)
    }

    fn tell(&self, alignment: &Alignment<'_>, a: &str, b: &str) -> String {
        let (our_span, their_span) = &self.spans;
        if self.grounds == Grounds::Negation {
            let linked = |link: &Link| *link != Link::None;
            let ours = clause(&alignment.a, our_span, |at| linked(&alignment.from_a[at]));
            let theirs = clause(&alignment.b, their_span, |at| linked(&alignment.from_b[at]));
            let (ours, theirs) = (quote(a, &ours, CLAUSE_BYTES), quote(b, &theirs, CLAUSE_BYTES));
            return format!("\"{ours}\" against \"{theirs}\"");
        }
        let (ours, theirs) = (quote(a, our_span, QUOTED_BYTES), quote(b, their_span, QUOTED_BYTES));
        let clash = format!("\"{ours}\" against \"{theirs}\"");
        let measured = matches!(self.grounds, Grounds::Quantity | Grounds::Date);
        let subject = subject(alignment.a.words, &alignment.from_a, our_span, a, measured)
            .or_else(|| subject(alignment.b.words, &alignment.from_b, their_span, b, measured));
        match subject {
            Some(subject) => format!("{clash} for {subject}"),
            None => clash,
        }
    }
}

/// A span of a text; nothing where the text has none there.
fn part(text: &str, start: u32, end: u32) -> &str {
    text.get(start as usize..end as usize).unwrap_or_default()
}

/// The same, cut where a word ends if it is too long.
fn quote<'a>(text: &'a str, span: &Range<u32>, most: usize) -> &'a str {
    let whole = part(text, span.start, span.end);
    if whole.len() <= most {
        return whole;
    }
    let cut = &whole[..whole.floor_char_boundary(most)];
    cut.rfind(char::is_whitespace).map_or(cut, |end| cut[..end].trim_end())
}

/// From where a claim begins to the last word that the other has too, with what denies; of a long one the part that
/// shows the denial.
fn clause(claim: &Said<'_>, found: &Range<u32>, is_shared: impl Fn(usize) -> bool) -> Range<u32> {
    let negator = claim.negator.map_or_else(|| found.clone(), Span::range);
    let (least, most) = (found.start.min(negator.start), found.end.max(negator.end));
    let ends = |from: u32| {
        let shared =
            claim.words.iter().enumerate().filter(|(at, _)| is_shared(*at)).map(|(_, word)| word.span.end());
        let near = shared.filter(|end| (*end - from.min(*end)) as usize <= CLAUSE_BYTES);
        near.max().unwrap_or(most).max(most)
    };
    let whole = claim.span.start..ends(claim.span.start);
    if whole.len() <= CLAUSE_BYTES { whole } else { least..ends(least) }
}

/// What both are about, as it is written in one of the texts: words that both have, side by side or joined by a
/// preposition, before what is said of them. `None` if no such words are there.
fn subject<'a>(
    words: &[Word],
    links: &[Link],
    clash: &Range<u32>,
    text: &'a str,
    measured: bool,
) -> Option<&'a str> {
    let is_shared = |at: usize| matches!(links[at], Link::Same(_)) && !clash.contains(&words[at].span.start);
    let mut first = 0;
    while first < words.len() {
        let is = |mark: Marks| words[first].marks.has(mark);
        if !is_shared(first) || is(Marks::LIGHT) || is(Marks::SAID) || is(Marks::VERB) {
            first += 1;
            continue;
        }
        let written = |at: usize| part(text, words[at].span.start, words[at].span.end());
        let goes_on = |at: usize| {
            let between = part(text, words[at - 1].span.end(), words[at].span.start).trim();
            let length = part(text, words[first].span.start, words[at].span.end()).split_whitespace();
            is_shared(at)
                && !words[at].marks.has(Marks::SAID)
                && !words[at].marks.has(Marks::VERB)
                && joins(between)
                && !(between.is_empty() && looks_done(written(at)))
                && length.count() <= SUBJECT_WORDS
        };
        let mut end = (first + 1..words.len()).find(|&at| !goes_on(at)).unwrap_or(words.len());
        // "grows at 23%" and "costs 20 euros": the verb is no part of what it is said of.
        let is_verb = |word: &Word| {
            let leads = text.get(word.span.end() as usize..clash.start as usize).map(str::trim);
            let leads =
                leads.is_some_and(|leads| matches!(leads, "" | "at" | "by" | "to" | "on" | "in" | "the"));
            measured && (leads || word.marks.has(Marks::LIGHT) || word.marks.has(Marks::CHOSEN))
        };
        while end > first && is_verb(&words[end - 1]) {
            end -= 1;
        }
        if end > first + 1
            || (end > first && !looks_done(written(first)) && !words[first].marks.has(Marks::CHOSEN))
        {
            return Some(part(text, words[first].span.start, words[end - 1].span.end()));
        }
        first += 1;
    }
    None
}

/// Whether two words with this between them belong together.
fn joins(between: &str) -> bool {
    matches!(
        between,
        "" | "-"
            | "of"
            | "of the"
            | "for"
            | "for the"
            | "in"
            | "in the"
            | "de"
            | "de la"
            | "del"
            | "der"
            | "des"
            | "du"
    )
}

/// Whether a word looks like a verb behind its subject: "raised", "growing".
fn looks_done(word: &str) -> bool {
    word.len() > 4 && (word.ends_with("ed") || word.ends_with("ing"))
}
