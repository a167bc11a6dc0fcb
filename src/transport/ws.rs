//! WebSocket: one text frame is one envelope (wire, section 2).
//!
//! A conversation has three parts in one task. `listen` reads frames, submits messages in their order and
//! queues the places of their replies; `speak` waits for the replies in that order and writes all that are
//! ready before it flushes; `watch` keeps the vigil. The queue between the first two is the bound on what is
//! in flight: while it is full, nothing is read. What is pushed joins at `speak`, from the connection's outbox: it is
//! taken from there only when it can be written, so that a slow reader makes nothing pile up.

use std::borrow::Cow;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{Sink, SinkExt, Stream, StreamExt, poll};
use serde_json::value::{RawValue, to_raw_value};
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message as Frame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as WsError, Utf8Bytes};

use super::connection::closing;
use super::farewell::{Ending, GOING_AWAY, SLOW_CONSUMER, broken, part};
use super::guard::Identity;
use super::routes::Agreed;
use super::urls::Base;
use super::vigil::{Metered, Pulse, Verdict, Vigil};
use crate::config::Config;
use crate::hub::{Answer, ConnectionId, Door, Field, Hub, Listener, LiveSession, Outbox, Pending, Push};
use crate::limits;
use crate::protocol::{
    Cursor, Envelope, ErrorCode, FaultyEnvelope, Operation, PROTOCOL, Refusal, ReplyEnvelope, VERSION,
};

/// A connection that has become a WebSocket.
pub(super) type Socket = WebSocketStream<Metered<TcpStream>>;

/// Buffers of these sizes, against 128 KiB each, keep an idle connection small. Larger messages get room of their own.
const READ_BUFFER_BYTES: usize = 2 * 1024;
pub(super) const WRITE_BUFFER_BYTES: usize = 16 * 1024;

/// Longest id that the reply to an invalid frame echoes: also one that is too long by mistake.
const ECHO_MAX_BYTES: usize = 4 * limits::ID_MAX_BYTES;

/// How many pushes have their turn before the next reply is looked for.
const PUSHES_BETWEEN_REPLIES: usize = 32;

/// Holds a WebSocket conversation until it ends. `early` is what came in right behind the handshake.
pub async fn converse(hub: &Arc<Hub>, agreed: &Agreed, tcp: Metered<TcpStream>, early: Bytes) {
    let Some(field) = hub.field(Some(&agreed.field)) else { return };
    let presence = Presence::enter(hub, &agreed.field);
    let pulse = tcp.pulse();
    let settings = Some(settings(hub.config()));
    // Copied, so that HTTP's whole read buffer is not kept for a few bytes, or for none.
    let part_read = early.to_vec();
    drop(early);
    let mut socket = Socket::from_partially_read(tcp, part_read, Role::Server, settings).await;
    let talk = Talk {
        hub,
        field,
        identity: &agreed.identity,
        base: &agreed.base,
        connection: presence.id(),
        watched: agreed.watched.as_ref(),
        pulse: &pulse,
        ping: Notify::new(),
        reads: Arc::new(Semaphore::new(limits::READS_IN_FLIGHT_MAX)),
    };
    let ending = talk.hold(&mut socket).await;
    tracing::debug!(connection = presence.id().0, ?ending, "a WebSocket ends");
    // First the Field learns of it, then the peer: whoever comes back after the goodbye is known as gone.
    presence.leave().await;
    part(&mut socket, ending).await;
}

fn settings(config: &Config) -> WebSocketConfig {
    let message_max = config.limits.message_bytes;
    // One reply goes in at a time, behind at most one write buffer; an echoed id may grow sixfold by escapes.
    let write_max = limits::REPLY_MAX_BYTES + 32 * ECHO_MAX_BYTES + WRITE_BUFFER_BYTES;
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(write_max)
        .max_message_size(Some(message_max))
        .max_frame_size(Some(message_max))
}

/// A connection's entry among the live sessions. Whatever way the conversation ends, the Field is told.
struct Presence {
    hub: Arc<Hub>,
    field: Box<str>,
    id: ConnectionId,
    live: Option<LiveSession>,
}

impl Presence {
    fn enter(hub: &Arc<Hub>, field: &str) -> Self {
        let live = hub.sessions().open(Door::WebSocket, field);
        Self { hub: Arc::clone(hub), field: field.into(), id: live.id(), live: Some(live) }
    }

    fn id(&self) -> ConnectionId {
        self.id
    }

    async fn leave(mut self) {
        if let Some(field) = self.hub.field(Some(&self.field)) {
            field.disconnected(self.id).await;
        }
        // Only now: were this future dropped before, the guard below would still tell the Field.
        self.live = None;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if self.live.take().is_none() {
            return;
        }
        // The conversation was cut off (a panic, or the drain time was over).
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (hub, name, id) = (Arc::clone(&self.hub), self.field.clone(), self.id);
        runtime.spawn(async move {
            if let Some(field) = hub.field(Some(&name)) {
                field.disconnected(id).await;
            }
        });
    }
}

/// Where a reply goes: what its envelope echoes of the request.
struct Address {
    id: Box<str>,
    operation: Cow<'static, str>,
    agent_id: Box<str>,
    session_id: Option<Box<str>>,
}

impl Address {
    fn of(envelope: &Envelope<'_>) -> Self {
        let owned = |text: &Cow<'_, str>| Box::from(text.as_ref());
        Self {
            id: owned(&envelope.id),
            operation: envelope.operation.name().into(),
            agent_id: owned(&envelope.agent_id),
            session_id: envelope.session_id.as_ref().map(owned),
        }
    }

    fn unknown() -> Self {
        Self { id: "".into(), operation: "".into(), agent_id: "".into(), session_id: None }
    }

    fn print(&self, epoch: u64, payload: &RawValue) -> Option<Frame> {
        let envelope = ReplyEnvelope {
            protocol: PROTOCOL,
            version: VERSION,
            id: &self.id,
            operation: &self.operation,
            agent_id: &self.agent_id,
            session_id: self.session_id.as_deref(),
            epoch,
            payload,
        };
        let mut text = Vec::with_capacity(payload.get().len() + self.id.len() + self.agent_id.len() + 192);
        serde_json::to_writer(&mut text, &envelope).ok()?;
        Some(Frame::Text(Utf8Bytes::try_from(Bytes::from(text)).ok()?))
    }
}

/// What a reply echoes of a frame that is no envelope. What is far too long for an id is none, and must not
/// be kept while the reply waits.
fn echo(text: String) -> Box<str> {
    if text.len() > ECHO_MAX_BYTES { Box::default() } else { text.into_boxed_str() }
}

/// The place of a reply in the order.
struct Place {
    address: Address,
    outcome: Outcome,
}

enum Outcome {
    /// The Field has the message.
    Awaited(Awaited),
    /// It never reached the Field.
    Refused(Box<Refusal>),
    /// A ping; the WebSocket itself has made the pong, which only needs to go out.
    Pong,
}

/// A message that the Field has.
struct Awaited {
    answer: Pending,
    since: Instant,
    /// A read keeps its leave until its reply is written.
    leave: Option<OwnedSemaphorePermit>,
    /// Whether its reply attaches a subscription, and from a place of its own.
    subscribes: Option<bool>,
}

/// What the three parts share.
struct Talk<'a> {
    hub: &'a Hub,
    field: &'a Field,
    identity: &'a Identity,
    base: &'a Base,
    connection: ConnectionId,
    /// What an observer is told over it.
    watched: Option<&'a (Listener, Option<Cursor>)>,
    pulse: &'a Pulse,
    ping: Notify,
    /// Leave for reads to be in flight.
    reads: Arc<Semaphore>,
}

impl Talk<'_> {
    async fn hold(&self, socket: &mut Socket) -> Ending {
        let (sink, stream) = socket.split();
        // One reply is in the speaker's hand, the others are in the queue. They are boxed because the queue
        // has room for 32 of them from the start, on idle connections too.
        let (places, queue) = mpsc::channel(limits::IN_FLIGHT_MAX - 1);
        // An `Ok` of the listener lets the speaker deliver what is in flight; every `Err` ends both.
        let both = async {
            match futures::future::try_join(self.listen(stream, places), self.speak(sink, queue)).await {
                Ok((ending, ())) | Err(ending) => ending,
            }
        };
        tokio::select! {
            biased;
            ending = both => ending,
            ending = self.watch() => ending,
            ending = self.overdue() => ending,
        }
    }

    /// Reads frames until there are no more to read.
    async fn listen(
        &self,
        mut stream: impl Stream<Item = Result<Frame, WsError>> + Unpin,
        places: mpsc::Sender<Box<Place>>,
    ) -> Result<Ending, Ending> {
        let mut bad_in_a_row = 0;
        let mut closing = pin!(closing(self.hub));
        loop {
            // First room for the reply, then the request: this is what holds back who asks too much.
            let place = places.reserve().await.map_err(|_| Ending::Lost)?;
            self.pulse.set_reading(true);
            let frame = tokio::select! {
                biased;
                () = &mut closing => return Ok(GOING_AWAY),
                frame = stream.next() => frame,
            };
            self.pulse.set_reading(false);
            let read = match frame {
                // Boxed, so that a connection on which nothing comes does not keep room for it.
                Some(Ok(Frame::Text(text))) => Box::pin(self.take(&text)).await,
                Some(Ok(Frame::Binary(_))) => {
                    Err(Place { address: Address::unknown(), outcome: Outcome::Refused(Box::new(binary())) })
                }
                Some(Ok(Frame::Close(_))) => return Err(Ending::ByPeer),
                Some(Ok(Frame::Ping(_))) => {
                    // The pong takes a place too, so that who pings without reading is not read from.
                    place.send(Box::new(Place { address: Address::unknown(), outcome: Outcome::Pong }));
                    continue;
                }
                Some(Ok(Frame::Pong(_) | Frame::Frame(_))) => continue,
                Some(Err(error)) => return broken(&error),
                None => return Err(Ending::Lost),
            };
            bad_in_a_row = if read.is_ok() { 0 } else { bad_in_a_row + 1 };
            match read {
                Ok(reply) | Err(reply) => place.send(Box::new(reply)),
            }
            if bad_in_a_row >= limits::BAD_FRAMES_MAX {
                return Ok(Ending::Close { code: 1008, reason: "too many invalid messages in a row" });
            }
        }
    }

    /// Takes one message: submits it, or finds out why not. An `Err` is a frame that is no envelope.
    async fn take(&self, text: &str) -> Result<Place, Place> {
        let since = Instant::now();
        let envelope = match Envelope::parse(text) {
            Ok(envelope) => envelope,
            Err(faulty) => {
                let FaultyEnvelope { id, agent_id, operation, session_id, refusal } = *faulty;
                let (id, agent_id, operation) =
                    (echo(id), echo(agent_id), echo(operation).into_string().into());
                let address = Address { id, operation, agent_id, session_id: session_id.map(echo) };
                return Err(Place { address, outcome: Outcome::Refused(Box::new(refusal)) });
            }
        };
        let address = Address::of(&envelope);
        let outcome = match self.identity.may_speak_for(&envelope.agent_id) {
            Err(refusal) => Outcome::Refused(Box::new(refusal)),
            Ok(()) => {
                // Replies to reads may be large: few may wait for a peer that does not take them.
                let leave = match envelope.operation.is_read() {
                    true => Arc::clone(&self.reads).acquire_owned().await.ok(),
                    false => None,
                };
                let message = self.field.read(&envelope);
                let subscribes = message.wish().map(|wish| wish.resume_after.is_some());
                let answer = self.field.submit(message, Some(self.connection)).await;
                Outcome::Awaited(Awaited { answer, since, leave, subscribes })
            }
        };
        Ok(Place { address, outcome })
    }

    /// Writes the replies in the order of their requests, and pushes between them, until the listener has ended and
    /// all replies are out.
    async fn speak(
        &self,
        mut sink: impl Sink<Frame, Error = WsError> + Unpin,
        mut queue: mpsc::Receiver<Box<Place>>,
    ) -> Result<(), Ending> {
        let mut outbox = self.field.outbox(self.connection);
        if let Some((listener, after)) = self.watched {
            self.field.watch(&mut outbox, listener.clone(), *after);
        }
        loop {
            let Some(place) = self.meanwhile(&mut sink, &mut outbox, queue.recv()).await? else { break };
            // Boxed, so that a connection that waits does not keep room for it.
            Box::pin(self.fill(&mut sink, &mut outbox, *place)).await?;
        }
        flush(&mut sink).await
    }

    /// Writes the reply of one place once it is there, and pushes that are at hand behind it.
    async fn fill(
        &self,
        sink: &mut (impl Sink<Frame, Error = WsError> + Unpin),
        outbox: &mut Outbox,
        place: Place,
    ) -> Result<(), Ending> {
        let Place { address, outcome } = place;
        match outcome {
            Outcome::Pong => flush(sink).await?,
            Outcome::Refused(refusal) => {
                let answer = Answer { epoch: self.field.clock(), outcome: Err(*refusal) };
                self.reply(sink, &address, &answer).await?;
            }
            Outcome::Awaited(Awaited { answer, since, leave: _leave, subscribes }) => {
                let mut answer = self.meanwhile(sink, outbox, answer).await?;
                self.hub.metrics().answered_websocket(since.elapsed());
                if let (Some(_), Ok(payload)) = (subscribes, &mut answer.outcome) {
                    *payload = self.base.announce(payload);
                }
                self.reply(sink, &address, &answer).await?;
                self.follow_up(outbox, &address, &answer, subscribes);
            }
        }
        // Replies may never pause: what is pushed has its turns all the same.
        self.push(sink, outbox, PUSHES_BETWEEN_REPLIES).await?;
        Ok(())
    }

    async fn reply(
        &self,
        sink: &mut (impl Sink<Frame, Error = WsError> + Unpin),
        address: &Address,
        answer: &Answer,
    ) -> Result<(), Ending> {
        match print(address, answer) {
            Some(frame) => sink.feed(frame).await.map_err(|_| Ending::Lost),
            None => Ok(()),
        }
    }

    /// What a reply that is written means for the pushes after it.
    fn follow_up(&self, outbox: &mut Outbox, address: &Address, answer: &Answer, subscribes: Option<bool>) {
        // Also a refusal: everything that was asked for before it is replied to.
        outbox.replied(answer.epoch);
        let Ok(payload) = &answer.outcome else { return };
        outbox.speaks(&address.agent_id, answer.epoch);
        if let Some(resumes) = subscribes {
            self.field.attach(outbox, &address.agent_id, answer.epoch, payload, resumes);
        }
    }

    /// Writes pushes that are at hand, at most so many; tells how many it were.
    async fn push(
        &self,
        sink: &mut (impl Sink<Frame, Error = WsError> + Unpin),
        outbox: &mut Outbox,
        most: usize,
    ) -> Result<usize, Ending> {
        for count in 0..most {
            let Some(push) = outbox.ready() else { return Ok(count) };
            self.feed(sink, &push).await?;
        }
        Ok(most)
    }

    async fn feed(
        &self,
        sink: &mut (impl Sink<Frame, Error = WsError> + Unpin),
        push: &Push,
    ) -> Result<(), Ending> {
        self.hub.metrics().notified(Door::WebSocket);
        sink.feed(Frame::Text(push.frame().into())).await.map_err(|_| Ending::Lost)
    }

    /// Awaits `next`. When that takes time, what was written goes out first; pushes and pings go out meanwhile.
    async fn meanwhile<T>(
        &self,
        sink: &mut (impl Sink<Frame, Error = WsError> + Unpin),
        outbox: &mut Outbox,
        next: impl Future<Output = T>,
    ) -> Result<T, Ending> {
        let mut next = pin!(next);
        loop {
            if let std::task::Poll::Ready(ready) = poll!(&mut next) {
                return Ok(ready);
            }
            if self.push(sink, outbox, PUSHES_BETWEEN_REPLIES).await? == PUSHES_BETWEEN_REPLIES {
                continue;
            }
            flush(sink).await?;
            tokio::select! {
                biased;
                ready = &mut next => return Ok(ready),
                () = self.ping.notified() => {
                    sink.feed(Frame::Ping(Bytes::new())).await.map_err(|_| Ending::Lost)?;
                }
                Some(push) = outbox.next() => self.feed(sink, &push).await?,
            }
        }
    }

    /// Keeps the vigil until it has a reason to end the conversation.
    async fn watch(&self) -> Ending {
        let config = self.hub.config();
        let mut vigil = Vigil::new(config.heartbeat_ms, config.silence_max_ms, config.stall_max_ms);
        loop {
            match vigil.keep(self.pulse).await {
                Verdict::Fine => {}
                Verdict::Ping => self.ping.notify_one(),
                Verdict::Silent => return Ending::Close { code: 1011, reason: "nothing heard" },
                Verdict::Stalled => return SLOW_CONSUMER,
            }
        }
    }

    /// Ends what the drain time of a shutdown does not suffice for, early enough to end it in order.
    async fn overdue(&self) -> Ending {
        closing(self.hub).await;
        sleep(Duration::from_millis(limits::DRAIN_MS - 2 * limits::FAREWELL_MS)).await;
        GOING_AWAY
    }
}

async fn flush(sink: &mut (impl Sink<Frame, Error = WsError> + Unpin)) -> Result<(), Ending> {
    sink.flush().await.map_err(|_| Ending::Lost)
}

/// The frame of a reply.
fn print(address: &Address, answer: &Answer) -> Option<Frame> {
    match &answer.outcome {
        Ok(payload) => address.print(answer.epoch, payload),
        Err(refusal) => address.print(
            answer.epoch,
            &to_raw_value(&refusal.body(Operation::from_name(&address.operation))).ok()?,
        ),
    }
}

fn binary() -> Refusal {
    Refusal::new(
        ErrorCode::InvalidMessage,
        "The frame is binary.",
        "Send each message as one text frame: the envelope as JSON.",
    )
}
