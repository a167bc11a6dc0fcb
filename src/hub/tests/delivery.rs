//! A whole Field and lines to it, without sockets: replies before pushes, failing commits, what is told without a
//! subscription, changes from elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::Hub;
use super::super::outbox::Outbox;
use super::stage::{PATIENCE, Stage, contradicts, text, with_relations};
use crate::config::Config;
use crate::field::tests::all_notices;
use crate::log::{Log, LogError, MemoryLog, Moment};
use crate::protocol::{Cursor, ErrorCode, EventName};

#[tokio::test(flavor = "multi_thread")]
async fn one_s_own_reply_comes_before_the_push_of_its_effect() {
    let stage = Stage::new().await;
    let mut shared = stage.line(1, &["ada", "bob"]).await;
    let mut other = stage.line(2, &["eve"]).await;
    shared.subscribe("bob", json!({ "id": "s", "events": ["memory.recorded"] })).await;
    other.subscribe("eve", json!({ "id": "t", "events": ["memory.recorded"] })).await;
    for at in 0..20 {
        let payload = with_relations(&at.to_string(), json!([]));
        let pending = shared.submit("ada", "RECORD", &payload).await;
        let answer = timeout(PATIENCE, pending).await.expect("answered");
        // It is durable and told to others, but the reply is not written.
        assert!(other.heard().await.starts_with("t memory.recorded"));
        assert!(shared.outbox.ready().is_none() && shared.outbox.next().now_or_never().is_none());
        shared.written("ada", "RECORD", &payload, &answer);
        let push = shared.outbox.ready().expect("it is at hand as soon as the reply is");
        assert_eq!(push.cursor(), Cursor::new(answer.epoch, 0));
    }
    // What others do is not held back by a reply that is not written.
    let payload = with_relations("held", json!([]));
    let pending = shared.submit("ada", "RECORD", &payload).await;
    timeout(PATIENCE, pending).await.expect("answered");
    assert!(other.heard().await.starts_with("t memory.recorded"));
    stage.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_fail_are_told_of_as_far_as_the_log_holds_them() {
    let stage = Stage::new().await;
    let mut listening = stage.line(1, &["bob"]).await;
    listening
        .subscribe("bob", json!({ "id": "s", "events": ["memory.recorded"], "resume_after": "0.0" }))
        .await;
    let mut writing = stage.line(2, &["ada"]).await;
    let mut heard = Vec::new();
    for at in 0..60_u64 {
        if at % 6 == 3 {
            let moment = if at % 4 == 1 { Moment::Before } else { Moment::After };
            stage.faults.fail_append(1, moment, LogError::Io("pulled".to_owned()));
        }
        let mut pending = Vec::new();
        for nth in 0..3 {
            pending.push(
                writing.submit("ada", "RECORD", &with_relations(&format!("{at}-{nth}"), json!([]))).await,
            );
        }
        let mut refused = false;
        for one in pending {
            refused |= timeout(PATIENCE, one).await.expect("answered").outcome.is_err();
        }
        while let Some(push) = listening.outbox.ready() {
            heard.push(push.cursor());
        }
        if refused {
            // The hub finds out by itself that the log can be written again.
            while writing.call("ada", "RECORD", with_relations("again", json!([]))).await.outcome.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
    let (entries, world) = stage.entries();
    let recorded: Vec<_> = entries
        .iter()
        .flat_map(|entry| all_notices(&world, entry))
        .filter(|notice| notice.event == EventName::MemoryRecorded)
        .map(|notice| notice.cursor)
        .collect();
    while heard.len() < recorded.len() {
        heard.push(
            timeout(PATIENCE, listening.outbox.next())
                .await
                .expect("in time")
                .expect("a push comes")
                .cursor(),
        );
    }
    assert_eq!(heard, recorded, "what the log holds, all of it, once");
    assert!(recorded.len() > 60);
    listening.hears_nothing_else().await;
    stage.hub.stop().await;
}

/// Whoever loses its connection while the disk is full comes back to its subscription.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_subscription_is_attached_while_nothing_can_be_written() {
    let stage = Stage::new().await;
    let mut ada = stage.line(1, &["ada"]).await;
    let mut bob = stage.line(2, &["bob"]).await;
    let wish = json!({ "id": "s", "events": ["memory.recorded"] });
    ada.subscribe("ada", wish.clone()).await;
    let unit = bob.record("bob", "x", json!([])).await;
    stage.faults.set_full(true);
    let full = bob.call("bob", "RECORD", with_relations("y", json!([]))).await;
    assert_eq!(full.outcome.expect_err("no room").code, ErrorCode::StorageFull);
    let mut back = stage.line(3, &[]).await;
    back.subscribe("ada", json!({ "id": "s", "resume_after": "0.0" })).await;
    assert_eq!(back.heard().await, format!("s memory.recorded {unit}"));
    for change in
        [json!({ "id": "s", "events": ["agent.left"] }), json!({ "id": "new", "events": ["agent.left"] })]
    {
        let payload = json!({ "action": "subscribe", "subscription": change });
        let refused = back.call("ada", "SUBSCRIBE", payload).await.outcome.expect_err("a change is one");
        assert_eq!(refused.code, ErrorCode::StorageFull);
    }
    stage.faults.set_full(false);
    while bob.call("bob", "RECORD", with_relations("z", json!([]))).await.outcome.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(back.heard().await.starts_with("s memory.recorded"));
    stage.hub.stop().await;
}

/// The answer to a repeated message is the first one; a subscription that has ended since is not attached by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_does_not_bring_back_what_has_ended() {
    let stage = Stage::new().await;
    let mut ada = stage.line(1, &["ada"]).await;
    let wish = json!({ "action": "subscribe", "subscription": { "id": "s", "events": ["agent.joined"], "resume_after": "0.0" } });
    let first = ada.call("ada", "SUBSCRIBE", wish.clone()).await;
    stage.line(2, &["bob"]).await;
    assert_eq!(ada.heard().await, "s agent.joined bob");
    let end = json!({ "action": "unsubscribe", "subscription": { "id": "s" } });
    ada.ok("ada", "SUBSCRIBE", end).await;
    let mut again = stage.line(1, &[]).await;
    // The same connection number and count of messages make the same message id.
    again.sent = 1;
    let answer = again.call("ada", "SUBSCRIBE", wish).await;
    assert_eq!(answer.epoch, first.epoch, "it is the repeat");
    again.hears_nothing_else().await;
    assert!(again.outbox.is_empty());
    stage.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_pushed_while_its_commit_hangs() {
    let stage = Stage::new().await;
    let mut listening = stage.line(1, &["bob"]).await;
    listening.subscribe("bob", json!({ "id": "s", "events": ["memory.recorded"] })).await;
    let mut writing = stage.line(2, &["ada"]).await;
    stage.faults.hang_append(1);
    let pending = writing.submit("ada", "RECORD", &with_relations("x", json!([]))).await;
    let faults = stage.faults.clone();
    let hangs = tokio::task::spawn_blocking(move || faults.wait_for_hanging(PATIENCE));
    assert!(hangs.await.expect("no panic"), "the append was reached");
    listening.hears_nothing_else().await;
    stage.faults.resume();
    timeout(PATIENCE, pending).await.expect("answered").outcome.expect("recorded");
    listening.next().await;
    stage.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn authors_hear_of_their_resolved_conflicts_without_a_subscription() {
    let stage = Stage::new().await;
    let mut ada = stage.line(1, &["ada"]).await;
    let mut bob = stage.line(2, &["bob"]).await;
    let mut eve = stage.line(3, &["eve"]).await;
    eve.subscribe("eve", json!({ "id": "e", "events": ["conflict.resolved"] })).await;
    let one = ada.record("ada", "x", json!([])).await;
    let two = bob.record("bob", "y", contradicts(&one)).await;
    let conflict = format!("conflict-{}", two.strip_prefix("mem-").expect("an id"));
    let retract = json!({ "memory_unit_id": two, "reason": "wrong" });
    let epoch = bob.ok("bob", "RETRACT", retract).await["epoch"].as_u64().expect("an epoch");
    for line in [&mut ada, &mut bob] {
        let agent = if line.connection.0 == 1 { "ada" } else { "bob" };
        let frame = line.next().await;
        let told = &frame["payload"];
        assert_eq!(told["subscription_id"], "direct");
        assert_eq!(frame["id"], format!("push-direct-{}", text(&told["cursor"])));
        assert_eq!((&frame["agent_id"], &frame["epoch"]), (&json!(agent), &json!(epoch)));
        assert_eq!((&told["event"], &told["conflict_id"]), (&json!("conflict.resolved"), &json!(conflict)));
    }
    assert_eq!(
        eve.heard().await,
        format!("e conflict.resolved {conflict}"),
        "who asked for it hears it as ever"
    );
    // Where a subscription brings it, it comes once; superseding resolves as retracting does.
    ada.subscribe("ada", json!({ "id": "a", "events": ["conflict.resolved", "agent.left"] })).await;
    let three = bob.record("bob", "z", contradicts(&one)).await;
    let conflict = format!("conflict-{}", three.strip_prefix("mem-").expect("an id"));
    eve.record("eve", "w", json!([{ "type": "supersedes", "target_id": three }])).await;
    assert_eq!(ada.heard().await, format!("a conflict.resolved {conflict}"));
    assert_eq!(bob.heard().await, format!("direct conflict.resolved {conflict}"));
    // What comes before a subscription is told directly though the subscription is there when it is looked at.
    let late = bob.record("bob", "t", contradicts(&one)).await;
    let conflict = format!("conflict-{}", late.strip_prefix("mem-").expect("an id"));
    eve.record("eve", "s", json!([{ "type": "supersedes", "target_id": late }])).await;
    assert_eq!(ada.heard().await, format!("a conflict.resolved {conflict}"));
    bob.subscribe("bob", json!({ "id": "b", "events": ["conflict.resolved"] })).await;
    assert_eq!(bob.heard().await, format!("direct conflict.resolved {conflict}"));
    // Who left is told nothing more, though its line is open; whose subscription ended is told directly again.
    ada.ok("ada", "SUBSCRIBE", json!({ "action": "unsubscribe", "subscription": { "id": "a" } })).await;
    let four = bob.record("bob", "v", contradicts(&one)).await;
    let conflict = format!("conflict-{}", four.strip_prefix("mem-").expect("an id"));
    bob.ok("bob", "DEREGISTER", json!({ "agent_id": "bob" })).await;
    eve.record("eve", "u", json!([{ "type": "supersedes", "target_id": four }])).await;
    assert_eq!(ada.heard().await, format!("direct conflict.resolved {conflict}"));
    bob.hears_nothing_else().await;
    ada.hears_nothing_else().await;
    stage.hub.stop().await;
}

/// Something is resolved while the first reply over a connection is on its way.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_directly_waits_for_the_first_reply() {
    let stage = Stage::new().await;
    let mut ada = stage.line(1, &["ada"]).await;
    let mut bob = stage.line(2, &["bob"]).await;
    let one = ada.record("ada", "x", json!([])).await;
    let two = bob.record("bob", "y", contradicts(&one)).await;
    let mut late = stage.line(3, &[]).await;
    let payload = with_relations("z", json!([]));
    let pending = late.submit("ada", "RECORD", &payload).await;
    let answer = timeout(PATIENCE, pending).await.expect("answered");
    bob.ok("bob", "RETRACT", json!({ "memory_unit_id": two, "reason": "wrong" })).await;
    let resolved = format!("direct conflict.resolved conflict-{}", two.strip_prefix("mem-").expect("an id"));
    assert_eq!((bob.heard().await, ada.heard().await), (resolved.clone(), resolved.clone()));
    assert!(late.outbox.ready().is_none(), "nobody has spoken here");
    late.written("ada", "RECORD", &payload, &answer);
    assert_eq!(late.heard().await, resolved);
    late.hears_nothing_else().await;
    stage.hub.stop().await;
}

/// A stream that no subscription stands behind has a name, but that name is nobody's.
#[tokio::test(flavor = "multi_thread")]
async fn a_listener_without_a_subscription_is_nobody_s_to_change() {
    let stage = Stage::new().await;
    let mut ada = stage.line(1, &["ada"]).await;
    let mut bob = stage.line(2, &["bob"]).await;
    let named = super::subscription("stream", &[EventName::MemoryRecorded], 0);
    let listener = stage.field().listener("ada", (*named).clone()).expect("ada is here");
    let mut stream = stage.field().stream(listener, None, "after").expect("now has happened");
    for (line, agent) in [(&mut ada, "ada"), (&mut bob, "bob")] {
        line.subscribe(agent, json!({ "id": "stream", "events": ["agent.left"] })).await;
        let end = json!({ "action": "unsubscribe", "subscription": { "id": "stream" } });
        line.ok(agent, "SUBSCRIBE", end).await;
    }
    bob.record("bob", "x", json!([])).await;
    let push = timeout(PATIENCE, stream.next()).await.expect("in time").expect("it goes on");
    assert_eq!(push.event(), "memory.recorded");
    ada.ok("ada", "DEREGISTER", json!({ "agent_id": "ada" })).await;
    assert!(timeout(PATIENCE, stream.next()).await.expect("in time").is_none(), "with its agent it ends");
    stage.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_from_another_line_takes_effect_in_its_place() {
    let stage = Stage::new().await;
    let mut here = stage.line(1, &["ada"]).await;
    let mut there = stage.line(2, &["bob"]).await;
    here.subscribe("ada", json!({ "id": "s", "events": ["memory.recorded"] })).await;
    let one = there.record("bob", "x", json!([])).await;
    // The same agent, over another line.
    there.subscribe("ada", json!({ "id": "s", "events": ["memory.retracted"] })).await;
    there.record("bob", "not heard of", json!([])).await;
    there.ok("bob", "RETRACT", json!({ "memory_unit_id": one, "reason": "wrong" })).await;
    let heard = [here.heard().await, here.heard().await];
    assert_eq!(heard, [format!("s memory.recorded {one}"), format!("s memory.retracted {one}")]);
    assert_eq!(
        there.heard().await,
        format!("s memory.retracted {one}"),
        "attached there too, from the change on"
    );
    let two = there.record("bob", "y", json!([])).await;
    // Heard of for the first time after it waited for something else.
    assert!(here.outbox.next().now_or_never().is_none());
    there.subscribe("ada", json!({ "id": "s", "events": ["agent.joined"] })).await;
    let mut third = stage.line(3, &["eve"]).await;
    assert_eq!(here.heard().await, "s agent.joined eve");
    there.ok("ada", "SUBSCRIBE", json!({ "action": "unsubscribe", "subscription": { "id": "s" } })).await;
    third.ok("eve", "DEREGISTER", json!({ "agent_id": "eve" })).await;
    stage.line(4, &["kim"]).await;
    there.ok("bob", "RETRACT", json!({ "memory_unit_id": two, "reason": "wrong" })).await;
    here.hears_nothing_else().await;
    assert!(here.outbox.is_empty(), "nothing is attached any more");
    stage.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attaching_again_resumes_where_it_says_and_a_repeat_attaches_nothing_anew() {
    let stage = Stage::new().await;
    let mut line = stage.line(1, &["ada"]).await;
    let mut other = stage.line(2, &["bob"]).await;
    let subscribed = line.subscribe("ada", json!({ "id": "s", "events": ["memory.recorded"] })).await;
    let units = [other.record("bob", "x", json!([])).await, other.record("bob", "y", json!([])).await];
    let expected = units.map(|unit| format!("s memory.recorded {unit}"));
    for resumes in [false, true, true] {
        if resumes {
            let again = json!({ "id": "s", "resume_after": subscribed["cursor"] });
            assert_eq!(line.subscribe("ada", again).await["cursor"], subscribed["cursor"]);
        }
        assert_eq!([line.heard().await, line.heard().await], expected);
    }
    // Unchanged and without a place: it is where it is.
    line.subscribe("ada", json!({ "id": "s" })).await;
    line.hears_nothing_else().await;
    // The first message once more: its first answer, and no second delivery.
    line.sent = 1;
    line.subscribe("ada", json!({ "id": "s", "events": ["memory.recorded"] })).await;
    line.hears_nothing_else().await;
    // Over a line of its own the repeated message goes on from the first answer's place.
    let mut fresh = stage.line(1, &[]).await;
    fresh.sent = 1;
    fresh.subscribe("ada", json!({ "id": "s", "events": ["memory.recorded"] })).await;
    assert_eq!([fresh.heard().await, fresh.heard().await], expected);
    stage.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_comes_back_with_other_interests_is_told_by_those() {
    let stage = Stage::new().await;
    let register = |interest: &str| json!({ "id": "ada", "role": "engineer", "interests": [interest] });
    let mut first = stage.line(1, &[]).await;
    first.ok("ada", "REGISTER", register("volcanoes")).await;
    let wish = json!({ "id": "s", "events": ["memory.recorded"] });
    first.subscribe("ada", wish).await;
    let mut other = stage.line(2, &["bob"]).await;
    let stream = |after| {
        let listener = stage.field().subscription("s").expect("it is known");
        stage.field().stream(listener, after, "after").expect("it has happened")
    };
    let mut live = stream(None);
    let scores = async |outbox: &mut Outbox, count: usize| {
        let mut scores = BTreeMap::new();
        for _ in 0..count {
            let push = timeout(PATIENCE, outbox.next()).await.expect("in time").expect("a push comes");
            let told: Value = serde_json::from_str(&push.payload()).expect("JSON");
            scores.insert(push.cursor(), told["relevance_score"].as_f64().expect("a score"));
        }
        scores.into_values().collect::<Vec<_>>()
    };
    let question = "The volcanoes of Iceland erupt more often than those of Italy";
    other.record("bob", question, json!([])).await;
    let before = scores(&mut live, 1).await;
    // Its connection drops, and it comes back as itself with something else in mind.
    stage.field().disconnected(first.connection).await;
    let mut second = stage.line(3, &[]).await;
    second.ok("ada", "REGISTER", register("sailing ships")).await;
    other.record("bob", question, json!([])).await;
    let after = scores(&mut live, 1).await;
    assert!(before[0] > after[0], "{before:?} with the interest, {after:?} without it");
    // Live and resumed agree, as far as it is the same profile.
    let mut resumed = stream(Some(Cursor::default()));
    assert_eq!(scores(&mut resumed, 2).await[1], after[0]);
    stage.hub.stop().await;
}

/// The Field's own operations are told of at once, and shown by no reply: their places are places all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_resumes_from_what_the_field_did_by_itself() {
    let log = MemoryLog::new();
    let logs: Vec<Box<dyn Log>> = vec![Box::new(log.clone())];
    let hub = Hub::start_on(Config { grace_ms: 1, ..Config::default() }, logs).await.expect("the hub starts");
    let stage = Stage { faults: log.faults(), hub, log };
    let line = stage.line(1, &["ada"]).await;
    let watch = || super::observer(EventName::ALL);
    let mut stream = stage.field().stream(watch(), None, "after").expect("now has happened");
    stage.field().disconnected(line.connection).await;
    let failed = timeout(PATIENCE, stream.next()).await.expect("in time").expect("it fails");
    assert_eq!(failed.event(), "agent.failed");
    let mut resumed =
        stage.field().stream(watch(), Some(failed.cursor()), "after").expect("that has happened");
    let ahead = Cursor::new(failed.cursor().epoch + 1, 0);
    let refusal = stage.field().stream(watch(), Some(ahead), "after").expect_err("that has not");
    assert_eq!(refusal.details["key"], "after");
    let mut bob = stage.line(2, &["bob"]).await;
    assert_eq!(
        timeout(PATIENCE, resumed.next()).await.expect("in time").expect("goes on").event(),
        "agent.joined"
    );
    // And over a connection.
    let again = json!({ "id": "s", "events": ["agent.failed"], "resume_after": failed.cursor() });
    bob.subscribe("bob", again).await;
    stage.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_id_makes_a_frame_that_is_json() {
    let stage = Stage::new().await;
    let mut line = stage.line(1, &["ada"]).await;
    let mut other = stage.line(2, &["bob"]).await;
    let ids = ["\"", "a\"", "\\", "a\\\"", "\"\"x\"\"", "ä漢🙂", "</script>", "{}", "push-direct-1.0", "a b"];
    for id in ids {
        line.subscribe("ada", json!({ "id": id, "events": ["memory.recorded"] })).await;
    }
    other.record("bob", "x", json!([])).await;
    let mut seen = Vec::new();
    for _ in ids {
        let frame = line.next().await;
        let told = &frame["payload"];
        let id = text(&told["subscription_id"]).to_owned();
        assert_eq!(frame["id"], format!("push-{id}-{}", text(&told["cursor"])));
        seen.push(id);
    }
    seen.sort();
    let mut ids: Vec<_> = ids.map(str::to_owned).to_vec();
    ids.sort();
    assert_eq!(seen, ids);
    stage.hub.stop().await;
}
