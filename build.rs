//! Builds the dashboard in `web/` and embeds it, where npm is there; the hub builds and serves without it too.
//!
//! npm runs only when a source of the page is newer than `web/dist`, and nothing but `web/dist` and `web/node_modules` is
//! written outside of Cargo's own directory. `AKASHIK_SKIP_WEB=1` leaves the page out. What goes wrong here is a warning
//! and never fails the build: the hub then serves a plain page that says what is missing.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// What the page is made of, beside `build.rs` itself.
const SOURCES: [&str; 6] =
    ["src", "index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=AKASHIK_SKIP_WEB");
    for source in SOURCES {
        println!("cargo::rerun-if-changed=web/{source}");
    }
    let web = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("web");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let built = if std::env::var_os("AKASHIK_SKIP_WEB").is_some_and(|skip| skip == "1") {
        Err("AKASHIK_SKIP_WEB is set".to_owned())
    } else {
        build(&web)
    };
    let files = match &built {
        Ok(()) => listed(&web.join("dist"))?,
        Err(why) => {
            println!("cargo::warning=the hub is built without its dashboard: {why}");
            Vec::new()
        }
    };
    let missing = built.err().unwrap_or_default();
    fs::write(out.join("dashboard_files.rs"), embedded(&web.join("dist"), &out, &files, &missing)?)?;
    Ok(())
}

/// Makes `web/dist` where it is older than what it is made of.
fn build(web: &Path) -> Result<(), String> {
    let newest = SOURCES.iter().filter_map(|source| newest(&web.join(source))).max();
    let made = modified(&web.join("dist/index.html"));
    if made.is_some() && made > newest {
        return Ok(());
    }
    let installed = modified(&web.join("node_modules/.package-lock.json"));
    if installed.is_none() || installed < modified(&web.join("package-lock.json")) {
        npm(web, &["ci", "--no-audit", "--no-fund"])?;
    }
    npm(web, &["run", "build"])
}

fn npm(web: &Path, arguments: &[&str]) -> Result<(), String> {
    let said = arguments.join(" ");
    // Its output would be taken for words to Cargo.
    let ran = Command::new("npm").args(arguments).current_dir(web).stdin(Stdio::null()).output();
    let output = ran.map_err(|error| format!("npm could not be run ({error}); install Node.js with npm"))?;
    if output.status.success() {
        return Ok(());
    }
    let told = [&output.stdout[..], &output.stderr[..]].concat();
    let told = String::from_utf8_lossy(&told);
    let last: Vec<&str> = told.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = last[last.len().saturating_sub(3)..].join(" | ");
    Err(format!("`npm {said}` failed in web/: {last}"))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// When the newest file of a file or folder was written.
fn newest(path: &Path) -> Option<SystemTime> {
    let Ok(entries) = fs::read_dir(path) else { return modified(path) };
    entries.filter_map(|entry| newest(&entry.ok()?.path())).max()
}

/// The files under a folder, by their paths in it, sorted.
fn listed(dist: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut found = Vec::new();
    let mut folders = vec![dist.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(dist)?.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The table of files as Rust. The bytes are copied next to it, so that `web/dist` may go.
fn embedded(dist: &Path, out: &Path, files: &[String], missing: &str) -> Result<String, Box<dyn Error>> {
    let copies = out.join("dashboard");
    if copies.exists() {
        fs::remove_dir_all(&copies)?;
    }
    fs::create_dir_all(&copies)?;
    let mut table = format!("static MISSING: &str = {missing:?};\nstatic FILES: &[File] = &[\n");
    let mut number = 0;
    for path in files.iter().filter(|path| !path.ends_with(".br") && !path.ends_with(".gz")) {
        let mut copied = |name: &str| -> Result<Option<PathBuf>, Box<dyn Error>> {
            if !files.iter().any(|known| known == name) {
                return Ok(None);
            }
            number += 1;
            let copy = copies.join(format!("{number}"));
            fs::copy(dist.join(name), &copy)?;
            Ok(Some(copy))
        };
        let form = |copy: Option<PathBuf>| {
            copy.map_or("None".to_owned(), |copy| format!("Some(include_bytes!({copy:?}))"))
        };
        let plain = copied(path)?.ok_or("a file that was listed is gone")?;
        let mut hasher = DefaultHasher::new();
        fs::read(&plain)?.hash(&mut hasher);
        let brotli = form(copied(&format!("{path}.br"))?);
        let gzip = form(copied(&format!("{path}.gz"))?);
        writeln!(
            table,
            "    File {{ path: {path:?}, tag: \"{:016x}\", plain: include_bytes!({plain:?}), brotli: {brotli}, gzip: {gzip} }},",
            hasher.finish()
        )?;
    }
    table.push_str("];\n");
    Ok(table)
}
