//! Snapshots, copies and exports through the real binary: a start from a snapshot tells what a start from the log
//! tells, whatever stands in the snapshot's place harms nothing, copies verify and serve, an export of any size takes
//! the same memory.

mod process;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Output, Stdio};

use akashik_hub::log::{Batch, Log, Row, SqliteLog, SqliteOptions};
use process::{HubProcess, akashik, run, until};
use serde_json::{Value, json};
use tempfile::TempDir;

fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn log(command: &str, data: &Path, more: &[&str]) -> Output {
    run(&[&["log", command, "--data", data.to_str().expect("a plain path")], more].concat())
}

/// The log is sound, and its snapshot, if there is one, agrees with it.
fn verified(data: &Path) -> Value {
    let report = json_of(&log("verify", data, &["--apply"]));
    assert_eq!(report["sound"], true, "{report}");
    if !report["snapshot"].is_null() {
        assert_eq!(report["snapshot"]["agrees"], true, "{report}");
    }
    report
}

/// The log is sound; its snapshot may be of no use.
fn verified_but_for_snapshot(data: &Path) -> Value {
    let report = json_of(&log("verify", data, &[]));
    assert_eq!(report["sound"], true, "{report}");
    report
}

fn register(hub: &HubProcess, agent: &str) {
    json_of(&run(&[
        "register",
        "--url",
        &hub.url,
        "--agent",
        agent,
        "--role",
        "writer",
        "--interest",
        "growth",
    ]));
}

/// Records a unit under a message id of its own; gives the answer.
fn record(hub: &HubProcess, agent: &str, number: usize, relation: &[&str]) -> Value {
    let (content, id) = (format!("Finding {number} about growth."), format!("m-{number}"));
    let usual = [
        "record",
        "--url",
        &hub.url,
        "--agent",
        agent,
        "--type",
        "finding",
        "--content",
        &content,
        "--purpose",
        "remember it",
        "--score",
        "0.7",
        "--reason",
        "seen",
        "--task",
        "task-1",
        "--message-id",
        &id,
    ];
    json_of(&run(&[&usual[..], relation].concat()))
}

/// One HTTP request; its answer's body.
fn ask(hub: &HubProcess, request: &str) -> Value {
    use std::io::Write;
    let mut socket = std::net::TcpStream::connect(hub.address()).expect("the hub is there");
    socket.write_all(request.as_bytes()).expect("sent");
    let mut reply = String::new();
    socket.read_to_string(&mut reply).expect("answered");
    let (head, body) = reply.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200"), "{reply}");
    serde_json::from_str(body).expect("JSON")
}

fn get(hub: &HubProcess, path: &str) -> Value {
    ask(hub, &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"))
}

fn post(hub: &HubProcess, path: &str, agent: &str, body: &Value) -> Value {
    let body = body.to_string();
    ask(
        hub,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Akashik-Agent: {agent}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    )
}

/// What a hub shows of its Field.
fn shown(hub: &HubProcess) -> Value {
    let paths = ["/v1/units?limit=1000", "/v1/conflicts?status=detected,resolved", "/v1/agents"];
    let views: Vec<Value> = paths.iter().map(|path| get(hub, path)).collect();
    let attuned = run(&[
        "attune",
        "--url",
        &hub.url,
        "--agent",
        "eve",
        "--role",
        "writer",
        "--hint",
        "growth",
        "--max-units",
        "5",
    ]);
    let order: Vec<Value> = json_of(&attuned)["record"]
        .as_array()
        .expect("units")
        .iter()
        .map(|one| one["memory_unit"].clone())
        .collect();
    json!([views, order])
}

/// A Field with units, a chain, a conflict and a subscription.
fn fill(hub: &HubProcess) {
    for agent in ["ada", "bob", "eve"] {
        register(hub, agent);
    }
    let first = record(hub, "ada", 0, &[])["memory_unit_id"].as_str().expect("an id").to_owned();
    record(hub, "bob", 1, &["--relation", &format!("contradicts:{first}")]);
    let second = record(hub, "ada", 2, &[])["memory_unit_id"].as_str().expect("an id").to_owned();
    record(hub, "ada", 3, &["--relation", &format!("supersedes:{second}")]);
    let wish =
        json!({ "action": "subscribe", "subscription": { "id": "news", "events": ["memory.recorded"] } });
    assert_eq!(post(hub, "/v1/subscribe", "eve", &wish)["status"], "ok");
    (4..12).for_each(|number| drop(record(hub, "bob", number, &[])));
}

#[test]
fn a_start_from_a_snapshot_tells_what_a_start_from_the_log_tells() {
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &["--snapshot-entries", "4"]);
    fill(&hub);
    let snapshot = data.path().join("default/state.snapshot");
    until("a snapshot", || snapshot.exists());
    hub.kill();
    let report = verified(data.path());
    let held = report["snapshot"]["entries"].as_u64().expect("a snapshot");
    assert!(held >= 4 && held <= report["entries"].as_u64().expect("entries"), "{report}");
    let stat = json_of(&log("stat", data.path(), &[]));
    assert_eq!(stat["snapshot"]["bytes"], fs::metadata(&snapshot).expect("it is there").len(), "{stat}");

    let hub = HubProcess::start(data.path(), &["--snapshot-entries", "0"]);
    let from_snapshot = shown(&hub);
    let repeated = record(&hub, "bob", 5, &[]);
    hub.kill();
    fs::remove_file(&snapshot).expect("it is there");
    let hub = HubProcess::start(data.path(), &["--snapshot-entries", "0"]);
    assert_eq!(record(&hub, "bob", 5, &[]), repeated, "a repeat gets its first answer");
    // When somebody was last here is told exactly only by whoever saw it.
    let without_times = |mut all: Value| {
        for agent in all[0][2]["agents"].as_array_mut().expect("agents") {
            agent["last_seen"] = Value::Null;
        }
        all
    };
    assert_eq!(without_times(from_snapshot), without_times(shown(&hub)));
    hub.stop();
    assert!(!snapshot.exists(), "0 is never");
}

/// As an upgrade finds the snapshot of the version before, and a step back that of the version after.
#[test]
fn a_start_beside_another_version_s_snapshot_reads_the_log_and_replaces_it() {
    let data = TempDir::new().expect("a directory");
    let snapshot = data.path().join("default/state.snapshot");
    let hub = HubProcess::start(data.path(), &["--snapshot-entries", "4"]);
    fill(&hub);
    let before = shown(&hub)[0][0].clone();
    hub.stop();
    let mut other = fs::read(&snapshot).expect("it is there");
    // Its format stands behind eight bytes of magic, the checksum of the head at its end.
    other[8..24].fill(0x5a);
    let checksum = crc32fast::hash(&other[..72]).to_le_bytes();
    other[72..76].copy_from_slice(&checksum);
    fs::write(&snapshot, &other).expect("written");
    let report = verified_but_for_snapshot(data.path());
    assert!(report["snapshot"]["unusable"].as_str().expect("why").contains("another version"), "{report}");
    let hub = HubProcess::start(data.path(), &["--snapshot-entries", "4"]);
    assert_eq!(shown(&hub)[0][0], before);
    (20..25).for_each(|number| drop(record(&hub, "ada", number, &[])));
    hub.stop();
    let report = verified(data.path());
    assert_eq!(report["snapshot"]["entries"], report["entries"], "there is one of its own again");
}

#[test]
fn a_stop_in_good_order_leaves_a_snapshot_of_everything() {
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &["--snapshot-entries", "20"]);
    fill(&hub);
    hub.stop();
    let report = verified(data.path());
    assert_eq!(report["snapshot"]["entries"], report["entries"]);
    assert!(!data.path().join("default/state.snapshot.new").exists());
}

#[test]
fn a_log_that_was_put_back_to_an_older_copy_wins_over_its_snapshot() {
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &["--snapshot-entries", "4"]);
    register(&hub, "ada");
    let copy = data.path().join("copy.db");
    json_of(&log("backup", data.path(), &[copy.to_str().expect("a plain path")]));
    (0..10).for_each(|number| drop(record(&hub, "ada", number, &[])));
    hub.stop();
    assert!(data.path().join("default/state.snapshot").exists());
    fs::rename(&copy, data.path().join("default/field.db")).expect("put back");
    let verify = json_of(&log("verify", data.path(), &[]));
    assert!(verify["snapshot"]["unusable"].as_str().expect("why").contains("not of this log"), "{verify}");
    let hub = HubProcess::start(data.path(), &["--snapshot-entries", "1000"]);
    assert_eq!(get(&hub, "/v1/units")["units"], json!([]));
    assert!(!data.path().join("default/state.snapshot").exists(), "it is of no use any more");
    record(&hub, "ada", 0, &[]);
    hub.stop();
    verified(data.path());
}

#[test]
fn a_snapshot_that_cannot_be_written_stops_nothing() {
    let data = TempDir::new().expect("a directory");
    fs::create_dir_all(data.path().join("default/state.snapshot.new/in the way")).expect("a directory");
    let hub = HubProcess::start(data.path(), &["--snapshot-entries", "2"]);
    fill(&hub);
    hub.stop();
    assert!(!data.path().join("default/state.snapshot").exists());
    assert_eq!(verified(data.path())["snapshot"], Value::Null);
}

#[test]
fn a_copy_that_is_made_while_the_hub_writes_verifies_and_serves() {
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &[]);
    fill(&hub);
    let copies = TempDir::new().expect("a directory");
    let file = copies.path().join("default/field.db");
    let to = [file.to_str().expect("a plain path")];
    let writing = std::thread::scope(|scope| {
        let write = || (100..110).map(|number| record(&hub, "ada", number, &[])).collect::<Vec<_>>();
        let writing = scope.spawn(write);
        json_of(&log("backup", data.path(), &to));
        writing.join().expect("writing goes on")
    });
    assert_eq!(writing.len(), 10);
    let names: Vec<_> = fs::read_dir(copies.path().join("default")).expect("a directory").collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let copied = verified(copies.path())["entries"].as_u64().expect("entries");
    let now = json_of(&log("stat", data.path(), &[]))["entries"].as_u64().expect("entries");
    assert!(copied >= 12 && copied <= now, "{copied} of {now}");
    let other = HubProcess::start(copies.path(), &[]);
    assert_eq!(
        record(&other, "bob", 5, &[]),
        record(&hub, "bob", 5, &[]),
        "the copy knows what was answered"
    );
    other.stop();

    let before = fs::read(&file).expect("a copy");
    let again = log("backup", data.path(), &to);
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("is there already"), "{}", said(&again));
    assert_eq!(fs::read(&file).expect("a copy"), before);
    let onto_directory = log("backup", data.path(), &[copies.path().to_str().expect("a plain path")]);
    assert_eq!(onto_directory.status.code(), Some(1), "{}", said(&onto_directory));
    let into_file = log("backup", data.path(), &[file.join("x").to_str().expect("a plain path")]);
    assert_eq!(into_file.status.code(), Some(1), "{}", said(&into_file));
    assert_eq!(log("backup", copies.path(), &["--field", "none", "x"]).status.code(), Some(1));
    assert_eq!(log("backup", data.path(), &[]).status.code(), Some(2), "a file has to be named");
    hub.stop();
}

#[test]
fn what_an_interrupted_copy_left_is_in_nobodys_way() {
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &[]);
    fill(&hub);
    hub.stop();
    let copies = TempDir::new().expect("a directory");
    let (file, half) = (copies.path().join("field.db"), copies.path().join("field.db.unfinished"));
    fs::write(&half, vec![7; 100_000]).expect("written");
    json_of(&log("backup", data.path(), &[file.to_str().expect("a plain path")]));
    assert!(file.exists() && !half.exists());
    assert!(akashik_hub::log::verify(&file).expect("it can be read").is_sound());
}

/// A limit on the size of files stands in for a full disk; going over it ends the process on the spot.
#[cfg(target_os = "linux")]
#[test]
fn a_copy_that_does_not_fit_is_not_there_by_its_name() {
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &[]);
    fill(&hub);
    hub.stop();
    let copies = TempDir::new().expect("a directory");
    let file = copies.path().join("field.db");
    let script = r#"ulimit -f 16; exec "$0" log backup --data "$1" "$2""#;
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_akashik")])
        .args([data.path(), file.as_path()])
        .output()
        .expect("a shell");
    assert!(!output.status.success());
    assert!(!file.exists());
}

/// A log of so many findings, without a hub.
fn long_log(dir: &Path, findings: u64) {
    let mut log = SqliteLog::open(&dir.join("default"), SqliteOptions::default()).expect("a log");
    let content = "x".repeat(2_000);
    let row = |epoch: u64| {
        let body = json!({
            "epoch": epoch, "at": "2026-03-01T10:30:00.000Z", "operation": "RECORD", "agent_id": "ada",
            "session_id": null, "message_id": format!("m-{epoch}"), "digest": epoch,
            "events": [{ "RECORD": { "unit": {
                "id": format!("mem-{epoch}"), "mode": "committed", "type": "finding", "content": content,
                "intent": { "purpose": "p", "task_id": null, "question": null }, "confidence": null,
                "source": { "agent_id": "ada", "agent_role": "r", "session_id": null,
                            "timestamp": "2026-03-01T10:30:00.000Z" },
                "relations": [] }, "supersedes": [] } }],
        });
        Row { epoch, body: body.to_string() }
    };
    for start in (1..=findings).step_by(500) {
        let rows: Vec<Row> = (start..start + 500).map(row).collect();
        log.append(&Batch { rows: &rows, reserve: None }).expect("appended");
    }
    log.release(findings).expect("closed");
}

/// The most memory that an export has taken shortly before its end, KiB.
#[cfg(target_os = "linux")]
fn export_peak(data: &Path) -> u64 {
    let whole = log("export", data, &[]);
    assert!(whole.status.success(), "{}", said(&whole));
    let mut export = akashik(&["log", "export", "--data", data.to_str().expect("a plain path")])
        .stdout(Stdio::piped())
        .spawn()
        .expect("an export");
    let mut pipe = export.stdout.take().expect("its lines");
    // What is left fits neither into the pipe nor into its buffer: it waits for us.
    pipe.read_exact(&mut vec![0; whole.stdout.len() - 200_000]).expect("lines");
    let status = fs::read_to_string(format!("/proc/{}/status", export.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a figure");
    let peak = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    pipe.read_to_end(&mut Vec::new()).expect("the rest");
    assert!(export.wait().expect("it ends").success());
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn an_export_of_ten_times_as_much_takes_no_more_memory() {
    let (small, large) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
    long_log(small.path(), 1_000);
    long_log(large.path(), 10_000);
    let (of_small, of_large) = (export_peak(small.path()), export_peak(large.path()));
    println!("{of_small} KiB, {of_large} KiB");
    // The log grew by 18 MiB.
    assert!(of_large < of_small + 2 * 1024, "{of_small} KiB, then {of_large} KiB");
}

#[test]
fn what_is_purged_is_in_no_snapshot_and_in_no_past() {
    let data = TempDir::new().expect("a directory");
    let hub = HubProcess::start(data.path(), &["--snapshot-entries", "1", "--level", "3"]);
    register(&hub, "ada");
    register(&hub, "bob");
    let made = record(&hub, "ada", 7, &[]);
    let file = data.path().join("default/state.snapshot");
    let tells = || fs::read(&file).is_ok_and(|bytes| bytes.windows(9).any(|window| window == b"Finding 7"));
    until("the unit's snapshot", tells);
    let past = json!({ "scope": { "role": "reader", "max_units": 9, "as_of_epoch": made["epoch"] } });
    let looked = post(&hub, "/v1/attune", "bob", &past);
    assert_eq!(looked["record"][0]["memory_unit"]["id"], made["memory_unit_id"], "{looked}");
    let purge =
        json!({ "strategy": "purge", "filter": { "types": ["finding"] }, "reason": "it was private" });
    assert_eq!(post(&hub, "/v1/compact", "ada", &purge)["units_affected"], 1);
    // It is gone by itself, without a further entry to write.
    until("the snapshot without it", || file.exists() && !tells());
    assert_eq!(post(&hub, "/v1/attune", "bob", &past)["record"], json!([]));
    // Also where snapshots are turned off meanwhile.
    drop(hub);
    verified(data.path());
    let hub = HubProcess::start(data.path(), &["--snapshot-entries", "0", "--level", "3"]);
    assert_eq!(post(&hub, "/v1/attune", "bob", &past)["record"], json!([]));
}
