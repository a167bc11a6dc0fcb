//! `akashik mcp`: MCP over pipes, as clients start it; the real binary.

mod process;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use process::{HubProcess, akashik, run_with_input};
use serde_json::{Value, json};

/// A server over pipes; killed when dropped.
struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts one and shakes hands.
    fn start(arguments: &[&str]) -> Self {
        let mut server = Self::silent(arguments);
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" } });
        let answer = server.request("initialize", hello);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        server
    }

    fn silent(arguments: &[&str]) -> Self {
        let mut child =
            akashik(&["mcp"]).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next message that answers something.
    fn hear(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the server has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string());
        self.hear()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Closes its stdin; how it ends.
    fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

fn body(result: &Value) -> Value {
    assert_eq!(result["isError"], true, "{result}");
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

fn unit(content: &str) -> Value {
    json!({ "type": "finding", "content": content, "intent": { "purpose": "p" },
        "confidence": { "score": 1, "reason": "r" } })
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_field_of_its_own_outlives_the_process() {
    let data = tempfile::tempdir().unwrap();
    let mut first = Server::start(&["--data", path(data.path()), "--field", "own", "--agent", "ada"]);
    let registered = first.call("akashik_register", json!({ "id": "ada", "role": "r" }));
    assert_eq!(registered["structuredContent"]["field_capabilities"]["field"], "own", "{registered}");
    first.call("akashik_record", unit("kept"));
    // The directory is taken as long.
    let second = akashik(&["mcp", "--data", path(data.path())]).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains(path(data.path())) && said.contains("--url"), "{said}");
    assert_eq!(first.end(), Some(0));
    // Who speaks is said on the command line: nothing needs to be registered again.
    let mut again = Server::start(&["--data", path(data.path()), "--field", "own", "--agent", "ada"]);
    let scope = json!({ "scope": { "role": "r", "max_units": 3, "include_own": true } });
    let brought = again.call("akashik_attune", scope);
    assert_eq!(brought["structuredContent"]["record"][0]["memory_unit"]["content"], "kept", "{brought}");
    assert_eq!(again.end(), Some(0));
}

#[test]
fn a_signal_ends_it_in_good_order() {
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::start(&["--data", path(data.path()), "--agent", "ada"]);
    server.call("akashik_register", json!({ "id": "ada", "role": "r" }));
    let id = server.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let verified = process::run(&["log", "verify", "--data", path(data.path())]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}

#[test]
fn it_speaks_to_a_hub_and_says_when_there_is_none() {
    let data = tempfile::tempdir().unwrap();
    let hub = HubProcess::start(data.path(), &["--field", "default", "--field", "other"]);
    let address = hub.address().to_owned();
    let mut server = Server::start(&["--url", &hub.url, "--field", "other"]);
    let registered = server.call("akashik_register", json!({ "id": "ada", "role": "r" }));
    assert_eq!(registered["structuredContent"]["field_capabilities"]["field"], "other", "{registered}");
    let status = server.request("resources/read", json!({ "uri": "akashik://field/status" }));
    assert!(status["result"]["contents"][0]["text"].as_str().unwrap().contains("\"other\""), "{status}");
    let refused = body(&server.call("akashik_record", json!({})));
    assert_eq!(refused["code"], "INVALID_TYPE", "{refused}");
    hub.kill();
    let mut once = unit("said twice");
    once["message_id"] = json!("once");
    let away = body(&server.call("akashik_record", once.clone()));
    assert_eq!((&away["code"], &away["recoverable"]), (&json!("OVERLOADED"), &json!(true)), "{away}");
    assert!(away["message"].as_str().unwrap().contains(&address), "{away}");
    assert!(server.request("tools/list", json!({}))["result"]["tools"].as_array().unwrap().len() >= 8);
    let hub = HubProcess::start_on(data.path(), &address, &["--field", "default", "--field", "other"]);
    assert_eq!(server.call("akashik_record", once)["structuredContent"]["status"], "accepted");
    assert_eq!(server.end(), Some(0));
    hub.stop();
}

#[test]
fn what_is_no_mcp_does_not_end_it() {
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::start(&["--data", path(data.path()), "--agent", "ada"]);
    for line in ["", "nonsense", "{", "[]", "7", "{\"jsonrpc\":\"2.0\"}", "\u{7f}"] {
        server.say(line);
    }
    let huge = unit(&"x".repeat(2 * 1024 * 1024));
    let call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": { "name": "akashik_record", "arguments": huge } });
    server.say(&call.to_string());
    // Errors of what came before may come first.
    server.say(&json!({ "jsonrpc": "2.0", "id": "last", "method": "tools/list" }).to_string());
    let listed = loop {
        let message = server.hear();
        if message["id"] == "last" {
            break message;
        }
        assert!(message["error"].is_object(), "{message}");
    };
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn whoever_leaves_at_once_or_asks_wrongly_is_no_crash() {
    let silent = run_with_input(&["mcp", "--url", "http://127.0.0.1:1"], "");
    assert_eq!(silent.status.code(), Some(0), "{}", String::from_utf8_lossy(&silent.stderr));
    for wrong in [
        &["mcp", "--url", "nonsense://x"][..],
        &["mcp", "--field", "a/b"],
        &["mcp", "--data", "x", "--field", "a b"],
    ] {
        let output = run_with_input(wrong, "");
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
