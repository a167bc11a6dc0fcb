//! `akashik demo`: a small team of agents works on a question, live, over WebSockets of their own, so that a newcomer
//! sees a Field move within a minute.
//!
//! `story` is what they do; `stage` plays it: who is there, what was recorded under which name, and how fast it goes.

mod stage;
mod story;

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::ask::DEFAULT_URL;
use super::exit::Failure;
use crate::client::http::HttpClient;
use crate::client::{ClientOptions, HubAddress};
use crate::protocol::Capabilities;
use stage::Stage;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How fast the story goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pace {
    /// All of it within ten seconds
    Fast,
    /// So that each step can be read as it happens: about a minute
    Slow,
}

impl Pace {
    /// The pause between two steps.
    fn pause(self) -> Duration {
        match self {
            Self::Fast => Duration::from_millis(180),
            Self::Slow => Duration::from_millis(1_500),
        }
    }
}

/// Plays a story into a Field.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// The hub
    #[arg(long, env = "AKASHIK_URL", value_name = "URL", default_value = DEFAULT_URL)]
    url: String,
    /// The Field; without it the one in the URL, else the hub's first
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// Token, where the hub asks for one
    #[arg(long, env = "AKASHIK_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// How fast it goes
    #[arg(long, value_enum, default_value = "slow")]
    pace: Pace,
    /// End after the first round; without it the team takes on one question after the other until Ctrl-C
    #[arg(long)]
    once: bool,
    /// Write into a Field that is not empty too
    #[arg(long)]
    force: bool,
}

impl Demo {
    /// Runs the command.
    pub fn run(&self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            tokio::select! {
                played = self.play() => played,
                // The connections end with the process, and the hub notices.
                _ = tokio::signal::ctrl_c() => Ok(()),
            }
        })
    }

    async fn play(&self) -> Result<(), Failure> {
        let mut address: HubAddress = self.url.parse().map_err(Failure::usage)?;
        if let Some(field) = &self.field {
            address = address.with_field(field).map_err(Failure::usage)?;
        }
        let token = self.token.clone().filter(|token| !token.is_empty());
        let http = HttpClient { address, token: token.clone(), patience: PATIENCE };
        let status: Value =
            serde_json::from_str(http.get("field/status", None).await?.get()).map_err(Failure::failed)?;
        let is_empty = status["agents"] == 0 && status["log_entries"] == 0;
        if !is_empty && !self.force {
            return Err(Failure::failed(format!(
                "the Field {} is not empty, and a demonstration does not belong among real memory; name another with \
                 --field, or give --force",
                status["name"]
            )));
        }
        let can: Capabilities = serde_json::from_str(http.get("field/capabilities", None).await?.get())
            .map_err(Failure::failed)?;
        // On a Field that others use, the team's names must be nobody's.
        let suffix = if is_empty { String::new() } else { format!("-{:04x}", rand::random::<u16>()) };
        let mut options = ClientOptions::new("").patient_for(PATIENCE);
        (options.token, options.field) = (token, self.field.clone());
        let mut stage = Stage::new(&self.url, options, suffix, self.pace.pause(), can);
        stage.say(&format!("Watch it at {}/", self.url.trim_end_matches('/')))?;
        stage.tell_what_is_missing()?;
        for round in 0.. {
            story::play(&mut stage, round).await?;
            if self.once {
                break;
            }
            stage.rest().await;
        }
        stage.leave().await
    }
}
