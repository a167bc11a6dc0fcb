//! The Rust SDK: against a scripted peer, where the very frames matter, and against a real hub that dies.

mod process;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use akashik_hub::client::http::HttpClient;
use akashik_hub::client::{Attune, Client, ClientError, ClientOptions, Record};
use akashik_hub::protocol::{ErrorCode, Operation, Refusal};
use futures::{SinkExt, StreamExt};
use process::{HubProcess, PATIENCE};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// A peer that the test plays itself.
struct Peer {
    listener: TcpListener,
    url: String,
}

/// One connection to the peer.
struct Line {
    socket: WebSocketStream<TcpStream>,
}

impl Peer {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        Self { listener, url }
    }

    async fn accept(&self) -> Line {
        let (stream, _) = self.listener.accept().await.unwrap();
        Line { socket: tokio_tungstenite::accept_async(stream).await.unwrap() }
    }

    /// A client and its first connection.
    async fn meet(&self, options: ClientOptions) -> (Arc<Client>, Line) {
        let (client, line) = tokio::join!(Client::connect(&self.url, options), self.accept());
        (Arc::new(client.unwrap()), line)
    }
}

impl Line {
    async fn request(&mut self) -> Value {
        loop {
            match self.socket.next().await.unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn reply(&mut self, request: &Value, epoch: u64, payload: Value) {
        let mut reply = request.clone();
        reply["epoch"] = json!(epoch);
        reply["payload"] = payload;
        self.socket.send(Message::text(reply.to_string())).await.unwrap();
    }
}

fn options() -> ClientOptions {
    ClientOptions::new("ann").patient_for(PATIENCE)
}

fn ask(client: &Arc<Client>, payload: Value) -> tokio::task::JoinHandle<Result<Value, ClientError>> {
    let client = Arc::clone(client);
    tokio::spawn(async move { client.send(Operation::Record, payload).await })
}

#[tokio::test]
async fn unanswered_messages_are_sent_again_as_they_were() {
    let peer = Peer::new().await;
    let (client, mut line) = peer.meet(options()).await;
    let calls = [ask(&client, json!({"n": 1})), ask(&client, json!({"n": 2})), ask(&client, json!({"n": 3}))];
    let first = [line.request().await, line.request().await, line.request().await];
    line.reply(&first[1], 7, json!({"done": true})).await;
    drop(line);

    let mut line = peer.accept().await;
    let again = [line.request().await, line.request().await];
    assert_eq!(again, [first[0].clone(), first[2].clone()], "same ids, same order, nothing answered twice");
    for request in &again {
        line.reply(request, 8, json!({"done": true})).await;
    }
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), json!({"done": true}));
    }
    let next = ask(&client, json!({}));
    let request = line.request().await;
    assert_eq!((request["epoch"].as_u64(), client.epoch()), (Some(8), 8), "the greatest epoch seen is sent");
    line.reply(&request, 3, json!({})).await;
    next.await.unwrap().unwrap();
    assert_eq!(client.epoch(), 8);
}

#[tokio::test]
async fn an_idle_agent_that_returns_says_so() {
    let peer = Peer::new().await;
    let (client, mut line) = peer.meet(options()).await;
    let call = ask(&client, json!({}));
    let request = line.request().await;
    line.reply(&request, 1, json!({})).await;
    call.await.unwrap().unwrap();
    drop(line);
    let mut line = peer.accept().await;
    let presence = line.request().await;
    assert_eq!(
        (presence["agent_id"].as_str(), presence["operation"].as_str()),
        (Some("ann"), Some("ATTUNE"))
    );
    // Its reply is nobody's, and pushes are not taken yet: neither disturbs a call.
    line.reply(&presence, 2, json!({})).await;
    line.reply(&json!({"id": "push-sub-1-2.0"}), 2, json!({})).await;
    let call = ask(&client, json!({}));
    let request = line.request().await;
    line.reply(&request, 3, json!({"ok": 1})).await;
    assert_eq!(call.await.unwrap().unwrap(), json!({"ok": 1}));
}

#[tokio::test]
async fn a_no_is_an_error_with_its_body() {
    let peer = Peer::new().await;
    let (client, mut line) = peer.meet(options()).await;
    let call = ask(&client, json!({}));
    let request = line.request().await;
    let body = Refusal::new(ErrorCode::MissingIntent, "m", "s").body(Some(Operation::Record));
    line.reply(&request, 1, serde_json::to_value(&body).unwrap()).await;
    match call.await.unwrap() {
        Err(ClientError::Refused(found)) => assert_eq!(*found, body),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn patience_ends_and_a_forgotten_call_is_not_sent_again() {
    let peer = Peer::new().await;
    let (client, mut line) = peer.meet(options().patient_for(Duration::from_millis(50))).await;
    let call = ask(&client, json!({"n": 1}));
    line.request().await;
    assert!(matches!(call.await.unwrap(), Err(ClientError::Unreachable(_))));
    drop(line);
    let mut line = peer.accept().await;
    let call = ask(&client, json!({"n": 2}));
    let request = line.request().await;
    assert_eq!(request["payload"]["n"], 2);
    line.reply(&request, 1, json!({})).await;
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_message_that_is_too_big_fails_alone() {
    let peer = Peer::new().await;
    let (client, mut line) = peer.meet(options()).await;
    let small = ask(&client, json!({"n": 1}));
    line.request().await;
    let big = ask(&client, json!({"n": "x".repeat(5_000)}));
    line.request().await;
    let frame = CloseFrame { code: CloseCode::Size, reason: "too big".into() };
    line.socket.close(Some(frame)).await.unwrap();
    assert!(matches!(big.await.unwrap(), Err(ClientError::Protocol(_))));
    let mut line = peer.accept().await;
    let request = line.request().await;
    assert_eq!(request["payload"]["n"], 1);
    line.reply(&request, 1, json!({})).await;
    small.await.unwrap().unwrap();
}

#[tokio::test]
async fn pings_are_answered_while_idle_and_dropping_closes() {
    let peer = Peer::new().await;
    let (client, mut line) = peer.meet(options()).await;
    line.socket.send(Message::Ping("x".into())).await.unwrap();
    assert_eq!(line.socket.next().await.unwrap().unwrap(), Message::Pong("x".into()));
    drop(client);
    match line.socket.next().await.unwrap().unwrap() {
        Message::Close(Some(frame)) => assert_eq!(u16::from(frame.code), 1000),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn nobody_there_is_said_at_once() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let error = Client::connect(&url, options()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error}");
    let error = Client::connect("https://127.0.0.1:1", options()).await.unwrap_err();
    assert!(matches!(error, ClientError::Address(_)), "{error}");
}

#[tokio::test]
async fn an_unknown_field_is_refused_at_the_door() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    match Client::connect(&hub.url, options().in_field("none")).await {
        Err(ClientError::Refused(body)) => assert_eq!(body.code, ErrorCode::FieldNotFound),
        other => panic!("{other:?}"),
    }
    hub.stop();
}

#[tokio::test]
async fn an_idle_agent_is_connected_again_after_a_restart() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let (url, address) = (hub.url.clone(), hub.address().to_owned());
    let client = Client::connect(&url, options()).await.unwrap();
    client.register("researcher").await.unwrap();
    hub.kill();
    let hub = HubProcess::start_on(data.path(), &address, &[]);
    let asker = HttpClient { address: url.parse().unwrap(), token: None, patience: PATIENCE };
    let returned = async {
        loop {
            let agents: Value = serde_json::from_str(asker.get("agents", None).await.unwrap().get()).unwrap();
            if agents["agents"][0]["connected"] == true {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, returned).await.expect("the client says that it is back");
    client.close().await;
    hub.stop();
}

/// Records from several tasks while the hub goes and comes back; every unit must be there once.
async fn survives(end: fn(HubProcess)) {
    const TASKS: usize = 8;
    const EACH: usize = 40;
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let address = hub.address().to_owned();
    let client = Arc::new(Client::connect(&hub.url, options()).await.unwrap());
    client.register("researcher").await.unwrap();

    let (done, mut acknowledged) = tokio::sync::mpsc::unbounded_channel();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (client, done) = (Arc::clone(&client), done.clone());
            tokio::spawn(async move {
                let mut ids = Vec::new();
                for n in 0..EACH {
                    let unit = Record::finding(format!("{task}/{n}")).because("p").sure(1.0, "r");
                    ids.push(client.record(unit).await.unwrap().memory_unit_id);
                    let _ = done.send(());
                }
                ids
            })
        })
        .collect();
    for _ in 0..TASKS * EACH / 4 {
        acknowledged.recv().await.unwrap();
    }
    // Everybody writes without a pause, so messages are in flight now.
    let hub = tokio::task::spawn_blocking(move || {
        end(hub);
        (HubProcess::start_on(data.path(), &address, &[]), data)
    });
    let (hub, _data) = hub.await.unwrap();

    let mut ids = BTreeSet::new();
    for task in tasks {
        ids.extend(task.await.unwrap());
    }
    assert_eq!(ids.len(), TASKS * EACH, "no two records share a unit");
    let shown = client.attune(Attune::for_role("r", 1000).including_own()).await.unwrap();
    let mut contents: Vec<_> = shown.record.into_iter().filter_map(|r| r.memory_unit.content).collect();
    contents.sort();
    let mut expected: Vec<_> = (0..TASKS).flat_map(|t| (0..EACH).map(move |n| format!("{t}/{n}"))).collect();
    expected.sort();
    assert_eq!(contents, expected, "nothing lost, nothing doubled");
    Arc::into_inner(client).unwrap().close().await;
    hub.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn records_survive_a_killed_hub() {
    survives(HubProcess::kill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_survive_a_restarted_hub() {
    survives(HubProcess::stop).await;
}
