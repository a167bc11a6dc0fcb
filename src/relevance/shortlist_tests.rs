//! The short way gives what the whole way gives.

use super::*;
use crate::relevance::{Document, Index, Kind, Ranked, Reader};

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
        may.then_some(Candidate {
            number,
            serves: Serves::Others,
            kind: Kind::Finding,
            epoch: u64::from(number),
        })
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

fn document<'a>(content: &'a str, author: &'a str, role: &'a str) -> Document<'a> {
    Document { content, purpose: "Keep for the team", question: None, author, role, session: None }
}

/// Documents of many topics, some next to each other in sessions.
fn index(count: u32) -> Index {
    index_with(count, |_| None)
}

/// The same, for tasks.
fn index_with(count: u32, task: impl Fn(u32) -> Option<NonZeroU32>) -> Index {
    let mut index = Index::new();
    let mut reader = Reader::default();
    for number in 0..count as usize {
        let content = format!(
            "Note {number}: the {} in the {} was {} by crew {}",
            THINGS[number * 7 % 9],
            PLACES[number * 5 % 8],
            DEEDS[number * 3 % 7],
            number % 101,
        );
        let session = format!("session-{}", number / 20);
        let author = ["ada", "ben", "eve", "joe", "kim"][number % 5];
        let role = ["engineer", "analyst"][number % 2];
        let session = (number % 3 == 0).then_some(&*session);
        let document = Document { session, ..document(&content, author, role) };
        let reading = index.known().read(&mut reader, &document, false);
        index.enter(&document, Kind::Finding, task(number as u32), &reading);
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
        warm: 0,
        recency_weight: None,
        meaning: true,
        direction: None,
        task: None,
        web: None,
        context: vec![],
        threshold: 0.0,
        take,
    }
}

/// How many of the whole way's units the short way finds; the scores of all it finds must be the same.
fn found(index: &Index, need: &Need<'_>, pool: &impl Pool) -> f32 {
    let Ranking { best: exact, available } =
        rank(index, &Need { take: usize::MAX >> 1, ..need.clone() }, pool.all());
    let Ranking { best: short, available: counted } = choose(index, need, pool);
    assert_eq!(counted, available);
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
                factors.task,
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

/// Matching words, estimating, measuring (two pauses); what a text may contradict; and everything measured.
#[test]
fn every_long_walk_pauses() {
    let index = index(MANY);
    let pool = Part { first: 0, count: MANY, may: |_| true };
    let need = need(Some("who repaired the oven in the kitchen"), 10);
    let pauses = std::rc::Rc::new(std::cell::Cell::new(0));
    let counted = std::rc::Rc::clone(&pauses);
    crate::relevance::pause_with(move || counted.set(counted.get() + 1));
    choose(&index, &need, &pool);
    assert_eq!(pauses.take(), 4);
    let sought =
        index.sought(&mut Reader::default(), &document("The oven was sold", "ada", "engineer"), None);
    assert!(!index.rivals(&sought, 0..MANY, |_| true).is_empty());
    assert!(pauses.take() >= 1);
    rank(&index, &need, pool.all());
    assert!(pauses.take() >= 2 * MANY * 8 / (16 * 1024));
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
    assert!(choose(&index, &asked, &Part { first: 0, count: MANY, may: |_| false }).best.is_empty());
}

#[test]
fn what_comes_later_changes_nothing_on_the_short_way() {
    let horizon = MEASURED_WHOLE + 500;
    let pool = |count| Part { first: 0, count, may: |_| true };
    let asked = Need { horizon, ..need(Some("who fixed the machine at the airport"), 20) };
    let now = choose(&index(horizon), &asked, &pool(horizon));
    assert_eq!(choose(&index(MANY), &asked, &pool(MANY)), now);
}

/// Everything, each fifth unit of some stretch for the asker's task; task 3 is tied to it.
struct Serving(Part<fn(u32) -> bool>);

fn task_of(number: u32) -> Option<NonZeroU32> {
    match number {
        9_000..9_050 if number.is_multiple_of(5) => NonZeroU32::new(2),
        12_000..12_010 => NonZeroU32::new(3),
        _ => NonZeroU32::new(1),
    }
}

impl Pool for Serving {
    fn first(&self) -> u32 {
        self.0.first
    }

    fn candidate(&self, document: u32) -> Option<Candidate> {
        let served = task_of(document).map(NonZeroU32::get);
        let serves = match served {
            Some(2) => Serves::Task,
            Some(3) => Serves::Dependent,
            _ => Serves::Others,
        };
        Some(Candidate { serves, ..self.0.candidate(document)? })
    }

    fn all(&self) -> impl Iterator<Item = Candidate> {
        (self.0.first..self.0.count).filter_map(|number| self.candidate(number))
    }

    fn epoch(&self, document: u32) -> u64 {
        self.0.epoch(document)
    }

    fn tasks(&self) -> Vec<(NonZeroU32, Serves)> {
        let task = |number| NonZeroU32::new(number).expect("no zero");
        vec![(task(3), Serves::Dependent), (task(2), Serves::Task)]
    }
}

#[test]
fn what_the_task_alone_lifts_is_found() {
    let index = index_with(MANY, task_of);
    for hint in [None, Some("where can I bake bread")] {
        let asked = Need { task: Some("task"), ..need(hint, 20) };
        let everything = Serving(Part { first: 0, count: MANY, may: |_| true });
        assert!(found(&index, &asked, &everything) >= 0.95, "{hint:?}");
        let half = Serving(Part { first: 0, count: MANY, may: |number| number % 2 == 0 });
        assert!(found(&index, &asked, &half) >= 0.95, "{hint:?}");
        // A vaccine in the library is nothing to bake with: only the task brings it so far.
        let brought = |asked: &Need<'_>| {
            let best = choose(&index, asked, &everything).best;
            best.iter().filter(|unit| unit.factors.task.value == 1.0).count()
        };
        if hint.is_none() {
            assert_eq!(brought(&asked), 10);
        } else {
            assert!(brought(&asked) > brought(&Need { task: None, ..asked.clone() }), "{hint:?}");
        }
    }
}

/// A chain of relations: each document is tied to the next in the list.
#[derive(Debug)]
struct Chain(Vec<u32>);

impl Web for Chain {
    fn each_tied(&self, document: u32, each: &mut dyn FnMut(u32)) {
        for pair in self.0.windows(2) {
            if let Some(at) = pair.iter().position(|one| *one == document) {
                each(pair[1 - at]);
            }
        }
    }

    fn in_words(&self, document: u32, other: u32) -> Option<String> {
        self.0.contains(&document).then(|| format!("supports {other}"))
    }
}

#[test]
fn what_relations_alone_lift_is_found() {
    let index = index(MANY);
    let hint = Some("Note 4711");
    let everything = Part { first: 0, count: MANY, may: |_| true };
    // The weakest of all, one and two steps away from the closest.
    let weakest = rank(&index, &need(hint, MANY as usize), everything.all()).best;
    let [first, .., near, far] = &weakest[..] else { panic!("documents") };
    let (first, near, far) = (first.number, near.number, far.number);
    assert_eq!(first, 4711);
    let chain = Chain(vec![first, near, far, u32::MAX]);
    let tied = Need { web: Some(&chain), ..need(hint, 200) };
    assert!(found(&index, &tied, &everything) >= 0.95);
    let places = |need: &Need<'_>| {
        let best = choose(&index, need, &everything).best;
        [near, far].map(|number| best.iter().position(|one| one.number == number))
    };
    let [Some(one), Some(two)] = places(&tied) else { panic!("{:?}", places(&tied)) };
    assert!(one < two);
    assert_eq!(places(&need(hint, 200)), [None; 2]);
    // The same where few may be chosen, where only what is new is asked, and with a threshold.
    let of_chain = Part { first: 0, count: MANY, may: |number| number == near || number == far };
    assert_eq!(found(&index, &tied, &of_chain), 1.0);
    let polled = Part { first: near, count: near + 300, may: |_| true };
    assert_eq!(found(&index, &Need { horizon: MANY.min(near + 300), ..tied.clone() }, &polled), 1.0);
    let newer = Part { first: MANY - 4_500, count: MANY, may: |_| true };
    assert_eq!(found(&index, &tied, &newer), 1.0);
    let strict = Need { threshold: 0.4, take: 5, ..tied };
    let exact = rank(&index, &strict, everything.all());
    assert!(exact.available > 5 && exact.available < MANY as usize, "{}", exact.available);
    assert_eq!(choose(&index, &strict, &everything), exact);
}

#[test]
fn what_is_tied_to_the_context_is_found() {
    let index = index(MANY);
    let everything = Part { first: 0, count: MANY, may: |_| true };
    // A word that one unit has, so that nothing else is close.
    let asked = Need { meaning: false, ..need(Some("4711"), 20) };
    let own = 5_000;
    let weakest = rank(&index, &Need { take: MANY as usize, ..asked.clone() }, everything.all()).best;
    let weakest = weakest.last().expect("documents").number;
    let chain = Chain(vec![own, weakest]);
    let tied = Need { web: Some(&chain), context: vec![own], ..asked.clone() };
    let of = |ranked: Vec<Ranked>| ranked.into_iter().find(|one| one.number == weakest);
    let found = of(choose(&index, &tied, &everything).best).expect("what is tied to the context");
    let exact = of(rank(&index, &tied, everything.all()).best).expect("the same");
    assert_eq!((found.factors.relations, found.reason), (exact.factors.relations, exact.reason));
    assert!(of(choose(&index, &asked, &everything).best).is_none());
}
