//! Archived units through the doors of a real hub: their texts leave memory, and every door tells them all the same, to
//! the byte, also after a start from a snapshot that does not hold them and after one from the log alone.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::mcp;
use support::subscriber::Client;
use support::{Running, check, finding};

/// What a unit says that is in nobody else's words.
fn content(number: usize) -> String {
    format!("Zebra {number} \"grazes\" in the Größe of a \u{1f993} savanna\n\tat dawn.")
}

fn full(number: usize) -> Value {
    let mut unit = finding(&content(number));
    unit["intent"] =
        json!({ "purpose": format!("to count zebra {number}"), "task_id": "herd", "question": "How many?" });
    unit["confidence"] = json!({ "score": 0.7, "reason": "seen twice", "evidence": [format!("photo {number}")],
        "assumptions": ["they stand still"] });
    unit
}

async fn start(data: &Path, snapshot_entries: u64) -> Running {
    let data = data.to_owned();
    support::start_with(|config| {
        config.data = data;
        config.fields = vec!["default".into()];
        config.level = 3;
        config.snapshot_entries = snapshot_entries;
    })
    .await
}

async fn ask(hub: &Running, path: &str, payload: Value) -> Value {
    let reply = hub.post(path, &[("Akashik-Agent", "bob")], payload.to_string()).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

/// What identifies a unit and says what it says: all but what changes about it.
fn said(unit: &Value) -> Value {
    let mut unit = unit.clone();
    for changing in ["status", "archived", "inbound_relations", "conflicts"] {
        unit.as_object_mut().expect("a unit").remove(changing);
    }
    unit
}

fn by_id<'a>(units: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, Value> {
    units.into_iter().map(|unit| (unit["id"].as_str().expect("an id").to_owned(), said(unit))).collect()
}

/// The units that each door shows in full.
async fn shown(hub: &Running, units: &[String], past: u64) -> Vec<(&'static str, BTreeMap<String, Value>)> {
    let mut doors = Vec::new();
    let mut gets = Vec::new();
    for unit in units {
        gets.push(hub.get(&format!("/v1/units/{unit}")).await.json());
    }
    doors.push(("GET unit", by_id(&gets)));
    for (name, path) in [
        ("GET units", "/v1/units?limit=100&type=finding"),
        ("GET units of a task, newest first", "/v1/units?limit=100&order=newest&task=herd&agent=ada"),
    ] {
        let listed = hub.get(path).await.json();
        doors.push((name, by_id(listed["units"].as_array().unwrap())));
    }
    let scope = json!({ "role": "zebra", "max_units": 100, "include_archived": true, "types": ["finding"] });
    let mut as_of = scope.clone();
    as_of["as_of_epoch"] = json!(past);
    for (name, path, scope) in [
        ("ATTUNE", "/v1/attune", &scope),
        ("a look", "/v1/look/attune", &scope),
        ("ATTUNE of the past", "/v1/attune", &as_of),
    ] {
        let answer =
            ask(hub, path, json!({ "scope": scope, "context_hint": "zebra savanna", "format": "full" }))
                .await;
        let units = answer["record"].as_array().unwrap().iter().map(|one| &one["memory_unit"]);
        doors.push((name, by_id(units)));
    }
    let session = mcp::open(hub).await;
    let mut resources = Vec::new();
    for unit in units {
        let read =
            session.request("resources/read", json!({ "uri": format!("akashik://units/{unit}") })).await;
        let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
        resources.push(serde_json::from_str::<Value>(text).expect("JSON"));
    }
    doors.push(("an MCP resource", by_id(&resources)));
    let mut replayed = BTreeMap::new();
    for unit in units {
        let payload = json!({ "target_type": "memory_unit", "target_id": unit, "depth": "full_trace" });
        let told = ask(hub, "/v1/replay", payload).await;
        replayed.insert(unit.clone(), told["timeline"][0]["description"].clone());
    }
    doors.push(("REPLAY", replayed));
    for (_, shown) in &mut doors {
        shown.retain(|unit, _| units.contains(unit));
    }
    doors
}

/// The units that notices of one kind carry, polled from the beginning.
async fn told(hub: &Running, event: &str) -> BTreeMap<String, Value> {
    let path = format!("/v1/events?observer=true&poll=true&after=0.0&include_unit=true&events={event}");
    let events = hub.get(&path).await.json();
    by_id(
        events["events"]
            .as_array()
            .unwrap_or_else(|| panic!("{events}"))
            .iter()
            .map(|one| &one["memory_unit"]),
    )
}

fn bytes_of(snapshot: &Path) -> String {
    String::from_utf8_lossy(&fs::read(snapshot).expect("a snapshot")).into_owned()
}

#[tokio::test]
async fn archived_units_are_told_at_every_door_also_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let snapshot = data.path().join("default/state.snapshot");
    let hub = start(data.path(), 1).await;
    hub.register("ada").await;
    hub.register("bob").await;
    let mut units = Vec::new();
    for number in 0..40 {
        let reply = hub.post("/v1/record", &[("Akashik-Agent", "ada")], full(number).to_string()).await;
        units.push(reply.json()["memory_unit_id"].as_str().unwrap().to_owned());
    }
    // One that was a draft: its text stands in the entry of its COMMIT.
    let mut draft = full(40);
    draft["mode"] = json!("draft");
    let draft = hub.post("/v1/record", &[("Akashik-Agent", "ada")], draft.to_string()).await.json();
    let confidence = json!({ "score": 0.9, "reason": "sure by now", "evidence": [], "assumptions": [] });
    let commit = json!({ "memory_unit_id": draft["memory_unit_id"], "confidence": confidence });
    let committed = hub.post("/v1/commit", &[("Akashik-Agent", "ada")], commit.to_string()).await;
    assert_eq!(committed.status, 200, "{}", committed.text());
    let past = committed.json()["epoch"].as_u64().unwrap();
    units.push(draft["memory_unit_id"].as_str().unwrap().to_owned());
    let before = shown(&hub, &units, past).await;
    for (door, shown) in &before {
        assert_eq!(shown.len(), 41, "{door}");
    }
    hub.stop().await;
    assert!(bytes_of(&snapshot).contains("Zebra 7 "), "a snapshot holds what memory holds");

    let hub = start(data.path(), 1).await;
    hub.record("bob", "That is not archived.").await;
    let filter = json!({ "types": ["finding"], "max_age_epochs": 1 });
    let archived = ask(&hub, "/v1/compact", json!({ "strategy": "archive", "filter": filter })).await;
    assert_eq!(archived["units_affected"], 41);
    // Whether or not they have left memory yet.
    assert_eq!(shown(&hub, &units, past).await, before);
    hub.stop().await;
    assert!(!bytes_of(&snapshot).contains("Zebra 7 ") && !bytes_of(&snapshot).contains("to count zebra 7"));

    let hub = start(data.path(), 1).await;
    assert_eq!(shown(&hub, &units, past).await, before, "from a snapshot without their texts");
    let told_of = told(&hub, "memory.archived").await;
    assert_eq!(told_of, before[0].1, "notices of what was archived tell it");
    hub.stop().await;

    fs::remove_file(&snapshot).unwrap();
    let hub = start(data.path(), 0).await;
    assert_eq!(shown(&hub, &units, past).await, before, "from the log alone");
    hub.stop().await;
    assert!(!snapshot.exists());
}

#[tokio::test]
async fn a_restarted_hub_supersedes_contradicts_and_purges_what_is_archived() {
    let data = tempfile::tempdir().unwrap();
    let hub = start(data.path(), 1).await;
    hub.register("bob").await;
    hub.register("ada").await;
    let mut units = Vec::new();
    for number in 0..3 {
        units.push(hub.record("ada", &content(number)).await);
    }
    ask(&hub, "/v1/compact", json!({ "strategy": "archive" })).await;
    let gone: Value = hub.get(&format!("/v1/units/{}", units[0])).await.json();
    hub.stop().await;

    let hub = start(data.path(), 1).await;
    let mut bob = Client::of(&hub, "bob").await;
    let relate = |kind: &str, target: &str| {
        let mut unit = finding("It is otherwise.");
        unit["relations"] = json!([{ "type": kind, "target_id": target }]);
        unit
    };
    // The rule needs what the other unit says; the log is asked, and the unit is in memory again.
    let made = bob.call("bob", "RECORD", relate("contradicts", &units[0])).await;
    assert_eq!(made["conflicts_detected"].as_array().map(Vec::len), Some(1), "{made}");
    let conflicts = hub.get("/v1/conflicts").await.json();
    let description = conflicts["conflicts"][0]["description"].as_str().unwrap();
    assert!(description.contains("Zebra 0 "), "{description}");
    let shown = hub.get(&format!("/v1/units/{}", units[0])).await.json();
    assert_eq!((said(&shown), &shown["archived"]), (said(&gone), &json!(false)));
    bob.call("bob", "RECORD", relate("supersedes", &units[1])).await;
    let superseded = told(&hub, "memory.superseded").await;
    assert_eq!(superseded[&units[1]]["content"], json!(content(1)));
    bob.call("ada", "REGISTER", json!({ "id": "ada", "role": "r" })).await;
    bob.call("ada", "RETRACT", json!({ "memory_unit_id": units[2], "reason": "private" })).await;
    assert_eq!(told(&hub, "memory.retracted").await[&units[2]]["content"], json!(content(2)));

    let purge = json!({ "strategy": "purge", "filter": { "status": ["superseded", "retracted"] } });
    assert_eq!(ask(&hub, "/v1/compact", purge).await["units_affected"], 2);
    hub.stop().await;
    for snapshots in [1, 0] {
        let hub = start(data.path(), snapshots).await;
        hub.register("bob").await;
        for (number, unit) in units.iter().enumerate().skip(1) {
            check(&hub.get(&format!("/v1/units/{unit}")).await, 404, "UNIT_NOT_FOUND");
            let payload = json!({ "target_type": "memory_unit", "target_id": unit, "depth": "full_trace" });
            let replayed = ask(&hub, "/v1/replay", payload).await;
            let last = replayed["timeline"].as_array().unwrap().last().unwrap();
            assert_eq!(last["event_type"], "PURGE");
            let events =
                told(&hub, "memory.archived,memory.superseded,memory.retracted,memory.recorded").await;
            let scope = json!({ "role": "zebra", "max_units": 100, "include_archived": true });
            let attuned = ask(&hub, "/v1/attune", json!({ "scope": scope, "context_hint": "zebra" })).await;
            let listed = hub.get("/v1/units?limit=100").await.text();
            for answer in [&json!(events).to_string(), &attuned.to_string(), &listed] {
                assert!(!answer.contains(&format!("Zebra {number} ")), "{answer}");
            }
            assert!(listed.contains("Zebra 0 "), "what is left is told");
        }
        hub.stop().await;
    }
}
