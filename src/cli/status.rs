//! `akashik status`: a Field's figures.

use clap::Args;

use super::ask::Hub;
use super::exit::Failure;
use super::screen;

/// GET field/status.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    hub: Hub,
}

impl Status {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let response = self.hub.get("field/status")?;
        screen::show_response(self.hub.json, &response, screen::figures)
    }
}
