//! Source diversity: a unit's score is damped by how many better ones come from the same author, before the sort.
//!
//! Defined naively: sort by undamped score, walk down and count per author, damp, sort again. Done without sorting
//! all: damping never raises a score and grows with the count, so each author's units, best first, are a
//! descending stream, and the best of all are had by merging the streams. Of an author only as many as are taken
//! can matter.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::relevance::score::Candidate;
use crate::relevance::weights;

/// A unit with its score. Ordered by score, then epoch, then number: greater is better.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scored {
    pub score: f32,
    pub candidate: Candidate,
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        let age = |scored: &Self| (scored.candidate.epoch, scored.candidate.number);
        self.score.total_cmp(&other.score).then_with(|| age(self).cmp(&age(other)))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scored {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scored {}

/// A unit with its damped score, and what was left of 1 by damping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placed {
    pub unit: Scored,
    pub damping: f32,
}

/// Collects units by author and gives the best after damping.
pub(super) struct Best {
    take: usize,
    threshold: f32,
    /// Units that were added.
    added: usize,
    /// By an author's number: one more than its place in `authors`, 0 for none yet.
    places: Vec<u32>,
    authors: Vec<Author>,
}

/// An author's best units so far.
struct Author {
    units: Vec<Scored>,
    /// When full once: the least of the best `take`. What is no better cannot matter.
    floor: Option<Scored>,
    /// How many reach the threshold even when damped the most.
    sure: usize,
}

/// The next unit of an author's stream.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    damped: Scored,
    place: usize,
}

impl Best {
    /// To take so many units that reach the threshold, of authors with numbers below `authors`.
    pub fn new(take: usize, threshold: f32, authors: usize) -> Self {
        Self { take, threshold, added: 0, places: vec![0; authors + 1], authors: Vec::new() }
    }

    pub fn add(&mut self, author: u32, unit: Scored) {
        // Authors without a number of their own share the last place.
        let slot = (author as usize).min(self.places.len() - 1);
        let place = &mut self.places[slot];
        if *place == 0 {
            self.authors.push(Author { units: Vec::new(), floor: None, sure: 0 });
            *place = u32::try_from(self.authors.len()).unwrap_or(u32::MAX);
        }
        self.added += 1;
        let author = &mut self.authors[*place as usize - 1];
        author.sure += usize::from(unit.score * weights::DAMPED_MOST >= self.threshold);
        // Also of what is not taken, so many are needed to count those that reach the threshold.
        author.add(unit, self.take.max(weights::DAMPED_PLACES));
    }

    /// How many units reach the threshold when damped, taken or not.
    pub fn available(&self) -> usize {
        if self.threshold <= 0.0 {
            return self.added;
        }
        self.authors.iter().map(|author| author.reaching(self.threshold)).sum()
    }

    /// The best units, best first.
    pub fn into_sorted(self) -> Vec<Placed> {
        let mut streams: Vec<(BinaryHeap<Scored>, u32)> =
            self.authors.into_iter().map(|author| (BinaryHeap::from(author.units), 0)).collect();
        let mut heads: BinaryHeap<Next> =
            streams.iter().enumerate().filter_map(|(place, stream)| next(stream, place)).collect();
        let mut placed: Vec<Placed> = Vec::with_capacity(self.take.min(1_024));
        while let Some(Next { damped, place }) = heads.pop() {
            // Rounding can make neighbours of one author equal, whose order the epoch decides: go on through ties.
            if placed.len() >= self.take && placed.last().is_none_or(|last| last.unit.score > damped.score) {
                break;
            }
            let stream = &mut streams[place];
            placed.push(Placed { unit: damped, damping: weights::damping(stream.1) });
            stream.0.pop();
            stream.1 += 1;
            heads.extend(next(stream, place));
        }
        placed.sort_unstable_by_key(|placed| Reverse(placed.unit));
        placed.truncate(self.take);
        placed.retain(|placed| placed.unit.score >= self.threshold);
        placed
    }
}

fn next((units, better): &(BinaryHeap<Scored>, u32), place: usize) -> Option<Next> {
    let unit = units.peek()?;
    Some(Next {
        damped: Scored { score: unit.score * weights::damping(*better), candidate: unit.candidate },
        place,
    })
}

impl Author {
    /// How many of them reach the threshold when damped. Beyond the first places all are damped alike.
    fn reaching(&self, threshold: f32) -> usize {
        if self.sure >= weights::DAMPED_PLACES {
            return self.sure;
        }
        let mut best: Vec<f32> = self.units.iter().map(|unit| unit.score).collect();
        best.sort_unstable_by(|a, b| b.total_cmp(a));
        (0..).zip(best).take_while(|(better, score)| score * weights::damping(*better) >= threshold).count()
    }

    fn add(&mut self, unit: Scored, take: usize) {
        if self.floor.is_some_and(|floor| unit < floor) {
            return;
        }
        self.units.push(unit);
        // Cut at twice what is taken, so that cutting costs little for each unit.
        if self.units.len() >= take.saturating_mul(2).max(64) {
            let (_, least, _) = self.units.select_nth_unstable_by(take - 1, |a, b| b.cmp(a));
            self.floor = Some(*least);
            self.units.truncate(take);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relevance::score::{Kind, Serves};
    use proptest::prelude::*;

    /// The definition, word by word.
    fn naive(units: &[(u32, Scored)], take: usize, threshold: f32) -> (Vec<Placed>, usize) {
        let mut sorted = units.to_vec();
        sorted.sort_by_key(|&(_, unit)| Reverse(unit));
        let mut counts = std::collections::HashMap::new();
        let mut placed: Vec<Placed> = sorted
            .into_iter()
            .map(|(author, unit)| {
                let better = counts.entry(author).or_insert(0);
                let damping = weights::damping(*better);
                *better += 1;
                Placed { unit: Scored { score: unit.score * damping, ..unit }, damping }
            })
            .collect();
        placed.sort_by_key(|placed| Reverse(placed.unit));
        placed.retain(|placed| placed.unit.score >= threshold);
        let available = placed.len();
        placed.truncate(take);
        (placed, available)
    }

    fn scored(score: f32, epoch: u64, number: u32) -> Scored {
        Scored { score, candidate: Candidate { number, serves: Serves::Others, kind: Kind::Finding, epoch } }
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            raw in proptest::collection::vec((0u32..5, 0u32..40, 0u64..30), 0..400),
            fine in any::<bool>(),
            take in 0usize..40,
            threshold in prop_oneof![Just(0.0f32), 0.0f32..1.0],
        ) {
            let units: Vec<(u32, Scored)> = raw
                .into_iter()
                .enumerate()
                .map(|(number, (author, score, epoch))| {
                    // Coarse scores make ties, scores one step of f32 apart make ties by rounding.
                    let score = if fine { f32::from_bits(0.5f32.to_bits() + score) } else { score as f32 / 40.0 };
                    (author, scored(score, epoch, number as u32))
                })
                .collect();
            let mut best = Best::new(take, threshold, 5);
            for &(author, unit) in &units {
                best.add(author, unit);
            }
            let available = best.available();
            prop_assert_eq!((best.into_sorted(), available), naive(&units, take, threshold));
        }
    }

    #[test]
    fn another_author_passes_an_equal() {
        let unit = |score, number| scored(score, 1, number);
        let mut best = Best::new(3, 0.0, 2);
        for (author, unit) in [(0, unit(0.8, 0)), (0, unit(0.7999, 1)), (1, unit(0.799, 2))] {
            best.add(author, unit);
        }
        let order: Vec<u32> = best.into_sorted().iter().map(|placed| placed.unit.candidate.number).collect();
        assert_eq!(order, [0, 2, 1]);
    }
}
