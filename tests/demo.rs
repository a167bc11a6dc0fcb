//! `akashik demo`: the story, played into a hub of its own by the real binary.

mod process;

use std::collections::BTreeSet;

use process::{HubProcess, run};
use serde_json::Value;

/// What a command prints of a GET endpoint, by way of `akashik`'s own clients.
fn log_of(data: &std::path::Path) -> Vec<Value> {
    let exported = run(&["log", "export", "--data", data.to_str().unwrap(), "--field", "default"]);
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    String::from_utf8(exported.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn status_of(url: &str) -> Value {
    serde_json::from_slice(&run(&["status", "--url", url, "--json"]).stdout).unwrap()
}

#[test]
fn the_story_shows_all_that_memory_can_be() {
    let data = tempfile::tempdir().unwrap();
    let hub = HubProcess::start(data.path(), &[]);
    let played = run(&["demo", "--url", &hub.url, "--pace", "fast", "--once"]);
    assert!(played.status.success(), "{}", String::from_utf8_lossy(&played.stderr));
    let told = String::from_utf8(played.stdout).unwrap();
    assert!(told.starts_with(&format!("Watch it at {}/\n", hub.url)), "{told}");
    let status = status_of(&hub.url);
    assert_eq!(status["agents_active"], 0, "everybody left in good order: {status}");
    assert_eq!((&status["conflicts"], &status["conflicts_unresolved"]), (&4.into(), &1.into()), "{status}");
    for kind in ["active", "contested", "superseded", "retracted"] {
        assert!(status["units"][kind].as_u64().unwrap() > 0, "{kind}: {status}");
    }

    // It does not belong among real memory, unless that is wanted; then its agents are others.
    let before = status["log_entries"].clone();
    let refused = run(&["demo", "--url", &hub.url, "--pace", "fast", "--once"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--force"));
    assert_eq!(status_of(&hub.url)["log_entries"], before);
    let forced = run(&["demo", "--url", &hub.url, "--pace", "fast", "--once", "--force"]);
    assert!(forced.status.success(), "{}", String::from_utf8_lossy(&forced.stderr));
    assert_eq!(status_of(&hub.url)["agents"], 10);
    hub.stop();

    assert!(told.contains("the Field notices conflict-"), "{told}");
    let log = log_of(data.path());
    let texts = Value::from(log).to_string();
    let missing = |names: &[&'static str]| -> BTreeSet<&'static str> {
        names.iter().copied().filter(|name| !texts.contains(&format!("\"type\":\"{name}\""))).collect()
    };
    let types = [
        "finding",
        "decision",
        "observation",
        "intention",
        "assumption",
        "constraint",
        "question",
        "contradiction",
        "synthesis",
        "correction",
        "human_directive",
    ];
    let relations = [
        "supports",
        "contradicts",
        "depends_on",
        "supersedes",
        "caused_by",
        "elaborates",
        "answers",
        "blocks",
        "informs",
    ];
    assert_eq!((missing(&types), missing(&relations)), (BTreeSet::new(), BTreeSet::new()));
}

#[test]
fn what_a_level_does_not_serve_is_left_out() {
    for (level, conflicts) in [("2", true), ("1", false), ("0", false)] {
        let data = tempfile::tempdir().unwrap();
        let hub = HubProcess::start(data.path(), &["--level", level]);
        let played = run(&["demo", "--url", &hub.url, "--pace", "fast", "--once"]);
        let told = String::from_utf8(played.stdout).unwrap();
        let said = String::from_utf8_lossy(&played.stderr);
        assert!(played.status.success(), "level {level}: {said}\n{told}");
        assert_eq!(told.contains("the Field notices conflict-"), conflicts, "level {level}: {told}");
        assert_eq!(told.contains("Left out, because"), !conflicts, "level {level}: {told}");
        assert!(told.contains("(promises)"), "level {level}: it ends as it should: {told}");
        hub.stop();
    }
}

#[test]
fn without_a_hub_it_says_so() {
    let nobody = run(&["demo", "--url", "http://127.0.0.1:9", "--once"]);
    assert_eq!(nobody.status.code(), Some(3), "{}", String::from_utf8_lossy(&nobody.stderr));
    let nonsense = run(&["demo", "--url", "nonsense"]);
    assert_eq!(nonsense.status.code(), Some(2));
}
