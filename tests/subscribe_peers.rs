//! Subscribers that stall, freeze, vanish or come back a hundred times: nobody else notices, nothing is lost, nothing
//! is left of them. Each test says what it is about.

mod support;

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::json;
use support::subscriber::{Client, kill, place, place_of, publish, recorded};
use support::{
    Running, client_frame, envelope, eventually, server_frame, soon, start, start_in_memory, start_with,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message as Frame;

/// Reads the hub's next text; it may ping before.
async fn server_text(tcp: &mut TcpStream) {
    loop {
        match server_frame(tcp).await {
            (1, _) => return,
            (9, _) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// What fills every buffer between the hub and a reader: more than twice the most that the system usually keeps for a
/// connection (4 and 6 MiB at its two ends).
async fn back_up(hub: &Running) -> Vec<String> {
    publish(&hub.hub, "ada", 400, &"x".repeat(60_000)).await;
    recorded(&hub.hub).await
}

/// Pitfall 11: control frames get through while data is backed up.
#[tokio::test(flavor = "multi_thread")]
async fn a_pong_gets_through_while_pushes_are_backed_up() {
    let hub = start_in_memory(|_| {}).await;
    hub.register("ada").await;
    let mut reader = Client::of(&hub, "bob").await;
    let wish = json!({ "id": "s", "events": ["memory.recorded"], "include_unit": true });
    reader.subscribe("bob", wish).await;
    let truth = back_up(&hub).await;
    reader.socket.stream.send(Frame::Ping(vec![7].into())).await.unwrap();
    let mut before = None;
    let mut seen = Vec::new();
    while seen.len() < truth.len() {
        match soon("a frame", reader.socket.stream.next()).await.unwrap().unwrap() {
            Frame::Text(text) => seen.push(place_of(&text).to_owned()),
            Frame::Pong(data) if *data == [7] => before = Some(seen.len()),
            Frame::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, truth);
    let before = before.expect("a pong");
    println!("the pong came after {before} of {} pushes", truth.len());
    assert!(before < truth.len() * 3 / 4, "it waited for {before} of {} pushes", truth.len());
    hub.stop().await;
}

/// Pitfalls 1 and 8: who takes nothing is closed with 4008, with no hole before it, and resumes without loss.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_takes_nothing_is_closed_and_resumes() {
    let hub = start_in_memory(|config| config.stall_max_ms = 300).await;
    hub.register("ada").await;
    let mut stalled = hub.raw_websocket().await;
    let wish = json!({ "id": "s", "events": ["memory.recorded"], "include_unit": true });
    let wish = json!({ "action": "subscribe", "subscription": wish });
    let register = envelope("reg", "REGISTER", "bob", json!({ "id": "bob", "role": "x" }));
    for message in [register, envelope("sub", "SUBSCRIBE", "bob", wish)] {
        stalled.write_all(&client_frame(1, message.to_string().as_bytes())).await.unwrap();
        assert_eq!(server_frame(&mut stalled).await.0, 1);
    }
    let truth = back_up(&hub).await;
    let sessions = hub.hub.sessions();
    eventually("the verdict", || sessions.is_empty()).await;
    // Now it takes everything at once, within the time that a goodbye may take.
    let mut bytes = Vec::new();
    soon("the end", stalled.read_to_end(&mut bytes)).await.unwrap();
    let (mut union, code) = frames(&bytes);
    assert_eq!(code, Some(4008));
    assert!(!union.is_empty() && union.len() < truth.len(), "{} of {}", union.len(), truth.len());
    assert_eq!(union, truth[..union.len()], "no hole before the end");
    let mut reader = Client::connect(&hub).await;
    reader.records("bob", "s", union.last().map(String::as_str)).await;
    union.extend(reader.places(truth.len() - union.len()).await);
    assert_eq!(union, truth);
    hub.stop().await;
}

/// The places of the pushes in what the hub sent, and the code of its goodbye.
fn frames(mut bytes: &[u8]) -> (Vec<String>, Option<u16>) {
    let (mut places, mut code) = (Vec::new(), None);
    while let [opcode, length, rest @ ..] = bytes {
        let (size, rest) = match length {
            126 => (usize::from(u16::from_be_bytes(rest[..2].try_into().unwrap())), &rest[2..]),
            127 => (usize::try_from(u64::from_be_bytes(rest[..8].try_into().unwrap())).unwrap(), &rest[8..]),
            short => (usize::from(*short), rest),
        };
        // What broke off in the middle of a frame has no goodbye.
        let Some((payload, rest)) = rest.split_at_checked(size) else { break };
        match opcode & 0x0f {
            1 => places.push(place_of(std::str::from_utf8(payload).unwrap()).to_owned()),
            8 => code = Some(u16::from_be_bytes([payload[0], payload[1]])),
            _ => {}
        }
        bytes = rest;
    }
    (places, code)
}

/// Pitfall 14: a frozen peer is gone in time, its agent turns `failed`, and whoever asked is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_peer_fails_and_others_are_told() {
    let hub = start_with(|config| {
        (config.heartbeat_ms, config.silence_max_ms, config.grace_ms) = (100, 800, 100);
    })
    .await;
    let mut watching = Client::of(&hub, "bob").await;
    watching.subscribe("bob", json!({ "id": "s", "events": ["agent.joined", "agent.failed"] })).await;
    let mut frozen = hub.raw_websocket().await;
    let register = envelope("reg", "REGISTER", "eve", json!({ "id": "eve", "role": "x" })).to_string();
    frozen.write_all(&client_frame(1, register.as_bytes())).await.unwrap();
    server_text(&mut frozen).await;
    // It stays connected and says nothing any more.
    let told = [watching.push().await, watching.push().await];
    for (frame, event) in told.iter().zip(["agent.joined", "agent.failed"]) {
        assert_eq!(
            (&frame["payload"]["event"], &frame["payload"]["agent_id"]),
            (&json!(event), &json!("eve"))
        );
        assert_eq!(frame["payload"]["relevance_score"], 1.0);
    }
    let agents = hub.get("/v1/agents").await.json()["agents"].clone();
    let status = |id: &str| {
        let of = agents.as_array().unwrap().iter().find(|agent| agent["id"] == id).unwrap();
        (of["status"].clone(), of["connected"].clone())
    };
    assert_eq!(status("eve"), (json!("failed"), json!(false)));
    assert_eq!(status("bob"), (json!("idle"), json!(true)), "who answers pings is there");
    assert_eq!(hub.hub.sessions().len(), 1);
    // The Field's own doing is a place like any other.
    let last = place(&told[1]);
    assert_eq!(watching.subscribe("bob", json!({ "id": "s", "resume_after": last })).await["cursor"], last);
    hub.stop().await;
}

/// Pitfall 16: a thousand connections with subscriptions are killed at any moment; nothing is left of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_abrupt_kills_leave_no_live_session() {
    let hub = Arc::new(start().await);
    hub.register("ada").await;
    for wave in 0..20 {
        let mut killed = JoinSet::new();
        for nth in 0..50 {
            let hub = Arc::clone(&hub);
            killed.spawn(async move {
                let agent = format!("a-{wave}-{nth}");
                let mut tcp = hub.raw_websocket().await;
                let register = envelope("reg", "REGISTER", &agent, json!({ "id": agent, "role": "x" }));
                let wish = json!({ "id": agent, "events": ["memory.recorded"], "resume_after": "0.0" });
                let wish = json!({ "action": "subscribe", "subscription": wish });
                let subscribe = envelope("sub", "SUBSCRIBE", &agent, wish);
                for message in [register, subscribe] {
                    tcp.write_all(&client_frame(1, message.to_string().as_bytes())).await.unwrap();
                }
                match nth % 4 {
                    0 => {}
                    1 => drop(server_frame(&mut tcp).await),
                    2 => tcp.write_all(&client_frame(1, &[b' '; 900])[..500]).await.unwrap(),
                    _ => {
                        // Until something was pushed.
                        for _ in 0..3 {
                            server_frame(&mut tcp).await;
                        }
                    }
                }
                kill(&tcp);
            });
        }
        publish(&hub.hub, "ada", 20, "x").await;
        while let Some(one) = soon("a kill", killed.join_next()).await {
            one.unwrap();
        }
    }
    let sessions = hub.hub.sessions();
    eventually("the end of all sessions", || sessions.is_empty()).await;
    let metrics = hub.get("/metrics").await.text();
    assert!(metrics.contains("akashik_connections{door=\"websocket\"} 0"), "{metrics}");
    // The Field learns of each end by itself.
    soon("nobody to be connected", async {
        loop {
            let agents = hub.get("/v1/agents").await.json();
            if agents["agents"].as_array().unwrap().iter().all(|agent| agent["connected"] == false) {
                break;
            }
        }
    })
    .await;
    Arc::into_inner(hub).unwrap().stop().await;
}

/// Pitfall 17: the same agent comes back a hundred times and its old connections never say that they ended; one live
/// session remains.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_reconnects_without_an_end_leave_one_live_session() {
    let hub = start_with(|config| (config.heartbeat_ms, config.silence_max_ms) = (100, 800)).await;
    hub.register("ada").await;
    let mut abandoned = Vec::new();
    for nth in 0..100 {
        let mut tcp = hub.raw_websocket().await;
        let wish = json!({ "id": "s", "events": ["memory.recorded"], "resume_after": "0.0" });
        let wish = json!({ "action": "subscribe", "subscription": wish });
        let register = envelope("reg", "REGISTER", "bob", json!({ "id": "bob", "role": "x" })).to_string();
        let subscribe = envelope(&format!("s-{nth}"), "SUBSCRIBE", "bob", wish).to_string();
        for message in [register, subscribe] {
            tcp.write_all(&client_frame(1, message.as_bytes())).await.unwrap();
            server_text(&mut tcp).await;
        }
        abandoned.push(tcp);
    }
    let mut client = Client::connect(&hub).await;
    client.records("bob", "s", None).await;
    let sessions = hub.hub.sessions();
    soon("one session to remain", async {
        while sessions.len() != 1 {
            // Reading answers the hub's pings.
            let _ = tokio::time::timeout(Duration::from_millis(20), client.socket.stream.next()).await;
        }
    })
    .await;
    let agents = hub.get("/v1/agents").await.json()["agents"].clone();
    let bob = agents.as_array().unwrap().iter().find(|agent| agent["id"] == "bob").unwrap();
    assert_eq!((&bob["status"], &bob["connected"]), (&json!("idle"), &json!(true)));
    hub.record("ada", "x").await;
    assert_eq!(client.places(1).await, recorded(&hub.hub).await);
    drop(abandoned);
    hub.stop().await;
}
