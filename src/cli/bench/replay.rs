//! `akashik bench replay`: how long REPLAY takes of a chain of units that lie far from one another in the log, and of a
//! unit alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

use super::super::exit::Failure;
use super::super::screen;
use super::load::{Load, Until, WARM_UP};
use super::record::{Target, duration, outcome};
use super::run_name;
use super::tally::Tally;
use super::wire::Wire;
use super::words::Words;
use crate::protocol::{Operation, RelationType};

/// A measurement of REPLAY.
#[derive(Debug, Args)]
pub(in crate::cli) struct Replay {
    #[command(flatten)]
    target: Target,
    /// Units of the chain, each of which relates to the one before it
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(2..=1000))]
    events: u32,
    /// How they relate: depends_on, or supersedes, caused_by and so on
    #[arg(long, value_name = "TYPE", default_value = "depends_on", value_parser = relation)]
    relation: RelationType,
    /// Other units written between each two of them
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    between: u64,
    /// Other units written behind them all: with as many before, the chain lies in the middle of the log
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    behind: u64,
    /// Entries that the log must hold once they are written; fewer is an error
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    entries_expected: u64,
    /// summary, detailed or full_trace
    #[arg(long, default_value = "detailed")]
    depth: String,
    /// Agents that ask, each with one REPLAY in flight: of the chain and of the unit alone by turns
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    agents: u16,
    /// How long to measure, after a second of warm-up
    #[arg(long, default_value_t = 10.0, value_parser = super::super::ask::number)]
    seconds: f64,
    /// Content of each unit written
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    content_bytes: u32,
}

fn relation(name: &str) -> Result<RelationType, String> {
    let names = || RelationType::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    RelationType::from_name(name).ok_or_else(|| format!("it must be one of {}", names()))
}

/// What is replayed, and how many events it has.
#[derive(Debug, Clone)]
struct Goal {
    unit: String,
    events: u64,
}

/// The end of the chain, and a unit that relates to nothing.
const KINDS: [&str; 2] = ["chain", "alone"];

impl Replay {
    /// Runs the measurement.
    pub fn run(&self) -> Result<(), Failure> {
        let duration = duration(self.seconds)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (report, errors) = runtime.block_on(self.measure(duration))?;
        screen::show(self.target.json, &report, screen::figures)?;
        outcome(errors)
    }

    async fn measure(&self, duration: Duration) -> Result<(Value, u64), Failure> {
        let (run, words) = (run_name(), Arc::new(Words::new(self.target.seed)));
        let goals = self.lay(&run, &words).await?;
        let begin = Instant::now() + WARM_UP;
        let mut asking = Vec::new();
        for n in 0..self.agents {
            let asker = Asker {
                wire: self.join(format!("bench-{run}-a{n}")).await?,
                depth: self.depth.clone(),
                goals: goals.clone(),
            };
            asking.push(tokio::spawn(asker.run(begin, begin + duration)));
        }
        let mut tallies = KINDS.map(|_| Tally::new());
        for asker in asking {
            for (all, own) in tallies.iter_mut().zip(asker.await.map_err(Failure::failed)??) {
                all.add(own);
            }
        }
        let mut report = json!({
            "bench": "replay", "run": run, "seed": self.target.seed, "agents": self.agents,
            "events": self.events, "relation": self.relation.name(), "between": self.between,
            "behind": self.behind, "depth": self.depth, "content_bytes": self.content_bytes,
            "seconds": duration.as_secs_f64(),
        });
        for (kind, tally) in KINDS.iter().zip(&tallies) {
            report[*kind] = tally.figures(duration.as_secs_f64());
        }
        Ok((report, tallies.iter().map(|tally| tally.errors).sum()))
    }

    async fn join(&self, agent: String) -> Result<Wire, Failure> {
        Wire::join(&self.target.address()?, self.target.token.as_deref(), agent).await
    }

    /// Writes the chain among other units, and a unit alone in the middle of it.
    async fn lay(&self, run: &str, words: &Arc<Words>) -> Result<[Goal; KINDS.len()], Failure> {
        let mut wire = self.join(format!("bench-{run}-chain")).await?;
        let mut rng = SmallRng::seed_from_u64(self.target.seed);
        let (mut last, mut alone) = (None, None);
        for n in 0..self.events {
            if n > 0 {
                self.fill(format!("{run}-f{n}"), words, self.between).await?;
            }
            last = Some(self.record(&mut wire, &mut rng, words, last.as_deref()).await?.0);
            if n == self.events / 2 {
                alone = Some(self.record(&mut wire, &mut rng, words, None).await?.0);
            }
        }
        self.fill(format!("{run}-behind"), words, self.behind).await?;
        // The epoch of one more tells how long the log is: an entry takes an epoch, and a read may take one.
        let (_, epoch) = self.record(&mut wire, &mut rng, words, None).await?;
        if epoch < self.entries_expected {
            return Err(Failure::failed(format!(
                "the log ends at epoch {epoch}, not behind the {} entries expected",
                self.entries_expected
            )));
        }
        wire.leave().await?;
        let goal = |unit: Option<String>, events| Goal { unit: unit.unwrap_or_default(), events };
        Ok([goal(last, self.events.into()), goal(alone, 1)])
    }

    /// Writes other units.
    async fn fill(&self, run: String, words: &Arc<Words>, units: u64) -> Result<(), Failure> {
        if units == 0 {
            return Ok(());
        }
        let load = Load {
            address: self.target.address()?,
            token: self.target.token.clone(),
            words: Arc::clone(words),
            seed: self.target.seed,
            run,
            agents: 8,
            depth: 32,
            content_bytes: self.content_bytes as usize,
            until: Until::Units(units),
        };
        outcome(load.run().await?.tally.errors)
    }

    /// Writes a unit that relates to `before`; its id and epoch.
    async fn record(
        &self,
        wire: &mut Wire,
        rng: &mut SmallRng,
        words: &Words,
        before: Option<&str>,
    ) -> Result<(String, u64), Failure> {
        wire.feed(Operation::Record, |out| {
            out.push_str(r#"{"type":"finding","content":""#);
            words.write(rng, self.content_bytes as usize, out);
            out.push_str(
                r#"","intent":{"purpose":"to measure"},"confidence":{"score":0.5,"reason":"made up"}"#,
            );
            if let Some(before) = before {
                let kind = self.relation.name();
                out.push_str(&format!(r#","relations":[{{"type":"{kind}","target_id":"{before}"}}]"#));
            }
            out.push('}');
        })
        .await?;
        wire.flush().await?;
        let reply = wire.reply().await?;
        let read: Value = serde_json::from_str(&reply).map_err(Failure::failed)?;
        match (read["payload"]["memory_unit_id"].as_str(), read["payload"]["epoch"].as_u64()) {
            (Some(unit), Some(epoch)) => Ok((unit.to_owned(), epoch)),
            _ => Err(Failure::Refused(reply.as_str().to_owned())),
        }
    }
}

/// An agent that asks.
struct Asker {
    wire: Wire,
    depth: String,
    goals: [Goal; KINDS.len()],
}

impl Asker {
    /// The latencies of each goal.
    async fn run(mut self, begin: Instant, end: Instant) -> Result<[Tally; KINDS.len()], Failure> {
        let mut tallies = KINDS.map(|_| Tally::new());
        while Instant::now() < end {
            let Self { wire, depth, goals } = &mut self;
            for (goal, tally) in goals.iter().zip(&mut tallies) {
                let sent = Instant::now();
                wire.feed(Operation::Replay, |out| {
                    let Goal { unit, .. } = goal;
                    out.push_str(&format!(
                        r#"{{"target_type":"memory_unit","target_id":"{unit}","depth":{}}}"#,
                        json!(depth)
                    ));
                })
                .await?;
                wire.flush().await?;
                let reply = wire.reply().await?;
                let now = Instant::now();
                // Cheap, and near the end of the reply: a timeline that lacks an event is no measurement.
                let whole = format!(r#""total_events":{}"#, goal.events);
                if !reply.contains(&whole) {
                    tally.fail(|| reply.as_str().chars().take(2_000).collect());
                } else if now >= begin && now < end {
                    tally.acknowledged += 1;
                    tally.measure(now - sent);
                }
            }
        }
        self.wire.leave().await?;
        Ok(tallies)
    }
}
