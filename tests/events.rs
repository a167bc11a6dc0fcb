//! Events over HTTP: streams and polls (wire, section 3), through real sockets.

mod process;
mod support;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use akashik_hub::hub::Door;
use akashik_hub::limits::RECENT_OPERATIONS_MAX;
use futures::StreamExt;
use process::HubProcess;
use serde_json::{Value, json};
use support::{Reply, Running, check, eventually, finding, soon, start, start_with};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// An event stream, read as RFC 9112 and the HTML standard say.
struct EventStream {
    tcp: BufReader<TcpStream>,
    head: Vec<String>,
    text: String,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    id: String,
    name: String,
    data: Value,
}

impl EventStream {
    async fn open(address: impl tokio::net::ToSocketAddrs, path: &str, headers: &[(&str, &str)]) -> Self {
        let tcp = TcpStream::connect(address).await.unwrap();
        let host = tcp.peer_addr().unwrap();
        let mut tcp = BufReader::new(tcp);
        let mut request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n");
        headers.iter().for_each(|(name, value)| request.push_str(&format!("{name}: {value}\r\n")));
        tcp.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            soon("a head", tcp.read_line(&mut line)).await.unwrap();
            if line.trim().is_empty() {
                break;
            }
            head.push(line.trim().to_ascii_lowercase());
        }
        assert!(head[0].starts_with("http/1.1 200"), "{head:?}");
        Self { tcp, head, text: String::new() }
    }

    /// The next chunk of the body; false at its end.
    async fn chunk(&mut self) -> bool {
        let mut size = String::new();
        if soon("a chunk", self.tcp.read_line(&mut size)).await.unwrap() == 0 {
            panic!("the stream broke off");
        }
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        soon("a chunk", self.tcp.read_exact(&mut chunk)).await.unwrap();
        self.text.push_str(std::str::from_utf8(&chunk[..size]).unwrap());
        size > 0
    }

    /// The next block between blank lines; `None` at the end.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block = self.text[..end].to_owned();
                self.text.drain(..end + 2);
                return Some(block);
            }
            if !self.chunk().await {
                assert_eq!(self.text, "", "the end is the end of a block");
                return None;
            }
        }
    }

    /// The next event. Every line must be one that the hub means to send.
    async fn event(&mut self) -> Option<Event> {
        loop {
            let block = self.block().await?;
            let mut event = Event { id: String::new(), name: String::new(), data: Value::Null };
            for line in block.split('\n') {
                assert!(!line.contains('\r') && !line.contains('\0'), "{line:?}");
                match line.split_once(':').expect("a field") {
                    ("id", id) => event.id = id.trim().to_owned(),
                    ("event", name) => event.name = name.trim().to_owned(),
                    ("data", data) => {
                        assert_eq!(event.data, Value::Null, "one line of data");
                        event.data = serde_json::from_str(data).unwrap();
                    }
                    ("retry", "" | " 2000") | ("", "") => {}
                    other => panic!("unexpected {other:?} in {block:?}"),
                }
            }
            if event.data != Value::Null {
                assert_eq!(
                    (&event.data["event"], &event.data["cursor"]),
                    (&json!(event.name), &json!(event.id))
                );
                return Some(event);
            }
        }
    }

    async fn events(&mut self, count: usize) -> Vec<Event> {
        let mut events = Vec::new();
        while events.len() < count {
            events.push(self.event().await.expect("an event"));
        }
        events
    }
}

async fn observe(hub: &Running, more: &str) -> EventStream {
    EventStream::open(hub.addr, &format!("/v1/events?observer=true{more}"), &[]).await
}

async fn ask(hub: &Running, operation: &str, agent: &str, payload: Value) -> Reply {
    hub.post(&format!("/v1/{operation}"), &[("Akashik-Agent", agent)], payload.to_string()).await
}

/// Subscribes; the subscription's id and the cursor.
async fn subscribe(hub: &Running, agent: &str, subscription: Value) -> (String, String) {
    let reply =
        ask(hub, "subscribe", agent, json!({ "action": "subscribe", "subscription": subscription })).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let body = reply.json();
    (body["subscription"]["id"].as_str().unwrap().to_owned(), body["cursor"].as_str().unwrap().to_owned())
}

fn units(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| event.data["memory_unit_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_says_how_it_is_to_be_treated_and_where_it_is() {
    let hub = start().await;
    hub.register("a").await;
    let mut stream = observe(&hub, "").await;
    // nginx would hold the stream back, browsers would store it (pitfall 22).
    for header in [
        "content-type: text/event-stream",
        "cache-control: no-cache, no-transform",
        "x-accel-buffering: no",
        "x-content-type-options: nosniff",
    ] {
        assert!(stream.head.contains(&header.to_owned()), "{header} in {:?}", stream.head);
    }
    assert!(!stream.head.iter().any(|line| line.starts_with("content-encoding")), "{:?}", stream.head);
    let first = stream.block().await.unwrap();
    assert_eq!(first, "retry: 2000\nid: 1.0", "a quiet stream can be resumed too");
    let unit = hub.record("a", "one").await;
    let event = stream.event().await.unwrap();
    assert_eq!((event.name.as_str(), &event.data["memory_unit_id"]), ("memory.recorded", &json!(unit)));
    for key in ["subscription_id", "epoch", "relevance_score", "summary", "conflict_id", "requires_action"] {
        assert!(event.data.get(key).is_some(), "{key} in {}", event.data);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_of_life_keeps_proxies_awake_and_moves_the_place_on() {
    let hub = start_with(|config| config.heartbeat_ms = 40).await;
    hub.register("a").await;
    let mut stream = observe(&hub, "&events=agent.left").await;
    assert_eq!(stream.block().await.unwrap(), "retry: 2000\nid: 1.0");
    assert_eq!(stream.block().await.unwrap(), ":\nid: 1.0");
    hub.record("a", "not listened for").await;
    soon("the place moves on", async { while stream.block().await.unwrap() != ":\nid: 2.0" {} }).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resumes_where_it_broke_off() {
    let hub = start().await;
    hub.register("a").await;
    let mut recorded = Vec::new();
    for _ in 0..20 {
        recorded.push(hub.record("a", "x").await);
    }
    let mut whole = observe(&hub, "&after=0.0&events=memory.recorded").await;
    let all = whole.events(20).await;
    assert_eq!(units(&all), recorded);
    let stream = |after: &str, last: &str| {
        let path = format!("/v1/events?observer=true&events=memory.recorded{after}");
        let last = last.to_owned();
        async move { EventStream::open(hub.addr, &path, &[("Last-Event-ID", last.as_str())]).await }
    };
    let mut by_query = stream(&format!("&after={}", all[7].id), "").await;
    assert_eq!(by_query.events(12).await, all[8..]);
    let mut header_wins = stream("&after=0.0", &all[15].id).await;
    assert_eq!(header_wins.events(4).await, all[16..]);
    // Ten resumes in a row (pitfall 6).
    let mut place = "0.0".to_owned();
    for event in &all[..10] {
        let next = stream(&format!("&after={place}"), "").await.event().await.unwrap();
        assert_eq!(&next, event);
        place = next.id;
    }
    let place = all[19].id.clone();
    let last = hub.record("a", "later").await;
    assert_eq!(units(&stream("", &place).await.events(1).await), [last]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_listened_to_is_said_plainly() {
    let hub = start().await;
    hub.register("a").await;
    let (own, _) = subscribe(&hub, "a", json!({ "events": ["agent.left"] })).await;
    for (query, status, code, key) in [
        ("", 400, "INVALID_MESSAGE", "subscription_id"),
        ("?observer=true&agent_id=a&events=agent.left", 400, "INVALID_MESSAGE", "subscription_id"),
        (&format!("?observer=true&subscription_id={own}"), 400, "INVALID_MESSAGE", "subscription_id"),
        (&format!("?subscription_id={own}&min_relevance=0.5"), 400, "INVALID_MESSAGE", "min_relevance"),
        ("?observer=maybe", 400, "INVALID_MESSAGE", "observer"),
        ("?agent_id=a", 400, "INVALID_MESSAGE", "events"),
        ("?agent_id=a&events=memory.exploded", 400, "INVALID_MESSAGE", "events"),
        ("?agent_id=a&events=agent.left&min_relevance=1.5", 400, "INVALID_MESSAGE", "min_relevance"),
        ("?agent_id=a&events=agent.left&min_relevance=NaN", 400, "INVALID_MESSAGE", "min_relevance"),
        ("?agent_id=a&events=agent.left&debounce_ms=-1", 400, "INVALID_MESSAGE", "debounce_ms"),
        ("?agent_id=a&events=agent.left&include_unit=2", 400, "INVALID_MESSAGE", "include_unit"),
        ("?agent_id=a%0Adata:&events=agent.left", 400, "INVALID_MESSAGE", "agent_id"),
        ("?agent_id=nobody&events=agent.left", 403, "AGENT_NOT_REGISTERED", "agent_id"),
        ("?subscription_id=sub-99", 404, "SUBSCRIPTION_NOT_FOUND", "key"),
        ("?observer=true&after=1", 400, "INVALID_MESSAGE", "after"),
        ("?observer=true&after=x.y", 400, "INVALID_MESSAGE", "after"),
        ("?observer=true&after=4000000.0", 400, "INVALID_MESSAGE", "after"),
        ("?observer=true&poll=true&limit=0", 400, "INVALID_MESSAGE", "limit"),
        ("?observer=true&poll=true&limit=1001", 400, "INVALID_MESSAGE", "limit"),
        ("?observer=true&poll=true&limit=%2B5", 400, "INVALID_MESSAGE", "limit"),
        ("?observer=true&poll=true&wait_ms=60001", 400, "INVALID_MESSAGE", "wait_ms"),
        ("?observer=true&poll=1", 400, "INVALID_MESSAGE", "poll"),
    ] {
        let details = check(&hub.get(&format!("/v1/events{query}")).await, status, code);
        assert!(details["key"] == key || details.get(key).is_some(), "{query}: {details}");
    }
    let last = |value: &'static str| {
        let hub = &hub;
        async move { hub.request("GET", "/v1/events?observer=true", &[("Last-Event-ID", value)], "").await }
    };
    for value in ["9999999.0", "soon"] {
        assert_eq!(check(&last(value).await, 400, "INVALID_MESSAGE")["key"], "Last-Event-ID");
    }
    let foreign =
        hub.request("GET", "/v1/events?observer=true", &[("Origin", "http://evil.example")], "").await;
    check(&foreign, 403, "FORBIDDEN");
    let missing = hub.get("/v1/fields/none/events?observer=true").await;
    check(&missing, 404, "FIELD_NOT_FOUND");
    assert_eq!(hub.request("POST", "/v1/events?observer=true", &[], "").await.status, 405);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn below_level_two_only_observers_listen() {
    let hub = start_with(|config| config.level = 1).await;
    hub.register("a").await;
    let refused = hub.get("/v1/events?agent_id=a&events=memory.recorded").await;
    check(&refused, 501, "UNSUPPORTED_OPERATION");
    let mut stream = observe(&hub, "").await;
    let unit = hub.record("a", "seen").await;
    assert_eq!(units(&stream.events(1).await), [unit]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_hears_of_others_and_an_observer_of_everybody() {
    let hub = start().await;
    hub.register("a").await;
    hub.register("b").await;
    let path = "/v1/events?agent_id=a&events=memory.recorded,agent.joined&include_unit=true";
    let mut agent = EventStream::open(hub.addr, path, &[]).await;
    let mut observer = observe(&hub, "").await;
    hub.record("a", "own").await;
    let unit = hub.record("b", "another's").await;
    hub.register("c").await;
    let heard = agent.events(2).await;
    assert_eq!((&heard[0].data["memory_unit_id"], heard[1].name.as_str()), (&json!(unit), "agent.joined"));
    assert_eq!(heard[0].data["memory_unit"]["content"], "another's");
    assert_eq!(heard[0].data["memory_unit"]["status"], "active");
    assert_eq!(observer.events(3).await.len(), 3);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drafts_are_nobodys_news() {
    let hub = start().await;
    hub.register("a").await;
    let mut observer = observe(&hub, "&include_unit=true").await;
    let mut draft = finding("a secret thought");
    draft["mode"] = json!("draft");
    let unit = ask(&hub, "record", "a", draft.clone()).await.json()["memory_unit_id"].clone();
    let other = ask(&hub, "record", "a", draft).await.json()["memory_unit_id"].clone();
    let gone = json!({ "memory_unit_id": other, "reason": "a secret reason" });
    assert_eq!(ask(&hub, "discard", "a", gone).await.status, 200);
    assert_eq!(ask(&hub, "commit", "a", json!({ "memory_unit_id": unit })).await.status, 200);
    let event = observer.event().await.unwrap();
    assert_eq!((event.name.as_str(), &event.data["memory_unit_id"]), ("memory.recorded", &unit));
    assert_eq!(event.data["memory_unit"]["mode"], "committed");
    hub.stop().await;
}

/// Pitfall 20: nothing that an agent says can end a line of the stream.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_stay_in_their_line() {
    let hub = start().await;
    let forged = "x\r\n\r\nid: 1.0\nevent: agent.left\ndata: {}\n\n\0\u{2028}\u{85}\r";
    let role = json!({ "id": "a", "role": "r\u{2028}role" });
    assert_eq!(ask(&hub, "register", "a", role).await.status, 200);
    let mut stream = observe(&hub, "&include_unit=true&after=0.0").await;
    for key in ["content", "purpose", "reason"] {
        let mut unit = finding("plain");
        match key {
            "content" => unit["content"] = json!(forged),
            "purpose" => unit["intent"]["purpose"] = json!(forged),
            _ => unit["confidence"]["reason"] = json!(forged),
        }
        assert_eq!(ask(&hub, "record", "a", unit).await.status, 200);
    }
    let mut task = finding("plain");
    task["intent"]["task_id"] = json!("t\nevent: x");
    check(&ask(&hub, "record", "a", task).await, 400, "INVALID_MESSAGE");
    // The reader of this test refuses every line that the hub would not send by itself.
    let events = stream.events(4).await;
    assert_eq!(events[1].data["memory_unit"]["content"], forged);
    assert_eq!(events[2].data["memory_unit"]["intent"]["purpose"], forged);
    assert_eq!(events[3].data["memory_unit"]["confidence"]["reason"], forged);
    let reason = json!({ "memory_unit_id": events[1].data["memory_unit_id"], "reason": forged });
    assert_eq!(ask(&hub, "retract", "a", reason).await.status, 200);
    assert_eq!(stream.event().await.unwrap().name, "memory.retracted");
    hub.stop().await;
}

/// Pitfalls 1 and 9: a reader that pauses while far more is written than is kept in memory gets everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_gets_everything_in_order() {
    let hub = start().await;
    let mut writer = hub.websocket().await;
    writer.register("a").await;
    let mut slow = observe(&hub, "&events=memory.recorded&include_unit=true").await;
    assert_eq!(slow.block().await.unwrap(), "retry: 2000\nid: 1.0");
    let count = 2 * RECENT_OPERATIONS_MAX;
    let filler = "z".repeat(600);
    for batch in (0..count).collect::<Vec<_>>().chunks(128) {
        for number in batch {
            let payload = finding(&format!("{number} {filler}"));
            writer.send(support::envelope(&format!("m-{number}"), "RECORD", "a", payload)).await;
        }
        for _ in batch {
            assert_eq!(writer.reply().await["payload"]["status"], "accepted");
        }
    }
    // The oldest stand in the log alone: a poll that does not wait is answered from there.
    let (events, cursor) =
        poll(&hub, "observer=true&events=memory.recorded&limit=5&wait_ms=0&after=1.0").await;
    assert_eq!((events.len(), cursor.as_str()), (5, "6.0"));
    for number in 0..count {
        let event = slow.event().await.unwrap();
        let content = event.data["memory_unit"]["content"].as_str().unwrap();
        assert_eq!(content.split(' ').next().unwrap(), number.to_string());
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_subscription() {
    let hub = start().await;
    hub.register("a").await;
    hub.register("b").await;
    let (id, cursor) = subscribe(&hub, "a", json!({ "events": ["memory.recorded"] })).await;
    let path = format!("/v1/events?subscription_id={id}&after={cursor}");
    let mut stream = EventStream::open(hub.addr, &path, &[]).await;
    let first = hub.record("b", "before").await;
    // Changed at its place in the order: what came before is still told as before.
    subscribe(&hub, "a", json!({ "id": id, "events": ["agent.joined"] })).await;
    hub.record("b", "between").await;
    hub.register("c").await;
    let heard = stream.events(2).await;
    assert_eq!((&heard[0].data["memory_unit_id"], heard[1].name.as_str()), (&json!(first), "agent.joined"));
    let end = json!({ "action": "unsubscribe", "subscription": { "id": id } });
    assert_eq!(ask(&hub, "subscribe", "a", end).await.status, 200);
    assert_eq!(stream.event().await, None);
    check(&hub.get(&path).await, 404, "SUBSCRIPTION_NOT_FOUND");
    let (id, _) = subscribe(&hub, "a", json!({ "events": ["memory.recorded"] })).await;
    let mut stream = EventStream::open(hub.addr, &format!("/v1/events?subscription_id={id}"), &[]).await;
    assert_eq!(ask(&hub, "deregister", "a", json!({ "agent_id": "a" })).await.status, 200);
    assert_eq!(stream.event().await, None, "leaving ends the subscriptions");
    hub.stop().await;
}

async fn poll(hub: &Running, query: &str) -> (Vec<Value>, String) {
    let reply = hub.get(&format!("/v1/events?poll=true&{query}")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let body = reply.json();
    (body["events"].as_array().unwrap().clone(), body["cursor"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_go_on_from_poll_to_poll() {
    let hub = start().await;
    hub.register("a").await;
    let mut recorded = Vec::new();
    for _ in 0..25 {
        recorded.push(hub.record("a", "x").await);
    }
    let (mut cursor, mut seen) = ("0.0".to_owned(), Vec::new());
    for _ in 0..3 {
        let (events, next) = poll(&hub, &format!("observer=true&limit=10&after={cursor}")).await;
        seen.extend(events);
        cursor = next;
    }
    let told: Vec<_> = seen.iter().filter_map(|event| event["memory_unit_id"].as_str()).collect();
    assert_eq!(told, recorded);
    let (none, same) = poll(&hub, &format!("observer=true&wait_ms=0&after={cursor}")).await;
    assert!(none.is_empty());
    // Nothing was listened for, and yet the place moves on.
    hub.record("a", "passed by").await;
    let (none, later) = poll(&hub, &format!("observer=true&events=agent.left&wait_ms=0&after={same}")).await;
    assert!(none.is_empty() && later != same, "{later} {same}");
    let asked = format!("observer=true&after={later}");
    let waiting = poll(&hub, &asked);
    let coming = hub.record("a", "comes");
    let ((events, _), unit) = tokio::join!(waiting, coming);
    assert_eq!((events.len(), &events[0]["memory_unit_id"]), (1, &json!(unit)));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_debounced_poll_tells_the_last_state_of_each_thing() {
    let hub = start().await;
    hub.register("a").await;
    hub.register("b").await;
    let events = json!(["memory.recorded", "memory.retracted"]);
    let (id, cursor) = subscribe(&hub, "a", json!({ "events": events, "debounce_ms": 60_000 })).await;
    let (one, two) = (hub.record("b", "one").await, hub.record("b", "two").await);
    let gone = json!({ "memory_unit_id": one, "reason": "wrong" });
    assert_eq!(ask(&hub, "retract", "b", gone).await.status, 200);
    let (told, _) = poll(&hub, &format!("subscription_id={id}&after={cursor}")).await;
    let told: Vec<_> =
        told.iter().map(|event| (event["event"].clone(), event["memory_unit_id"].clone())).collect();
    assert_eq!(told, [(json!("memory.recorded"), json!(two)), (json!("memory.retracted"), json!(one))]);
    hub.stop().await;
}

/// Pitfall 16, for streams: what is counted is what is there.
#[tokio::test(flavor = "multi_thread")]
async fn streams_that_were_cut_off_leave_nothing_behind() {
    let hub = start_with(|config| config.heartbeat_ms = 40).await;
    hub.register("a").await;
    for _ in 0..5 {
        let streams: Vec<_> = futures::future::join_all((0..40).map(|_| observe(&hub, ""))).await;
        assert_eq!(hub.hub.sessions().count(Door::Events, "default"), 40);
        let metrics = hub.get("/metrics").await.text();
        assert!(metrics.contains("akashik_connections{door=\"events\"} 40"), "{metrics}");
        drop(streams);
        eventually("the streams are gone", || hub.hub.sessions().is_empty()).await;
    }
    hub.stop().await;
}

/// Pitfall 13: streams do not hold a shutdown up, and the data can be used again at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_of_each_do_not_hold_up_the_end() {
    let data = tempfile::tempdir().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let address = hub.address().to_owned();
    let path = "/v1/events?observer=true&after=0.0";
    let mut streams =
        futures::future::join_all((0..100).map(|_| EventStream::open(&address, path, &[]))).await;
    for stream in &mut streams {
        assert_eq!(stream.block().await.unwrap(), "retry: 2000\nid: 0.0");
    }
    let websockets = futures::future::join_all((0..100).map(|_| async {
        tokio_tungstenite::connect_async(format!("ws://{address}/v1/ws")).await.unwrap().0
    }));
    let websockets = websockets.await;
    let (taken_up, mut waiting) = tokio::sync::mpsc::channel(100);
    let polls: Vec<_> = (0..100)
        .map(|_| {
            let (address, taken_up) = (address.clone(), taken_up.clone());
            tokio::spawn(async move {
                let mut tcp = TcpStream::connect(&address).await.unwrap();
                // The answer to the first shows that the second, sent with it, is taken up.
                let first = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n");
                let second = format!(
                    "GET /v1/events?observer=true&poll=true&wait_ms=60000 HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
                );
                tcp.write_all(format!("{first}{second}").as_bytes()).await.unwrap();
                let mut seen = Vec::new();
                while !seen.ends_with(br#"{"status":"ok"}"#) {
                    seen.push(tcp.read_u8().await.unwrap());
                }
                taken_up.send(()).await.unwrap();
                let mut answer = String::new();
                tcp.read_to_string(&mut answer).await.unwrap();
                answer
            })
        })
        .collect();
    for _ in 0..100 {
        soon("the polls wait", waiting.recv()).await.unwrap();
    }
    let began = Instant::now();
    hub.signal("TERM");
    let (status, _) = tokio::task::spawn_blocking(|| hub.wait()).await.unwrap();
    assert!(status.success(), "{status}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    for mut stream in streams {
        assert_eq!(stream.event().await, None, "a clean end");
    }
    for mut websocket in websockets {
        let mut codes = BTreeSet::new();
        while let Some(Ok(frame)) = websocket.next().await {
            if let tokio_tungstenite::tungstenite::Message::Close(Some(close)) = frame {
                codes.insert(u16::from(close.code));
            }
        }
        assert_eq!(codes, BTreeSet::from([1001]));
    }
    for poll in polls {
        let answer = poll.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"events\":[]"), "{answer:?}");
    }
    HubProcess::start(data.path(), &[]).stop();
}
