//! A client that subscribes, a publisher without a socket, and the truth as the log tells it.

use std::collections::VecDeque;
use std::sync::Arc;

use akashik_hub::hub::Hub;
use akashik_hub::protocol::{Cursor, Envelope};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{Running, Socket, envelope, finding};

/// A client that keeps what is pushed apart from what is replied.
pub struct Client {
    pub socket: Socket,
    /// What was pushed while a reply was awaited.
    pub pushed: VecDeque<Value>,
    sent: usize,
}

impl Client {
    pub async fn connect(hub: &Running) -> Self {
        Self { socket: hub.websocket().await, pushed: VecDeque::new(), sent: 0 }
    }

    /// Connects and registers, or comes back.
    pub async fn of(hub: &Running, agent: &str) -> Self {
        let mut client = Self::connect(hub).await;
        client.call(agent, "REGISTER", json!({ "id": agent, "role": "researcher" })).await;
        client
    }

    pub async fn send(&mut self, agent: &str, operation: &str, payload: Value) -> String {
        self.sent += 1;
        // Ids that no other client of the same agent uses.
        let id = format!("{:p}-{}-{}", &self.socket, rand::random::<u32>(), self.sent);
        self.socket.send(envelope(&id, operation, agent, payload)).await;
        id
    }

    /// Sends a message and awaits its reply; pushes before it are kept. The reply's payload.
    pub async fn call(&mut self, agent: &str, operation: &str, payload: Value) -> Value {
        let id = self.send(agent, operation, payload).await;
        loop {
            let frame = self.socket.reply().await;
            if frame["id"] == id {
                return frame["payload"].clone();
            }
            self.pushed.push_back(frame);
        }
    }

    pub async fn subscribe(&mut self, agent: &str, subscription: Value) -> Value {
        self.call(agent, "SUBSCRIBE", json!({ "action": "subscribe", "subscription": subscription })).await
    }

    /// Subscribes to records under an id, after a place if one is given; the place where it begins.
    pub async fn records(&mut self, agent: &str, id: &str, after: Option<&str>) -> String {
        let wish = json!({ "id": id, "events": ["memory.recorded"], "resume_after": after });
        let reply = self.subscribe(agent, wish).await;
        reply["cursor"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    }

    /// The next push.
    pub async fn push(&mut self) -> Value {
        match self.pushed.pop_front() {
            Some(frame) => frame,
            None => self.socket.reply().await,
        }
    }

    /// The places of the next pushes.
    pub async fn places(&mut self, count: usize) -> Vec<String> {
        let mut places = Vec::new();
        for _ in 0..count {
            places.push(place(&self.push().await));
        }
        places
    }

    /// Nothing that was to be told before this call is still on its way.
    pub async fn hears_nothing_else(&mut self, agent: &str) {
        self.call(agent, "DETECT", json!({ "mode": "list" })).await;
        assert!(self.pushed.is_empty(), "{:?}", self.pushed);
    }

    /// Ends without a word: the hub gets a reset.
    pub fn kill(self) {
        kill(self.socket.stream.get_ref());
    }
}

pub fn kill(tcp: &TcpStream) {
    tcp.set_zero_linger().unwrap();
}

pub fn place(frame: &Value) -> String {
    frame["payload"]["cursor"].as_str().unwrap_or_else(|| panic!("no push: {frame}")).to_owned()
}

/// The place of a push, without reading the rest of it.
pub fn place_of(text: &str) -> &str {
    let (_, rest) = text.split_once("\"cursor\":\"").unwrap_or_else(|| panic!("no push: {text}"));
    rest.split_once('"').expect("a whole frame").0
}

/// Records so many units as fast as the hub takes them, without a socket.
pub async fn publish(hub: &Arc<Hub>, agent: &str, count: usize, content: &str) {
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
pub async fn recorded(hub: &Arc<Hub>) -> Vec<String> {
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
