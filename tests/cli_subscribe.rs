//! `akashik subscribe`, end to end through the real binary.

mod process;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use process::{HubProcess, akashik, run, until};
use serde_json::Value;
use tempfile::TempDir;

/// A listener at work; killed when dropped.
struct Listener {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Listener {
    /// Starts it and waits until it listens.
    fn start(hub: &HubProcess, agent: &str, arguments: &[&str]) -> Self {
        let mut child = akashik(&["subscribe", "--url", &hub.url, "--agent", agent])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut listener = Self { child, lines };
        listener.hears_itself_say("listening as subscription");
        listener
    }

    /// Reads stderr until a line says this.
    fn hears_itself_say(&mut self, what: &str) -> String {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut said = String::new();
        // Byte by byte, so that nothing of the next line is lost in a buffer.
        while !said.ends_with('\n') || !said.contains(what) {
            let mut byte = [0];
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "it ended, having said {said:?}");
            said.push(byte[0] as char);
        }
        said
    }

    fn notification(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for its end; the exit code, the rest of stdout, the rest of stderr.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut said) = (String::new(), String::new());
        self.lines.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), out, said)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Already gone where a test has seen its end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(hub: &HubProcess, agent: &str, arguments: &[&str]) -> Output {
    run(&[arguments, &["--url", &hub.url, "--agent", agent]].concat())
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn register(hub: &HubProcess, agent: &str) {
    json(&ask(hub, agent, &["register", "--role", "researcher"]));
}

fn record(hub: &HubProcess, agent: &str, content: &str) -> Value {
    let unit = ["record", "--type", "finding", "--content", content, "--purpose", "p"];
    json(&ask(hub, agent, &[&unit[..], &["--score", "0.8", "--reason", "r"]].concat()))
}

#[test]
fn it_prints_what_happens_and_goes_on_where_it_ended() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    register(&hub, "ann");
    register(&hub, "bob");
    let events = ["--events", "memory.recorded,agent.joined", "--events", "agent.left", "--id", "mine"];
    let mut listener = Listener::start(&hub, "bob", &[&events[..], &["--include-unit"]].concat());
    let first = record(&hub, "ann", "The market grows.");
    // Each line comes at once, not when a buffer is full.
    let told = listener.notification();
    assert_eq!(
        (&told["event"], &told["memory_unit_id"]),
        (&"memory.recorded".into(), &first["memory_unit_id"])
    );
    assert_eq!(told["memory_unit"]["content"], "The market grows.");
    listener.signal("INT");
    let (code, rest, said) = listener.end();
    assert_eq!((code, rest.as_str()), (Some(0), ""));
    let cursor = told["cursor"].as_str().unwrap();
    let way_on =
        format!("akashik subscribe --url {} --agent bob --id mine --resume-after {cursor}\n", hub.url);
    assert!(said.ends_with(&format!("to go on: {way_on}")), "{said}");

    record(&hub, "ann", "It shrinks.");
    register(&hub, "carl");
    let mut listener = Listener::start(&hub, "bob", &["--id", "mine", "--resume-after", cursor]);
    assert_eq!(listener.notification()["memory_unit"]["content"], "It shrinks.");
    assert_eq!(listener.notification()["event"], "agent.joined");
    listener.signal("TERM");
    assert_eq!(listener.end().0, Some(0));

    let listed = json(&ask(&hub, "bob", &["subscribe", "--list"]));
    assert_eq!(listed["subscriptions"][0]["id"], "mine");
    assert_eq!(json(&ask(&hub, "bob", &["subscribe", "--unsubscribe", "mine"]))["status"], "ok");
    let listed = json(&ask(&hub, "bob", &["subscribe", "--payload", r#"{"action":"list"}"#]));
    assert!(listed["subscriptions"].as_array().unwrap().is_empty());
    hub.stop();
}

#[test]
fn subscriptions_of_a_failed_agent_are_listed_and_ended_once_a_role_is_given() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &["--grace-seconds", "0.1"]);
    let mut watcher = Listener::start(&hub, "ann", &["--role", "watcher", "--events", "agent.failed"]);
    let listening = ["--role", "reader", "--events", "agent.left", "--id", "mine"];
    let listener = Listener::start(&hub, "bob", &listening);
    listener.signal("INT");
    let (_, _, said) = listener.end();
    assert!(said.contains("--agent bob --role reader --id mine"), "{said}");

    // Were it polled, each question of its own would count as its return.
    assert_eq!(watcher.notification()["agent_id"], "bob");
    let list = ["subscribe", "--list"];
    let refused = ask(&hub, "bob", &list);
    assert_eq!(refused.status.code(), Some(1), "without a role it is only said");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("AGENT_NOT_REGISTERED"));
    let with_role =
        |arguments: &[&str]| json(&ask(&hub, "bob", &[arguments, &["--role", "reader"]].concat()));
    assert_eq!(with_role(&list)["subscriptions"][0]["id"], "mine");
    assert_eq!(with_role(&["subscribe", "--unsubscribe", "mine"])["status"], "ok");
    assert_eq!(json(&ask(&hub, "bob", &list))["subscriptions"].as_array().unwrap().len(), 0);
    hub.stop();
}

#[test]
fn it_ends_well_when_nobody_reads_on() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    register(&hub, "ann");
    let payload = r#"{"action":"subscribe","subscription":{"events":["memory.recorded"]}}"#;
    let mut listener = Listener::start(&hub, "bob", &["--role", "reader", "--payload", payload]);
    record(&hub, "ann", "One.");
    listener.notification();
    let Listener { child, lines } = &mut listener;
    *lines = BufReader::new(
        akashik(&["--version"]).stdout(Stdio::piped()).spawn().unwrap().stdout.take().unwrap(),
    );
    record(&hub, "ann", "Two.");
    until("the listener's end", || child.try_wait().unwrap().is_some());
    let (code, _, said) = listener.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    hub.stop();
}

#[test]
fn it_says_when_the_hub_goes_and_comes_and_misses_nothing() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let address = hub.address().to_owned();
    register(&hub, "ann");
    let mut listener = Listener::start(
        &hub,
        "bob",
        &["--role", "reader", "--events", "memory.recorded", "--debounce-ms", "0"],
    );
    hub.kill();
    listener.hears_itself_say("connection was lost");
    let hub = HubProcess::start_on(data.path(), &address, &[]);
    let first = record(&hub, "ann", "While it was away.");
    listener.hears_itself_say("connected again");
    assert_eq!(listener.notification()["memory_unit_id"], first["memory_unit_id"]);
    hub.stop();
}

#[test]
fn it_says_what_is_wrong_before_it_listens() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let stderr = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let stranger = ask(&hub, "bob", &["subscribe", "--events", "memory.recorded"]);
    assert_eq!(stranger.status.code(), Some(1));
    assert!(stderr(&stranger).contains("AGENT_NOT_REGISTERED"), "{}", stderr(&stranger));
    register(&hub, "bob");
    let ahead = ask(&hub, "bob", &["subscribe", "--events", "memory.recorded", "--resume-after", "999999.0"]);
    assert_eq!(ahead.status.code(), Some(1));
    assert!(stderr(&ahead).contains("subscription.resume_after"), "{}", stderr(&ahead));
    for (misused, named) in [
        (&["subscribe"][..], "--events"),
        (&["subscribe", "--events", "memory.invented"], "memory.recorded"),
        (&["subscribe", "--events", "memory.recorded", "--resume-after", "now"], "cursor"),
        (&["subscribe", "--list", "--id", "x"], "--list"),
        (&["subscribe", "--events", "agent.left", "--interest", "x"], "--role"),
        (&["subscribe", "--payload", "nonsense"], "--payload"),
    ] {
        let output = ask(&hub, "bob", misused);
        assert_eq!(output.status.code(), Some(2), "{misused:?}");
        assert!(stderr(&output).contains(named), "{misused:?}: {}", stderr(&output));
    }
    let url = hub.url.clone();
    hub.stop();
    let away = run(&["subscribe", "--url", &url, "--agent", "bob", "--events", "memory.recorded"]);
    assert_eq!(away.status.code(), Some(3));
}
