//! Each rule about payloads: what is read, and which key each refusal names.

use serde_json::{Value, json};

use super::*;
use crate::protocol::{Format, Refusal};

fn read(operation: Operation, payload: Value) -> Result<Request, Refusal> {
    let Value::Object(map) = payload else { panic!("a payload is an object") };
    Request::read(operation, "ada", map, &Limits::default(), 2)
}

fn record_payload() -> Value {
    json!({
        "type": "finding", "content": " 23% CAGR ", "intent": { "purpose": "size the market" },
        "confidence": { "score": 0.8, "reason": "three reports" }
    })
}

fn changed(pointer: &str, value: Value) -> Value {
    let mut payload = record_payload();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    payload.pointer_mut(parent).unwrap()[key] = value;
    payload
}

fn refusal(operation: Operation, payload: Value) -> (ErrorCode, String) {
    let refusal = read(operation, payload).unwrap_err();
    let key = refusal.details["key"].as_str().unwrap_or_default().to_owned();
    (refusal.code, key)
}

#[test]
fn record_keeps_text_exactly_and_defaults_to_committed() {
    let Request::Record(record) = read(Operation::Record, record_payload()).unwrap() else { panic!() };
    assert_eq!(&*record.content, " 23% CAGR ");
    assert_eq!((record.mode, record.kind), (Mode::Committed, MemoryType::Finding));
}

#[test]
fn record_ignores_what_is_the_fields_alone() {
    for key in ["id", "epoch", "source", "status", "whatever"] {
        read(Operation::Record, changed(&format!("/{key}"), json!("mem-1"))).unwrap();
    }
}

#[test]
fn record_refuses_each_wrong_key_by_name() {
    use ErrorCode::*;
    let long = "x".repeat(limits::CONTENT_MAX_BYTES + 1);
    let wordy = "x".repeat(limits::TEXT_MAX_BYTES + 1);
    let many = |n: usize| json!(vec!["x"; n]);
    let relations = |n: usize| json!(vec![json!({"type": "supports", "target_id": "mem-1"}); n]);
    for (pointer, value, code, key) in [
        ("/mode", json!("final"), InvalidMessage, "mode"),
        ("/mode", json!(1), InvalidMessage, "mode"),
        ("/type", json!("opinion"), InvalidType, "type"),
        ("/type", json!(null), InvalidType, "type"),
        ("/type", json!(3), InvalidType, "type"),
        ("/content", json!(null), InvalidMessage, "content"),
        ("/content", json!(" \n"), InvalidMessage, "content"),
        ("/content", json!({"text": "x"}), InvalidMessage, "content"),
        ("/content", json!(long), InvalidMessage, "content"),
        ("/intent", json!(null), MissingIntent, "intent.purpose"),
        ("/intent", json!("why"), MissingIntent, "intent.purpose"),
        ("/intent/purpose", json!("\t"), MissingIntent, "intent.purpose"),
        ("/intent/purpose", json!(5), MissingIntent, "intent.purpose"),
        ("/intent/task_id", json!(5), InvalidMessage, "intent.task_id"),
        ("/intent/question", json!([]), InvalidMessage, "intent.question"),
        ("/confidence", json!(null), MissingConfidence, "confidence"),
        ("/confidence", json!(0.8), InvalidConfidence, "confidence"),
        ("/confidence/score", json!(null), MissingConfidence, "confidence.score"),
        ("/confidence/score", json!("0.8"), InvalidConfidence, "confidence.score"),
        ("/confidence/score", json!(1.01), InvalidConfidence, "confidence.score"),
        ("/confidence/score", json!(-0.01), InvalidConfidence, "confidence.score"),
        ("/confidence/reason", json!(null), MissingConfidence, "confidence.reason"),
        ("/confidence/reason", json!(" "), MissingConfidence, "confidence.reason"),
        ("/confidence/reason", json!(7), InvalidConfidence, "confidence.reason"),
        ("/confidence/evidence", many(65), InvalidMessage, "confidence.evidence"),
        ("/confidence/assumptions", many(65), InvalidMessage, "confidence.assumptions"),
        ("/confidence/evidence", json!([1]), InvalidMessage, "confidence.evidence"),
        ("/intent/purpose", json!(&wordy), InvalidMessage, "intent.purpose"),
        ("/intent/question", json!(&wordy), InvalidMessage, "intent.question"),
        ("/confidence/reason", json!(&wordy), InvalidMessage, "confidence.reason"),
        ("/confidence/evidence", json!([&wordy]), InvalidMessage, "confidence.evidence"),
        ("/relations", json!({}), InvalidMessage, "relations"),
        ("/relations", relations(65), InvalidMessage, "relations"),
        ("/relations", json!(["mem-1"]), InvalidMessage, "relations[0]"),
        ("/relations", json!([{"type": "likes", "target_id": "mem-1"}]), InvalidType, "relations[0].type"),
        ("/relations", json!([{"target_id": "mem-1"}]), InvalidType, "relations[0].type"),
        ("/relations", json!([{"type": "supports"}]), InvalidMessage, "relations[0].target_id"),
        (
            "/relations",
            json!([{"type": "supports", "target_id": " "}]),
            InvalidMessage,
            "relations[0].target_id",
        ),
    ] {
        assert_eq!(refusal(Operation::Record, changed(pointer, value)), (code, key.to_owned()), "{pointer}");
    }
    for (pointer, value) in [("/relations", relations(64)), ("/confidence/evidence", many(64))] {
        read(Operation::Record, changed(pointer, value)).unwrap();
    }
    read(Operation::Record, changed("/content", json!("x".repeat(limits::CONTENT_MAX_BYTES)))).unwrap();
}

#[test]
fn the_first_wrong_key_in_listed_order_is_named() {
    let payload =
        json!({ "relations": 1, "confidence": 1, "intent": 1, "content": 1, "type": "x", "mode": "x" });
    assert_eq!(refusal(Operation::Record, payload).1, "mode");
    assert_eq!(refusal(Operation::Record, json!({ "relations": 1, "type": "finding" })).1, "content");
}

#[test]
fn a_draft_needs_no_confidence_but_what_it_says_must_be_valid() {
    let mut draft = record_payload();
    draft["mode"] = json!("draft");
    draft.as_object_mut().unwrap().remove("confidence");
    read(Operation::Record, draft.clone()).unwrap();
    draft["confidence"] = json!({ "score": 0.5 });
    read(Operation::Record, draft.clone()).unwrap();
    draft["confidence"] = json!({ "score": 5 });
    assert_eq!(refusal(Operation::Record, draft).0, ErrorCode::InvalidConfidence);
}

#[test]
fn the_older_name_reasoning_is_understood() {
    let payload = changed("/confidence", json!({ "score": 1, "reasoning": "seen" }));
    let Request::Record(record) = read(Operation::Record, payload).unwrap() else { panic!() };
    let confidence = record.confidence.unwrap();
    assert_eq!(confidence.reason.as_deref(), Some("seen"));
    assert!(!serde_json::to_string(&confidence).unwrap().contains("reasoning"));
}

#[test]
fn level_0_makes_confidence_optional() {
    let Value::Object(mut map) = record_payload() else { panic!() };
    map.remove("confidence");
    Request::read(Operation::Record, "ada", map, &Limits::default(), 0).unwrap();
}

#[test]
fn register_registers_only_the_sender() {
    let payload = json!({ "id": "ada", "role": "analyst", "interests": ["growth"] });
    assert!(matches!(read(Operation::Register, payload).unwrap(), Request::Register(_)));
    for (payload, key) in [
        (json!({ "role": "analyst" }), "id"),
        (json!({ "id": "bob", "role": "analyst" }), "id"),
        (json!({ "id": "ada" }), "role"),
        (json!({ "id": "ada", "role": "  " }), "role"),
        (json!({ "id": "ada", "role": "x\r\ny" }), "role"),
        (json!({ "id": "ada", "role": "x", "interests": "growth" }), "interests"),
        (json!({ "id": "ada", "role": "x", "interests": ["x".repeat(300)] }), "interests"),
        (json!({ "id": "ada", "role": "x", "required_operations": [1] }), "required_operations"),
    ] {
        assert_eq!(refusal(Operation::Register, payload), (ErrorCode::InvalidMessage, key.to_owned()));
    }
}

#[test]
fn attune_reads_its_scope_and_names_what_is_wrong() {
    let payload = json!({
        "scope": { "role": "r", "max_units": 10, "since_epoch": 7, "types": ["decision"], "include_own": true },
        "context_hint": null, "since_epoch": 5, "format": "summary"
    });
    let Request::Attune(attune) = read(Operation::Attune, payload).unwrap() else { panic!() };
    assert_eq!((attune.since_epoch, attune.format), (Some(7), Format::Summary));
    assert!(attune.scope.include_own && attune.scope.types == [MemoryType::Decision]);

    let scope = |key: &str, value: Value| {
        let mut scope = json!({ "role": "r", "max_units": 10 });
        scope[key] = value;
        json!({ "scope": scope })
    };
    for (payload, key) in [
        (json!({}), "scope"),
        (json!({ "scope": "all" }), "scope"),
        (scope("role", json!(null)), "scope.role"),
        (scope("role", json!("")), "scope.role"),
        (scope("role", json!(1)), "scope.role"),
        (scope("max_units", json!(null)), "scope.max_units"),
        (scope("max_units", json!(0)), "scope.max_units"),
        (scope("max_units", json!(1001)), "scope.max_units"),
        (scope("max_units", json!(-1)), "scope.max_units"),
        (scope("max_units", json!(1.5)), "scope.max_units"),
        (scope("max_units", json!("10")), "scope.max_units"),
        (scope("since_epoch", json!(-1)), "scope.since_epoch"),
        (scope("include_own", json!("yes")), "scope.include_own"),
        (scope("types", json!(["opinion"])), "scope.types"),
        (json!({ "scope": { "role": "r", "max_units": 1 }, "format": "long" }), "format"),
        (json!({ "scope": { "role": "r", "max_units": 1 }, "context_hint": 5 }), "context_hint"),
        (json!({ "scope": { "role": "r", "max_units": 1 }, "since_epoch": "3" }), "since_epoch"),
    ] {
        assert_eq!(
            refusal(Operation::Attune, payload.clone()),
            (ErrorCode::InvalidMessage, key.to_owned()),
            "{payload}"
        );
    }
}

#[test]
fn replay_detect_and_the_extension_operations_name_what_is_wrong() {
    use Operation::*;
    for (operation, payload, key) in [
        (Replay, json!({ "target_id": "mem-1", "depth": "summary" }), "target_type"),
        (Replay, json!({ "target_type": "agent", "target_id": "x", "depth": "summary" }), "target_type"),
        (Replay, json!({ "target_type": "task", "depth": "summary" }), "target_id"),
        (Replay, json!({ "target_type": "task", "target_id": "t" }), "depth"),
        (Replay, json!({ "target_type": "task", "target_id": "t", "depth": "all" }), "depth"),
        (
            Replay,
            json!({ "target_type": "task", "target_id": "t", "depth": "summary", "as_of_epoch": -1 }),
            "as_of_epoch",
        ),
        (Detect, json!({}), "mode"),
        (Detect, json!({ "mode": "guess" }), "mode"),
        (Detect, json!({ "mode": "check" }), "target_id"),
        (Detect, json!({ "mode": "scan", "filter": [] }), "filter"),
        (Detect, json!({ "mode": "list", "filter": { "status": ["open"] } }), "filter.status"),
        (Detect, json!({ "mode": "list", "filter": { "types": "factual" } }), "filter.types"),
        (Retract, json!({ "reason": "wrong" }), "memory_unit_id"),
        (Retract, json!({ "memory_unit_id": "mem-1", "reason": " " }), "reason"),
        (Discard, json!({ "memory_unit_id": "mem-1" }), "reason"),
        (Commit, json!({}), "memory_unit_id"),
        (Commit, json!({ "memory_unit_id": "mem-1", "relations": "x" }), "relations"),
        (Deregister, json!({}), "agent_id"),
    ] {
        assert_eq!(
            refusal(operation, payload.clone()),
            (ErrorCode::InvalidMessage, key.to_owned()),
            "{payload}"
        );
    }
}

#[test]
fn what_is_not_served_is_said_plainly() {
    for operation in [Operation::Session, Operation::Coordinate, Operation::Handoff] {
        assert_eq!(refusal(operation, json!({})).0, ErrorCode::UnsupportedOperation);
    }
}
