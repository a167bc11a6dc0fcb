//! `akashik bench contradictions`: how well contradictions in text are noticed, and how fast. Needs no hub, unless one is
//! named to record the true texts in.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::exit::Failure;
use super::super::screen;
use super::false_conflicts::{Unit, count};
use super::tally::rounded;
use super::{lines, run_name};
use crate::relevance::{Candidate, Claims, Document, Index, Kind, Need, Serves, clash, rank};

/// A measurement of how contradictions are noticed.
#[derive(Debug, Args)]
pub(in crate::cli) struct Contradictions {
    /// Pairs of texts, one JSON object a line: `a`, `b` and `label`, which is "contradiction" or anything else
    #[arg(long, value_name = "FILE", required_unless_present = "units")]
    pairs: Option<PathBuf>,
    /// Only the pairs on odd or on even lines
    #[arg(long, value_name = "LINES", value_parser = ["odd", "even"], requires = "pairs")]
    half: Option<String>,
    /// Texts that are all true, one JSON object a line with `content`: whatever is flagged among them is false
    #[arg(long, value_name = "FILE")]
    units: Option<PathBuf>,
    /// A hub to record these texts in: what it then finds contradictory is counted, with everything that it looks at
    #[arg(long, value_name = "URL", requires = "units")]
    url: Option<String>,
    /// Texts, nearest by meaning and words, that each of these is compared with
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    nearest: u16,
    /// List what is judged wrongly
    #[arg(long)]
    wrong: bool,
    /// Print JSON also on a terminal
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Pair {
    a: String,
    b: String,
    label: String,
}

impl Contradictions {
    /// Runs the measurement.
    pub fn run(&self) -> Result<(), Failure> {
        let mut report = json!({ "bench": "contradictions" });
        if let Some(file) = &self.pairs {
            report["pairs"] = self.judge_pairs(file)?;
        }
        if let Some(file) = &self.units {
            report["units"] = match &self.url {
                None => self.judge_units(file)?,
                Some(url) => {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                    runtime.block_on(count(url, &run_name(), &lines(file)?, self.wrong))?
                }
            };
        }
        screen::show(self.json, &report, screen::figures)
    }

    /// Precision and recall over labelled pairs.
    fn judge_pairs(&self, file: &Path) -> Result<Value, Failure> {
        let mut tally = Tally::default();
        let mut wrong = Vec::new();
        let wanted = self.half.as_deref().map(|half| usize::from(half == "odd"));
        let pairs: Vec<Pair> = lines(file)?;
        for (number, pair) in
            (1..).zip(&pairs).filter(|(number, _)| wanted.is_none_or(|odd| number % 2 == odd))
        {
            let started = Instant::now();
            let (a, b) = (Claims::of(&pair.a), Claims::of(&pair.b));
            let read = started.elapsed();
            let found = clash(&a, &b);
            tally.reading_us += micros(read) / 2.0;
            tally.judging_us += micros(started.elapsed() - read);
            let is_one = pair.label == "contradiction";
            tally.add(&pair.label, is_one, found.is_some());
            if self.wrong && is_one != found.is_some() {
                let said = found.map(|found| found.words((&a, &pair.a), (&b, &pair.b)));
                wrong.push(
                    json!({ "line": number, "label": pair.label, "a": pair.a, "b": pair.b, "found": said }),
                );
            }
        }
        let mut figures = tally.figures();
        if self.wrong {
            figures["wrong"] = json!(wrong);
        }
        Ok(figures)
    }

    /// False alarms: every text against those nearest to it.
    fn judge_units(&self, file: &Path) -> Result<Value, Failure> {
        let units: Vec<Unit> = lines(file)?;
        let mut index = Index::taking_in(true);
        for unit in &units {
            index.push(&Document {
                content: &unit.content,
                purpose: "",
                question: None,
                author: "",
                role: "",
                session: None,
            });
        }
        let started = Instant::now();
        let claims: Vec<Claims> = units.iter().map(|unit| Claims::of(&unit.content)).collect();
        let reading = micros(started.elapsed());
        let kept: usize = claims.iter().map(Claims::memory_bytes).sum();
        let (mut compared, mut flagged, mut judging) = (0_u64, Vec::new(), 0.0);
        for (number, unit) in (0..index.len()).zip(&units) {
            // Only older ones, as when each is recorded after the other.
            for near in nearest(&index, &unit.content, number, usize::from(self.nearest)) {
                let started = Instant::now();
                let found = clash(&claims[near as usize], &claims[number as usize]);
                judging += micros(started.elapsed());
                compared += 1;
                flagged.extend(found.map(|found| (near, number, found)));
            }
        }
        let mut figures = json!({
            "units": units.len(),
            "compared": compared,
            "flagged": flagged.len(),
            "flagged_per_500_units": rounded(flagged.len() as f64 * 500.0 / units.len().max(1) as f64),
            "reading_us": rounded(reading / units.len().max(1) as f64),
            "claims_bytes": kept / units.len().max(1),
            "judging_us": rounded(judging / compared.max(1) as f64),
        });
        if self.wrong {
            let side = |at: u32| (&claims[at as usize], &*units[at as usize].content);
            let told = flagged.iter().map(|(a, b, found)| {
                let (a, b) = (side(*a), side(*b));
                json!({ "a": a.1, "b": b.1, "found": found.words(a, b), "strength": found.strength })
            });
            figures["wrong"] = told.collect();
        }
        Ok(figures)
    }
}

/// The older texts nearest to one, by meaning and words.
fn nearest(index: &Index, text: &str, number: u32, take: usize) -> Vec<u32> {
    let need = Need {
        hint: Some(text),
        role: "",
        interests: Vec::new(),
        now: 0,
        horizon: number,
        warm: 0,
        recency_weight: Some(0.0),
        meaning: true,
        direction: None,
        task: None,
        web: None,
        context: Vec::new(),
        threshold: 0.0,
        take,
    };
    let unit = |number| Candidate { number, serves: Serves::Others, kind: Kind::Finding, epoch: 0 };
    rank(index, &need, (0..number).map(unit)).best.into_iter().map(|ranked| ranked.number).collect()
}

fn micros(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// What was judged of labelled pairs.
#[derive(Default)]
struct Tally {
    pairs: u64,
    right: u64,
    false_alarms: u64,
    missed: u64,
    entailed: u64,
    entailed_flagged: u64,
    reading_us: f64,
    judging_us: f64,
}

impl Tally {
    fn add(&mut self, label: &str, is_one: bool, flagged: bool) {
        self.pairs += 1;
        self.right += u64::from(is_one && flagged);
        self.false_alarms += u64::from(!is_one && flagged);
        self.missed += u64::from(is_one && !flagged);
        self.entailed += u64::from(label == "entailment");
        self.entailed_flagged += u64::from(label == "entailment" && flagged);
    }

    fn figures(&self) -> Value {
        let part = |of: u64, whole: u64| if whole == 0 { 0.0 } else { of as f64 / whole as f64 };
        let precision = part(self.right, self.right + self.false_alarms);
        let recall = part(self.right, self.right + self.missed);
        let f1 = if precision + recall > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };
        let thousandths = |value: f64| (value * 1e3).round() / 1e3;
        json!({
            "pairs": self.pairs,
            "contradictions": self.right + self.missed,
            "precision": thousandths(precision),
            "recall": thousandths(recall),
            "f1": thousandths(f1),
            "entailed_flagged": thousandths(part(self.entailed_flagged, self.entailed)),
            "reading_us": rounded(self.reading_us / self.pairs.max(1) as f64),
            "judging_us": rounded(self.judging_us / self.pairs.max(1) as f64),
        })
    }
}
