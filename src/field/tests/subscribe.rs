//! SUBSCRIBE (section 7): what an agent can ask to be told of, and how long that stands.

use serde_json::json;

use super::*;
use crate::limits::SUBSCRIPTIONS_MAX;
use crate::protocol::EventName;

fn asked(subscription: Value) -> Value {
    json!({ "action": "subscribe", "subscription": subscription })
}

impl Stage {
    fn subscribe(&mut self, agent: &str, subscription: Value) -> Reply {
        self.send(agent, "SUBSCRIBE", asked(subscription))
    }

    fn unsubscribe(&mut self, agent: &str, id: &str) -> Reply {
        self.send(agent, "SUBSCRIBE", json!({ "action": "unsubscribe", "subscription": { "id": id } }))
    }

    fn listed(&mut self, agent: &str) -> Vec<Value> {
        list(&self.send(agent, "SUBSCRIBE", json!({ "action": "list" })).ok()["subscriptions"])
    }

    /// The events of the entry at an epoch, by their names in the log.
    fn logged(&self, epoch: u64) -> Vec<&'static str> {
        let entry = Entry::from_json(&self.kept[&epoch]).unwrap();
        entry.events.iter().map(Event::event_type).collect()
    }
}

#[test]
fn a_new_subscription_gets_an_id_its_usual_values_and_the_place_where_it_begins() {
    let mut stage = Stage::with_agents(&["ada"]);
    let reply = stage.subscribe("ada", json!({ "events": ["memory.recorded"] }));
    let epoch = reply.epoch;
    let usual = json!({
        "id": format!("sub-{epoch}"), "events": ["memory.recorded"], "min_relevance": 0.0, "debounce_ms": 0,
        "include_unit": false,
    });
    let told = json!({ "status": "ok", "subscription": usual, "cursor": format!("{epoch}.0") });
    assert_eq!(reply.ok(), told);
    assert_eq!(stage.logged(epoch), ["SUBSCRIBE"]);
    let whole = json!({
        "id": "mine", "events": ["agent.left", "conflict.detected"], "min_relevance": 0.25,
        "debounce_ms": 500, "include_unit": true,
    });
    let reply = stage.subscribe("ada", whole.clone()).ok();
    // In the order of the specification, whatever the order of the wish.
    let whole = with(whole, json!({ "events": ["conflict.detected", "agent.left"] }));
    assert_eq!(reply["subscription"], whole);
    assert_eq!(stage.listed("ada"), [whole, usual]);
}

#[test]
fn every_event_of_the_specification_can_be_asked_for() {
    let mut stage = Stage::with_agents(&["ada"]);
    let names: Vec<_> = EventName::ALL.iter().map(|event| event.name()).collect();
    for name in [
        "memory.recorded",
        "memory.superseded",
        "memory.contested",
        "conflict.detected",
        "conflict.resolved",
        "task.state_changed",
        "task.assigned",
        "task.completed",
        "handoff.incoming",
        "agent.joined",
        "agent.failed",
        "session.paused",
        "session.ended",
        "memory.retracted",
        "memory.archived",
        "agent.left",
        "conflict.escalated",
    ] {
        assert!(names.contains(&name), "{name}");
        stage.subscribe("ada", json!({ "events": [name] })).ok();
    }
    assert_eq!((names.len(), stage.listed("ada").len()), (17, 17));
}

#[test]
fn a_change_keeps_what_it_does_not_name() {
    let mut stage = Stage::with_agents(&["ada"]);
    let first = json!({
        "id": "s", "events": ["memory.recorded"], "min_relevance": 0.5, "debounce_ms": 10, "include_unit": true,
    });
    stage.subscribe("ada", first.clone()).ok();
    for (key, value) in [
        ("events", json!(["agent.left"])),
        ("min_relevance", json!(0.0)),
        ("debounce_ms", json!(0)),
        ("include_unit", json!(false)),
    ] {
        let before = stage.listed("ada").remove(0);
        let reply = stage.subscribe("ada", json!({ "id": "s", key: value }));
        assert_eq!(stage.logged(reply.epoch), ["SUBSCRIBE"], "{key}");
        let after = with(before, json!({ key: value }));
        assert_eq!(reply.ok()["subscription"], after);
        assert_eq!(stage.listed("ada"), [after]);
    }
}

#[test]
fn attaching_again_without_a_change_is_answered_and_is_no_event() {
    let mut stage = Stage::with_agents(&["ada"]);
    let wish = json!({ "id": "s", "events": ["memory.recorded"], "min_relevance": 0.5 });
    let first = stage.subscribe("ada", wish.clone()).ok();
    let world = stage.state.world.subscriptions.clone();
    for again in [wish.clone(), json!({ "id": "s" }), with(wish.clone(), json!({ "resume_after": "1.0" }))] {
        let reply = stage.subscribe("ada", again.clone());
        assert_eq!(stage.logged(reply.epoch), [""; 0], "{again}");
        let (epoch, told) = (reply.epoch, reply.ok());
        assert_eq!(told["subscription"], first["subscription"]);
        let live = json!(format!("{epoch}.0"));
        assert_eq!(
            &told["cursor"],
            again.get("resume_after").unwrap_or(&live),
            "resumes, or is live from now"
        );
    }
    assert!(stage.state.world.subscriptions == world);
}

#[test]
fn another_s_subscription_is_unknown() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    stage.subscribe("ada", json!({ "id": "s", "events": ["memory.recorded"] })).ok();
    for id in ["s", "nobody-has-this"] {
        let refusal = stage.unsubscribe("bob", id).refusal();
        assert_eq!(refusal.code, ErrorCode::SubscriptionNotFound);
        assert_eq!(refusal.details["key"], "subscription.id");
    }
    let taken = stage.subscribe("bob", json!({ "id": "s", "events": ["agent.left"] })).refusal();
    assert_eq!(taken.code, ErrorCode::SubscriptionNotFound);
    assert_eq!(stage.subscribe("bob", json!({ "id": "s" })).code(), ErrorCode::SubscriptionNotFound);
    assert!(stage.listed("bob").is_empty());
    assert_eq!(stage.listed("ada").len(), 1, "nothing was changed");
    // Once it is ended, the name is free.
    stage.unsubscribe("ada", "s").ok();
    stage.subscribe("bob", json!({ "id": "s", "events": ["agent.left"] })).ok();
    assert_eq!(stage.unsubscribe("ada", "s").code(), ErrorCode::SubscriptionNotFound);
}

#[test]
fn unsubscribe_ends_it_once() {
    let mut stage = Stage::with_agents(&["ada"]);
    stage.subscribe("ada", json!({ "id": "s", "events": ["memory.recorded"] })).ok();
    let ended = stage.unsubscribe("ada", "s");
    assert_eq!(stage.logged(ended.epoch), ["UNSUBSCRIBE"]);
    assert_eq!(ended.ok(), json!({ "status": "ok" }));
    assert!(stage.listed("ada").is_empty());
    assert_eq!(stage.unsubscribe("ada", "s").code(), ErrorCode::SubscriptionNotFound);
    // Known no more, it needs to say what it wants to hear of.
    let refusal = stage.subscribe("ada", json!({ "id": "s" })).refusal();
    assert_eq!(refusal.details["key"], "subscription.events");
}

#[test]
fn the_field_s_ids_never_meet_chosen_ones() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    let next = stage.state.clock + 3;
    for chosen in [format!("sub-{next}"), format!("sub-{next}.1")] {
        stage.subscribe("bob", json!({ "id": chosen, "events": ["agent.left"] })).ok();
    }
    let reply = stage.subscribe("ada", json!({ "events": ["memory.recorded"] }));
    assert_eq!(reply.epoch, next);
    assert_eq!(reply.ok()["subscription"]["id"], format!("sub-{next}.2"));
    assert_eq!((stage.listed("ada").len(), stage.listed("bob").len()), (1, 2));
}

#[test]
fn an_agent_has_so_many_and_no_more() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    for at in 0..SUBSCRIPTIONS_MAX {
        stage.subscribe("ada", json!({ "id": format!("s-{at}"), "events": ["agent.left"] })).ok();
    }
    for one_more in [json!({ "events": ["agent.left"] }), json!({ "id": "x", "events": ["agent.left"] })] {
        let refusal = stage.subscribe("ada", one_more).refusal();
        assert_eq!((refusal.code, &refusal.details["limit"]), (ErrorCode::InvalidMessage, &json!(256)));
    }
    assert_eq!(stage.state.world.subscriptions.len(), SUBSCRIPTIONS_MAX);
    // One that is there can be changed, another agent has room of its own, and an ended one makes room.
    stage.subscribe("ada", json!({ "id": "s-7", "include_unit": true })).ok();
    stage.subscribe("bob", json!({ "events": ["agent.left"] })).ok();
    stage.unsubscribe("ada", "s-3").ok();
    stage.subscribe("ada", json!({ "id": "x", "events": ["agent.left"] })).ok();
}

#[test]
fn a_place_that_has_not_happened_is_refused_exactly() {
    let mut stage = Stage::with_agents(&["ada"]);
    let clock = stage.state.clock;
    let wish = |epoch: u64| json!({ "events": ["agent.left"], "resume_after": format!("{epoch}.0") });
    let refusal = stage.subscribe("ada", wish(clock + 1)).refusal();
    assert_eq!(refusal.code, ErrorCode::InvalidMessage);
    assert_eq!(refusal.details["key"], "subscription.resume_after");
    assert_eq!(refusal.details["clock"], clock);
    assert!(stage.listed("ada").is_empty(), "nothing was made");
    let reply = stage.subscribe("ada", wish(stage.state.clock)).ok();
    assert_eq!(reply["cursor"], format!("{}.0", clock + 1), "the list before took an epoch");
    let beginning = stage.subscribe("ada", json!({ "events": ["agent.left"], "resume_after": "0.0" })).ok();
    assert_eq!(beginning["cursor"], "0.0");
}

#[test]
fn leaving_ends_all_of_an_agent_s_and_failing_none() {
    let mut stage = Stage::with_agents(&["ada", "bob"]);
    for agent in ["ada", "bob"] {
        for id in [1, 2] {
            let wish = json!({ "id": format!("{agent}-{id}"), "events": ["agent.left"] });
            stage.say(saying(agent, "SUBSCRIBE", asked(wish)).over(7)).ok();
        }
    }
    stage.drop_connection(7);
    stage.wait(crate::limits::GRACE_MS);
    assert_eq!(stage.agent_status("ada"), "failed");
    assert_eq!(stage.state.world.subscriptions.len(), 4);
    stage.join("ada");
    stage.join("bob");
    assert_eq!((stage.listed("ada").len(), stage.listed("bob").len()), (2, 2), "they outlive a failure");
    stage.send("bob", "DEREGISTER", json!({ "agent_id": "ada" })).ok();
    stage.join("ada");
    assert_eq!((stage.listed("ada").len(), stage.listed("bob").len()), (0, 2));
    stage.subscribe("bob", json!({ "id": "ada-1", "events": ["agent.left"] })).ok();
    assert!(stage.rebuilt().world == stage.state.world);
}

#[test]
fn a_repeated_message_gets_its_first_answer_whatever_came_after() {
    let mut stage = Stage::with_agents(&["ada"]);
    let wish = || saying("ada", "SUBSCRIBE", asked(json!({ "id": "s", "events": ["agent.left"] }))).id("m");
    let first = stage.say(wish());
    stage.subscribe("ada", json!({ "id": "s", "include_unit": true })).ok();
    let again = stage.say(wish());
    assert_eq!((again.epoch, again.ok()), (first.epoch, first.ok()));
    stage.unsubscribe("ada", "s").ok();
    stage.say(wish()).ok();
    assert!(stage.listed("ada").is_empty(), "a repetition makes nothing anew");
    let other = saying("ada", "SUBSCRIBE", asked(json!({ "id": "s", "events": ["agent.joined"] }))).id("m");
    assert_eq!(stage.say(other).refusal().details["key"], "id");
}

#[test]
fn list_is_a_read_that_leaves_no_trace() {
    let mut stage = Stage::with_agents(&["ada"]);
    let before = stage.kept.len();
    let reply = stage.send("ada", "SUBSCRIBE", json!({ "action": "list", "subscription": 7 }));
    assert_eq!(reply.epoch, 2, "it has an epoch of its own");
    assert_eq!(reply.ok(), json!({ "status": "ok", "subscriptions": [] }));
    assert_eq!(stage.kept.len(), before);
    assert_eq!(
        stage.send("bob", "SUBSCRIBE", json!({ "action": "list" })).code(),
        ErrorCode::AgentNotRegistered
    );
}

#[test]
fn push_begins_at_level_2() {
    for (level, served) in [(0, false), (1, false), (2, true), (3, true)] {
        let mut stage = Stage::of_level(level);
        stage.join("ada");
        for payload in [asked(json!({ "events": ["agent.left"] })), json!({ "action": "list" }), json!({})] {
            let code = stage.send("ada", "SUBSCRIBE", payload).outcome.err().map(|refusal| refusal.code);
            assert_eq!(code != Some(ErrorCode::UnsupportedOperation), served, "{code:?} at {level}");
        }
    }
}
