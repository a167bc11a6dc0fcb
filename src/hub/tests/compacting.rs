//! What a COMPACT holds: of memory, once what it archived has left the state; and while it waits for a language model outside,
//! its turn and nothing else.

use std::time::Duration;

use futures::FutureExt;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::stage::{PATIENCE, Stage, with_relations};
use crate::config::{Config, SummarySettings};
use crate::protocol::ErrorCode;

/// A Field with one unit, and a language model that takes requests and never answers.
async fn beside_a_silent_model() -> (Stage, TcpListener) {
    let model = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", model.local_addr().expect("an address"));
    let (timeout_ms, total_ms) = (600_000, 600_000);
    let summary =
        SummarySettings { url, model: "m".to_owned(), key: None, ca_file: None, timeout_ms, total_ms };
    let stage = Stage::with(Config { summary: Some(summary), ..Config::default() }).await;
    stage.line(1, &["ada"]).await.record("ada", "x", json!([])).await;
    (stage, model)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_model_takes_no_place_among_reads_or_writes() {
    let (stage, model) = beside_a_silent_model().await;
    let mut line = stage.line(2, &[]).await;
    let pending = line.submit("ada", "COMPACT", &json!({ "strategy": "summarize" })).await;
    let _request = timeout(PATIENCE, model.accept()).await.expect("it is asked").expect("a connection");
    let field = stage.hub.field(None).expect("there is a Field");
    assert_eq!((field.reads().open(), field.writes().count()), (0, 0));
    timeout(PATIENCE, stage.hub.stop()).await.expect("the end waits for no model");
    let answer = timeout(PATIENCE, pending).await.expect("it is answered");
    answer.outcome.expect_err("it was not done");
}

/// What a model is told has left the house: it is told nothing for what cannot be kept.
#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_no_model_is_asked() {
    let (stage, model) = beside_a_silent_model().await;
    let mut line = stage.line(2, &[]).await;
    stage.faults.set_full(true);
    for (operation, payload) in
        [("RECORD", with_relations("y", json!([]))), ("COMPACT", json!({ "strategy": "summarize" }))]
    {
        let refused = line.call("ada", operation, payload).await.outcome.expect_err("no room");
        assert_eq!(refused.code, ErrorCode::StorageFull);
    }
    assert!(model.accept().now_or_never().is_none(), "nobody came");
    stage.hub.stop().await;
}

/// More than leave memory between two turns of the actor.
const ARCHIVED: usize = 300;

/// The last texts leave the state while another operation is on its way to the disk, after which nothing comes.
#[tokio::test(flavor = "multi_thread")]
async fn texts_leave_the_published_state_though_a_batch_was_under_way() {
    let stage = Stage::new().await;
    let field = stage.hub.field(None).expect("there is a Field");
    let mut line = stage.line(1, &["ada"]).await;
    for at in 0..ARCHIVED {
        line.record("ada", &format!("u{at}"), json!([])).await;
    }
    let before = stage.faults.appends();
    stage.faults.hang_append(1);
    stage.faults.hang_append(2);
    let appended = async |nth: u64| {
        let reached = async {
            while stage.faults.appends() < before + nth {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, reached).await.expect("the append is reached");
    };
    let compact = line.submit("ada", "COMPACT", &json!({ "strategy": "archive" })).await;
    appended(1).await;
    // Decided while the COMPACT is on its way, so that it is sent as soon as that is durable.
    let record = line.submit("ada", "RECORD", &with_relations("new", json!([]))).await;
    assert!(field.is_ready().await, "the actor has taken everything before this");
    stage.faults.resume_first();
    appended(2).await;
    // Some texts leave at each turn of the actor, and each of these is one at least.
    for _ in 0..ARCHIVED {
        assert!(field.is_ready().await);
    }
    stage.faults.resume();
    for pending in [compact, record] {
        timeout(PATIENCE, pending).await.expect("answered").outcome.expect("it is done");
    }
    // A view that holds on to some is published again at each tick, for as long as nothing else comes.
    let let_go = async {
        while field.view().world().shelved().count() < ARCHIVED {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, let_go).await.expect("the published state holds none of them");
    stage.hub.stop().await;
}
