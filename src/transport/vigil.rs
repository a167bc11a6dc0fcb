//! Watching over a connection: when to ping, when the peer is gone, when it takes nothing any more.
//!
//! Time is counted in ticks that the hub really saw: a hub that was held up for a minute has not watched
//! for a minute, and blames nobody.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a vigil is kept by.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Bytes read from the peer.
    heard: AtomicU64,
    /// Bytes the peer's connection has taken.
    taken: AtomicU64,
    /// Whether the hub waits for the peer to say something.
    reading: AtomicBool,
    /// Whether output waits for the peer to take it.
    owing: AtomicBool,
}

impl Pulse {
    /// Says whether the hub is reading.
    pub fn set_reading(&self, reading: bool) {
        self.reading.store(reading, Ordering::Relaxed);
    }
}

/// A connection whose bytes are counted.
pub struct Metered<S> {
    inner: S,
    pulse: Arc<Pulse>,
}

impl<S> Metered<S> {
    /// Counts the bytes of `inner`.
    pub fn new(inner: S, pulse: Arc<Pulse>) -> Self {
        Self { inner, pulse }
    }

    /// Where the bytes are counted.
    pub fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.pulse)
    }

    fn note(&self, done: &Poll<io::Result<usize>>) {
        self.pulse.owing.store(done.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(Ok(count)) = done {
            self.pulse.taken.fetch_add(*count as u64, Ordering::Relaxed);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let done = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.pulse.heard.fetch_add((buf.filled().len() - before) as u64, Ordering::Relaxed);
        done
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.note(&done);
        done
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.note(&done);
        done
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// What a tick says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All is well.
    Fine,
    /// Time for a ping.
    Ping,
    /// Nothing was heard for too long.
    Silent,
    /// Nothing was taken for too long.
    Stalled,
}

/// Counts the ticks.
#[derive(Debug)]
pub struct Vigil {
    tick_ms: u64,
    heartbeat_ms: u64,
    silence_max_ms: u64,
    stall_max_ms: u64,
    since_ping: u64,
    silent: u64,
    stalled: u64,
    heard: u64,
    taken: u64,
}

impl Vigil {
    /// A vigil with these bounds, in milliseconds.
    pub fn new(heartbeat_ms: u64, silence_max_ms: u64, stall_max_ms: u64) -> Self {
        // Eight looks within the shortest bound, but no more than 200 a second.
        let tick_ms = (heartbeat_ms.min(silence_max_ms).min(stall_max_ms) / 8).clamp(5, 2_500);
        Self {
            tick_ms,
            heartbeat_ms,
            silence_max_ms,
            stall_max_ms,
            since_ping: 0,
            silent: 0,
            stalled: 0,
            heard: 0,
            taken: 0,
        }
    }

    /// A vigil that only minds whether output is taken.
    pub fn over_output(stall_max_ms: u64) -> Self {
        Self::new(u64::MAX, u64::MAX, stall_max_ms)
    }

    /// Keeps the vigil until it has something to say.
    pub async fn keep(&mut self, pulse: &Pulse) -> Verdict {
        loop {
            // Slept anew after each look: a hub that was held up must not make up for looks that it missed.
            tokio::time::sleep(self.every()).await;
            match self.tick(pulse) {
                Verdict::Fine => {}
                verdict => return verdict,
            }
        }
    }

    /// How often to look.
    fn every(&self) -> Duration {
        Duration::from_millis(self.tick_ms)
    }

    /// Looks once.
    fn tick(&mut self, pulse: &Pulse) -> Verdict {
        let heard = pulse.heard.load(Ordering::Relaxed);
        let taken = pulse.taken.load(Ordering::Relaxed);
        let owing = pulse.owing.load(Ordering::Relaxed);
        let took = taken != self.taken;
        self.stalled = if owing && !took { self.stalled + self.tick_ms } else { 0 };
        // A peer that takes what waits for it lives, even if it has nothing to say.
        let alive = heard != self.heard || !pulse.reading.load(Ordering::Relaxed) || (owing && took);
        self.silent = if alive { 0 } else { self.silent + self.tick_ms };
        (self.heard, self.taken) = (heard, taken);
        self.since_ping += self.tick_ms;
        if self.stalled >= self.stall_max_ms {
            Verdict::Stalled
        } else if self.silent >= self.silence_max_ms {
            Verdict::Silent
        } else if self.since_ping >= self.heartbeat_ms {
            self.since_ping = 0;
            Verdict::Ping
        } else {
            Verdict::Fine
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks until something but `Fine` and `Ping` comes, at most `max` times; the number of ticks and pings.
    fn watch(
        vigil: &mut Vigil,
        pulse: &Pulse,
        max: u64,
        mut each: impl FnMut(&Pulse),
    ) -> (Verdict, u64, u64) {
        let mut pings = 0;
        for tick in 1..=max {
            each(pulse);
            match vigil.tick(pulse) {
                Verdict::Fine => {}
                Verdict::Ping => pings += 1,
                end => return (end, tick, pings),
            }
        }
        (Verdict::Fine, max, pings)
    }

    #[test]
    fn silence_ends_it_after_three_unanswered_pings() {
        let (mut vigil, pulse) = (Vigil::new(20_000, 60_000, 30_000), Pulse::default());
        pulse.set_reading(true);
        assert_eq!(vigil.every(), Duration::from_millis(2_500));
        assert_eq!(watch(&mut vigil, &pulse, 100, |_| {}), (Verdict::Silent, 24, 2));
    }

    #[test]
    fn whatever_is_heard_counts_and_not_reading_does_not() {
        let pulse = Pulse::default();
        pulse.set_reading(true);
        let byte = |pulse: &Pulse| {
            pulse.heard.fetch_add(1, Ordering::Relaxed);
        };
        let mut vigil = Vigil::new(100, 300, 1_000);
        assert_eq!(watch(&mut vigil, &pulse, 1_000, byte).0, Verdict::Fine);
        pulse.set_reading(false);
        assert_eq!(watch(&mut vigil, &pulse, 1_000, |_| {}).0, Verdict::Fine);
    }

    #[test]
    fn output_that_nobody_takes_ends_it_unless_a_byte_moves() {
        let pulse = Pulse::default();
        pulse.owing.store(true, Ordering::Relaxed);
        pulse.set_reading(true);
        let byte = |pulse: &Pulse| {
            pulse.taken.fetch_add(1, Ordering::Relaxed);
        };
        let mut vigil = Vigil::new(80, 900_000, 800);
        assert_eq!(watch(&mut vigil, &pulse, 1_000, byte).0, Verdict::Fine);
        let (verdict, ticks, _) = watch(&mut vigil, &pulse, 1_000, |_| {});
        assert_eq!((verdict, ticks), (Verdict::Stalled, 80));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_noticed_and_one_that_does_is_not() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = Metered::new(near, Arc::default());
        let pulse = near.pulse();
        near.write_all(b"12345678").await.unwrap();
        assert!(!pulse.owing.load(Ordering::Relaxed), "all was taken");
        let (mut vigil, mut other) = (Vigil::over_output(1_000), Vigil::over_output(1_000));
        tokio::select! {
            _ = near.write_all(b"9") => panic!("there was no room"),
            verdict = vigil.keep(&pulse) => assert_eq!(verdict, Verdict::Stalled),
        }
        let read = async {
            for _ in 0..100 {
                tokio::time::sleep(Duration::from_millis(900)).await;
                far.read_u8().await.unwrap();
            }
        };
        tokio::select! {
            _ = near.write_all(&[0; 200]) => panic!("there was no room"),
            verdict = other.keep(&pulse) => panic!("{verdict:?}"),
            () = read => {}
        }
    }
}
