//! The walls of the house: which room may use which. Read from the sources, so that nobody needs to remember.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each room with the rooms and crates it may use; `std`, `core` and itself are always allowed.
const ROOMS: &[(&str, &[&str])] = &[
    ("protocol", &["limits", "serde", "serde_json", "humantime", "schemars"]),
    (
        "relevance",
        &[
            "blake3",
            "bpe_openai",
            "hashbrown",
            "pulp",
            "rust_stemmers",
            "unicode_normalization",
            "unicode_segmentation",
        ],
    ),
    ("field", &["protocol", "relevance", "limits", "serde", "serde_json", "imbl", "blake3"]),
    ("log", &["rusqlite", "serde_json", "thiserror", "crc32fast"]),
    (
        "hub",
        &[
            "field",
            "log",
            "relevance",
            "protocol",
            "limits",
            "config",
            "tokio",
            "futures",
            "dashmap",
            "arc_swap",
            "parking_lot",
            "rayon",
            "serde",
            "serde_json",
            "thiserror",
            "tracing",
            "imbl",
            "prometheus_client",
            "http",
            "rustix",
            "hyper",
            "hyper_util",
            "http_body_util",
            "bytes",
            "blake3",
            "crc32fast",
            "tokio_rustls",
            "rustls_native_certs",
        ],
    ),
    ("mcp", &["protocol", "limits", "rmcp", "serde_json", "tokio"]),
    (
        "transport",
        &[
            "hub",
            "mcp",
            "rmcp",
            "tokio_util",
            "protocol",
            "limits",
            "config",
            "tokio",
            "tokio_tungstenite",
            "futures",
            "warp",
            "hyper",
            "hyper_util",
            "http",
            "http_body",
            "http_body_util",
            "bytes",
            "tower",
            "tower_http",
            "serde",
            "serde_json",
            "rand",
            "tracing",
        ],
    ),
    (
        "client",
        &[
            "protocol",
            "limits",
            "tokio",
            "tokio_tungstenite",
            "futures",
            "hyper",
            "hyper_util",
            "http",
            "http_body_util",
            "bytes",
            "rand",
            "serde",
            "serde_json",
            "thiserror",
            "tracing",
        ],
    ),
];

/// Words in paths that name no crate or room: the language's own.
const OWN: &[&str] = &["std", "core", "self", "super", "crate", "Self"];

fn sources(of: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(of).expect("a folder of sources") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found
}

/// The crates and rooms that a source names in its `use` lines and in `crate::room` paths, tests aside.
fn used(text: &str) -> BTreeSet<String> {
    let code: String = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let word =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let mut names = BTreeSet::new();
    for line in code.lines() {
        let line = line.trim_start();
        let path = line
            .strip_prefix("pub(crate) ")
            .or(line.strip_prefix("pub(super) "))
            .or(line.strip_prefix("pub "))
            .unwrap_or(line);
        if let Some(path) = path.strip_prefix("use ")
            && !path.starts_with("crate::")
        {
            let name = word(path.trim_start_matches("::"));
            // `use` of a sibling module, as in `mod.rs` files, names no crate.
            let sibling = code.contains(&format!("mod {name};"));
            if path[name.len()..].starts_with("::") && !sibling {
                names.insert(name);
            }
        }
    }
    for (at, _) in code.match_indices("crate::") {
        names.insert(word(&code[at + "crate::".len()..]));
    }
    names.retain(|name| !name.is_empty() && !OWN.contains(&name.as_str()));
    names
}

#[test]
fn each_room_uses_only_what_it_may() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut trespasses = Vec::new();
    for (room, allowed) in ROOMS {
        for source in sources(&root.join(room)) {
            let is_test = source.components().any(|part| part.as_os_str() == "tests")
                || ["_tests.rs", "conformance.rs", "crash.rs"]
                    .iter()
                    .any(|end| source.to_string_lossy().ends_with(end));
            if is_test {
                continue;
            }
            let text = fs::read_to_string(&source).expect("a readable source");
            for name in used(&text) {
                // Names that start with a capital are items of this file's own enums and the like.
                let item = name.starts_with(char::is_uppercase);
                if !item && name != *room && !allowed.contains(&name.as_str()) {
                    trespasses.push(format!("{} uses {name}", source.display()));
                }
            }
        }
    }
    assert!(trespasses.is_empty(), "a wall is broken:\n{}", trespasses.join("\n"));
}

#[test]
fn the_walls_are_seen() {
    let text = "use tokio::sync::mpsc;\nuse std::fmt;\nuse super::x;\n// use warp::Filter;\nfn f() { crate::hub::go() }";
    assert_eq!(used(text), BTreeSet::from(["tokio".to_owned(), "hub".to_owned()]));
}

#[test]
fn every_source_says_what_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mute: Vec<_> = [root.join("src"), root.join("tests"), root.join("benches")]
        .iter()
        .flat_map(|folder| sources(folder))
        .filter(|source| !fs::read_to_string(source).expect("a readable source").starts_with("//!"))
        .collect();
    assert!(mute.is_empty(), "no module documentation: {mute:?}");
}
