//! A whole Field and lines to it, without sockets, on a log that fails on demand.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::outbox::Outbox;
use super::super::{Answer, ConnectionId, Field, Hub, Pending};
use crate::config::Config;
use crate::field::{Entry, World, apply};
use crate::log::{Faults, Log, MemoryLog};
use crate::protocol::Envelope;

pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Stage {
    pub(super) hub: Arc<Hub>,
    pub(super) log: MemoryLog,
    pub(super) faults: Faults,
}

impl Stage {
    pub(super) async fn new() -> Self {
        Self::with(Config::default()).await
    }

    /// A hub with this configuration that waits long for agents who are gone.
    pub(super) async fn with(config: Config) -> Self {
        let log = MemoryLog::new();
        let logs: Vec<Box<dyn Log>> = vec![Box::new(log.clone())];
        let config = Config { grace_ms: 600_000, ..config };
        let hub = Hub::start_on(config, logs).await.expect("the hub starts");
        Self { faults: log.faults(), hub, log }
    }

    pub(super) fn field(&self) -> &Field {
        self.hub.field(None).expect("there is a Field")
    }

    /// A line over which these agents have registered.
    pub(super) async fn line(&self, connection: u64, agents: &[&str]) -> Line<'_> {
        let connection = ConnectionId(connection);
        let mut line =
            Line { field: self.field(), connection, outbox: self.field().outbox(connection), sent: 0 };
        for agent in agents {
            line.ok(agent, "REGISTER", json!({ "id": agent, "role": *agent })).await;
        }
        line
    }

    /// What the log holds, and the world that it comes to.
    pub(super) fn entries(&self) -> (Vec<Entry>, World) {
        let (mut entries, mut state) = (Vec::new(), crate::field::State::default());
        let mut take = |_: u64, body: &str| {
            let entry = Entry::from_json(body).expect("an entry");
            apply(&mut state, &entry);
            entries.push(entry);
            ControlFlow::Continue(())
        };
        self.log.reader().and_then(|reader| reader.scan(0, &mut take)).expect("memory can be read");
        (entries, state.world)
    }
}

/// A connection without a socket: it does what a door does, one thing at a time.
pub(super) struct Line<'a> {
    pub(super) field: &'a Field,
    pub(super) connection: ConnectionId,
    pub(super) outbox: Outbox,
    pub(super) sent: u64,
}

impl Line<'_> {
    pub(super) async fn submit(&mut self, agent: &str, operation: &str, payload: &Value) -> Pending {
        self.sent += 1;
        let id = format!("{}-{}", self.connection.0, self.sent);
        let envelope = json!({
            "protocol": "akashik", "version": "0.1.0", "id": id, "operation": operation, "agent_id": agent,
            "session_id": null, "epoch": 0, "payload": payload,
        });
        let message = self.field.read(&Envelope::parse(&envelope.to_string()).expect("an envelope"));
        self.field.submit(message, Some(self.connection)).await
    }

    /// What a door does once a reply is written.
    pub(super) fn written(&mut self, agent: &str, operation: &str, payload: &Value, answer: &Answer) {
        self.outbox.replied(answer.epoch);
        let Ok(reply) = &answer.outcome else { return };
        self.outbox.speaks(agent, answer.epoch);
        if operation == "SUBSCRIBE" && payload["action"] == "subscribe" {
            let resumes = payload["subscription"].get("resume_after").is_some();
            self.field.attach(&mut self.outbox, agent, answer.epoch, reply, resumes);
        }
    }

    pub(super) async fn call(&mut self, agent: &str, operation: &str, payload: Value) -> Answer {
        let pending = self.submit(agent, operation, &payload).await;
        let answer = timeout(PATIENCE, pending).await.expect("every message is answered");
        self.written(agent, operation, &payload, &answer);
        answer
    }

    pub(super) async fn ok(&mut self, agent: &str, operation: &str, payload: Value) -> Value {
        let answer = self.call(agent, operation, payload).await;
        serde_json::from_str(answer.outcome.expect("it is answered").get()).expect("JSON")
    }

    pub(super) async fn subscribe(&mut self, agent: &str, subscription: Value) -> Value {
        self.ok(agent, "SUBSCRIBE", json!({ "action": "subscribe", "subscription": subscription })).await
    }

    pub(super) async fn record(&mut self, agent: &str, content: &str, relations: Value) -> String {
        let payload = with_relations(content, relations);
        self.ok(agent, "RECORD", payload).await["memory_unit_id"].as_str().expect("an id").to_owned()
    }

    /// The next push: its frame.
    pub(super) async fn next(&mut self) -> Value {
        let push = timeout(PATIENCE, self.outbox.next()).await.expect("in time").expect("a push comes");
        serde_json::from_str(&push.frame()).expect("a frame is JSON")
    }

    /// The next push as `"<subscription> <event> <about>"`.
    pub(super) async fn heard(&mut self) -> String {
        let frame = self.next().await;
        let told = &frame["payload"];
        let about = [&told["memory_unit_id"], &told["conflict_id"], &told["agent_id"]];
        let about = about.into_iter().find(|about| !about.is_null()).expect("it is about something");
        format!("{} {} {}", text(&told["subscription_id"]), text(&told["event"]), text(about))
    }

    /// Nothing is pushed: whatever could be is durable, and told of to `other`, that hears it all.
    pub(super) async fn hears_nothing_else(&mut self) {
        // Followers are woken in one go: the herald had its turn when others were told of a later operation.
        let quiet = timeout(Duration::from_millis(30), self.outbox.next()).await;
        assert!(quiet.is_err(), "{}", quiet.unwrap().map(|push| push.frame()).unwrap_or_default());
    }
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text, not {value}"))
}

pub(super) fn with_relations(content: &str, relations: Value) -> Value {
    json!({
        "type": "finding", "content": content, "intent": { "purpose": "to test" },
        "confidence": { "score": 0.5, "reason": "made up" }, "relations": relations,
    })
}

pub(super) fn contradicts(unit: &str) -> Value {
    json!([{ "type": "contradicts", "target_id": unit }])
}
