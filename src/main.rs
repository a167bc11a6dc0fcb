//! The `akashik` binary: reads the command line, calls a command, exits with its code.

use std::process::ExitCode;

/// A hub that lets go of a large part of what it holds (archived texts, a state that was read anew) is to give it back to
/// the machine. The allocator of Linux's C library keeps most of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    akashik_hub::cli::run()
}
