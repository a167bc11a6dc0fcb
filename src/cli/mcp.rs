//! `akashik mcp`: MCP over stdin and stdout, for clients that start their servers themselves (wire, section 4).
//!
//! It speaks to a running hub, or holds a Field of its own in a data directory. Where the hub is away, tools say so and
//! work again once it is back.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rmcp::model::Extensions;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServiceExt};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tokio::time::sleep;

use super::ask::DEFAULT_URL;
use super::exit::Failure;
use super::logging::{self, LogFormat};
use super::serve::{LEFTOVER_PATIENCE, Signals};
use super::settings::Settings;
use crate::client::http::HttpClient;
use crate::client::{ClientError, HubAddress};
use crate::hub::Hub;
use crate::limits::{MESSAGE_MAX_BYTES, POLL_WAIT_MAX_MS};
use crate::mcp::{Backend, Call, Server, Sight, Watch};
use crate::protocol::{Cursor, ErrorBody, ErrorCode, Notification, Operation, Refusal};
use crate::transport::Inside;

/// How long an answer of the hub may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait before a hub that could not be reached is asked for news again.
const PAUSE: Duration = Duration::from_secs(2);
/// How long one look for news waits for some.
const POLL_MS: u64 = POLL_WAIT_MAX_MS / 2;

/// MCP over stdin and stdout.
#[derive(Debug, Args)]
pub(super) struct Mcp {
    /// The hub
    #[arg(long, env = "AKASHIK_URL", value_name = "URL", default_value = DEFAULT_URL)]
    url: String,
    /// A data directory to hold the Field in, in place of a hub; no other hub may be using it
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The Field; without it the one in the URL, else the hub's first
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// The agent that speaks, where the tools do not say
    #[arg(long, env = "AKASHIK_AGENT", value_name = "ID")]
    agent: Option<String>,
    /// Token, where the hub asks for one
    #[arg(long, env = "AKASHIK_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Which log lines are written to stderr, in tracing's directives
    #[arg(long, env = "AKASHIK_LOG_FILTER", value_name = "DIRECTIVES", default_value = "warn")]
    log_filter: String,
}

impl Mcp {
    pub(super) fn run(self) -> Result<(), Failure> {
        logging::start(LogFormat::Text, &self.log_filter)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let outcome = runtime.block_on(self.serve());
        // A read of stdin cannot be taken back; it ends with the process.
        runtime.shutdown_timeout(LEFTOVER_PATIENCE);
        outcome
    }

    async fn serve(self) -> Result<(), Failure> {
        let agent = self.agent.clone().filter(|agent| !agent.is_empty());
        let Some(data) = self.data.clone() else {
            let outside = Outside { client: self.client()? };
            return speak(outside, agent).await;
        };
        let settings = Settings {
            data: Some(data),
            field: self.field.clone().map(|field| vec![field]),
            ..Settings::default()
        };
        let config = settings.resolve()?.config;
        let field = config.fields.first().cloned().unwrap_or_default();
        let hub = Hub::start(config).await.map_err(|error| {
            Failure::failed(format!("{error}; a hub that runs is spoken to with --url in place of --data"))
        })?;
        let outcome = speak(Inside { hub: Arc::clone(&hub), field }, agent).await;
        hub.stop().await;
        outcome
    }

    fn client(&self) -> Result<HttpClient, Failure> {
        let mut address: HubAddress = self.url.parse().map_err(Failure::usage)?;
        if let Some(field) = &self.field {
            address = address.with_field(field).map_err(Failure::usage)?;
        }
        let token = self.token.clone().filter(|token| !token.is_empty());
        if token.as_ref().is_some_and(|token| http::HeaderValue::from_str(token).is_err()) {
            return Err(Failure::usage("the token contains characters that no header can carry"));
        }
        Ok(HttpClient { address, token, patience: PATIENCE })
    }
}

/// Speaks MCP until stdin ends or a signal says so.
async fn speak<B: Backend>(backend: B, agent: Option<String>) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let server = Server::new(Arc::new(backend), agent);
    let pipes = AsyncRwTransport::<RoleServer, _, _>::new(tokio::io::stdin(), tokio::io::stdout())
        .with_max_line_length(MESSAGE_MAX_BYTES);
    let speaking = async {
        match server.serve(pipes).await {
            Ok(session) => session.waiting().await.map(drop).map_err(Failure::failed),
            // Whoever leaves before it has said hello needs no answer.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(Failure::failed(format!("this is no MCP client: {error}"))),
        }
    };
    tokio::select! {
        ended = speaking => ended,
        _ = signals.next() => Ok(()),
    }
}

/// A hub that is asked over HTTP.
struct Outside {
    client: HttpClient,
}

/// A failed call as tools tell it.
fn body(error: ClientError, operation: Option<Operation>) -> Box<ErrorBody> {
    match error {
        ClientError::Refused(body) => body,
        error => {
            let refusal = Refusal::new(
                ErrorCode::Overloaded,
                format!("{error}."),
                "Make sure that the hub runs (`akashik serve`), then call again; with the same message_id, if one was \
                 given, it is done once.",
            );
            Box::new(refusal.body(operation))
        }
    }
}

/// What of the hub's answer to a poll counts.
#[derive(Deserialize)]
struct Page {
    events: Vec<Notification>,
    cursor: Cursor,
}

impl Outside {
    async fn poll(client: &HttpClient, after: Option<Cursor>, wait_ms: u64) -> Result<Page, ClientError> {
        let after = after.map(|cursor| format!("&after={cursor}")).unwrap_or_default();
        let path = format!("events?observer=true&poll=true&wait_ms={wait_ms}{after}");
        let page = client.get(&path, None).await?;
        serde_json::from_str(page.get()).map_err(|error| ClientError::Protocol(error.to_string().into()))
    }
}

impl Backend for Outside {
    type Watch = Polling;

    async fn served(&self) -> Vec<Operation> {
        // At which level the hub serves it says itself; what it does not serve beyond that, it says when it is asked.
        let level = match self.client.get("field/status", None).await {
            Ok(status) => serde_json::from_str::<Value>(status.get()).ok().and_then(|s| s["level"].as_u64()),
            Err(_) => None,
        };
        let level = level.and_then(|level| u8::try_from(level).ok()).unwrap_or(u8::MAX);
        Operation::ALL.into_iter().filter(|operation| operation.is_served_at(level)).collect()
    }

    async fn operate(&self, call: Call, _from: &Extensions) -> Result<Value, Box<ErrorBody>> {
        let Call { operation, agent_id, session_id, message_id, payload } = call;
        let failed = |error| body(error, Some(operation));
        let payload = to_raw_value(&payload)
            .map_err(|error| failed(ClientError::Protocol(error.to_string().into())))?;
        let (session, id) = (session_id.as_deref(), message_id.as_deref());
        let answer = self.client.operate(operation, &agent_id, session, id, payload).await.map_err(failed)?;
        serde_json::from_str(answer.get())
            .map_err(|error| failed(ClientError::Protocol(error.to_string().into())))
    }

    async fn look(
        &self,
        sight: Sight,
        agent_id: Option<&str>,
        _from: &Extensions,
    ) -> Result<String, Box<ErrorBody>> {
        let path = match sight {
            Sight::Status => "field/status".to_owned(),
            Sight::Conflicts => "conflicts".to_owned(),
            Sight::Unit(id) => format!("units/{id}"),
        };
        let shown = self.client.get(&path, agent_id).await.map_err(|error| body(error, None))?;
        Ok(shown.get().to_owned())
    }

    async fn watch(&self) -> Result<Polling, Box<ErrorBody>> {
        let client = self.client.clone();
        let now = Self::poll(&client, None, 0).await.map_err(|error| body(error, None))?;
        Ok(Polling { client, cursor: now.cursor })
    }
}

/// Follows a hub's events by polling, over restarts of the hub.
struct Polling {
    client: HttpClient,
    cursor: Cursor,
}

impl Watch for Polling {
    async fn next(&mut self) -> Option<Vec<Notification>> {
        loop {
            match Outside::poll(&self.client, Some(self.cursor), POLL_MS).await {
                Ok(page) => {
                    self.cursor = page.cursor;
                    if !page.events.is_empty() {
                        return Some(page.events);
                    }
                }
                // The place is none of this Field's any more: another one answers there now.
                Err(ClientError::Refused(body)) if body.code == ErrorCode::InvalidMessage => {
                    sleep(PAUSE).await;
                    if let Ok(now) = Outside::poll(&self.client, None, 0).await {
                        self.cursor = now.cursor;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "no news of the hub for now");
                    sleep(PAUSE).await;
                }
            }
        }
    }
}
