//! The score of a unit for a need: a weighted sum of factors, each a value in 0..=1, damped for diversity.

use crate::relevance::closeness::{Closeness, Words};
use crate::relevance::diversity::{Best, Placed, Scored};
use crate::relevance::lexical::{Index, Norms};
use crate::relevance::query::Query;
use crate::relevance::reason;
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
    /// All kinds, in their order.
    pub(super) const ALL: [Self; 11] = [
        Self::Decision,
        Self::Contradiction,
        Self::HumanDirective,
        Self::Constraint,
        Self::Correction,
        Self::Finding,
        Self::Question,
        Self::Synthesis,
        Self::Assumption,
        Self::Intention,
        Self::Observation,
    ];

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
    /// Part of recency in the score, 0..=1; `None` is the usual part.
    pub recency_weight: Option<f32>,
    /// Whether meaning and relations count, or words alone.
    pub meaning: bool,
    /// The need as a direction of the index's dimensions, where the index is given its directions; else the built-in
    /// model makes it.
    pub direction: Option<&'a [f32]>,
    /// How many units to give, at most.
    pub take: usize,
}

/// A unit that the asker may see.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its document in the index.
    pub number: u32,
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
    /// How close, in words and meaning, that is which was said next to it in its session.
    pub relations: Factor,
    /// Nearness to the asker's role and interests.
    pub role: Factor,
    /// Importance of the unit's kind.
    pub kind: Factor,
    /// Newness.
    pub recency: Factor,
    /// What better units of the same author left of the score; contributes 0 or less.
    pub diversity: Factor,
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

/// Scores every candidate and gives the best `take`, strictly by score; ties: greater epoch, then greater number.
///
/// Candidates at or beyond the horizon are passed over. The same index content before the horizon, need and
/// candidates give the same answer, bit for bit.
pub fn rank(index: &Index, need: &Need<'_>, candidates: impl Iterator<Item = Candidate>) -> Vec<Ranked> {
    let mut view = View::new(index, need, true);
    view.measure(None);
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
        let words = |query: &Query| match all {
            true => Words::All(index.matches(query, horizon)),
            false => Words::Single(Norms::new(index, horizon)),
        };
        Self {
            index,
            need,
            horizon,
            closeness: Closeness::new(words(query), query, meaning, horizon),
            profile_words: None,
            likenesses: vec![f32::NAN; index.names()],
            role_terms: index.terms_of(need.role),
            weights: Weights::new(hint.is_some(), need.recency_weight),
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
            true => Words::Single(Norms::new(index, self.horizon)),
            false => Words::All(index.matches(&self.profile, self.horizon)),
        });
    }

    /// The best of these candidates, all of which were measured.
    pub fn best(mut self, candidates: impl Iterator<Item = Candidate>) -> Vec<Ranked> {
        let mut best = Best::new(self.need.take, self.index.names());
        for candidate in candidates {
            let score = self.score(candidate);
            let Candidate { number, kind, epoch } = candidate;
            best.add(self.index.author(number), Scored { score, epoch, number, kind });
        }
        best.into_sorted().into_iter().map(|placed| self.ranked(placed)).collect()
    }

    /// The sum of all factors but diversity.
    fn score(&mut self, candidate: Candidate) -> f32 {
        let close = self.closeness.value(candidate.number) * self.weights.closeness;
        let [role, kind, recency] = self.about(candidate);
        let sum = close + role.contribution + kind.contribution + recency.contribution;
        sum.clamp(0.0, 1.0)
    }

    /// The factors role, kind and recency: who said it, what it is, and when.
    fn about(&mut self, candidate: Candidate) -> [Factor; 3] {
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
        ]
    }

    /// How much the role of a document's author has in common with the need's role: 1 is the same words.
    pub fn likeness(&mut self, document: u32) -> f32 {
        let role = self.index.role(document);
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
        let Scored { score, epoch, number, kind } = placed.unit;
        let candidate = Candidate { number, kind, epoch };
        let [lexical, semantic, relations] = self.closeness.factors(number, self.weights.closeness);
        let [role, kind_factor, recency] = self.about(candidate);
        let diversity = Factor { value: placed.damping, contribution: score - self.score(candidate) };
        let factors = Factors { semantic, lexical, relations, role, kind: kind_factor, recency, diversity };
        let reason = reason::sentence(self, candidate, &factors);
        Ranked { number, score, reason, factors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relevance::lexical::Document;

    const AGE: u64 = 10;

    fn plain(content: &str) -> Document<'_> {
        Document {
            content,
            purpose: "Keep for the team",
            question: None,
            author: "ada",
            role: "engineer",
            session: None,
        }
    }

    fn index_of(docs: &[Document<'_>]) -> Index {
        let mut index = Index::new();
        docs.iter().for_each(|doc| index.push(doc));
        index
    }

    fn need<'a>(hint: Option<&'a str>) -> Need<'a> {
        Need {
            hint,
            role: "analyst",
            interests: vec![],
            now: 1_000,
            horizon: u32::MAX,
            recency_weight: None,
            meaning: false,
            direction: None,
            take: 10,
        }
    }

    /// Candidates alike in all but their number.
    fn alike(count: u32) -> impl Iterator<Item = Candidate> {
        (0..count).map(|number| Candidate { number, kind: Kind::Finding, epoch: 1_000 - AGE })
    }

    fn order(ranked: &[Ranked]) -> Vec<u32> {
        ranked.iter().map(|unit| unit.number).collect()
    }

    fn found_first(contents: &[&str], hint: &str) -> u32 {
        let docs: Vec<Document<'_>> = contents.iter().map(|content| plain(content)).collect();
        let ranked = rank(&index_of(&docs), &need(Some(hint)), alike(docs.len() as u32));
        assert!(ranked[0].factors.lexical.value > ranked[1].factors.lexical.value, "{hint}: {ranked:?}");
        ranked[0].number
    }

    #[test]
    fn words_decide_in_any_script() {
        for (wanted, hint) in [
            ("The cafe opened", "café"),
            ("Das Café in der Straße", "cafe strasse"),
            ("Die Prüfung der Übersicht", "PRUFUNG"),
            ("Доля рынка выросла", "о рынке"),
            ("市场增长了百分之二十三", "增长"),
            ("東京のカフェが開いた", "東京カフェ"),
            ("시장이 성장했다", "시장 규모"),
            ("نما السُّوق بسرعة", "السوق"),
            ("ตลาดเติบโต", "ตลาด"),
            ("shipped 🎉", "🎉"),
            ("grew by 23% this year", "23%"),
            ("needs v1.2.0 or newer", "1.2.0"),
            ("see mem-42 for that", "mem-42"),
            ("the parseConfig function fails", "parse_config"),
            ("children went home", "child going"),
            ("ｆｕｌｌ ｗｉｄｔｈ", "full width"),
        ] {
            assert_eq!(
                found_first(&["nothing of the kind", wanted, "grew by 32%, v2.1, mem-24"], hint),
                1,
                "{hint}"
            );
        }
    }

    #[test]
    fn a_strong_match_is_well_above_a_recent_unit() {
        let index = index_of(&[
            plain("European market growth for HR tools"),
            plain("Lunch is at noon"),
            plain("Hello"),
        ]);
        let units = [
            Candidate { number: 0, kind: Kind::Observation, epoch: 1 },
            Candidate { number: 1, kind: Kind::Decision, epoch: 999 },
            Candidate { number: 2, kind: Kind::Observation, epoch: 998 },
        ];
        let ranked = rank(&index, &need(Some("growth of the European market")), units.into_iter());
        assert_eq!(order(&ranked), [0, 1, 2]);
        assert!(ranked[0].score > 0.6 && ranked[1].score < 0.2, "{ranked:?}");
    }

    #[test]
    fn role_moves_the_order() {
        let by = |role| Document { role, author: role, ..plain("A thing") };
        let index = index_of(&[by("designer"), by("market_researcher"), by("market analyst"), by("lawyer")]);
        let wanted = Need { role: "market_researcher", ..need(None) };
        assert_eq!(order(&rank(&index, &wanted, alike(4))), [1, 2, 3, 0]);
        let index = index_of(&[plain("law"), plain("our market research says"), plain("lunch")]);
        assert_eq!(order(&rank(&index, &wanted, alike(3)))[0], 1);
        let interested = Need { interests: vec!["lunch breaks"], ..need(None) };
        assert_eq!(order(&rank(&index, &interested, alike(3)))[0], 2);
    }

    #[test]
    fn kind_moves_the_order() {
        use Kind::*;
        let ranks = [
            vec![Decision, Contradiction, HumanDirective],
            vec![Constraint, Correction, Finding],
            vec![Question, Synthesis],
            vec![Assumption, Intention],
            vec![Observation],
        ];
        for hint in [None, Some("thing")] {
            for pair in ranks.windows(2) {
                for (&better, &worse) in pair[0].iter().flat_map(|a| pair[1].iter().map(move |b| (a, b))) {
                    let index = index_of(&[plain("A thing"), plain("A thing")]);
                    let units = [better, worse].into_iter().enumerate();
                    let units = units.map(|(i, kind)| Candidate { number: i as u32, kind, epoch: 990 });
                    assert_eq!(order(&rank(&index, &need(hint), units)), [0, 1], "{better:?} {worse:?}");
                }
            }
        }
    }

    #[test]
    fn recency_moves_the_order_as_far_as_asked() {
        let index = index_of(&[plain("market growth"), plain("lunch"), plain("market growth")]);
        let units = || [(0, 10), (1, 999), (2, 900)].into_iter();
        let candidates = || units().map(|(number, epoch)| Candidate { number, kind: Kind::Finding, epoch });
        let asked = |recency_weight| Need { recency_weight, ..need(Some("market growth")) };
        assert_eq!(order(&rank(&index, &asked(None), candidates())), [2, 0, 1]);
        assert_eq!(order(&rank(&index, &asked(Some(1.0)), candidates())), [1, 2, 0]);
        let without = rank(&index, &asked(Some(0.0)), candidates());
        assert!(without.iter().all(|unit| unit.factors.recency.contribution == 0.0));
        for strange in [f32::NAN, f32::INFINITY, -3.0, 7.0] {
            let ranked = rank(&index, &asked(Some(strange)), candidates());
            assert!(ranked.iter().all(|unit| (0.0..=1.0).contains(&unit.score)));
        }
    }

    #[test]
    fn authors_take_turns_among_equals() {
        let by = |author| Document { author, ..plain("Same words here") };
        let index = index_of(&[by("ada"), by("ada"), by("ada"), by("ben")]);
        let units =
            (0..4).map(|number| Candidate { number, kind: Kind::Finding, epoch: 900 - u64::from(number) });
        let ranked = rank(&index, &need(Some("same words")), units);
        assert_eq!(order(&ranked), [0, 3, 1, 2]);
        assert_eq!(ranked[0].factors.diversity.contribution, 0.0);
        assert!(ranked[2].factors.diversity.contribution < 0.0);
    }

    #[test]
    fn ties_go_to_the_later() {
        let by = |author| Document { author, ..plain("Same") };
        let index = index_of(&[by("a"), by("b"), by("c")]);
        let far = Need { now: u64::MAX, ..need(None) };
        let units =
            [(0, 5), (1, 7), (2, 5)].map(|(number, epoch)| Candidate { number, kind: Kind::Finding, epoch });
        let ranked = rank(&index, &far, units.into_iter());
        assert_eq!(ranked[0].score, ranked[2].score);
        assert_eq!(order(&ranked), [1, 2, 0]);
    }

    #[test]
    fn what_comes_later_changes_nothing() {
        let mut index = Index::new();
        let texts: Vec<String> =
            (0..600).map(|i| format!("unit {i} speaks of market{} and growth", i % 9)).collect();
        let mut answers = Vec::new();
        let hint = "market3 growth, unit 7, later strange words; stranger words";
        let ask = |index: &Index, horizon| {
            let asked = Need { horizon, interests: vec!["strange things"], ..need(Some(hint)) };
            rank(index, &asked, alike(index.len()))
        };
        for text in &texts {
            index.push(&plain(text));
            answers.push((index.len(), ask(&index, index.len())));
        }
        let flood: String = (0..200_000).map(|i| format!("{i}later strange words analyst ")).collect();
        index.push(&Document { role: "analyst", author: "eve", ..plain(&flood) });
        for (horizon, answer) in answers.iter().step_by(37) {
            assert_eq!(&ask(&index, *horizon), answer);
        }
    }

    #[test]
    fn equal_input_gives_equal_answers() {
        let texts: Vec<String> = (0..300).map(|i| format!("unit {} of {} things", i % 17, i % 5)).collect();
        let answer = || {
            let docs: Vec<Document<'_>> = texts.iter().map(|text| plain(text)).collect();
            rank(&index_of(&docs), &need(Some("unit 3 of 4 things and others")), alike(300))
        };
        assert_eq!(answer(), answer());
    }

    #[test]
    fn nothing_is_no_trouble() {
        let empty = Index::new();
        assert!(rank(&empty, &need(Some("x")), alike(3)).is_empty());
        let index = index_of(&[
            plain(""),
            Document { content: "", purpose: "", question: None, author: "", role: "", session: None },
        ]);
        for hint in [None, Some(""), Some(" ...! "), Some("the of and")] {
            for role in ["", "analyst"] {
                let ranked = rank(&index, &Need { role, ..need(hint) }, alike(2));
                assert_eq!(ranked.len(), 2);
                assert!(
                    ranked.iter().all(|unit| (0.0..=1.0).contains(&unit.score) && !unit.reason.is_empty())
                );
            }
        }
        assert!(rank(&index, &Need { take: 0, ..need(None) }, alike(2)).is_empty());
        assert_eq!(order(&rank(&index, &Need { horizon: 1, ..need(None) }, alike(2))), [0]);
    }

    #[test]
    fn contributions_sum_to_the_score() {
        let index = index_of(&[plain("market growth"), plain("growth of analysts"), plain("lunch")]);
        for unit in rank(&index, &Need { interests: vec!["lunch"], ..need(Some("growth")) }, alike(3)) {
            let Factors { semantic, lexical, relations, role, kind, recency, diversity } = unit.factors;
            let sum: f32 = [semantic, lexical, relations, role, kind, recency, diversity]
                .iter()
                .map(|factor| factor.contribution)
                .sum();
            assert!((sum - unit.score).abs() < 1e-6);
        }
    }

    proptest::proptest! {
        #[test]
        fn scores_stay_in_bounds(
            texts in proptest::collection::vec("(?s).{0,60}", 1..12),
            hint in proptest::option::of("(?s).{0,60}"),
            now in proptest::prelude::any::<u64>(),
            recency_weight in proptest::option::of(proptest::prelude::any::<f32>()),
        ) {
            let docs: Vec<Document<'_>> =
                texts.iter().map(|text| Document { author: text, role: text, question: Some(text), ..plain(text) }).collect();
            let asked = Need { interests: texts.iter().map(String::as_str).collect(), now, recency_weight, ..need(hint.as_deref()) };
            let ranked = rank(&index_of(&docs), &asked, alike(docs.len() as u32));
            assert_eq!(ranked.len(), docs.len().min(10));
            for pair in ranked.windows(2) {
                assert!(pair[0].score >= pair[1].score);
            }
            assert!(ranked.iter().all(|unit| unit.score.is_finite() && (0.0..=1.0).contains(&unit.score)));
            assert!(ranked.iter().all(|unit| !unit.reason.contains('\n')));
        }
    }
}
