//! The command line: one file per command, and what several of them need.
//!
//! Read `serve` and `settings` for the hub's side, `log` for a data directory at rest, `ask` for what
//! the client commands share, then any of those, and `bench`.

mod ask;
mod attune;
mod bench;
mod commit;
mod compact;
mod demo;
mod deregister;
mod detect;
mod done;
mod exit;
mod flag_names;
mod give_up;
mod log;
mod logging;
mod mcp;
mod merge;
mod models;
mod record;
mod register;
mod replay;
mod screen;
mod serve;
mod settings;
mod status;
mod subscribe;

use std::process::ExitCode;

use crate::protocol::Operation;
use clap::{Parser, Subcommand};

/// Shared memory for teams of AI agents: the Akashik Protocol's hub, and its client.
#[derive(Debug, Parser)]
#[command(name = "akashik", version, max_term_width = 110)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the hub
    Serve(Box<settings::Settings>),
    /// Read a data directory offline
    #[command(subcommand)]
    Log(log::LogCommand),
    /// Join a Field as an agent
    Register(register::Register),
    /// Leave a Field
    Deregister(deregister::Deregister),
    /// Record a memory unit
    Record(Box<record::Record>),
    /// Be brought what matters to a role
    Attune(Box<attune::Attune>),
    /// List conflicts, check one unit for them, or scan the Field
    Detect(detect::Detect),
    /// Resolve a conflict
    Merge(merge::Merge),
    /// Archive, summarize or purge older units
    Compact(compact::Compact),
    /// Reconstruct how something came about
    Replay(replay::Replay),
    /// Be told of events as they happen, line by line
    Subscribe(Box<subscribe::Subscribe>),
    /// Take a committed unit back (Extension)
    Retract(give_up::GiveUp),
    /// Make a draft everyone's memory (Extension)
    Commit(commit::Commit),
    /// Give a draft up (Extension)
    Discard(give_up::GiveUp),
    /// Show a Field's figures
    Status(status::Status),
    /// Serve MCP over stdin and stdout, for a client that starts its servers itself
    Mcp(mcp::Mcp),
    /// Play a story into an empty Field, to see it move
    Demo(demo::Demo),
    /// Measure a running hub
    #[command(subcommand)]
    Bench(bench::Bench),
}

/// Runs the program: reads the command line, calls the command, says how it went.
///
/// Exit codes: 0 ok, 1 refused or failed, 2 usage, 3 the hub cannot be reached.
pub fn run() -> ExitCode {
    let outcome = match CommandLine::parse().command {
        Command::Serve(settings) => serve::run(*settings),
        Command::Log(command) => command.run(),
        Command::Register(command) => command.run(),
        Command::Deregister(command) => command.run(),
        Command::Record(command) => command.run(),
        Command::Attune(command) => command.run(),
        Command::Detect(command) => command.run(),
        Command::Merge(command) => command.run(),
        Command::Compact(command) => command.run(),
        Command::Replay(command) => command.run(),
        Command::Subscribe(command) => command.run(),
        Command::Retract(command) => command.run(Operation::Retract),
        Command::Commit(command) => command.run(),
        Command::Discard(command) => command.run(Operation::Discard),
        Command::Status(command) => command.run(),
        Command::Mcp(command) => command.run(),
        Command::Demo(command) => command.run(),
        Command::Bench(command) => command.run(),
    };
    outcome.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }
}
