//! Which documents a text may contradict: those nearest in meaning, and those that share its rarest words.
//!
//! A contradiction is about the same thing as what it contradicts, so it is near to it; but a name or a number that
//! nobody else uses is nearer than any direction tells, and without a model words are all there is. Both ways are
//! bounded: the directions are first told apart by their signs (`vectors`), of the words only the rarest are followed.

use std::collections::BinaryHeap;
use std::ops::Range;

use hashbrown::HashMap;

use crate::relevance::lexical::{Document, Index, Meaning};
use crate::relevance::reading::Reader;
use crate::relevance::vectors::Asked;
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
        let asked = match direction {
            Some(direction) if self.is_given() => Asked::new(direction),
            _ => self.direction([doc.content, doc.question.unwrap_or_default(), doc.purpose]),
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

    fn is_given(&self) -> bool {
        matches!(self.meaning(), Meaning::Given { .. })
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
        // By how many signs differ, then by age: of equals the newer is kept.
        let mut best: BinaryHeap<(u16, std::cmp::Reverse<u32>)> = BinaryHeap::with_capacity(MEASURED + 1);
        let mut apart = [0u16; BLOCK];
        let mut first = span.start;
        while first < span.end {
            let count = (span.end - first).min(BLOCK as u32) as usize;
            let apart = &mut apart[..count];
            self.vectors().signs_apart(asked, first, apart);
            let worst = if best.len() < MEASURED { u16::MAX } else { best.peek().map_or(u16::MAX, |w| w.0) };
            // Most blocks have nothing near; a look at the least spares the rest.
            if apart.iter().fold(u16::MAX, |least, apart| least.min(*apart)) <= worst {
                for (document, &apart) in (first..).zip(&*apart) {
                    let full = best.len() == MEASURED;
                    if full && best.peek().is_some_and(|worst| apart > worst.0) || !may(document) {
                        continue;
                    }
                    best.push((apart, std::cmp::Reverse(document)));
                    if full {
                        best.pop();
                    }
                }
            }
            first += count as u32;
        }
        let mut documents: Vec<u32> = best.into_iter().map(|(_, document)| document.0).collect();
        documents.sort_unstable();
        let mut near = vec![0.0; documents.len()];
        self.vectors().nearnesses(asked, &documents, &mut near);
        let mut found: Vec<(f32, u32)> =
            near.into_iter().zip(documents).filter(|(near, _)| *near >= NEAR_LEAST).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        found.into_iter().take(NEAREST).map(|(_, document)| document).collect()
    }

    /// Those that share the rarest words, most telling first.
    fn sharing(&self, terms: &[u32], span: &Range<u32>, may: &impl Fn(u32) -> bool) -> Vec<u32> {
        let mut sums: HashMap<u32, (f32, u32)> = HashMap::new();
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
            .filter(|(document, (_, count))| *count >= least && may(*document))
            .map(|(document, (sum, _))| (sum, document))
            .collect();
        found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        found.into_iter().take(SHARING).map(|(_, document)| document).collect()
    }
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
