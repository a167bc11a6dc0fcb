//! The Rust SDK: a connection to a hub's Field as one agent, one method per operation.
//!
//! ```no_run
//! # async fn example() -> Result<(), akashik_hub::client::ClientError> {
//! use akashik_hub::client::{Attune, Client, ClientOptions, Record};
//!
//! let client = Client::connect("http://127.0.0.1:7420", ClientOptions::new("researcher-01")).await?;
//! client.register("market_researcher").await?;
//! let finding = Record::finding("The market grows by 23 % a year.")
//!     .because("Validate the market size assumption")
//!     .sure(0.8, "Three independent reports agree.");
//! let recorded = client.record(finding).await?;
//! let memory = client.attune(Attune::for_role("market_researcher", 10).hint("pricing")).await?;
//! println!("{} {}", recorded.memory_unit_id, memory.record.len());
//! # Ok(())
//! # }
//! ```
//!
//! What the hub pushes comes as a stream that survives lost connections:
//!
//! ```no_run
//! # async fn example(client: akashik_hub::client::Client) -> Result<(), akashik_hub::client::ClientError> {
//! use akashik_hub::client::Subscribe;
//! use akashik_hub::protocol::EventName;
//!
//! let mut news = client.subscribe(Subscribe::to([EventName::MemoryRecorded]).min_relevance(0.3)).await?;
//! while let Some(notification) = news.next().await {
//!     println!("{}", notification?.summary);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Read [`address`] (where a hub is), `requests` and `questions` (what can be asked), `identity` (who asks), `link` (the task that owns
//! the socket) with its halves, `pending` (what waits for replies), `inbox` and `attached` (what is pushed, and how
//! subscriptions survive), `subscribe` and `notifications` (the streams), `backoff` and [`http`], the one-shot way that
//! the command line uses.

pub mod address;
mod attached;
mod backoff;
mod compact;
mod error;
pub mod http;
mod identity;
mod inbox;
mod link;
mod notifications;
mod pending;
mod questions;
mod receiving;
mod requests;
mod subscribe;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

pub use address::{HubAddress, MalformedAddress, is_field_name};
pub use compact::Compact;
pub use error::ClientError;
pub use link::Connection;
pub use notifications::{DirectNotifications, Notifications};
pub use questions::{Attune, Detect, Replay};
pub use requests::{Commit, Merge, Record, Register};
pub use subscribe::Subscribe;

use crate::limits::IN_FLIGHT_MAX;
use crate::protocol::{
    Acknowledged, Attuned, Compacted, Deregistered, Detected, Merged, Operation, Recorded, Registered,
    Replayed,
};
use attached::Attached;
use identity::Identity;
use link::{Command, Link};
use pending::Effect;

/// How long a call may take, reconnecting included, when the options do not say.
const PATIENCE: Duration = Duration::from_secs(30);

/// As whom to connect, and how patiently.
///
/// ```
/// use std::time::Duration;
///
/// use akashik_hub::client::ClientOptions;
///
/// let options = ClientOptions::new("researcher-01").in_field("lab").patient_for(Duration::from_secs(5));
/// assert_eq!(options.field.as_deref(), Some("lab"));
/// ```
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The agent that every message of this client comes from.
    pub agent_id: String,
    /// The protocol session that the messages belong to, if any.
    pub session_id: Option<String>,
    /// The Field, where the address does not name one; neither means the hub's first.
    pub field: Option<String>,
    /// Sent as `Authorization: Bearer …` where the hub asks for tokens.
    pub token: Option<String>,
    /// How long a call may take in all, waiting for a lost hub to return included; then it fails with
    /// [`ClientError::Unreachable`].
    pub patience: Duration,
}

impl ClientOptions {
    /// The usual options for an agent.
    pub fn new(agent_id: impl Into<String>) -> Self {
        Self { agent_id: agent_id.into(), session_id: None, field: None, token: None, patience: PATIENCE }
    }

    /// Belongs to a protocol session.
    #[must_use]
    pub fn in_session(mut self, session_id: impl Into<String>) -> Self {
        self.session_id = Some(session_id.into());
        self
    }

    /// Speaks to this Field.
    #[must_use]
    pub fn in_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Shows this token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Waits at most this long for any answer.
    #[must_use]
    pub fn patient_for(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

/// An agent's connection to a Field.
///
/// When the connection is lost, the client returns by itself and sends every unanswered message again
/// under its same id; the hub answers a repeat with the first reply, so nothing is lost or done twice.
/// A call whose future is dropped is forgotten by the client; the hub may still carry it out. Dropping the
/// client closes the connection; [`Client::close`] also waits for that.
#[derive(Debug)]
pub struct Client {
    queue: mpsc::Sender<Command>,
    in_flight: Semaphore,
    identity: Arc<Identity>,
    attached: Arc<Attached>,
    connection: watch::Receiver<Connection>,
    patience: Duration,
    task: JoinHandle<()>,
}

impl Client {
    /// Connects to a hub at `http://host:port` or `ws://host:port`, with `/v1/fields/NAME` behind it or not.
    ///
    /// # Errors
    /// [`ClientError::Address`] for a URL that is not one of these, [`ClientError::Unreachable`] when
    /// nobody answers there, [`ClientError::Refused`] when the hub does not let this client in.
    pub async fn connect(url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let mut address: HubAddress = url.parse()?;
        if let Some(field) = &options.field {
            address = address.with_field(field)?;
        }
        let identity = Arc::new(Identity::new(address, &options));
        let (queue, commands) = mpsc::channel(IN_FLIGHT_MAX);
        let attached = Arc::new(Attached::default());
        let link = Link::open(Arc::clone(&identity), Arc::clone(&attached), commands).await?;
        Ok(Self {
            queue,
            in_flight: Semaphore::new(IN_FLIGHT_MAX),
            identity,
            attached,
            connection: link.watch(),
            patience: options.patience,
            task: tokio::spawn(link.run()),
        })
    }

    /// The agent that this client speaks for.
    pub fn agent_id(&self) -> &str {
        &self.identity.agent_id
    }

    /// The greatest epoch that this client has been shown.
    pub fn epoch(&self) -> u64 {
        self.identity.epoch()
    }

    /// How the connection stands: watch it to tell people that the hub is away, or back.
    ///
    /// ```no_run
    /// # async fn example(client: akashik_hub::client::Client) {
    /// use akashik_hub::client::Connection;
    ///
    /// let mut connection = client.connection();
    /// while connection.changed().await.is_ok() {
    ///     if let Connection::Lost(why) = &*connection.borrow_and_update() {
    ///         eprintln!("the hub is away: {why}");
    ///     }
    /// }
    /// # }
    /// ```
    pub fn connection(&self) -> watch::Receiver<Connection> {
        self.connection.clone()
    }

    /// REGISTER. A role alone will do: `client.register("strategist")`.
    ///
    /// # Errors
    /// As every call: see [`ClientError`]. An answer with status `rejected` is no error.
    pub async fn register(&self, request: impl Into<Register>) -> Result<Registered, ClientError> {
        let request = request.into();
        let payload = raw(&request.payload(self.agent_id()))?;
        let effect = Effect::Registers(payload.clone());
        let registered: Registered = self.call_for(Operation::Register, &payload, effect).await?;
        self.identity.limit_messages(registered.field_capabilities.limits.message_bytes);
        Ok(registered)
    }

    /// DEREGISTER, of this client's own agent.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn deregister(&self) -> Result<Deregistered, ClientError> {
        let payload = serde_json::json!({ "agent_id": self.agent_id() });
        self.call_for(Operation::Deregister, &payload, Effect::Leaves).await
    }

    /// RECORD.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn record(&self, unit: Record) -> Result<Recorded, ClientError> {
        self.call(Operation::Record, &unit).await
    }

    /// ATTUNE.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn attune(&self, request: Attune) -> Result<Attuned, ClientError> {
        self.call(Operation::Attune, &request).await
    }

    /// DETECT.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn detect(&self, request: Detect) -> Result<Detected, ClientError> {
        self.call(Operation::Detect, &request).await
    }

    /// MERGE.
    ///
    /// # Errors
    /// As every call: see [`ClientError`]. An answer that escalates or waits for votes is no error.
    pub async fn merge(&self, request: Merge) -> Result<Merged, ClientError> {
        self.call(Operation::Merge, &request).await
    }

    /// COMPACT.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn compact(&self, request: Compact) -> Result<Compacted, ClientError> {
        self.call(Operation::Compact, &request).await
    }

    /// REPLAY.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn replay(&self, request: Replay) -> Result<Replayed, ClientError> {
        self.call(Operation::Replay, &request).await
    }

    /// RETRACT (Extension): takes a committed unit back, for a reason.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn retract(&self, unit: impl ToString, reason: &str) -> Result<Acknowledged, ClientError> {
        let payload = serde_json::json!({ "memory_unit_id": unit.to_string(), "reason": reason });
        self.call(Operation::Retract, &payload).await
    }

    /// COMMIT (Extension): makes a draft everyone's memory.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn commit(&self, request: Commit) -> Result<Acknowledged, ClientError> {
        self.call(Operation::Commit, &request).await
    }

    /// DISCARD (Extension): gives a draft up, for a reason.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn discard(&self, unit: impl ToString, reason: &str) -> Result<Acknowledged, ClientError> {
        let payload = serde_json::json!({ "memory_unit_id": unit.to_string(), "reason": reason });
        self.call(Operation::Discard, &payload).await
    }

    /// Any operation with any payload; the response payload as it came.
    ///
    /// # Errors
    /// As every call: see [`ClientError`].
    pub async fn send(&self, operation: Operation, payload: Value) -> Result<Value, ClientError> {
        self.call(operation, &payload).await
    }

    /// Closes the connection and waits until it is closed.
    pub async fn close(self) {
        drop(self.queue);
        // The task ends by itself within a second; it never panics on purpose, and nothing is left to undo.
        let _ = self.task.await;
    }

    async fn call<T: DeserializeOwned>(
        &self,
        operation: Operation,
        payload: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.call_for(operation, payload, Effect::None).await
    }

    /// A call whose answer means something for the client itself.
    async fn call_for<T: DeserializeOwned>(
        &self,
        operation: Operation,
        payload: &impl Serialize,
        effect: Effect,
    ) -> Result<T, ClientError> {
        let payload = raw(payload)?;
        let text = tokio::time::timeout(self.patience, self.exchange(operation, payload, effect))
            .await
            .map_err(|_| ClientError::Unreachable(format!("no answer within {:?}", self.patience)))??;
        serde_json::from_str(text.get())
            .map_err(|error| ClientError::Protocol(Cow::Owned(format!("unreadable {operation}: {error}"))))
    }

    /// Hands a message to the task and waits for its reply. Dropping this future drops the permit and the
    /// receiver, which is how the task learns that nobody waits any more.
    async fn exchange(
        &self,
        operation: Operation,
        payload: Box<RawValue>,
        effect: Effect,
    ) -> Result<Box<RawValue>, ClientError> {
        let gone = || ClientError::Disconnected(Cow::Borrowed("the client's task has ended"));
        let _permit = self.in_flight.acquire().await.map_err(|_| gone())?;
        let (reply, answered) = oneshot::channel();
        self.queue.send(Command { operation, payload, reply, effect }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

fn raw(payload: &impl Serialize) -> Result<Box<RawValue>, ClientError> {
    serde_json::value::to_raw_value(payload)
        .map_err(|error| ClientError::Protocol(Cow::Owned(format!("unwritable payload: {error}"))))
}
