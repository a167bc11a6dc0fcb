//! `akashik bench`: measures a running hub from outside, over WebSockets, and the noticing of contradictions alone.
//!
//! Read `words` (what is written and asked), `wire` (a socket with next to no cost of its own), `load` (who
//! writes), `record`, `attune`, `compact`, `replay` and `fanout` (the measurements), `ear` (who listens), `hub_process` (what
//! the kernel says of the hub), `fsync` (what a disk takes alone), `tally`; apart from them `contradictions`, with
//! `false_conflicts`, and `summaries`.

mod attune;
mod compact;
mod contradictions;
mod ear;
mod false_conflicts;
mod fanout;
mod fsync;
mod hub_process;
mod load;
mod record;
mod replay;
mod summaries;
mod tally;
mod wire;
mod words;

use std::fs;
use std::path::Path;

use clap::Subcommand;
use serde::de::DeserializeOwned;

use super::exit::Failure;

/// What to measure.
#[derive(Debug, Subcommand)]
pub(super) enum Bench {
    /// Acknowledged RECORDs a second, and how long each takes
    Record(record::Record),
    /// How long ATTUNE takes, alone or beside writers
    Attune(attune::Attune),
    /// How long COMPACT takes, and what it costs those who operate meanwhile
    Compact(compact::Compact),
    /// How long REPLAY takes of a chain of units, and of one alone
    Replay(replay::Replay),
    /// How fast what is recorded reaches many who listen
    Fanout(fanout::Fanout),
    /// How well contradictions in text are noticed
    Contradictions(contradictions::Contradictions),
    /// What COMPACT's summaries keep, and whether they are found
    Summaries(summaries::Summaries),
}

impl Bench {
    /// Runs the measurement.
    pub fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Record(bench) => bench.run(),
            Self::Attune(bench) => bench.run(),
            Self::Compact(bench) => bench.run(),
            Self::Replay(bench) => bench.run(),
            Self::Fanout(bench) => bench.run(),
            Self::Contradictions(bench) => bench.run(),
            Self::Summaries(bench) => bench.run(),
        }
    }
}

/// A name for one run, so that agents and messages of two runs never meet.
fn run_name() -> String {
    format!("{:08x}", rand::random::<u32>())
}

/// A file of JSON lines.
fn lines<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>, Failure> {
    let told = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| told(&error))?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| told(&format_args!("line {number}: {error}")))
    };
    lines.map(read).collect()
}
