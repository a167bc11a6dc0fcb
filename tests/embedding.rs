//! An embedding model outside of the hub: what it gives counts, and what it fails to give holds nothing up.

mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use akashik_hub::config::{Config, EmbeddingSettings};
use akashik_hub::hub::Hub;
use arc_swap::ArcSwap;
use serde_json::{Value, json};
use support::ask;
use support::outside::{self, Wire};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

/// How the fake model answers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Well,
    Slow,
    WrongDimension,
    NotANumber,
    ErrorPage,
    HalfAnAnswer,
    FewerThanAsked,
    HangsUp,
}

const DIMENSIONS: usize = 3;

/// Money, machines, the rest.
fn direction(text: &str) -> [f32; DIMENSIONS] {
    let text = text.to_lowercase();
    let has = |words: &[&str]| if words.iter().any(|word| text.contains(word)) { 1.0 } else { 0.0 };
    [has(&["invoice", "bill", "price"]), has(&["engine", "motor", "pump"]), 0.2]
}

struct Fake {
    url: String,
    mood: Arc<ArcSwap<Mood>>,
    /// Texts that it was given.
    texts: Arc<AtomicUsize>,
}

impl Fake {
    async fn start(mood: Mood) -> Self {
        Self::serve(mood, None).await
    }

    /// The same over TLS, with a certificate that nobody trusts but who is given its file.
    async fn start_secure(mood: Mood, home: &TempDir) -> (Self, PathBuf) {
        let (acceptor, ca_file) = outside::secured(home);
        (Self::serve(mood, Some(acceptor)).await, ca_file)
    }

    async fn serve(mood: Mood, acceptor: Option<TlsAcceptor>) -> Self {
        let mood = Arc::new(ArcSwap::from_pointee(mood));
        let texts = Arc::new(AtomicUsize::new(0));
        let (moods, counted) = (Arc::clone(&mood), Arc::clone(&texts));
        let answer = move |wire| answer(wire, **moods.load(), Arc::clone(&counted));
        let url = outside::serve(acceptor, answer).await;
        Self { url, mood, texts }
    }

    fn turn(&self, mood: Mood) {
        self.mood.store(Arc::new(mood));
    }
}

/// Reads one request and answers it.
async fn answer(mut tcp: Box<dyn Wire>, mood: Mood, texts: Arc<AtomicUsize>) {
    let Some((head, body)) = outside::request(&mut tcp).await else { return };
    assert!(head.starts_with("POST /v1/embeddings HTTP/1.1") && head.contains("Bearer sesame"), "{head}");
    let request: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(request["model"], "fake-model");
    let inputs = request["input"].as_array().unwrap();
    texts.fetch_add(inputs.len(), Ordering::SeqCst);
    let embed = |(index, text): (usize, &Value)| {
        let direction = direction(text.as_str().unwrap());
        let values = match mood {
            Mood::WrongDimension => direction[..2].to_vec(),
            _ => direction.to_vec(),
        };
        json!({ "object": "embedding", "index": index, "embedding": values })
    };
    let mut data: Vec<Value> = inputs.iter().enumerate().map(embed).collect();
    if mood == Mood::FewerThanAsked {
        data.pop();
    }
    let mut body = json!({ "object": "list", "model": "fake-model", "data": data }).to_string();
    let mut status = "200 OK";
    match mood {
        Mood::Slow => tokio::time::sleep(Duration::from_secs(30)).await,
        Mood::NotANumber => body = body.replace("0.2", "NaN"),
        Mood::ErrorPage => (status, body) = ("500 Internal Server Error", "<html>oh no</html>".to_owned()),
        Mood::HangsUp => return,
        _ => {}
    }
    let sent = if mood == Mood::HalfAnAnswer { body.len() / 2 } else { body.len() };
    outside::answer(&mut tcp, status, &body, sent).await;
}

fn config(home: &TempDir, url: &str) -> Config {
    Config {
        data: home.path().to_owned(),
        embedding: Some(EmbeddingSettings {
            url: url.to_owned(),
            model: "fake-model".to_owned(),
            dimensions: Some(DIMENSIONS),
            key: Some("sesame".to_owned()),
            ca_file: None,
            timeout_ms: 400,
        }),
        ..Config::default()
    }
}

async fn join(hub: &Hub) -> Value {
    ask(hub, "reader", "join", "REGISTER", json!({ "id": "reader", "role": "planner" })).await;
    ask(hub, "writer", "join", "REGISTER", json!({ "id": "writer", "role": "clerk" })).await
}

fn unit(content: &str) -> Value {
    json!({
        "type": "finding", "content": content, "intent": { "purpose": "Keep" },
        "confidence": { "score": 0.9, "reason": "seen" },
    })
}

async fn record(hub: &Hub, id: &str, content: &str) -> Value {
    ask(hub, "writer", id, "RECORD", unit(content)).await
}

async fn attune(hub: &Hub, id: &str, hint: &str) -> Value {
    let payload = json!({ "scope": { "role": "planner", "max_units": 10 }, "context_hint": hint });
    ask(hub, "reader", id, "ATTUNE", payload).await
}

fn status(hub: &Hub, unit: &Value) -> String {
    let shown =
        hub.field(None).unwrap().view().unit(unit.as_str().unwrap(), None).expect("a log").expect("a unit");
    shown["status"].as_str().unwrap().to_owned()
}

async fn turns_active(hub: &Hub, unit: &Value) {
    support::eventually("the unit's turn to active", || status(hub, unit) == "active").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_outside_says_what_is_close() {
    let fake = Fake::start(Mood::Well).await;
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&home, &fake.url)).await.unwrap();
    let joined = join(&hub).await;
    let told = json!({ "name": "fake-model", "dimensions": DIMENSIONS });
    assert_eq!(joined["field_capabilities"]["embedding"], told);
    for (id, content) in [("1", "The motor is loud"), ("2", "A bill came in"), ("3", "Lunch is at noon")] {
        let recorded = record(&hub, id, content).await;
        assert!(recorded.get("warning").is_none(), "{recorded}");
        assert_eq!(status(&hub, &recorded["memory_unit_id"]), "active");
    }
    let found = attune(&hub, "a", "which pump").await;
    assert_eq!(found["record"][0]["memory_unit"]["content"], "The motor is loud", "{found}");
    assert!(found["record"][0]["relevance_reason"].as_str().unwrap().contains("close in meaning"), "{found}");
    assert!(found.get("warning").is_none());
    // A repeat is answered as before, and the model is not asked again.
    let before = fake.texts.load(Ordering::SeqCst);
    let again = record(&hub, "2", "A bill came in").await;
    assert_eq!(fake.texts.load(Ordering::SeqCst), before);
    let units = attune(&hub, "b", "price").await;
    assert_eq!(units["context_budget"]["units_available"], 3);
    assert_eq!(units["record"][0]["memory_unit"]["id"], again["memory_unit_id"]);
    hub.stop().await;
    drop(hub);
    // After a restart nothing is asked again but the need.
    let before = fake.texts.load(Ordering::SeqCst);
    let hub = Hub::start(config(&home, &fake.url)).await.unwrap();
    let found = attune(&hub, "c", "which pump").await;
    assert_eq!(found["record"][0]["memory_unit"]["content"], "The motor is loud", "{found}");
    assert!(found["record"][0]["relevance_reason"].as_str().unwrap().contains("close in meaning"), "{found}");
    assert_eq!(fake.texts.load(Ordering::SeqCst), before + 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_behind_tls_is_asked_if_its_certificate_is_trusted() {
    let home = tempfile::tempdir().unwrap();
    let (fake, ca_file) = Fake::start_secure(Mood::Well, &home).await;
    let hub = Hub::start(config(&home, &fake.url)).await.unwrap();
    join(&hub).await;
    let stranger = record(&hub, "1", "The motor is loud").await;
    assert_eq!(stranger["warning"]["code"], "ENRICHMENT_FAILED", "{stranger}");
    let why = stranger["warning"]["message"].as_str().unwrap();
    assert!(why.contains("certificate"), "{why}");
    assert_eq!(fake.texts.load(Ordering::SeqCst), 0);
    hub.stop().await;
    drop(hub);
    let mut trusting = config(&home, &fake.url);
    trusting.embedding.as_mut().unwrap().ca_file = Some(ca_file);
    let hub = Hub::start(trusting).await.unwrap();
    let trusted = record(&hub, "2", "A bill came in").await;
    assert!(trusted.get("warning").is_none(), "{trusted}");
    // What could not be embedded before is now.
    turns_active(&hub, &stranger["memory_unit_id"]).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_the_unit_is_kept_and_turns_active_later() {
    let moods = [
        Mood::Slow,
        Mood::WrongDimension,
        Mood::NotANumber,
        Mood::ErrorPage,
        Mood::HalfAnAnswer,
        Mood::FewerThanAsked,
        Mood::HangsUp,
    ];
    let fake = Fake::start(Mood::Well).await;
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&home, &fake.url)).await.unwrap();
    join(&hub).await;
    for (number, mood) in moods.into_iter().enumerate() {
        fake.turn(mood);
        let recorded = record(&hub, &format!("r-{number}"), &format!("Pump {number} leaks")).await;
        assert_eq!(recorded["status"], "accepted");
        assert_eq!(recorded["warning"]["code"], "ENRICHMENT_FAILED", "{mood:?}: {recorded}");
        assert_eq!(status(&hub, &recorded["memory_unit_id"]), "pending_enrichment", "{mood:?}");
        // It is found by its words all the same, and whoever asks is told that only words counted.
        let found = attune(&hub, &format!("a-{number}"), &format!("pump {number}")).await;
        assert_eq!(found["record"][0]["memory_unit"]["id"], recorded["memory_unit_id"], "{mood:?}");
        assert_eq!(found["record"][0]["memory_unit"]["status"], "pending_enrichment");
        assert_eq!(found["warning"]["code"], "ENRICHMENT_FAILED", "{mood:?}");
        // The first answer is repeated as it was given.
        let again = record(&hub, &format!("r-{number}"), &format!("Pump {number} leaks")).await;
        assert_eq!(again, recorded);
        fake.turn(Mood::Well);
        turns_active(&hub, &recorded["memory_unit_id"]).await;
    }
    let found = attune(&hub, "z", "a motor").await;
    let close = |unit: &&Value| unit["relevance_reason"].as_str().unwrap().contains("close in meaning");
    assert_eq!(found["record"].as_array().unwrap().iter().filter(close).count(), moods.len(), "{found}");
    // The log tells of it.
    let lines = hub.field(None).unwrap().log_lines(Default::default(), 1_000).await.unwrap();
    let told = |event: &str| {
        lines.iter().filter(|line| line.contains(&format!("\"event_type\":\"{event}\""))).count()
    };
    assert_eq!((told("ENRICHMENT_PENDING"), told("ENRICHED")), (moods.len(), moods.len()));
    let id = &found["record"][0]["memory_unit"]["id"];
    let replay = json!({ "target_type": "memory_unit", "target_id": id, "depth": "full_trace" });
    let replayed = ask(&hub, "reader", "replay", "REPLAY", replay).await;
    let types: Vec<_> =
        replayed["timeline"].as_array().unwrap().iter().map(|event| &event["event_type"]).collect();
    assert_eq!(types, ["RECORD", "ENRICHMENT_PENDING", "ENRICHED"]);
    assert_eq!(replayed["timeline"][2]["agent_id"], "system");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_unit_is_like_an_active_one() {
    let fake = Fake::start(Mood::ErrorPage).await;
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&home, &fake.url)).await.unwrap();
    join(&hub).await;
    let recorded = |id: &'static str, content: &'static str| record(&hub, id, content);
    let (replaced, disputed, taken_back) = (
        recorded("1", "The pump leaks").await,
        recorded("2", "The price is 9").await,
        recorded("3", "Noon").await,
    );
    let mut newer = unit("The pump is dry");
    newer["relations"] = json!([{ "type": "supersedes", "target_id": replaced["memory_unit_id"] }]);
    ask(&hub, "writer", "4", "RECORD", newer).await;
    let mut against = unit("The price is 7");
    against["relations"] = json!([{ "type": "contradicts", "target_id": disputed["memory_unit_id"] }]);
    let against = ask(&hub, "writer", "5", "RECORD", against).await;
    assert_eq!(against["conflicts_detected"].as_array().unwrap().len(), 1);
    let retract = json!({ "memory_unit_id": taken_back["memory_unit_id"], "reason": "wrong" });
    ask(&hub, "writer", "6", "RETRACT", retract).await;
    let mut draft = unit("A bill is due");
    draft["mode"] = json!("draft");
    let drafted = ask(&hub, "writer", "7", "RECORD", draft).await;
    assert!(drafted.get("warning").is_none(), "a draft is not embedded: {drafted}");
    let commit = json!({ "memory_unit_id": drafted["memory_unit_id"] });
    let committed = ask(&hub, "writer", "8", "COMMIT", commit).await;
    assert_eq!(committed["warning"]["code"], "ENRICHMENT_FAILED", "{committed}");
    let is = |unit: &Value| status(&hub, &unit["memory_unit_id"]);
    assert_eq!([is(&replaced), is(&taken_back), is(&disputed)], ["superseded", "retracted", "contested"]);
    assert_eq!([is(&against), is(&drafted)], ["contested", "pending_enrichment"]);
    // The conflict over, what still waits is pending again.
    let retract = json!({ "memory_unit_id": against["memory_unit_id"], "reason": "wrong" });
    ask(&hub, "writer", "9", "RETRACT", retract).await;
    assert_eq!(is(&disputed), "pending_enrichment");
    fake.turn(Mood::Well);
    turns_active(&hub, &disputed["memory_unit_id"]).await;
    turns_active(&hub, &drafted["memory_unit_id"]).await;
    assert_eq!([is(&replaced), is(&taken_back), is(&against)], ["superseded", "retracted", "retracted"]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_synthesis_is_embedded_before_its_merge_or_behind() {
    let fake = Fake::start(Mood::Well).await;
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&home, &fake.url)).await.unwrap();
    join(&hub).await;
    for (at, mood) in [Mood::Well, Mood::ErrorPage].into_iter().enumerate() {
        fake.turn(Mood::Well);
        let one = record(&hub, &format!("one-{at}"), "Lunch is at noon").await;
        let mut against = unit("Lunch is at one");
        against["relations"] = json!([{ "type": "contradicts", "target_id": one["memory_unit_id"] }]);
        let against = ask(&hub, "writer", &format!("two-{at}"), "RECORD", against).await;
        fake.turn(mood);
        let texts = fake.texts.load(Ordering::SeqCst);
        let synthesis = format!("The {} is loud at lunch", ["motor", "pump"][at]);
        let merge = json!({
            "conflict_id": against["conflicts_detected"][0], "strategy": "synthesis",
            "resolution": { "rationale": "Both are right", "synthesis": synthesis },
        });
        let merged = ask(&hub, "reader", &format!("merge-{at}"), "MERGE", merge.clone()).await;
        assert_eq!(merged["status"], "resolved", "{merged}");
        let made = &merged["side_effects"]["new_unit_id"];
        if mood == Mood::Well {
            assert!(merged.get("warning").is_none(), "{merged}");
            assert_eq!(status(&hub, made), "active");
            assert_eq!(fake.texts.load(Ordering::SeqCst), texts + 1);
        } else {
            assert_eq!(merged["warning"]["code"], "ENRICHMENT_FAILED", "{merged}");
            assert_eq!(status(&hub, made), "pending_enrichment");
            fake.turn(Mood::Well);
            turns_active(&hub, made).await;
        }
        // A repeat asks nothing and says the same.
        let texts = fake.texts.load(Ordering::SeqCst);
        assert_eq!(ask(&hub, "reader", &format!("merge-{at}"), "MERGE", merge).await, merged);
        assert_eq!(fake.texts.load(Ordering::SeqCst), texts);
        let found = ask(
            &hub,
            "writer",
            &format!("a-{at}"),
            "ATTUNE",
            json!({ "scope": { "role": "planner", "max_units": 1 }, "context_hint": "which engine" }),
        )
        .await;
        assert_eq!(found["record"][0]["memory_unit"]["id"], *made, "{found}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_trying() {
    let fake = Fake::start(Mood::HangsUp).await;
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&home, &fake.url)).await.unwrap();
    join(&hub).await;
    let recorded = record(&hub, "1", "The engine is new").await;
    hub.stop().await;
    drop(hub);
    let hub = Hub::start(config(&home, &fake.url)).await.unwrap();
    assert_eq!(status(&hub, &recorded["memory_unit_id"]), "pending_enrichment");
    fake.turn(Mood::Well);
    turns_active(&hub, &recorded["memory_unit_id"]).await;
    hub.stop().await;
    drop(hub);
    let hub = Hub::start(config(&home, &fake.url)).await.unwrap();
    assert_eq!(status(&hub, &recorded["memory_unit_id"]), "active");
    // Another model begins anew, and what it says counts; the built-in one too.
    hub.stop().await;
    drop(hub);
    let hub = Hub::start(Config { embedding: None, ..config(&home, &fake.url) }).await.unwrap();
    let found = attune(&hub, "a", "which motor").await;
    assert!(found["record"][0]["relevance_reason"].as_str().unwrap().contains("close in meaning"), "{found}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_there_is_told_at_the_start_unless_its_dimensions_are() {
    let home = tempfile::tempdir().unwrap();
    let mut asked = config(&home, "http://127.0.0.1:9");
    if let Some(embedding) = &mut asked.embedding {
        embedding.dimensions = None;
    }
    let error = Hub::start(asked.clone()).await.expect_err("nobody answers").to_string();
    assert!(error.contains("--embedding-dimensions"), "{error}");
    // Where meaning does not count, nobody is asked.
    for quiet in [Config { level: 1, ..asked.clone() }, Config { meaning: false, ..asked }] {
        let hub = Hub::start(quiet).await.expect("a hub");
        let joined = join(&hub).await;
        assert!(joined["field_capabilities"]["embedding"].is_null());
        assert!(record(&hub, "1", "The engine is new").await.get("warning").is_none());
        hub.stop().await;
        drop(hub);
        std::fs::remove_dir_all(home.path().join("default")).unwrap();
    }
    let fake = Fake::start(Mood::Well).await;
    let mut told = config(&home, &fake.url);
    if let Some(embedding) = &mut told.embedding {
        embedding.dimensions = None;
    }
    let hub = Hub::start(told).await.expect("a hub");
    assert_eq!(join(&hub).await["field_capabilities"]["embedding"]["dimensions"], json!(DIMENSIONS));
    hub.stop().await;
}
