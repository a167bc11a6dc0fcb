//! ATTUNE as of an earlier epoch: it shows what it showed then, whatever became of it, with a snapshot and without.

mod support;

use akashik_hub::config::Config;
use akashik_hub::hub::Audit;
use serde_json::{Value, json};
use support::{Running, Socket, envelope, finding};

/// Sends a message and awaits its reply; what authors are told meanwhile is another matter.
async fn call(socket: &mut Socket, id: &str, operation: &str, agent: &str, payload: Value) -> Value {
    socket.send(envelope(id, operation, agent, payload)).await;
    loop {
        let reply = socket.reply().await;
        if reply["id"] == id {
            return reply;
        }
    }
}

/// What an ATTUNE of `bob` shows: everything but the operation's own epoch.
async fn shown(socket: &mut Socket, id: &str, as_of: Option<u64>) -> (u64, Value) {
    let scope = json!({ "role": "analyst", "max_units": 50, "include_drafts": true, "as_of_epoch": as_of });
    let payload = json!({ "scope": scope, "context_hint": "how fast does the market grow", "explain": true });
    let reply = call(socket, id, "ATTUNE", "bob", payload).await;
    let mut payload = reply["payload"].clone();
    assert_eq!(payload["status"], "ok", "{reply}");
    payload["epoch"].take();
    (reply["epoch"].as_u64().expect("an epoch"), payload)
}

async fn ask(socket: &mut Socket, id: &str, operation: &str, agent: &str, payload: Value) -> Value {
    let reply = call(socket, id, operation, agent, payload).await;
    assert!(reply["payload"]["code"].is_null(), "{reply}");
    reply["payload"].clone()
}

/// Lets things happen, and looks after each of them.
async fn live(socket: &mut Socket) -> Vec<(u64, Value)> {
    let mut seen = Vec::new();
    socket.register("ada").await;
    socket.register("bob").await;
    seen.push(shown(socket, "look-0", None).await);
    let mut ids: Vec<String> = Vec::new();
    for at in 0..14 {
        let mut unit = finding(&format!("Finding {at}: the market grows by {at} percent a year."));
        match at {
            4 => unit["relations"] = json!([{ "type": "contradicts", "target_id": ids[1] }]),
            6 => unit["relations"] = json!([{ "type": "supersedes", "target_id": ids[2] }]),
            8 => unit["mode"] = json!("draft"),
            _ => {}
        }
        let agent = if at == 8 { "bob" } else { "ada" };
        let made = ask(socket, &format!("record-{at}"), "RECORD", agent, unit).await;
        ids.push(made["memory_unit_id"].as_str().expect("an id").to_owned());
        seen.push(shown(socket, &format!("look-a{at}"), None).await);
        match at {
            9 => drop(ask(socket, "commit", "COMMIT", "bob", json!({ "memory_unit_id": ids[8] })).await),
            11 => {
                let payload = json!({ "memory_unit_id": ids[4], "reason": "a slip" });
                ask(socket, "retract", "RETRACT", "ada", payload).await;
            }
            _ => continue,
        }
        seen.push(shown(socket, &format!("look-b{at}"), None).await);
    }
    seen
}

async fn looks_back(change: impl FnOnce(&mut Config)) {
    let hub: Running = support::start_with(change).await;
    let mut socket = hub.websocket().await;
    let seen = live(&mut socket).await;
    // Somebody who came later may ask, too, and is nobody then.
    socket.register("eve").await;
    for (at, (epoch, then)) in seen.iter().enumerate().rev() {
        // Twice: made, and kept.
        for again in 0..2 {
            let (_, now) = shown(&mut socket, &format!("back-{at}-{again}"), Some(*epoch)).await;
            assert_eq!(&now, then, "as of {epoch}");
        }
    }
    let scope = json!({ "role": "r", "max_units": 50, "as_of_epoch": seen[5].0 });
    let late = call(&mut socket, "eve", "ATTUNE", "eve", json!({ "scope": scope })).await;
    assert_eq!(late["payload"]["record"].as_array().expect("units").len(), 5, "{late}");
    // What is not over yet is the present, and an epoch that is none is refused by name.
    let (_, present) = shown(&mut socket, "present", None).await;
    let (_, ahead) = shown(&mut socket, "ahead", Some(1 << 40)).await;
    let listed = |answer: &Value| answer["context_budget"].clone();
    assert_eq!(listed(&present), listed(&ahead));
    let wrong = json!({ "scope": { "role": "r", "max_units": 1, "as_of_epoch": -1 } });
    let refused = call(&mut socket, "wrong", "ATTUNE", "bob", wrong).await;
    assert_eq!(refused["payload"]["code"], "INVALID_MESSAGE");
    assert_eq!(
        refused["payload"]["details"]["key"].as_str().or(refused["payload"]["key"].as_str()),
        Some("scope.as_of_epoch"),
        "{refused}"
    );
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_shown_is_shown_again() {
    looks_back(|config| (config.snapshot_entries, config.audit_reads) = (0, Audit::Off)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_where_snapshots_are_written_and_reads_are_noted() {
    looks_back(|config| config.snapshot_entries = 5).await;
}
