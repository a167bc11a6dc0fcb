//! The `akashik` binary: reads the command line, calls a command, exits with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    akashik_hub::cli::run()
}
