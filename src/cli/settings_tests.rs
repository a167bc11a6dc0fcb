//! Precedence, round trip and validation of the settings.

use clap::Parser;

use super::*;
use crate::config::{EmbeddingSettings, SummarySettings};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    settings: Settings,
}

fn flags(words: &[&str]) -> Settings {
    Line::try_parse_from([&["serve"], words].concat()).unwrap().settings
}

fn file(text: &str) -> Settings {
    toml::from_str(text).unwrap()
}

fn complaint(settings: Settings) -> String {
    settings.validate().unwrap_err()
}

#[test]
fn nothing_said_is_the_default() {
    let effective = Settings::default().validate().unwrap();
    assert_eq!(effective.config, Config::default());
    assert_eq!((effective.log_format, effective.log_filter.as_str()), (LogFormat::Text, "info"));
}

#[test]
fn flags_come_before_the_file() {
    let merged = flags(&["--level", "1", "--field", "a", "--field", "b", "--insecure=false"])
        .or(file("level = 2\nfield = [\"c\"]\ninsecure = true\ngrace_seconds = 5\n"));
    let config = merged.validate().unwrap().config;
    assert_eq!((config.level, config.insecure, config.grace_ms), (1, false, 5000));
    assert_eq!(config.fields, ["a", "b"]);
}

#[test]
fn every_flag_has_its_environment_variable_and_its_key() {
    use clap::CommandFactory;
    let embedding = EmbeddingSettings {
        dimensions: Some(8),
        timeout_ms: 9,
        ca_file: Some("ca.pem".into()),
        ..EmbeddingSettings::default()
    };
    let summary = SummarySettings {
        timeout_ms: 9,
        total_ms: 10,
        ca_file: Some("ca.pem".into()),
        ..SummarySettings::default()
    };
    let printed = Config {
        max_log_bytes: Some(1 << 30),
        embedding: Some(embedding),
        summary: Some(summary),
        ..Config::default()
    };
    let printed = Effective { config: printed, log_format: LogFormat::Json, log_filter: "x".into() };
    let table: toml::Table = toml::from_str(&printed.to_toml().ok().unwrap()).unwrap();
    for arg in Line::command().get_arguments() {
        let id = arg.get_id().as_str();
        if ["help", "config", "print_config", "shared_drafts", "no_meaning", "tokens"].contains(&id) {
            continue;
        }
        assert!(table.contains_key(id), "{id} is not printed");
        let env = arg.get_env().and_then(|e| e.to_str());
        assert_eq!(env, Some(format!("AKASHIK_{}", id.to_uppercase()).as_str()));
        assert_eq!(arg.get_long(), Some(id.replace('_', "-").as_str()));
    }
}

#[test]
fn the_audit_of_reads_is_chosen_by_name_and_yes_and_no_still_mean_what_they_meant() {
    let audit = |settings: Settings| settings.validate().unwrap().config.audit_reads;
    assert_eq!(audit(flags(&[])), Audit::Delivered);
    for (said, meant) in [
        ("--audit-reads", Audit::All),
        ("--audit-reads=true", Audit::All),
        ("--audit-reads=all", Audit::All),
        ("--audit-reads=delivered", Audit::Delivered),
        ("--audit-reads=off", Audit::Off),
        ("--audit-reads=0", Audit::Off),
    ] {
        assert_eq!(audit(flags(&[said])), meant, "{said}");
    }
    for (said, meant) in [("true", Audit::All), ("false", Audit::Off), ("\"delivered\"", Audit::Delivered)] {
        assert_eq!(audit(file(&format!("audit_reads = {said}"))), meant, "{said}");
    }
}

#[test]
fn what_is_no_such_value_at_all_is_told_by_its_key() {
    for text in ["snapshot_entries = -1", "snapshot_entries = \"many\"", "audit_reads = 7"] {
        let said = toml::from_str::<Settings>(text).expect_err(text).to_string();
        assert!(said.contains(text.split(' ').next().unwrap()), "{said}");
    }
    for flag in ["--snapshot-entries=-1", "--snapshot-entries=", "--audit-reads=sometimes"] {
        assert!(Line::try_parse_from(["serve", flag]).is_err(), "{flag}");
    }
}

#[test]
fn what_is_printed_reads_back_as_the_same() {
    let said = flags(&[
        "--listen",
        "0.0.0.0:0",
        "--insecure",
        "--data",
        "/tmp/a \"b\"",
        "--field",
        "x,Y-2",
        "--level",
        "0",
        "--drafts",
        "shared",
        "--meaning=false",
        "--embedding-url",
        "http://localhost:9",
        "--embedding-model",
        "m",
        "--embedding-dimensions",
        "384",
        "--embedding-timeout-seconds",
        "0.5",
        "--summary-url",
        "https://localhost:9/chat",
        "--summary-model",
        "writer",
        "--summary-ca-file",
        "ca.pem",
        "--summary-total-seconds",
        "40",
        "--audit-reads=false",
        "--grace-seconds",
        "0.25",
        "--max-log-bytes",
        "1000000",
        "--allow-origin",
        "https://a.example",
        "--allow-host",
        "h",
        "--log-format",
        "json",
        "--log-filter",
        "debug,h2=off",
        "--epoch-lead",
        "7",
        "--vote-quorum",
        "5",
        "--message-max-bytes",
        "5000",
        "--content-max-bytes",
        "5000",
    ]);
    let effective = said.validate().unwrap();
    assert_eq!((effective.config.grace_ms, effective.config.shared_drafts), (250, true));
    assert!(!effective.config.meaning && effective.config.audit_reads == Audit::Off);
    let embedding = effective.config.embedding.as_ref().expect("a model outside");
    assert_eq!((embedding.dimensions, embedding.timeout_ms), (Some(384), 500));
    let summary = effective.config.summary.as_ref().expect("a language model outside");
    assert_eq!((summary.timeout_ms, summary.total_ms), (10_000, 40_000));
    let again = file(&effective.to_toml().ok().unwrap()).validate().unwrap();
    assert_eq!(again, effective);
}

#[test]
fn unknown_keys_are_named() {
    let error = toml::from_str::<Settings>("level = 1\nlevle = 2\n").unwrap_err().to_string();
    assert!(error.contains("levle"), "{error}");
    for own in ["config = \"x\"", "print_config = true", "shared_drafts = true", "no_meaning = true"] {
        assert!(toml::from_str::<Settings>(own).is_err(), "{own}");
    }
}

#[test]
fn each_wrong_value_is_refused_by_name() {
    for (text, key) in [
        ("level = 4", "level"),
        ("embedding_url = \"http://h\"", "embedding_model"),
        ("embedding_url = \"http://me:secret@h\"\nembedding_model = \"m\"", "AKASHIK_EMBEDDING_KEY"),
        ("summary_url = \"https://me@h/v1?x\"\nsummary_model = \"m\"", "AKASHIK_SUMMARY_KEY"),
        ("embedding_model = \"m\"", "embedding_url"),
        (
            "embedding_url = \"http://h\"\nembedding_model = \"m\"\nembedding_dimensions = 0",
            "embedding_dimensions",
        ),
        (
            "embedding_url = \"http://h\"\nembedding_model = \"m\"\nembedding_dimensions = 5000",
            "embedding_dimensions",
        ),
        ("summary_url = \"http://h\"", "summary_model"),
        ("summary_total_seconds = 5", "summary_url"),
        (
            "summary_url = \"http://h\"\nsummary_model = \"m\"\nsummary_timeout_seconds = 0",
            "summary_timeout_seconds",
        ),
        ("field = []", "field"),
        ("field = [\"a b\"]", "field"),
        ("field = [\"\"]", "field"),
        ("field = [\"lab\", \"Lab\"]", "twice"),
        ("listen = \"nowhere\"", "listen"),
        ("grace_seconds = 0", "grace_seconds"),
        ("grace_seconds = nan", "grace_seconds"),
        ("heartbeat_seconds = 70", "silence_seconds"),
        ("connections_max = 0", "connections_max"),
        ("max_log_bytes = 10", "max_log_bytes"),
        ("message_max_bytes = 10", "message_max_bytes"),
        ("content_max_bytes = 2000000", "content_max_bytes"),
        ("epoch_lead = 0", "epoch_lead"),
        ("vote_quorum = 0", "vote_quorum"),
        ("vote_quorum = 101", "vote_quorum"),
        ("relations_max = 1000000", "relations_max"),
        ("allow_origin = [\"*\"]", "allow_origin"),
        ("allow_host = [\"a/b\"]", "allow_host"),
        ("tokens = \"t.toml\"", "not served yet"),
    ] {
        let said = complaint(file(text));
        assert!(said.contains(key), "{text}: {said}");
    }
}

#[test]
fn only_loopback_without_insecure() {
    for open in ["0.0.0.0:1", "[::]:1", "192.168.1.2:7420"] {
        assert!(complaint(flags(&["--listen", open])).contains("loopback"), "{open}");
        assert!(flags(&["--listen", open, "--insecure"]).validate().is_ok());
    }
    for own in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "localhost:1"] {
        assert!(flags(&["--listen", own]).validate().is_ok(), "{own}");
    }
}
