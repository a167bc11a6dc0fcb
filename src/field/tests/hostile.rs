//! Whatever JSON arrives in whatever place: an answer, no panic, and after a refusal nothing is changed.

use proptest::prelude::*;
use serde_json::{Map, Number};

use super::*;
use crate::protocol::Operation;

/// Names that payloads use, so that wild values land where they are looked at.
const KEYS: &[&str] = &[
    "id",
    "role",
    "interests",
    "required_operations",
    "mode",
    "type",
    "content",
    "intent",
    "purpose",
    "task_id",
    "question",
    "confidence",
    "score",
    "reason",
    "reasoning",
    "evidence",
    "assumptions",
    "relations",
    "target_id",
    "description",
    "scope",
    "max_units",
    "since_epoch",
    "include_own",
    "include_drafts",
    "types",
    "session_id",
    "context_hint",
    "format",
    "filter",
    "status",
    "involving_agents",
    "target_type",
    "depth",
    "as_of_epoch",
    "memory_unit_id",
    "agent_id",
    "action",
    "subscription",
    "events",
    "min_relevance",
    "debounce_ms",
    "resume_after",
    "include_unit",
    "conflict_id",
    "strategy",
    "resolution",
    "rationale",
    "winner_id",
    "synthesis",
    "wild",
];

/// Texts that mean something somewhere.
const TEXTS: &[&str] = &[
    "",
    " ",
    "ada",
    "finding",
    "draft",
    "committed",
    "mem-3",
    "mem-03",
    "mem-3.1",
    "conflict-5",
    "mem-5",
    "vote",
    "last_write_wins",
    "human_escalation",
    "mem-",
    "list",
    "scan",
    "full_trace",
    "summary",
    "memory_unit",
    "session",
    "supersedes",
    "contradicts",
    "subscribe",
    "unsubscribe",
    "direct",
    "own",
    "foreign",
    "memory.recorded",
    "3.0",
    "999999.0",
    "\u{0}",
    "\u{202e}x",
    "é\u{301}",
    "漢字",
    "🙂",
    "\r\nevent: x",
    "18446744073709551616",
];

fn wild() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|n| Number::from_f64(n).map_or(Value::Null, Value::Number)),
        (0u64..12).prop_map(Value::from),
        (0.0..1.0).prop_map(Value::from),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        prop::sample::select(TEXTS).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(KEYS), inner), 0..8)
                .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

/// A payload that is right but for some of its keys.
fn nearly_right() -> impl Strategy<Value = Value> {
    let right = json!({
        "id": "ada", "role": "r", "type": "finding", "content": "x", "intent": { "purpose": "p" },
        "confidence": { "score": 0.5, "reason": "r" }, "relations": [{ "type": "supersedes", "target_id": "mem-3" }],
        "scope": { "role": "r", "max_units": 5 }, "mode": "list", "target_type": "memory_unit", "target_id": "mem-3",
        "depth": "detailed", "memory_unit_id": "mem-3", "reason": "because", "agent_id": "bob",
        "action": "subscribe", "subscription": { "id": "own" },
        "conflict_id": "conflict-5", "strategy": "synthesis",
        "resolution": { "rationale": "because", "synthesis": "both" },
    });
    prop::collection::vec((prop::sample::select(KEYS), wild()), 0..4).prop_map(move |wrong| {
        let mut payload: Map<String, Value> = right.as_object().expect("an object").clone();
        payload.extend(wrong.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Value::Object(payload)
    })
}

/// A SUBSCRIBE that is right but for some of its keys.
fn nearly_subscribing() -> impl Strategy<Value = Value> {
    let right = json!({
        "id": "own", "events": ["memory.recorded"], "min_relevance": 0.5, "debounce_ms": 5, "resume_after": "3.0",
        "include_unit": true,
    });
    let wrong = prop::collection::vec((prop::sample::select(KEYS), wild()), 0..4);
    let action = prop::sample::select(vec!["subscribe", "unsubscribe", "list"]);
    (action, wrong).prop_map(move |(action, wrong)| {
        let mut subscription: Map<String, Value> = right.as_object().expect("an object").clone();
        subscription.extend(wrong.into_iter().map(|(key, value)| (key.to_owned(), value)));
        json!({ "action": action, "subscription": subscription })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_payload_is_answered_and_a_refusal_changes_nothing(
        operation in prop::sample::select(Operation::ALL.to_vec()),
        payload in prop_oneof![wild(), nearly_right()],
        epoch in prop_oneof![Just(0), any::<u64>()],
    ) {
        let payload = if payload.is_object() { payload } else { json!({ "wild": payload }) };
        answered_or_refused_without_a_trace(saying("ada", operation.name(), payload).epoch(epoch))?;
    }

    #[test]
    fn any_subscribe_is_answered_and_a_refusal_changes_nothing(payload in nearly_subscribing()) {
        answered_or_refused_without_a_trace(saying("ada", "SUBSCRIBE", payload))?;
    }
}

fn answered_or_refused_without_a_trace(saying: Saying) -> Result<(), TestCaseError> {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.record("ada", "x");
    stage.draft("ada", "y");
    stage.relate("bob", &[["contradicts", &unit]]).ok();
    for (agent, id) in [("ada", "own"), ("bob", "foreign")] {
        let wish = json!({ "id": id, "events": ["agent.left"] });
        stage.send(agent, "SUBSCRIBE", json!({ "action": "subscribe", "subscription": wish })).ok();
    }
    let (world, kept) = (stage.state.world.clone(), stage.kept.len());
    let reply = stage.say(saying);
    if let Err(refusal) = reply.outcome {
        prop_assert!(!refusal.message.is_empty() && !refusal.suggested_action.is_empty());
        prop_assert!(stage.state.world == world && stage.kept.len() == kept, "{}", refusal);
    }
    invariants::check(&stage.state.world);
    prop_assert!(stage.rebuilt().world == stage.state.world);
    Ok(())
}
