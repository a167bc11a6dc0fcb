//! The task that owns the socket: sends what is asked for, hands out replies, returns when the hub was lost.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as WsError, Message, Utf8Bytes};
use tracing::debug;

use super::ClientOptions;
use super::address::HubAddress;
use super::backoff::Backoff;
use super::error::ClientError;
use super::pending::{Pending, Reply};
use crate::limits::{EPOCH_CEILING, HEARTBEAT_MS, REPLY_MAX_BYTES, SILENCE_MAX_MS};
use crate::protocol::{ErrorBody, Operation, PROTOCOL, RequestEnvelope, VERSION};

/// How long one attempt to connect may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a closing handshake may take.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);
/// Largest message taken from a hub: its largest reply, and the envelope around it.
const MESSAGE_IN_MAX_BYTES: usize = REPLY_MAX_BYTES + 64 * 1024;

type Socket = WebSocketStream<TcpStream>;

/// A call on its way to the socket.
#[derive(Debug)]
pub(super) struct Command {
    pub operation: Operation,
    pub payload: Box<RawValue>,
    pub reply: Reply,
}

/// Who speaks to which Field, and what it has seen.
#[derive(Debug)]
pub(super) struct Identity {
    pub agent_id: Arc<str>,
    session_id: Option<Arc<str>>,
    token: Option<String>,
    address: HubAddress,
    /// Message ids are this and a number: unique, also across restarts of whoever uses the client.
    prefix: String,
    epoch: AtomicU64,
    /// Largest message that the hub takes, once it has said so.
    message_max_bytes: AtomicUsize,
}

impl Identity {
    pub fn new(address: HubAddress, options: &ClientOptions) -> Self {
        Self {
            agent_id: options.agent_id.as_str().into(),
            session_id: options.session_id.as_deref().map(Arc::from),
            token: options.token.clone(),
            address,
            prefix: format!("{:032x}-", rand::random::<u128>()),
            epoch: AtomicU64::new(0),
            message_max_bytes: AtomicUsize::new(usize::MAX),
        }
    }

    /// Learns how large a message may be: a larger one would only cost everybody the connection.
    pub fn limit_messages(&self, bytes: usize) {
        self.message_max_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The greatest epoch seen.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    fn frame(
        &self,
        number: u64,
        operation: Operation,
        payload: Box<RawValue>,
    ) -> Result<Utf8Bytes, ClientError> {
        let envelope = RequestEnvelope {
            protocol: PROTOCOL.into(),
            version: VERSION.into(),
            id: format!("{}{number}", self.prefix).into(),
            operation: operation.name().into(),
            agent_id: Arc::clone(&self.agent_id),
            session_id: self.session_id.clone(),
            epoch: self.epoch(),
            payload,
        };
        let text = serde_json::to_string(&envelope)
            .map_err(|error| ClientError::Protocol(Cow::Owned(format!("unwritable message: {error}"))))?;
        let most = self.message_max_bytes.load(Ordering::Relaxed);
        if text.len() > most {
            let why = format!("the message has {} bytes; the hub takes at most {most}", text.len());
            return Err(ClientError::Protocol(Cow::Owned(why)));
        }
        Ok(text.into())
    }

    /// The number in a message id of this client.
    fn number(&self, id: &str) -> Option<u64> {
        id.strip_prefix(&self.prefix)?.parse().ok()
    }

    async fn connect(&self) -> Result<Socket, ClientError> {
        timeout(CONNECT_PATIENCE, self.handshake())
            .await
            .map_err(|_| ClientError::Unreachable(format!("no handshake within {CONNECT_PATIENCE:?}")))?
    }

    async fn handshake(&self) -> Result<Socket, ClientError> {
        let unreachable = |error: &dyn std::fmt::Display| {
            ClientError::Unreachable(format!("{} at {}", error, self.address.authority()))
        };
        let stream = TcpStream::connect(self.address.authority()).await.map_err(|e| unreachable(&e))?;
        stream.set_nodelay(true).map_err(|e| unreachable(&e))?;
        let mut request = self.address.websocket().into_client_request().map_err(|e| unreachable(&e))?;
        if let Some(token) = &self.token {
            let value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| ClientError::Protocol(Cow::Borrowed("the token is no header value")))?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let config = WebSocketConfig::default()
            .read_buffer_size(16 * 1024)
            .write_buffer_size(16 * 1024)
            .max_message_size(Some(MESSAGE_IN_MAX_BYTES))
            .max_frame_size(Some(MESSAGE_IN_MAX_BYTES));
        match tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(WsError::Http(response)) => {
                let body = response.body().as_deref().unwrap_or_default();
                Err(match serde_json::from_slice::<ErrorBody>(body) {
                    Ok(body) => ClientError::Refused(Box::new(body)),
                    Err(_) if response.status().is_server_error() => unreachable(&response.status()),
                    Err(_) => ClientError::Protocol(Cow::Owned(format!(
                        "{} to the WebSocket handshake",
                        response.status()
                    ))),
                })
            }
            Err(WsError::Io(error)) => Err(unreachable(&error)),
            Err(error) => Err(ClientError::Protocol(Cow::Owned(error.to_string()))),
        }
    }
}

/// Why a connection came to its end.
enum End {
    /// The client was dropped: nobody wants anything any more.
    Left,
    /// The hub, or the way to it, is gone.
    Lost { code: Option<CloseCode>, why: String },
}

/// What was said and is not answered.
struct Messages {
    identity: Arc<Identity>,
    /// Shared by the sending and the receiving half, which run in one task; never held across an await.
    pending: Mutex<Pending>,
    sent: AtomicU64,
}

impl Messages {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a command its id and its place among the pending; nothing when nobody waits for it any more.
    fn enter(&self, command: Command) -> Option<Utf8Bytes> {
        if command.reply.is_closed() {
            return None;
        }
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        match self.identity.frame(number, command.operation, command.payload) {
            Ok(frame) => {
                self.pending().insert(number, frame.clone(), command.reply);
                Some(frame)
            }
            Err(error) => {
                // The caller may have left; then it needs no telling.
                let _ = command.reply.send(Err(error));
                None
            }
        }
    }

    /// A read that can match nothing: it tells the hub that this agent is connected again, which only a
    /// message of the agent's does, so that an idle agent is not taken for failed.
    fn presence(&self) -> Option<Utf8Bytes> {
        let payload = format!(
            r#"{{"scope":{{"role":"returning","max_units":1}},"format":"ids_only","since_epoch":{}}}"#,
            EPOCH_CEILING - 1
        );
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        self.identity.frame(number, Operation::Attune, RawValue::from_string(payload).ok()?).ok()
    }

    /// Fails what it would be wrong to send again after a close with this code.
    fn settle(&self, code: Option<CloseCode>, why: &str) {
        match code {
            Some(CloseCode::Size) => {
                let error = ClientError::Protocol(Cow::Borrowed("the message is larger than the hub takes"));
                let mut pending = self.pending();
                if let Some(number) = pending.largest() {
                    pending.answer(number, Err(error));
                }
            }
            // Policy, and the hub's own codes for who may not be here.
            Some(CloseCode::Policy | CloseCode::Library(4001 | 4003)) => {
                self.pending().fail_all(|| ClientError::Disconnected(Cow::Owned(why.to_owned())));
            }
            _ => {}
        }
    }
}

/// The owner of the socket.
pub(super) struct Link {
    messages: Messages,
    commands: mpsc::Receiver<Command>,
    socket: Option<Socket>,
    backoff: Backoff,
    /// The agent has been answered as a registered one, so a connection that returns should say so.
    joined: bool,
}

impl Link {
    /// Connects for the first time.
    pub async fn open(
        identity: Arc<Identity>,
        commands: mpsc::Receiver<Command>,
    ) -> Result<Self, ClientError> {
        let socket = Some(identity.connect().await?);
        let messages = Messages { identity, pending: Mutex::default(), sent: AtomicU64::new(1) };
        Ok(Self { messages, commands, socket, backoff: Backoff::default(), joined: false })
    }

    /// Serves until the client is dropped.
    pub async fn run(mut self) {
        while let Some(socket) = self.socket.take() {
            match self.serve(socket).await {
                End::Left => return,
                End::Lost { code, why } => {
                    debug!(?code, why, "connection to the hub lost");
                    self.messages.settle(code, &why);
                }
            }
            self.socket = self.reconnect().await;
        }
    }

    /// Tries until it succeeds, or nothing once the client was dropped. Calls that come meanwhile wait in
    /// line; their own patience ends them.
    async fn reconnect(&mut self) -> Option<Socket> {
        loop {
            let delay = self.backoff.next();
            let identity = &self.messages.identity;
            let attempt = async {
                tokio::time::sleep(delay).await;
                identity.connect().await
            };
            tokio::pin!(attempt);
            let outcome = loop {
                tokio::select! {
                    outcome = &mut attempt => break outcome,
                    command = self.commands.recv() => drop(self.messages.enter(command?)),
                }
            };
            match outcome {
                Ok(socket) => return Some(socket),
                Err(ClientError::Refused(body)) if !body.recoverable => {
                    self.messages.pending().fail_all(|| ClientError::Refused(body.clone()));
                }
                Err(error) => debug!(%error, "the hub is still away"),
            }
        }
    }

    /// Speaks on one connection. Sending and receiving are two halves: were it one, a hub that waits for us
    /// to take replies and a client that waits for the hub to take requests would wait forever.
    async fn serve(&mut self, socket: Socket) -> End {
        let (mut sink, mut stream) = socket.split();
        let mut repeats = self.messages.pending().repeats();
        if repeats.is_empty() && self.joined {
            repeats.extend(self.messages.presence());
        }
        let mut receiving = Receiving { messages: &self.messages, useful: false, joined: false };
        let end = tokio::select! {
            end = send(&self.messages, &mut self.commands, &mut sink, repeats) => end,
            end = receiving.run(&mut stream) => end,
        };
        let Receiving { useful, joined, .. } = receiving;
        if matches!(end, End::Left) {
            close(&mut sink, &mut stream).await;
        }
        if useful {
            self.backoff.reset();
        }
        self.joined |= joined;
        end
    }
}

/// Says goodbye and waits a moment for the hub to say it too.
async fn close(sink: &mut SplitSink<Socket, Message>, stream: &mut SplitStream<Socket>) {
    let goodbye = async {
        let frame = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::from_static("") };
        if sink.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = stream.next().await {}
        }
    };
    // A hub that does not answer in time is left without a goodbye.
    let _ = timeout(CLOSE_PATIENCE, goodbye).await;
}

/// The sending half: first what is sent again, then what comes.
async fn send(
    messages: &Messages,
    commands: &mut mpsc::Receiver<Command>,
    sink: &mut SplitSink<Socket, Message>,
    repeats: Vec<Utf8Bytes>,
) -> End {
    match send_until_left(messages, commands, sink, repeats).await {
        Ok(()) => End::Left,
        Err(error) => End::Lost { code: None, why: error.to_string() },
    }
}

async fn send_until_left(
    messages: &Messages,
    commands: &mut mpsc::Receiver<Command>,
    sink: &mut SplitSink<Socket, Message>,
    repeats: Vec<Utf8Bytes>,
) -> Result<(), WsError> {
    for frame in repeats {
        sink.feed(Message::Text(frame)).await?;
    }
    sink.flush().await?;
    let mut heartbeat = tokio::time::interval(Duration::from_millis(HEARTBEAT_MS));
    heartbeat.reset();
    loop {
        let mut next = tokio::select! {
            command = commands.recv() => match command {
                Some(command) => Some(command),
                None => return Ok(()),
            },
            _ = heartbeat.tick() => {
                // Makes the hub say something, so that a dead way to it is noticed.
                sink.feed(Message::Ping(bytes::Bytes::new())).await?;
                None
            }
        };
        while let Some(command) = next {
            if let Some(frame) = messages.enter(command) {
                sink.feed(Message::Text(frame)).await?;
            }
            next = commands.try_recv().ok();
        }
        sink.flush().await?;
    }
}

/// The receiving half.
struct Receiving<'a> {
    messages: &'a Messages,
    /// Something was received, so the connection was of use.
    useful: bool,
    joined: bool,
}

/// What a reply's envelope is read for.
#[derive(Deserialize)]
struct ReplyFrame<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    epoch: u64,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// What tells an error body from a response: no response has these keys.
#[derive(Deserialize)]
struct Probe {
    code: Option<IgnoredAny>,
    suggested_action: Option<IgnoredAny>,
}

impl Receiving<'_> {
    async fn run(&mut self, stream: &mut SplitStream<Socket>) -> End {
        let silence = Duration::from_millis(SILENCE_MAX_MS);
        let lost = |code, why: String| End::Lost { code, why };
        loop {
            let deadline = Instant::now() + silence;
            match tokio::time::timeout_at(deadline, stream.next()).await {
                Err(_) => return lost(None, format!("nothing heard for {silence:?}")),
                Ok(None) => return lost(None, "the hub closed the connection".into()),
                Ok(Some(Err(error))) => return lost(None, error.to_string()),
                Ok(Some(Ok(Message::Text(text)))) => self.take(&text),
                Ok(Some(Ok(Message::Close(frame)))) => {
                    let why = frame.as_ref().map_or_else(String::new, ToString::to_string);
                    return lost(frame.map(|f| f.code), format!("the hub closed the connection: {why}"));
                }
                // Pings are answered by the stream itself while it is polled.
                Ok(Some(Ok(_))) => {}
            }
        }
    }

    /// Takes a frame: a reply to one of ours, or something that is not for us (yet).
    fn take(&mut self, text: &str) {
        let frame: ReplyFrame<'_> = match serde_json::from_str(text) {
            Ok(frame) => frame,
            Err(error) => return debug!(%error, "a frame that is no envelope is ignored"),
        };
        let identity = &self.messages.identity;
        self.useful = true;
        if frame.epoch < EPOCH_CEILING {
            identity.epoch.fetch_max(frame.epoch, Ordering::Relaxed);
        }
        let Some(number) = identity.number(&frame.id) else {
            // Here a later stream of notifications takes what the hub pushes.
            return debug!(id = %frame.id, "a frame that answers nothing is ignored");
        };
        let outcome = read_outcome(frame.payload);
        self.joined |= outcome.is_ok();
        if !self.messages.pending().answer(number, outcome) {
            debug!(id = %frame.id, "nobody waits for this reply any more");
        }
    }
}

/// Tells a response from a no.
fn read_outcome(payload: &RawValue) -> Result<Box<RawValue>, ClientError> {
    let unreadable = |error: serde_json::Error| {
        ClientError::Protocol(Cow::Owned(format!("unreadable reply payload: {error}")))
    };
    let probe: Probe = serde_json::from_str(payload.get()).map_err(unreadable)?;
    if probe.code.is_some() && probe.suggested_action.is_some() {
        let body: ErrorBody = serde_json::from_str(payload.get()).map_err(unreadable)?;
        return Err(ClientError::Refused(Box::new(body)));
    }
    Ok(payload.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Envelope, ErrorCode, Refusal};

    fn identity() -> Identity {
        Identity::new("http://h:1".parse().unwrap(), &ClientOptions::new("a\"gent").in_session("s"))
    }

    #[test]
    fn messages_are_envelopes_with_ids_of_their_own() {
        let (one, other) = (identity(), identity());
        let payload = || RawValue::from_string("{\"x\":1}".into()).unwrap();
        one.epoch.store(41, Ordering::Relaxed);
        let frame = one.frame(7, Operation::Record, payload()).unwrap();
        let envelope = Envelope::parse(&frame).unwrap();
        assert_eq!((envelope.epoch, envelope.agent_id.as_ref()), (41, "a\"gent"));
        assert_eq!(envelope.session_id.as_deref(), Some("s"));
        assert_eq!(one.number(&envelope.id), Some(7));
        assert_eq!(other.number(&envelope.id), None, "another client's ids differ");
        assert_eq!(one.number("push-sub-1-4.0"), None);
        one.limit_messages(frame.len());
        assert!(one.frame(7, Operation::Record, payload()).is_ok());
        one.limit_messages(frame.len() - 1);
        assert!(matches!(one.frame(7, Operation::Record, payload()), Err(ClientError::Protocol(_))));
    }

    #[test]
    fn a_no_is_told_from_a_response() {
        let raw = |text: String| RawValue::from_string(text).unwrap();
        let no = Refusal::new(ErrorCode::UnitNotFound, "m", "s").body(Some(Operation::Retract));
        let outcome = read_outcome(&raw(serde_json::to_string(&no).unwrap()));
        assert!(matches!(outcome, Err(ClientError::Refused(body)) if *body == no));
        let warned = r#"{"status":"accepted","warning":{"code":"ENRICHMENT_FAILED"}}"#;
        assert_eq!(read_outcome(&raw(warned.into())).unwrap().get(), warned);
        assert!(matches!(read_outcome(&raw("[1]".into())), Err(ClientError::Protocol(_))));
    }
}
