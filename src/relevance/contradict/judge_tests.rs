//! Tests of the judgement: the pairs of `pairs.tsv`, verdicts in words, and texts that mean no good.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::claims::{CLAIMS_MAX, WORDS_MAX};
use super::judge::clash_at_length;
use super::{Claims, Clash, Grounds, clash};

static PAIRS: &str = include_str!("pairs.tsv");

fn of(a: &str, b: &str) -> Option<Clash> {
    clash(&Claims::of(a), &Claims::of(b))
}

/// What a verdict says of two texts.
fn words(found: &Clash, a: &str, b: &str) -> String {
    found.words((&Claims::of(a), a), (&Claims::of(b), b))
}

#[derive(Default)]
struct Tally {
    right: f32,
    false_alarms: f32,
    missed: f32,
    pairs: usize,
}

impl Tally {
    fn precision(&self) -> f32 {
        self.right / (self.right + self.false_alarms)
    }

    fn recall(&self) -> f32 {
        self.right / (self.right + self.missed)
    }
}

/// By half of the file, and by half and language.
fn judged() -> BTreeMap<String, Tally> {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for line in PAIRS.lines().filter(|line| !line.starts_with('#')) {
        let [half, language, kind, what, a, b] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("six columns: {line}");
        };
        let (is_one, found) = (what == "clash", of(a, b));
        assert!(is_one || what == "none", "{line}");
        if is_one != found.is_some() {
            println!(
                "{half} {language} {kind} {what}: {a} | {b} | {:?}",
                found.as_ref().map(|found| words(found, a, b))
            );
        }
        for key in [half.to_owned(), format!("{half} {language}"), format!("{half} {language} {kind}")] {
            let tally = tallies.entry(key).or_default();
            tally.pairs += 1;
            tally.right += f32::from(is_one && found.is_some());
            tally.false_alarms += f32::from(!is_one && found.is_some());
            tally.missed += f32::from(is_one && found.is_none());
        }
    }
    tallies
}

#[test]
fn pairs_are_judged_rightly() {
    let tallies = judged();
    for (key, tally) in &tallies {
        println!(
            "{key}: {} pairs, precision {:.3}, recall {:.3}",
            tally.pairs,
            tally.precision(),
            tally.recall()
        );
    }
    assert!(tallies["held"].pairs >= 200 && tallies["tune"].pairs >= 200);
    for key in ["held", "tune", "last", "subject", "held en", "tune en", "last en"] {
        let tally = &tallies[key];
        assert!(tally.precision() >= 0.95 && tally.recall() >= 0.85, "{key}");
    }
    for key in
        ["held de", "held es", "held fr", "tune de", "tune es", "tune fr", "last de", "last es", "last fr"]
    {
        let tally = &tallies[key];
        assert!(tally.precision() >= 0.9 && tally.recall() >= 0.8, "{key}");
    }
}

#[test]
fn the_order_of_two_texts_does_not_matter() {
    for line in PAIRS.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (a, b) = (Claims::of(columns[4]), Claims::of(columns[5]));
        let (there, back) = (clash(&a, &b), clash(&b, &a));
        assert_eq!(there.map(|found| found.grounds), back.map(|found| found.grounds), "{line}");
        assert_eq!(clash(&a, &a), None, "{line}");
        assert_eq!(clash(&b, &b), None, "{line}");
    }
}

#[test]
fn the_verdict_says_what_clashes() {
    for (a, b, grounds, said) in [
        (
            "The European market grows at 23% a year.",
            "The European market grows at 14% a year.",
            Grounds::Quantity,
            "\"23%\" against \"14%\" for European market",
        ),
        (
            "The public API is stable.",
            "The public API is not stable.",
            Grounds::Negation,
            "\"The public API is stable\" against \"The public API is not stable\"",
        ),
        (
            "The release is on 3 March.",
            "The release is on 2026-03-10.",
            Grounds::Date,
            "\"3 March\" against \"2026-03-10\" for release",
        ),
        (
            "Memory use went up.",
            "Memory use dropped.",
            Grounds::Opposites,
            "\"went up\" against \"dropped\" for Memory use",
        ),
        (
            "The owner of the wiki is Ada.",
            "The owner of the wiki is Jo.",
            Grounds::Name,
            "\"Ada\" against \"Jo\" for owner of the wiki",
        ),
        (
            "Die Größe des Würfels beträgt 5 Meter.",
            "Die Größe des Würfels beträgt 7 Meter.",
            Grounds::Quantity,
            "\"5 Meter\" against \"7 Meter\" for Größe des Würfels",
        ),
        (
            "Each batch holds 500 rows.",
            "Each batch holds 900 rows.",
            Grounds::Quantity,
            "\"500\" against \"900\" for batch",
        ),
        (
            "Der europäische Markt wächst um 5 %.",
            "Der europäische Markt wächst um 9 %.",
            Grounds::Quantity,
            "\"5 %\" against \"9 %\" for europäische Markt",
        ),
    ] {
        let found = of(a, b).expect(a);
        assert_eq!((found.grounds, &*words(&found, a, b)), (grounds, said));
    }
}

#[test]
fn what_a_verdict_quotes_stands_in_the_texts() {
    let mut subjects = 0;
    for line in PAIRS.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (a, b) = (Claims::of(columns[4]), Claims::of(columns[5]));
        let Some(found) = clash(&a, &b) else { continue };
        let words = found.words((&a, columns[4]), (&b, columns[5]));
        // A text may hold quotation marks itself.
        let (quoted, subject) = words.rsplit_once('"').expect("a quote");
        let (ours, theirs) = quoted[1..].split_once("\" against \"").expect("two quotes");
        assert!(columns[4].contains(ours) && columns[5].contains(theirs), "{words}");
        assert!(!ours.is_empty() && !theirs.is_empty(), "{words}");
        if let Some(subject) = subject.strip_prefix(" for ") {
            subjects += 1;
            assert!(columns[4].contains(subject) || columns[5].contains(subject), "{words}");
            assert!(subject.split_whitespace().count() <= 8, "{words}");
        }
        println!("{words}");
    }
    assert!(subjects > 50, "{subjects}");
}

/// Texts of the pairs, and of these the claims.
fn all_texts() -> Vec<Claims> {
    let lines = PAIRS.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| line.split('\t').skip(4).take(2)).map(Claims::of).collect()
}

/// What spares work must not change a verdict. Each text against each: most have nothing in common, as in a Field.
#[test]
fn a_first_look_changes_no_verdict() {
    let texts = all_texts();
    let (mut found, mut spared) = (0, 0);
    for (at, a) in texts.iter().enumerate() {
        for b in &texts[at + 1..] {
            let whole = clash_at_length(a, b);
            assert_eq!(clash(a, b), whole, "{a:?} {b:?}");
            found += usize::from(whole.is_some());
            spared += usize::from(!a.sight.may_clash(&b.sight));
        }
    }
    assert!(found > 250 && spared > texts.len() * texts.len() / 8, "{found} {spared}");
}

#[test]
fn more_in_common_is_stronger() {
    let strength = |a: &str, b: &str| of(a, b).unwrap().strength;
    let whole = strength("The nightly export is encrypted.", "The nightly export is not encrypted.");
    let part = strength("The nightly export to Oslo is encrypted.", "The export is not encrypted.");
    assert!(whole > part && part > 0.0 && whole <= 1.0, "{whole} {part}");
}

#[test]
fn what_is_no_claim_cannot_be_contradicted() {
    for text in ["", " \n", "Is the API stable?", "The API might be stable.", "?!", "42", "🎉"] {
        assert_eq!(of(text, "The API is not stable."), None, "{text}");
        assert_eq!(of("The API is not stable.", text), None, "{text}");
    }
    assert!(Claims::of("Is the API stable?").is_empty());
}

#[test]
fn a_clash_in_a_long_text_is_found() {
    let long = format!(
        "{} The gateway has 4 replicas. The rest is as it was.",
        "We looked at the logs again. ".repeat(5)
    );
    assert!(of(&long, "The gateway has 7 replicas.").is_some());
}

fn hostile() -> Vec<String> {
    vec![
        "x".repeat(100_000),
        "7".repeat(100_000),
        "1,".repeat(50_000),
        (0..10_000).map(|n| format!("{n} ")).collect(),
        (0..10_000).map(|n| format!("item {n} has {n} parts. ")).collect(),
        "not ".repeat(25_000),
        "the market is not open and the market is closed. ".repeat(2_000),
        (0..5_000).map(|n| format!("w{n} open closed big small ")).collect(),
        "no. ".repeat(30_000),
        "'".repeat(100_000),
        "-1-2-3.4.5:6/7".repeat(8_000),
        "e\u{301}\u{301}".repeat(30_000),
        "市场增长".repeat(10_000),
        "\u{fdfa}".repeat(20_000),
        "between 1 and between 2 and ".repeat(4_000),
        "a.B".repeat(30_000),
    ]
}

#[test]
fn nothing_is_a_numeral_where_a_text_ends() {
    assert!(of("Il y a un", "Le prix est de un").is_none());
}

#[test]
fn hostile_texts_are_taken_within_bounds() {
    let texts = hostile();
    let claims: Vec<Claims> = texts.iter().map(|text| Claims::of(text)).collect();
    for claims in &claims {
        assert!(claims.claims.len() <= CLAIMS_MAX);
        assert!(claims.said().all(|claim| claim.words.len() <= WORDS_MAX));
    }
    let started = Instant::now();
    for a in &claims {
        for b in &claims {
            let _ = clash(a, b);
        }
    }
    // Without optimisation, on a busy machine: a bound that only something without one would pass.
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

proptest::proptest! {
    #[test]
    fn any_two_texts_are_judged_alike_each_time(a in "(?s).{0,120}", b in "(?s).{0,120}") {
        let (one, other) = (Claims::of(&a), Claims::of(&b));
        let found = clash(&one, &other);
        assert_eq!(found, clash(&Claims::of(&a), &Claims::of(&b)));
        assert_eq!(clash(&one, &one), None);
        assert!(found.is_none_or(|found| (0.0..=1.0).contains(&found.strength) && !words(&found, &a, &b).is_empty()));
    }

    #[test]
    fn sentences_of_any_figures_are_judged(words in "(the |not |is |open |closed |[0-9]{1,4}|[.,:/$%-]|km |may |May |two |k){0,40}") {
        let claims = Claims::of(&words);
        assert_eq!(clash(&claims, &Claims::of("The valve is not open for 3 km on 5 May.")),
            clash(&claims, &Claims::of("The valve is not open for 3 km on 5 May.")));
    }

    #[test]
    fn a_first_look_changes_no_verdict_on_any_sentences(
        one in "((The|A|Our|Users of the) (old |new |public |north |Kafka )?(gate|valve|broker|owner|limit|release|queue)( of the (wiki|pump|Hub))? (is|was|is not|has|has no|may be|must be|uses|goes to|grows at|never fails|is due on|holds) (not )?(open|closed|stable|unstable|big|large|small|Ada|Kafka|NATS as the broker|Frankfurt|[1-9]{1,2}( %| km| users| days)?|5 May|3 March)( (in|on|if|for) (staging|production|Monday|the events|EU))?[.;] ?){1,3}",
        other in "((The|A|Our|Users of the) (old |new |public |north |Kafka )?(gate|valve|broker|owner|limit|release|queue)( of the (wiki|pump|Hub))? (is|was|is not|has|has no|may be|must be|uses|goes to|grows at|never fails|is due on|holds) (not )?(open|closed|stable|unstable|big|large|small|Ada|Kafka|NATS as the broker|Frankfurt|[1-9]{1,2}( %| km| users| days)?|5 May|3 March)( (in|on|if|for) (staging|production|Monday|the events|EU))?[.;] ?){1,3}",
    ) {
        let (a, b) = (Claims::of(&one), Claims::of(&other));
        assert_eq!(clash(&a, &b), clash_at_length(&a, &b), "{one} | {other}");
    }
}
