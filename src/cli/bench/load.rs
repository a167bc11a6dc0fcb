//! The writers: each agent keeps so many RECORDs in flight over its own connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::super::exit::Failure;
use super::tally::Tally;
use super::wire::Wire;
use super::words::Words;
use crate::client::HubAddress;
use crate::protocol::Operation;

/// What is not counted at the beginning.
pub(super) const WARM_UP: Duration = Duration::from_secs(1);

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(super) enum Until {
    /// After the warm-up and this long.
    Time(Duration),
    /// After so many units, all of them counted.
    Units(u64),
}

/// Who writes what, where and for how long.
#[derive(Clone)]
pub(super) struct Load {
    pub address: HubAddress,
    pub token: Option<String>,
    pub words: Arc<Words>,
    pub seed: u64,
    /// Agents are named `bench-<run>-<n>`.
    pub run: String,
    pub agents: usize,
    pub depth: usize,
    pub content_bytes: usize,
    pub until: Until,
}

/// What came of it.
pub(super) struct Written {
    pub tally: Tally,
    /// How long was measured.
    pub seconds: f64,
    /// Size of one message.
    pub message_bytes: usize,
}

/// What all writers of a run share.
struct Course {
    load: Load,
    /// Units begun, for a run that counts them.
    begun: AtomicU64,
    measured_from: Instant,
    ends: Option<Instant>,
}

impl Load {
    /// Connects everybody, then writes.
    pub async fn run(self) -> Result<Written, Failure> {
        let joining = (0..self.agents).map(|n| {
            let agent = format!("bench-{}-{n}", self.run);
            Wire::join(&self.address, self.token.as_deref(), agent)
        });
        let wires = futures::future::try_join_all(joining).await?;
        let now = Instant::now();
        let (measured_from, ends) = match self.until {
            Until::Time(duration) => (now + WARM_UP, Some(now + WARM_UP + duration)),
            Until::Units(_) => (now, None),
        };
        let message_bytes = self.message_bytes();
        let course = Arc::new(Course { load: self, begun: AtomicU64::new(0), measured_from, ends });
        let writers: Vec<_> = wires
            .into_iter()
            .enumerate()
            .map(|(n, wire)| tokio::spawn(Writer::new(Arc::clone(&course), wire, n as u64).run()))
            .collect();
        let mut tally = Tally::new();
        for writer in writers {
            tally.add(writer.await.map_err(Failure::failed)?);
        }
        let ended = course.ends.unwrap_or_else(Instant::now);
        let seconds = ended.duration_since(measured_from).as_secs_f64();
        Ok(Written { tally, seconds, message_bytes })
    }

    /// The size of a message such as this load sends.
    pub fn message_bytes(&self) -> usize {
        let mut rng = SmallRng::seed_from_u64(self.seed);
        let agent = format!("bench-{}-0", self.run);
        super::wire::envelope(&agent, 0, Operation::Record, |out| self.payload(&mut rng, out)).len()
    }

    /// A RECORD's payload: everything but the content is written ahead.
    fn payload(&self, rng: &mut SmallRng, out: &mut String) {
        out.push_str(r#"{"mode":"committed","type":"finding","content":""#);
        self.words.write(rng, self.content_bytes, out);
        out.push_str(concat!(
            r#"","intent":{"purpose":"Measure the hub","task_id":null,"question":null},"#,
            r#""confidence":{"score":0.8,"reason":"Made up."},"relations":[]}"#,
        ));
    }
}

struct Writer {
    course: Arc<Course>,
    wire: Wire,
    rng: SmallRng,
    /// When each message in flight was sent, oldest first.
    in_flight: VecDeque<Instant>,
    tally: Tally,
}

impl Writer {
    fn new(course: Arc<Course>, wire: Wire, number: u64) -> Self {
        let rng = SmallRng::seed_from_u64(course.load.seed.wrapping_mul(1_000_003).wrapping_add(number));
        Self { course, wire, rng, in_flight: VecDeque::new(), tally: Tally::new() }
    }

    async fn run(mut self) -> Tally {
        match self.write().await {
            Ok(()) => {
                let Self { wire, mut tally, .. } = self;
                if let Err(failure) = wire.leave().await {
                    tally.fail(|| failure.to_string());
                }
                tally
            }
            Err(failure) => {
                self.tally.fail(|| failure.to_string());
                self.tally.errors += self.in_flight.len() as u64;
                self.tally
            }
        }
    }

    async fn write(&mut self) -> Result<(), Failure> {
        loop {
            while self.in_flight.len() < self.course.load.depth && self.may_begin() {
                let (load, rng) = (&self.course.load, &mut self.rng);
                self.in_flight.push_back(Instant::now());
                self.wire.feed(Operation::Record, |out| load.payload(rng, out)).await?;
            }
            if self.in_flight.is_empty() {
                return Ok(());
            }
            self.wire.flush().await?;
            let reply = self.wire.reply().await?;
            self.take(&reply);
            // What has already arrived is taken at once: one flush then answers all of it.
            while !self.in_flight.is_empty() {
                let Some(reply) = self.wire.reply().now_or_never() else { break };
                self.take(&reply?);
            }
        }
    }

    fn may_begin(&self) -> bool {
        match (self.course.load.until, self.course.ends) {
            (Until::Units(units), _) => self.course.begun.fetch_add(1, Ordering::Relaxed) < units,
            (_, Some(ends)) => Instant::now() < ends,
            (_, None) => false,
        }
    }

    fn take(&mut self, reply: &str) {
        let now = Instant::now();
        let Some(sent) = self.in_flight.pop_front() else { return };
        if !reply.contains(r#""status":"accepted""#) {
            return self.tally.fail(|| reply.to_owned());
        }
        self.tally.acknowledged += 1;
        let counted = now >= self.course.measured_from && self.course.ends.is_none_or(|ends| now < ends);
        if counted {
            self.tally.measure(now - sent);
        }
    }
}
