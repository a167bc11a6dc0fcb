//! What a COMPACT that waits for a language model outside holds meanwhile: its turn, and nothing else.

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::delivery::Stage;
use crate::config::{Config, SummarySettings};

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_model_takes_no_place_among_the_reads() {
    // It takes requests and never answers.
    let model = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", model.local_addr().expect("an address"));
    let (timeout_ms, total_ms) = (600_000, 600_000);
    let summary =
        SummarySettings { url, model: "m".to_owned(), key: None, ca_file: None, timeout_ms, total_ms };
    let stage = Stage::with(Config { summary: Some(summary), ..Config::default() }).await;
    let mut line = stage.line(1, &["ada"]).await;
    line.record("ada", "x", json!([])).await;
    let pending = line.submit("ada", "COMPACT", &json!({ "strategy": "summarize" })).await;
    let _request = timeout(PATIENCE, model.accept()).await.expect("it is asked").expect("a connection");
    assert_eq!(stage.hub.field(None).expect("there is a Field").reads().open(), 0);
    timeout(PATIENCE, stage.hub.stop()).await.expect("the end waits for no model");
    let answer = timeout(PATIENCE, pending).await.expect("it is answered");
    answer.outcome.expect_err("it was not done");
}
