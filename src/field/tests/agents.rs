//! REGISTER, DEREGISTER and liveness (sections 4, 7 and 12).

use serde_json::json;

use super::*;

const GRACE: u64 = crate::limits::GRACE_MS;

fn register(agent: &str, role: &str) -> Saying {
    saying(agent, "REGISTER", json!({ "id": agent, "role": role }))
}

#[test]
fn an_agent_starts_idle_and_is_told_what_the_field_can() {
    let mut stage = Stage::new();
    let payload = json!({ "id": "ada", "role": "analyst", "interests": ["markets"] });
    let reply = stage.send("ada", "REGISTER", payload).ok();
    assert_eq!(reply["status"], "registered");
    assert_eq!(reply["rejection_reason"], json!(null));
    let agent = json!({
        "id": "ada", "role": "analyst", "status": "idle", "interests": ["markets"], "current_task_id": null,
    });
    assert_eq!(reply["agent"], agent);
    let capabilities = &reply["field_capabilities"];
    assert_eq!(capabilities["conformance_level"], 1);
    assert_eq!(capabilities["protocol_version"], "0.1.0");
    let operations = list(&capabilities["supported_operations"]);
    assert!(operations.contains(&json!("REPLAY")) && !operations.contains(&json!("HANDOFF")));
}

#[test]
fn an_agent_registers_only_itself() {
    let mut stage = Stage::new();
    let refused = stage.send("ada", "REGISTER", json!({ "id": "bob", "role": "r" }));
    assert_eq!(refused.code(), ErrorCode::InvalidMessage);
}

#[test]
fn the_id_of_an_active_agent_is_taken_whatever_the_role() {
    let mut stage = Stage::with_agents(&["ada"]);
    assert_eq!(stage.say(register("ada", "ada")).code(), ErrorCode::AgentIdTaken);
    assert_eq!(stage.say(register("ada", "other")).code(), ErrorCode::AgentIdTaken);
}

#[test]
fn the_id_of_an_agent_that_holds_a_connection_is_taken() {
    let mut stage = Stage::new();
    stage.say(register("ada", "r").over(1)).ok();
    assert_eq!(stage.say(register("ada", "r").over(2)).code(), ErrorCode::AgentIdTaken);
}

#[test]
fn the_system_id_is_taken_and_never_registered() {
    let mut stage = Stage::new();
    assert_eq!(stage.say(register("system", "r")).code(), ErrorCode::AgentIdTaken);
    assert_eq!(stage.send("system", "RECORD", finding("x")).code(), ErrorCode::AgentNotRegistered);
}

#[test]
fn an_agent_whose_only_connection_dropped_resumes_in_the_same_role_alone() {
    let mut stage = Stage::new();
    stage.say(register("ada", "r").over(1)).ok();
    stage.drop_connection(1);
    assert_eq!(stage.say(register("ada", "other").over(2)).code(), ErrorCode::AgentIdTaken);
    stage.say(register("ada", "r").over(2)).ok();
    stage.wait(GRACE * 2);
    assert_eq!(stage.agent_status("ada"), "idle");
}

#[test]
fn a_resumed_agent_still_lives_by_its_connections() {
    let mut stage = Stage::new();
    stage.say(register("ada", "r").over(1)).ok();
    stage.drop_connection(1);
    stage.say(register("ada", "r")).ok();
    stage.wait(GRACE);
    assert_eq!(stage.agent_status("ada"), "failed");
}

#[test]
fn with_one_of_two_connections_gone_an_agent_is_still_there() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.say(saying("ada", "RECORD", finding("x")).over(1)).ok();
    stage.say(saying("ada", "RECORD", finding("y")).over(2)).ok();
    stage.drop_connection(1);
    stage.wait(GRACE * 2);
    assert_eq!(stage.agent_status("ada"), "idle");
    assert_eq!(stage.say(register("ada", "ada")).code(), ErrorCode::AgentIdTaken);
    stage.drop_connection(2);
    stage.wait(GRACE);
    assert_eq!(stage.agent_status("ada"), "failed");
}

#[test]
fn the_time_of_grace_is_exact_and_returning_needs_no_register() {
    let mut stage = Stage::new();
    stage.say(register("ada", "r").over(1)).ok();
    stage.drop_connection(1);
    stage.wait(GRACE - 2);
    assert_eq!(stage.agent_status("ada"), "idle");
    stage.say(saying("ada", "RECORD", finding("back")).over(2)).ok();
    stage.wait(GRACE * 2);
    assert_eq!(stage.agent_status("ada"), "idle");
    stage.drop_connection(2);
    stage.wait(GRACE - 1);
    assert_eq!(stage.agent_status("ada"), "idle");
    stage.wait(1);
    assert_eq!(stage.agent_status("ada"), "failed");
}

#[test]
fn a_failed_agent_must_register_again_and_may_in_any_role() {
    let mut stage = Stage::new();
    stage.say(register("ada", "r").over(1)).ok();
    stage.drop_connection(1);
    stage.wait(GRACE);
    assert_eq!(stage.send("ada", "RECORD", finding("x")).code(), ErrorCode::AgentNotRegistered);
    stage.say(register("ada", "another")).ok();
    stage.send("ada", "RECORD", finding("x")).ok();
    stage.wait(GRACE * 100);
    assert_eq!(stage.agent_status("ada"), "idle", "it came back without a connection");
}

#[test]
fn an_agent_that_never_held_a_connection_is_active_until_it_leaves() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.wait(GRACE * 1_000_000);
    stage.record("ada", "still here");
}

#[test]
fn a_read_over_a_connection_ties_an_agent_to_it_even_across_a_restart() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.say(saying("ada", "DETECT", json!({ "mode": "list" })).over(1)).ok();
    let mut after = stage.rebuilt();
    after.presence.resume(&after.world, Timestamp(stage.now));
    stage.state = after;
    stage.wait(GRACE - 1);
    assert_eq!(stage.agent_status("ada"), "idle");
    stage.wait(1);
    assert_eq!(stage.agent_status("ada"), "failed");
}

#[test]
fn a_refused_message_ties_nobody_to_a_connection() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.say(saying("ada", "RECORD", json!({})).over(1)).refusal();
    stage.drop_connection(1);
    stage.wait(GRACE * 2);
    assert_eq!(stage.agent_status("ada"), "idle");
}

#[test]
fn several_agents_may_share_a_connection_and_all_miss_it() {
    let mut stage = Stage::with_agents(&["ada", "bob", "eve"]);
    for agent in ["ada", "bob"] {
        stage.say(saying(agent, "RECORD", finding("x")).over(1)).ok();
    }
    stage.drop_connection(1);
    stage.wait(GRACE);
    let statuses = ["ada", "bob", "eve"].map(|agent| stage.agent_status(agent));
    assert_eq!(statuses, ["failed", "failed", "idle"]);
}

#[test]
fn failing_is_the_systems_own_entry_with_an_epoch_of_its_own() {
    let mut stage = Stage::new();
    stage.say(register("ada", "r").over(1)).ok();
    let clock = stage.state.clock;
    stage.drop_connection(1);
    stage.wait(GRACE);
    let entry = Entry::from_json(&stage.kept[&(clock + 1)]).unwrap();
    assert_eq!((&*entry.agent_id, entry.operation, entry.message_id), ("system", None, None));
    assert_eq!(entry.events, [Event::Failed { agent: "ada".into() }]);
    assert_eq!(stage.state.clock, clock + 1);
}

#[test]
fn leaving_ends_attachments_and_keeps_the_units() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let unit = stage.say(saying("ada", "RECORD", finding("stays")).over(1)).unit_id();
    let gone = stage.record("ada", "gone");
    stage.give_up("ada", "RETRACT", &gone).ok();
    let reply = stage.say(saying("ada", "DEREGISTER", json!({ "agent_id": "ada" })).over(1)).ok();
    let cleanup = json!({ "units_orphaned": 1, "tasks_reassigned": 0 });
    assert_eq!(reply, json!({ "status": "ok", "cleanup": cleanup }));
    stage.drop_connection(1);
    stage.wait(GRACE * 2);
    assert_eq!(stage.agent_status("ada"), "offline", "not failed: it left");
    assert_eq!(stage.attuned_ids("bob", json!({})), [unit]);
}

#[test]
fn anybody_may_deregister_anybody_and_an_unknown_one_is_not_found() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    assert_eq!(stage.send("ada", "DEREGISTER", json!({ "agent_id": "bob" })).ok()["status"], "ok");
    assert_eq!(stage.agent_status("bob"), "offline");
    assert_eq!(stage.send("bob", "RECORD", finding("x")).code(), ErrorCode::AgentNotRegistered);
    for target in ["nobody", "system"] {
        let reply = stage.send("ada", "DEREGISTER", json!({ "agent_id": target })).ok();
        assert_eq!(reply["status"], "not_found");
    }
}

#[test]
fn an_agent_that_left_registers_again_in_another_role_and_keeps_its_units() {
    let mut stage = Stage::with_agents(&["ada"]);
    let unit = stage.record("ada", "x");
    stage.send("ada", "DEREGISTER", json!({ "agent_id": "ada" })).ok();
    stage.say(register("ada", "another")).ok();
    assert_eq!(&*stage.slot(&unit).said().source.agent_role, "ada");
    stage.give_up("ada", "RETRACT", &unit).ok();
}

#[test]
fn an_agent_that_needs_what_is_not_served_is_rejected_and_not_registered() {
    let mut stage = Stage::new();
    let needs = json!({ "id": "ada", "role": "r", "required_operations": ["RECORD", "HANDOFF", "DREAM"] });
    let first = stage.say(saying("ada", "REGISTER", needs.clone()).id("reg"));
    let again = stage.say(saying("ada", "REGISTER", needs).id("reg"));
    assert_eq!(
        (first.epoch, first.outcome.as_ref().unwrap()),
        (again.epoch, again.outcome.as_ref().unwrap())
    );
    let reply = first.ok();
    assert_eq!((&reply["status"], &reply["agent"]), (&json!("rejected"), &json!(null)));
    let reason = text(&reply["rejection_reason"]);
    assert!(reason.contains("HANDOFF") && reason.contains("DREAM") && !reason.contains("RECORD"), "{reason}");
    assert!(stage.state.world.agents.is_empty());
    let needs = json!({ "id": "ada", "role": "r", "required_operations": ["RECORD", "REPLAY"] });
    stage.send("ada", "REGISTER", needs).ok();
}

#[test]
fn agents_are_shown_with_their_presence() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    stage.say(saying("ada", "DETECT", json!({ "mode": "list" })).over(1)).ok();
    let shown = stage.state.world.agents_shown(&stage.state.presence.all());
    let agents = list(&shown["agents"]);
    assert_eq!([&agents[0]["connected"], &agents[1]["connected"]], [&json!(true), &json!(false)]);
    assert_eq!((&agents[1]["id"], &agents[1]["registered_epoch"]), (&json!("bob"), &json!(2)));
    assert_eq!(agents[0]["last_seen"], json!(Timestamp(stage.now)));
}

#[test]
fn after_a_restart_only_those_who_lived_by_connections_have_to_return() {
    let mut stage = Stage::with_agents(&["ada", "bob", "eve"]);
    stage.say(saying("bob", "RECORD", finding("x")).over(1)).ok();
    stage.say(saying("eve", "RECORD", finding("x")).over(2)).ok();
    let last_seen = stage.state.presence.of(2).last_seen;
    stage.state = stage.rebuilt();
    assert_eq!(stage.state.presence.of(2).last_seen, last_seen, "as the log tells it");
    stage.state.presence.resume(&stage.state.world, Timestamp(stage.now));
    stage.say(saying("eve", "RECORD", finding("back")).over(3)).ok();
    stage.wait(GRACE);
    let statuses = ["ada", "bob", "eve"].map(|agent| stage.agent_status(agent));
    assert_eq!(statuses, ["idle", "failed", "idle"]);
}

/// What the hub does when a commit failed: the log's state again, the same connections.
fn lose_everything_after(stage: &mut Stage, epoch: u64) {
    stage.kept.split_off(&(epoch + 1));
    let mut state = stage.rebuilt();
    std::mem::swap(&mut state.presence, &mut stage.state.presence);
    state.presence.resume(&state.world, Timestamp(stage.now));
    state.clock = stage.state.clock;
    stage.state = state;
}

#[test]
fn an_agent_whose_return_was_lost_stays_offline_and_does_not_fail() {
    let mut stage = Stage::with_agents(&["ada"]);
    let left = stage.send("ada", "DEREGISTER", json!({ "agent_id": "ada" })).epoch;
    stage.say(register("ada", "ada").over(1)).ok();
    lose_everything_after(&mut stage, left);
    stage.drop_connection(1);
    stage.wait(GRACE * 2);
    assert_eq!(stage.agent_status("ada"), "offline");
}

#[test]
fn the_connections_of_an_agent_whose_register_was_lost_are_not_the_next_ones() {
    let mut stage = Stage::with_agents(&["ada"]);
    let clock = stage.state.clock;
    stage.say(register("eve", "r").over(1)).ok();
    lose_everything_after(&mut stage, clock);
    stage.join("kim");
    stage.drop_connection(1);
    stage.wait(GRACE * 2);
    assert_eq!(stage.agent_status("kim"), "idle");
    stage.say(register("eve", "r").over(2)).ok();
}

#[test]
fn an_agent_whose_register_was_lost_comes_back_over_the_same_connection() {
    let mut stage = Stage::with_agents(&["ada"]);
    let left = stage.send("ada", "DEREGISTER", json!({ "agent_id": "ada" })).epoch;
    stage.say(register("ada", "ada").over(1)).ok();
    lose_everything_after(&mut stage, left);
    stage.say(register("ada", "ada").over(1)).ok();
    stage.wait(GRACE * 2);
    assert_eq!(stage.agent_status("ada"), "idle");
    stage.drop_connection(1);
    stage.wait(GRACE);
    assert_eq!(stage.agent_status("ada"), "failed");
}
