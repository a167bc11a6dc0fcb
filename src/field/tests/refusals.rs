//! Every no of the heart says what was wrong and what to do next (section 9).

use serde_json::json;

use super::*;

/// One message for each way to be refused.
fn refused() -> Vec<(ErrorCode, Refusal)> {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let (unit, draft) = (stage.record("ada", "x"), stage.draft("ada", "y"));
    stage.say(saying("ada", "RECORD", finding("x")).id("m")).ok();
    let [open, ended] = [(); 2].map(|()| Dispute::between(&mut stage, json!({}), json!({})).conflict);
    stage.merge("ada", &ended, "last_write_wins", json!({})).ok();
    let merge = |conflict: &str, strategy: &str, more: Value| {
        let resolution = with(json!({ "rationale": "r" }), more);
        let payload = json!({ "conflict_id": conflict, "strategy": strategy, "resolution": resolution });
        saying("ada", "MERGE", payload)
    };
    stage.policy.limits.replay_events = 0;
    let without = |key: &str| with(finding("x"), json!({ key: null }));
    let score = |score: Value| with(finding("x"), json!({ "confidence": { "score": score, "reason": "r" } }));
    let register = |id: &str| json!({ "id": id, "role": "r" });
    let give_up = |unit: &str| json!({ "memory_unit_id": unit, "reason": "r" });
    let wish = |wish: Value| json!({ "action": "subscribe", "subscription": wish });
    let ending = |id: &str| json!({ "action": "unsubscribe", "subscription": { "id": id } });
    let replay = |id: &str| json!({ "target_type": "memory_unit", "target_id": id, "depth": "full_trace" });
    [
        (ErrorCode::MissingIntent, saying("ada", "RECORD", without("intent"))),
        (ErrorCode::MissingConfidence, saying("ada", "RECORD", without("confidence"))),
        (ErrorCode::MissingConfidence, saying("ada", "RECORD", score(json!(null)))),
        (ErrorCode::InvalidConfidence, saying("ada", "RECORD", score(json!(1.01)))),
        (ErrorCode::InvalidConfidence, saying("ada", "RECORD", score(json!("high")))),
        (ErrorCode::InvalidType, saying("ada", "RECORD", without("type"))),
        (ErrorCode::InvalidType, saying("ada", "RECORD", related("x", &[["likes", &unit]]))),
        (ErrorCode::InvalidMessage, saying("ada", "RECORD", without("content"))),
        (ErrorCode::InvalidMessage, saying("ada", "RECORD", finding("y")).id("m")),
        (ErrorCode::InvalidMessage, saying("ada", "REGISTER", register("bob"))),
        (ErrorCode::AgentNotRegistered, saying("eve", "RECORD", finding("x"))),
        (ErrorCode::AgentIdTaken, saying("ada", "REGISTER", register("ada"))),
        (ErrorCode::AgentIdTaken, saying("system", "REGISTER", register("system"))),
        (ErrorCode::EpochOverflow, saying("ada", "RECORD", finding("x")).epoch(1 << 60)),
        (ErrorCode::UnsupportedOperation, saying("ada", "HANDOFF", json!({}))),
        (ErrorCode::UnitNotFound, saying("ada", "DETECT", json!({ "mode": "check", "target_id": "mem-99" }))),
        (ErrorCode::UnitNotFound, saying("ada", "RETRACT", give_up("mem-99"))),
        (ErrorCode::UnitNotFound, saying("ada", "RECORD", related("x", &[["supersedes", "mem-99"]]))),
        (ErrorCode::UnitNotFound, saying("ada", "REPLAY", replay("mem-99"))),
        (ErrorCode::InvalidTransition, saying("ada", "RETRACT", give_up(&draft))),
        (ErrorCode::InvalidTransition, saying("ada", "RECORD", related("x", &[["supersedes", &draft]]))),
        (ErrorCode::InvalidTransition, merge(&ended, "vote", json!({ "winner_id": unit }))),
        (ErrorCode::InvalidTransition, merge(&open, "human_escalation", json!({ "winner_id": unit }))),
        (ErrorCode::MergeFailed, merge(&open, "vote", json!({ "winner_id": unit }))),
        (ErrorCode::MergeFailed, merge(&open, "vote", json!({}))),
        (ErrorCode::MergeFailed, merge(&open, "synthesis", json!({}))),
        (ErrorCode::MergeFailed, merge(&open, "synthesis", json!({ "synthesis": "x", "winner_id": unit }))),
        (ErrorCode::MergeFailed, merge(&open, "last_write_wins", json!({ "synthesis": "x" }))),
        (ErrorCode::ConflictNotFound, merge("conflict-999", "vote", json!({}))),
        (ErrorCode::InvalidMessage, merge(&open, "dice", json!({}))),
        (ErrorCode::InvalidMessage, merge(&open, "vote", json!({ "rationale": " " }))),
        (ErrorCode::Forbidden, saying("bob", "RETRACT", give_up(&unit))),
        (ErrorCode::SubscriptionNotFound, saying("ada", "SUBSCRIBE", ending("unknown"))),
        (ErrorCode::InvalidMessage, saying("ada", "SUBSCRIBE", wish(json!({ "id": "new" })))),
        (ErrorCode::InvalidMessage, saying("ada", "SUBSCRIBE", wish(json!({ "events": ["agent.lost"] })))),
        (ErrorCode::InvalidMessage, saying("ada", "SUBSCRIBE", wish(json!({ "resume_after": "9999.0" })))),
        (ErrorCode::ReplayTooLarge, saying("ada", "REPLAY", replay(&unit))),
    ]
    .map(|(code, message)| (code, stage.say(message).refusal()))
    .to_vec()
}

#[test]
fn every_refusal_has_its_code_a_message_and_a_suggested_action() {
    for (expected, refusal) in refused() {
        assert_eq!(refusal.code, expected, "{refusal}");
        for sentence in [&refusal.message, &refusal.suggested_action] {
            assert!(sentence.len() > 10 && sentence.ends_with('.'), "{expected}: {sentence:?}");
        }
    }
}

#[test]
fn refusals_of_record_and_register_also_say_rejected() {
    use crate::protocol::Operation;
    for (_, refusal) in refused() {
        for (operation, rejects) in
            [(Operation::Record, true), (Operation::Register, true), (Operation::Attune, false)]
        {
            let body = refusal.body(Some(operation));
            assert_eq!(body.status.as_deref(), rejects.then_some("rejected"));
            assert_eq!(body.rejection_reason.is_some(), rejects);
            assert_eq!((body.operation.as_str(), body.code), (operation.name(), refusal.code));
        }
    }
}

#[test]
fn an_unreadable_payload_is_refused_after_registration() {
    let mut stage = Stage::with_agents(&["ada"]);
    for agent in ["ada", "eve"] {
        let envelope = format!(
            r#"{{"protocol":"akashik","version":"0.1.0","id":"m","operation":"RECORD","agent_id":"{agent}","session_id":null,"epoch":0,"payload":{{"content":1e999}}}}"#
        );
        let message = Message::read(&Envelope::parse(&envelope).unwrap(), &stage.policy);
        let command = Command { at: Timestamp(stage.now), connection: None, message };
        let expected = if agent == "ada" { ErrorCode::InvalidMessage } else { ErrorCode::AgentNotRegistered };
        match decide(&stage.state, &stage.policy, &command) {
            Verdict::Refuse(refusal) => assert_eq!(refusal.code, expected),
            other => panic!("{other:?}"),
        }
    }
    stage.record("ada", "goes on");
}

#[test]
fn who_can_do_better_next_time_is_told_so() {
    // The table of section 9; warnings, which are answered 200, are recoverable too.
    let hopeless = [
        ErrorCode::ConflictNotFound,
        ErrorCode::UnitNotFound,
        ErrorCode::UnsupportedOperation,
        ErrorCode::StorageFull,
        ErrorCode::EpochOverflow,
        ErrorCode::InternalError,
        ErrorCode::Forbidden,
        ErrorCode::FieldNotFound,
        ErrorCode::SubscriptionNotFound,
    ];
    for code in ErrorCode::ALL {
        assert_eq!(code.is_recoverable(), !hopeless.contains(code), "{code}");
    }
}
