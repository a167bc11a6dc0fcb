//! SUBSCRIBE through real sockets: what broke elsewhere must not break here. Each test says what it is about.

mod support;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use akashik_hub::hub::Hub;
use akashik_hub::limits::RECENT_OPERATIONS_MAX;
use akashik_hub::protocol::{Cursor, Envelope};
use futures::{SinkExt, StreamExt};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use support::{
    Running, Socket, client_frame, envelope, eventually, finding, server_frame, soon, start, start_in_memory,
    start_with,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message as Frame;

/// Where the random ones begin; `AKASHIK_SUBSCRIBE_SEED` sets it.
fn seeded() -> SmallRng {
    let given = std::env::var("AKASHIK_SUBSCRIBE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or(20_261_130);
    println!("AKASHIK_SUBSCRIBE_SEED={seed}");
    SmallRng::seed_from_u64(seed)
}

/// A client that keeps what is pushed apart from what is replied.
struct Client {
    socket: Socket,
    pushed: VecDeque<Value>,
    sent: usize,
}

impl Client {
    async fn connect(hub: &Running) -> Self {
        Self { socket: hub.websocket().await, pushed: VecDeque::new(), sent: 0 }
    }

    /// Connects and registers, or comes back.
    async fn of(hub: &Running, agent: &str) -> Self {
        let mut client = Self::connect(hub).await;
        client.call(agent, "REGISTER", json!({ "id": agent, "role": "researcher" })).await;
        client
    }

    async fn send(&mut self, agent: &str, operation: &str, payload: Value) -> String {
        self.sent += 1;
        // Ids that no other client of the same agent uses.
        let id = format!("{:p}-{}-{}", &self.socket, rand::random::<u32>(), self.sent);
        self.socket.send(envelope(&id, operation, agent, payload)).await;
        id
    }

    /// Sends a message and awaits its reply; pushes before it are kept. The reply's payload.
    async fn call(&mut self, agent: &str, operation: &str, payload: Value) -> Value {
        let id = self.send(agent, operation, payload).await;
        loop {
            let frame = self.socket.reply().await;
            if frame["id"] == id {
                return frame["payload"].clone();
            }
            self.pushed.push_back(frame);
        }
    }

    async fn subscribe(&mut self, agent: &str, subscription: Value) -> Value {
        self.call(agent, "SUBSCRIBE", json!({ "action": "subscribe", "subscription": subscription })).await
    }

    /// Subscribes to records under an id, after a place if one is given; the place where it begins.
    async fn records(&mut self, agent: &str, id: &str, after: Option<&str>) -> String {
        let wish = json!({ "id": id, "events": ["memory.recorded"], "resume_after": after });
        let reply = self.subscribe(agent, wish).await;
        reply["cursor"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    }

    /// The next push.
    async fn push(&mut self) -> Value {
        match self.pushed.pop_front() {
            Some(frame) => frame,
            None => self.socket.reply().await,
        }
    }

    /// The places of the next pushes.
    async fn places(&mut self, count: usize) -> Vec<String> {
        let mut places = Vec::new();
        for _ in 0..count {
            places.push(place(&self.push().await));
        }
        places
    }

    /// Nothing that was to be told before this call is still on its way.
    async fn hears_nothing_else(&mut self, agent: &str) {
        self.call(agent, "DETECT", json!({ "mode": "list" })).await;
        assert!(self.pushed.is_empty(), "{:?}", self.pushed);
    }

    /// Ends without a word: the hub gets a reset.
    fn kill(self) {
        kill(self.socket.stream.get_ref());
    }
}

fn kill(tcp: &TcpStream) {
    tcp.set_zero_linger().unwrap();
}

fn place(frame: &Value) -> String {
    frame["payload"]["cursor"].as_str().unwrap_or_else(|| panic!("no push: {frame}")).to_owned()
}

/// The place of a push, without reading the rest of it.
fn place_of(text: &str) -> &str {
    let (_, rest) = text.split_once("\"cursor\":\"").unwrap_or_else(|| panic!("no push: {text}"));
    rest.split_once('"').expect("a whole frame").0
}

/// Records so many units as fast as the hub takes them, without a socket.
async fn publish(hub: &Arc<Hub>, agent: &str, count: usize, content: &str) {
    let field = hub.field(None).unwrap();
    let mut pending = VecDeque::new();
    let text = envelope("ID", "RECORD", agent, finding(content)).to_string();
    let (before, after) = text.split_once("ID").unwrap();
    for _ in 0..count {
        let text = format!("{before}p-{}{after}", rand::random::<u64>());
        let message = field.read(&Envelope::parse(&text).unwrap());
        pending.push_back(field.submit(message, None).await);
        if pending.len() == 512 {
            pending.pop_front().unwrap().await.outcome.unwrap();
        }
    }
    for one in pending {
        one.await.outcome.unwrap();
    }
}

/// The places of all records, as the log tells.
async fn recorded(hub: &Arc<Hub>) -> Vec<String> {
    let field = hub.field(None).unwrap();
    let (mut after, mut all) = (Cursor::default(), Vec::new());
    loop {
        let lines = field.log_lines(after, 1_000).await.unwrap();
        let Some(last) = lines.last() else { return all };
        after = place_of(last).parse().unwrap();
        all.extend(lines.iter().filter(|line| line.contains("\"event_type\":\"RECORD\"")).map(|line| {
            // A plain RECORD is the first and only thing that its operation tells of.
            let place: Cursor = place_of(line).parse().unwrap();
            Cursor::new(place.epoch, 0).to_string()
        }));
    }
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
    let after_log = |nth, at| nth < 3 && at == 90;
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
    while let Some(of_reader) = soon("a reader", readers.join_next()).await {
        seen.extend(of_reader.unwrap());
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
    while let Some(read) = soon("a reader", readers.join_next()).await {
        read.unwrap();
    }
    hub.stop().await;
}

/// What fills every buffer between the hub and a reader: two or three times what the system keeps for a connection.
async fn back_up(hub: &Running) -> Vec<String> {
    publish(&hub.hub, "ada", 160, &"x".repeat(60_000)).await;
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
        let (payload, rest) = rest.split_at(size);
        match opcode & 0x0f {
            1 => places.push(place_of(std::str::from_utf8(payload).unwrap()).to_owned()),
            8 => code = Some(u16::from_be_bytes([payload[0], payload[1]])),
            _ => {}
        }
        bytes = rest;
    }
    (places, code)
}

/// Pitfall 12: small pushes do not wait for each other's acknowledgements.
#[tokio::test(flavor = "multi_thread")]
async fn small_pushes_do_not_stall() {
    let hub = start().await;
    hub.register("ada").await;
    let mut reader = Client::of(&hub, "bob").await;
    reader.records("bob", "s", None).await;
    let began = Instant::now();
    for _ in 0..200 {
        publish(&hub.hub, "ada", 1, "x").await;
        reader.push().await;
    }
    // With packets held back until the last is acknowledged, each would take 40 ms.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    hub.stop().await;
}

/// Pitfall 14: a frozen peer is gone in time, its agent turns `failed`, and whoever asked is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_peer_fails_and_others_are_told() {
    let hub = start_with(|config| {
        (config.heartbeat_ms, config.silence_max_ms, config.grace_ms) = (40, 160, 100);
    })
    .await;
    let mut watching = Client::of(&hub, "bob").await;
    watching.subscribe("bob", json!({ "id": "s", "events": ["agent.joined", "agent.failed"] })).await;
    let mut frozen = hub.raw_websocket().await;
    let register = envelope("reg", "REGISTER", "eve", json!({ "id": "eve", "role": "x" })).to_string();
    frozen.write_all(&client_frame(1, register.as_bytes())).await.unwrap();
    assert_eq!(server_frame(&mut frozen).await.0, 1);
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
    let hub = start_with(|config| (config.heartbeat_ms, config.silence_max_ms) = (50, 400)).await;
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
            assert_eq!(server_frame(&mut tcp).await.0, 1);
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
