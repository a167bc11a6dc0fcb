//! Which documents a text may contradict: those nearest in meaning, and those that share its rarest words.
//!
//! A contradiction is about the same thing as what it contradicts, so it is near to it; but a name or a number that
//! nobody else uses is nearer than any direction tells, and without a model words are all there is. Both ways are
//! bounded: the directions are first told apart by their signs (`vectors`), of the words only the rarest are followed.

use std::cmp::Reverse;
use std::ops::Range;

use hashbrown::HashMap;

use crate::relevance::lexical::{Document, Index, Meaning};
use crate::relevance::pace::Pace;
use crate::relevance::reading::Reader;
use crate::relevance::vectors::{Asked, STRETCH, least_of_stretches};
use crate::relevance::weights;

/// Documents that are given for their meaning, the nearest.
const NEAREST: usize = 16;
/// Documents that are given for their words.
const SHARING: usize = 8;
/// Documents whose meaning is measured, the nearest by the signs of their directions.
const MEASURED: usize = 64;
/// What is further away in meaning is about something else.
const NEAR_LEAST: f32 = 0.35;
/// Rarest terms of a text that are followed, and documents that are met on the way.
const TERMS_MAX: usize = 12;
const MET_MAX: usize = 4_096;
/// Documents told apart in one go.
const BLOCK: usize = 1024;

/// What is looked for: where a text points, and its words.
pub struct Sought {
    asked: Option<Asked>,
    /// The rarest first.
    terms: Vec<u32>,
}

impl Index {
    /// What to look for on behalf of a text that is no document yet. `direction` is its own by a model outside.
    #[must_use]
    pub fn sought(&self, reader: &mut Reader, doc: &Document<'_>, direction: Option<&[f32]>) -> Sought {
        let asked = match self.meaning() {
            Meaning::Given { .. } => direction.and_then(Asked::new),
            Meaning::BuiltIn => {
                let texts = [doc.content, doc.question.unwrap_or_default(), doc.purpose];
                reader.direction(texts).and_then(|direction| Asked::new(&direction))
            }
            Meaning::Nothing => None,
        };
        Sought { asked, terms: self.rarest(reader, doc, 0) }
    }

    /// What to look for on behalf of a document that was entered; by its words alone while it points nowhere.
    #[must_use]
    pub fn sought_by(&self, reader: &mut Reader, doc: &Document<'_>, document: u32) -> Sought {
        Sought { asked: self.vectors().asked(document), terms: self.rarest(reader, doc, 1) }
    }

    /// Documents within `span` that may be about the same as what is sought, at most [`NEAREST`] + [`SHARING`], the
    /// nearest in meaning first; only those that `may` be given.
    #[must_use]
    pub fn rivals(&self, sought: &Sought, span: Range<u32>, may: impl Fn(u32) -> bool) -> Vec<u32> {
        let span = span.start..span.end.min(self.len());
        if span.is_empty() {
            return Vec::new();
        }
        let mut found = sought.asked.as_ref().map_or_else(Vec::new, |asked| self.near(asked, &span, &may));
        for document in self.sharing(&sought.terms, &span, &may) {
            if !found.contains(&document) {
                found.push(document);
            }
        }
        found
    }

    /// The terms that fewest documents have, but more than `own`: those that the text itself is among.
    fn rarest(&self, reader: &mut Reader, doc: &Document<'_>, own: usize) -> Vec<u32> {
        let reading = self.known().read(reader, doc, true);
        let documents = |term: u32| self.documents_with(term, self.len());
        let shared = reading.terms.iter().map(|&(term, _)| (documents(term), term));
        let mut terms: Vec<(usize, u32)> = shared.filter(|(documents, _)| *documents > own).collect();
        terms.sort_unstable();
        let mut terms: Vec<u32> = terms.into_iter().map(|(_, term)| term).collect();
        terms.truncate(TERMS_MAX);
        terms
    }

    /// The nearest in meaning, nearest first.
    fn near(&self, asked: &Asked, span: &Range<u32>, may: &impl Fn(u32) -> bool) -> Vec<u32> {
        // Asking what may be given costs more than telling signs apart, and mostly all may.
        let mut best = self.nearest_by_signs(asked, span, |_| true);
        if !best.iter().all(|&(_, document)| may(document.0)) {
            best = self.nearest_by_signs(asked, span, may);
        }
        let mut documents: Vec<u32> = best.into_iter().map(|(_, Reverse(document))| document).collect();
        documents.sort_unstable();
        let mut near = vec![0.0; documents.len()];
        self.vectors().nearnesses(asked, &documents, &mut near);
        let mut found: Vec<(f32, u32)> =
            near.into_iter().zip(documents).filter(|(near, _)| *near >= NEAR_LEAST).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        found.into_iter().take(NEAREST).map(|(_, document)| document).collect()
    }

    /// Those whose directions differ in the fewest signs, of equals the newer ones, in no order.
    fn nearest_by_signs(&self, asked: &Asked, span: &Range<u32>, may: impl Fn(u32) -> bool) -> Vec<BySigns> {
        let mut best: Vec<BySigns> = Vec::with_capacity(2 * MEASURED);
        let mut worst = u16::MAX;
        let mut apart = [0u16; BLOCK];
        let mut least = [0u16; BLOCK / STRETCH];
        let mut pace = Pace::new();
        let mut first = span.start;
        while first < span.end {
            let count = (span.end - first).min(BLOCK as u32) as usize;
            pace.walk(count);
            let apart = &mut apart[..count];
            self.vectors().signs_apart(asked, first, apart);
            least_of_stretches(apart, &mut least);
            let stretches = apart.chunks(STRETCH).zip(&least).zip((first..).step_by(STRETCH));
            for ((stretch, &least), start) in stretches {
                // Most have nothing near; a look at the least spares the rest.
                if least > worst {
                    continue;
                }
                for (document, &apart) in (start..).zip(stretch) {
                    if apart <= worst && may(document) {
                        best.push((apart, Reverse(document)));
                    }
                }
                if best.len() >= 2 * MEASURED {
                    worst = keep_least(&mut best);
                }
            }
            first += count as u32;
        }
        keep_least(&mut best);
        best
    }

    /// Those that share the rarest words, most telling first.
    fn sharing(&self, terms: &[u32], span: &Range<u32>, may: &impl Fn(u32) -> bool) -> Vec<u32> {
        let in_all: usize = terms.iter().map(|&term| self.documents_with(term, span.end)).sum();
        let mut sums: HashMap<u32, (f32, u32)> = HashMap::with_capacity(in_all.min(MET_MAX));
        let mut room = MET_MAX;
        for &term in terms {
            let documents = self.documents_with(term, span.end);
            let weight = weights::rarity(documents, span.end);
            // The newest first, where there are more than can be met.
            for posting in self.postings_of(term, span.end).iter().rev().take(room) {
                if posting.document() < span.start {
                    break;
                }
                room -= 1;
                let (sum, count) = sums.entry(posting.document()).or_default();
                *sum += weight;
                *count += 1;
            }
            if room == 0 {
                break;
            }
        }
        // One word in common is no subject, unless the text has no more.
        let least = if terms.len() > 2 { 2 } else { 1 };
        let mut found: Vec<(f32, u32)> = sums
            .into_iter()
            .filter(|(_, (_, count))| *count >= least)
            .map(|(document, (sum, _))| (sum, document))
            .collect();
        let order = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1));
        // Mostly the best may all be given; the others need no order then.
        let mut given = Vec::with_capacity(SHARING);
        let mut from = 0;
        while from < found.len() && given.len() < SHARING {
            let rest = &mut found[from..];
            let some = rest.len().min(4 * SHARING);
            if some < rest.len() {
                rest.select_nth_unstable_by(some, order);
            }
            rest[..some].sort_unstable_by(order);
            let documents = rest[..some].iter().map(|(_, document)| *document);
            given.extend(documents.filter(|document| may(*document)).take(SHARING - given.len()));
            from += some;
        }
        given
    }
}

/// In how many signs a document differs from what is asked, and which one it is: of equals the newer comes first.
type BySigns = (u16, Reverse<u32>);

/// Keeps the [`MEASURED`] first, and tells in how many signs the last of them differs; any number while there are less.
fn keep_least(best: &mut Vec<BySigns>) -> u16 {
    if best.len() < MEASURED {
        return u16::MAX;
    }
    let (_, last, _) = best.select_nth_unstable(MEASURED - 1);
    let worst = last.0;
    best.truncate(MEASURED);
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(content: &str) -> Document<'_> {
        Document { content, purpose: "", question: None, author: "", role: "", session: None }
    }

    fn index(meaning: bool, contents: &[&str]) -> Index {
        let mut index = Index::taking_in(meaning);
        contents.iter().for_each(|content| index.push(&document(content)));
        index
    }

    fn rivals(index: &Index, text: &str) -> Vec<u32> {
        let sought = index.sought(&mut Reader::default(), &document(text), None);
        index.rivals(&sought, 0..index.len(), |_| true)
    }

    #[test]
    fn what_is_about_the_same_is_found_by_meaning_or_by_words() {
        let mut contents: Vec<String> =
            (0..2_000).map(|i| format!("The committee of town {i} met in the old hall")).collect();
        contents[700] = "Revenue in the market rose by 23% a year".to_owned();
        contents[1_300] = "Zyxorb-77 is painted green".to_owned();
        let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
        let meaning = index(true, &contents);
        assert_eq!(rivals(&meaning, "Market revenue rises 14% yearly")[0], 700);
        for index in [meaning, index(false, &contents)] {
            assert!(rivals(&index, "Zyxorb-77 was painted red").contains(&1_300));
            let found = rivals(&index, "The committee met in the old hall");
            assert!(!found.is_empty() && found.len() <= NEAREST + SHARING, "{}", found.len());
        }
    }

    /// Against the same thing done at length.
    #[test]
    fn the_nearest_by_signs_are_those_that_differ_least() {
        let contents: Vec<String> = (0..3_000u32)
            .map(|i| format!("{} {} hall {}", i % 7, ["pump", "gate", "team"][i as usize % 3], i * i % 97))
            .collect();
        let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
        let index = index(true, &contents);
        let asked = index.vectors().asked(1_234).unwrap();
        for (span, odd) in
            [(0..3_000, false), (5..2_900, true), (70..100, true), (0..1, false), (600..1_700, false)]
        {
            let may = |document: u32| !odd || document % 2 == 1;
            let mut all: Vec<BySigns> = span
                .clone()
                .filter(|document| may(*document))
                .map(|document| {
                    let mut apart = [0];
                    index.vectors().signs_apart(&asked, document, &mut apart);
                    (apart[0], Reverse(document))
                })
                .collect();
            all.sort_unstable();
            all.truncate(MEASURED);
            let mut found = index.nearest_by_signs(&asked, &span, may);
            found.sort_unstable();
            assert_eq!(found, all, "{span:?}");
        }
    }

    #[test]
    fn only_the_span_is_looked_at_and_only_what_may_be() {
        let index = index(true, &["the pump leaks"; 40]);
        let sought = index.sought_by(&mut Reader::default(), &document("the pump leaks"), 7);
        let mut found = index.rivals(&sought, 10..20, |document| document % 2 == 0);
        found.sort_unstable();
        assert_eq!(found, [10, 12, 14, 16, 18]);
        assert!(index.rivals(&sought, 30..30, |_| true).is_empty());
        assert_eq!(index.rivals(&sought, 38..900, |_| true), [39, 38]);
    }
}
