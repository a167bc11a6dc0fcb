//! The real binary, started as a process of its own: a hub on any free port, or one command.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The binary, with nothing in its environment that configures it.
pub fn akashik(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_akashik"));
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("AKASHIK_") {
            command.env_remove(key);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs one command to its end.
pub fn run(arguments: &[&str]) -> Output {
    akashik(arguments).output().unwrap()
}

/// Runs one command that reads this from stdin.
pub fn run_with_input(arguments: &[&str], input: &str) -> Output {
    let mut child = akashik(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A running hub; killed when dropped.
pub struct HubProcess {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// `http://127.0.0.1:PORT`.
    pub url: String,
}

impl HubProcess {
    /// Starts a hub on a data directory, on any free port, and waits for its one line.
    pub fn start(data: &Path, more: &[&str]) -> Self {
        Self::start_on(data, "127.0.0.1:0", more)
    }

    /// Starts a hub on a data directory and an address.
    pub fn start_on(data: &Path, listen: &str, more: &[&str]) -> Self {
        let data = data.to_str().unwrap();
        let mut child = akashik(&["serve", "--listen", listen, "--data", data, "--log-filter", "warn"])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let url = line.strip_prefix("akashik: listening on ").and_then(|rest| rest.strip_suffix('\n'));
        let url = url.unwrap_or_else(|| panic!("the first line is {line:?}")).to_owned();
        Self { child, stdout, url }
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end; returns it and what else was on stdout.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        // Ends when the process does.
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }

    /// Stops it in good order.
    pub fn stop(self) {
        self.signal("TERM");
        let (status, rest) = self.wait();
        assert!(status.success(), "{status}");
        assert_eq!(rest, "", "nothing but the one line is on stdout");
    }

    /// Kills it as a power cut would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        // Already gone where a test has seen its end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until something holds; for what no event tells.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::yield_now();
    }
}
