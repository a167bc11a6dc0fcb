//! Order of rules (section 12): the first that applies answers.

use serde_json::json;

use super::*;

const FAR: u64 = 5_000_000;

#[test]
fn a_repetition_with_the_same_payload_comes_before_the_epoch() {
    let mut stage = Stage::with_agents(&["ada"]);
    let first = stage.say(saying("ada", "RECORD", finding("x")).id("m"));
    let again = stage.say(saying("ada", "RECORD", finding("x")).id("m").epoch(FAR));
    assert_eq!((again.epoch, again.ok()), (first.epoch, first.ok()));
}

#[test]
fn the_epoch_comes_before_registration() {
    let mut stage = Stage::new();
    let refused = stage.say(saying("nobody", "RECORD", finding("x")).epoch(FAR));
    assert_eq!(refused.code(), ErrorCode::EpochOverflow);
}

#[test]
fn registration_comes_before_a_repetition_with_another_payload() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.say(saying("ada", "RECORD", finding("x")).id("m")).ok();
    stage.send("ada", "DEREGISTER", json!({ "agent_id": "ada" })).ok();
    let refused = stage.say(saying("ada", "RECORD", finding("y")).id("m"));
    assert_eq!(refused.code(), ErrorCode::AgentNotRegistered);
}

#[test]
fn registration_comes_before_the_payload() {
    let mut stage = Stage::new();
    assert_eq!(stage.send("nobody", "RECORD", json!({})).code(), ErrorCode::AgentNotRegistered);
    assert_eq!(stage.send("nobody", "ATTUNE", json!({})).code(), ErrorCode::AgentNotRegistered);
}

#[test]
fn a_repetition_with_another_payload_comes_before_the_payload() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.say(saying("ada", "RECORD", finding("x")).id("m")).ok();
    let refused = stage.say(saying("ada", "RECORD", json!({ "type": "opinion" })).id("m")).refusal();
    assert_eq!((refused.code, &refused.details["key"]), (ErrorCode::InvalidMessage, &json!("id")));
}

#[test]
fn a_payload_is_judged_in_the_order_of_its_keys() {
    let mut stage = Stage::with_agents(&["ada"]);
    let mut payload = json!({
        "mode": "final", "type": "opinion", "content": "", "intent": {}, "confidence": { "score": 2 },
        "relations": [{ "type": "likes", "target_id": "mem-1" }],
    });
    for (key, right, code) in [
        ("mode", json!("committed"), ErrorCode::InvalidMessage),
        ("type", json!("finding"), ErrorCode::InvalidType),
        ("content", json!("x"), ErrorCode::InvalidMessage),
        ("intent", json!({ "purpose": "p" }), ErrorCode::MissingIntent),
        ("confidence", json!({ "score": 1, "reason": "r" }), ErrorCode::InvalidConfidence),
        ("relations", json!([{ "type": "supersedes", "target_id": "mem-99" }]), ErrorCode::InvalidType),
    ] {
        assert_eq!(stage.send("ada", "RECORD", payload.clone()).code(), code, "{key}");
        payload[key] = right;
    }
    // References come last.
    assert_eq!(stage.send("ada", "RECORD", payload).code(), ErrorCode::UnitNotFound);
}

#[test]
fn the_payload_of_a_commit_is_judged_before_the_unit_it_names() {
    let mut stage = Stage::with_agents(&["ada"]);
    let payload = json!({ "memory_unit_id": "mem-99", "confidence": { "score": 0.5 } });
    assert_eq!(stage.send("ada", "COMMIT", payload).code(), ErrorCode::MissingConfidence);
    let payload = json!({ "memory_unit_id": "mem-99", "confidence": { "score": 7, "reason": "r" } });
    assert_eq!(stage.send("ada", "COMMIT", payload).code(), ErrorCode::InvalidConfidence);
    assert_eq!(stage.give_up("ada", "RETRACT", "mem-99").code(), ErrorCode::UnitNotFound);
    let no_reason = json!({ "memory_unit_id": "mem-99" });
    assert_eq!(stage.send("ada", "RETRACT", no_reason).code(), ErrorCode::InvalidMessage);
}

#[test]
fn a_subscription_is_judged_in_the_order_of_its_keys_and_references_come_last() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let taken = json!({ "action": "subscribe", "subscription": { "id": "taken", "events": ["agent.left"] } });
    stage.send("bob", "SUBSCRIBE", taken).ok();
    let mut inner = json!({
        "id": 7, "events": ["x"], "min_relevance": 2, "debounce_ms": -1, "resume_after": "x", "include_unit": 1,
    });
    let send = |stage: &mut Stage, action: &str, inner: &Value| {
        stage.send("ada", "SUBSCRIBE", json!({ "action": action, "subscription": inner }))
    };
    assert_eq!(send(&mut stage, "watch", &inner).refusal().details["key"], "action");
    for (key, right) in [
        ("id", json!("taken")),
        ("events", json!(["agent.left"])),
        ("min_relevance", json!(0.5)),
        ("debounce_ms", json!(0)),
        ("resume_after", json!("999999.0")),
        ("include_unit", json!(true)),
    ] {
        let refusal = send(&mut stage, "subscribe", &inner).refusal();
        assert_eq!(refusal.code, ErrorCode::InvalidMessage);
        assert_eq!(refusal.details["key"], format!("subscription.{key}"));
        inner[key] = right;
    }
    // Whose it is, then whether the place has happened, then whether it says enough, then how many there are.
    assert_eq!(send(&mut stage, "subscribe", &inner).code(), ErrorCode::SubscriptionNotFound);
    inner["id"] = json!("free");
    inner["events"] = json!(null);
    let refusal = send(&mut stage, "subscribe", &inner).refusal();
    assert_eq!(refusal.details["key"], "subscription.resume_after");
    inner["resume_after"] = json!("0.0");
    assert_eq!(send(&mut stage, "subscribe", &inner).refusal().details["key"], "subscription.events");
}
