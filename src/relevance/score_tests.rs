//! What each factor does to a score, and that scores are what they promise.

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
        warm: 0,
        recency_weight: None,
        meaning: false,
        direction: None,
        task: None,
        web: None,
        context: vec![],
        threshold: 0.0,
        take: 10,
    }
}

/// Candidates alike in all but their number.
fn alike(count: u32) -> impl Iterator<Item = Candidate> {
    (0..count).map(|number| unit(number, Kind::Finding, 1_000 - AGE))
}

/// The best of [`super::rank`].
fn rank(index: &Index, need: &Need<'_>, candidates: impl Iterator<Item = Candidate>) -> Vec<Ranked> {
    super::rank(index, need, candidates).best
}

/// A candidate for nobody's task.
fn unit(number: u32, kind: Kind, epoch: u64) -> Candidate {
    Candidate { number, serves: Serves::Others, kind, epoch }
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
    let index =
        index_of(&[plain("European market growth for HR tools"), plain("Lunch is at noon"), plain("Hello")]);
    let units =
        [unit(0, Kind::Observation, 1), unit(1, Kind::Decision, 999), unit(2, Kind::Observation, 998)];
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
                let units = units.map(|(i, kind)| unit(i as u32, kind, 990));
                assert_eq!(order(&rank(&index, &need(hint), units)), [0, 1], "{better:?} {worse:?}");
            }
        }
    }
}

#[test]
fn recency_moves_the_order_as_far_as_asked() {
    let index = index_of(&[plain("market growth"), plain("lunch"), plain("market growth")]);
    let units = || [(0, 10), (1, 999), (2, 900)].into_iter();
    let candidates = || units().map(|(number, epoch)| unit(number, Kind::Finding, epoch));
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
    let units = (0..4).map(|number| unit(number, Kind::Finding, 900 - u64::from(number)));
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
    let units = [(0, 5), (1, 7), (2, 5)].map(|(number, epoch)| unit(number, Kind::Finding, epoch));
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
            assert!(ranked.iter().all(|unit| (0.0..=1.0).contains(&unit.score) && !unit.reason.is_empty()));
        }
    }
    assert!(rank(&index, &Need { take: 0, ..need(None) }, alike(2)).is_empty());
    assert_eq!(order(&rank(&index, &Need { horizon: 1, ..need(None) }, alike(2))), [0]);
}

#[test]
fn contributions_sum_to_the_score() {
    let index = index_of(&[plain("market growth"), plain("growth of analysts"), plain("lunch")]);
    for unit in rank(&index, &Need { interests: vec!["lunch"], ..need(Some("growth")) }, alike(3)) {
        let sum: f32 = unit.factors.all().iter().map(|(_, factor)| factor.contribution).sum();
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
