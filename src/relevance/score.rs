//! The score of a unit for a need: a weighted sum of factors, each a value in 0..=1, damped for diversity.

use crate::relevance::closeness::{Closeness, Words};
use crate::relevance::diversity::{Best, Placed, Scored};
use crate::relevance::lexical::{Index, Norms};
use crate::relevance::pace::{self, Pace};
use crate::relevance::query::Query;
use crate::relevance::reason;
use crate::relevance::ties::Web;
use crate::relevance::vectors::Asked;
use crate::relevance::weights::{self, Weights};

/// What sort of thing a unit says; decides its importance (specification, section 8, factor "type").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// What was decided.
    Decision,
    /// That two units cannot both hold.
    Contradiction,
    /// What a human ordered.
    HumanDirective,
    /// A bound on what may be done.
    Constraint,
    /// What replaces a mistake.
    Correction,
    /// What was found out.
    Finding,
    /// What is to be found out.
    Question,
    /// What several units say together.
    Synthesis,
    /// What is taken as given.
    Assumption,
    /// What is about to be done.
    Intention,
    /// What was seen.
    Observation,
}

impl Kind {
    /// The kind in a reader's words, lower case.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Contradiction => "contradiction",
            Self::HumanDirective => "human directive",
            Self::Constraint => "constraint",
            Self::Correction => "correction",
            Self::Finding => "finding",
            Self::Question => "question",
            Self::Synthesis => "synthesis",
            Self::Assumption => "assumption",
            Self::Intention => "intention",
            Self::Observation => "observation",
        }
    }
}

/// Who asks, and for what.
#[derive(Clone, Debug)]
pub struct Need<'a> {
    /// What the agent is about to do, in its own words. Without it the need is role and interests.
    pub hint: Option<&'a str>,
    /// The role of the scope.
    pub role: &'a str,
    /// What the agent cares for.
    pub interests: Vec<&'a str>,
    /// Epoch of the request; ages count from it.
    pub now: u64,
    /// Only documents with a smaller number exist for this request.
    pub horizon: u32,
    /// Documents with a smaller number are put away: their words are not looked for.
    pub warm: u32,
    /// Part of recency in the score, 0..=1; `None` is the usual part.
    pub recency_weight: Option<f32>,
    /// Whether meaning counts, and what was said next to what is close, or words alone.
    pub meaning: bool,
    /// The need as a direction of the index's dimensions, where the index is given its directions; else the built-in
    /// model makes it.
    pub direction: Option<&'a [f32]>,
    /// The task that the asker works on, if that counts.
    pub task: Option<&'a str>,
    /// The declared relations between documents, if they count.
    pub web: Option<&'a dyn Web>,
    /// Documents in the asker's context: of its task, or its own. What is tied to them gains.
    pub context: Vec<u32>,
    /// Candidates of a smaller score are passed over, 0..=1.
    pub threshold: f32,
    /// How many units to give, at most.
    pub take: usize,
}

/// Whom a unit serves, seen from the asker's task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Serves {
    /// No task, or one that has nothing to do with the asker's, or the asker named none.
    #[default]
    Others,
    /// A task on which the asker's depends, or which depends on it.
    Dependent,
    /// The asker's task.
    Task,
}

/// A unit that the asker may see.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its document in the index.
    pub number: u32,
    /// Whom it serves.
    pub serves: Serves,
    /// What it is.
    pub kind: Kind,
    /// When it was committed.
    pub epoch: u64,
}

/// One factor of a score.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Factor {
    /// How much of it the unit has, 0..=1.
    pub value: f32,
    /// What it adds to the score.
    pub contribution: f32,
}

/// All factors of a score; their contributions sum to it, but for rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Factors {
    /// Nearness in meaning to the hint, or without one to role and interests.
    pub semantic: Factor,
    /// Words shared with the same.
    pub lexical: Factor,
    /// How much closer that is which it is tied to by declared relations, or which was said next to it in its session.
    pub relations: Factor,
    /// Whether it serves the asker's task, or one tied to it.
    pub task: Factor,
    /// Nearness to the asker's role and interests.
    pub role: Factor,
    /// Importance of the unit's kind.
    pub kind: Factor,
    /// Newness.
    pub recency: Factor,
    /// What better units of the same author left of the score; contributes 0 or less.
    pub diversity: Factor,
}

impl Factors {
    /// Each with its name, in the order of the specification.
    #[must_use]
    pub fn all(&self) -> [(&'static str, Factor); 8] {
        [
            ("semantic", self.semantic),
            ("lexical", self.lexical),
            ("role", self.role),
            ("task", self.task),
            ("relations", self.relations),
            ("type", self.kind),
            ("recency", self.recency),
            ("diversity", self.diversity),
        ]
    }
}

/// What was ranked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking {
    /// The best, best first.
    pub best: Vec<Ranked>,
    /// How many candidates there are at or above the threshold, those included.
    pub available: usize,
}

/// A unit with its place in the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Its document in the index.
    pub number: u32,
    /// Relevance, finite, 0..=1.
    pub score: f32,
    /// Why, for a human.
    pub reason: String,
    /// Why, in numbers.
    pub factors: Factors,
}

/// Scores every candidate and gives the best `take` at or above the threshold, strictly by score; ties: greater
/// epoch, then greater number.
///
/// Candidates at or beyond the horizon are passed over. The same index content before the horizon, need and
/// candidates give the same answer, bit for bit.
pub fn rank(index: &Index, need: &Need<'_>, candidates: impl Iterator<Item = Candidate>) -> Ranking {
    let mut view = View::new(index, need, true);
    view.measure(None);
    view.tie(None);
    let horizon = view.horizon;
    view.best(candidates.filter(|candidate| candidate.number < horizon))
}

impl Need<'_> {
    /// What the need says: the hint if there is one, else role and interests.
    fn texts(&self, hint: bool) -> impl Iterator<Item = &str> {
        let profile = std::iter::once(self.role).chain(self.interests.iter().copied()).filter(move |_| !hint);
        self.hint.filter(|_| hint).into_iter().chain(profile)
    }
}

/// A need laid over an index: everything about it that is the same for all candidates.
pub(super) struct View<'a> {
    pub index: &'a Index,
    pub need: &'a Need<'a>,
    pub horizon: u32,
    /// The hint; `None` if there is no word in it.
    pub hint: Option<Query>,
    /// Role and interests.
    pub profile: Query,
    /// To the hint, or without one to role and interests.
    pub closeness: Closeness,
    /// Matches of role and interests; `None` without a hint: then the closeness is made of these.
    profile_words: Option<Words>,
    /// By an author role's number: its likeness to the need's role; NaN until first asked for.
    likenesses: Vec<f32>,
    role_terms: (Vec<u32>, usize),
    pub weights: Weights,
}

impl<'a> View<'a> {
    /// A view in which nothing is measured yet. `all` says whether the words of all documents are wanted, or of few.
    pub fn new(index: &'a Index, need: &'a Need<'a>, all: bool) -> Self {
        let horizon = need.horizon.min(index.len());
        let hint = need.hint.map(|hint| Query::new(index, [hint], horizon)).filter(|query| !query.is_empty());
        let profile =
            Query::new(index, std::iter::once(need.role).chain(need.interests.iter().copied()), horizon);
        let query = hint.as_ref().unwrap_or(&profile);
        let meaning = (need.meaning && index.knows_meaning()).then(|| match need.direction {
            Some(direction) => Asked::new(direction),
            None => index.direction(need.texts(hint.is_some())),
        });
        let words = match all {
            true => Words::all(index.matches(query, need.warm, horizon)),
            false => Words::Single(Norms::new(index, horizon), need.warm),
        };
        Self {
            index,
            need,
            horizon,
            closeness: Closeness::new(words, query, meaning, horizon),
            profile_words: None,
            likenesses: vec![f32::NAN; index.names()],
            role_terms: index.terms_of(need.role),
            weights: Weights::new(hint.is_some(), need.task.is_some(), need.recency_weight),
            hint,
            profile,
        }
    }

    /// Measures how close documents are: these, sorted and each once, or all before the horizon.
    pub fn measure(&mut self, documents: Option<Vec<u32>>) {
        let (index, query) = (self.index, self.hint.as_ref().unwrap_or(&self.profile));
        let few = documents.is_some();
        match documents {
            Some(documents) => self.closeness.measure(index, query, documents),
            None => self.closeness.measure_all(index, query),
        }
        self.profile_words = self.hint.as_ref().map(|_| match few {
            true => Words::Single(Norms::new(index, self.horizon), self.need.warm),
            false => Words::all(index.matches(&self.profile, self.need.warm, self.horizon)),
        });
    }

    /// Finds what declared relations bring near, where they count: among these documents are the closest, or, all of
    /// them measured, among all.
    pub fn tie(&mut self, among: Option<&[u32]>) {
        let Some(web) = self.need.web else { return };
        let query = self.hint.as_ref().unwrap_or(&self.profile);
        self.closeness.tie(self.index, query, web, &self.need.context, among);
    }

    /// The best of these candidates, all of which were measured.
    pub fn best(mut self, candidates: impl Iterator<Item = Candidate>) -> Ranking {
        let mut best = Best::new(self.need.take, self.need.threshold, self.index.names());
        let mut pace = Pace::new();
        for candidate in candidates {
            pace.walk(pace::MEASURED);
            let score = self.score(candidate);
            best.add(self.index.author(candidate.number), Scored { score, candidate });
        }
        let available = best.available();
        Ranking {
            best: best.into_sorted().into_iter().map(|placed| self.ranked(placed)).collect(),
            available,
        }
    }

    /// The sum of all factors but diversity.
    fn score(&mut self, candidate: Candidate) -> f32 {
        let close = self.closeness.value(candidate.number) * self.weights.closeness;
        let about = self.about(candidate);
        let sum = about.iter().fold(close, |sum, factor| sum + factor.contribution);
        sum.clamp(0.0, 1.0)
    }

    /// The factors role, kind, recency and task: who said it, what it is, when, and for what.
    fn about(&mut self, candidate: Candidate) -> [Factor; 4] {
        let profile = match &self.profile_words {
            Some(words) => words.of(self.index, &self.profile, candidate.number),
            None => self.closeness.word_match(candidate.number),
        };
        let profile = weights::bent(profile, weights::HALF_MATCH);
        let role = self.likeness(candidate.number).max(profile * weights::ROLE_IN_TEXT);
        let age = self.need.now.saturating_sub(candidate.epoch);
        let factor = |value: f32, weight: f32| Factor { value, contribution: value * weight };
        [
            factor(role, self.weights.role),
            factor(weights::kind_value(candidate.kind), self.weights.kind),
            factor(weights::recency_value(age), self.weights.recency),
            factor(weights::task_value(candidate.serves), self.weights.task),
        ]
    }

    /// How much the role of a document's author has in common with the need's role: 1 is the same words.
    pub fn likeness(&mut self, document: u32) -> f32 {
        self.likeness_of(self.index.role(document))
    }

    /// The same of a role by its number.
    pub fn likeness_of(&mut self, role: u32) -> f32 {
        let Some(known) = self.likenesses.get_mut(role as usize) else { return 0.0 };
        if known.is_nan() {
            let terms = self.index.role_terms(role);
            let (wanted, all) = (&self.role_terms.0, self.role_terms.1);
            let shared = terms.iter().filter(|term| wanted.binary_search(term).is_ok()).count();
            *known = 2.0 * shared as f32 / (terms.len() + all).max(1) as f32;
        }
        *known
    }

    fn ranked(&mut self, placed: Placed) -> Ranked {
        let Scored { score, candidate } = placed.unit;
        let number = candidate.number;
        let [lexical, semantic, relations] = self.closeness.factors(number, self.weights.closeness);
        let [role, kind, recency, task] = self.about(candidate);
        let diversity = Factor { value: placed.damping, contribution: score - self.score(candidate) };
        let factors = Factors { semantic, lexical, relations, task, role, kind, recency, diversity };
        let reason = reason::sentence(self, candidate, &factors);
        Ranked { number, score, reason, factors }
    }
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;
