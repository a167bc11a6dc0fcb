//! What was measured: counts and a histogram of latencies.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Latencies beyond a minute count as a minute.
const LONGEST_NS: u64 = 60_000_000_000;

/// What one or many agents measured.
pub(super) struct Tally {
    /// Nanoseconds.
    latencies: Histogram<u64>,
    /// Everything that was answered well, warm-up included.
    pub acknowledged: u64,
    /// What was not.
    pub errors: u64,
    /// The first of them, as it came.
    pub first_error: Option<String>,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Self {
        // These bounds are valid for the crate: low >= 1, high >= 2 * low, at most 5 digits.
        let latencies = Histogram::new_with_bounds(1_000, LONGEST_NS, 3).expect("constant bounds");
        Self { latencies, acknowledged: 0, errors: 0, first_error: None }
    }

    /// Counts one latency.
    pub fn measure(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST_NS);
        self.latencies.saturating_record(ns);
    }

    /// Counts an error and keeps the first.
    pub fn fail(&mut self, error: impl FnOnce() -> String) {
        self.errors += 1;
        if self.first_error.is_none() {
            self.first_error = Some(error());
        }
    }

    /// Adds another agent's.
    pub fn add(&mut self, other: Self) {
        // Both have the same bounds, so nothing can be out of range.
        self.latencies.add(&other.latencies).expect("equal bounds");
        self.acknowledged += other.acknowledged;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }

    /// How many latencies were counted.
    pub fn measured(&self) -> u64 {
        self.latencies.len()
    }

    /// A quantile, milliseconds.
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        rounded(self.latencies.value_at_quantile(quantile) as f64 / 1e6)
    }

    /// The figures that every report shows; `seconds` is how long was measured.
    pub fn figures(&self, seconds: f64) -> Value {
        json!({
            "ops_per_second": (self.measured() as f64 / seconds.max(1e-9)).round(),
            "measured": self.measured(),
            "p50_ms": self.quantile_ms(0.5),
            "p99_ms": self.quantile_ms(0.99),
            "p99_9_ms": self.quantile_ms(0.999),
            "max_ms": rounded(self.latencies.max() as f64 / 1e6),
            "errors": self.errors,
            "first_error": self.first_error,
        })
    }
}

/// To the microsecond, where the value is one of milliseconds.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_milliseconds_and_add_up() {
        let (mut one, mut other) = (Tally::new(), Tally::new());
        (1..=99).for_each(|ms| one.measure(Duration::from_millis(ms)));
        other.measure(Duration::from_secs(3_600));
        other.fail(|| "no".into());
        one.add(other);
        let figures = one.figures(2.0);
        assert_eq!((figures["ops_per_second"].as_f64(), figures["errors"].as_u64()), (Some(50.0), Some(1)));
        assert!((figures["p50_ms"].as_f64().unwrap() - 50.0).abs() < 0.1, "{figures}");
    }
}
