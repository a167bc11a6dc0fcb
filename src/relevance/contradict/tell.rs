//! A verdict in words, all of them quoted from the two texts.

use std::ops::Range;

use super::align::{Alignment, Link};
use super::claims::{Claim, Claims, Marks, Word};
use super::judge::{Found, Grounds};

/// Bytes of each thing that clashes that are quoted, and of each clause.
const QUOTED_BYTES: usize = 64;
const CLAUSE_BYTES: usize = 100;
/// Words of the subject that are quoted, small ones included.
const SUBJECT_WORDS: usize = 8;

/// What clashes, and for what: `"23%" against "14%" for European market`; of a denial the two clauses.
pub(super) fn tell(found: &Found, alignment: &Alignment<'_>, a: &Claims, b: &Claims) -> String {
    if found.grounds == Grounds::Negation {
        let linked = |link: &Link| *link != Link::None;
        let ours = clause(alignment.a, &found.a, |at| linked(&alignment.from_a[at]));
        let theirs = clause(alignment.b, &found.b, |at| linked(&alignment.from_b[at]));
        return format!(
            "\"{}\" against \"{}\"",
            quote(a, &ours, CLAUSE_BYTES),
            quote(b, &theirs, CLAUSE_BYTES)
        );
    }
    let clash =
        format!("\"{}\" against \"{}\"", quote(a, &found.a, QUOTED_BYTES), quote(b, &found.b, QUOTED_BYTES));
    let measured = matches!(found.grounds, Grounds::Quantity | Grounds::Date);
    let ours = subject(&alignment.a.words, &alignment.from_a, &found.a, &a.text, measured);
    let subject =
        ours.or_else(|| subject(&alignment.b.words, &alignment.from_b, &found.b, &b.text, measured));
    match subject {
        Some(subject) => format!("{clash} for {subject}"),
        None => clash,
    }
}

/// A span of a text, cut where a word ends if it is too long.
fn quote<'a>(claims: &'a Claims, span: &Range<u32>, most: usize) -> &'a str {
    let whole = &claims.text[span.start as usize..span.end as usize];
    if whole.len() <= most {
        return whole;
    }
    let cut = &whole[..whole.floor_char_boundary(most)];
    cut.rfind(char::is_whitespace).map_or(cut, |end| cut[..end].trim_end())
}

/// From where a claim begins to the last word that the other has too, with what denies; of a long one the part that
/// shows the denial.
fn clause(claim: &Claim, found: &Range<u32>, is_shared: impl Fn(usize) -> bool) -> Range<u32> {
    let negator = claim.negator.clone().unwrap_or_else(|| found.clone());
    let (least, most) = (found.start.min(negator.start), found.end.max(negator.end));
    let ends = |from: u32| {
        let shared =
            claim.words.iter().enumerate().filter(|(at, _)| is_shared(*at)).map(|(_, word)| word.span.end);
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
        if !is_shared(first) || words[first].marks.has(Marks::LIGHT) || words[first].marks.has(Marks::SAID) {
            first += 1;
            continue;
        }
        let written = |at: usize| &text[words[at].span.start as usize..words[at].span.end as usize];
        let goes_on = |at: usize| {
            let between = text[words[at - 1].span.end as usize..words[at].span.start as usize].trim();
            let length =
                text[words[first].span.start as usize..words[at].span.end as usize].split_whitespace();
            is_shared(at)
                && !words[at].marks.has(Marks::SAID)
                && joins(between)
                && !(between.is_empty() && looks_done(written(at)))
                && length.count() <= SUBJECT_WORDS
        };
        let mut end = (first + 1..words.len()).find(|&at| !goes_on(at)).unwrap_or(words.len());
        // "grows at 23%" and "costs 20 euros": the verb is no part of what it is said of.
        let is_verb = |word: &Word| {
            let leads = text.get(word.span.end as usize..clash.start as usize).map(str::trim);
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
            return Some(&text[words[first].span.start as usize..words[end - 1].span.end as usize]);
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
