//! Budgets of tokens (sections 7 and 12): counted exactly on what is sent, spent by rank, never overspent.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::protocol::{Operation, Request};

/// An answer, with its units as the very texts that are sent.
#[derive(Deserialize)]
struct Sent {
    record: Vec<SentUnit>,
    context_budget: Value,
}

#[derive(Deserialize)]
struct SentUnit {
    memory_unit: Box<RawValue>,
    format: String,
}

impl Sent {
    fn texts(&self) -> Vec<(String, String)> {
        let text = |unit: &SentUnit| (unit.memory_unit.get().to_owned(), unit.format.clone());
        self.record.iter().map(text).collect()
    }
}

/// What bob is sent. Looking takes no epoch here, so that every question is asked at the same time.
fn sent(stage: &mut Stage, payload: Value) -> Sent {
    stage.catch_up();
    let Value::Object(payload) = payload else { panic!("an object") };
    let request = Request::read(Operation::Attune, "bob", payload, &stage.policy.limits, 2);
    let Ok(Request::Attune(request)) = request else { panic!("a good request") };
    let world = &stage.state.world;
    let (epoch, asker) = (stage.state.clock + 1, world.agent_no("bob").expect("bob"));
    let selection =
        select(world, &stage.index, &stage.policy, epoch, Some(asker), &request, &Embedded::Unasked);
    let answer = show(world, &stage.tokens, epoch, &request, selection).ok().expect("nothing is archived");
    assert_eq!(
        answer.ids().len(),
        serde_json::to_value(&answer).unwrap()["record"].as_array().unwrap().len()
    );
    serde_json::from_str(&serde_json::to_string(&answer).unwrap()).unwrap()
}

fn asking(max_units: usize, max_tokens: Option<u64>, format: &str) -> Value {
    let scope = json!({ "role": "r", "max_units": max_units, "max_tokens": max_tokens });
    json!({ "scope": scope, "context_hint": "market growth", "format": format })
}

/// Tokens of a text, counted without what the stage remembers.
fn cost(text: &str) -> u64 {
    Tokens::default().count_up_to(text, u64::MAX).expect("no bound")
}

/// What a summary is within a budget.
fn compact(summary: &str) -> String {
    #[derive(Deserialize, serde::Serialize)]
    struct Parts {
        id: Box<RawValue>,
        #[serde(rename = "type")]
        kind: Box<RawValue>,
        content: Box<RawValue>,
        intent: Why,
        confidence: Scored,
        source: By,
        status: Box<RawValue>,
        epoch: Box<RawValue>,
    }
    #[derive(Deserialize, serde::Serialize)]
    struct Why {
        purpose: Box<RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        task_id: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<Box<RawValue>>,
    }
    #[derive(Deserialize, serde::Serialize)]
    struct Scored {
        score: Box<RawValue>,
    }
    #[derive(Deserialize, serde::Serialize)]
    struct By {
        agent_id: Box<RawValue>,
        agent_role: Box<RawValue>,
    }
    serde_json::to_string(&serde_json::from_str::<Parts>(summary).expect("a whole unit")).expect("texts")
}

/// The rule, word by word: all in full where they fit; else by rank in full up to a quarter of the budget (the best one up
/// to all of it), then as summaries those that fit, then back to full, by rank, while there is room.
fn by_hand(full: &[String], summaries: &[String], budget: u64) -> Vec<(String, String)> {
    let sum = |count: usize| full[..count].iter().map(|text| cost(text)).sum::<u64>();
    let whole = |text: &String| (text.clone(), "full".to_owned());
    if sum(full.len()) <= budget {
        return full.iter().map(whole).collect();
    }
    let lone = usize::from(!full.is_empty() && sum(1) <= budget);
    let in_full = (0..full.len()).rev().find(|count| sum(*count) <= budget / 4).unwrap_or(0).max(lone);
    let mut kept: Vec<(usize, String, String)> =
        (0..in_full).map(|at| (at, full[at].clone(), "full".into())).collect();
    let mut left = budget - sum(in_full);
    for (at, text) in summaries.iter().enumerate().skip(in_full) {
        if cost(text) <= left {
            left -= cost(text);
            kept.push((at, text.clone(), "summary".into()));
        }
    }
    for (at, text, format) in &mut kept[in_full..] {
        if cost(&full[*at]) > left + cost(text) {
            break;
        }
        left = left + cost(text) - cost(&full[*at]);
        (*text, *format) = whole(&full[*at]);
    }
    kept.into_iter().map(|(_, text, format)| (text, format)).collect()
}

#[test]
fn without_a_budget_nothing_is_counted() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    stage.record("ada", "market");
    let budget = &sent(&mut stage, asking(9, None, "full")).context_budget;
    assert_eq!((&budget["tokens_used"], &budget["tokens_budget"]), (&json!(null), &json!(null)));
}

#[test]
fn a_long_unit_is_shown_as_a_summary_and_leaves_room_for_others() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let long = "The market growth was 23% in the year of the report. ".repeat(200);
    stage.record("ada", &long);
    stage.record("ada", "lunch");
    let answer = sent(&mut stage, asking(9, Some(500), "full"));
    assert_eq!(answer.record.iter().map(|unit| &*unit.format).collect::<Vec<_>>(), ["summary", "summary"]);
    let unit: Value = serde_json::from_str(answer.record[0].memory_unit.get()).unwrap();
    assert!(text(&unit["content"]).contains("23%") && text(&unit["content"]).chars().count() <= 280);
    assert_eq!(answer.context_budget["units_available"], json!(2));
}

#[test]
fn what_does_not_fit_even_as_a_summary_is_passed_over_but_not_without_end() {
    let misfits = crate::limits::BUDGET_MISFITS_MAX;
    for (count, last_is_reached) in [(misfits - 1, true), (misfits, false)] {
        let mut stage = Stage::with_agents(&["ada", "bob"]);
        let last = stage.record("ada", "lunch");
        let intent = json!({ "purpose": "a long tale of it. ".repeat(200) });
        for _ in 0..count {
            let unit = with(finding("market growth"), json!({ "intent": intent }));
            stage.send("ada", "RECORD", unit).ok();
        }
        let answer = sent(&mut stage, asking(1000, Some(400), "full"));
        let texts = answer.texts();
        assert_eq!(texts.iter().any(|(text, _)| text.contains(&last)), last_is_reached);
        assert_eq!(texts.len(), usize::from(last_is_reached));
    }
}

#[test]
fn a_status_that_changed_is_counted_anew() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.record("ada", "market growth");
    let used = |stage: &mut Stage| {
        let answer = sent(stage, asking(1, Some(1000), "full"));
        let cost = cost(answer.record[0].memory_unit.get());
        assert_eq!(answer.context_budget["tokens_used"], json!(cost));
        answer.texts()
    };
    let before = used(&mut stage);
    stage.relate("ada", &[["contradicts", &unit]]).ok();
    assert_ne!(used(&mut stage), before);
}

#[test]
fn every_format_keeps_its_budget() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    for no in 0..50 {
        stage.record("ada", &format!("market number {no}. It grows."));
    }
    for format in ["summary", "ids_only"] {
        let mut all = sent(&mut stage, asking(1000, None, format)).texts();
        if format == "summary" {
            all.iter_mut().for_each(|(text, _)| *text = compact(text));
        }
        for budget in [1, 10, 100, 1000, 1_000_000] {
            let answer = sent(&mut stage, asking(1000, Some(budget), format));
            let costs: Vec<u64> = all.iter().map(|(text, _)| cost(text)).collect();
            let mut fitting = 0;
            let used = costs
                .iter()
                .take_while(|cost| {
                    fitting += **cost;
                    fitting <= budget
                })
                .count();
            assert_eq!(answer.texts()[..used], all[..used], "{format} {budget}");
            assert!(answer.context_budget["tokens_used"].as_u64().unwrap() <= budget);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn units_are_added_by_rank_in_full_then_as_summaries_never_over(
        contents in prop::collection::vec(
            prop_oneof![
                "(market|growth|[a-z]{1,8}| |\\. ){1,60}", "\\PC{1,80}",
                "(The market grew by [0-9]{2}%. |Ещё [a-z]{3} предложение. ){5,60}",
            ],
            1..12,
        ),
        budget in prop_oneof![1u64..200, 200u64..2_000, 2_000u64..100_000],
        max_units in 1usize..14,
    ) {
        let mut stage = Stage::with_agents(&["ada", "bob", "eve"]);
        for (no, content) in contents.iter().enumerate().filter(|(_, content)| !content.trim().is_empty()) {
            stage.record(["ada", "eve"][no % 2], content);
        }
        let texts = |sent: Sent| sent.texts().into_iter().map(|(text, _)| text).collect::<Vec<_>>();
        let full = texts(sent(&mut stage, asking(max_units, None, "full")));
        let summaries = texts(sent(&mut stage, asking(max_units, None, "summary")));
        let summaries: Vec<String> = summaries.iter().map(|text| compact(text)).collect();
        let expected = by_hand(&full, &summaries, budget);
        // Twice: what was counted and what is remembered are the same.
        for _ in 0..2 {
            let answer = sent(&mut stage, asking(max_units, Some(budget), "full"));
            let used: u64 = answer.record.iter().map(|unit| cost(unit.memory_unit.get())).sum();
            prop_assert!(used <= budget);
            prop_assert_eq!(&answer.context_budget["tokens_used"], &json!(used));
            prop_assert_eq!(&answer.context_budget["tokens_budget"], &json!(budget));
            prop_assert_eq!(&answer.context_budget["units_returned"], &json!(answer.record.len()));
            prop_assert_eq!(answer.texts(), expected.clone());
        }
    }
}
