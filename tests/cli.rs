//! The command line, end to end through the real binary.

mod process;

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::{Output, Stdio};

use process::{HubProcess, akashik, run, run_with_input};
use serde_json::{Value, json};
use tempfile::TempDir;

fn code(output: &Output) -> i32 {
    output.status.code().expect("ended by itself")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The JSON on stdout, which is one line when it is piped.
fn json(output: &Output) -> Value {
    assert_eq!(code(output), 0, "{}", stderr(output));
    let text = std::str::from_utf8(&output.stdout).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    serde_json::from_str(text).unwrap()
}

/// A client command against a hub, as an agent.
fn ask(hub: &HubProcess, agent: &str, arguments: &[&str]) -> Output {
    run(&[arguments, &["--url", &hub.url, "--agent", agent]].concat())
}

fn record(hub: &HubProcess, agent: &str, content: &str, more: &[&str]) -> Output {
    let usual = [
        "record",
        "--type",
        "finding",
        "--content",
        content,
        "--purpose",
        "p",
        "--score",
        "0.8",
        "--reason",
        "r",
    ];
    ask(hub, agent, &[&usual[..], more].concat())
}

#[test]
fn says_one_line_when_ready_and_stops_in_good_order() {
    for signal in ["TERM", "INT"] {
        let data = TempDir::new().unwrap();
        let hub = HubProcess::start(&data.path().join("made"), &[]);
        assert!(hub.url.starts_with("http://127.0.0.1:") && !hub.url.ends_with(":0"), "{}", hub.url);
        // Ready means ready: no attempt is refused after the line.
        assert_eq!(json(&run(&["status", "--url", &hub.url]))["name"], "default");
        hub.signal(signal);
        let (status, rest) = hub.wait();
        assert_eq!((status.code(), rest.as_str()), (Some(0), ""));
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    // A request that never ends holds the first shutdown up.
    let mut held = TcpStream::connect(hub.address()).unwrap();
    let head = "POST /v1/record HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
                Akashik-Agent: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
    std::io::Write::write_all(&mut held, head.as_bytes()).unwrap();
    // "100 Continue": the hub has begun to read the body.
    let mut first = [0; 1];
    held.read_exact(&mut first).unwrap();
    let address = hub.address().to_owned();
    hub.signal("TERM");
    process::until("the hub stops accepting", || TcpStream::connect(&address).is_err());
    hub.signal("TERM");
    assert_eq!(hub.wait().0.code(), Some(1));
}

#[test]
fn an_open_address_needs_insecure() {
    let data = TempDir::new().unwrap();
    let data = data.path().to_str().unwrap();
    let refused = run(&["serve", "--listen", "0.0.0.0:0", "--data", data]);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("--insecure"), "{}", stderr(&refused));
    assert!(refused.stdout.is_empty());
    let hub = HubProcess::start_on(data.as_ref(), "0.0.0.0:0", &["--insecure"]);
    assert!(hub.url.starts_with("http://0.0.0.0:"));
    hub.stop();
}

#[test]
fn what_is_in_use_is_named() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let shown = data.path().to_str().unwrap();
    let second = run(&["serve", "--listen", "127.0.0.1:0", "--data", shown]);
    assert_eq!(code(&second), 1);
    assert!(stderr(&second).contains(shown), "{}", stderr(&second));
    hub.stop();

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let third = run(&["serve", "--listen", &address, "--data", shown]);
    assert_eq!(code(&third), 1);
    assert!(stderr(&third).contains(&address), "{}", stderr(&third));
}

#[test]
fn the_printed_configuration_can_be_given_back() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("hub.toml");
    let printed = akashik(&["serve", "--print-config", "--level", "1", "--field", "a", "--field", "b"])
        .env("AKASHIK_LEVEL", "2")
        .env("AKASHIK_GRACE_SECONDS", "1.5")
        .env("AKASHIK_DRAFTS", "shared")
        .env("AKASHIK_ALLOW_HOST", "x.example,y.example")
        .output()
        .unwrap();
    assert_eq!(code(&printed), 0, "{}", stderr(&printed));
    let table: toml::Table = toml::from_str(std::str::from_utf8(&printed.stdout).unwrap()).unwrap();
    assert_eq!(table["level"].as_integer(), Some(1), "the flag wins");
    assert_eq!(table["grace_seconds"].as_float(), Some(1.5));
    assert_eq!(table["drafts"].as_str(), Some("shared"));
    assert_eq!(table["allow_host"].as_array().unwrap().len(), 2);
    std::fs::write(&file, &printed.stdout).unwrap();
    let again =
        akashik(&["serve", "--print-config"]).env("AKASHIK_CONFIG", file.to_str().unwrap()).output().unwrap();
    assert_eq!(again.stdout, printed.stdout, "{}", stderr(&again));
}

#[test]
fn wrong_configuration_is_a_usage_error_that_names_the_key() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("hub.toml");
    std::fs::write(&file, "level = 1\nlevle = 2\n").unwrap();
    let file = file.to_str().unwrap();
    for (arguments, named) in [
        (vec!["serve", "--config", file], "levle"),
        (vec!["serve", "--config", "/nowhere/hub.toml"], "/nowhere/hub.toml"),
        (vec!["serve", "--tokens", "t.toml"], "not served yet"),
        (vec!["serve", "--field", "a b"], "a b"),
        (vec!["serve", "--level", "7"], "level"),
        (vec!["serve", "--log-filter", "[[", "--listen", "127.0.0.1:0"], "log_filter"),
    ] {
        let output = akashik(&arguments).current_dir(dir.path()).output().unwrap();
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert!(stderr(&output).contains(named), "{arguments:?}: {}", stderr(&output));
    }
    assert!(!dir.path().join("akashik-data").exists(), "a refused configuration leaves no trace");
}

#[test]
fn client_commands_work_together_and_print_json_into_pipes() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &["--field", "default", "--field", "lab"]);
    let registered = json(&ask(&hub, "ann", &["register", "--role", "researcher", "--interest", "pricing"]));
    assert_eq!(registered["status"], "registered");
    json(&ask(&hub, "bob", &["register", "--role", "strategist"]));

    let first = json(&record(&hub, "ann", "The market grows by 23 %.", &[]));
    let first = first["memory_unit_id"].as_str().unwrap();
    let relation = format!("contradicts:{first}");
    let second = json(&record(&hub, "bob", "The market shrinks.", &["--relation", &relation]));
    assert_eq!(second["conflicts_detected"].as_array().unwrap().len(), 1);

    let attuned = json(&ask(&hub, "bob", &["attune", "--role", "strategist", "--hint", "market size"]));
    assert_eq!(attuned["record"][0]["memory_unit"]["id"], first);
    let detected = json(&ask(&hub, "ann", &["detect", "--status", "detected"]));
    assert_eq!(detected["conflicts"].as_array().unwrap().len(), 1);
    let second = second["memory_unit_id"].as_str().unwrap();
    let replayed = json(&ask(&hub, "ann", &["replay", "--target", second, "--depth", "full_trace"]));
    let told: Vec<_> = replayed["timeline"].as_array().unwrap().iter().map(|e| &e["event_type"]).collect();
    assert_eq!(told, ["RECORD", "RECORD", "CONFLICT_CREATED"], "what it contradicts, itself, the conflict");

    let draft = json(&record(&hub, "ann", "A thought.", &["--mode", "draft"]));
    let draft = draft["memory_unit_id"].as_str().unwrap();
    assert_eq!(json(&ask(&hub, "ann", &["commit", "--unit", draft]))["status"], "ok");
    let retract = ["retract", "--memory-unit-id", draft, "--reason", "wrong"];
    assert_eq!(json(&ask(&hub, "ann", &retract))["status"], "ok");
    let other = json(&record(&hub, "ann", "Another.", &["--mode", "draft"]));
    let other = other["memory_unit_id"].as_str().unwrap();
    assert_eq!(json(&ask(&hub, "ann", &["discard", "--unit", other, "--reason", "no"]))["status"], "ok");

    // The other Field knows nothing of all this.
    let elsewhere = ask(&hub, "ann", &["attune", "--role", "r", "--field", "lab"]);
    assert_eq!(code(&elsewhere), 1);
    assert_eq!(json(&run(&["status", "--url", &hub.url, "--field", "lab"]))["name"], "lab");
    assert_eq!(json(&ask(&hub, "bob", &["deregister"]))["status"], "ok");
    hub.stop();
}

#[test]
fn payloads_come_from_flags_arguments_or_stdin() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    json(&ask(&hub, "ann", &["register", "--payload", r#"{"id":"ann","role":"r"}"#]));
    let tail = ["--url", &hub.url, "--agent", "ann", "--message-id", "m-1"];
    let payload = r#"{"type":"finding","content":"c","intent":{"purpose":"p"},
        "confidence":{"score":1,"reason":"r"}}"#;
    let whole = [&["record", "--payload", "-"][..], &tail].concat();
    let first = json(&run_with_input(&whole, payload));
    let again = json(&run_with_input(&whole, payload));
    assert_eq!(first, again, "the same message is done once");

    let content = ["record", "--type", "finding", "--content", "-", "--purpose", "p", "--mode", "draft"];
    let content = [&content[..], &["--url", &hub.url, "--agent", "ann"]].concat();
    json(&run_with_input(&content, "two\nlines\n"));

    for wrong in [
        &["--payload", "nonsense"][..],
        &["--payload", "[1]"],
        &["--payload", "{}", "--score", "1"],
        &["--payload", "{}", "--type", "finding"],
    ] {
        assert_eq!(code(&ask(&hub, "ann", &[&["record"][..], wrong].concat())), 2, "{wrong:?}");
    }
    hub.stop();
}

#[test]
fn exit_codes_tell_refused_from_misused_from_unreachable() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let refused = ask(&hub, "nobody", &["attune", "--role", "r"]);
    assert_eq!(code(&refused), 1);
    let body: Value = serde_json::from_str(&stderr(&refused)).unwrap();
    assert_eq!((body["code"].as_str(), refused.stdout.len()), (Some("AGENT_NOT_REGISTERED"), 0));
    let rejected = ask(&hub, "ann", &["register", "--role", "r", "--required-operation", "HANDOFF"]);
    assert_eq!(code(&rejected), 1);
    assert!(stderr(&rejected).contains("HANDOFF"));
    assert_eq!(code(&ask(&hub, "ann", &["attune", "--role", "r", "--field", "none"])), 1);

    for misused in [
        vec!["attune", "--role", "r", "--url", &hub.url],
        vec!["attune", "--agent", "a", "--url", &hub.url],
        vec!["record", "--nonsense"],
        vec!["record", "--agent", "a", "--type", "finding", "--content", "c", "--relation", "mem-3"],
        vec!["status", "--url", "https://127.0.0.1:1"],
        vec!["status", "--url", &hub.url, "--field", "a b"],
        vec![],
    ] {
        assert_eq!(code(&run(&misused)), 2, "{misused:?}");
    }
    let url = hub.url.clone();
    hub.stop();
    assert_eq!(code(&run(&["status", "--url", &url])), 3);

    // Something answers there, but it is no hub.
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", stranger.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let (mut socket, _) = stranger.accept().unwrap();
        let _ = socket.read(&mut [0; 4096]).unwrap();
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>";
        std::io::Write::write_all(&mut socket, answer.as_bytes()).unwrap();
    });
    assert_eq!(code(&run(&["status", "--url", &url])), 3);
    served.join().unwrap();
}

#[test]
fn conflicts_are_resolved_by_flags_or_by_a_payload() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &["--vote-quorum", "1"]);
    json(&ask(&hub, "ann", &["register", "--role", "r"]));
    let conflict = || {
        let first = json(&record(&hub, "ann", "It grows.", &[]));
        let first = first["memory_unit_id"].as_str().unwrap().to_owned();
        let second =
            json(&record(&hub, "ann", "It shrinks.", &["--relation", &format!("contradicts:{first}")]));
        (first, second["conflicts_detected"][0].as_str().unwrap().to_owned())
    };
    let (first, id) = conflict();
    let usual = ["merge", "--conflict", &id, "--rationale", "seen"];
    let tied = json(&ask(&hub, "ann", &[&usual[..], &["--strategy", "confidence_weighted"]].concat()));
    assert_eq!(tied["status"], "escalated");
    let decision = ["--strategy", "human_escalation", "--winner", &first];
    let decided = json(&ask(&hub, "ann", &[&usual[..], &decision].concat()));
    assert_eq!(decided["conflict"]["resolution"]["winner_id"], first.as_str());
    let refused = ask(&hub, "ann", &[&usual[..], &decision].concat());
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("INVALID_TRANSITION"));

    let (_, id) = conflict();
    let joined =
        ["merge", "--conflict-id", &id, "--strategy", "synthesis", "--rationale", "r", "--synthesis", "-"];
    let arguments = [&joined[..], &["--url", &hub.url, "--agent", "ann"]].concat();
    let joined = json(&run_with_input(&arguments, "It varies."));
    let new = joined["side_effects"]["new_unit_id"].as_str().unwrap();
    assert_eq!(
        json(&run(&[
            "attune",
            "--role",
            "r",
            "--include-own",
            "--hint",
            "varies",
            "--agent",
            "ann",
            "--url",
            &hub.url
        ]))["record"][0]["memory_unit"]["id"],
        new
    );

    let (first, id) = conflict();
    let payload = format!(
        r#"{{"conflict_id":"{id}","strategy":"vote","resolution":{{"rationale":"r","winner_id":"{first}"}}}}"#
    );
    assert_eq!(json(&ask(&hub, "ann", &["merge", "--payload", &payload]))["status"], "resolved");
    for misused in [vec!["merge"], vec!["merge", "--conflict", "c", "--strategy", "vote"]] {
        assert_eq!(code(&ask(&hub, "ann", &misused)), 2, "{misused:?}");
    }
    hub.stop();
}

#[test]
fn a_log_is_read_offline() {
    let data = TempDir::new().unwrap();
    let shown = data.path().to_str().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    json(&ask(&hub, "ann", &["register", "--role", "r"]));
    for n in 0..20 {
        json(&record(&hub, "ann", &format!("Finding {n}"), &[]));
    }
    hub.stop();
    let verified = json(&run(&["log", "verify", "--data", shown]));
    assert_eq!((verified["sound"].as_bool(), verified["entries"].as_u64()), (Some(true), Some(21)));
    let stat = json(&run(&["log", "stat", "--data", shown]));
    assert_eq!(stat["entries"], 21);
    let exported = run(&["log", "export", "--data", shown, "--field", "default"]);
    assert_eq!(code(&exported), 0, "{}", stderr(&exported));
    let lines: Vec<Value> = exported
        .stdout
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 21);
    assert_eq!(
        (lines[0]["event_type"].as_str(), lines[20]["event_type"].as_str()),
        (Some("REGISTER"), Some("RECORD"))
    );

    let missing = run(&["log", "verify", "--data", shown, "--field", "none"]);
    assert_eq!(code(&missing), 1);
    assert_eq!(code(&run(&["log", "stat", "--data", shown, "--field", "../x"])), 2);
}

#[test]
fn an_export_that_nobody_reads_to_its_end_is_no_failure() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    json(&ask(&hub, "ann", &["register", "--role", "r"]));
    let long = "x".repeat(100_000);
    for _ in 0..4 {
        let payload = format!(
            r#"{{"type":"finding","content":"{long}","intent":{{"purpose":"p"}},"confidence":{{"score":1,"reason":"r"}}}}"#
        );
        json(&run_with_input(&["record", "--payload", "-", "--url", &hub.url, "--agent", "ann"], &payload));
    }
    hub.stop();
    let mut export = akashik(&["log", "export", "--data", data.path().to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = export.stdout.take().unwrap();
    pipe.read_exact(&mut [0; 10]).unwrap();
    drop(pipe);
    let output = export.wait_with_output().unwrap();
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
}

#[test]
fn a_short_measurement_reports_its_figures() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let dir = data.path().to_str().unwrap();
    let filled = json(&run(&[
        "bench",
        "record",
        "--url",
        &hub.url,
        "--agents",
        "2",
        "--depth",
        "4",
        "--units",
        "50",
        "--fsync-dir",
        dir,
    ]));
    assert_eq!((filled["acknowledged"].as_u64(), filled["record"]["errors"].as_u64()), (Some(50), Some(0)));
    assert!(filled["fsync_p50_ms"].as_f64().unwrap() > 0.0);
    let asked = json(&run(&[
        "bench",
        "attune",
        "--url",
        &hub.url,
        "--seconds",
        "0.5",
        "--units-expected",
        "50",
        "--writers",
        "1",
    ]));
    assert!(asked["attune"]["measured"].as_u64().unwrap() > 0, "{asked}");
    assert!(asked["writers_beside"]["measured"].as_u64().unwrap() > 0, "{asked}");
    hub.stop();
}

#[test]
fn notifications_are_measured_in_every_way() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let pid = hub.id().to_string();
    let bench = |arguments: &[&str]| {
        let usual = ["bench", "fanout", "--url", &hub.url, "--hub-pid", &pid, "--seconds", "0.3"];
        json(&run(&[&usual[..], arguments].concat()))
    };
    let steady = bench(&["--subscribers", "5", "--rate", "100", "--stalled", "2", "--back", "300"]);
    assert!(steady["deliveries"]["measured"].as_u64().unwrap() >= 5, "{steady}");
    assert!(steady["deliveries_beside_stalled"]["p99_ms"].as_f64().unwrap() > 0.0, "{steady}");
    assert_eq!(steady["lost"], 0);
    let flat_out = bench(&["--subscribers", "5", "--flat-out"]);
    assert!(flat_out["deliveries"].as_u64().unwrap() >= 5, "{flat_out}");
    assert!((300..700).contains(&flat_out["frame_bytes"].as_u64().unwrap()), "{flat_out}");
    let idle = bench(&["--idle", "20"]);
    assert!(idle["hub_resident_after"].as_u64().unwrap() > 0, "{idle}");
    let resumed = bench(&["--resume", "4", "--back", "50"]);
    assert_eq!(resumed["deliveries"], 200);
    assert_eq!(code(&run(&["bench", "fanout", "--url", &hub.url])), 2, "one thing is to be measured");
    hub.stop();
}

/// Two small sessions, one of which is asked about: what is summarized is measured against what was said.
#[test]
fn what_summaries_keep_is_measured() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let (units, questions) = (data.path().join("units.jsonl"), data.path().join("questions.jsonl"));
    let said = [
        ("Invoices are kept in the Lisbon archive for 7 years.", "ada"),
        ("The archive in Lisbon closes on Fridays.", "ben"),
        ("A courier brings boxes to the archive on Mondays.", "ada"),
    ];
    let lines: Vec<String> = (said.iter().enumerate())
        .map(|(at, (content, agent))| {
            json!({ "key": format!("u{at}"), "agent_id": agent, "session_id": "s", "content": content })
                .to_string()
        })
        .collect();
    std::fs::write(&units, lines.join("\n")).unwrap();
    let asked = [
        json!({ "context_hint": "How long are invoices kept?", "gold": ["u0"] }),
        json!({ "context_hint": "Who answers this?", "gold": ["elsewhere"] }),
    ];
    std::fs::write(&questions, asked.map(|line| line.to_string()).join("\n")).unwrap();
    let (units, questions) = (units.to_str().unwrap(), questions.to_str().unwrap());
    let bench = ["bench", "summaries", "--url", &hub.url, "--units", units, "--questions", questions];
    let report = json(&run(&[&bench[..], &["--show", "5"]].concat()));
    let shown = report["shown"][0].as_str().unwrap();
    assert!(shown.contains("Lisbon archive for 7 years"), "{report}");
    // Few units are quoted whole, so nothing is lost and what was found is found.
    for figure in ["gold_words_kept", "gold_words_that_tell_kept", "where_its_original_was"] {
        assert_eq!(report[figure], 1.0, "{report}");
    }
    assert_eq!(
        (&report["summarized"], &report["summaries"], &report["questions"]),
        (&json!(3), &json!(1), &json!(1))
    );
    let again = run(&bench);
    assert_eq!(code(&again), 2, "a Field that holds something is not summarized: {}", stderr(&again));
    hub.stop();
}
