//! How close each document is to what is asked: in its words, in its meaning, and by what was said next to it.
//!
//! The three are added as they are, not by rank: an exact word and a like meaning are each worth what they are worth,
//! however many others have as much. Only the sum is bent into 0..1.

use hashbrown::HashMap;

use crate::relevance::lexical::Index;
use crate::relevance::query::Query;
use crate::relevance::score::Factor;
use crate::relevance::ties::Tie;
use crate::relevance::weights;

/// By document before the horizon: its closeness and the parts of it. A part that is off is an empty column.
pub(super) struct Closeness {
    /// Words shared: 0 is none, 1 every word once.
    lexical: Vec<f32>,
    /// The cosine of the meanings, 0 where they point apart.
    semantic: Vec<f32>,
    /// How close, in words and meaning, its neighbours are.
    relations: Vec<f32>,
    /// All together, weighed; empty if it is the words alone.
    sums: Vec<f32>,
    /// What some gain by declared relations.
    ties: HashMap<u32, Tie>,
    /// What a match of words counts.
    trust: f32,
    half: f32,
}

impl Closeness {
    /// Words alone.
    pub fn in_words(index: &Index, query: &Query, horizon: u32) -> Self {
        let lexical = index.matches(query, horizon);
        Self {
            lexical,
            semantic: vec![],
            relations: vec![],
            sums: vec![],
            ties: HashMap::new(),
            trust: 1.0,
            half: weights::HALF_MATCH,
        }
    }

    /// All of it; `texts` say what is asked.
    pub fn in_meaning<'a>(
        index: &Index,
        query: &Query,
        texts: impl IntoIterator<Item = &'a str>,
        horizon: u32,
    ) -> Self {
        let lexical = index.matches(query, horizon);
        let semantic = index.nearness(texts, horizon).unwrap_or_else(|| vec![0.0; lexical.len()]);
        let own =
            lexical.iter().zip(&semantic).map(|(words, near)| words * query.trust + near * weights::SEMANTIC);
        let mut sums: Vec<f32> = own.collect();
        let relations = around(index, &sums);
        sums.iter_mut().zip(&relations).for_each(|(sum, near)| *sum += near * weights::RELATIONS);
        let ties = HashMap::new();
        Self { lexical, semantic, relations, sums, ties, trust: query.trust, half: weights::HALF_CLOSE }
    }

    /// The same, where documents gain by declared relations too.
    pub fn tied(self, ties: HashMap<u32, Tie>) -> Self {
        Self { ties, ..self }
    }

    /// The closeness of a document as a value in 0..1.
    pub fn value(&self, document: u32) -> f32 {
        weights::bent(self.sum(document) + self.tie(document).map_or(0.0, |tie| tie.gain), self.half)
    }

    /// The closeness of a document before it is bent, without declared relations.
    pub fn sum(&self, document: u32) -> f32 {
        self.column().get(document as usize).copied().unwrap_or(0.0)
    }

    /// What a document gains by declared relations, beyond its neighbours in its session.
    pub fn tie(&self, document: u32) -> Option<Tie> {
        // Most needs have none: then nothing is looked up.
        if self.ties.is_empty() { None } else { self.ties.get(&document).copied() }
    }

    /// Whether a document is before the horizon.
    pub fn covers(&self, document: u32) -> bool {
        (document as usize) < self.lexical.len()
    }

    /// The closeness that counts half, before it is bent.
    pub fn half(&self) -> f32 {
        self.half
    }

    /// The documents that are at least half close, the closest first, at most `most`; of equals the later.
    pub fn strongest(&self, most: usize) -> Vec<u32> {
        let mut found: Vec<(f32, u32)> = Vec::with_capacity(most + 1);
        for (document, &sum) in (0..).zip(self.column()) {
            let least = if found.len() < most { self.half } else { found[most - 1].0 };
            if sum >= least {
                let at = found.partition_point(|(other, _)| *other > sum);
                found.insert(at, (sum, document));
                found.truncate(most);
            }
        }
        found.into_iter().map(|(_, document)| document).collect()
    }

    fn column(&self) -> &[f32] {
        if self.sums.is_empty() { &self.lexical } else { &self.sums }
    }

    /// The match of a document's words alone.
    pub fn words(&self, document: u32) -> f32 {
        self.lexical.get(document as usize).copied().unwrap_or(0.0)
    }

    /// The factors lexical, semantic and relations of a document: each has its part in the weight of the closeness.
    pub fn factors(&self, document: u32, weight: f32) -> [Factor; 3] {
        let of = |column: &[f32]| column.get(document as usize).copied().unwrap_or(0.0);
        let (lexical, semantic, relations) = (of(&self.lexical), of(&self.semantic), of(&self.relations));
        let near = relations * weights::RELATIONS + self.tie(document).map_or(0.0, |tie| tie.gain);
        let parts = [lexical * self.trust, semantic * weights::SEMANTIC, near];
        let whole: f32 = parts.iter().sum();
        let sum = self.value(document) * weight;
        let values = [weights::bent(lexical, weights::HALF_MATCH), semantic, weights::bent(near, self.half)];
        // Alone, a part is the whole, bit for bit; and nothing has no parts.
        let contribution = |part: f32| if part == whole { sum } else { sum * (part / whole) };
        std::array::from_fn(|at| Factor { value: values[at], contribution: contribution(parts[at]) })
    }
}

/// By document: what it gains by what was said around it in its session. The closest of that counts, less with each
/// step between; and only what it has more than the document itself, so that the weak are lifted toward the strong
/// and the strong stay apart.
fn around(index: &Index, own: &[f32]) -> Vec<f32> {
    // What a document hands on to the next: itself, or what reached it from further away.
    let mut handed = own.to_vec();
    let mut gains = vec![0.0f32; own.len()];
    for (document, [before, _]) in index.neighbours(own.len()).enumerate() {
        if let Some(&near) = handed.get(before as usize) {
            gains[document] = (near - own[document]).max(0.0);
            handed[document] = own[document].max(near * weights::FADE);
        }
    }
    for (document, [_, after]) in index.neighbours(own.len()).enumerate().rev() {
        handed[document] = own[document];
        if let Some(&near) = handed.get(after as usize) {
            gains[document] = gains[document].max(near - own[document]);
            handed[document] = own[document].max(near * weights::FADE);
        }
    }
    gains
}

#[cfg(test)]
mod tests {
    use crate::relevance::{Candidate, Document, Index, Kind, Need, Ranked, Serves, rank};

    fn said<'a>(content: &'a str, session: Option<&'a str>) -> Document<'a> {
        Document {
            content,
            purpose: "Keep for the team",
            question: None,
            author: "ada",
            role: "engineer",
            session,
        }
    }

    fn index_of(contents: &[&str], session: Option<&str>) -> Index {
        let mut index = Index::new();
        contents.iter().for_each(|content| index.push(&said(content, session)));
        index
    }

    fn need(hint: Option<&str>) -> Need<'_> {
        Need {
            hint,
            role: "analyst",
            interests: vec![],
            now: 1_000,
            horizon: u32::MAX,
            recency_weight: None,
            meaning: true,
            task: None,
            web: None,
            context: vec![],
            threshold: 0.0,
            take: 100,
        }
    }

    /// Every document, alike in all but its number.
    fn ranked(index: &Index, need: &Need<'_>) -> Vec<Ranked> {
        let unit = |number| Candidate { number, serves: Serves::Others, kind: Kind::Finding, epoch: 900 };
        rank(index, need, (0..index.len()).map(unit)).best
    }

    fn of(ranked: &[Ranked], number: u32) -> &Ranked {
        ranked.iter().find(|unit| unit.number == number).expect("a ranked document")
    }

    #[test]
    fn meaning_finds_what_shares_no_word() {
        let texts = [
            "Lunch is at noon in the garden",
            "We chose PostgreSQL for the billing service because it needs transactions",
            "Alice owns the payments module and reviews it",
            "User prefers dark mode and dislikes popups",
        ];
        let index = index_of(&texts, None);
        for (hint, wanted) in [
            ("which database holds invoices", 1),
            ("who is responsible for checkout code", 2),
            ("color theme that customers like", 3),
        ] {
            let found = ranked(&index, &need(Some(hint)));
            assert_eq!(found[0].number, wanted, "{hint}: {found:?}");
            let best = &found[0];
            assert!(best.factors.semantic.contribution > 0.0 && best.factors.lexical.contribution == 0.0);
            assert!(best.factors.relations.contribution == 0.0);
            assert!(best.reason.ends_with("; close in meaning to your hint"), "{}", best.reason);
        }
        let interested = Need { interests: vec!["databases and invoices"], ..need(None) };
        let found = ranked(&index, &interested);
        assert_eq!(found[0].number, 1);
        assert!(
            found[0].reason.contains("close in meaning to your role and interests"),
            "{}",
            found[0].reason
        );
    }

    #[test]
    fn neighbours_of_what_is_close_gain() {
        let texts = ["Где встреча?", "Which database holds invoices?", "Завтра", "Ещё одно", "И ещё"];
        let hint = "the database that holds invoices";
        let apart = ranked(&index_of(&texts, None), &need(Some(hint)));
        let woven = ranked(&index_of(&texts, Some("s")), &need(Some(hint)));
        let gain = |number| of(&woven, number).score - of(&apart, number).score;
        assert!(apart.iter().all(|unit| unit.factors.relations == Default::default()));
        // Nearer is more, either side; the strong one takes nothing from the weak.
        assert!(gain(0) > 0.0 && gain(2) > gain(3) && gain(3) > gain(4) && gain(4) > 0.0);
        assert_eq!(woven[0].number, 1);
        assert_eq!(woven[0].factors.relations.contribution, 0.0);
        let reason = &of(&woven, 2).reason;
        assert!(reason.ends_with("; next to what is closer to your hint"), "{reason}");
    }

    #[test]
    fn another_session_is_not_next_to_it() {
        let mut index = Index::new();
        for (content, session) in [("invoices database", "a"), ("Да", "b"), ("Нет", "a"), ("Может", "b")]
        {
            index.push(&said(content, Some(session)));
        }
        let found = ranked(&index, &need(Some("invoices database")));
        let gained = |number| of(&found, number).factors.relations.contribution > 0.0;
        assert_eq!([0, 1, 2, 3].map(gained), [false, false, true, false]);
    }

    #[test]
    fn what_comes_later_changes_nothing() {
        let mut index = Index::new();
        let texts: Vec<String> =
            (0..700).map(|i| format!("unit {i} speaks of market{} and invoices", i % 9)).collect();
        let hint = "growth of market3 and the bills of unit 7";
        let ask = |index: &Index, horizon| ranked(index, &Need { horizon, ..need(Some(hint)) });
        let mut answers = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            index.push(&said(text, Some(["a", "b", "c"][at % 3])));
            if at % 97 == 3 {
                answers.push((index.len(), ask(&index, index.len())));
            }
        }
        for _ in 0..3 {
            for session in ["a", "b", "c"] {
                index.push(&said(hint, Some(session)));
            }
        }
        for (horizon, answer) in answers {
            assert_eq!(ask(&index, horizon), answer);
        }
    }

    #[test]
    fn without_meaning_sessions_and_vectors_count_nothing() {
        let texts = ["Which database holds invoices?", "It is PostgreSQL", "growth of the market", "Ещё"];
        let (apart, woven) = (index_of(&texts, None), index_of(&texts, Some("s")));
        for hint in [None, Some("the database of bills"), Some("market growth")] {
            let asked = Need { meaning: false, interests: vec!["databases"], ..need(hint) };
            let found = ranked(&woven, &asked);
            assert_eq!(found, ranked(&apart, &asked));
            for unit in &found {
                assert_eq!(unit.factors.semantic, Default::default());
                assert_eq!(unit.factors.relations, Default::default());
                assert_eq!(unit.factors.lexical.contribution == 0.0, unit.factors.lexical.value == 0.0);
            }
        }
    }

    #[test]
    fn a_script_without_tokens_is_found_by_its_words() {
        let texts = ["Доля рынка выросла", "Обед в полдень", "The market grew"];
        let found = ranked(&index_of(&texts, None), &need(Some("о рынке")));
        assert_eq!(found[0].number, 0);
        assert!(found.iter().all(|unit| unit.factors.semantic.value == 0.0));
    }

    proptest::proptest! {
        #[test]
        fn scores_stay_in_bounds_and_sum_up(
            texts in proptest::collection::vec("(?s).{0,60}|[a-z ]{0,40}", 1..12),
            hint in proptest::option::of("(?s).{0,60}|[a-z ]{0,40}"),
        ) {
            let mut index = Index::new();
            for (at, text) in texts.iter().enumerate() {
                let session = texts.get(at % 3).map(String::as_str);
                index.push(&Document { question: Some(text), ..said(text, session) });
            }
            let asked = Need { interests: texts.iter().map(String::as_str).collect(), ..need(hint.as_deref()) };
            let found = ranked(&index, &asked);
            assert_eq!(found, ranked(&index, &asked));
            assert_eq!(found.len(), texts.len());
            assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
            for unit in found {
                let sum: f32 = unit.factors.all().iter().map(|(_, factor)| factor.contribution).sum();
                assert!(unit.score.is_finite() && (0.0..=1.0).contains(&unit.score));
                assert!((sum - unit.score).abs() < 1e-5, "{sum} {unit:?}");
            }
        }
    }
}
