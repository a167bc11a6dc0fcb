//! Repeated messages (sections 2 and 12).

use serde_json::json;

use super::*;
use crate::limits::{REMEMBERED_AGE_MIN_MS, REMEMBERED_MESSAGES_MIN};

#[test]
fn a_repeat_gets_the_first_answer_and_changes_nothing() {
    let mut stage = Stage::with_agents(&["ada"]);
    let first = stage.say(saying("ada", "RECORD", finding("x")).id("m"));
    stage.record("ada", "between");
    let (world, clock) = (stage.state.world.clone(), stage.state.clock);
    let again = stage.say(saying("ada", "RECORD", finding("x")).id("m"));
    assert_eq!((again.epoch, again.ok()), (first.epoch, first.ok()));
    assert!(stage.state.world == world && stage.state.clock == clock);
}

#[test]
fn a_repeat_is_known_after_a_restart() {
    let mut stage = Stage::with_agents(&["ada"]);
    let first = stage.say(saying("ada", "RECORD", finding("x")).id("m"));
    stage.state = stage.rebuilt();
    assert_eq!(stage.say(saying("ada", "RECORD", finding("x")).id("m")).epoch, first.epoch);
    assert_eq!(stage.say(saying("ada", "RECORD", finding("y")).id("m")).code(), ErrorCode::InvalidMessage);
}

#[test]
fn the_same_id_with_another_payload_or_operation_is_refused() {
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.draft("ada", "x");
    let payload = json!({ "memory_unit_id": unit, "reason": "r" });
    stage.say(saying("ada", "DISCARD", payload.clone()).id("m")).ok();
    let other_payload = json!({ "memory_unit_id": unit, "reason": "another" });
    assert_eq!(stage.say(saying("ada", "DISCARD", other_payload).id("m")).code(), ErrorCode::InvalidMessage);
    assert_eq!(stage.say(saying("ada", "RETRACT", payload).id("m")).code(), ErrorCode::InvalidMessage);
}

#[test]
fn the_same_id_of_another_agent_is_another_message() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let one = stage.say(saying("ada", "RECORD", finding("x")).id("m")).unit_id();
    let two = stage.say(saying("bob", "RECORD", finding("x")).id("m")).unit_id();
    assert_ne!(one, two);
}

#[test]
fn a_repeat_is_answered_after_its_agent_has_left() {
    let mut stage = Stage::with_agents(&["ada"]);
    let bye = saying("ada", "DEREGISTER", json!({ "agent_id": "ada" })).id("bye");
    let first = stage.say(bye.clone()).ok();
    assert_eq!(stage.say(bye).ok(), first);
    assert_eq!(stage.agent_status("ada"), "offline");
}

#[test]
fn a_repeated_register_does_not_bring_its_agent_back() {
    let mut stage = Stage::new();
    let hello = saying("ada", "REGISTER", json!({ "id": "ada", "role": "r" })).id("hello");
    let first = stage.say(hello.clone()).ok();
    stage.send("ada", "DEREGISTER", json!({ "agent_id": "ada" })).ok();
    assert_eq!(stage.say(hello).ok(), first);
    assert_eq!(stage.agent_status("ada"), "offline");
}

#[test]
fn a_refused_message_is_not_remembered() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.say(saying("ada", "RECORD", json!({ "type": "finding" })).id("m")).refusal();
    stage.say(saying("ada", "RECORD", finding("corrected")).id("m")).ok();
}

#[test]
fn reads_are_neither_remembered_nor_looked_up() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let scope = json!({ "scope": { "role": "r", "max_units": 9 } });
    let before = stage.say(saying("ada", "ATTUNE", scope.clone()).id("m")).ok();
    stage.record("bob", "news");
    let after = stage.say(saying("ada", "ATTUNE", scope.clone()).id("m")).ok();
    assert_eq!((ids_of(&before).len(), ids_of(&after).len()), (0, 1));
    stage.say(saying("ada", "RECORD", finding("x")).id("m")).ok();
    stage.say(saying("ada", "ATTUNE", scope).id("m")).ok();
}

#[test]
fn an_answer_that_changed_nothing_is_remembered_too() {
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.record("ada", "x");
    stage.give_up("ada", "RETRACT", &unit).ok();
    let again = saying("ada", "RETRACT", json!({ "memory_unit_id": unit, "reason": "r" })).id("m");
    let first = stage.say(again.clone());
    assert_eq!(stage.say(again).epoch, first.epoch);
}

#[test]
fn a_message_is_forgotten_when_it_is_both_old_and_long_ago() {
    let remembered = |count: usize, last_at: u64| {
        let mut ledger = Ledger::default();
        let of = |epoch: u64| super::state::Remembered { epoch, digest: epoch };
        ledger.remember(0, of(0), 0);
        for no in 1..count {
            ledger.remember(no as u128, of(no as u64), last_at);
        }
        ledger.get(0).is_some()
    };
    let (many, day) = (REMEMBERED_MESSAGES_MIN, REMEMBERED_AGE_MIN_MS);
    assert!(remembered(many, day * 9), "among the last 100,000");
    assert!(remembered(many + 1, day), "within 24 hours");
    assert!(!remembered(many + 1, day + 1));
}
