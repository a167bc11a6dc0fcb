//! COMPACT through the doors: HTTP, WebSocket, the client, the command line; who listens to many units being
//! archived; a log that is full; and what is left of purged units beside the log.

mod process;
mod support;

use akashik_hub::client::{Attune, Client, ClientOptions, Compact, Record};
use akashik_hub::config::Config;
use akashik_hub::hub::Hub;
use akashik_hub::log::{Log, MemoryLog};
use akashik_hub::protocol::{Envelope, MemoryType, UnitStatus};
use process::{HubProcess, run};
use serde_json::{Value, json};
use support::subscriber::{self, place, publish};
use support::{Running, check, finding};

async fn compact(hub: &Running, agent: &str, payload: Value) -> support::Reply {
    hub.post("/v1/compact", &[("Akashik-Agent", agent)], payload.to_string()).await
}

#[tokio::test]
async fn every_door_compacts_and_gives_the_same_answers() {
    let hub = support::start().await;
    hub.register("ada").await;
    let unit = hub.record("ada", "The market grows.").await;
    let reply = compact(&hub, "ada", json!({ "strategy": "archive" })).await;
    assert_eq!(reply.status, 200);
    let expected = json!({ "status": "ok", "units_affected": 1, "synthesis_units_created": 0,
        "storage_reclaimed_bytes": null });
    assert_eq!(reply.json(), expected);
    assert_eq!(hub.get(&format!("/v1/units/{unit}")).await.json()["archived"], true);
    assert_eq!(hub.get("/v1/field/status").await.json()["units_archived"], 1);

    let mut socket = subscriber::Client::of(&hub, "bob").await;
    let nothing = socket.call("bob", "COMPACT", json!({ "strategy": "archive" })).await;
    assert_eq!((&nothing["status"], &nothing["units_affected"]), (&json!("ok"), &json!(0)));
    let refused = compact(&hub, "ada", json!({ "strategy": "purge" })).await;
    check(&refused, 400, "INVALID_MESSAGE");
    let same = socket.call("bob", "COMPACT", json!({ "strategy": "purge" })).await;
    assert_eq!(same, refused.json(), "the same at every door");

    let url = format!("http://{}", hub.addr);
    let client = Client::connect(&url, ClientOptions::new("kim")).await.unwrap();
    client.register(akashik_hub::client::Register::as_role("cleaner")).await.unwrap();
    client
        .record(Record::finding("Berlin asks for a permit.").because("to know").sure(0.5, "seen"))
        .await
        .unwrap();
    let preview = client
        .compact(
            Compact::summarize().of_type(MemoryType::Finding).with_status(UnitStatus::Active).previewed(),
        )
        .await
        .unwrap();
    assert_eq!((preview.units_affected, preview.synthesis_units_created, preview.dry_run), (1, 1, true));
    let done = client.compact(Compact::purge().older_than(0).because("a test")).await.unwrap();
    assert_eq!(done.units_affected, 2);
    assert!(done.storage_reclaimed_bytes.is_some_and(|bytes| bytes > 0));
    check(&hub.get(&format!("/v1/units/{unit}")).await, 404, "UNIT_NOT_FOUND");
    let found = client.attune(Attune::for_role("r", 10).including_own()).await.unwrap();
    assert_eq!(found.context_budget.units_available, 0);
    let log = hub.get("/v1/log?limit=100").await.text();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let purged: Vec<_> = lines.filter(|line| line["event_type"] == "PURGE").collect();
    assert_eq!(purged.len(), 2, "a tombstone each: {log}");
    assert_eq!((&purged[0]["memory_unit_id"], &purged[0]["reason"]), (&json!(unit), &json!("a test")));
    assert!(log.contains("The market grows."), "the log keeps what was said");
    hub.stop().await;
}

#[test]
fn the_command_says_in_words_what_it_did() {
    let data = tempfile::tempdir().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let at = |arguments: &[&str]| {
        let mut all = vec![arguments[0], "--url", &hub.url, "--agent", "ada"];
        all.extend(&arguments[1..]);
        let output = run(&all);
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(at(&["register", "--role", "r"]).0, Some(0));
    for session in ["s-1", "s-2"] {
        let record = [
            "record",
            "--type",
            "finding",
            "--content",
            "x",
            "--purpose",
            "p",
            "--score",
            "0.5",
            "--reason",
            "r",
            "--session",
            session,
        ];
        assert_eq!(at(&record).0, Some(0));
    }
    let units = |said: &str| serde_json::from_str::<Value>(said).unwrap()["units_affected"].clone();
    let (code, said, _) = at(&["compact", "--strategy", "archive", "--session", "s-1", "--dry-run"]);
    assert_eq!((code, units(&said)), (Some(0), json!(1)), "the session is a condition");
    let (_, said, _) = at(&[
        "compact",
        "--strategy",
        "summarize",
        "--type",
        "finding",
        "--status",
        "active",
        "--max-age",
        "0",
        "--reason",
        "done",
    ]);
    assert_eq!(units(&said), json!(2));
    let (code, _, why) = at(&["compact", "--strategy", "purge"]);
    assert_eq!(code, Some(1));
    assert!(why.contains("filter has no condition"), "{why}");
    let (code, _, why) = at(&["compact", "--strategy", "purge", "--status", "archived"]);
    assert!(code == Some(1) && why.contains("filter.status contains"), "{why}");
    hub.stop();
}

/// More than one page of notices: each unit once, in order, live and again from the log, also from
/// the middle.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_hears_of_each_of_many_archived_units_live_and_later() {
    const UNITS: usize = 1_000;
    let hub = support::start_in_memory(|_| {}).await;
    hub.register("ada").await;
    publish(&hub.hub, "ada", UNITS, "a finding").await;
    let mut live = subscriber::Client::of(&hub, "bob").await;
    let wish = json!({ "id": "watch", "events": ["memory.archived", "memory.recorded"] });
    assert_eq!(live.subscribe("bob", wish).await["status"], "ok");
    let reply = compact(&hub, "ada", json!({ "strategy": "summarize", "reason": "it is old" })).await.json();
    assert_eq!(reply["units_affected"], UNITS);
    let made = reply["synthesis_units_created"].as_u64().unwrap() as usize;
    let mut heard = Vec::new();
    for _ in 0..made + UNITS {
        let push = live.push().await;
        heard.push((
            place(&push),
            push["payload"]["event"].clone(),
            push["payload"]["memory_unit_id"].clone(),
        ));
    }
    let epoch = heard[0].0.split_once('.').unwrap().0.to_owned();
    for (index, (place, event, _)) in heard.iter().enumerate() {
        assert_eq!(*place, format!("{epoch}.{index}"));
        assert_eq!(*event, if index < made { "memory.recorded" } else { "memory.archived" });
    }
    // Of some there is nothing left to tell; the others keep their places.
    let purged =
        compact(&hub, "ada", json!({ "strategy": "purge", "filter": { "max_age_epochs": UNITS / 2 } })).await;
    let purged = purged.json()["units_affected"].as_u64().unwrap() as usize;
    assert!(purged > 100);
    for from in [0, 1, made, made + 300, made + UNITS - purged / 2] {
        let mut later = subscriber::Client::of(&hub, "bob").await;
        let wish = json!({ "id": "watch", "resume_after": heard[from].0 });
        later.subscribe("bob", wish).await;
        let rest: Vec<_> = heard[from + 1..].to_vec();
        let gone = |unit: &Value| {
            let unit = unit.as_str().unwrap().to_owned();
            let known = hub.hub.field(None).unwrap().view();
            known.unit(&unit, None).expect("a log").is_none()
        };
        // A RECORD holds its unit itself.
        let rest: Vec<_> =
            rest.into_iter().filter(|(_, event, unit)| event == "memory.recorded" || !gone(unit)).collect();
        for expected in rest {
            let push = later.push().await;
            assert_eq!((place(&push), &push["payload"]["memory_unit_id"]), (expected.0, &expected.2));
        }
        later.hears_nothing_else("bob").await;
    }
    hub.stop().await;
}

#[tokio::test]
async fn pages_of_the_log_go_on_within_one_entry() {
    let hub = support::start_in_memory(|_| {}).await;
    hub.register("ada").await;
    publish(&hub.hub, "ada", 300, "a finding").await;
    compact(&hub, "ada", json!({ "strategy": "archive" })).await;
    let (mut after, mut archived) = (String::new(), Vec::new());
    loop {
        let page = hub.get(&format!("/v1/log?limit=70{after}")).await.text();
        let lines: Vec<Value> = page.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.len() <= 70);
        let Some(last) = lines.last() else { break };
        after = format!("&after={}", last["cursor"].as_str().unwrap());
        let own = lines.iter().filter(|line| line["event_type"] == "ARCHIVE");
        archived.extend(own.map(|line| line["memory_unit_id"].as_str().unwrap().to_owned()));
    }
    let count = archived.len();
    archived.sort();
    archived.dedup();
    assert_eq!((count, archived.len()), (300, 300), "each once");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_log_refuses_what_changes_something_and_nothing_has_changed() {
    let log = MemoryLog::new();
    let faults = log.faults();
    let logs: Vec<Box<dyn Log>> = vec![Box::new(log)];
    let hub = Hub::start_on(Config::default(), logs).await.unwrap();
    let field = hub.field(None).unwrap();
    let call = async |id: &str, operation: &str, payload: Value| {
        let text = support::envelope(id, operation, "ada", payload).to_string();
        let message = field.read(&Envelope::parse(&text).unwrap());
        field.submit(message, None).await.await.outcome
    };
    call("1", "REGISTER", json!({ "id": "ada", "role": "r" })).await.unwrap();
    for number in 0..5 {
        call(&format!("r-{number}"), "RECORD", finding("x")).await.unwrap();
    }
    faults.set_full(true);
    for strategy in ["archive", "summarize", "purge"] {
        let payload = json!({ "strategy": strategy, "filter": { "max_age_epochs": 0 } });
        let refusal = call(strategy, "COMPACT", payload.clone()).await.unwrap_err();
        assert_eq!(refusal.code.name(), "STORAGE_FULL", "{strategy}");
        let nothing = json!({ "strategy": strategy, "filter": { "types": ["question"] } });
        let answer = call(&format!("{strategy}-nothing"), "COMPACT", nothing).await.unwrap();
        assert!(
            answer.get().contains("\"units_affected\":0"),
            "{strategy}: what changes nothing needs no room"
        );
        let preview = json!({ "strategy": strategy, "filter": { "max_age_epochs": 0 }, "dry_run": true });
        let answer = call(&format!("{strategy}-preview"), "COMPACT", preview).await.unwrap();
        assert!(answer.get().contains("\"units_affected\":5"));
    }
    let status = field.view().status();
    assert_eq!((&status["units"]["active"], &status["units_archived"]), (&json!(5), &json!(0)));
    faults.set_full(false);
    let payload = json!({ "strategy": "archive" });
    loop {
        match call("archive-again", "COMPACT", payload.clone()).await {
            Ok(answer) => break assert!(answer.get().contains("\"units_affected\":5")),
            Err(refusal) => assert_eq!(refusal.code.name(), "STORAGE_FULL"),
        }
        tokio::task::yield_now().await;
    }
    hub.stop().await;
}

/// The file of vectors tells nothing of a purged unit, and the others' vectors are read from it as before.
#[test]
fn purged_units_leave_the_file_of_vectors() {
    let data = tempfile::tempdir().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let agent = ["--url", &hub.url, "--agent", "ada"];
    let ask = |url: &str, name: &str, more: &[&str]| {
        let output = run(&[&[name, "--url", url, "--agent", "ada"][..], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert!(run(&[&["register"][..], &agent, &["--role", "r"]].concat()).status.success());
    for (kind, content) in
        [("finding", "The market grows."), ("decision", "We move to Berlin."), ("finding", "Prices rise.")]
    {
        ask(
            &hub.url,
            "record",
            &["--type", kind, "--content", content, "--purpose", "p", "--score", "0.5", "--reason", "r"],
        );
    }
    let attune = |url: &str| {
        let found = ask(
            url,
            "attune",
            &["--role", "r", "--max-units", "9", "--include-own", "--hint", "what does housing cost"],
        );
        let ranked = found["record"].as_array().unwrap().clone();
        ranked
            .iter()
            .map(|one| (one["memory_unit"]["id"].clone(), one["relevance_score"].clone()))
            .collect::<Vec<_>>()
    };
    attune(&hub.url);
    hub.stop();
    let file = data.path().join("default").join("vectors.cache");
    let zeros = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == 0).count();
    let before = std::fs::read(&file).unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    ask(&hub.url, "compact", &["--strategy", "purge", "--type", "decision"]);
    let after_purge = attune(&hub.url);
    hub.stop();
    let after = std::fs::read(&file).unwrap();
    assert_eq!(after.len(), before.len());
    assert!(zeros(&after) >= zeros(&before) + 200, "one record of 256 values says nothing now");
    let hub = HubProcess::start(data.path(), &[]);
    assert_eq!(
        attune(&hub.url).iter().map(|one| &one.0).collect::<Vec<_>>(),
        after_purge.iter().map(|one| &one.0).collect::<Vec<_>>()
    );
    hub.stop();
    assert_eq!(
        std::fs::read(&file).unwrap().len(),
        before.len(),
        "the others were read from it, not made again"
    );
}
