//! `akashik bench compact`: how long a COMPACT takes, and what it costs those who record meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::super::exit::Failure;
use super::super::screen;
use super::record::{Target, outcome};
use super::run_name;
use super::tally::{Tally, rounded};
use super::wire::Wire;
use super::words::Words;
use crate::protocol::Operation;

/// How long is measured before the COMPACT and after it.
const AROUND: Duration = Duration::from_secs(2);

/// A measurement of COMPACT.
#[derive(Debug, Args)]
pub(in crate::cli) struct Compact {
    #[command(flatten)]
    target: Target,
    /// archive, summarize or purge
    #[arg(long, default_value = "archive")]
    strategy: String,
    /// Only units that are older than so many epochs
    #[arg(long, value_name = "EPOCHS")]
    max_age: u64,
    /// Units that are expected to be touched; another number is an error
    #[arg(long, value_name = "COUNT")]
    units_expected: Option<u64>,
    /// Agents that operate meanwhile: RECORD and DETECT by turns
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    agents: u16,
    /// How often each of them does, whether or not the last answer is there
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1000))]
    per_second: u64,
    /// Content of each unit written
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    content_bytes: u32,
}

/// Before, during and after the COMPACT, and the end.
const PHASES: [&str; 3] = ["before", "during", "after"];
const END: u8 = PHASES.len() as u8;

impl Compact {
    /// Runs the measurement.
    pub fn run(&self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (report, errors) = runtime.block_on(self.measure())?;
        screen::show(self.target.json, &report, screen::figures)?;
        outcome(errors)
    }

    async fn measure(&self) -> Result<(Value, u64), Failure> {
        let (address, token) = (self.target.address()?, self.target.token.as_deref());
        let (run, words) = (run_name(), Arc::new(Words::new(self.target.seed)));
        let phase = Arc::new(AtomicU8::new(0));
        let mut operating = Vec::new();
        for n in 0..u64::from(self.agents) {
            let operator = Operator {
                wire: Wire::join(&address, token, format!("bench-{run}-{n}")).await?,
                words: Arc::clone(&words),
                rng: SmallRng::seed_from_u64(self.target.seed.wrapping_add(n)),
                content_bytes: self.content_bytes as usize,
                pause: Duration::from_secs(1) / u32::try_from(self.per_second).unwrap_or(1),
            };
            operating.push(tokio::spawn(operator.run(Arc::clone(&phase))));
        }
        let mut wire = Wire::join(&address, token, format!("bench-{run}-compact")).await?;
        sleep(AROUND).await;
        let began = Instant::now();
        phase.store(1, Ordering::Release);
        let payload = json!({ "strategy": self.strategy, "filter": { "max_age_epochs": self.max_age } });
        wire.feed(Operation::Compact, |out| out.push_str(&payload.to_string())).await?;
        wire.flush().await?;
        let reply = wire.reply().await?;
        let took = began.elapsed();
        phase.store(2, Ordering::Release);
        sleep(AROUND).await;
        phase.store(END, Ordering::Release);
        let reply: Value = serde_json::from_str(&reply).map_err(Failure::failed)?;
        let answer = &reply["payload"];
        let mut report = json!({
            "bench": "compact", "run": run, "strategy": self.strategy, "agents": self.agents,
            "per_second": self.per_second, "compact_ms": rounded(took.as_secs_f64() * 1e3),
            "answer": answer,
        });
        let mut phases = PHASES.map(|_| Tally::new());
        for operator in operating {
            for (all, own) in phases.iter_mut().zip(operator.await.map_err(Failure::failed)??) {
                all.add(own);
            }
        }
        let mut errors = 0;
        for ((name, tally), seconds) in PHASES.iter().zip(&phases).zip([AROUND, took, AROUND]) {
            report[*name] = tally.figures(seconds.as_secs_f64());
            errors += tally.errors;
        }
        wire.leave().await?;
        let touched = answer["units_affected"].as_u64();
        if touched.is_none() || self.units_expected.is_some_and(|expected| touched != Some(expected)) {
            return Err(Failure::failed(format!("the COMPACT was answered {answer}")));
        }
        Ok((report, errors))
    }
}

/// An agent that operates at a pace of its own.
struct Operator {
    wire: Wire,
    words: Arc<Words>,
    rng: SmallRng,
    content_bytes: usize,
    pause: Duration,
}

impl Operator {
    /// The latencies by phase, each counted from the moment at which the operation was due.
    async fn run(mut self, phase: Arc<AtomicU8>) -> Result<[Tally; PHASES.len()], Failure> {
        let mut tallies = PHASES.map(|_| Tally::new());
        let mut ticks = interval(self.pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut turn = 0u64;
        loop {
            let due = ticks.tick().await;
            let began = phase.load(Ordering::Acquire);
            if began >= END {
                break;
            }
            turn += 1;
            let Self { wire, words, rng, content_bytes, .. } = &mut self;
            if turn.is_multiple_of(2) {
                wire.feed(Operation::Detect, |out| out.push_str(r#"{"mode":"list"}"#)).await?;
            } else {
                wire.feed(Operation::Record, |out| {
                    out.push_str(r#"{"type":"finding","content":""#);
                    words.write(rng, *content_bytes, out);
                    out.push_str(r#"","intent":{"purpose":"to measure"},"confidence":{"score":0.5,"reason":"made up"}}"#);
                })
                .await?;
            }
            wire.flush().await?;
            let reply = wire.reply().await?;
            // What was under way when the COMPACT began, or ended, had it beside.
            let ended = phase.load(Ordering::Acquire);
            let beside = if began == 0 && ended > 0 || began == 1 { 1 } else { began };
            let tally = &mut tallies[usize::from(beside)];
            if reply.contains(r#""status":"accepted""#) || reply.contains(r#""status":"ok""#) {
                tally.acknowledged += 1;
                tally.measure(due.elapsed());
            } else {
                tally.fail(|| reply.as_str().to_owned());
            }
        }
        self.wire.leave().await?;
        Ok(tallies)
    }
}
