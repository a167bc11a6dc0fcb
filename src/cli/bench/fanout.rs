//! `akashik bench fanout`: how fast what one agent records reaches many who listen.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Args;
use futures::{FutureExt, StreamExt, TryStreamExt};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::super::exit::Failure;
use super::super::{ask, screen};
use super::ear::{Ear, Heard};
use super::load::WARM_UP;
use super::record::{Target, duration, outcome};
use super::tally::rounded;
use super::wire::{PATIENCE, Wire};
use super::words::Words;
use super::{hub_process, run_name};
use crate::client::HubAddress;
use crate::protocol::Operation;

/// Subscribers that connect at the same time.
const JOINING: usize = 64;
/// RECORDs in flight while units are made ahead.
const AHEAD: usize = 256;
/// Receive buffer of a reader that never reads: the smallest that there is.
const STALLED_BUFFER_BYTES: u32 = 2_048;
/// How long the hub has to settle before its memory is read.
const SETTLE: Duration = Duration::from_secs(3);

/// A measurement of notifications.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("mode").required(true).args(["rate", "flat_out", "idle", "resume"]))]
pub(in crate::cli) struct Fanout {
    #[command(flatten)]
    target: Target,
    /// Connections, each with an agent and a subscription of its own
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    subscribers: u32,
    /// Record so many units a second and measure how long each takes to each subscriber
    #[arg(long, value_name = "PER_SECOND", value_parser = ask::number)]
    rate: Option<f64>,
    /// Record as fast as everybody is told, and count deliveries
    #[arg(long)]
    flat_out: bool,
    /// With --flat-out: how many units may be on their way to somebody
    #[arg(long, value_name = "UNITS", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..))]
    window: u64,
    /// How long to measure, after a second of warm-up
    #[arg(long, default_value_t = 10.0, value_parser = ask::number)]
    seconds: f64,
    /// With --rate: measure again beside so many readers that never read, each --back units behind
    #[arg(long, value_name = "COUNT", requires = "rate", default_value_t = 0)]
    stalled: u32,
    /// Connect so many subscribers and measure the hub's memory for each
    #[arg(long, value_name = "COUNT", requires = "hub_pid", value_parser = clap::value_parser!(u32).range(1..))]
    idle: Option<u32>,
    /// So many subscribers return at once, --back units behind: how long until all of them are told everything
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    resume: Option<u32>,
    /// How many units --resume and --stalled are behind
    #[arg(long, value_name = "UNITS", default_value_t = 10_000)]
    back: u64,
    /// Content of each unit; 100 makes notifications of about 300 bytes in frames of about 500
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(32..))]
    content_bytes: u32,
    /// The hub's process, for its processor time and memory (Linux)
    #[arg(long, value_name = "PID")]
    hub_pid: Option<u32>,
}

impl Fanout {
    /// Runs the measurement.
    pub fn run(&self) -> Result<(), Failure> {
        // One thread for all: it leaves the other processors to the hub, and needs no locks.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let report = LocalSet::new().block_on(&runtime, self.measure())?;
        let lost = report["lost"].as_u64().unwrap_or(0);
        screen::show(self.target.json, &report, screen::figures)?;
        outcome(lost)
    }

    async fn measure(&self) -> Result<Value, Failure> {
        let mut stage = Stage::new(self).await?;
        let mut report = json!({
            "bench": "fanout", "run": stage.run, "seed": self.target.seed, "content_bytes": self.content_bytes,
        });
        let figures = match (self.rate, self.idle, self.resume) {
            (Some(rate), ..) => self.steady(&mut stage, rate).await?,
            (_, Some(count), _) => self.idle(&mut stage, count).await?,
            (.., Some(count)) => self.resume(&mut stage, count).await?,
            _ => self.flat_out(&mut stage).await?,
        };
        if let (Value::Object(report), Value::Object(figures)) = (&mut report, figures) {
            report.extend(figures);
        }
        Ok(report)
    }

    async fn steady(&self, stage: &mut Stage<'_>, rate: f64) -> Result<Value, Failure> {
        if rate <= 0.0 {
            return Err(Failure::usage("--rate must be more than 0"));
        }
        let mut behind = None;
        if self.stalled > 0 {
            behind = Some(stage.publish_ahead(self.back).await?);
        }
        let audience = stage.audience("s", self.subscribers).await?;
        let (alone, lost) = stage.steady(rate, duration(self.seconds)?, &audience).await?;
        let mut report = json!({
            "subscribers": self.subscribers, "rate": rate, "deliveries": alone, "lost": lost,
        });
        if let Some(cursor) = behind {
            let stalled = stage.ears("z", self.stalled, Some(STALLED_BUFFER_BYTES), Some(&cursor)).await?;
            let (beside, more) = stage.steady(rate, duration(self.seconds)?, &audience).await?;
            report["stalled"] = json!(self.stalled);
            report["deliveries_beside_stalled"] = beside;
            report["lost"] = json!(lost + more);
            // They must still be there: a reader that is gone stalls nothing.
            drop(stalled);
        }
        Ok(report)
    }

    async fn flat_out(&self, stage: &mut Stage<'_>) -> Result<Value, Failure> {
        let audience = stage.audience("s", self.subscribers).await?;
        let (length, window) = (duration(self.seconds)?, self.window);
        stage.flat_out(WARM_UP, window, &audience).await?;
        let (hub, own) = (self.hub_cpu()?, hub_process::cpu_seconds(std::process::id()).unwrap_or(0.0));
        let (begin, bytes) = (Instant::now(), stage.heard.borrow().bytes);
        let deliveries = stage.flat_out(length, window, &audience).await?;
        let seconds = begin.elapsed().as_secs_f64();
        let each = |spent: f64| rounded(spent * 1e6 / deliveries.max(1) as f64);
        let own = hub_process::cpu_seconds(std::process::id()).unwrap_or(0.0) - own;
        let hub = hub.zip(self.hub_cpu()?).map(|(before, after)| each(after - before));
        Ok(json!({
            "subscribers": self.subscribers, "window": window, "seconds": rounded(seconds),
            "deliveries": deliveries, "deliveries_per_second": (deliveries as f64 / seconds).round(),
            "frame_bytes": (stage.heard.borrow().bytes - bytes) / deliveries.max(1),
            "hub_cpu_us_per_delivery": hub, "driver_cpu_us_per_delivery": each(own),
        }))
    }

    async fn idle(&self, stage: &mut Stage<'_>, count: u32) -> Result<Value, Failure> {
        let pid = self.hub_pid.ok_or_else(|| Failure::usage("--idle needs --hub-pid"))?;
        let before = hub_process::resident_bytes(pid)?;
        let ears = stage.ears("i", count, None, None).await?;
        tokio::time::sleep(SETTLE).await;
        let after = hub_process::resident_bytes(pid)?;
        drop(ears);
        Ok(json!({
            "idle": count, "hub_resident_before": before, "hub_resident_after": after,
            "hub_bytes_per_connection": after.saturating_sub(before) / u64::from(count),
        }))
    }

    async fn resume(&self, stage: &mut Stage<'_>, count: u32) -> Result<Value, Failure> {
        drop(stage.ears("r", count, None, None).await?);
        let cursor = stage.publish_ahead(self.back).await?;
        let (cpu, begin) = (self.hub_cpu()?, Instant::now());
        let begun = stage.heard.borrow().deliveries;
        let returning: Vec<JoinHandle<Result<Duration, Failure>>> = (0..count)
            .map(|n| {
                let (address, token) = (stage.address.clone(), self.target.token.clone());
                let (agent, cursor) = (stage.agent("r", n), cursor.clone());
                let (heard, back) = (Rc::clone(&stage.heard), self.back);
                tokio::task::spawn_local(async move {
                    let mut ear = Ear::open(&address, token.as_deref(), agent, None).await?;
                    ear.subscribe(Some(&cursor)).await?;
                    ear.listen(&heard, back).await?;
                    Ok(begin.elapsed())
                })
            })
            .collect();
        let (mut first, mut last) = (Duration::MAX, Duration::ZERO);
        for one in returning {
            let took = one.await.map_err(Failure::failed)??;
            (first, last) = (first.min(took), last.max(took));
        }
        let deliveries = stage.heard.borrow().deliveries - begun;
        let each = |spent: f64| rounded(spent * 1e6 / deliveries.max(1) as f64);
        Ok(json!({
            "resumed": count, "back": self.back, "first_live_seconds": rounded(first.as_secs_f64()),
            "all_live_seconds": rounded(last.as_secs_f64()), "deliveries": deliveries,
            "deliveries_per_second": (deliveries as f64 / last.as_secs_f64()).round(),
            "hub_cpu_us_per_delivery": cpu.zip(self.hub_cpu()?).map(|(before, after)| each(after - before)),
        }))
    }

    fn hub_cpu(&self) -> Result<Option<f64>, Failure> {
        self.hub_pid.map(hub_process::cpu_seconds).transpose()
    }
}

/// The hub, who records, and what has been heard.
struct Stage<'a> {
    fanout: &'a Fanout,
    address: HubAddress,
    run: String,
    words: Words,
    rng: SmallRng,
    publisher: Wire,
    heard: Rc<RefCell<Heard>>,
    published: u64,
}

/// Subscribers that listen in tasks of their own.
struct Audience {
    size: u64,
    listening: Vec<JoinHandle<Result<(), Failure>>>,
}

impl Audience {
    /// Fails as the first of them did.
    fn check(&self) -> Result<(), Failure> {
        match self.listening.iter().any(JoinHandle::is_finished) {
            true => Err(Failure::failed("a subscriber stopped listening")),
            false => Ok(()),
        }
    }
}

impl Drop for Audience {
    fn drop(&mut self) {
        self.listening.iter().for_each(JoinHandle::abort);
    }
}

impl<'a> Stage<'a> {
    async fn new(fanout: &'a Fanout) -> Result<Self, Failure> {
        let (address, run) = (fanout.target.address()?, run_name());
        let token = fanout.target.token.as_deref();
        let publisher = Wire::join(&address, token, format!("bench-{run}-p")).await?;
        Ok(Self {
            fanout,
            address,
            run,
            words: Words::new(fanout.target.seed),
            rng: SmallRng::seed_from_u64(fanout.target.seed),
            publisher,
            heard: Heard::new(),
            published: 0,
        })
    }

    fn agent(&self, kind: &str, n: u32) -> String {
        format!("bench-{}-{kind}{n}", self.run)
    }

    /// Connects, registers and subscribes so many.
    async fn ears(
        &self,
        kind: &str,
        count: u32,
        receive_buffer: Option<u32>,
        resume_after: Option<&str>,
    ) -> Result<Vec<Ear>, Failure> {
        let token = self.fanout.target.token.as_deref();
        let joining = (0..count).map(|n| async move {
            let mut ear = Ear::open(&self.address, token, self.agent(kind, n), receive_buffer).await?;
            ear.register().await?;
            ear.subscribe(resume_after).await?;
            Ok(ear)
        });
        futures::stream::iter(joining).buffer_unordered(JOINING).try_collect().await
    }

    /// Connects so many and lets them listen.
    async fn audience(&self, kind: &str, count: u32) -> Result<Audience, Failure> {
        let ears = self.ears(kind, count, None, None).await?;
        let listening = ears
            .into_iter()
            .map(|mut ear| {
                let heard = Rc::clone(&self.heard);
                tokio::task::spawn_local(async move {
                    let outcome = ear.listen(&heard, u64::MAX).await;
                    if let Err(failure) = &outcome {
                        heard.borrow_mut().tally.fail(|| failure.to_string());
                    }
                    outcome
                })
            })
            .collect();
        Ok(Audience { size: u64::from(count), listening })
    }

    /// Queues one unit that says when it is sent.
    async fn publish(&mut self) -> Result<(), Failure> {
        let Self { words, rng, heard, fanout, .. } = self;
        let stamp = heard.borrow().stamp();
        let rest = (fanout.content_bytes as usize).saturating_sub(stamp.len());
        self.published += 1;
        let payload = |out: &mut String| {
            out.push_str(r#"{"type":"finding","content":""#);
            out.push_str(&stamp);
            words.write(rng, rest, out);
            out.push_str(
                r#"","intent":{"purpose":"Measure the hub"},"confidence":{"score":0.8,"reason":"Made up."}}"#,
            );
        };
        self.publisher.feed(Operation::Record, payload).await.map(drop)
    }

    /// The publisher's next reply: the epoch of its unit.
    async fn published(&mut self) -> Result<u64, Failure> {
        epoch_of(&self.publisher.reply().await?)
    }

    /// Records so many units; the cursor before the first of them.
    async fn publish_ahead(&mut self, count: u64) -> Result<String, Failure> {
        let (mut begun, mut done, mut before) = (0, 0, None);
        while done < count {
            while begun < count && begun - done < AHEAD as u64 {
                self.publish().await?;
                begun += 1;
            }
            self.publisher.flush().await?;
            let epoch = self.published().await?;
            before.get_or_insert(epoch - 1);
            done += 1;
        }
        Ok(format!("{}.0", before.unwrap_or(0)))
    }

    /// Waits until so many deliveries were heard; how many are missing when nothing comes any more.
    async fn hear(&self, deliveries: u64) -> u64 {
        let news = Rc::clone(&self.heard.borrow().news);
        loop {
            let heard = self.heard.borrow().deliveries;
            if heard >= deliveries || timeout(PATIENCE, news.notified()).await.is_err() {
                return deliveries.saturating_sub(heard);
            }
        }
    }

    /// Records at a rate; the latencies of all deliveries, and how many never came.
    async fn steady(
        &mut self,
        rate: f64,
        length: Duration,
        audience: &Audience,
    ) -> Result<(Value, u64), Failure> {
        let mut ticks = interval(Duration::from_secs_f64(1.0 / rate));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let due = self.heard.borrow().deliveries;
        let (begun, mut measured) = (Instant::now(), None);
        let mut count = 0;
        while begun.elapsed() < WARM_UP + length {
            if measured.is_none() && begun.elapsed() >= WARM_UP {
                measured = Some(Instant::now());
                self.heard.borrow_mut().measure_from_now();
            }
            ticks.tick().await;
            self.publish().await?;
            self.publisher.flush().await?;
            self.published().await?;
            count += 1;
            audience.check()?;
        }
        let seconds = measured.map_or(0.0, |from| from.elapsed().as_secs_f64());
        let lost = self.hear(due + count * audience.size).await;
        let mut heard = self.heard.borrow_mut();
        let figures = heard.tally.figures(seconds);
        let p95 = heard.tally.quantile_ms(0.95);
        heard.measured_from = u64::MAX;
        let mut figures = figures;
        figures["p95_ms"] = json!(p95);
        Ok((figures, lost))
    }

    /// Records as fast as everybody is told; the deliveries, all of them heard.
    async fn flat_out(&mut self, length: Duration, window: u64, audience: &Audience) -> Result<u64, Failure> {
        let begun = Instant::now();
        let before = self.heard.borrow().deliveries;
        let (mut count, mut replied) = (0, 0);
        while begun.elapsed() < length {
            let through = (self.heard.borrow().deliveries - before) / audience.size;
            let room = window.saturating_sub(count - through);
            for _ in 0..room {
                self.publish().await?;
                count += 1;
            }
            if room > 0 {
                self.publisher.flush().await?;
            }
            while replied < count {
                let Some(reply) = self.publisher.reply().now_or_never() else { break };
                epoch_of(&reply?)?;
                replied += 1;
            }
            audience.check()?;
            let news = Rc::clone(&self.heard.borrow().news);
            timeout(PATIENCE, news.notified())
                .await
                .map_err(|_| Failure::Unreachable(format!("nobody was told anything for {PATIENCE:?}")))?;
        }
        while replied < count {
            self.published().await?;
            replied += 1;
        }
        match self.hear(before + count * audience.size).await {
            0 => Ok(count * audience.size),
            lost => Err(Failure::failed(format!("{lost} deliveries never came"))),
        }
    }
}

/// The epoch in a reply to RECORD.
fn epoch_of(reply: &str) -> Result<u64, Failure> {
    let accepted = reply.contains(r#""status":"accepted""#);
    let value: Value = serde_json::from_str(reply).map_err(Failure::failed)?;
    let epoch = value["epoch"].as_u64().filter(|_| accepted);
    epoch.ok_or_else(|| Failure::Refused(reply.to_owned()))
}
