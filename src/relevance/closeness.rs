//! How close each document is to what is asked: in its words, in its meaning, and by what was said next to it.
//!
//! The three are added as they are, not by rank: an exact word and a like meaning are each worth what they are worth,
//! however many others have as much. Only the sum is bent into 0..1.

use hashbrown::HashMap;

use crate::relevance::lexical::{Index, Norms};
use crate::relevance::query::Query;
use crate::relevance::score::Factor;
use crate::relevance::sessions::Side;
use crate::relevance::ties::{self, Tie, Web};
use crate::relevance::vectors::Asked;
use crate::relevance::weights;

/// How well documents meet a query in words: of all at once, or of one at a time.
pub(super) enum Words {
    /// By document before the horizon, and the greatest of them.
    All(Vec<f32>, f32),
    /// As they are asked for: less work for a few documents of many.
    /// Not of those that are put away, before the second.
    Single(Norms, u32),
}

impl Words {
    /// Of all documents before the horizon at once.
    pub fn all(matches: Vec<f32>) -> Self {
        // Side by side: each comparison would wait for the one before it.
        let mut most = [0.0f32; 16];
        let (many, rest) = matches.as_chunks::<16>();
        for found in many {
            most.iter_mut()
                .zip(found)
                .for_each(|(most, found)| *most = if *found > *most { *found } else { *most });
        }
        let most = most.iter().chain(rest).fold(0.0, |most: f32, found| most.max(*found));
        Self::All(matches, most)
    }

    /// A match of a document: 0 is none, 1 every word once.
    pub fn of(&self, index: &Index, query: &Query, document: u32) -> f32 {
        match self {
            Self::All(matches, _) => matches.get(document as usize).copied().unwrap_or(0.0),
            Self::Single(_, warm) if document < *warm => 0.0,
            Self::Single(norms, _) => index.match_of(query, norms, document),
        }
    }

    /// At least the greatest match.
    fn most(&self) -> f32 {
        match self {
            Self::All(_, most) => *most,
            Self::Single(..) => weights::K1 + 2.0,
        }
    }
}

/// The parts of a document's closeness.
#[derive(Clone, Copy, Default)]
struct Parts {
    /// Words shared.
    lexical: f32,
    /// The cosine of the meanings, 0 where they point apart.
    semantic: f32,
    /// How much closer, in words and meaning, its neighbours are.
    relations: f32,
}

/// Which documents were measured, each in a row.
enum Rows {
    /// All before the horizon.
    All,
    /// These, sorted.
    Some(Vec<u32>),
}

/// How close documents are; of those that were measured.
pub(super) struct Closeness {
    words: Words,
    /// The need's direction; `None` if it has none.
    asked: Option<Asked>,
    /// Whether meaning and neighbours count.
    meaning: bool,
    rows: Rows,
    parts: Vec<Parts>,
    horizon: u32,
    /// What some gain by declared relations.
    ties: HashMap<u32, Tie>,
    /// What a match of words counts.
    trust: f32,
    half: f32,
}

impl Closeness {
    /// Nothing measured yet. `meaning` is what is asked as a direction, where meaning counts.
    pub fn new(words: Words, query: &Query, meaning: Option<Option<Asked>>, horizon: u32) -> Self {
        let counts = meaning.is_some();
        Self {
            words,
            asked: meaning.flatten(),
            meaning: counts,
            rows: Rows::Some(vec![]),
            parts: vec![],
            horizon,
            ties: HashMap::new(),
            trust: if counts { query.trust } else { 1.0 },
            half: if counts { weights::HALF_CLOSE } else { weights::HALF_MATCH },
        }
    }

    /// What is asked as a direction, if documents can be near to it.
    pub fn asked(&self) -> Option<&Asked> {
        self.asked.as_ref()
    }

    /// The words' part of it, by document.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// What words and meaning come to, bent into 0..1.
    pub fn estimate(&self, lexical: f32, semantic: f32) -> f32 {
        self.bend(lexical * self.trust + semantic * weights::SEMANTIC)
    }

    /// What a match of words counts, where 1 is a match of every word.
    pub fn trust(&self) -> f32 {
        self.trust
    }

    /// What words and meaning come to in all, bent into 0..1.
    pub fn bend(&self, own: f32) -> f32 {
        weights::bent(own, self.half)
    }

    /// What comes to this when it is bent; less than anything where everything comes to more.
    pub fn unbend(&self, bent: f32) -> f32 {
        match bent {
            bent if bent >= 1.0 => f32::INFINITY,
            bent if bent > 0.0 => self.half * bent / (1.0 - bent),
            _ => f32::NEG_INFINITY,
        }
    }

    /// Measures every document before the horizon.
    pub fn measure_all(&mut self, index: &Index, query: &Query) {
        self.rows = Rows::All;
        self.parts = self.unrelated(index, query, &mut (0..self.horizon));
        if self.meaning {
            let own: Vec<f32> = self.parts.iter().map(|parts| self.own(*parts)).collect();
            for (parts, gain) in self.parts.iter_mut().zip(around(index, &own)) {
                parts.relations = gain;
            }
        }
    }

    /// Measures some documents before the horizon: sorted, each once. They come out as if all had been measured.
    pub fn measure(&mut self, index: &Index, query: &Query, documents: Vec<u32>) {
        self.parts = self.unrelated(index, query, &mut documents.iter().copied());
        self.rows = Rows::Some(documents);
        if self.meaning {
            let Rows::Some(documents) = &self.rows else { return };
            let most = self.most();
            let gain = |(document, parts): (&u32, &Parts)| {
                self.gain(index, query, *document, self.own(*parts), most)
            };
            let gains: Vec<f32> = documents.iter().zip(&self.parts).map(gain).collect();
            self.parts.iter_mut().zip(gains).for_each(|(parts, gain)| parts.relations = gain);
        }
    }

    /// Words and meaning of documents.
    fn unrelated(
        &self,
        index: &Index,
        query: &Query,
        documents: &mut dyn Iterator<Item = u32>,
    ) -> Vec<Parts> {
        let documents: Vec<u32> = documents.collect();
        let mut near = vec![0.0; documents.len()];
        if let Some(asked) = &self.asked {
            index.vectors().nearnesses(asked, &documents, &mut near);
        }
        let parts = documents.iter().zip(near).map(|(&document, semantic)| {
            let lexical = self.words.of(index, query, document);
            Parts { lexical, semantic, relations: 0.0 }
        });
        parts.collect()
    }

    /// What a document has by itself.
    fn own(&self, parts: Parts) -> f32 {
        parts.lexical * self.trust + parts.semantic * weights::SEMANTIC
    }

    /// At least what any document has by itself.
    fn most(&self) -> f32 {
        self.words.most() * self.trust + weights::SEMANTIC
    }

    /// The same as `around` for one document that has so much by itself, found by going along its session as far as
    /// anybody there can be close enough; nobody is closer than `most`.
    fn gain(&self, index: &Index, query: &Query, document: u32, own: f32, most: f32) -> f32 {
        let mut best = own;
        for side in Side::BOTH {
            let mut at = document;
            let mut steps = 0;
            while let Some(next) = index.sessions().next_to(at, side, self.horizon)
                && faded(most, steps) > best
            {
                best = best.max(faded(self.own_of(index, query, next), steps));
                (at, steps) = (next, steps + 1);
            }
        }
        best - own
    }

    fn own_of(&self, index: &Index, query: &Query, document: u32) -> f32 {
        if let Some(row) = self.row(document) {
            return self.own(self.parts[row]);
        }
        let lexical = self.words.of(index, query, document);
        let semantic = self.asked.as_ref().map_or(0.0, |asked| index.vectors().nearness(asked, document));
        self.own(Parts { lexical, semantic, relations: 0.0 })
    }

    fn row(&self, document: u32) -> Option<usize> {
        match &self.rows {
            Rows::All => Some(document as usize),
            Rows::Some(documents) => documents.binary_search(&document).ok(),
        }
    }

    fn of(&self, document: u32) -> Parts {
        self.row(document).and_then(|row| self.parts.get(row)).copied().unwrap_or_default()
    }

    /// The closeness of a measured document as a value in 0..1.
    pub fn value(&self, document: u32) -> f32 {
        weights::bent(
            self.sum(self.of(document)) + self.tie_of(document).map_or(0.0, |tie| tie.gain),
            self.half,
        )
    }

    /// The closeness of a document before it is bent, without declared relations.
    fn sum(&self, parts: Parts) -> f32 {
        self.own(parts) + parts.relations * weights::RELATIONS
    }

    /// The same of any document before the horizon, measured or not; nobody has more than `most` by itself.
    fn sum_of(&self, index: &Index, query: &Query, document: u32, most: f32) -> f32 {
        if let Some(parts) = self.row(document).and_then(|row| self.parts.get(row)) {
            return self.sum(*parts);
        }
        let own = self.own_of(index, query, document);
        let gain = if self.meaning { self.gain(index, query, document, own, most) } else { 0.0 };
        own + gain * weights::RELATIONS
    }

    /// Finds what declared relations bring near: to the context, and to the closest by themselves of `among`, or of all
    /// documents if all are measured and none are given. Documents gain by it whether they are measured before or
    /// after.
    pub fn tie(
        &mut self,
        index: &Index,
        query: &Query,
        web: &dyn Web,
        context: &[u32],
        among: Option<&[u32]>,
    ) {
        let most = self.most();
        let sum = |document| self.sum_of(index, query, document, most);
        let seeds = match among {
            Some(documents) => ties::seeds(self.half, context, documents.iter().map(|at| (*at, sum(*at)))),
            None => ties::seeds(
                self.half,
                context,
                (0..).zip(&self.parts).map(|(at, parts)| (at, self.sum(*parts))),
            ),
        };
        self.ties = ties::ties(web, seeds, self.horizon, &sum);
    }

    /// What a document gains by declared relations, beyond its neighbours in its session.
    pub fn tie_of(&self, document: u32) -> Option<Tie> {
        // Most needs have none: then nothing is looked up.
        if self.ties.is_empty() { None } else { self.ties.get(&document).copied() }
    }

    /// All documents that gain by declared relations, with how close they are by it in 0..1; in no order.
    pub fn tied(&self) -> impl Iterator<Item = (u32, f32)> {
        self.ties.iter().map(|(document, tie)| (*document, weights::bent(tie.sum + tie.gain, self.half)))
    }

    /// The match of a measured document's words alone.
    pub fn word_match(&self, document: u32) -> f32 {
        self.of(document).lexical
    }

    /// The factors lexical, semantic and relations of a measured document: each has its part in the weight of the
    /// closeness.
    pub fn factors(&self, document: u32, weight: f32) -> [Factor; 3] {
        let Parts { lexical, semantic, relations } = self.of(document);
        let near = relations * weights::RELATIONS + self.tie_of(document).map_or(0.0, |tie| tie.gain);
        let parts = [lexical * self.trust, semantic * weights::SEMANTIC, near];
        let whole: f32 = parts.iter().sum();
        let sum = self.value(document) * weight;
        let values = [weights::bent(lexical, weights::HALF_MATCH), semantic, weights::bent(near, self.half)];
        // Alone, a part is the whole, bit for bit; and nothing has no parts.
        let contribution = |part: f32| if part == whole { sum } else { sum * (part / whole) };
        std::array::from_fn(|at| Factor { value: values[at], contribution: contribution(parts[at]) })
    }
}

/// What is left of a closeness after so many steps beyond the first.
fn faded(closeness: f32, steps: u32) -> f32 {
    (0..steps).fold(closeness, |left, _| left * weights::FADE)
}

/// By document: what it gains by what was said around it in its session. The closest of that counts, less with each
/// step between; and only what it has more than the document itself, so that the weak are lifted toward the strong
/// and the strong stay apart.
fn around(index: &Index, own: &[f32]) -> Vec<f32> {
    // What a document hands on to the next: itself, or what reached it from further away.
    let mut handed = own.to_vec();
    let mut gains = vec![0.0f32; own.len()];
    let neighbours = || index.sessions().neighbours(own.len());
    for (document, [before, _]) in neighbours().enumerate() {
        if let Some(&near) = handed.get(before as usize) {
            gains[document] = (near - own[document]).max(0.0);
            handed[document] = own[document].max(near * weights::FADE);
        }
    }
    for (document, [_, after]) in neighbours().enumerate().rev() {
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
            warm: 0,
            recency_weight: None,
            meaning: true,
            direction: None,
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
