//! `akashik bench`: measures a running hub from outside, over WebSockets, and the noticing of contradictions alone.
//!
//! Read `words` (what is written and asked), `wire` (a socket with next to no cost of its own), `load` (who
//! writes), `record`, `attune`, `compact`, `replay` and `fanout` (the measurements), `ear` (who listens), `hub_process` (what
//! the kernel says of the hub), `fsync` (what a disk takes alone), `tally`; apart from them `contradictions`, with
//! `false_conflicts`.

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
mod tally;
mod wire;
mod words;

use clap::Subcommand;

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
        }
    }
}

/// A name for one run, so that agents and messages of two runs never meet.
fn run_name() -> String {
    format!("{:08x}", rand::random::<u32>())
}
