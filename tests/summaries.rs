//! A language model outside of the hub that writes the syntheses of COMPACT: what it writes counts, what it is given is
//! what the synthesis covers, and whatever it fails to write quotes its originals.

mod support;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use akashik_hub::config::{Config, SummarySettings};
use akashik_hub::hub::Hub;
use akashik_hub::protocol::ErrorCode;
use serde_json::{Value, json};
use support::outside::{self, Wire};
use support::{ask, outcome, soon};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// How the fake model answers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Well,
    Slow,
    ErrorPage,
    HalfAnAnswer,
    HangsUp,
    Empty,
    Unfinished,
    TooLong,
    Huge,
    WrongJson,
    TellsTheKey,
}

struct Fake {
    url: String,
    mood: Arc<Mutex<Mood>>,
    /// The notes that it was given, a list for each request.
    given: Arc<Mutex<Vec<Value>>>,
    /// Each answer takes one from here.
    gate: Arc<Semaphore>,
}

impl Fake {
    async fn start(mood: Mood) -> Self {
        Self::serve(mood, None).await
    }

    async fn start_secure(home: &TempDir) -> (Self, PathBuf) {
        let (acceptor, ca_file) = outside::secured(home);
        (Self::serve(Mood::Well, Some(acceptor)).await, ca_file)
    }

    async fn serve(mood: Mood, acceptor: Option<TlsAcceptor>) -> Self {
        let mood = Arc::new(Mutex::new(mood));
        let given: Arc<Mutex<Vec<Value>>> = Arc::default();
        let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let parts = (Arc::clone(&mood), Arc::clone(&given), Arc::clone(&gate));
        let answer = move |wire| {
            let (moods, given, gate) = parts.clone();
            let mood = *moods.lock().unwrap();
            async move { answer(wire, mood, &given, &gate).await }
        };
        let url = outside::serve(acceptor, answer).await;
        Self { url, mood, given, gate }
    }

    fn turn(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn asked(&self) -> usize {
        self.given.lock().unwrap().len()
    }

    /// What the notes of all requests say, sorted.
    fn said(&self) -> Vec<String> {
        let given = self.given.lock().unwrap();
        let notes = given.iter().flat_map(|notes| notes.as_array().unwrap());
        let mut said: Vec<_> = notes.map(|note| note["says"].as_str().unwrap().to_owned()).collect();
        said.sort();
        said
    }
}

/// Reads one request and answers it.
async fn answer(mut tcp: Box<dyn Wire>, mood: Mood, given: &Mutex<Vec<Value>>, gate: &Semaphore) {
    let Some((head, body)) = outside::request(&mut tcp).await else { return };
    assert!(
        head.starts_with("POST /v1/chat/completions HTTP/1.1") && head.contains("Bearer sesame"),
        "{head}"
    );
    let request: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (&request["model"], &request["messages"][0]["role"]),
        (&json!("fake-model"), &json!("system"))
    );
    let notes: Value = serde_json::from_str(request["messages"][1]["content"].as_str().unwrap()).unwrap();
    let text = match mood {
        Mood::Empty => "  ".to_owned(),
        Mood::TooLong => "long ".repeat(400),
        Mood::Huge => "huge ".repeat(200_000),
        Mood::TellsTheKey => "I was asked with Bearer sesame.".to_owned(),
        _ => format!("In short: {} notes.", notes.as_array().unwrap().len()),
    };
    given.lock().unwrap().push(notes);
    gate.acquire().await.unwrap().forget();
    let finish = if mood == Mood::Unfinished { "length" } else { "stop" };
    let mut body = json!({ "object": "chat.completion", "choices": [{ "index": 0, "finish_reason": finish,
        "message": { "role": "assistant", "content": text } }] })
    .to_string();
    let mut status = "200 OK";
    match mood {
        Mood::Slow => std::future::pending().await,
        Mood::ErrorPage => (status, body) = ("503 Service Unavailable", "<html>oh no</html>".to_owned()),
        Mood::WrongJson => body = json!({ "answer": text }).to_string(),
        Mood::HangsUp => return,
        _ => {}
    }
    let sent = if mood == Mood::HalfAnAnswer { body.len() / 2 } else { body.len() };
    outside::answer(&mut tcp, status, &body, sent).await;
}

fn settings(url: &str) -> SummarySettings {
    SummarySettings {
        url: url.to_owned(),
        model: "fake-model".to_owned(),
        key: Some("sesame".to_owned()),
        ca_file: None,
        timeout_ms: 10_000,
        total_ms: 12_000,
    }
}

fn config(home: &TempDir, summary: SummarySettings) -> Config {
    Config { data: home.path().to_owned(), summary: Some(summary), ..Config::default() }
}

async fn join(hub: &Hub) {
    ask(hub, "ann", "join", "REGISTER", json!({ "id": "ann", "role": "clerk" })).await;
}

/// A hub that an agent has joined, and a model that answers nobody before its gate opens.
async fn beside_a_model_that_waits() -> (Fake, TempDir, Arc<Hub>) {
    let fake = Fake::start(Mood::Well).await;
    fake.gate.forget_permits(Semaphore::MAX_PERMITS);
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&home, settings(&fake.url))).await.unwrap();
    join(&hub).await;
    (fake, home, hub)
}

/// Records a unit of a task; its id.
async fn record(hub: &Hub, task: &str, content: &str, more: Value) -> String {
    let mut payload = json!({
        "type": "finding", "content": content, "intent": { "purpose": "Keep", "task_id": task },
        "confidence": { "score": 0.9, "reason": "seen" },
    });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let recorded = ask(hub, "ann", &format!("record {task} {content}"), "RECORD", payload).await;
    recorded["memory_unit_id"].as_str().unwrap().to_owned()
}

async fn two(hub: &Hub, task: &str) -> [String; 2] {
    [
        record(hub, task, &format!("The pump of {task} leaks."), json!({})).await,
        record(hub, task, &format!("The pump of {task} was mended on 3 May."), json!({})).await,
    ]
}

async fn summarize(hub: &Hub, id: &str) -> Value {
    ask(hub, "ann", id, "COMPACT", json!({ "strategy": "summarize" })).await
}

/// The syntheses of a Field, in the order of their ids, which name their epochs.
async fn syntheses(hub: &Hub, id: &str) -> Vec<Value> {
    let scope = json!({ "role": "clerk", "max_units": 100, "types": ["synthesis"] });
    let answer = ask(hub, "ann", &format!("attune {id}"), "ATTUNE", json!({ "scope": scope })).await;
    let mut made: Vec<Value> =
        answer["record"].as_array().unwrap().iter().map(|one| one["memory_unit"].clone()).collect();
    made.sort_by_key(|unit| {
        let id = unit["id"].as_str().unwrap().trim_start_matches("mem-");
        let (epoch, number) = id.split_once('.').unwrap_or((id, "0"));
        (epoch.parse::<u64>().unwrap(), number.parse::<u64>().unwrap())
    });
    made
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_outside_writes_what_the_synthesis_covers_and_sees_nothing_else() {
    let fake = Fake::start(Mood::Well).await;
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&home, settings(&fake.url))).await.unwrap();
    join(&hub).await;
    let [leaks, _] = two(&hub, "a").await;
    record(&hub, "a", "A secret draft.", json!({ "mode": "draft" })).await;
    let wrong = record(&hub, "a", "The pump is blue.", json!({})).await;
    let taken_back = json!({ "memory_unit_id": wrong, "reason": "It is not." });
    ask(&hub, "ann", "retract", "RETRACT", taken_back).await;
    record(&hub, "old", "Something archived.", json!({ "type": "question" })).await;
    let archive = json!({ "strategy": "archive", "filter": { "types": ["question"] } });
    ask(&hub, "ann", "archive", "COMPACT", archive).await;
    let preview = json!({ "strategy": "summarize", "dry_run": true });
    assert_eq!(ask(&hub, "ann", "preview", "COMPACT", preview).await["synthesis_units_created"], 1);
    assert_eq!(fake.asked(), 0, "a preview asks nobody");

    let done = summarize(&hub, "compact").await;
    assert_eq!((&done["units_affected"], &done["synthesis_units_created"]), (&json!(3), &json!(1)));
    assert!(done.get("warning").is_none(), "{done}");
    assert_eq!(fake.said(), ["The pump of a leaks.", "The pump of a was mended on 3 May."]);
    let by: Vec<_> = fake.given.lock().unwrap()[0].as_array().unwrap().clone();
    assert!(by.iter().all(|note| note["by"] == "ann" && note.as_object().unwrap().len() == 2), "{by:?}");
    let made = syntheses(&hub, "1").await;
    assert_eq!(made.len(), 1);
    assert_eq!(made[0]["content"], "In short: 2 notes.");
    assert_eq!(made[0]["intent"]["purpose"], "Summary of 3 units by ann: Keep; written by fake-model");
    // A repeat is answered from the log.
    assert_eq!(summarize(&hub, "compact").await, done);
    assert_eq!(fake.asked(), 1);
    hub.stop().await;
    drop(hub);
    // So is the synthesis after a restart, with nobody to ask.
    let hub = Hub::start(config(&home, settings("http://127.0.0.1:9"))).await.unwrap();
    assert_eq!(syntheses(&hub, "2").await, made);
    let replay = json!({ "target_type": "memory_unit", "target_id": leaks, "depth": "full_trace" });
    assert_eq!(ask(&hub, "ann", "replay", "REPLAY", replay).await["total_events"], 2);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_the_synthesis_quotes_its_originals_and_the_answer_says_so() {
    let fake = Fake::start(Mood::Well).await;
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&home, SummarySettings { timeout_ms: 400, ..settings(&fake.url) })).await;
    let hub = hub.unwrap();
    join(&hub).await;
    for (number, (mood, why)) in [
        (Mood::Slow, "within 400ms"),
        (Mood::ErrorPage, "answered 503"),
        (Mood::HalfAnAnswer, "broke off"),
        (Mood::HangsUp, "cannot be asked"),
        (Mood::Empty, "is empty"),
        (Mood::Unfinished, "was not finished"),
        (Mood::TooLong, "more than the 1200"),
        (Mood::Huge, "broke off"),
        (Mood::WrongJson, "no chat completion"),
        (Mood::TellsTheKey, "repeats the key"),
    ]
    .into_iter()
    .enumerate()
    {
        fake.turn(mood);
        two(&hub, &format!("t{number}")).await;
        let done = summarize(&hub, &format!("c-{number}")).await;
        assert_eq!((&done["units_affected"], &done["synthesis_units_created"]), (&json!(2), &json!(1)));
        let warning = &done["warning"];
        assert_eq!(warning["code"], "ENRICHMENT_FAILED", "{mood:?}: {done}");
        let said = warning["message"].as_str().unwrap();
        assert!(said.starts_with("1 of 1 syntheses") && said.contains(why), "{mood:?}: {said}");
        let made = syntheses(&hub, &number.to_string()).await;
        let last = made.last().unwrap();
        assert!(last["content"].as_str().unwrap().contains("was mended on 3 May."), "{last}");
        assert!(!last["intent"]["purpose"].as_str().unwrap().contains("written by"), "{last}");
        assert_eq!(made.len(), number + 1);
    }
    hub.stop().await;
    drop(hub);
    let hub = Hub::start(config(&home, settings("http://127.0.0.1:9"))).await.unwrap();
    two(&hub, "down").await;
    let done = summarize(&hub, "down").await;
    assert!(done["warning"]["message"].as_str().unwrap().contains("cannot be asked"), "{done}");
    hub.stop().await;
    drop(hub);
    let error =
        Hub::start(config(&home, settings("ftp://x"))).await.expect_err("no such address").to_string();
    assert!(error.contains("summary endpoint ftp://x") && error.contains("https://"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_again_and_again_is_let_be_and_all_together_have_their_time() {
    let fake = Fake::start(Mood::ErrorPage).await;
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&home, settings(&fake.url))).await.unwrap();
    join(&hub).await;
    for task in 0..12 {
        two(&hub, &format!("t{task}")).await;
    }
    let done = summarize(&hub, "failing").await;
    let said = done["warning"]["message"].as_str().unwrap();
    assert!(said.starts_with("12 of 12 syntheses"), "{said}");
    assert!((4..=7).contains(&fake.asked()), "four at a time until four have failed: {}", fake.asked());
    hub.stop().await;
    drop(hub);
    fake.turn(Mood::Slow);
    let hurried = SummarySettings { total_ms: 300, ..settings(&fake.url) };
    let hub = Hub::start(config(&home, hurried)).await.unwrap();
    two(&hub, "slow").await;
    let done = summarize(&hub, "slow").await;
    assert!(done["warning"]["message"].as_str().unwrap().contains("all of them within 300ms"), "{done}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_while_it_is_written_is_written_anew_and_nothing_else_is() {
    let (fake, _home, hub) = beside_a_model_that_waits().await;
    let [leaks, _] = two(&hub, "a").await;
    two(&hub, "b").await;
    let compacting = {
        let hub = Arc::clone(&hub);
        tokio::spawn(async move { summarize(&hub, "compact").await })
    };
    support::eventually("both requests", || fake.asked() == 2).await;
    // The Field goes on meanwhile.
    let taken_back = json!({ "memory_unit_id": leaks, "reason": "It does not." });
    ask(&hub, "ann", "retract", "RETRACT", taken_back).await;
    fake.gate.add_permits(100);
    let done = soon("the answer", compacting).await.unwrap();
    assert_eq!((&done["units_affected"], &done["synthesis_units_created"]), (&json!(4), &json!(2)));
    assert!(done.get("warning").is_none(), "{done}");
    assert_eq!(fake.asked(), 3, "once for b, twice for a");
    let made = syntheses(&hub, "4").await;
    let told: Vec<_> = made.iter().map(|unit| unit["content"].as_str().unwrap()).collect();
    assert_eq!(told, ["In short: 1 notes.", "In short: 2 notes."]);
    // Where the hub stops meanwhile, nothing is done and nobody is waited for.
    fake.gate.forget_permits(Semaphore::MAX_PERMITS);
    two(&hub, "c").await;
    let cut_short = {
        let hub = Arc::clone(&hub);
        tokio::spawn(async move {
            outcome(&hub, "ann", "late", "COMPACT", json!({ "strategy": "summarize" })).await
        })
    };
    support::eventually("the request", || fake.asked() == 4).await;
    soon("the end", hub.stop()).await;
    let refusal = soon("an answer", cut_short).await.unwrap().expect_err("it was not done");
    assert!(refusal.suggested_action.contains("under the same id"), "{refusal:?}");
}

/// Four requests are under way; what the others are about is taken back, superseded, archived and purged meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_before_its_turn_is_never_sent() {
    let (fake, _home, hub) = beside_a_model_that_waits().await;
    // A type for each task, so that a COMPACT can name one.
    let types = [
        "finding",
        "decision",
        "question",
        "observation",
        "assumption",
        "intention",
        "constraint",
        "correction",
    ];
    let mut units = Vec::new();
    for kind in types {
        let gone = record(&hub, kind, &format!("Secret of {kind}."), json!({ "type": kind })).await;
        record(&hub, kind, &format!("Something else of {kind}."), json!({ "type": "human_directive" })).await;
        units.push((kind, gone));
    }
    let compacting = {
        let hub = Arc::clone(&hub);
        tokio::spawn(async move { summarize(&hub, "compact").await })
    };
    support::eventually("four requests", || fake.asked() == 4).await;
    let sent = fake.said();
    let unsent = |kind: &str| !sent.contains(&format!("Secret of {kind}."));
    let left: Vec<_> = units.into_iter().filter(|(kind, _)| unsent(kind)).collect();
    let [(_, retracted), (_, superseded), (archived, _), (purged, _)] = &left[..] else {
        panic!("four are left")
    };
    let wrong = json!({ "memory_unit_id": retracted, "reason": "It is not." });
    ask(&hub, "ann", "retract", "RETRACT", wrong).await;
    let relations = json!({ "relations": [{ "type": "supersedes", "target_id": superseded }] });
    record(&hub, "new", "What is known now.", relations).await;
    for (strategy, kind) in [("archive", archived), ("purge", purged)] {
        let payload = json!({ "strategy": strategy, "filter": { "types": [kind] } });
        assert_eq!(ask(&hub, "ann", strategy, "COMPACT", payload).await["units_affected"], 1);
    }
    fake.gate.add_permits(100);
    let done = soon("the answer", compacting).await.unwrap();
    assert!(done.get("warning").is_none(), "{done}");
    // What is left of them is planned, and written, anew, together with what came in between.
    assert_eq!(done["units_affected"], 15, "{done}");
    let said = fake.said();
    for (kind, _) in &left {
        assert!(said.contains(&format!("Something else of {kind}.")), "{kind}: {said:?}");
        assert!(!said.contains(&format!("Secret of {kind}.")), "{kind} was gone: {said:?}");
    }
    hub.stop().await;
}

/// One COMPACT at a time is written, in one span of time over all of its plans.
#[tokio::test(flavor = "multi_thread")]
async fn another_compact_is_told_when_to_come_again_and_others_go_on() {
    let (fake, _home, hub) = beside_a_model_that_waits().await;
    let [leaks, _] = two(&hub, "a").await;
    record(&hub, "b", "May it be painted?", json!({ "type": "question" })).await;
    let compacting = {
        let hub = Arc::clone(&hub);
        let payload = json!({ "strategy": "summarize", "filter": { "types": ["finding"] } });
        tokio::spawn(async move { ask(&hub, "ann", "first", "COMPACT", payload).await })
    };
    support::eventually("the request", || fake.asked() == 1).await;
    let second = || outcome(&hub, "ann", "second", "COMPACT", json!({ "strategy": "summarize" }));
    let left = async || {
        let refusal = second().await.expect_err("one at a time");
        assert_eq!(refusal.code, ErrorCode::Overloaded);
        refusal.details["retry_after_ms"].as_u64().unwrap()
    };
    // So that a span of its own for each plan would be seen to be longer.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = left().await;
    // Nothing that needs no model is held up, or refused.
    let none = json!({ "strategy": "summarize", "filter": { "types": ["decision"] } });
    assert_eq!(ask(&hub, "ann", "none", "COMPACT", none).await["units_affected"], 0);
    let archive = json!({ "strategy": "archive", "filter": { "status": ["superseded"] } });
    assert_eq!(ask(&hub, "ann", "archive", "COMPACT", archive).await["units_affected"], 0);
    // It is planned anew, and holds on to its turn.
    let taken_back = json!({ "memory_unit_id": leaks, "reason": "It does not." });
    ask(&hub, "ann", "retract", "RETRACT", taken_back).await;
    fake.gate.add_permits(1);
    support::eventually("the second request", || fake.asked() == 2).await;
    let after = left().await;
    assert!(after <= before, "{after} ms are left of {before}");
    fake.gate.add_permits(100);
    let done = soon("the answer", compacting).await.unwrap();
    assert_eq!((&done["units_affected"], done.get("warning")), (&json!(2), None));
    // The same message, once its turn has come.
    let again: Value = serde_json::from_str(second().await.expect("it is done").get()).unwrap();
    assert_eq!((&again["units_affected"], fake.asked()), (&json!(1), 3));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_behind_tls_writes_if_its_certificate_is_trusted() {
    let home = tempfile::tempdir().unwrap();
    let (fake, ca_file) = Fake::start_secure(&home).await;
    let hub = Hub::start(config(&home, settings(&fake.url))).await.unwrap();
    join(&hub).await;
    two(&hub, "a").await;
    let stranger = summarize(&hub, "1").await;
    assert!(stranger["warning"]["message"].as_str().unwrap().contains("certificate"), "{stranger}");
    hub.stop().await;
    drop(hub);
    let trusting = SummarySettings { ca_file: Some(ca_file), ..settings(&fake.url) };
    let hub = Hub::start(config(&home, trusting)).await.unwrap();
    two(&hub, "b").await;
    assert!(summarize(&hub, "2").await.get("warning").is_none());
    assert_eq!(syntheses(&hub, "5").await.last().unwrap()["content"], "In short: 2 notes.");
    hub.stop().await;
}
