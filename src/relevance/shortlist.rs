//! The best of very many documents without a close look at each.
//!
//! A small Field is measured whole. In a large one every document's words are measured, but its meaning is only
//! estimated, from the signs of its direction (`vectors`); of the best by that estimate the meaning is measured, and
//! of the best of these, and what was said around them, everything. A score is therefore always the one that `rank`
//! gives; what can be missed is a document whose signs are much further from the need's than its direction is, or one
//! whose only merit is a part that the estimate leaves out (neighbours further away, the asker's role in its text).
//!
//! Who may be chosen is asked before the cut: a filter that few documents pass finds these few.

use std::collections::BinaryHeap;

use crate::relevance::closeness::Words;
use crate::relevance::lexical::Index;
use crate::relevance::score::{Candidate, Kind, Need, Ranked, View, rank};
use crate::relevance::sessions::Side;
use crate::relevance::weights;

/// The documents from which an answer is chosen.
pub trait Pool {
    /// The first document that can be a candidate.
    fn first(&self) -> u32;
    /// What this document is, if it is a candidate.
    fn candidate(&self, document: u32) -> Option<Candidate>;
    /// All candidates, in any order; for when few documents are some.
    fn all(&self) -> impl Iterator<Item = Candidate>;
    /// When a document was committed; a candidate or not.
    fn epoch(&self, document: u32) -> u64;
    /// Documents that are to be looked at whatever their words and meaning: those that other factors favour.
    fn favoured(&self) -> Vec<u32> {
        Vec::new()
    }
}

/// Documents of which everything is measured, however many there are: that takes a millisecond.
const MEASURED_WHOLE: u32 = 16 * 1024;
/// As long as so few are asked for, each one's words are looked up by themselves.
const FEW: u32 = 512;
/// Documents estimated in one go.
const BLOCK: usize = 2 * 1024;
/// Of the newest documents each one's age is known to the estimate; of older ones that of their block.
const NEWEST: u32 = 1024;
/// Documents whose meaning is measured: one in so many, but not fewer than [`MEASURED_LEAST`].
const MEASURED_SHARE: u32 = 128;
const MEASURED_LEAST: usize = 2 * 1024;
/// And not fewer than this for each unit asked for.
const MEASURED_EACH: usize = 64;
/// Documents that are scored for each unit asked for, and at least.
const SCORED_EACH: usize = 4;
const SCORED_LEAST: usize = 768;
/// Of one author as many are scored for each unit asked for, and at least: others must find room too.
const BY_AUTHOR_LEAST: usize = 256;
/// The closest documents whose neighbours are looked at, and how far.
const LENDING: usize = 256;
const LENT_STEPS: u32 = 4;

/// A document with an estimate of its score. Ordered by the estimate, then by number: greater is better.
#[derive(Clone, Copy, PartialEq)]
struct Guess {
    score: f32,
    document: u32,
    /// What of the score is no closeness.
    rest: f32,
}

impl Eq for Guess {}

impl Ord for Guess {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score.total_cmp(&other.score).then(self.document.cmp(&other.document))
    }
}

impl PartialOrd for Guess {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The best `need.take` of a pool, scored and ordered as by [`rank`].
pub fn choose(index: &Index, need: &Need<'_>, pool: &impl Pool) -> Vec<Ranked> {
    let horizon = need.horizon.min(index.len());
    let first = pool.first().min(horizon);
    if horizon - first <= FEW {
        return listed(View::new(index, need, false), (first..horizon).filter_map(|at| pool.candidate(at)));
    }
    if horizon <= MEASURED_WHOLE {
        return rank(index, need, (first..horizon).filter_map(|at| pool.candidate(at)));
    }
    let mut view = View::new(index, need, true);
    if horizon - first <= MEASURED_WHOLE {
        return listed(view, (first..horizon).filter_map(|at| pool.candidate(at)));
    }
    let most =
        MEASURED_LEAST.max(((horizon - first) / MEASURED_SHARE) as usize).max(MEASURED_EACH * need.take);
    let guesses = estimates(&mut view, pool, first, most, None);
    if let Some(candidates) = scored(&mut view, pool, &guesses) {
        return listed(view, candidates.into_iter());
    }
    // Few of the best may be chosen: then only those that may are estimated, or measured if they are few.
    let mut candidates: Vec<Candidate> = pool.all().filter(|candidate| candidate.number < horizon).collect();
    if candidates.len() > MEASURED_WHOLE as usize {
        let mut allowed = vec![0u64; (horizon as usize).div_ceil(64)];
        candidates.iter().for_each(|c| allowed[c.number as usize / 64] |= 1 << (c.number % 64));
        let guesses = estimates(&mut view, pool, first, most, Some(&allowed));
        if let Some(found) = scored(&mut view, pool, &guesses) {
            candidates = found;
        }
    }
    listed(view, candidates.into_iter())
}

/// The best of candidates that are few enough to measure each.
fn listed(mut view: View<'_>, candidates: impl Iterator<Item = Candidate>) -> Vec<Ranked> {
    let horizon = view.horizon;
    let mut candidates: Vec<Candidate> = candidates.filter(|candidate| candidate.number < horizon).collect();
    candidates.sort_unstable_by_key(|candidate| candidate.number);
    candidates.dedup_by_key(|candidate| candidate.number);
    view.measure(Some(candidates.iter().map(|candidate| candidate.number).collect()));
    view.best(candidates.into_iter())
}

/// The best documents by estimate, in their order; `allowed` ones, bit by bit.
fn estimates(
    view: &mut View<'_>,
    pool: &impl Pool,
    first: u32,
    most: usize,
    allowed: Option<&[u64]>,
) -> Vec<Guess> {
    let (index, horizon) = (view.index, view.horizon);
    let vectors = index.vectors();
    let likely: Vec<f32> = (0..=vectors.dimensions()).map(|apart| vectors.likely_nearness(apart)).collect();
    // What is asked for every document stands close by: what its author's role adds, NaN until known, and its kind.
    let kinds = Kind::ALL.map(|kind| weights::kind_value(kind) * view.weights.kind);
    let mut roles = vec![f32::NAN; index.names() + 1];
    let mut best = Few { guesses: Vec::with_capacity(2 * most), most, least: f32::NEG_INFINITY };
    let mut apart = [0u16; BLOCK];
    let mut scores = [0.0f32; BLOCK];
    let mut block_first = first;
    while block_first < horizon {
        let newest = block_first + NEWEST >= horizon;
        // Of the newest each one's age counts; so they are blocks of one.
        let count = if newest { 1 } else { (horizon - NEWEST - block_first).min(BLOCK as u32) as usize };
        let (apart, scores) = (&mut apart[..count], &mut scores[..count]);
        if let Some(asked) = view.closeness.asked() {
            vectors.signs_apart(asked, block_first, apart);
            scores.iter_mut().zip(&*apart).for_each(|(near, apart)| *near = likely[usize::from(*apart)]);
        } else {
            scores.fill(0.0);
        }
        view.close(block_first, scores);
        let recency = view.recency(pool.epoch(block_first + count as u32 - 1));
        let mut rest = |document: u32, role: u32, kind: Kind| {
            let at = (role as usize).min(index.names());
            if roles[at].is_nan() {
                roles[at] = view.likeness(document) * view.weights.role;
            }
            roles[at] + kinds[kind as usize] + recency
        };
        let mut most = f32::NEG_INFINITY;
        let standings = index.standings(block_first, count);
        for ((document, score), (role, kind)) in (block_first..).zip(&mut *scores).zip(standings) {
            *score += rest(document, role, kind);
            most = most.max(*score);
        }
        if most > best.least {
            let standings = index.standings(block_first, count);
            for ((document, &score), (role, kind)) in (block_first..).zip(&*scores).zip(standings) {
                let may = |bits: &[u64]| bits[document as usize / 64] >> (document % 64) & 1 == 1;
                if score > best.least && allowed.is_none_or(may) {
                    best.add(Guess { score, document, rest: rest(document, role, kind) });
                }
            }
        }
        block_first += count as u32;
    }
    best.into_ordered()
}

/// Keeps the best of many guesses.
struct Few {
    guesses: Vec<Guess>,
    most: usize,
    /// What is no better than this is not among them.
    least: f32,
}

impl Few {
    fn add(&mut self, guess: Guess) {
        self.guesses.push(guess);
        // Cut at twice what is kept, so that cutting costs little for each.
        if self.guesses.len() == 2 * self.most {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.guesses.len() > self.most {
            let (_, least, _) = self.guesses.select_nth_unstable_by(self.most - 1, |a, b| b.cmp(a));
            self.least = least.score;
            self.guesses.truncate(self.most);
        }
    }

    fn into_ordered(mut self) -> Vec<Guess> {
        self.cut();
        self.guesses.sort_unstable_by_key(|guess| guess.document);
        self.guesses
    }
}

/// The candidates that are worth scoring, among documents whose meaning is measured first: `None` if too few of these
/// are candidates at all.
fn scored(view: &mut View<'_>, pool: &impl Pool, guesses: &[Guess]) -> Option<Vec<Candidate>> {
    let (index, horizon, take) = (view.index, view.horizon, view.need.take);
    let mut heap = BinaryHeap::from(measured(view, guesses));
    let wanted = SCORED_LEAST.max(SCORED_EACH * take).min(guesses.len());
    let by_author = BY_AUTHOR_LEAST.max(SCORED_EACH * take);
    let mut authors = vec![0usize; index.names() + 1];
    let (mut candidates, mut passed, mut lenders) = (Vec::with_capacity(2 * wanted), 0, Vec::new());
    while passed < wanted
        && let Some(Guess { document, .. }) = heap.pop()
    {
        if lenders.len() < LENDING {
            lenders.push(document);
        }
        let author = (index.author(document) as usize).min(authors.len() - 1);
        if authors[author] >= by_author {
            passed += 1;
        } else if let Some(candidate) = pool.candidate(document) {
            authors[author] += 1;
            passed += 1;
            candidates.push(candidate);
        }
    }
    if passed < wanted {
        return None;
    }
    // What is close lends of it to its neighbours, whether or not it may itself be shown.
    let mut more = pool.favoured();
    for lender in lenders {
        for side in Side::BOTH {
            let mut at = lender;
            for _ in 0..LENT_STEPS {
                let Some(next) = index.sessions().next_to(at, side, horizon) else { break };
                more.push(next);
                at = next;
            }
        }
    }
    more.sort_unstable();
    more.dedup();
    candidates.extend(more.into_iter().filter_map(|document| pool.candidate(document)));
    Some(candidates)
}

/// The same documents, with the nearness of their meaning as it is.
fn measured(view: &View<'_>, guesses: &[Guess]) -> Vec<Guess> {
    let index = view.index;
    let mut near = vec![0.0; guesses.len()];
    if let Some(asked) = view.closeness.asked() {
        let documents: Vec<u32> = guesses.iter().map(|guess| guess.document).collect();
        index.vectors().nearnesses(asked, &documents, &mut near);
    }
    let again = |(guess, near): (&Guess, f32)| {
        let lexical = match view.closeness.words() {
            Words::All(matches) => matches[guess.document as usize],
            Words::Single(_) => 0.0,
        };
        let close = view.closeness.estimate(lexical, near) * view.weights.closeness;
        Guess { score: close + guess.rest, ..*guess }
    };
    guesses.iter().zip(near).map(again).collect()
}

impl View<'_> {
    /// Makes of the nearness in meaning of documents in a row what all their closeness adds to an estimate.
    fn close(&self, first: u32, documents: &mut [f32]) {
        let weight = self.weights.closeness;
        if let Words::All(matches) = self.closeness.words() {
            for (close, lexical) in documents.iter_mut().zip(&matches[first as usize..]) {
                *close = self.closeness.estimate(*lexical, *close) * weight;
            }
        }
    }

    /// What a moment adds to an estimate.
    fn recency(&self, epoch: u64) -> f32 {
        weights::recency_value(self.need.now.saturating_sub(epoch)) * self.weights.recency
    }
}

#[cfg(test)]
#[path = "shortlist_tests.rs"]
mod tests;
