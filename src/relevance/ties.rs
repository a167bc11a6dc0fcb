//! What declared relations bring near: documents tied to the asker's context, or to what is close to the need.
//!
//! A document takes over a part of that by which another, one or two steps of declared relations away, is closer to
//! the need than itself: what supports, answers or contradicts something that matters, matters. As with neighbours
//! in a session only the difference counts, so no document passes by a tie what it is tied to.

use std::fmt;

use hashbrown::HashMap;

use crate::relevance::weights;

/// Documents close by themselves from which ties are followed.
const STRONG_SEEDS: usize = 8;
/// Steps along relations that one need is worth, seeds together, the strongest first.
const MAX_STEPS: usize = 4 * 1024;

/// How documents are tied to each other: the relations that their authors declared, walked either way.
///
/// Answers must not change while a need is met, and must know nothing that is younger than its horizon.
pub trait Web: fmt::Debug {
    /// Calls `each` with documents that are one relation away.
    fn each_tied(&self, document: u32, each: &mut dyn FnMut(u32));

    /// How a document is tied to another, in words that go on after it: "supports mem-7".
    fn in_words(&self, document: u32, other: u32) -> Option<String>;
}

/// What a document gains by its ties.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tie {
    /// In the measure of a closeness before it is bent.
    pub gain: f32,
    /// What it has without that, in the same measure.
    pub sum: f32,
    /// The document next on the way to what it gains by.
    pub via: u32,
}

/// From where ties are followed, the strongest first: the context, and the closest of these documents, each with its
/// closeness, of which `half` counts half. They come in the order of their numbers; of equals the later are taken.
pub(super) fn seeds(
    half: f32,
    context: &[u32],
    closeness: impl Iterator<Item = (u32, f32)>,
) -> Vec<(f32, u32)> {
    let mut seeds: Vec<(f32, u32)> = Vec::with_capacity(STRONG_SEEDS + 1 + context.len());
    for (document, sum) in closeness {
        let least = if seeds.len() < STRONG_SEEDS { half } else { seeds[STRONG_SEEDS - 1].0 };
        if sum >= least {
            let at = seeds.partition_point(|(other, _)| *other > sum);
            seeds.insert(at, (sum, document));
            seeds.truncate(STRONG_SEEDS);
        }
    }
    seeds.extend(context.iter().map(|&seed| (weights::CONTEXT * half, seed)));
    // Stable: equals stay in the order in which they were named.
    seeds.sort_by(|a, b| b.0.total_cmp(&a.0));
    seeds
}

/// By document before the horizon: its best tie to a seed. `closeness` is what a document has without ties.
pub(super) fn ties(
    web: &dyn Web,
    seeds: Vec<(f32, u32)>,
    horizon: u32,
    closeness: &dyn Fn(u32) -> f32,
) -> HashMap<u32, Tie> {
    let mut walk = Walk { closeness, horizon, sums: HashMap::new(), best: HashMap::new(), steps: 0 };
    for (strength, seed) in seeds {
        walk.from(web, strength, seed);
    }
    walk.best
}

struct Walk<'a> {
    closeness: &'a dyn Fn(u32) -> f32,
    horizon: u32,
    /// Closenesses that were asked for: it may take long to find one.
    sums: HashMap<u32, f32>,
    best: HashMap<u32, Tie>,
    steps: usize,
}

impl Walk<'_> {
    fn from(&mut self, web: &dyn Web, strength: f32, seed: u32) {
        if self.steps >= MAX_STEPS {
            return;
        }
        let mut near = Vec::new();
        web.each_tied(seed, &mut |document| near.push(document));
        for &document in &near {
            self.offer(document, strength, seed, seed);
        }
        for via in near {
            if self.steps >= MAX_STEPS {
                return;
            }
            web.each_tied(via, &mut |document| self.offer(document, strength * weights::TIE_FADE, via, seed));
        }
    }

    fn offer(&mut self, document: u32, strength: f32, via: u32, seed: u32) {
        self.steps += 1;
        if document == seed || document >= self.horizon {
            return;
        }
        let sum = *self.sums.entry(document).or_insert_with(|| (self.closeness)(document));
        let gain = (strength - sum) * weights::TIES;
        if gain > 0.0 && self.best.get(&document).is_none_or(|best| gain > best.gain) {
            self.best.insert(document, Tie { gain, sum, via });
        }
    }
}
