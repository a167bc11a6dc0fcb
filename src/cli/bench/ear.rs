//! A subscriber that costs next to nothing: it takes the frames apart itself and looks for one thing in them, when
//! they were sent. The driver shares its processors with the hub, so what it spends is missing there.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::super::exit::Failure;
use super::tally::Tally;
use super::wire::{PATIENCE, envelope};
use crate::client::HubAddress;
use crate::protocol::Operation;

/// What stands before the time in a unit's content: nothing that a frame contains elsewhere.
const MARK: &[u8] = b"@@";
/// Digits of the time after it, hexadecimal nanoseconds.
const DIGITS: usize = 16;
/// Everybody reads into the same memory, so that ten thousand ears need no buffers of their own.
const SCRATCH_BYTES: usize = 256 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// What all ears have heard.
pub(super) struct Heard {
    clock: Instant,
    /// Deliveries, of those that anybody counts.
    pub deliveries: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// Rung at every turn of an ear that has heard something.
    pub news: Rc<Notify>,
    /// Latencies of what was sent from this time on, nanoseconds of the clock; none before it is set.
    pub measured_from: u64,
    pub tally: Tally,
}

impl Heard {
    /// Nothing yet.
    pub fn new() -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            clock: Instant::now(),
            deliveries: 0,
            bytes: 0,
            news: Rc::default(),
            measured_from: u64::MAX,
            tally: Tally::new(),
        }))
    }

    /// Nanoseconds of the driver's clock.
    pub fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Begins to measure with what is sent from now on.
    pub fn measure_from_now(&mut self) {
        self.tally = Tally::new();
        self.measured_from = self.now();
    }

    /// The beginning of a unit's content that tells when it was sent.
    pub fn stamp(&self) -> String {
        format!("@@{:016x} ", self.now())
    }
}

/// One subscriber's socket.
pub(super) struct Ear {
    agent: String,
    stream: TcpStream,
    /// The beginning of a frame whose end has not come.
    part: Vec<u8>,
    /// The number in the next message's id.
    sent: u64,
    /// When the last notification was sent: the next one must be later.
    last: u64,
    /// How many it has heard.
    pub count: u64,
}

impl Ear {
    /// Connects. A small receive buffer makes a reader that stops stall its sender soon.
    pub async fn open(
        address: &HubAddress,
        token: Option<&str>,
        agent: String,
        receive_buffer: Option<u32>,
    ) -> Result<Self, Failure> {
        let unreachable =
            |error: &dyn std::fmt::Display| Failure::Unreachable(format!("{}: {error}", address.authority()));
        let found = lookup_host(address.authority()).await.map_err(|e| unreachable(&e))?.next();
        let at = found.ok_or_else(|| unreachable(&"no such host"))?;
        let socket = if at.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let mut stream = socket.connect(at).await.map_err(|e| unreachable(&e))?;
        stream.set_nodelay(true)?;
        let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let head = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{token}\r\n",
            address.path("ws"),
            address.authority(),
        );
        stream.write_all(head.as_bytes()).await.map_err(|e| unreachable(&e))?;
        // Whoever comes back under its name must not repeat the ids of its messages.
        let sent = u64::from(rand::random::<u32>());
        let mut ear = Self { agent, stream, part: Vec::new(), sent, last: 0, count: 0 };
        let answer = ear.until(|part| {
            let end = part.windows(4).position(|window| window == b"\r\n\r\n")?;
            Some((String::from_utf8_lossy(&part[..end]).into_owned(), end + 4))
        });
        let answer = answer.await?;
        if answer.starts_with("HTTP/1.1 101") { Ok(ear) } else { Err(unreachable(&answer)) }
    }

    /// Sends one message and returns its reply. What is pushed before it is not looked at.
    pub async fn ask(&mut self, operation: Operation, payload: &str) -> Result<String, Failure> {
        let id = format!(r#""id":"{}-{}""#, self.agent, self.sent);
        let text = envelope(&self.agent, self.sent, operation, |out| out.push_str(payload));
        self.sent += 1;
        self.stream.write_all(&client_frame(text.as_bytes())).await?;
        loop {
            let frame = self.until(|part| {
                let (opcode, payload, end) = split(part)?;
                Some(((opcode, String::from_utf8_lossy(&part[payload]).into_owned()), end))
            });
            match frame.await? {
                (1, text) if text.contains(&id) => {
                    return match text.contains(r#""suggested_action""#) {
                        true => Err(Failure::Refused(text)),
                        false => Ok(text),
                    };
                }
                (8, _) => {
                    return Err(Failure::Unreachable("the hub closed a subscriber's connection".into()));
                }
                _ => {}
            }
        }
    }

    /// Registers the agent.
    pub async fn register(&mut self) -> Result<(), Failure> {
        let payload = format!(r#"{{"id":"{}","role":"bench","interests":[]}}"#, self.agent);
        self.ask(Operation::Register, &payload).await.map(drop)
    }

    /// Subscribes to what is recorded, under its own name; from now on or from a cursor on.
    pub async fn subscribe(&mut self, resume_after: Option<&str>) -> Result<(), Failure> {
        let resume = resume_after.map_or_else(String::new, |at| format!(r#","resume_after":"{at}""#));
        let payload = format!(
            r#"{{"action":"subscribe","subscription":{{"id":"{}","events":["memory.recorded"]{resume}}}}}"#,
            self.agent
        );
        self.ask(Operation::Subscribe, &payload).await.map(drop)
    }

    /// Reads until `found` finds what it looks for at the beginning, and how long that is.
    async fn until<T>(&mut self, found: impl Fn(&[u8]) -> Option<(T, usize)>) -> Result<T, Failure> {
        loop {
            if let Some((what, end)) = found(&self.part) {
                self.part.drain(..end);
                return Ok(what);
            }
            let more = poll_fn(|context| self.poll_more(context));
            timeout(PATIENCE, more)
                .await
                .map_err(|_| Failure::Unreachable(format!("no answer within {PATIENCE:?}")))??;
        }
    }

    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let read = ready!(poll_read(&mut self.stream, context, scratch))?;
            self.part.extend_from_slice(&scratch[..read]);
            Poll::Ready(Ok(()))
        })
    }

    /// Listens until it has heard so many in all; returns at once what it holds already.
    pub async fn listen(&mut self, heard: &RefCell<Heard>, count: u64) -> Result<(), Failure> {
        // What came in behind a reply.
        let part = std::mem::take(&mut self.part);
        self.take(&part, heard)?;
        while self.count < count {
            poll_fn(|context| {
                SCRATCH.with_borrow_mut(|scratch| {
                    let held = self.part.len();
                    scratch[..held].copy_from_slice(&self.part);
                    let read = ready!(poll_read(&mut self.stream, context, &mut scratch[held..]))?;
                    Poll::Ready(self.take(&scratch[..held + read], heard))
                })
            })
            .await?;
        }
        Ok(())
    }

    /// Goes through the frames at hand; the beginning of one is kept.
    fn take(&mut self, mut bytes: &[u8], heard: &RefCell<Heard>) -> Result<(), Failure> {
        let mut all = heard.borrow_mut();
        let (now, before) = (all.now(), self.count);
        while let Some((opcode, payload, end)) = split(bytes) {
            match opcode {
                1 => {
                    let sent = sent_at(&bytes[payload]);
                    let sent = sent.ok_or_else(|| Failure::failed("a frame without a time was pushed"))?;
                    if sent <= self.last {
                        return Err(Failure::failed("a notification was repeated, or out of order"));
                    }
                    self.last = sent;
                    self.count += 1;
                    all.bytes += end as u64;
                    if sent >= all.measured_from {
                        all.tally.measure(Duration::from_nanos(now.saturating_sub(sent)));
                    }
                }
                8 => return Err(Failure::Unreachable("the hub closed a subscriber's connection".into())),
                _ => {}
            }
            bytes = &bytes[end..];
        }
        all.deliveries += self.count - before;
        all.news.notify_one();
        self.part.clear();
        self.part.extend_from_slice(bytes);
        if bytes.len() > SCRATCH_BYTES / 2 {
            return Err(Failure::failed("a frame is larger than any notification of this measurement"));
        }
        Ok(())
    }
}

fn poll_read(
    stream: &mut TcpStream,
    context: &mut Context<'_>,
    into: &mut [u8],
) -> Poll<Result<usize, Failure>> {
    let mut buffer = ReadBuf::new(into);
    ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
    Poll::Ready(match buffer.filled().len() {
        0 => Err(Failure::Unreachable("the hub closed a subscriber's connection".into())),
        read => Ok(read),
    })
}

/// Takes the first frame of a server apart: opcode, where its payload is, where it ends; nothing while it is not whole.
fn split(bytes: &[u8]) -> Option<(u8, std::ops::Range<usize>, usize)> {
    let (opcode, length) = (bytes.first()? & 0x0f, *bytes.get(1)?);
    let (begin, length) = match length {
        126 => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
        127 => (10, usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?),
        short => (2, usize::from(short)),
    };
    let end = begin + length;
    (bytes.len() >= end).then_some((opcode, begin..end, end))
}

/// A client's text frame, masked with zeros, which changes nothing.
fn client_frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81];
    match u16::try_from(payload.len()) {
        Ok(short @ 0..126) => frame.push(0x80 | short as u8),
        Ok(medium) => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&medium.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

/// When a notification was sent. The time stands near its end, in the summary.
fn sent_at(frame: &[u8]) -> Option<u64> {
    let at = frame.windows(MARK.len()).rposition(|window| window == MARK)?;
    let digits = frame.get(at + MARK.len()..at + MARK.len() + DIGITS)?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_apart_wherever_they_are_cut() {
        let long = [&[0x81, 126, 1, 0][..], &[7; 256]].concat();
        let both = [&long[..], &[0x89, 1, 9]].concat();
        for cut in 0..long.len() {
            assert_eq!(split(&both[..cut]), None, "{cut}");
        }
        assert_eq!(split(&both), Some((1, 4..260, 260)));
        assert_eq!(split(&both[260..]), Some((9, 2..3, 3)));
    }

    #[test]
    fn the_time_is_found_again() {
        let heard = Heard::new();
        let before = heard.borrow().now();
        let stamp = heard.borrow().stamp();
        let sent = sent_at(format!(r#"{{"summary":"Finding by x: {stamp}words"}}"#).as_bytes()).unwrap();
        assert!((before..=heard.borrow().now()).contains(&sent));
        assert_eq!((sent_at(b"no time"), sent_at(b"@@12")), (None, None));
    }

    #[test]
    fn what_is_sent_is_a_masked_frame() {
        for length in [5, 125, 126, 70_000] {
            let frame = client_frame(&vec![b'x'; length]);
            let masked = frame.clone();
            // Without the mask's bit it is a server's frame with four bytes of payload more.
            assert_eq!(masked[1] & 0x80, 0x80);
            assert_eq!(frame.iter().rev().take(length).filter(|b| **b == b'x').count(), length);
        }
    }
}
