//! Subscribers of the real binary, killed at any moment: they come back after the restart with the place that they
//! know, and what they saw in all is what the log holds, without a gap and without a repeat.
//!
//! `AKASHIK_CRASH_ROUNDS` sets the number of kills (default 4), `AKASHIK_CRASH_SEED` where they fall.

mod process;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use process::{HubProcess, PATIENCE, run};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Agents that write, and agents that listen, at the same time.
const WRITERS: usize = 3;
const READERS: usize = 3;
/// Messages that each writer has in flight.
const DEPTH: usize = 16;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn message(agent: &str, operation: &str, payload: &Value) -> Message {
    let id = format!("{operation}-{}", rand::random::<u64>());
    let envelope = json!({
        "protocol": "akashik", "version": "0.1.0", "id": id, "operation": operation,
        "agent_id": agent, "session_id": null, "epoch": 0, "payload": payload,
    });
    Message::text(envelope.to_string())
}

/// The next envelope, or nothing once the hub is gone.
async fn next(socket: &mut Socket) -> Option<Value> {
    loop {
        let frame = tokio::time::timeout(PATIENCE, socket.next()).await.expect("something comes in time");
        match frame? {
            Ok(Message::Text(text)) => return serde_json::from_str(&text).ok(),
            Ok(Message::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Writes until the hub is gone.
async fn write(hub: String, agent: String, answered: Arc<AtomicU64>, enough: (u64, Arc<Notify>)) {
    let Ok((mut socket, _)) = connect_async(format!("ws://{hub}/v1/ws")).await else { return };
    let finding = json!({
        "type": "finding", "content": format!("{agent} has seen something"), "intent": { "purpose": "to tell" },
        "confidence": { "score": 0.7, "reason": "seen" },
    });
    let mut flying = 0;
    let register = message(&agent, "REGISTER", &json!({ "id": agent, "role": "writer" }));
    if socket.send(register).await.is_err() || next(&mut socket).await.is_none() {
        return;
    }
    loop {
        while flying < DEPTH {
            if socket.send(message(&agent, "RECORD", &finding)).await.is_err() {
                return;
            }
            flying += 1;
        }
        let Some(reply) = next(&mut socket).await else { return };
        assert_eq!(reply["payload"]["status"], "accepted", "{reply}");
        flying -= 1;
        if answered.fetch_add(1, Ordering::Relaxed) + 1 == enough.0 {
            enough.1.notify_one();
        }
    }
}

/// A listener and all that it saw.
struct Reader {
    agent: String,
    /// The last place that it knows.
    last: Option<String>,
    seen: Vec<u64>,
}

impl Reader {
    /// Listens from where it was until the hub is gone, or, with `until`, has come as far.
    async fn read(&mut self, hub: &str, until: Option<u64>) {
        let Ok((mut socket, _)) = connect_async(format!("ws://{hub}/v1/ws")).await else { return };
        if self.last.is_none() {
            let register = json!({ "id": self.agent, "role": "reader" });
            socket.send(message(&self.agent, "REGISTER", &register)).await.expect("the hub is there");
            next(&mut socket).await.expect("a reply");
        }
        // Known from the second time on, and still as it was asked for.
        let events = self.last.is_none().then_some(["memory.recorded"]);
        let after = self.last.clone().unwrap_or_else(|| "0.0".to_owned());
        let wish = json!({ "id": self.agent, "events": events, "resume_after": after });
        let wish = json!({ "action": "subscribe", "subscription": wish });
        if socket.send(message(&self.agent, "SUBSCRIBE", &wish)).await.is_err() {
            return;
        }
        let Some(reply) = next(&mut socket).await else { return };
        assert_eq!(
            (&reply["payload"]["status"], &reply["payload"]["cursor"]),
            (&json!("ok"), &json!(after)),
            "{reply}"
        );
        self.last = Some(after);
        while until.is_none_or(|until| self.seen.last() != Some(&until)) {
            let Some(push) = next(&mut socket).await else { return };
            let place = push["payload"]["cursor"].as_str().unwrap_or_else(|| panic!("no push: {push}"));
            self.seen.push(push["epoch"].as_u64().expect("an epoch"));
            self.last = Some(place.to_owned());
        }
    }
}

/// The epochs of all RECORDs in the log, offline.
fn recorded(data: &Path) -> Vec<u64> {
    let output = run(&["log", "export", "--data", data.to_str().expect("a plain path")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    let records = events.filter(|event| event["event_type"] == "RECORD");
    records.map(|event| event["epoch"].as_u64().expect("an epoch")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_miss_nothing_and_see_nothing_twice_when_the_hub_is_killed() {
    let seed = number("AKASHIK_CRASH_SEED", 20_261_130);
    let rounds = number("AKASHIK_CRASH_ROUNDS", 4);
    println!("AKASHIK_CRASH_SEED={seed} AKASHIK_CRASH_ROUNDS={rounds}");
    let mut random = SmallRng::seed_from_u64(seed);
    let data = tempfile::tempdir().expect("a directory");
    let mut readers: Vec<_> = (0..READERS)
        .map(|nth| Reader { agent: format!("reader-{nth}"), last: None, seen: Vec::new() })
        .collect();
    for _ in 0..rounds {
        let hub = HubProcess::start(data.path(), &["--grace-seconds", "600"]);
        let (answered, enough) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
        let kill_after = random.random_range(1..1_500);
        let mut writers = JoinSet::new();
        for nth in 0..WRITERS {
            let until = (kill_after, Arc::clone(&enough));
            let agent = format!("writer-{nth}");
            writers.spawn(write(hub.address().to_owned(), agent, Arc::clone(&answered), until));
        }
        let mut reading = JoinSet::new();
        for mut reader in readers.drain(..) {
            let address = hub.address().to_owned();
            reading.spawn(async move {
                reader.read(&address, None).await;
                reader
            });
        }
        tokio::time::timeout(PATIENCE, enough.notified()).await.expect("the hub answers");
        hub.kill();
        while let Some(ended) = writers.join_next().await {
            ended.expect("a writer finds nothing wrong");
        }
        while let Some(ended) = reading.join_next().await {
            readers.push(ended.expect("a reader finds nothing wrong"));
        }
        // Nobody was told of what is not in the log.
        let truth = recorded(data.path());
        for reader in &readers {
            assert_eq!(reader.seen, truth[..reader.seen.len()], "{}", reader.agent);
        }
    }
    let truth = recorded(data.path());
    let hub = HubProcess::start(data.path(), &["--grace-seconds", "600"]);
    for reader in &mut readers {
        let read = reader.read(hub.address(), truth.last().copied());
        tokio::time::timeout(Duration::from_secs(60), read).await.expect("everything comes");
        assert_eq!(reader.seen, truth, "{}", reader.agent);
    }
    println!("{} records, {} kills", truth.len(), rounds);
    hub.stop();
}
