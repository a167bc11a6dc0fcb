//! What moves a ranking (section 8): the task, declared relations, the published example, any need.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A unit for a task, with relations.
fn serving(task: Option<&str>, content: &str, relations: &[[&str; 2]]) -> Value {
    with(related(content, relations), json!({ "intent": { "purpose": "to know", "task_id": task } }))
}

/// What an ATTUNE of bob's brings, with the clock put back so that the same question is asked at the same time.
fn asked(stage: &mut Stage, scope: Value, hint: Option<&str>) -> Value {
    let clock = stage.state.clock;
    let scope = with(json!({ "role": "reader", "max_units": 100 }), scope);
    let asked = json!({ "scope": scope, "context_hint": hint, "explain": true });
    let answer = stage.send("bob", "ATTUNE", asked).ok();
    stage.state.clock = clock;
    answer
}

fn found(answer: &Value, unit: &str) -> Value {
    let record = list(&answer["record"]);
    record
        .into_iter()
        .find(|scoped| scoped["memory_unit"]["id"] == json!(unit))
        .expect("a unit in the answer")
}

fn value(scoped: &Value, factor: &str) -> f64 {
    scoped["factors"][factor]["value"].as_f64().expect("a factor")
}

fn score(scoped: &Value) -> f64 {
    scoped["relevance_score"].as_f64().expect("a score")
}

/// Whether two tables of factors differ in these alone.
fn differ_only_in(one: &Value, other: &Value, factors: &[&str]) -> bool {
    let table = |scoped: &Value| scoped["factors"].as_object().expect("a table").clone();
    let (one, other) = (table(one), table(other));
    one.iter().all(|(name, part)| factors.contains(&name.as_str()) || part["value"] == other[name]["value"])
}

#[test]
fn the_task_moves_the_order() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let mut record =
        |task| stage.send("ada", "RECORD", serving(task, "A thing that was found", &[])).unit_id();
    let units = [record(Some("task-a")), record(Some("task-b")), record(None)];
    let newest_first = [units[2].clone(), units[1].clone(), units[0].clone()];
    for hint in [None, Some("thing")] {
        let idle = asked(&mut stage, json!({}), hint);
        assert_eq!(ids_of(&idle), newest_first);
        let busy = asked(&mut stage, json!({ "active_task_id": "task-a" }), hint);
        assert_eq!(ids_of(&busy)[0], units[0]);
        let (serves, other) = (found(&busy, &units[0]), found(&busy, &units[1]));
        assert_eq!((value(&serves, "task"), value(&other, "task")), (1.0, 0.0));
        assert!(differ_only_in(&serves, &other, &["task", "recency", "diversity"]));
        assert!(text(&serves["relevance_reason"]).contains("serves task-a"), "{serves}");
        let unheard = asked(&mut stage, json!({ "active_task_id": "task-z" }), hint);
        assert_eq!(ids_of(&unheard), newest_first);
    }
}

#[test]
fn tasks_are_tied_by_what_their_units_depend_on_and_block() {
    for (from, kind, to, tied) in [
        ("task-a", "depends_on", "task-b", true),
        ("task-b", "depends_on", "task-a", true),
        ("task-b", "blocks", "task-a", true),
        ("task-a", "supports", "task-b", false),
        ("task-b", "depends_on", "task-c", false),
    ] {
        let mut stage = Stage::with_agents(&["ada", "bob"]);
        for task in ["task-a", "task-b", "task-c"] {
            stage.send("ada", "RECORD", serving(Some(task), &format!("begun {task}"), &[])).ok();
        }
        let target =
            stage.state.world.units.iter().find(|slot| slot.said().intent.task_id.as_deref() == Some(to));
        let target = target.expect("a unit of the task").id.to_string();
        stage.send("ada", "RECORD", serving(Some(from), "tied", &[[kind, &target]])).ok();
        let other = stage.send("ada", "RECORD", serving(Some("task-b"), "another thing", &[])).unit_id();
        let answer = asked(&mut stage, json!({ "active_task_id": "task-a" }), None);
        let other = found(&answer, &other);
        assert_eq!(value(&other, "task"), if tied { 0.5 } else { 0.0 }, "{from} {kind} {to}");
        let said = text(&other["relevance_reason"]).contains("a task that task-a is tied to");
        assert_eq!(said, tied, "{other}");
    }
}

#[test]
fn drafts_and_what_was_taken_back_tie_nothing() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let other = stage.send("ada", "RECORD", serving(Some("task-b"), "a thing", &[])).unit_id();
    let tie = serving(Some("task-a"), "tied", &[["depends_on", &other]]);
    let before = asked(&mut stage, json!({ "active_task_id": "task-a" }), Some("thing"));
    stage.send("ada", "RECORD", with(tie.clone(), json!({ "mode": "draft" }))).ok();
    stage.state.clock -= 1;
    assert_eq!(asked(&mut stage, json!({ "active_task_id": "task-a" }), Some("thing")), before);
    stage.state.clock += 1;
    let tie = stage.send("ada", "RECORD", tie).unit_id();
    let tied = asked(&mut stage, json!({ "active_task_id": "task-a" }), Some("thing"));
    assert_eq!(value(&found(&tied, &other), "task"), 0.5);
    stage.give_up("ada", "RETRACT", &tie).ok();
    let untied = asked(&mut stage, json!({ "active_task_id": "task-a" }), Some("thing"));
    assert_eq!(value(&found(&untied, &other), "task"), 0.0);
    assert_eq!(value(&found(&untied, &other), "relations"), 0.0);
}

#[test]
fn what_is_tied_to_a_close_unit_gains_and_less_with_each_step() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let near = stage.record("ada", "European market growth for HR tools");
    let mut chain = vec![near.clone()];
    for no in 0..3 {
        let last = chain.last().unwrap().clone();
        chain.push(
            stage.send("ada", "RECORD", related(&format!("Обед {no}"), &[["supports", &last]])).unit_id(),
        );
    }
    let apart = stage.record("ada", "Обед 9");
    let answer = asked(&mut stage, json!({}), Some("growth of the European market"));
    let gains: Vec<f64> = chain.iter().map(|unit| value(&found(&answer, unit), "relations")).collect();
    assert!(gains[0] == 0.0 && gains[1] > gains[2] && gains[2] > 0.0 && gains[3] == 0.0, "{gains:?}");
    assert_eq!(ids_of(&answer)[..2], chain[..2], "what is close by itself stays first");
    assert!(score(&found(&answer, &chain[1])) > score(&found(&answer, &apart)));
    let reason = text(&found(&answer, &chain[1])["relevance_reason"]);
    assert!(reason.ends_with(&format!("; supports {near}")), "{reason}");
}

#[test]
fn relations_are_walked_either_way_and_named() {
    for (kind, active, passive) in [
        ("supports", "supports", "supported by"),
        ("depends_on", "depends on", "needed by"),
        ("caused_by", "is caused by", "a cause of"),
        ("elaborates", "elaborates", "elaborated by"),
        ("answers", "answers", "answered by"),
        ("blocks", "blocks", "blocked by"),
        ("informs", "informs", "informed by"),
        ("contradicts", "contradicts", "contradicted by"),
    ] {
        for outward in [true, false] {
            let mut stage = Stage::with_agents(&["ada", "bob"]);
            let (first, second) =
                if outward { ("market growth", "Обед") } else { ("Обед", "market growth") };
            let first = stage.record("ada", first);
            let second = stage.send("ada", "RECORD", related(second, &[[kind, &first]])).unit_id();
            let (tied, near, words) =
                if outward { (second, first, active) } else { (first, second, passive) };
            let answer = asked(&mut stage, json!({}), Some("market growth"));
            let reason = text(&found(&answer, &tied)["relevance_reason"]);
            assert!(reason.ends_with(&format!("; {words} {near}")), "{reason}");
        }
    }
}

#[test]
fn what_is_tied_to_the_askers_own_units_and_to_its_task_gains() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let own = stage.record("bob", "Мой план");
    let answering = stage.send("ada", "RECORD", related("Обед", &[["answers", &own]])).unit_id();
    let other = stage.record("ada", "Обед");
    let answer = asked(&mut stage, json!({}), Some("unrelated words"));
    assert!(value(&found(&answer, &answering), "relations") > value(&found(&answer, &other), "relations"));
    assert!(text(&found(&answer, &answering)["relevance_reason"]).contains(&format!("answers {own}")));

    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let of_task = stage.send("ada", "RECORD", serving(Some("task-a"), "Наш план", &[])).unit_id();
    let tied = stage.send("ada", "RECORD", related("Обед", &[["informs", &of_task]])).unit_id();
    for (scope, gains) in [(json!({}), false), (json!({ "active_task_id": "task-a" }), true)] {
        let answer = asked(&mut stage, scope, Some("unrelated words"));
        assert_eq!(value(&found(&answer, &tied), "relations") > 0.0, gains);
    }
}

#[test]
fn below_level_2_tasks_and_relations_count_nothing() {
    let mut stage = Stage::of_level(1);
    ["ada", "bob"].iter().for_each(|agent| stage.join(agent));
    let near = stage.record("ada", "market growth");
    stage.send("ada", "RECORD", serving(Some("task-a"), "Обед", &[["supports", &near]])).ok();
    let answer = asked(&mut stage, json!({ "active_task_id": "task-a" }), Some("market growth"));
    for scoped in list(&answer["record"]) {
        assert_eq!((value(&scoped, "task"), value(&scoped, "relations")), (0.0, 0.0));
    }
}

#[test]
fn a_table_of_factors_comes_only_when_asked_for_and_sums_to_the_score() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let near = stage.record("ada", "market growth");
    stage.send("ada", "RECORD", serving(Some("task-a"), "market", &[["supports", &near]])).ok();
    stage.record("ada", "lunch");
    let answer = asked(&mut stage, json!({ "active_task_id": "task-a" }), Some("market growth"));
    for scoped in list(&answer["record"]) {
        let table = scoped["factors"].as_object().unwrap();
        let mut names: Vec<_> = table.keys().map(String::as_str).collect();
        names.sort_unstable();
        let all = ["diversity", "lexical", "recency", "relations", "role", "semantic", "task", "type"];
        assert_eq!(names, all);
        let sum: f64 = table.values().map(|part| part["contribution"].as_f64().unwrap()).sum();
        assert!((sum - score(&scoped)).abs() < 1e-5, "{scoped}");
    }
    let plain = stage.attune("bob", json!({}));
    assert!(list(&plain["record"]).iter().all(|scoped| scoped.get("factors").is_none()));
}

/// The example of `seeds/attune.md`, in a Field that has more than its one unit.
#[test]
fn the_published_example_ranks_as_a_reader_would() {
    let mut stage = Stage::new();
    for (agent, role) in
        [("researcher-01", "market_researcher"), ("designer-01", "designer"), ("strategist-01", "strategist")]
    {
        stage.send(agent, "REGISTER", json!({ "id": agent, "role": role })).ok();
    }
    let mut record = |agent: &str, kind: &str, content: &str, purpose: &str| {
        let unit = json!({
            "type": kind, "content": content, "intent": { "purpose": purpose },
            "confidence": { "score": 0.82, "reason": "Based on three independent analyst reports." },
        });
        stage.send(agent, "RECORD", unit).unit_id()
    };
    let lunch =
        record("designer-01", "observation", "The office kitchen is closed on Friday", "Tell the team");
    let market = record(
        "researcher-01",
        "finding",
        "European SaaS market for SMB HR tools is growing at 23% CAGR...",
        "Validate market size assumption for go-to-market strategy",
    );
    let rivals = record(
        "researcher-01",
        "finding",
        "The two largest competitors position themselves on price, none on onboarding",
        "Map the competitive field",
    );
    let colors = record("designer-01", "decision", "The logo is blue", "Settle the brand colors");
    record(
        "strategist-01",
        "decision",
        "Draft the positioning section next week",
        "Plan the competitive section",
    );
    let payload = json!({
        "scope": { "role": "strategist", "max_units": 10 },
        "context_hint": "About to draft competitive positioning section",
    });
    let answer = stage.send("strategist-01", "ATTUNE", payload).ok();
    assert_eq!(ids_of(&answer), [rivals, market, colors, lunch]);
    assert_eq!(
        text(&answer["record"][0]["relevance_reason"]),
        "Finding by market_researcher, 3 epochs ago; close in meaning to your hint; \
         shares competitive, positioning with your hint"
    );
    let budget = json!({
        "units_returned": 4, "units_available": 4, "tokens_used": null, "tokens_budget": null,
    });
    assert_eq!(answer["context_budget"], budget);
}

#[test]
fn any_need_is_answered() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let units = ["Доля рынка выросла", "市场增长了百分之二十三", "نما السُّوق", "the market grew", "🎉"]
        .map(|content| stage.record("ada", content));
    let long = "market growth, of every kind. ".repeat(100 * 1024 / 30);
    for (hint, first) in [
        ("", None),
        (" \n", None),
        ("...!?", None),
        ("о рынке", Some(0)),
        ("市场增长", Some(1)),
        ("السوق", Some(2)),
        (&*long, Some(3)),
        ("🎉", Some(4)),
        ("\u{0}\u{202e}\u{feff}", None),
    ] {
        let answer = asked(&mut stage, json!({}), Some(hint));
        let ids = ids_of(&answer);
        assert_eq!(ids.len(), 5, "{:.20}", hint);
        if let Some(first) = first {
            assert_eq!(ids[0], units[first], "{:.20}", hint);
        }
    }
    let oversized = "x".repeat(crate::limits::HINT_MAX_BYTES + 1);
    let refused = json!({ "scope": { "role": "r", "max_units": 1 }, "context_hint": oversized });
    assert_eq!(stage.send("bob", "ATTUNE", refused).refusal().details["key"], json!("context_hint"));
}

/// A Field of random units: texts, tasks and relations to earlier ones.
fn woven() -> impl Strategy<Value = Vec<(String, Option<usize>, Option<usize>)>> {
    let word = prop_oneof![Just("market"), Just("growth"), Just("risk"), Just("price"), Just("café")];
    let content = prop::collection::vec(word, 1..4).prop_map(|words| words.join(" "));
    prop::collection::vec((content, prop::option::of(0..3usize), prop::option::of(0..30usize)), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn confidence_moves_nothing_whatever_else_counts(
        units in woven(), scores in prop::collection::vec(0.0..=1.0f64, 30),
        hint in prop::option::of(Just("market risk")), task in prop::option::of(0..3usize),
        threshold in prop::option::of(0.0..0.6f64),
    ) {
        let told = |sure: &dyn Fn(usize) -> f64| {
            let mut stage = Stage::with_agents(&["ada", "bob", "eve"]);
            let mut ids: Vec<String> = Vec::new();
            for (no, (content, task, target)) in units.iter().enumerate() {
                let task = task.map(|task| format!("task-{task}"));
                let target = target.and_then(|at| ids.get(at).cloned());
                let kind = ["supports", "depends_on", "informs"][no % 3];
                let relations: Vec<_> = target.iter().map(|target| [kind, target.as_str()]).collect();
                let confidence = json!({ "score": sure(no), "reason": "r" });
                let unit = with(serving(task.as_deref(), content, &relations), json!({ "confidence": confidence }));
                ids.push(stage.send(["ada", "eve"][no % 2], "RECORD", unit).unit_id());
            }
            let scope = json!({
                "active_task_id": task.map(|task| format!("task-{task}")), "relevance_threshold": threshold,
            });
            let answer = asked(&mut stage, scope, hint);
            let shown = |s: &Value| (s["memory_unit"]["id"].clone(), score(s), s["factors"].clone());
            list(&answer["record"]).iter().map(shown).collect::<Vec<_>>()
        };
        let even = told(&|_| 0.5);
        prop_assert!(even.is_sorted_by(|a, b| a.1 >= b.1));
        prop_assert!(even.iter().all(|(_, score, _)| (0.0..=1.0).contains(score)));
        prop_assert_eq!(even, told(&|no| scores[no]));
    }
}
