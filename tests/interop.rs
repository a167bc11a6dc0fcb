//! Clients that nobody here wrote, against the real binary: the official SDKs of MCP for Python and TypeScript, the
//! MCP inspector, and schemathesis on the API's description.
//!
//! They are installed under `target/interop`, in the versions that `tests/interop/` names. Where Python or Node are
//! missing, or nothing can be installed, the test says so and is skipped, except where `CI` is set.

mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use process::{HubProcess, run};

/// No client may take longer than this; installing may.
const PATIENCE: Duration = Duration::from_secs(200);
const INSTALLING: Duration = Duration::from_secs(280);

/// What stands in `tests/interop/`.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(name)
}

/// Where clients are installed.
fn place(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("interop").join(name);
    fs::create_dir_all(&place).unwrap();
    place
}

/// Runs a command to its end, or kills it.
fn finish(mut command: Command, patience: Duration) -> Result<Output, String> {
    let shown = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{shown}: {error}"))?;
    let id = child.id();
    let (told, ended) = std::sync::mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        if ended.recv_timeout(patience) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").arg(id.to_string()).status();
        }
    });
    // Reads both pipes while it waits, so that neither fills up.
    let stderr = child.stderr.take();
    let errors = thread::spawn(move || stderr.map(std::io::read_to_string));
    let stdout = child.stdout.take().map(std::io::read_to_string);
    let status = child.wait().map_err(|error| format!("{shown}: {error}"))?;
    drop(told);
    watch.join().unwrap();
    let text =
        |read: Option<std::io::Result<String>>| read.and_then(Result::ok).unwrap_or_default().into_bytes();
    Ok(Output { status, stdout: text(stdout), stderr: text(errors.join().unwrap()) })
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a client that must be content.
#[track_caller]
fn content(command: Command) -> String {
    let output = finish(command, PATIENCE).unwrap();
    let said = text(&output);
    assert!(output.status.success(), "{}\n{said}", output.status);
    said
}

fn installs(command: Command) -> Result<(), String> {
    let output = finish(command, INSTALLING)?;
    if output.status.success() { Ok(()) } else { Err(text(&output)) }
}

/// Says why a test is skipped; where `CI` is set, nothing is.
fn skipped(what: &str, why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{what} cannot be used: {why}");
    let reason = why.lines().last().unwrap_or_default();
    eprintln!("skipped: {what} cannot be used here: {reason}");
}

/// Whether what is installed is what is asked for.
fn is_installed(place: &Path, wanted: &Path) -> bool {
    let stamp = fs::read(place.join("installed")).unwrap_or_default();
    stamp == fs::read(wanted).unwrap()
}

fn stamp(place: &Path, wanted: &Path) {
    fs::copy(wanted, place.join("installed")).unwrap();
}

/// The programs of Python's packages.
fn python() -> Option<PathBuf> {
    static PROGRAMS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = PROGRAMS.get_or_init(|| {
        let (place, wanted) = (place("python"), source("requirements.txt"));
        let programs = place.join("venv/bin");
        if !is_installed(&place, &wanted) {
            let mut make = Command::new("python3");
            make.args(["-m", "venv", "--clear"]).arg(place.join("venv"));
            installs(make)?;
            let mut install = Command::new(programs.join("pip"));
            install.args(["install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&wanted);
            installs(install)?;
            stamp(&place, &wanted);
        }
        Ok(programs)
    });
    made.as_ref().map_err(|why| skipped("Python", why)).ok().cloned()
}

/// Where Node's packages are, the scripts beside them.
fn node() -> Option<PathBuf> {
    static PLACE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = PLACE.get_or_init(|| {
        let (place, wanted) = (place("node"), source("package-lock.json"));
        for file in ["package.json", "package-lock.json", "mcp_client.mjs"] {
            fs::copy(source(file), place.join(file)).map_err(|error| error.to_string())?;
        }
        let mut look = Command::new("node");
        look.arg("--version");
        installs(look)?;
        if !is_installed(&place, &wanted) {
            let mut install = Command::new("npm");
            install.current_dir(&place).args(["ci", "--no-fund", "--no-audit", "--ignore-scripts"]);
            installs(install)?;
            stamp(&place, &wanted);
        }
        Ok(place)
    });
    made.as_ref().map_err(|why| skipped("Node", why)).ok().cloned()
}

/// A hub with two Fields, and an empty directory beside it.
fn hub() -> (HubProcess, tempfile::TempDir) {
    let data = tempfile::tempdir().unwrap();
    let hub = HubProcess::start(&data.path().join("hub"), &["--field", "default", "--field", "other"]);
    (hub, data)
}

const BINARY: &str = env!("CARGO_BIN_EXE_akashik");

#[test]
fn the_python_sdk_of_mcp() {
    let Some(programs) = python() else { return };
    let (hub, data) = hub();
    let mut client = Command::new(programs.join("python"));
    client.args(["-W", "ignore"]).arg(source("mcp_client.py")).args([&hub.url, BINARY]).arg(data.path());
    assert!(content(client).contains("the Python SDK is content"));
    hub.stop();
}

#[test]
fn the_typescript_sdk_of_mcp() {
    let Some(place) = node() else { return };
    let (hub, data) = hub();
    let mut client = Command::new("node");
    client.current_dir(&place).arg("mcp_client.mjs").args([&hub.url, BINARY]).arg(data.path());
    assert!(content(client).contains("the TypeScript SDK is content"));
    hub.stop();
}

#[test]
fn the_inspector_of_mcp() {
    let Some(place) = node() else { return };
    let (hub, _data) = hub();
    let (over_http, url) = (format!("{}/mcp", hub.url), hub.url.clone());
    let inspect = |server: &[&str], method: &[&str]| {
        let mut inspector = Command::new(place.join("node_modules/.bin/mcp-inspector"));
        inspector.arg("--cli").args(server).args(method);
        content(inspector)
    };
    for (agent, server) in [
        ("over-http", &[&*over_http, "--transport", "http"][..]),
        ("over-pipes", &[BINARY, "mcp", "--url", &url]),
    ] {
        assert!(inspect(server, &["--method", "tools/list"]).contains("akashik_replay"));
        assert!(inspect(server, &["--method", "resources/list"]).contains("akashik://conflicts"));
        assert!(inspect(server, &["--method", "prompts/list"]).contains("akashik_agent"));
        let id = format!("id={agent}");
        let register =
            ["--method", "tools/call", "--tool-name", "akashik_register", "--tool-arg", &id, "role=tester"];
        assert!(inspect(server, &register).contains("\"registered\""), "{agent}");
    }
    hub.stop();
}

#[test]
fn the_description_is_valid_and_true() {
    let Some(programs) = python() else { return };
    let (hub, data) = hub();
    let registered = run(&["register", "--url", &hub.url, "--agent", "tester", "--role", "tester"]);
    assert!(registered.status.success(), "{}", text(&registered));
    let description = format!("{}/openapi.json", hub.url);
    let mut validate = Command::new(programs.join("python"));
    validate.args([
        "-c",
        "import sys, openapi_spec_validator as v; v.validate_url(sys.argv[1])",
        &description,
    ]);
    content(validate);
    let mut tester = Command::new(programs.join("st"));
    tester
        .current_dir(data.path())
        .arg("--config-file")
        .arg(source("schemathesis.toml"))
        .args(["run", &description, "-H", "Akashik-Agent: tester", "--phases", "examples,coverage,fuzzing"])
        // Streams do not end, and under a Field's name stands the same again.
        .args(["--exclude-path-regex", "(/events|^/v1/fields/.*)$", "--workers", "1", "--no-color"])
        .args(["--max-examples", "10", "--seed", "1", "--max-time", "60", "--generation-database", "none"])
        .args(["--request-timeout", "20", "--warnings", "off"]);
    let begun = Instant::now();
    let said = content(tester);
    eprintln!("schemathesis, after {:?}: {}", begun.elapsed(), said.lines().last().unwrap_or_default());
    hub.stop();
}
