//! The Lamport clock (section 2).

use serde_json::json;

use super::*;
use crate::limits::{EPOCH_CEILING, EPOCH_LEAD_MAX};

#[test]
fn every_operation_has_an_epoch_of_its_own_reads_and_rejections_included() {
    let mut stage = Stage::with_agents(&["ada"]);
    let scope = json!({ "scope": { "role": "r", "max_units": 1 } });
    let messages = [
        ("RECORD", finding("x")),
        ("ATTUNE", scope),
        ("DETECT", json!({ "mode": "list" })),
        ("REPLAY", json!({ "target_type": "memory_unit", "target_id": "mem-2", "depth": "summary" })),
        ("REGISTER", json!({ "id": "ada", "role": "r", "required_operations": ["HANDOFF"] })),
        ("RETRACT", json!({ "memory_unit_id": "mem-2", "reason": "r" })),
        ("RETRACT", json!({ "memory_unit_id": "mem-2", "reason": "r" })),
        ("DEREGISTER", json!({ "agent_id": "ada" })),
    ];
    for (last, (operation, payload)) in (stage.state.clock..).zip(messages) {
        let reply = stage.send("ada", operation, payload);
        assert_eq!(reply.epoch, last + 1, "{operation}");
        reply.ok();
    }
}

#[test]
fn the_clock_goes_to_the_greater_of_both_and_one_more() {
    let mut stage = Stage::with_agents(&["ada"]);
    assert_eq!(stage.say(saying("ada", "RECORD", finding("ahead")).epoch(40)).epoch, 41);
    assert_eq!(stage.say(saying("ada", "RECORD", finding("equal")).epoch(41)).epoch, 42);
    assert_eq!(stage.say(saying("ada", "RECORD", finding("behind")).epoch(3)).epoch, 43);
    assert_eq!(stage.slot("mem-43").epoch, 43);
}

#[test]
fn a_refused_message_takes_no_epoch_and_its_reply_shows_the_clock() {
    let mut stage = Stage::with_agents(&["ada"]);
    let clock = stage.state.clock;
    let refused = stage.say(saying("ada", "RECORD", json!({})).epoch(500));
    assert_eq!((refused.epoch, refused.code()), (clock, ErrorCode::InvalidType));
    assert_eq!(stage.say(saying("ada", "RECORD", finding("x"))).epoch, clock + 1);
}

#[test]
fn a_clock_too_far_ahead_is_refused_and_not_adopted_exactly_beyond_the_bound() {
    let mut stage = Stage::with_agents(&["ada"]);
    let clock = stage.state.clock;
    let beyond = stage.say(saying("ada", "RECORD", finding("x")).epoch(clock + EPOCH_LEAD_MAX + 1));
    assert_eq!((beyond.epoch, beyond.code()), (clock, ErrorCode::EpochOverflow));
    let at = stage.say(saying("ada", "RECORD", finding("x")).epoch(clock + EPOCH_LEAD_MAX));
    assert_eq!(at.epoch, clock + EPOCH_LEAD_MAX + 1);
}

#[test]
fn epochs_stay_below_two_to_the_53() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.state.clock = EPOCH_CEILING - 3;
    for epoch in [EPOCH_CEILING - 1, EPOCH_CEILING, u64::MAX] {
        let refused = stage.say(saying("ada", "RECORD", finding("x")).epoch(epoch));
        assert_eq!(refused.code(), ErrorCode::EpochOverflow);
    }
    let last = stage.say(saying("ada", "RECORD", finding("x")).epoch(EPOCH_CEILING - 2));
    assert_eq!(last.epoch, EPOCH_CEILING - 1);
    assert_eq!(stage.send("ada", "RECORD", finding("x")).code(), ErrorCode::EpochOverflow);
    assert!(connect(&stage.state, 0, Timestamp(0)).is_none(), "the Field's own entries end there too");
}
