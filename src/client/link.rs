//! The task that owns the socket: sends what is asked for, hands out replies, returns when the hub was lost.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::SinkExt;
use futures::StreamExt;
use futures::stream::{SplitSink, SplitStream};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error as WsError, Message, Utf8Bytes};
use tracing::debug;

use super::attached::{Again, Attached};
use super::backoff::Backoff;
use super::error::ClientError;
use super::identity::{Identity, Socket};
use super::pending::{Answered, Effect, Pending, Reply};
use super::receiving::Receiving;
use crate::limits::{EPOCH_CEILING, HEARTBEAT_MS, REATTACH_PAUSE_MS};
use crate::protocol::Operation;

/// How long a closing handshake may take.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);

/// A call on its way to the socket.
#[derive(Debug)]
pub(super) struct Command {
    pub operation: Operation,
    pub payload: Box<RawValue>,
    pub reply: Reply,
    pub effect: Effect,
}

/// How a client's connection stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// It is open.
    Open,
    /// It was lost, for this reason; the client tries to return.
    Lost(Arc<str>),
}

/// Why a connection came to its end.
pub(super) enum End {
    /// The client was dropped: nobody wants anything any more.
    Left,
    /// The hub, or the way to it, is gone.
    Lost { code: Option<CloseCode>, why: String },
}

/// What was said and is not answered, and who listens.
pub(super) struct Messages {
    pub identity: Arc<Identity>,
    pub attached: Arc<Attached>,
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
                self.pending().insert(number, frame.clone(), command.reply, command.effect);
                // Whoever paused reads on: there is a reply to come.
                self.attached.bell.room.notify_one();
                Some(frame)
            }
            Err(error) => {
                // The caller may have left; then it needs no telling.
                let _ = command.reply.send(Err(error));
                None
            }
        }
    }

    /// Gives a message its reply, after what it means for the subscriptions: pushes may come right behind it. False
    /// when nobody waits for this number.
    pub fn answer(&self, number: u64, outcome: Result<Box<RawValue>, ClientError>) -> bool {
        let Some(Answered { reply, effect }) = self.pending().take(number) else { return false };
        if let Ok(answer) = &outcome {
            self.attached.follow(&effect, answer);
        }
        // The caller may have left meanwhile; then the reply is of no use to anybody.
        let is_heard = reply.send(outcome).is_ok();
        if let (false, Effect::Attaches(inbox)) = (is_heard, &effect) {
            self.attached.leave(inbox);
        }
        is_heard
    }

    /// Whether anybody waits for a reply.
    pub fn is_awaited(&self) -> bool {
        self.pending().is_awaited()
    }

    /// The messages that attach subscriptions again: all of them on a new connection, else those that ask for it.
    fn attachments(&self, new_connection: bool) -> Vec<Utf8Bytes> {
        let Again { registration, inboxes } = self.attached.again(new_connection);
        let mut frames = Vec::new();
        let frame = |number, operation, payload| self.identity.frame(number, operation, payload).ok();
        if let Some(payload) = registration {
            // Refused, it leaves the subscriptions refused as well, and those say why.
            let number = self.sent.fetch_add(1, Ordering::Relaxed);
            frames.extend(frame(number, Operation::Register, payload));
        }
        for (id, cursor, inbox) in inboxes {
            let number = self.sent.fetch_add(1, Ordering::Relaxed);
            let subscription = json!({ "id": id, "resume_after": cursor });
            let payload = to_raw_value(&json!({ "action": "subscribe", "subscription": subscription }));
            if let Some(frame) = payload.ok().and_then(|p| frame(number, Operation::Subscribe, p)) {
                self.attached.asked(number, inbox);
                frames.push(frame);
            }
        }
        frames
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
                let largest = self.pending().largest();
                if let Some(number) = largest {
                    self.answer(number, Err(error));
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

impl Drop for Messages {
    fn drop(&mut self) {
        self.attached.close();
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
    connection: watch::Sender<Connection>,
}

impl Link {
    /// Connects for the first time.
    pub async fn open(
        identity: Arc<Identity>,
        attached: Arc<Attached>,
        commands: mpsc::Receiver<Command>,
    ) -> Result<Self, ClientError> {
        let socket = Some(identity.connect().await?);
        let messages = Messages { identity, attached, pending: Mutex::default(), sent: AtomicU64::new(1) };
        let connection = watch::Sender::new(Connection::Open);
        Ok(Self { messages, commands, socket, backoff: Backoff::default(), joined: false, connection })
    }

    /// How the connection stands, from now on.
    pub fn watch(&self) -> watch::Receiver<Connection> {
        self.connection.subscribe()
    }

    /// Serves until the client is dropped.
    pub async fn run(mut self) {
        while let Some(socket) = self.socket.take() {
            match self.serve(socket).await {
                End::Left => return,
                End::Lost { code, why } => {
                    debug!(?code, why, "connection to the hub lost");
                    self.messages.settle(code, &why);
                    self.connection.send_replace(Connection::Lost(why.into()));
                }
            }
            self.socket = self.reconnect().await;
            if self.socket.is_some() {
                self.connection.send_replace(Connection::Open);
            }
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
                    self.messages.attached.end_all(|| Some(ClientError::Refused(body.clone())));
                }
                Err(error) => debug!(%error, "the hub is still away"),
            }
        }
    }

    /// Speaks on one connection. Sending and receiving are two halves: were it one, a hub that waits for us
    /// to take replies and a client that waits for the hub to take requests would wait forever.
    async fn serve(&mut self, socket: Socket) -> End {
        let (mut sink, mut stream) = socket.split();
        let mut first = self.messages.attachments(true);
        first.extend(self.messages.pending().repeats());
        if first.is_empty() && self.joined {
            first.extend(self.messages.presence());
        }
        let mut receiving = Receiving::new(&self.messages);
        let end = tokio::select! {
            end = send(&self.messages, &mut self.commands, &mut sink, first) => end,
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

/// The sending half: first subscriptions and what is sent again, then what comes.
async fn send(
    messages: &Messages,
    commands: &mut mpsc::Receiver<Command>,
    sink: &mut SplitSink<Socket, Message>,
    first: Vec<Utf8Bytes>,
) -> End {
    match send_until_left(messages, commands, sink, first).await {
        Ok(()) => End::Left,
        Err(error) => End::Lost { code: None, why: error.to_string() },
    }
}

async fn send_until_left(
    messages: &Messages,
    commands: &mut mpsc::Receiver<Command>,
    sink: &mut SplitSink<Socket, Message>,
    first: Vec<Utf8Bytes>,
) -> Result<(), WsError> {
    for frame in first {
        sink.feed(Message::Text(frame)).await?;
    }
    sink.flush().await?;
    let mut heartbeat = interval(Duration::from_millis(HEARTBEAT_MS));
    heartbeat.reset();
    let mut pause = interval(Duration::from_millis(REATTACH_PAUSE_MS));
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let attached = &messages.attached;
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
            () = attached.bell.attach.notified() => attach(messages, sink).await?,
            _ = pause.tick(), if attached.is_put_off() => attach(messages, sink).await?,
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

/// Asks to attach what wants it, and makes the loop go on without a call.
async fn attach(
    messages: &Messages,
    sink: &mut SplitSink<Socket, Message>,
) -> Result<Option<Command>, WsError> {
    for frame in messages.attachments(false) {
        sink.feed(Message::Text(frame)).await?;
    }
    Ok(None)
}
