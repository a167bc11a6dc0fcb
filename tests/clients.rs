//! The clients in other languages, checked and tested with their own tools against this binary, and the examples.
//!
//! Where Python or Node are missing, or their packages cannot be had, a line says so and the test is skipped; where
//! `CI` is set, that fails it.

mod process;
#[path = "../examples/two_agents.rs"]
mod two_agents;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use process::HubProcess;
use tempfile::TempDir;

/// A folder of this repository.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// What cannot be done here is said on a line that no capturing holds back; in CI it is a failure.
fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    // Nobody may be listening.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// A command in a folder, which finds the binary under test.
fn command(program: impl AsRef<OsStr>, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("AKASHIK_BIN", env!("CARGO_BIN_EXE_akashik"));
    command
}

/// Runs a command to its end; what it said where it failed.
fn attempt(mut command: Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&said)))
}

#[track_caller]
fn must(command: Command) {
    if let Err(why) = attempt(command) {
        panic!("{why}");
    }
}

/// Installs packages unless that was done already for this very list of them.
fn installed(list: &Path, mark: &Path, install: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let wanted = std::fs::read(list).map_err(|error| format!("{}: {error}", list.display()))?;
    if std::fs::read(mark).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    install()?;
    std::fs::write(mark, wanted).map_err(|error| format!("{}: {error}", mark.display()))
}

#[test]
fn the_python_client_holds() {
    let here = folder("clients/python");
    let fit = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    if attempt(command("python3", &here, &["-c", fit])).is_err() {
        return skip("the Python client is not tested: python3 (3.10 or newer, with venv) is missing");
    }
    let venv = folder("target/clients/venv");
    let tool = |name: &str, arguments: &[&str]| command(venv.join("bin").join(name), &here, arguments);
    let packages = installed(&here.join("pyproject.toml"), &venv.join("installed"), || {
        attempt(command("python3", &here, &["-m", "venv", venv.to_str().unwrap_or_default()]))?;
        attempt(tool("pip", &["install", "--quiet", "--disable-pip-version-check", "--editable", ".[test]"]))
    });
    if let Err(why) = packages {
        return skip(&format!("the Python client is not tested: its packages cannot be installed: {why}"));
    }
    must(tool("ruff", &["format", "--check", ".", "../../examples"]));
    must(tool("ruff", &["check", ".", "../../examples"]));
    must(tool("mypy", &[]));
    must(tool("pytest", &[]));
}

#[test]
fn the_typescript_client_holds() {
    let here = folder("clients/typescript");
    let fit = "process.exit(process.versions.node.split('.')[0] < 20 ? 1 : 0)";
    let tools = attempt(command("node", &here, &["-e", fit]));
    if tools.and_then(|()| attempt(command("npm", &here, &["--version"]))).is_err() {
        return skip("the TypeScript client is not tested: node (20 or newer) or npm is missing");
    }
    let packages = installed(&here.join("package-lock.json"), &here.join("node_modules/.installed"), || {
        attempt(command("npm", &here, &["ci", "--ignore-scripts", "--no-audit", "--no-fund"]))
    });
    if let Err(why) = packages {
        return skip(&format!(
            "the TypeScript client is not tested: its packages cannot be installed: {why}"
        ));
    }
    must(command("npm", &here, &["test"]));
}

/// What a checkout holds of the TypeScript client: neither its packages nor what is built.
fn checked_out(to: &Path) {
    let from = folder("clients/typescript");
    std::fs::create_dir_all(to.join("src")).unwrap();
    for file in ["package.json", "package-lock.json", "prepare.mjs", "tsconfig.json"] {
        std::fs::copy(from.join(file), to.join(file)).unwrap();
    }
    for file in std::fs::read_dir(from.join("src")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join("src").join(file.file_name())).unwrap();
    }
}

#[test]
fn the_typescript_client_installs_from_a_checkout() {
    let place = TempDir::new().unwrap();
    let (client, project) = (place.path().join("client"), place.path().join("project"));
    checked_out(&client);
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("package.json"), r#"{ "name": "project", "private": true }"#).unwrap();
    let reached = attempt(command("npm", &client, &["view", "typescript", "version"]));
    if let Err(why) = reached {
        return skip(&format!("installing the TypeScript client is not tested: npm brings nothing: {why}"));
    }
    must(command("npm", &project, &["install", "--no-audit", "--no-fund", "../client"]));
    let made = "import('@akashik/client').then(({ Client }) => process.exit(Client.connect ? 0 : 1))";
    must(command("node", &project, &["--input-type=module", "-e", made]));
}

#[tokio::test]
async fn two_agents_share_a_memory() {
    let data = TempDir::new().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let mut said = Vec::new();
    two_agents::play(&hub.url, &mut said).await.unwrap();
    let said = String::from_utf8(said).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("researcher-31 recorded mem-"), "{said}");
    assert!(lines[1].starts_with("strategist-31 heard: Finding by researcher-31"), "{said}");
    assert!(lines[2].contains("grows at 15 % a year. (Finding by market_researcher"), "{said}");
    assert!(lines[3].starts_with("strategist-31 decided mem-"), "{said}");
    let events: Vec<_> = lines[4..].iter().filter_map(|line| line.split(' ').nth(4)).collect();
    assert_eq!(events, ["RECORD", "RECORD"], "the decision, and what it depends on: {said}");
    // On the same hub it runs again.
    two_agents::play(&hub.url, &mut Vec::new()).await.unwrap();
    hub.stop();
}
