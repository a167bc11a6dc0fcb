//! Tests of the judgement: the pairs of `pairs.tsv`, verdicts in words, and texts that mean no good.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::claims::{CLAIMS_MAX, WORDS_MAX};
use super::{Claims, Clash, Grounds, clash};

static PAIRS: &str = include_str!("pairs.tsv");

fn of(a: &str, b: &str) -> Option<Clash> {
    clash(&Claims::of(a), &Claims::of(b))
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
                found.as_ref().map(|found| &found.words)
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
    let found =
        of("The European market grows at 23% a year.", "The European market grows at 14% a year.").unwrap();
    assert_eq!(found.grounds, Grounds::Quantity);
    assert_eq!(found.words, "\"23%\" against \"14%\" for European market");
    let found = of("The public API is stable.", "The public API is not stable.").unwrap();
    assert_eq!(found.grounds, Grounds::Negation);
    assert_eq!(found.words, "\"The public API is stable\" against \"The public API is not stable\"");
    let found = of("The release is on 3 March.", "The release is on 2026-03-10.").unwrap();
    assert_eq!(
        (found.grounds, &*found.words),
        (Grounds::Date, "\"3 March\" against \"2026-03-10\" for release")
    );
    let found = of("Memory use went up.", "Memory use dropped.").unwrap();
    assert_eq!(
        (found.grounds, &*found.words),
        (Grounds::Opposites, "\"went up\" against \"dropped\" for Memory use")
    );
    let found = of("The owner of the wiki is Ada.", "The owner of the wiki is Jo.").unwrap();
    assert_eq!(
        (found.grounds, &*found.words),
        (Grounds::Name, "\"Ada\" against \"Jo\" for owner of the wiki")
    );
}

#[test]
fn what_a_verdict_quotes_stands_in_the_texts() {
    let mut subjects = 0;
    for line in PAIRS.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (a, b) = (Claims::of(columns[4]), Claims::of(columns[5]));
        let Some(found) = clash(&a, &b) else { continue };
        let parts: Vec<&str> = found.words.split('"').collect();
        let [_, ours, " against ", theirs, subject] = parts[..] else { panic!("{}", found.words) };
        assert!(a.text.contains(ours) && b.text.contains(theirs), "{}", found.words);
        if let Some(subject) = subject.strip_prefix(" for ") {
            subjects += 1;
            assert!(a.text.contains(subject) || b.text.contains(subject), "{}", found.words);
            assert!(subject.split_whitespace().count() <= 8, "{}", found.words);
        }
        println!("{}", found.words);
    }
    assert!(subjects > 50, "{subjects}");
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
        assert!(claims.claims.iter().all(|claim| claim.words.len() <= WORDS_MAX));
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
        assert!(found.is_none_or(|found| (0.0..=1.0).contains(&found.strength) && !found.words.is_empty()));
    }

    #[test]
    fn sentences_of_any_figures_are_judged(words in "(the |not |is |open |closed |[0-9]{1,4}|[.,:/$%-]|km |may |May |two |k){0,40}") {
        let claims = Claims::of(&words);
        assert_eq!(clash(&claims, &Claims::of("The valve is not open for 3 km on 5 May.")),
            clash(&claims, &Claims::of("The valve is not open for 3 km on 5 May.")));
    }
}
