//! What declared relations bring near: documents tied to the asker's context, or to what is close to the need.
//!
//! A document takes over a part of that by which another, one or two steps of declared relations away, is closer to
//! the need than itself: what supports, answers or contradicts something that matters, matters. As with neighbours
//! in a session only the difference counts, so no document passes by a tie what it is tied to.

use std::fmt;

use hashbrown::HashMap;

use crate::relevance::closeness::Closeness;
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
    /// The document next on the way to what it gains by.
    pub via: u32,
}

/// By document: its best tie to the context or to what is close by itself.
pub(super) fn ties(web: &dyn Web, context: &[u32], closeness: &Closeness) -> HashMap<u32, Tie> {
    let of_context = context.iter().map(|&seed| (weights::CONTEXT * closeness.half(), seed));
    let strong = closeness.strongest(STRONG_SEEDS).into_iter().map(|seed| (closeness.sum(seed), seed));
    let mut seeds: Vec<(f32, u32)> = strong.chain(of_context).collect();
    // Stable: equals stay in the order in which they were named.
    seeds.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut walk = Walk { closeness, best: HashMap::new(), steps: 0 };
    for (strength, seed) in seeds {
        walk.from(web, strength, seed);
    }
    walk.best
}

struct Walk<'a> {
    closeness: &'a Closeness,
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
        let gain = (strength - self.closeness.sum(document)) * weights::TIES;
        if document == seed || gain <= 0.0 || !self.closeness.covers(document) {
            return;
        }
        let best = self.best.entry(document).or_default();
        if gain > best.gain {
            *best = Tie { gain, via };
        }
    }
}
