//! `akashik bench attune`: how long ATTUNE takes, and what it costs those who write meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::exit::Failure;
use super::super::screen;
use super::load::{Load, Until, WARM_UP};
use super::record::{Target, duration, outcome};
use super::run_name;
use super::tally::Tally;
use super::wire::Wire;
use super::words::Words;
use crate::protocol::{ContextBudget, Operation};

/// A measurement of ATTUNE.
#[derive(Debug, Args)]
pub(in crate::cli) struct Attune {
    #[command(flatten)]
    target: Target,
    /// Units that the Field must hold; fewer is an error
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    units_expected: usize,
    /// Agents that ask, each with one ATTUNE in flight
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    agents: u16,
    /// How long to measure, after a second of warm-up
    #[arg(long, default_value_t = 10.0, value_parser = super::super::ask::number)]
    seconds: f64,
    /// Words of each hint
    #[arg(long, default_value_t = 10)]
    hint_words: usize,
    /// Units asked for
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    max_units: u64,
    /// Agents that write meanwhile; they are also measured alone first
    #[arg(long, default_value_t = 0)]
    writers: u16,
    /// RECORDs in flight per writer
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    writer_depth: u16,
    /// Content of each unit written
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    content_bytes: u32,
}

/// The part of a reply that says how much there was to choose from.
#[derive(Deserialize)]
struct Reply {
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    context_budget: ContextBudget,
}

impl Attune {
    /// Runs the measurement.
    pub fn run(&self) -> Result<(), Failure> {
        let duration = duration(self.seconds)?;
        // The asking agents must not wait for the writing ones to be served.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (report, errors) = runtime.block_on(self.measure(duration))?;
        screen::show(self.target.json, &report, screen::figures)?;
        outcome(errors)
    }

    async fn measure(&self, duration: Duration) -> Result<(Value, u64), Failure> {
        let (run, words) = (run_name(), Arc::new(Words::new(self.target.seed)));
        let mut report = json!({
            "bench": "attune", "run": run, "seed": self.target.seed, "agents": self.agents,
            "hint_words": self.hint_words, "max_units": self.max_units, "seconds": duration.as_secs_f64(),
        });
        let mut errors = 0;
        if self.writers > 0 {
            let alone = self.writers(format!("{run}-alone"), &words, duration)?.run().await?;
            errors += alone.tally.errors;
            report["writers"] = json!(self.writers);
            report["writers_alone"] = alone.tally.figures(alone.seconds);
        }
        let asking = self.ask(&run, &words, duration);
        let asked = if self.writers > 0 {
            let writing = self.writers(format!("{run}-beside"), &words, duration)?.run();
            let (asked, beside) = tokio::join!(asking, writing);
            let beside = beside?;
            errors += beside.tally.errors;
            report["writers_beside"] = beside.tally.figures(beside.seconds);
            asked?
        } else {
            asking.await?
        };
        report["attune"] = asked.figures(duration.as_secs_f64());
        Ok((report, errors + asked.errors))
    }

    fn writers(&self, run: String, words: &Arc<Words>, duration: Duration) -> Result<Load, Failure> {
        Ok(Load {
            address: self.target.address()?,
            token: self.target.token.clone(),
            words: Arc::clone(words),
            seed: self.target.seed,
            run,
            agents: usize::from(self.writers),
            depth: usize::from(self.writer_depth),
            content_bytes: self.content_bytes as usize,
            until: Until::Time(duration),
        })
    }

    /// Everybody who asks, to the end.
    async fn ask(&self, run: &str, words: &Arc<Words>, duration: Duration) -> Result<Tally, Failure> {
        let address = self.target.address()?;
        let mut wires = Vec::new();
        for n in 0..self.agents {
            let agent = format!("bench-{run}-a{n}");
            let mut wire = Wire::join(&address, self.target.token.as_deref(), agent).await?;
            self.check_units(&mut wire).await?;
            wires.push(wire);
        }
        let begin = Instant::now() + WARM_UP;
        let asking: Vec<_> = wires
            .into_iter()
            .enumerate()
            .map(|(n, wire)| {
                let asker = Asker {
                    wire,
                    words: Arc::clone(words),
                    rng: SmallRng::seed_from_u64(self.target.seed.wrapping_add(0x5eed + n as u64)),
                    hint_words: self.hint_words,
                    max_units: self.max_units,
                };
                tokio::spawn(asker.run(begin, begin + duration))
            })
            .collect();
        let mut tally = Tally::new();
        for asker in asking {
            tally.add(asker.await.map_err(Failure::failed)?);
        }
        Ok(tally)
    }

    async fn check_units(&self, wire: &mut Wire) -> Result<(), Failure> {
        wire.feed(Operation::Attune, |out| out.push_str(r#"{"scope":{"role":"bench","max_units":1}}"#))
            .await?;
        wire.flush().await?;
        let reply = wire.reply().await?;
        let read: Reply =
            serde_json::from_str(&reply).map_err(|_| Failure::Refused(reply.as_str().to_owned()))?;
        let found = read.payload.context_budget.units_available;
        if found < self.units_expected {
            return Err(Failure::failed(format!(
                "the Field brings {found} units, not the {} expected",
                self.units_expected
            )));
        }
        Ok(())
    }
}

struct Asker {
    wire: Wire,
    words: Arc<Words>,
    rng: SmallRng,
    hint_words: usize,
    max_units: u64,
}

impl Asker {
    async fn run(mut self, begin: Instant, end: Instant) -> Tally {
        let mut tally = Tally::new();
        let asked = self.ask(begin, end, &mut tally).await;
        let left = match asked {
            Ok(()) => self.wire.leave().await,
            failed => failed,
        };
        if let Err(failure) = left {
            tally.fail(|| failure.to_string());
        }
        tally
    }

    async fn ask(&mut self, begin: Instant, end: Instant, tally: &mut Tally) -> Result<(), Failure> {
        while Instant::now() < end {
            let Self { wire, words, rng, hint_words, max_units } = self;
            let sent = Instant::now();
            wire.feed(Operation::Attune, |out| {
                out.push_str(r#"{"scope":{"role":"bench","max_units":"#);
                out.push_str(&max_units.to_string());
                out.push_str(r#"},"context_hint":""#);
                words.write_words(rng, *hint_words, out);
                out.push_str("\"}");
            })
            .await?;
            wire.flush().await?;
            let reply = wire.reply().await?;
            let now = Instant::now();
            if !reply.contains(r#""context_budget""#) {
                tally.fail(|| reply.as_str().to_owned());
            } else if now >= begin && now < end {
                tally.acknowledged += 1;
                tally.measure(now - sent);
            }
        }
        Ok(())
    }
}
