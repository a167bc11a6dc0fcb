//! SUBSCRIBE through real sockets: bursts, handing over, resuming, order. What broke elsewhere must not break here;
//! each test says what it is about. Peers that stall or vanish are in `subscribe_peers`.

mod support;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use akashik_hub::limits::RECENT_OPERATIONS_MAX;
use akashik_hub::protocol::Cursor;
use futures::{SinkExt, StreamExt};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use support::subscriber::{Client, place, place_of, publish, recorded};
use support::{Running, envelope, finding, soon, start, start_in_memory, start_with};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as Frame;

/// Where the random ones begin; `AKASHIK_SUBSCRIBE_SEED` sets it.
fn seeded() -> SmallRng {
    let given = std::env::var("AKASHIK_SUBSCRIBE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or(20_261_130);
    println!("AKASHIK_SUBSCRIBE_SEED={seed}");
    SmallRng::seed_from_u64(seed)
}

/// The next of many that are busy for a while has ended.
async fn ended<T: 'static>(many: &mut JoinSet<T>) -> Option<T> {
    let next = timeout(Duration::from_secs(90), many.join_next()).await.expect("they come to an end");
    next.map(|one| one.expect("it found nothing wrong"))
}

async fn restart(hub: Running, data: &Path) -> Running {
    hub.stop().await;
    start_with(|config| config.data = data.to_owned()).await
}

/// Pitfall 1: a burst ten times what is kept in memory, at a reader that does not read: all of it, in order.
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_reader_gets_a_burst_of_ten_times_what_is_kept() {
    let hub = start_in_memory(|config| config.stall_max_ms = 600_000).await;
    hub.register("ada").await;
    let mut paused = Client::of(&hub, "bob").await;
    paused.records("bob", "s", None).await;
    let count = 10 * RECENT_OPERATIONS_MAX;
    publish(&hub.hub, "ada", count, "x").await;
    let expected = recorded(&hub.hub).await;
    assert_eq!(expected.len(), count);
    for place in &expected {
        match paused.socket.frame().await {
            Some(Frame::Text(text)) => assert_eq!(place_of(&text), place),
            other => panic!("{other:?} instead of {place}"),
        }
    }
    paused.hears_nothing_else("bob").await;
    hub.stop().await;
}

/// Pitfalls 3 and 10: a thousand times a reader begins, now or from an earlier place, while a publisher works at full
/// speed. None has a gap or a repeat.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_handed_over_from_history_to_live_have_no_gap_and_no_repeat() {
    const READERS: usize = 10;
    const EACH: usize = 100;
    let after_log = |nth, at| nth == 0 && at == 90;
    let mut random = seeded();
    let hub = Arc::new(start_in_memory(|_| {}).await);
    hub.register("ada").await;
    publish(&hub.hub, "ada", 200, "history").await;
    let done = Arc::new(AtomicBool::new(false));
    let (publisher, until) = (Arc::clone(&hub.hub), Arc::clone(&done));
    let publishing = tokio::spawn(async move {
        while !until.load(Ordering::Relaxed) {
            publish(&publisher, "ada", 50, "live").await;
        }
    });
    let mut readers = JoinSet::new();
    for nth in 0..READERS {
        let (hub, agent) = (Arc::clone(&hub), format!("reader-{nth}"));
        Client::of(&hub, &agent).await;
        // Now, or so many epochs ago.
        let back = |at| match random.random_bool(0.7) {
            _ if after_log(nth, at) => Some(4_400),
            true => Some(random.random_range(0..60)),
            false => None,
        };
        let backs: Vec<_> = (0..EACH).map(back).collect();
        readers.spawn(async move {
            let mut seen = Vec::new();
            for (at, back) in backs.into_iter().enumerate() {
                let after = back
                    .map(|back| format!("{}.0", hub.hub.field(None).unwrap().clock().saturating_sub(back)));
                let mut client = Client::connect(&hub).await;
                let begins = client.records(&agent, &format!("{agent}-{}", at % 5), after.as_deref()).await;
                assert!(after.is_none_or(|after| after == begins));
                // Now and then further than what comes at once; once out of the log, through memory, to live.
                let count = if after_log(nth, at) {
                    4_600
                } else if at % 10 == 0 {
                    60
                } else {
                    10
                };
                seen.push((begins, client.places(count).await));
                client.kill();
            }
            seen
        });
    }
    let mut seen = Vec::new();
    while let Some(of_reader) = ended(&mut readers).await {
        seen.extend(of_reader);
    }
    done.store(true, Ordering::Relaxed);
    publishing.await.unwrap();
    let truth = recorded(&hub.hub).await;
    let numbers: BTreeMap<Cursor, usize> =
        truth.iter().enumerate().map(|(at, place)| (place.parse().unwrap(), at)).collect();
    assert_eq!(seen.len(), READERS * EACH);
    for (begins, places) in seen {
        let begins: Cursor = begins.parse().unwrap();
        let first =
            numbers.range(begins..).find(|(place, _)| **place > begins).expect("something came after").1;
        assert_eq!(places, truth[*first..first + places.len()], "after {begins}");
    }
    Arc::into_inner(hub).unwrap().stop().await;
}

/// Pitfalls 4 and 8: sockets killed in the middle of the stream again and again; the union is exact.
#[tokio::test(flavor = "multi_thread")]
async fn killed_sockets_resume_and_the_union_is_exact() {
    let mut random = seeded();
    let hub = start().await;
    hub.register("ada").await;
    let mut client = Client::of(&hub, "bob").await;
    let mut last = client.records("bob", "s", None).await;
    let publisher = Arc::clone(&hub.hub);
    let publishing = tokio::spawn(async move {
        for _ in 0..60 {
            publish(&publisher, "ada", 100, "x").await;
            tokio::task::yield_now().await;
        }
    });
    let mut union = Vec::new();
    for _ in 0..50 {
        for _ in 0..random.random_range(0..120) {
            last = place(&client.push().await);
            union.push(last.clone());
        }
        client.kill();
        client = Client::connect(&hub).await;
        assert_eq!(client.records("bob", "s", Some(&last)).await, last);
    }
    publishing.await.unwrap();
    let truth = recorded(&hub.hub).await;
    let rest = client.places(truth.len() - union.len()).await;
    union.extend(rest);
    assert_eq!(union, truth);
    client.hears_nothing_else("bob").await;
    hub.stop().await;
}

/// Pitfall 5: a place that has not happened is an error that says so: before the first event, after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_place_ahead_of_the_head_is_an_error() {
    let data = tempfile::tempdir().unwrap();
    let mut hub = start_with(|config| config.data = data.path().to_owned()).await;
    for _ in 0..2 {
        let mut client = Client::of(&hub, "bob").await;
        let clock = hub.hub.field(None).unwrap().clock();
        for ahead in [clock + 1_000, 1 << 52, (1 << 53) - 1] {
            let wish =
                json!({ "id": "new", "events": ["memory.recorded"], "resume_after": format!("{ahead}.0") });
            let reply = client.subscribe("bob", wish).await;
            assert_eq!(reply["code"], "INVALID_MESSAGE", "{reply}");
            assert_eq!(reply["details"]["key"], "subscription.resume_after");
        }
        for unreadable in ["", "7", "7.", "-1.0", "07.0", "latest"] {
            let wish = json!({ "events": ["memory.recorded"], "resume_after": unreadable });
            assert_eq!(client.subscribe("bob", wish).await["code"], "INVALID_MESSAGE", "{unreadable}");
        }
        // The connection goes on, and nothing was made.
        let list = client.call("bob", "SUBSCRIBE", json!({ "action": "list" })).await;
        assert_eq!(list["subscriptions"], json!([]));
        drop(client);
        hub = restart(hub, data.path()).await;
    }
    hub.stop().await;
}

/// Pitfall 6: the place is given at subscribe, and resuming works again and again, also after nothing happened.
#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_subscriber_resumes_ten_times_in_a_row() {
    let hub = start().await;
    hub.register("ada").await;
    let first = Client::of(&hub, "bob").await.records("bob", "s", None).await;
    for _ in 0..10 {
        let mut client = Client::connect(&hub).await;
        assert_eq!(client.records("bob", "s", Some(&first)).await, first);
        client.hears_nothing_else("bob").await;
        client.kill();
    }
    hub.record("ada", "at last").await;
    let truth = recorded(&hub.hub).await;
    for _ in 0..10 {
        let mut client = Client::connect(&hub).await;
        client.records("bob", "s", Some(&first)).await;
        assert_eq!(client.places(1).await, truth);
        client.hears_nothing_else("bob").await;
    }
    let mut client = Client::connect(&hub).await;
    for _ in 0..10 {
        // Also over one connection, which is told again what it asks for again.
        client.records("bob", "s", Some(&first)).await;
        assert_eq!(client.places(1).await, truth);
    }
    hub.stop().await;
}

/// Pitfall 7: what was before a restart is there after it, and the subscription with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_resumes_from_before_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let mut hub = start_with(|config| config.data = data.path().to_owned()).await;
    hub.register("ada").await;
    let mut client = Client::of(&hub, "bob").await;
    let mut last = client.records("bob", "s", None).await;
    let mut union = Vec::new();
    for round in 0..4 {
        publish(&hub.hub, "ada", 20, "heard").await;
        union.extend(client.places(20).await);
        last = union.last().cloned().unwrap_or(last);
        publish(&hub.hub, "ada", 20, "unheard").await;
        client.kill();
        hub = restart(hub, data.path()).await;
        publish(&hub.hub, "ada", 20, "missed").await;
        client = Client::connect(&hub).await;
        let list = client.call("bob", "SUBSCRIBE", json!({ "action": "list" })).await;
        assert_eq!(list["subscriptions"][0]["id"], "s", "round {round}");
        let reply = client.subscribe("bob", json!({ "id": "s", "resume_after": last })).await;
        assert_eq!(reply["cursor"], last);
        union.extend(client.places(40).await);
    }
    assert_eq!(union, recorded(&hub.hub).await);
    hub.stop().await;
}

/// Pitfalls 9 and 18: two thousand resume at once, from the beginning; each gets the whole history.
#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_two_thousand_resumes_is_served() {
    const SOCKETS: usize = 20;
    const EACH: usize = 100;
    let hub = start_in_memory(|_| {}).await;
    hub.register("ada").await;
    publish(&hub.hub, "ada", 20, "history").await;
    let truth = recorded(&hub.hub).await;
    let mut readers = JoinSet::new();
    for nth in 0..SOCKETS {
        let agent = format!("reader-{nth}");
        let mut client = Client::of(&hub, &agent).await;
        let truth = truth.clone();
        readers.spawn(async move {
            for at in 0..EACH {
                let subscription =
                    json!({ "id": format!("{agent}-{at}"), "events": ["memory.recorded"], "resume_after": "0.0" });
                client.send(&agent, "SUBSCRIBE", json!({ "action": "subscribe", "subscription": subscription })).await;
            }
            let mut seen: HashMap<String, Vec<String>> = HashMap::new();
            for _ in 0..EACH * (truth.len() + 1) {
                let frame = client.socket.reply().await;
                if let Some(id) = frame["payload"]["subscription_id"].as_str() {
                    seen.entry(id.to_owned()).or_default().push(place(&frame));
                }
            }
            assert_eq!(seen.len(), EACH);
            for (id, places) in seen {
                assert_eq!(places, truth, "{id}");
            }
        });
    }
    while let Some(()) = ended(&mut readers).await {}
    hub.stop().await;
}

/// The effect of an operation is pushed on its sender's connection only after its reply.
#[tokio::test(flavor = "multi_thread")]
async fn the_reply_comes_before_the_push_of_its_effect() {
    let hub = start().await;
    let mut shared = Client::of(&hub, "ada").await;
    shared.call("bob", "REGISTER", json!({ "id": "bob", "role": "x" })).await;
    shared.records("bob", "s", None).await;
    let count = 600;
    let (mut sink, mut stream) = shared.socket.stream.split();
    let send = async {
        for at in 0..count {
            let message = envelope(&format!("r-{at}"), "RECORD", "ada", finding("x")).to_string();
            sink.feed(Frame::text(message)).await.unwrap();
        }
        sink.flush().await.unwrap();
    };
    let receive = async {
        let (mut replied, mut pushed) = (0, 0);
        while pushed < count {
            let Frame::Text(text) = stream.next().await.unwrap().unwrap() else { continue };
            let frame: Value = serde_json::from_str(&text).unwrap();
            let epoch = frame["epoch"].as_u64().unwrap();
            if frame["operation"] == "RECORD" {
                assert!(epoch > replied);
                replied = epoch;
            } else {
                pushed += 1;
                assert!(epoch <= replied, "{epoch} was pushed, and only {replied} was replied to");
            }
        }
    };
    soon("all of it", async { tokio::join!(send, receive) }).await;
    hub.stop().await;
}

/// Shapes of the wire: what a push is, and that it is the same whichever way it comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_push_has_the_shape_of_the_wire() {
    let hub = start().await;
    hub.register("ada").await;
    let mut reader = Client::of(&hub, "bob").await;
    let wish = json!({ "id": "s", "events": ["memory.recorded", "agent.left"], "include_unit": true });
    let reply = reader.subscribe("bob", wish).await;
    assert_eq!(reply["websocket_url"], format!("ws://{}/v1/ws", hub.addr));
    assert_eq!(reply["events_url"], format!("http://{}/v1/events?subscription_id=s", hub.addr));
    let unit = hub.record("ada", "something to know").await;
    let live = reader.push().await;
    let told = &live["payload"];
    let keys: Vec<_> = live.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        ["agent_id", "epoch", "id", "operation", "payload", "protocol", "session_id", "version"]
    );
    assert_eq!(live["id"], format!("push-s-{}", place(&live)));
    assert_eq!((&live["operation"], &live["agent_id"]), (&json!("SUBSCRIBE"), &json!("bob")));
    assert_eq!((&told["memory_unit_id"], &told["agent_id"]), (&json!(unit), &json!("ada")));
    assert_eq!(told["memory_unit"], {
        let mut shown = hub.get(&format!("/v1/units/{unit}")).await.json();
        let extra = ["archived", "inbound_relations", "conflicts"];
        extra.iter().for_each(|key| drop(shown.as_object_mut().unwrap().remove(*key)));
        shown
    });
    let summary = told["summary"].as_str().unwrap();
    assert!(summary.contains("something to know") && summary.contains("ada"), "{summary}");
    for key in
        ["subscription_id", "event", "epoch", "relevance_score", "conflict_id", "requires_action", "task_id"]
    {
        assert!(told.get(key).is_some(), "{key} in {told}");
    }
    let mut resumed = Client::connect(&hub).await;
    let again = json!({ "id": "s", "resume_after": reply["cursor"] });
    resumed.subscribe("bob", again).await;
    assert_eq!(resumed.push().await, live, "live and resumed are the same to the byte of meaning");
    hub.stop().await;
}
