//! Conflicts that the hub notices by itself, through real sockets: pushed, resolved and replayed like those that an
//! agent tells of; deferred under load, and found once whatever happens to the hub.

mod process;
mod support;

use std::collections::BTreeSet;

use akashik_hub::client::{Client, ClientOptions, Detect, Record};
use futures::future::join_all;
use process::{HubProcess, until};
use serde_json::{Value, json};
use support::{Running, Socket, check, envelope, finding, start, start_in_memory, start_with};

const OLD: &str = "The market for heat pumps grows by 23% a year.";
const NEW: &str = "The market for heat pumps grows by 14% a year.";

async fn record(socket: &mut Socket, id: &str, agent: &str, payload: Value) -> Value {
    let reply = socket.call(id, "RECORD", agent, payload).await;
    reply["payload"].clone()
}

async fn detect(hub: &Running, payload: Value) -> support::Reply {
    hub.post("/v1/detect", &[("Akashik-Agent", "kim")], payload.to_string()).await
}

async fn backlog(hub: &Running) -> u64 {
    hub.get("/v1/field/status").await.json()["detection_backlog"].as_u64().unwrap()
}

async fn caught_up(hub: &Running) {
    while backlog(hub).await > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_contradict_each_other_without_knowing_and_a_person_settles_it() {
    let hub = start().await;
    let (mut ada, mut ben) = (hub.websocket().await, hub.websocket().await);
    ada.register("ada").await;
    ben.register("ben").await;
    hub.register("kim").await;
    let wish = json!({ "action": "subscribe", "subscription": { "events": ["conflict.detected", "conflict.resolved"] } });
    ada.call("s", "SUBSCRIBE", "ada", wish).await;

    let first = record(&mut ada, "1", "ada", finding(OLD)).await;
    record(&mut ada, "2", "ada", finding("The office in Lyon opens in May.")).await;
    // Alone with the Field, so it is compared before it is answered.
    let second = record(&mut ben, "1", "ben", finding(NEW)).await;
    let conflict = second["conflicts_detected"][0].as_str().expect("a conflict").to_owned();
    assert_eq!(second.get("conflict_detection"), None, "{second}");
    let again = record(&mut ben, "1", "ben", finding(NEW)).await;
    assert_eq!(again, second, "the same message, the same answer");

    let push = ada.reply().await["payload"].clone();
    assert_eq!((&push["event"], &push["conflict_id"]), (&json!("conflict.detected"), &json!(conflict)));
    assert_eq!(push["requires_action"], true);
    let said = push["summary"].as_str().unwrap();
    assert!(said.contains("23%") && said.contains("14%"), "{said}");

    let attuned = hub
        .post(
            "/v1/attune",
            &[("Akashik-Agent", "kim")],
            json!({ "scope": { "role": "r", "max_units": 5 } }).to_string(),
        )
        .await
        .json();
    assert_eq!(attuned["conflicts"][0]["id"], json!(conflict));
    assert_eq!(attuned["record"][0]["memory_unit"]["status"], "contested");

    let merge = json!({
        "conflict_id": conflict, "strategy": "last_write_wins", "resolution": { "rationale": "The newer study." },
    });
    let merged = hub.post("/v1/merge", &[("Akashik-Agent", "kim")], merge.to_string()).await.json();
    assert_eq!(merged["side_effects"]["superseded_units"], json!([first["memory_unit_id"]]));
    assert_eq!(ada.reply().await["payload"]["event"], "conflict.resolved");

    let replay = json!({ "target_type": "conflict", "target_id": conflict, "depth": "summary" });
    let replayed = hub.post("/v1/replay", &[("Akashik-Agent", "kim")], replay.to_string()).await.json();
    let told: Vec<_> = replayed["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            format!("{} by {}", event["event_type"].as_str().unwrap(), event["agent_id"].as_str().unwrap())
        })
        .collect();
    assert_eq!(told, ["RECORD by ada", "RECORD by ben", "CONFLICT_CREATED by system", "MERGE by kim"]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_and_scans_find_what_was_recorded_while_detection_was_off() {
    let hub = start_with(|config| config.detection_budget_ms = 0).await;
    let address = format!("http://{}", hub.addr);
    let ada = Client::connect(&address, ClientOptions::new("ada")).await.unwrap();
    ada.register("researcher").await.unwrap();
    hub.register("kim").await;
    let empty = ada.detect(Detect::scan()).await.unwrap();
    assert_eq!((empty.conflicts.len(), empty.scan_coverage.units_scanned), (0, 0));
    let record = |text: &str| Record::finding(text).because("to know").sure(0.6, "seen");
    let old = ada.record(record(OLD)).await.unwrap();
    let new = ada.record(record(NEW)).await.unwrap();
    ada.record(record("The Alder gate is open.")).await.unwrap();
    ada.record(record("The Alder gate is closed.")).await.unwrap();
    assert!(new.conflicts_detected.is_empty() && new.conflict_detection.is_none());

    let checked = ada.detect(Detect::check(old.memory_unit_id)).await.unwrap();
    assert_eq!((checked.scan_coverage.units_scanned, checked.scan_coverage.new_conflicts_found), (3, 1));
    assert_eq!(checked.conflicts[0].unit_b, new.memory_unit_id);
    // Both at once: each pair is found once, whoever finds it.
    let found =
        join_all([Detect::scan(), Detect::check(old.memory_unit_id)].map(|request| ada.detect(request)))
            .await;
    let scanned = found[0].as_ref().unwrap();
    assert_eq!((scanned.scan_coverage.units_scanned, scanned.scan_coverage.new_conflicts_found), (4, 1));
    assert_eq!(scanned.conflicts.len(), 2);
    assert!(found[1].is_ok());
    let again = ada.detect(Detect::scan()).await.unwrap();
    assert_eq!((again.conflicts.len(), again.scan_coverage.new_conflicts_found), (2, 0));

    for (payload, status, code) in [
        (json!({ "mode": "check" }), 400, "INVALID_MESSAGE"),
        (json!({ "mode": "check", "target_id": "mem-999" }), 404, "UNIT_NOT_FOUND"),
        (json!({ "mode": "scan", "filter": { "status": ["open"] } }), 400, "INVALID_MESSAGE"),
    ] {
        check(&detect(&hub, payload).await, status, code);
    }
    let register = json!({ "id": "lea", "role": "r" }).to_string();
    let told = hub.post("/v1/register", &[("Akashik-Agent", "lea")], register).await.json();
    let extensions = told["field_capabilities"]["extensions"].as_array().unwrap().clone();
    assert!(
        extensions.contains(&json!("detect-scan")) && !extensions.contains(&json!("automatic-detection"))
    );
    hub.stop().await;
}

/// Names that set things apart.
const NAMES: [&str; 16] = [
    "Alder", "Birch", "Cedar", "Dogwood", "Elder", "Fir", "Ginkgo", "Hazel", "Ilex", "Juniper", "Katsura",
    "Larch", "Maple", "Nutmeg", "Oak", "Pine",
];

/// Eight agents say of each gate, all at once, that it is open, or that it is closed. Returns how many answers were
/// deferred.
async fn quarrel(address: &str) -> usize {
    let says = |nth: usize| async move {
        let options = ClientOptions::new(format!("agent-{nth}"));
        let agent = Client::connect(address, options).await.unwrap();
        agent.register("guard").await.unwrap();
        let said = NAMES.iter().enumerate().filter(|(at, _)| at % 4 == nth % 4).map(|(_, name)| {
            let state = if nth < 4 { "open" } else { "closed" };
            let text = format!("The {name} gate is {state}.");
            agent.record(Record::finding(text).because("to know").sure(0.6, "seen"))
        });
        let answers = join_all(said).await;
        answers.into_iter().filter(|answer| answer.as_ref().unwrap().conflict_detection.is_some()).count()
    };
    join_all((0..8).map(says)).await.into_iter().sum()
}

/// Each gate's conflict, once.
fn assert_each_once(conflicts: &Value) {
    let conflicts = conflicts["conflicts"].as_array().unwrap();
    let pairs: BTreeSet<_> = conflicts
        .iter()
        .map(|conflict| (conflict["unit_a"].to_string(), conflict["unit_b"].to_string()))
        .collect();
    assert_eq!((conflicts.len(), pairs.len()), (NAMES.len(), NAMES.len()), "{conflicts:#?}");
    assert!(conflicts.iter().all(|conflict| conflict["detected_by"] == "semantic"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deferred_under_load_follows_by_itself_each_conflict_once() {
    let hub = start_in_memory(|_| {}).await;
    hub.register("kim").await;
    let deferred = quarrel(&format!("http://{}", hub.addr)).await;
    assert!(deferred > 0, "eight writers at once are more than the door compares");
    caught_up(&hub).await;
    assert_each_once(&detect(&hub, json!({ "mode": "list" })).await.json());
    let scanned = detect(&hub, json!({ "mode": "scan" })).await.json();
    assert_eq!(scanned["scan_coverage"], json!({ "units_scanned": 32, "new_conflicts_found": 0 }));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_killed_with_a_backlog_finds_the_same_conflicts_once() {
    let data = tempfile::tempdir().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let deferred = quarrel(&hub.url).await;
    assert!(deferred > 0);
    hub.kill();
    let hub = HubProcess::start(data.path(), &[]);
    let get = |path: &str| -> Value {
        let output = process::run(&["status", "--url", &hub.url, "--json"]);
        assert!(output.status.success(), "{path}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    until("everything is compared", || get("status")["detection_backlog"] == 0);
    let listed =
        process::run(&["detect", "--url", &hub.url, "--agent", "agent-0", "--mode", "list", "--json"]);
    assert_each_once(&serde_json::from_slice(&listed.stdout).unwrap());
    let scanned =
        process::run(&["detect", "--url", &hub.url, "--agent", "agent-0", "--mode", "scan", "--json"]);
    let scanned: Value = serde_json::from_slice(&scanned.stdout).unwrap();
    assert_eq!(scanned["scan_coverage"]["new_conflicts_found"], 0);
    hub.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_is_one_at_a_time_and_ends_with_the_hub() {
    let mut hub = start_in_memory(|config| config.detection_budget_ms = 0).await;
    let address = format!("http://{}", hub.addr);
    let ada = Client::connect(&address, ClientOptions::new("ada")).await.unwrap();
    ada.register("researcher").await.unwrap();
    hub.register("kim").await;
    // Long enough that a scan takes its time.
    for round in 0..40 {
        let records = (0..50).map(|at| {
            let text = format!(
                "Pump {round} at site {at} moves {at} litres; {}",
                "its valve is old and dry. ".repeat(30)
            );
            ada.record(Record::finding(text).because("to know").sure(0.6, "seen"))
        });
        assert!(join_all(records).await.into_iter().all(|answer| answer.is_ok()));
    }
    let scan = |id: &str| envelope(id, "DETECT", "ada", json!({ "mode": "scan" }));
    let (mut one, mut other) = (hub.websocket().await, hub.websocket().await);
    one.send(scan("1")).await;
    other.send(scan("2")).await;
    // Whichever came second is refused while the first one is under way.
    let (refused, other_scans) = {
        let first = futures::future::select(Box::pin(one.reply()), Box::pin(other.reply())).await;
        match first {
            futures::future::Either::Left((reply, _)) => (reply, true),
            futures::future::Either::Right((reply, _)) => (reply, false),
        }
    };
    assert_eq!(refused["payload"]["code"], "OVERLOADED", "{refused}");
    assert!(refused["payload"]["details"]["retry_after_ms"].is_u64(), "{refused}");
    // Reads and writes go on beside it.
    let new = ada.record(Record::finding("It rains.").because("to know").sure(0.6, "seen"));
    assert!(new.await.is_ok() && ada.detect(Detect::list()).await.is_ok());
    hub.close();
    let cut = if other_scans { other.reply().await } else { one.reply().await };
    assert_eq!(cut["payload"]["code"], "INTERNAL_ERROR", "{cut}");
    let said = cut["payload"]["message"].as_str().unwrap();
    assert!(said.contains("shutting down") && said.contains("of 2000 units"), "{said}");
    hub.stop().await;
}
