//! The index follows the units, and vectors outlast the process.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Index, Meaning, SharedIndex, VectorKeeper};
use crate::config::Config;
use crate::hub::{Hub, shelf, vector_file};
use crate::log::{Log, LogError, MemoryLog, SqliteLog, open_log_reader};
use crate::protocol::Envelope;
use crate::relevance::{Vector, embedding};

#[path = "index_fault_tests.rs"]
mod faults;

const PATIENCE: Duration = Duration::from_secs(20);

fn config(home: &Path) -> Config {
    Config { data: home.to_owned(), meaning: true, level: 3, ..Config::default() }
}

async fn ask(hub: &Hub, agent: &str, id: &str, operation: &str, payload: Value) -> Value {
    let text = json!({
        "protocol": "akashik", "version": "0.1.0", "id": id, "operation": operation, "agent_id": agent,
        "session_id": null, "epoch": 0, "payload": payload,
    })
    .to_string();
    let field = hub.field(None).expect("a Field");
    let message = field.read(&Envelope::parse(&text).expect("an envelope"));
    let answer = field.submit(message, None).await.await.outcome.expect("an answer");
    serde_json::from_str(answer.get()).expect("JSON")
}

async fn record(hub: &Hub, from: usize, count: usize) {
    for at in from..from + count {
        let content = format!("Fact {at}: the kitchen of house {at} has a new oven and {} chairs", at * 7);
        let payload = json!({
            "type": "finding", "content": content, "intent": { "purpose": "Know the houses" },
            "confidence": { "score": 0.9, "reason": "seen" },
        });
        ask(hub, "writer", &format!("r-{at}"), "RECORD", payload).await;
    }
}

async fn register(hub: &Hub) {
    for agent in ["writer", "reader"] {
        ask(hub, agent, "join", "REGISTER", json!({ "id": agent, "role": "agent" })).await;
    }
}

/// Whether each unit is said to be close in meaning to a need, by id. (Their order changes as they age.)
async fn scores(hub: &Hub, id: &str) -> BTreeMap<String, bool> {
    let hint = "where can I bake bread";
    let scope = json!({ "role": "agent", "max_units": 1000, "include_archived": true });
    let payload = json!({ "scope": scope, "context_hint": hint });
    let answer = ask(hub, "reader", id, "ATTUNE", payload).await;
    let close = |unit: &Value| {
        let reason = unit["relevance_reason"].as_str().unwrap_or_default();
        (unit["memory_unit"]["id"].to_string(), reason.contains("close in meaning"))
    };
    let found: BTreeMap<_, _> = answer["record"].as_array().expect("units").iter().map(close).collect();
    found
}

/// What the file of this Field must say of itself.
fn belonging(home: &Path) -> vector_file::Belonging {
    let mut first = None;
    let reader = open_log_reader(&home.join("default")).expect("a log");
    let scanned = reader.scan(0, &mut |_, body| {
        first = Some(vector_file::identity(body));
        ControlFlow::Break(())
    });
    scanned.expect("a log");
    let log = first.expect("an entry");
    vector_file::Belonging { model: embedding::NAME.to_owned(), dimensions: embedding::DIMENSIONS, log }
}

fn path(home: &Path) -> PathBuf {
    home.join("default").join(vector_file::FILE_NAME)
}

/// The file's records, read as a start would read them.
fn kept(home: &Path) -> Option<Vec<vector_file::Record>> {
    let mut reader = vector_file::VectorReader::open(&path(home), &belonging(home))?;
    let mut all = Vec::new();
    while let Some(records) = reader.next_block() {
        all.extend(records);
    }
    Some(all)
}

/// Waits until the file holds so many records.
async fn kept_in_time(home: &Path, count: usize) -> Vec<vector_file::Record> {
    let began = Instant::now();
    loop {
        let all = kept(home).unwrap_or_default();
        if all.len() >= count || began.elapsed() > PATIENCE {
            return all;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_outlast_the_process_and_are_the_same() {
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(home.path())).await.unwrap();
    register(&hub).await;
    record(&hub, 0, 40).await;
    let before = scores(&hub, "a-1").await;
    assert!(before.values().any(|close| *close), "{before:?}");
    assert_eq!(before.len(), 40);
    hub.stop().await;
    drop(hub);
    let first = kept_in_time(home.path(), 40).await;
    assert_eq!(first.len(), 40);

    let hub = Hub::start(config(home.path())).await.unwrap();
    assert_eq!(scores(&hub, "a-2").await, before);
    record(&hub, 40, 5).await;
    scores(&hub, "a-3").await;
    hub.stop().await;
    drop(hub);
    // Taken from the file, not written again; the new ones behind them.
    let second = kept_in_time(home.path(), 45).await;
    assert_eq!((second.len(), &second[..40]), (45, &first[..]));
}

/// After a start there may be a million units to follow: a hub that ends does not wait for them, and who asks gets all.
#[tokio::test(flavor = "multi_thread")]
async fn the_indexer_ends_with_the_hub_and_who_asks_then_still_gets_all() {
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(home.path())).await.unwrap();
    register(&hub).await;
    for at in 0..12 {
        let content = format!("Fact {at}: {}", "the oven of a house is old. ".repeat(600));
        let payload = json!({ "type": "finding", "content": content, "intent": { "purpose": "Know the houses" },
            "confidence": { "score": 0.9, "reason": "seen" } });
        ask(&hub, "writer", &format!("r-{at}"), "RECORD", payload).await;
    }
    let view = hub.field(None).expect("a Field").view();
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let index = SharedIndex::new(Meaning::Nothing, pool, VectorKeeper::none());
    index.wind_down();
    index.follow_view(view.world(), false);
    assert_eq!(index.lacks(view.world()), 12);
    assert_eq!(index.with(view.world(), Index::len), 12);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_vector_is_used_and_not_made_again() {
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(home.path())).await.unwrap();
    register(&hub).await;
    record(&hub, 0, 3).await;
    scores(&hub, "a-1").await;
    hub.stop().await;
    drop(hub);
    // A file that says of every unit that it points nowhere: if it is believed, nothing is close in meaning.
    let records = kept_in_time(home.path(), 3).await;
    let nowhere = |record: &vector_file::Record| vector_file::Record {
        vector: Vector::nowhere(embedding::DIMENSIONS),
        ..record.clone()
    };
    let (jobs, thread) = vector_file::spawn_writer("test", path(home.path())).unwrap();
    jobs.send(vector_file::Job::Begin { belonging: belonging(home.path()), keep: 0 }).unwrap();
    jobs.send(vector_file::Job::Append(records.iter().map(nowhere).collect())).unwrap();
    drop(jobs);
    thread.join().unwrap();
    assert_eq!(kept(home.path()).unwrap().len(), 3);
    let hub = Hub::start(config(home.path())).await.unwrap();
    let found = scores(&hub, "a-2").await;
    assert!(found.values().all(|close| !close), "{found:?}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_file_is_made_anew() {
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(home.path())).await.unwrap();
    register(&hub).await;
    record(&hub, 0, 20).await;
    let before = scores(&hub, "a").await;
    hub.stop().await;
    drop(hub);
    let all = kept_in_time(home.path(), 20).await;
    let path = path(home.path());
    let whole = std::fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    let mut foreign = whole.clone();
    foreign[20] ^= 1;
    let longer = [&whole[..], &whole[whole.len() / 3..]].concat();
    let bad = [
        None,
        Some(vec![]),
        Some(whole[..whole.len() - 7].to_vec()),
        Some(damaged),
        Some(foreign),
        Some(longer),
    ];
    for (number, bytes) in bad.into_iter().enumerate() {
        match bytes {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let hub = Hub::start(config(home.path())).await.unwrap();
        assert_eq!(scores(&hub, &format!("b-{number}")).await, before, "{number}");
        hub.stop().await;
        drop(hub);
        let again = kept_in_time(home.path(), 20).await;
        let units = |records: &[vector_file::Record]| records.iter().map(|one| one.unit).collect::<Vec<_>>();
        assert_eq!(units(&again), units(&all), "{number}");
        assert_eq!(again, all, "{number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_copy_of_another_log_is_not_believed() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (home, from) in [(&one, 0), (&other, 500)] {
        let hub = Hub::start(config(home.path())).await.unwrap();
        register(&hub).await;
        record(&hub, from, 10).await;
        scores(&hub, "a").await;
        hub.stop().await;
        drop(hub);
        kept_in_time(home.path(), 10).await;
    }
    let own = kept(one.path()).unwrap();
    std::fs::copy(path(other.path()), path(one.path())).unwrap();
    let hub = Hub::start(config(one.path())).await.unwrap();
    scores(&hub, "b").await;
    hub.stop().await;
    drop(hub);
    assert_eq!(kept_in_time(one.path(), 10).await, own);
    // The log itself is none the worse.
    let log = SqliteLog::open(&one.path().join("default"), Default::default());
    assert!(log.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_that_were_kept_late_are_not_made_again() {
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(home.path())).await.unwrap();
    register(&hub).await;
    record(&hub, 0, 30).await;
    let before = scores(&hub, "a").await;
    hub.stop().await;
    drop(hub);
    let mut records = kept_in_time(home.path(), 30).await;
    // As where many units were entered at once: those of the middle came last, the first ones before them.
    records.rotate_left(10);
    let (jobs, thread) = vector_file::spawn_writer("test", path(home.path())).unwrap();
    jobs.send(vector_file::Job::Begin { belonging: belonging(home.path()), keep: 0 }).unwrap();
    jobs.send(vector_file::Job::Append(records.clone())).unwrap();
    drop(jobs);
    thread.join().unwrap();
    for id in ["b", "c"] {
        let hub = Hub::start(config(home.path())).await.unwrap();
        let began = Instant::now();
        while scores(&hub, &format!("{id}-{:?}", began.elapsed())).await != before {
            assert!(began.elapsed() < PATIENCE);
        }
        record(&hub, 0, 1).await;
        hub.stop().await;
        drop(hub);
        assert_eq!(kept(home.path()).unwrap(), records, "{id}");
    }
}

/// Waits until the texts of so many units have left the newest view, with nobody asking for anything.
async fn shelved_in_time(hub: &Hub, count: usize) {
    let began = Instant::now();
    while hub.field(None).unwrap().view().world().shelved().count() < count {
        assert!(began.elapsed() < PATIENCE, "texts of archived units leave memory");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_units_are_found_by_their_words_and_meaning_though_only_the_log_has_their_texts() {
    let home = tempfile::tempdir().unwrap();
    let config = || Config { snapshot_entries: 1, ..config(home.path()) };
    let hub = Hub::start(config()).await.unwrap();
    register(&hub).await;
    record(&hub, 0, 40).await;
    let before = scores(&hub, "a").await;
    assert!(before.len() == 40 && before.values().any(|close| *close), "{before:?}");
    ask(&hub, "reader", "put away", "COMPACT", json!({ "strategy": "archive" })).await;
    shelved_in_time(&hub, 40).await;
    assert_eq!(scores(&hub, "b").await, before);
    hub.stop().await;
    drop(hub);
    let mut records = kept_in_time(home.path(), 40).await;
    // Those of the middle came last, so that their texts are read for nothing but their vectors.
    records.rotate_left(10);
    let (jobs, thread) = vector_file::spawn_writer("test", path(home.path())).unwrap();
    jobs.send(vector_file::Job::Begin { belonging: belonging(home.path()), keep: 0 }).unwrap();
    jobs.send(vector_file::Job::Append(records.clone())).unwrap();
    drop(jobs);
    thread.join().unwrap();
    let hub = Hub::start(config()).await.unwrap();
    assert_eq!(hub.field(None).unwrap().view().world().shelved().count(), 40, "a start does not read them");
    let began = Instant::now();
    while scores(&hub, &format!("c-{:?}", began.elapsed())).await != before {
        assert!(began.elapsed() < PATIENCE);
    }
    // What holds only of one whose text is in memory again.
    let payload = json!({
        "type": "finding", "content": "House 7 has no oven.", "intent": { "purpose": "Know the houses" },
        "confidence": { "score": 0.9, "reason": "seen" },
        "relations": [{ "type": "contradicts", "target_id": "mem-3" }],
    });
    ask(&hub, "reader", "no oven", "RECORD", payload).await;
    assert_eq!(hub.field(None).unwrap().view().world().shelved().count(), 39);
    hub.stop().await;
    drop(hub);
    assert_eq!(kept(home.path()).unwrap()[..40], records, "no vector was made again");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_read_in_a_row_or_one_by_one_and_what_is_missing_is_said() {
    let home = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(home.path())).await.unwrap();
    register(&hub).await;
    record(&hub, 0, 60).await;
    ask(&hub, "reader", "put away", "COMPACT", json!({ "strategy": "archive" })).await;
    shelved_in_time(&hub, 60).await;
    let shelved = hub.field(None).unwrap().view().world().clone();
    let reader = open_log_reader(&home.path().join("default")).unwrap();
    for units in [(0..60).collect::<Vec<u32>>(), vec![59, 3, 30, 3], vec![0, 1, 2, 3, 5, 40, 59], vec![]] {
        let mut world = shelved.clone();
        shelf::give(reader.as_ref(), &mut world, &units).unwrap();
        for no in 0..60 {
            let whole = world.slot(no).whole().map(|unit| unit.content.contains(&format!("Fact {no}:")));
            assert_eq!(whole, units.contains(&no).then_some(true), "{no} of {units:?}");
        }
    }
    let empty = MemoryLog::new().reader().unwrap();
    for units in [&[7][..], &[7, 8, 9, 10]] {
        let mut world = shelved.clone();
        let given = shelf::give(empty.as_ref(), &mut world, units);
        assert!(matches!(given, Err(LogError::Corrupt { .. })), "{given:?}");
        assert_eq!(world.shelved().count(), 60);
    }
    hub.stop().await;
}
