//! Durability through the real binary: killed at any moment, nothing acknowledged is lost, epochs go only up,
//! a repeated message gets its first answer, and the log verifies.
//!
//! `AKASHIK_CRASH_ROUNDS` sets the number of kills (default 4), `AKASHIK_CRASH_SEED` where they fall.

mod process;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use process::{HubProcess, PATIENCE, run};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Agents that write at the same time.
const WRITERS: usize = 8;
/// Messages that each has in flight.
const DEPTH: usize = 16;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// What a hub acknowledged: the message, and the reply's epoch and payload.
#[derive(Debug, Clone)]
struct Acknowledged {
    agent: String,
    id: String,
    payload: Value,
    epoch: u64,
    reply: Value,
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn envelope(agent: &str, id: &str, operation: &str, payload: &Value) -> Message {
    let envelope = json!({
        "protocol": "akashik", "version": "0.1.0", "id": id, "operation": operation,
        "agent_id": agent, "session_id": "crash", "epoch": 0, "payload": payload,
    });
    Message::text(envelope.to_string())
}

fn finding(text: String) -> Value {
    json!({
        "type": "finding", "content": text, "intent": { "purpose": "outlive the hub" },
        "confidence": { "score": 0.7, "reason": "seen" },
    })
}

async fn connect(hub: &HubProcess) -> Socket {
    connect_async(format!("ws://{}/v1/ws", hub.address())).await.expect("the hub takes connections").0
}

/// The next reply, or nothing once the hub is gone.
async fn reply(stream: &mut SplitStream<Socket>) -> Option<Value> {
    loop {
        match stream.next().await? {
            Ok(Message::Text(text)) => return serde_json::from_str(&text).ok(),
            Ok(Message::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Sends a message and waits for its reply.
async fn ask(socket: &mut Socket, message: Message) -> Value {
    socket.send(message).await.expect("the hub is there");
    loop {
        let frame = tokio::time::timeout(PATIENCE, socket.next()).await.expect("a reply comes in time");
        if let Message::Text(text) = frame.expect("the hub is there").expect("a whole frame") {
            return serde_json::from_str(&text).expect("a reply is JSON");
        }
    }
}

/// Writes without pause until the hub is gone; reports what was acknowledged.
async fn write(
    hub: String,
    agent: String,
    round: u64,
    acknowledged: mpsc::UnboundedSender<Acknowledged>,
    count: Arc<AtomicU64>,
    enough: (u64, Arc<Notify>),
) {
    let Ok((mut socket, _)) = connect_async(format!("ws://{hub}/v1/ws")).await else { return };
    let register = json!({ "id": agent, "role": "writer" });
    let id = format!("register-{round}");
    // In later rounds the id is known: taken, or within its grace time; either way it may go on.
    ask(&mut socket, envelope(&agent, &id, "REGISTER", &register)).await;
    let (mut sink, mut stream): (SplitSink<_, _>, SplitStream<_>) = socket.split();
    let mut flying = std::collections::VecDeque::new();
    for at in 0.. {
        while flying.len() < DEPTH {
            let id = format!("{round}-{at}-{}", flying.len());
            let payload = finding(format!("{agent} says {id} in round {round}"));
            if sink.send(envelope(&agent, &id, "RECORD", &payload)).await.is_err() {
                return;
            }
            flying.push_back((id, payload));
        }
        while let Some((id, payload)) = flying.pop_front() {
            let Some(answer) = reply(&mut stream).await else { return };
            assert_eq!(answer["id"], *id, "replies come in the order of the requests");
            assert_eq!(answer["payload"]["status"], "accepted", "{answer}");
            let epoch = answer["epoch"].as_u64().expect("an epoch");
            let reply = answer["payload"].clone();
            let told = Acknowledged { agent: agent.clone(), id, payload, epoch, reply };
            if acknowledged.send(told).is_err() {
                return;
            }
            if count.fetch_add(1, Ordering::Relaxed) + 1 == enough.0 {
                enough.1.notify_one();
            }
        }
    }
}

/// Lets agents write until so many messages were acknowledged, then kills the hub as a power cut would.
async fn round_of_writing(hub: HubProcess, round: u64, kill_after: u64) -> Vec<Acknowledged> {
    let (told, mut heard) = mpsc::unbounded_channel();
    let count = Arc::new(AtomicU64::new(0));
    let enough = Arc::new(Notify::new());
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let address = hub.address().to_owned();
        let until = (kill_after, Arc::clone(&enough));
        writers.spawn(write(
            address,
            format!("writer-{writer}"),
            round,
            told.clone(),
            Arc::clone(&count),
            until,
        ));
    }
    drop(told);
    tokio::time::timeout(PATIENCE, enough.notified()).await.expect("the hub acknowledges");
    hub.kill();
    while let Some(ended) = writers.join_next().await {
        ended.expect("a writer finds nothing wrong");
    }
    let mut all = Vec::new();
    while let Some(one) = heard.recv().await {
        all.push(one);
    }
    all
}

/// Every entry of the log, offline: message → epoch.
fn kept(data: &Path) -> BTreeMap<(String, String), u64> {
    let output = run(&["log", "export", "--data", data.to_str().expect("a plain path")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut kept = BTreeMap::new();
    for line in String::from_utf8(output.stdout).expect("UTF-8").lines() {
        let event: Value = serde_json::from_str(line).expect("a line is JSON");
        if event["event_type"] == "RECORD" {
            let key = (
                event["agent_id"].as_str().unwrap().to_owned(),
                event["message_id"].as_str().unwrap().to_owned(),
            );
            assert!(kept.insert(key, event["epoch"].as_u64().unwrap()).is_none(), "recorded twice: {event}");
        }
    }
    kept
}

/// The log is sound, and comes to the state that its snapshot holds, if there is one.
fn verify(data: &Path) {
    let output = run(&["log", "verify", "--apply", "--data", data.to_str().expect("a plain path")]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_hub_is_killed() {
    let seed = number("AKASHIK_CRASH_SEED", 20_261_130);
    let rounds = number("AKASHIK_CRASH_ROUNDS", 4);
    println!("AKASHIK_CRASH_SEED={seed} AKASHIK_CRASH_ROUNDS={rounds}");
    let mut random = SmallRng::seed_from_u64(seed);
    let data = TempDir::new().expect("a directory");
    let mut all: Vec<Acknowledged> = Vec::new();
    let mut highest = 0;
    for round in 0..rounds {
        // Hardly an entry comes while no snapshot is being written.
        let hub = HubProcess::start(data.path(), &["--snapshot-entries", "1"]);
        let kill_after = random.random_range(1..3_000);
        let acknowledged = round_of_writing(hub, round, kill_after).await;
        assert!(acknowledged.len() as u64 >= kill_after);
        let lowest = acknowledged.iter().map(|one| one.epoch).min().unwrap_or(u64::MAX);
        assert!(lowest > highest, "epoch {lowest} was handed out after {highest}");
        highest = acknowledged.iter().map(|one| one.epoch).max().unwrap_or(highest).max(highest);
        all.extend(acknowledged);

        verify(data.path());
        let kept = kept(data.path());
        for one in &all {
            let key = (one.agent.clone(), one.id.clone());
            assert_eq!(kept.get(&key), Some(&one.epoch), "acknowledged and gone: {one:?}");
        }
        repeats_get_their_first_answer(data.path(), &all, &mut random, &mut highest).await;
    }
}

/// Starts the hub again and repeats some acknowledged messages; then it stops in good order.
async fn repeats_get_their_first_answer(
    data: &Path,
    all: &[Acknowledged],
    random: &mut SmallRng,
    highest: &mut u64,
) {
    let hub = HubProcess::start(data, &[]);
    let mut socket = connect(&hub).await;
    for _ in 0..20 {
        let one = &all[random.random_range(0..all.len())];
        let again = ask(&mut socket, envelope(&one.agent, &one.id, "RECORD", &one.payload)).await;
        assert_eq!(again["epoch"], one.epoch);
        assert_eq!(again["payload"], one.reply);
        let other = ask(&mut socket, envelope(&one.agent, &one.id, "RECORD", &finding("other".into()))).await;
        assert_eq!(other["payload"]["code"], "INVALID_MESSAGE", "another payload under the same id");
        let shown = other["epoch"].as_u64().expect("the clock");
        assert!(shown >= *highest, "the clock {shown} is behind {highest}");
    }
    let scope = json!({ "scope": { "role": "writer", "max_units": 1 } });
    let look = ask(&mut socket, envelope(&all[0].agent, "look", "ATTUNE", &scope)).await;
    let epoch = look["epoch"].as_u64().expect("an epoch");
    assert!(epoch > *highest, "epoch {epoch} was handed out after {highest}");
    *highest = epoch;
    drop(socket);
    hub.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_journal_leaves_a_sound_prefix() {
    let seed = number("AKASHIK_CRASH_SEED", 20_261_130);
    println!("AKASHIK_CRASH_SEED={seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &[]);
    let acknowledged = round_of_writing(hub, 0, 600).await;
    let journal = data.path().join("default/field.db-wal");
    let (whole, log) = (fs::read(&journal).expect("a journal"), data.path().join("default/field.db"));
    let main = fs::read(&log).expect("a log");
    for damage in 0..8 {
        let mut cut = whole.clone();
        let at = random.random_range(0..cut.len().max(1));
        if damage % 2 == 0 {
            cut.truncate(at);
        } else {
            let end = (at + random.random_range(1..4_096)).min(cut.len());
            random.fill(&mut cut[at..end]);
        }
        let copy = TempDir::new().expect("a directory");
        fs::create_dir(copy.path().join("default")).expect("a directory");
        fs::write(copy.path().join("default/field.db"), &main).expect("written");
        fs::write(copy.path().join("default/field.db-wal"), &cut).expect("written");
        let hub = HubProcess::start(copy.path(), &[]);
        hub.stop();
        verify(copy.path());
        let kept = kept(copy.path());
        let mut by_epoch: Vec<_> =
            acknowledged.iter().map(|one| (one.epoch, (&one.agent, &one.id))).collect();
        by_epoch.sort_unstable();
        let there: Vec<bool> = by_epoch
            .iter()
            .map(|(_, (agent, id))| kept.contains_key(&((*agent).clone(), (*id).clone())))
            .collect();
        let first_gap = there.iter().position(|here| !here).unwrap_or(there.len());
        assert!(
            there[first_gap..].iter().all(|here| !here),
            "what is left is no prefix (damage {damage} at {at})"
        );
    }
}

/// A quota stands in for a full disk: the file may not grow.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_log_refuses_writes_keeps_what_it_has_and_goes_on_with_more_room() {
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &["--max-log-bytes", "400000"]);
    let mut socket = connect(&hub).await;
    ask(&mut socket, envelope("ada", "reg", "REGISTER", &json!({ "id": "ada", "role": "writer" }))).await;
    let (mut kept, mut refused) = (Vec::new(), 0);
    for at in 0..300 {
        let id = format!("m-{at}");
        let reply = ask(&mut socket, envelope("ada", &id, "RECORD", &finding("x".repeat(4_000)))).await;
        match reply["payload"]["status"].as_str() {
            Some("accepted") => kept.push((id, reply["epoch"].clone())),
            _ => {
                assert_eq!(reply["payload"]["code"], "STORAGE_FULL", "{reply}");
                refused += 1;
            }
        }
        if refused == 20 {
            break;
        }
    }
    assert!(kept.len() > 20 && refused == 20, "{} kept, {refused} refused", kept.len());
    let scope = json!({ "scope": { "role": "writer", "max_units": 1000, "include_own": true } });
    let look = ask(&mut socket, envelope("ada", "look", "ATTUNE", &scope)).await;
    assert_eq!(
        look["payload"]["context_budget"]["units_available"],
        kept.len(),
        "reads are served, and tell the truth"
    );
    drop(socket);
    hub.stop();
    verify(data.path());

    let hub = HubProcess::start(data.path(), &["--max-log-bytes", "4000000"]);
    let mut socket = connect(&hub).await;
    let (id, epoch) = kept.last().expect("something was kept");
    let again = ask(&mut socket, envelope("ada", id, "RECORD", &finding("x".repeat(4_000)))).await;
    assert_eq!(again["epoch"], *epoch, "what was acknowledged is there");
    let more = ask(&mut socket, envelope("ada", "more", "RECORD", &finding("x".to_owned()))).await;
    assert_eq!(more["payload"]["status"], "accepted");
    hub.stop();
}
