//! The short way gives what the whole way gives.

use super::*;
use crate::relevance::{Document, Index, Kind};

/// Enough that not everything is measured.
const MANY: u32 = MEASURED_WHOLE + 4_000;

/// Some of the documents, all alike.
struct Part<F: Fn(u32) -> bool> {
    first: u32,
    count: u32,
    may: F,
}

impl<F: Fn(u32) -> bool> Pool for Part<F> {
    fn first(&self) -> u32 {
        self.first
    }

    fn candidate(&self, number: u32) -> Option<Candidate> {
        let may = number >= self.first && number < self.count && (self.may)(number);
        may.then_some(Candidate { number, kind: Kind::Finding, epoch: u64::from(number) })
    }

    fn all(&self) -> impl Iterator<Item = Candidate> {
        (self.first..self.count).filter_map(|number| self.candidate(number))
    }

    fn epoch(&self, document: u32) -> u64 {
        u64::from(document)
    }
}

const PLACES: [&str; 8] =
    ["kitchen", "harbour", "library", "hospital", "stadium", "airport", "museum", "garden"];
const THINGS: [&str; 9] =
    ["oven", "contract", "ticket", "database", "violin", "vaccine", "engine", "budget", "lesson"];
const DEEDS: [&str; 7] = ["repaired", "sold", "measured", "painted", "forgotten", "delivered", "insured"];

/// Documents of many topics, some next to each other in sessions.
fn index(count: u32) -> Index {
    let mut index = Index::new();
    for number in 0..count as usize {
        let content = format!(
            "Note {number}: the {} in the {} was {} by crew {}",
            THINGS[number * 7 % 9],
            PLACES[number * 5 % 8],
            DEEDS[number * 3 % 7],
            number % 101,
        );
        let session = format!("session-{}", number / 20);
        index.push(&Document {
            content: &content,
            purpose: "Keep for the team",
            question: None,
            author: ["ada", "ben", "eve", "joe", "kim"][number % 5],
            role: ["engineer", "analyst"][number % 2],
            session: (number % 3 == 0).then_some(&*session),
        });
    }
    index
}

fn need<'a>(hint: Option<&'a str>, take: usize) -> Need<'a> {
    Need {
        hint,
        role: "analyst",
        interests: vec![],
        now: u64::from(MANY) + 10,
        horizon: u32::MAX,
        recency_weight: None,
        meaning: true,
        direction: None,
        take,
    }
}

/// How many of the whole way's units the short way finds; the scores of all it finds must be the same.
fn found(index: &Index, need: &Need<'_>, pool: &impl Pool) -> f32 {
    let exact = rank(index, &Need { take: usize::MAX >> 1, ..need.clone() }, pool.all());
    let short = choose(index, need, pool);
    assert_eq!(short.len(), need.take.min(exact.len()));
    assert!(short.windows(2).all(|pair| pair[0].score >= pair[1].score));
    for one in &short {
        let same = exact.iter().find(|other| other.number == one.number).expect("a candidate");
        // Damping counts how many better ones were found; everything else is the same, bit for bit.
        let parts = |unit: &Ranked| {
            let factors = unit.factors;
            [
                factors.semantic,
                factors.lexical,
                factors.relations,
                factors.role,
                factors.kind,
                factors.recency,
            ]
        };
        assert_eq!(parts(one), parts(same));
    }
    let best = &exact[..short.len()];
    let known = short.iter().filter(|one| best.iter().any(|other| other.number == one.number));
    known.count() as f32 / short.len().max(1) as f32
}

#[test]
fn the_short_way_finds_the_same_with_the_same_scores() {
    let index = index(MANY);
    let everything = Part { first: 0, count: MANY, may: |_| true };
    let hints = [
        Some("where can I bake bread"),
        Some("who fixed the machine at the airport, crew 17"),
        Some("music instruments that were brought to the sports arena"),
        Some("Note 4711"),
        Some("was in the"),
        None,
    ];
    for take in [10, 300] {
        let shares: Vec<f32> =
            hints.iter().map(|hint| found(&index, &need(*hint, take), &everything)).collect();
        let mean = shares.iter().sum::<f32>() / shares.len() as f32;
        assert!(mean >= 0.98, "{take}: {shares:?}");
    }
    let newest = Need { recency_weight: Some(1.0), ..need(None, 50) };
    assert_eq!(found(&index, &newest, &everything), 1.0);
}

#[test]
fn a_filter_is_asked_before_the_cut() {
    let index = index(MANY);
    let asked = need(Some("where can I bake bread"), 10);
    // One in a thousand; none that is close; a good half; the newest few; a poll in the middle.
    assert_eq!(found(&index, &asked, &Part { first: 0, count: MANY, may: |n| n % 1_000 == 77 }), 1.0);
    assert_eq!(
        found(&index, &asked, &Part { first: 0, count: MANY, may: |n| n * 7 % 9 == 4 && n % 40 == 1 }),
        1.0
    );
    assert!(found(&index, &asked, &Part { first: 0, count: MANY, may: |n| n * 7 % 9 > 3 }) >= 0.9);
    assert_eq!(found(&index, &asked, &Part { first: MANY - 9, count: MANY, may: |_| true }), 1.0);
    assert_eq!(found(&index, &asked, &Part { first: 9_000, count: MANY, may: |n| n % 2 == 0 }), 1.0);
    assert!(choose(&index, &asked, &Part { first: 0, count: MANY, may: |_| false }).is_empty());
}

#[test]
fn what_comes_later_changes_nothing_on_the_short_way() {
    let horizon = MEASURED_WHOLE + 500;
    let pool = |count| Part { first: 0, count, may: |_| true };
    let asked = Need { horizon, ..need(Some("who fixed the machine at the airport"), 20) };
    let now = choose(&index(horizon), &asked, &pool(horizon));
    assert_eq!(choose(&index(MANY), &asked, &pool(MANY)), now);
}

#[test]
fn favoured_documents_are_looked_at() {
    struct Favouring<P: Pool>(P);
    impl<P: Pool> Pool for Favouring<P> {
        fn first(&self) -> u32 {
            self.0.first()
        }
        fn candidate(&self, document: u32) -> Option<Candidate> {
            self.0.candidate(document)
        }
        fn all(&self) -> impl Iterator<Item = Candidate> {
            self.0.all()
        }
        fn epoch(&self, document: u32) -> u64 {
            self.0.epoch(document)
        }
        fn favoured(&self) -> Vec<u32> {
            vec![0, 4, u32::MAX]
        }
    }
    let index = index(MANY);
    let everything = Part { first: 0, count: MANY, may: |_| true };
    let asked = need(Some("vaccine"), 10);
    let mut view = View::new(&index, &asked, true);
    let guesses = estimates(&mut view, &everything, 0, MEASURED_LEAST, None);
    let candidates = scored(&mut view, &Favouring(everything), &guesses).expect("enough");
    for document in [0, 4] {
        assert!(candidates.iter().any(|candidate| candidate.number == document));
    }
}
