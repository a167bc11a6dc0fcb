//! A scan of a Field whose log takes nothing at present.

use std::time::Duration;

use serde_json::{Value, json};

use super::stage::{Stage, with_relations};
use crate::config::Config;
use crate::limits::DETECTED_AN_ENTRY_MAX;
use crate::protocol::ErrorCode;

/// A name of its own for each gate.
fn name(at: usize) -> String {
    let parts = ["ald", "bir", "ced", "dal", "elm", "fir", "gor", "haz", "ivy", "jun"];
    format!("{}{}ow", parts[at / 10 % 10], parts[at % 10])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_says_that_the_disk_is_full_however_much_it_finds() {
    for pairs in [1, DETECTED_AN_ENTRY_MAX + 1] {
        let stage = Stage::with(Config { detection_budget_ms: 0, ..Config::default() }).await;
        let mut line = stage.line(1, &["ada"]).await;
        for at in 0..pairs {
            for how in ["open", "closed"] {
                line.record("ada", &format!("The {} gate is {how}.", name(at)), json!([])).await;
            }
        }
        stage.faults.set_full(true);
        let full = line.call("ada", "RECORD", with_relations("x", json!([]))).await;
        assert_eq!(full.outcome.expect_err("no room").code, ErrorCode::StorageFull);
        let scan = line.call("ada", "DETECT", json!({ "mode": "scan" })).await;
        let refusal = scan.outcome.expect_err("nothing of it can be kept");
        assert_eq!(refusal.code, ErrorCode::StorageFull, "{pairs} pairs: {refusal:?}");
        assert!(refusal.suggested_action.contains("disk space"), "{refusal:?}");
        stage.faults.set_full(false);
        // The hub finds out by itself that there is room again.
        let found = loop {
            let scan = line.call("ada", "DETECT", json!({ "mode": "scan" })).await;
            match scan.outcome {
                Ok(found) => break serde_json::from_str::<Value>(found.get()).expect("JSON"),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        let found = &found["scan_coverage"]["new_conflicts_found"];
        assert!(found.as_u64() >= Some(pairs as u64), "it finds that much: {found}");
        stage.hub.stop().await;
    }
}
