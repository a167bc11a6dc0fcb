//! What happens when the log fails, shown on a log in memory that fails on demand: nobody is ever told of
//! something that is not in the log afterwards, and what was refused is not there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use akashik_hub::config::Config;
use akashik_hub::hub::{Answer, Audit, Field, Hub, Pending};
use akashik_hub::log::{Faults, Log, LogError, MemoryLog, Moment};
use akashik_hub::protocol::{Cursor, Envelope, ErrorCode};
use serde_json::{Value, json};

/// A hub on one log in memory, and the means to make that log fail.
struct Stage {
    hub: Arc<Hub>,
    log: MemoryLog,
    faults: Faults,
}

impl Stage {
    async fn open(log: MemoryLog) -> Self {
        let faults = log.faults();
        let logs: Vec<Box<dyn Log>> = vec![Box::new(log.clone())];
        let hub = Hub::start_on(Config::default(), logs).await.expect("the hub starts");
        Self { hub, log, faults }
    }

    async fn with_agent(log: MemoryLog) -> Self {
        let stage = Self::open(log).await;
        stage
            .call("reg", "REGISTER", json!({ "id": "ada", "role": "tester" }))
            .await
            .outcome
            .expect("registered");
        stage
    }

    fn field(&self) -> &Field {
        self.hub.field(None).expect("there is a Field")
    }

    async fn submit(&self, id: &str, operation: &str, payload: Value) -> Pending {
        self.submit_at(0, id, operation, payload).await
    }

    async fn submit_at(&self, epoch: u64, id: &str, operation: &str, payload: Value) -> Pending {
        let text = json!({
            "protocol": "akashik", "version": "0.1.0", "id": id, "operation": operation,
            "agent_id": "ada", "session_id": null, "epoch": epoch, "payload": payload,
        })
        .to_string();
        let message = self.field().read(&Envelope::parse(&text).expect("a valid envelope"));
        self.field().submit(message, None).await
    }

    async fn call(&self, id: &str, operation: &str, payload: Value) -> Answer {
        self.call_at(0, id, operation, payload).await
    }

    /// Calls with an epoch that the sender claims to have seen.
    async fn call_at(&self, epoch: u64, id: &str, operation: &str, payload: Value) -> Answer {
        let pending = self.submit_at(epoch, id, operation, payload).await;
        tokio::time::timeout(Duration::from_secs(20), pending).await.expect("every message is answered")
    }

    async fn record(&self, id: &str) -> Answer {
        self.call(id, "RECORD", finding(id)).await
    }

    /// Repeats a RECORD until the hub, which looks for the log by itself, can write it again.
    async fn record_when_it_can(&self, id: &str) -> Answer {
        let tries = async {
            loop {
                let answer = self.record(id).await;
                if answer.outcome.is_ok() {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), tries).await.expect("writes are served again")
    }

    /// The messages that the log really holds, by their ids.
    fn kept(&self) -> BTreeMap<String, u64> {
        let mut kept = BTreeMap::new();
        let reader = self.log.reader().expect("memory can be read");
        reader
            .scan(0, &mut |epoch, body| {
                let entry: Value = serde_json::from_str(body).expect("an entry is JSON");
                if let Some(id) = entry["message_id"].as_str() {
                    assert!(kept.insert(id.to_owned(), epoch).is_none(), "{id} is in the log twice");
                }
                std::ops::ControlFlow::Continue(())
            })
            .expect("memory can be read");
        kept
    }

    /// What the answers told is what the log holds: no more, no less.
    fn check(&self, answers: &BTreeMap<String, Answer>) {
        let kept = self.kept();
        for (id, answer) in answers {
            match &answer.outcome {
                Ok(_) => assert_eq!(kept.get(id), Some(&answer.epoch), "{id} was acknowledged"),
                Err(refusal) => assert!(!kept.contains_key(id), "{id} was refused: {refusal}"),
            }
        }
    }
}

fn finding(content: &str) -> Value {
    json!({
        "type": "finding", "content": content, "intent": { "purpose": "test" },
        "confidence": { "score": 0.5, "reason": "test" },
    })
}

fn error() -> LogError {
    LogError::Io("the disk said no".into())
}

fn code(answer: &Answer) -> Option<ErrorCode> {
    answer.outcome.as_ref().err().map(|refusal| refusal.code)
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_told_of_what_the_log_does_not_hold() {
    for moment in [Moment::Before, Moment::After] {
        for nth in 1..=6 {
            let stage = Stage::with_agent(MemoryLog::new()).await;
            stage.faults.fail_append(nth, moment, error());
            let mut pending = Vec::new();
            for at in 0..200 {
                let id = format!("m-{at}");
                pending.push((id.clone(), stage.submit(&id, "RECORD", finding(&id)).await));
                // Reads in between must not tell of anything that is taken back.
                if at % 20 == 0 {
                    let attune = json!({ "scope": { "role": "x", "max_units": 1000, "include_own": true } });
                    pending.push((format!("look-{at}"), stage.submit("look", "ATTUNE", attune).await));
                    tokio::task::yield_now().await;
                }
            }
            let mut answers = BTreeMap::new();
            let mut seen = Vec::new();
            for (id, pending) in pending {
                let answer = pending.await;
                if id.starts_with("look") {
                    seen.extend(answer.outcome.ok());
                } else {
                    answers.insert(id, answer);
                }
            }
            stage.check(&answers);
            let kept: Vec<_> = stage.kept().into_values().collect();
            for payload in seen {
                let told: Value = serde_json::from_str(payload.get()).unwrap();
                for unit in told["record"].as_array().unwrap() {
                    let epoch = unit["memory_unit"]["epoch"].as_u64().unwrap();
                    assert!(
                        kept.contains(&epoch),
                        "ATTUNE told of epoch {epoch}, which the log does not hold"
                    );
                }
            }
            // The Field goes on, and the refused messages can be repeated under their ids.
            for (id, answer) in &answers {
                let again = stage.record_when_it_can(id).await;
                if answer.outcome.is_ok() {
                    assert_eq!(again.epoch, answer.epoch, "a repeat gets the first answer");
                }
                assert!(again.outcome.is_ok());
            }
            let held = stage.kept().len();
            assert_eq!(held, 201, "each message is there once ({moment:?}, append {nth})");
            stage.hub.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_failed_after_it_took_effect_is_acknowledged_as_kept() {
    let stage = Stage::with_agent(MemoryLog::new()).await;
    stage.faults.fail_append(1, Moment::After, error());
    let answer = stage.record("m-1").await;
    stage.check(&BTreeMap::from([("m-1".to_owned(), answer.clone())]));
    assert!(answer.outcome.is_ok(), "it is in the log, so it is told as such");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_answered_while_a_commit_hangs() {
    let stage = Stage::with_agent(MemoryLog::new()).await;
    stage.faults.hang_append(1);
    let record = stage.submit("m-1", "RECORD", finding("x")).await;
    let faults = stage.log.faults();
    let hangs = tokio::task::spawn_blocking(move || faults.wait_for_hanging(Duration::from_secs(10)));
    assert!(hangs.await.unwrap(), "the append was reached");
    let attune = json!({ "scope": { "role": "x", "max_units": 10, "include_own": true } });
    let look = stage.submit("look", "ATTUNE", attune).await;
    let refused = stage.submit("bad", "RECORD", json!({})).await;
    let view = stage.field().view();
    assert_eq!(view.status()["units"]["active"], 0, "the durable view does not run ahead");
    let mut waiting = Box::pin(futures::future::join3(record, look, refused));
    // The runtime has every chance to answer; the log has not moved.
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert!(futures::poll!(&mut waiting).is_pending());
    }
    stage.faults.resume();
    let (record, look, refused) = waiting.await;
    assert!(record.outcome.is_ok() && look.outcome.is_ok());
    assert!(look.outcome.unwrap().get().contains("mem-"));
    assert_eq!(code(&refused), Some(ErrorCode::InvalidType));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_log_refuses_writes_serves_reads_and_recovers_by_itself() {
    let stage = Stage::with_agent(MemoryLog::new()).await;
    let first = stage.record("m-1").await;
    stage.faults.set_full(true);
    for at in 2..5 {
        let refused = stage.record(&format!("m-{at}")).await;
        assert_eq!(code(&refused), Some(ErrorCode::StorageFull));
    }
    let attune = json!({ "scope": { "role": "x", "max_units": 10, "include_own": true } });
    for _ in 0..50 {
        let read = stage.call("look", "ATTUNE", attune.clone()).await;
        let told: Value = serde_json::from_str(read.outcome.expect("reads are served").get()).unwrap();
        assert_eq!(told["context_budget"]["units_returned"], 1);
    }
    let repeat = stage.record("m-1").await;
    assert_eq!(repeat.epoch, first.epoch, "a repeat is answered although the log is full");
    assert!(stage.field().is_ready().await);
    stage.faults.set_full(false);
    let again = stage.record_when_it_can("m-2").await;
    stage.check(&BTreeMap::from([("m-1".into(), first), ("m-2".into(), again)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn epochs_go_only_up_across_failures_and_restarts() {
    let log = MemoryLog::new();
    let mut last = 0;
    for life in 0..4 {
        let stage = Stage::open(log.clone()).await;
        if life == 0 {
            stage.call("reg", "REGISTER", json!({ "id": "ada", "role": "tester" })).await.outcome.unwrap();
        }
        for at in 0..20 {
            if at == 10 {
                stage.faults.fail_append(
                    1,
                    if life % 2 == 0 { Moment::Before } else { Moment::After },
                    error(),
                );
            }
            let operation = if at % 3 == 0 { "ATTUNE" } else { "RECORD" };
            let payload =
                if at % 3 == 0 { json!({ "scope": { "role": "x", "max_units": 1 } }) } else { finding("x") };
            let answer = stage.call(&format!("{life}-{at}"), operation, payload).await;
            if answer.outcome.is_ok() {
                assert!(answer.epoch > last, "epoch {} after {last}", answer.epoch);
            }
            last = last.max(answer.epoch);
        }
        // Every other life ends without a clean close, as a kill would end it.
        if life % 2 == 0 {
            stage.hub.stop().await;
        } else {
            drop(stage);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_caller_cancels_nothing() {
    // What is compared behind makes entries of its own.
    let log = MemoryLog::new();
    let config = Config { detection_budget_ms: 0, ..Config::default() };
    let hub = Hub::start_on(config, vec![Box::new(log.clone())]).await.expect("the hub starts");
    let stage = Stage { hub, faults: log.faults(), log };
    stage
        .call("reg", "REGISTER", json!({ "id": "ada", "role": "tester" }))
        .await
        .outcome
        .expect("registered");
    for at in 0..50 {
        drop(stage.submit(&format!("m-{at}"), "RECORD", finding("x")).await);
    }
    stage.record("last").await.outcome.unwrap();
    assert_eq!(stage.kept().len(), 52, "each happened once");
    let lines = stage.field().log_lines(Cursor::default(), 1_000).await.unwrap();
    assert_eq!(lines.len(), 52);
}

/// A clock far ahead of what is reserved must not leave anybody without an answer when the log fills up.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_from_the_future_hangs_nobody_on_a_full_log() {
    let stage = Stage::with_agent(MemoryLog::new()).await;
    stage.faults.set_full(true);
    let ahead = stage.call_at(500_000, "m-1", "RECORD", finding("x")).await;
    assert_eq!(code(&ahead), Some(ErrorCode::StorageFull));
    let scope = json!({ "scope": { "role": "x", "max_units": 1 } });
    for (id, operation, payload) in [
        ("m-2", "RECORD", finding("x")),
        ("bad", "RECORD", json!({})),
        ("look", "ATTUNE", scope.clone()),
        ("reg-2", "REGISTER", json!({ "id": "ada", "role": "tester", "required_operations": ["HANDOFF"] })),
    ] {
        stage.call(id, operation, payload).await;
    }
    let far = stage.call_at(900_000, "look-2", "ATTUNE", scope).await;
    assert_eq!(code(&far), Some(ErrorCode::StorageFull), "no epoch is shown that is not reserved");
    let stopped = tokio::time::timeout(Duration::from_secs(10), stage.hub.stop()).await;
    assert!(stopped.is_ok(), "the hub stops although its log is full");
}

/// An error that stays must cost neither a hot loop nor the end of the hub.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_stays_is_tried_at_a_walk_and_does_not_keep_the_hub_from_stopping() {
    let stage = Stage::with_agent(MemoryLog::new()).await;
    stage.faults.fail_probes(Some(error()));
    for nth in 1..=1_000 {
        stage.faults.fail_append(nth, Moment::Before, error());
    }
    let before = stage.faults.appends();
    for at in 0..50 {
        let refused = stage.call_at(at * 11_000, &format!("m-{at}"), "RECORD", finding("x")).await;
        assert_eq!(code(&refused), Some(ErrorCode::InternalError));
    }
    let attune = json!({ "scope": { "role": "x", "max_units": 10 } });
    stage.call("look", "ATTUNE", attune).await.outcome.expect("reads are served");
    let tried = stage.faults.appends() - before;
    assert!(tried <= 3, "{tried} appends were tried for 50 messages on a log that cannot be written");
    let stopped = tokio::time::timeout(Duration::from_secs(10), stage.hub.stop()).await;
    assert!(stopped.is_ok(), "the hub stops although its log cannot be written");
}

/// A read ahead of the reserved mark, and a commit that fails under it: before or after it took effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_from_the_future_over_a_failing_log_hangs_nobody_and_reuses_no_epoch() {
    let scope = || json!({ "scope": { "role": "x", "max_units": 1 } });
    for moment in [Moment::Before, Moment::After] {
        let stage = Stage::with_agent(MemoryLog::new()).await;
        stage.faults.fail_append(1, moment, error());
        let mut shown = Vec::new();
        for (epoch, id) in [(500_000, "far"), (0, "near"), (0, "nearer")] {
            let read = stage.call_at(epoch, id, "ATTUNE", scope()).await;
            shown.extend(read.outcome.is_ok().then_some(read.epoch));
        }
        let record = stage.record_when_it_can("m-1").await;
        shown.push(record.epoch);
        assert!(shown.windows(2).all(|pair| pair[0] < pair[1]), "{moment:?}: {shown:?}");
        let stopped = tokio::time::timeout(Duration::from_secs(10), stage.hub.stop()).await;
        assert!(stopped.is_ok(), "the hub stops ({moment:?})");
    }
    // The same while the log stays full.
    let stage = Stage::with_agent(MemoryLog::new()).await;
    stage.faults.set_full(true);
    stage.call_at(500_000, "far", "ATTUNE", scope()).await;
    stage.call("near", "ATTUNE", scope()).await.outcome.expect("reads are served");
    assert_eq!(code(&stage.record("m-1").await), Some(ErrorCode::StorageFull));
    let stopped = tokio::time::timeout(Duration::from_secs(10), stage.hub.stop()).await;
    assert!(stopped.is_ok(), "the hub stops although its log is full");
}

/// Where reads are audited, nobody is shown what the log does not note.
#[tokio::test(flavor = "multi_thread")]
async fn an_audited_read_is_answered_once_it_is_noted() {
    let log = MemoryLog::new();
    let config = Config { audit_reads: Audit::All, detection_budget_ms: 0, ..Config::default() };
    let hub = Hub::start_on(config, vec![Box::new(log.clone())]).await.expect("the hub starts");
    let stage = Stage { hub, faults: log.faults(), log };
    stage
        .call("reg", "REGISTER", json!({ "id": "ada", "role": "tester" }))
        .await
        .outcome
        .expect("registered");
    stage.record("m-1").await.outcome.expect("recorded");
    let scope = json!({ "scope": { "role": "x", "max_units": 5, "include_own": true } });
    stage.faults.hang_append(1);
    let mut look = Box::pin(stage.submit("look", "ATTUNE", scope.clone()).await);
    let faults = stage.log.faults();
    let hangs = tokio::task::spawn_blocking(move || faults.wait_for_hanging(Duration::from_secs(10)));
    assert!(hangs.await.unwrap(), "the note is on its way");
    assert!(futures::poll!(&mut look).is_pending(), "not answered before it is noted");
    stage.faults.resume();
    let look = look.await;
    assert!(look.outcome.expect("answered").get().contains("mem-"));
    let lines = stage.field().log_lines(Cursor::default(), 100).await.unwrap();
    let note: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!((&note["event_type"], &note["read_epoch"]), (&json!("ATTUNE"), &json!(look.epoch)));
    assert_eq!(note["agent_id"], "ada");
    // Reads are served also where nothing can be noted.
    stage.faults.set_full(true);
    assert_eq!(code(&stage.record("m-2").await), Some(ErrorCode::StorageFull));
    stage.call("look-2", "ATTUNE", scope).await.outcome.expect("reads are served");
    stage.hub.stop().await;
}

/// Where only what was delivered is noted, no answer waits for its note; still it stands before what is decided on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_note_of_what_was_delivered_comes_behind_the_answer_and_before_the_decision() {
    let stage = Stage::with_agent(MemoryLog::new()).await;
    stage.record("m-1").await.outcome.expect("recorded");
    let scope = json!({ "role": "x", "max_units": 5, "include_own": true });
    // Nothing can become durable meanwhile, and the answer comes.
    stage.faults.hang_append(1);
    let look = stage.call("look", "ATTUNE", json!({ "scope": scope })).await;
    look.outcome.expect("answered");
    stage.faults.resume();
    let nothing = json!({ "scope": { "role": "x", "max_units": 5 } });
    stage.call("nothing", "ATTUNE", nothing).await.outcome.expect("answered");
    let ids = json!({ "scope": scope, "format": "ids_only" });
    stage.call("ids", "ATTUNE", ids).await.outcome.expect("answered");
    let mut decision = finding("go");
    decision["type"] = json!("decision");
    let decided = stage.call("decide", "RECORD", decision).await;
    decided.outcome.expect("recorded");
    let notes = |lines: Vec<String>| -> Vec<Value> {
        let lines = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
        lines.filter(|line| line["event_type"] == "ATTUNE").collect()
    };
    let found = notes(stage.field().log_lines(Cursor::default(), 100).await.unwrap());
    assert_eq!(found.len(), 1, "ids alone and nothing are not noted: {found:?}");
    assert_eq!((&found[0]["agent_id"], &found[0]["read_epoch"]), (&json!("ada"), &json!(look.epoch)));
    assert!(found[0]["shown"][0].as_str().expect("an id").starts_with("mem-"), "{found:?}");
    assert!(found[0]["epoch"].as_u64() < Some(decided.epoch), "it stands before the decision");
    // A stop in good order loses none.
    stage.call("last", "ATTUNE", json!({ "scope": scope })).await.outcome.expect("answered");
    let reader = stage.log.reader().expect("memory can be read");
    stage.hub.stop().await;
    let mut bodies = Vec::new();
    let scanned = reader.scan(0, &mut |_, body| {
        bodies.push(body.to_owned());
        std::ops::ControlFlow::Continue(())
    });
    scanned.expect("memory can be read");
    let noted = bodies.iter().filter(|body| body.contains(r#""ATTUNE":{"read_epoch""#)).count();
    assert_eq!(noted, 2);
}

/// What was gathered behind a commit that failed must not count for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_under_large_messages_leaves_room_for_others() {
    let stage = Stage::with_agent(MemoryLog::new()).await;
    stage.faults.hang_append(1);
    stage.faults.fail_append(1, Moment::Before, error());
    let mut pending = vec![stage.submit("m-0", "RECORD", finding("x")).await];
    let faults = stage.log.faults();
    let hangs = tokio::task::spawn_blocking(move || faults.wait_for_hanging(Duration::from_secs(10)));
    assert!(hangs.await.unwrap(), "the append was reached");
    // More than what may be gathered, so the last ones wait outside.
    for at in 1..=300 {
        let payload = finding(&"x".repeat(250_000));
        let id = format!("m-{at}");
        let submit = stage.submit(&id, "RECORD", payload);
        match tokio::time::timeout(Duration::from_millis(500), submit).await {
            Ok(one) => pending.push(one),
            Err(_) => break,
        }
    }
    assert!(pending.len() > 200, "{} messages were taken", pending.len());
    stage.faults.resume();
    for one in pending {
        let _ = tokio::time::timeout(Duration::from_secs(20), one).await.expect("every message is answered");
    }
    let attune = json!({ "scope": { "role": "x", "max_units": 1 } });
    stage.call("look", "ATTUNE", attune).await.outcome.expect("reads are served");
    stage.record_when_it_can("last").await;
    let stopped = tokio::time::timeout(Duration::from_secs(10), stage.hub.stop()).await;
    assert!(stopped.is_ok(), "the hub stops");
}
