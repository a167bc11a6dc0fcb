//! The best of very many documents without a close look at each.
//!
//! A small Field is measured whole. In a large one every document's words are measured, but its meaning is only
//! estimated, from the signs of its direction (`vectors`); most documents are told from the best by words and signs
//! alone, before an estimate is made of them. Of the best by the estimate the meaning is measured, and of the best of
//! these, and what was said around them, everything. A score is therefore always the one that `rank`
//! gives; what can be missed is a document whose signs are much further from the need's than its direction is, or one
//! whose only merit is a part that the estimate leaves out (neighbours further away, the asker's role in its text).
//! A task's units are lifted in the estimate; what declared relations bring near is found from the closest by the
//! estimate and from the asker's context, and looked at beside the rest. Only with a threshold everything is measured
//! in a Field of any size: how many units reach it is known in no other way.
//!
//! Who may be chosen is asked before the cut: a filter that few documents pass finds these few.

use std::collections::BinaryHeap;
use std::num::NonZeroU32;

use crate::relevance::closeness::Words;
use crate::relevance::lexical::Index;
use crate::relevance::pace::Pace;
use crate::relevance::score::{Candidate, Kind, Need, Ranking, Serves, View, rank};
use crate::relevance::sessions::Side;
use crate::relevance::ties::Web;
use crate::relevance::weights::{self, Weights};

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
    /// How many candidates there are before a horizon.
    fn count(&self, horizon: u32) -> usize {
        self.all().filter(|candidate| candidate.number < horizon).count()
    }
    /// Whether none of so many documents in a row can be a candidate, where that is known without asking each: then
    /// they are not even estimated. It may say no of some.
    fn is_cold(&self, first: u32, count: usize) -> bool {
        let _ = (first, count);
        false
    }
    /// The tasks whose units serve the asker, as the index numbers them. It must agree with what candidates serve.
    fn tasks(&self) -> Vec<(NonZeroU32, Serves)> {
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
/// At least what rounding may add to an estimate, whose parts are no more than 1.
const ROUNDING: f32 = 1e-6;
/// Documents whose meaning is measured: one in so many, but not fewer than [`MEASURED_LEAST`].
const MEASURED_SHARE: u32 = 128;
const MEASURED_LEAST: usize = 4 * 1024;
/// And not fewer than this for each unit asked for.
const MEASURED_EACH: usize = 64;
/// Documents that are scored for each unit asked for, and at least.
const SCORED_EACH: usize = 4;
const SCORED_LEAST: usize = 768;
/// Of one author as many are scored for each unit asked for, and at least: others must find room too.
const BY_AUTHOR_LEAST: usize = 256;
/// The closest documents whose neighbours are looked at, and how far; of the very closest further, for what they lend
/// counts there too.
const LENDING: usize = 256;
const LENT_STEPS: usize = 4;
const LENDING_FAR: usize = 32;
const LENT_STEPS_FAR: usize = 8;
/// Among so many of the closest documents, and what was said around them, are those from which relations are followed.
const TYING: usize = 32;

/// A document with an estimate of its score. Ordered by the estimate, then by number: greater is better.
#[derive(Clone, Copy, PartialEq)]
struct Guess {
    score: f32,
    document: u32,
    /// What of the score is closeness, and what is not.
    close: f32,
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
pub fn choose(index: &Index, need: &Need<'_>, pool: &impl Pool) -> Ranking {
    let horizon = need.horizon.min(index.len());
    let first = pool.first().min(horizon);
    let from_first = || (first..horizon).filter_map(|at| pool.candidate(at));
    if horizon - first <= FEW {
        let candidates: Vec<Candidate> = from_first().collect();
        // What is tied to nothing gains by no relation, so what else is close makes no difference.
        if need.web.is_none_or(|web| !candidates.iter().any(|candidate| is_tied(web, candidate.number))) {
            return listed(View::new(index, need, false), candidates);
        }
    }
    if horizon <= MEASURED_WHOLE {
        return rank(index, need, from_first());
    }
    let few = horizon - first <= MEASURED_WHOLE;
    if need.threshold > 0.0 && !few {
        return rank(index, need, pool.all());
    }
    let mut view = View::new(index, need, true);
    if few {
        tie(&mut view, pool, None);
        return listed(view, from_first().collect());
    }
    let most =
        MEASURED_LEAST.max(((horizon - first) / MEASURED_SHARE) as usize).max(MEASURED_EACH * need.take);
    let guesses = estimates(&mut view, pool, first, most, None);
    tie(&mut view, pool, (first == 0).then_some(&*guesses));
    if let Some(candidates) = scored(&mut view, pool, guesses) {
        return Ranking { available: pool.count(horizon), ..listed(view, candidates) };
    }
    // Few of the best may be chosen: then only those that may are estimated, or measured if they are few.
    let candidates: Vec<Candidate> = pool.all().filter(|candidate| candidate.number < horizon).collect();
    let available = candidates.len();
    if available > MEASURED_WHOLE as usize {
        let mut allowed = vec![0u64; (horizon as usize).div_ceil(64)];
        candidates.iter().for_each(|c| allowed[c.number as usize / 64] |= 1 << (c.number % 64));
        let guesses = estimates(&mut view, pool, first, most, Some(&allowed));
        if let Some(found) = scored(&mut view, pool, guesses) {
            return Ranking { available, ..listed(view, found) };
        }
    }
    listed(view, candidates)
}

/// The best of candidates that are few enough to measure each.
fn listed(mut view: View<'_>, mut candidates: Vec<Candidate>) -> Ranking {
    let horizon = view.horizon;
    candidates.retain(|candidate| candidate.number < horizon);
    candidates.sort_unstable_by_key(|candidate| candidate.number);
    candidates.dedup_by_key(|candidate| candidate.number);
    view.measure(Some(candidates.iter().map(|candidate| candidate.number).collect()));
    view.best(candidates.into_iter())
}

fn is_tied(web: &dyn Web, document: u32) -> bool {
    let mut tied = false;
    web.each_tied(document, &mut |_| tied = true);
    tied
}

/// Finds what declared relations bring near, where they count. The closest are among these guesses of all documents.
fn tie(view: &mut View<'_>, pool: &impl Pool, guesses: Option<&[Guess]>) {
    if view.need.web.is_none() {
        return;
    }
    let own = if guesses.is_none() { estimates(view, pool, 0, MEASURED_LEAST, None) } else { Vec::new() };
    let guesses = guesses.unwrap_or(&own);
    let mut closest: Vec<&Guess> = guesses.iter().collect();
    if closest.len() > TYING {
        closest.select_nth_unstable_by(TYING, |a, b| b.close.total_cmp(&a.close));
        closest.truncate(TYING);
    }
    let mut among: Vec<u32> = closest.iter().map(|guess| guess.document).collect();
    for document in among.clone() {
        around(view, document, LENT_STEPS, &mut among);
    }
    among.sort_unstable();
    among.dedup();
    view.tie(Some(&among));
}

/// Adds what was said some steps before and after a document in its session.
fn around(view: &View<'_>, document: u32, most: usize, more: &mut Vec<u32>) {
    let sessions = view.index.sessions();
    for side in Side::BOTH {
        let steps = std::iter::successors(Some(document), |at| sessions.next_to(*at, side, view.horizon));
        more.extend(steps.skip(1).take(most));
    }
}

/// The best documents by estimate, in the order of their numbers, their meaning measured; `allowed` ones, bit by bit.
fn estimates(
    view: &mut View<'_>,
    pool: &impl Pool,
    first: u32,
    most: usize,
    allowed: Option<&[u64]>,
) -> Vec<Guess> {
    let index = view.index;
    let stands = stands(view);
    let lifts = lifts(pool, view.weights.task);
    let mut sieve = Sieve::new(view, stands.len());
    let mut best = Few { guesses: Vec::with_capacity(2 * most), most, least: f32::NEG_INFINITY };
    let newest_first = view.horizon.saturating_sub(NEWEST).max(first);
    let mut pace = Pace::new();
    let mut block_first = first;
    while block_first < view.horizon {
        let newest = block_first >= newest_first;
        // Of the newest each one's age counts; so they are blocks of one.
        let count = if newest { 1 } else { (newest_first - block_first).min(BLOCK as u32) as usize };
        let block = block_first..block_first + count as u32;
        block_first = block.end;
        pace.walk(count);
        if pool.is_cold(block.start, count) {
            continue;
        }
        let recency = view.recency(pool.epoch(block.end - 1));
        sieve.ask_for(view, &stands, best.least, recency);
        let (standing, tasks) = (index.standing(block.start, count), index.tasks(block.start, count));
        sieve.pass(view, block.start, standing);
        if !lifts.is_empty() {
            sieve.pass_too((0..count).filter(|at| lift(&lifts, tasks[*at]) > 0.0));
        }
        for (at, own) in sieve.passed() {
            let document = block.start + at as u32;
            let mut rest = stands[standing[at] as usize] + recency;
            if !lifts.is_empty() {
                rest += lift(&lifts, tasks[at]);
            }
            let score = view.closeness.bend(own) * view.weights.closeness + rest;
            let may = |bits: &[u64]| bits[document as usize / 64] >> (document % 64) & 1 == 1;
            if score > best.least && allowed.is_none_or(may) {
                best.add(Guess { score, document, close: score - rest, rest });
            }
        }
    }
    measured(view, best.into_ordered())
}

/// Tells of most documents of a block that they are not among the best, by less than an estimate: by what words and
/// signs come to, against what a document of its standing must have.
struct Sieve {
    /// What meaning adds to what a document has by itself, by how many signs are apart.
    meant: Vec<f32>,
    /// By standing: what a document must have by itself; for this least estimate and recency.
    enough: Vec<f32>,
    of_least: f32,
    of_recency: f32,
    /// Of the documents of the block: what each has by itself.
    own: [f32; BLOCK],
    apart: [u16; BLOCK],
    /// The places in the block of those that passed, in order.
    passed: [u16; BLOCK],
    count: usize,
}

impl Sieve {
    fn new(view: &View<'_>, standings: usize) -> Self {
        let vectors = view.index.vectors();
        let meant = |apart| vectors.likely_nearness(apart) * weights::SEMANTIC;
        Self {
            meant: (0..=vectors.dimensions()).map(meant).collect(),
            enough: vec![f32::NEG_INFINITY; standings],
            of_least: f32::NEG_INFINITY,
            of_recency: 0.0,
            own: [0.0; BLOCK],
            apart: [0; BLOCK],
            passed: [0; BLOCK],
            count: 0,
        }
    }

    /// Lets pass what may be estimated at more than `least`, with so much for recency.
    fn ask_for(&mut self, view: &View<'_>, stands: &[f32], least: f32, recency: f32) {
        if least > self.of_least || recency > self.of_recency {
            // Some more, so that it need not be reckoned anew for every block.
            (self.of_least, self.of_recency) = (least, recency * 1.25);
            let rest = |stand: &f32| stand + self.of_recency + ROUNDING;
            for (enough, stand) in self.enough.iter_mut().zip(stands) {
                *enough = view.closeness.unbend((least - rest(stand)) / view.weights.closeness);
            }
        }
    }

    /// Looks at documents in a row, no more than a block, of these standings.
    fn pass(&mut self, view: &View<'_>, first: u32, standing: &[u32]) {
        let count = standing.len();
        let (apart, own) = (&mut self.apart[..count], &mut self.own[..count]);
        match view.closeness.asked() {
            Some(asked) => {
                view.index.vectors().signs_apart(asked, first, apart);
                own.iter_mut().zip(&*apart).for_each(|(own, apart)| *own = self.meant[usize::from(*apart)]);
            }
            None => own.fill(0.0),
        }
        if let Words::All(matches, _) = view.closeness.words() {
            let trust = view.closeness.trust();
            own.iter_mut().zip(&matches[first as usize..]).for_each(|(own, lexical)| *own += lexical * trust);
        }
        // Nearly none is worth more than this look: no branch tells them apart, which would be guessed wrong.
        let (mut found, passed) = (0, &mut self.passed[..count]);
        for (at, (own, standing)) in (0u16..).zip(own.iter().zip(standing)) {
            passed[found] = at;
            found += usize::from(*own > self.enough[*standing as usize]);
        }
        self.count = found;
    }

    /// Lets these places of the block pass too.
    fn pass_too(&mut self, places: impl Iterator<Item = usize>) {
        let mut all = self.passed[..self.count].to_vec();
        all.extend(places.map(|at| at as u16));
        all.sort_unstable();
        all.dedup();
        self.count = all.len();
        self.passed[..self.count].copy_from_slice(&all);
    }

    /// What passed: its place in the block, and what it has by itself.
    fn passed(&self) -> impl Iterator<Item = (usize, f32)> {
        self.passed[..self.count].iter().map(|at| (usize::from(*at), self.own[usize::from(*at)]))
    }
}

/// By standing: what the role of the author and the kind add to an estimate.
fn stands(view: &mut View<'_>) -> Vec<f32> {
    let Weights { role: of_role, kind: of_kind, .. } = view.weights;
    let standings = view.index.standings();
    let mut stand =
        |&(role, kind): &(u32, Kind)| view.likeness_of(role) * of_role + weights::kind_value(kind) * of_kind;
    standings.iter().map(&mut stand).collect()
}

/// What the tasks that serve the asker add, by their numbers; empty if none does.
fn lifts(pool: &impl Pool, weight: f32) -> Vec<f32> {
    let tasks = if weight > 0.0 { pool.tasks() } else { Vec::new() };
    let last = tasks.iter().map(|(task, _)| task.get() as usize + 1).max();
    let mut lifts = vec![0.0; last.unwrap_or(0)];
    for (task, serves) in tasks {
        lifts[task.get() as usize] = weights::task_value(serves) * weight;
    }
    lifts
}

fn lift(lifts: &[f32], task: u32) -> f32 {
    lifts.get(task as usize).copied().unwrap_or(0.0)
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

/// The candidates that are worth scoring, among documents whose meaning is measured: `None` if too few of these are
/// candidates at all.
fn scored(view: &mut View<'_>, pool: &impl Pool, guesses: Vec<Guess>) -> Option<Vec<Candidate>> {
    let (index, take) = (view.index, view.need.take);
    let wanted = SCORED_LEAST.max(SCORED_EACH * take).min(guesses.len());
    let by_author = BY_AUTHOR_LEAST.max(SCORED_EACH * take);
    let mut heap = BinaryHeap::from(guesses);
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
    let mut more = Vec::new();
    for (at, lender) in lenders.into_iter().enumerate() {
        around(view, lender, if at < LENDING_FAR { LENT_STEPS_FAR } else { LENT_STEPS }, &mut more);
    }
    more.sort_unstable();
    more.dedup();
    candidates.extend(more.into_iter().filter_map(|document| pool.candidate(document)));
    candidates.extend(tied(view, pool, wanted));
    Some(candidates)
}

/// The best of the candidates that gain by declared relations, as many as are wanted.
fn tied(view: &mut View<'_>, pool: &impl Pool, wanted: usize) -> Vec<Candidate> {
    let near: Vec<(u32, f32)> = view.closeness.tied().collect();
    let mut found: Vec<(Candidate, f32)> = near
        .into_iter()
        .filter_map(|(document, close)| {
            let candidate = pool.candidate(document)?;
            Some((candidate, close * view.weights.closeness + view.rest(candidate)))
        })
        .collect();
    if found.len() > wanted {
        found.select_nth_unstable_by(wanted, |(a, x), (b, y)| y.total_cmp(x).then(a.number.cmp(&b.number)));
        found.truncate(wanted);
    }
    found.into_iter().map(|(candidate, _)| candidate).collect()
}

/// The same documents, with the nearness of their meaning as it is.
fn measured(view: &View<'_>, mut guesses: Vec<Guess>) -> Vec<Guess> {
    let index = view.index;
    let mut near = vec![0.0; guesses.len()];
    if let Some(asked) = view.closeness.asked() {
        let documents: Vec<u32> = guesses.iter().map(|guess| guess.document).collect();
        index.vectors().nearnesses(asked, &documents, &mut near);
    }
    for (guess, near) in guesses.iter_mut().zip(near) {
        let lexical = match view.closeness.words() {
            Words::All(matches, _) => matches[guess.document as usize],
            Words::Single(..) => 0.0,
        };
        guess.close = view.closeness.estimate(lexical, near) * view.weights.closeness;
        guess.score = guess.close + guess.rest;
    }
    guesses
}

impl View<'_> {
    /// What of a candidate's score is no closeness, as it is estimated.
    fn rest(&mut self, candidate: Candidate) -> f32 {
        let Candidate { number, serves, kind, epoch } = candidate;
        self.likeness(number) * self.weights.role
            + weights::kind_value(kind) * self.weights.kind
            + weights::task_value(serves) * self.weights.task
            + self.recency(epoch)
    }

    /// What a moment adds to an estimate.
    fn recency(&self, epoch: u64) -> f32 {
        weights::recency_value(self.need.now.saturating_sub(epoch)) * self.weights.recency
    }
}

#[cfg(test)]
#[path = "shortlist_tests.rs"]
mod tests;
