//! Who records is not kept waiting by who reads, however long that takes.

use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::{Field, Hub};
use crate::config::Config;
use crate::log::{Log, MemoryLog};
use crate::protocol::Envelope;

const PATIENCE: Duration = Duration::from_secs(20);

async fn ask(field: &Field, id: &str, operation: &str, payload: Value) -> Value {
    let envelope = json!({
        "protocol": "akashik", "version": "0.1.0", "id": id, "operation": operation, "agent_id": "ada",
        "session_id": null, "epoch": 0, "payload": payload,
    });
    let message = field.read(&Envelope::parse(&envelope.to_string()).expect("an envelope"));
    let answered = async { field.submit(message, None).await.await };
    let answer = timeout(PATIENCE, answered).await.expect("it is answered while others read");
    serde_json::from_str(answer.outcome.expect("it is taken").get()).expect("JSON")
}

async fn record(field: &Field, id: &str, content: &str) -> Value {
    let payload = json!({
        "type": "finding", "content": content, "intent": { "purpose": "Plan the year" },
        "confidence": { "score": 0.9, "reason": "read" },
    });
    ask(field, id, "RECORD", payload).await
}

/// Every thread of reads is busy, one holds the index, and the indexer waits for that: what is recorded is compared
/// with all there is nevertheless, also with what the index does not have yet.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_recorded_is_compared_while_reads_hold_all_there_is() {
    let logs: Vec<Box<dyn Log>> = vec![Box::new(MemoryLog::new())];
    let config = Config { level: 3, meaning: true, detection_budget_ms: 3_600_000, ..Config::default() };
    let hub = Hub::start_on(config, logs).await.expect("the hub starts");
    let field = hub.field(None).expect("there is a Field");
    ask(field, "join", "REGISTER", json!({ "id": "ada", "role": "analyst" })).await;
    record(field, "old", "The market for heat pumps grows by 23% a year.").await;
    for at in 0..60 {
        record(field, &format!("{at}"), &format!("The school of town {at} has a new roof.")).await;
    }
    field.index().catch_up(field.view().world());

    let pool = field.reads().pool();
    let done = Arc::new(Barrier::new(pool.current_num_threads() + 1));
    for _ in 0..pool.current_num_threads() {
        let done = Arc::clone(&done);
        pool.spawn(move || {
            done.wait();
        });
    }
    let (holds, held) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let index = Arc::clone(field.index());
    let reading = std::thread::spawn(move || {
        let read = index.as_it_is(|_| {
            holds.send(()).expect("the test waits");
            let _ = released.recv();
        });
        assert!(read.is_some(), "nobody waits yet");
    });
    held.recv().expect("the index is read");

    record(field, "late", "The office in Lyon employs 40 people.").await;
    while !field.index().is_awaited() {
        tokio::task::yield_now().await;
    }
    for (id, new) in [
        ("new", "The market for heat pumps grows by 14% a year."),
        ("newer", "The office in Lyon employs 55 people."),
    ] {
        let found = record(field, id, new).await;
        assert_eq!(found["conflicts_detected"].as_array().map(Vec::len), Some(1), "{found}");
        assert_eq!(found.get("conflict_detection"), None, "{found}");
    }
    drop(release);
    reading.join().expect("it read");
    done.wait();
    hub.stop().await;
}
