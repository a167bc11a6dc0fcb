//! How long to wait before the next attempt to connect.

use std::time::Duration;

use rand::RngExt;

/// The first delay, before jitter.
const FIRST: Duration = Duration::from_millis(100);
/// The longest delay, before jitter.
const CAP: Duration = Duration::from_secs(5);
/// Doublings after which the cap is certainly reached.
const DOUBLINGS_MAX: u32 = 16;

/// Delays that double up to a cap. The jitter comes after the cap: otherwise all clients of a hub that was
/// away for long would return in the same moment.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The next delay.
    pub fn next(&mut self) -> Duration {
        let jitter = rand::rng().random_range(0.5..1.5);
        let delay = self.delay(jitter);
        self.attempts = self.attempts.saturating_add(1);
        delay
    }

    /// Starts over, after a connection that was of use.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }

    fn delay(&self, jitter: f64) -> Duration {
        let doubled = FIRST * 2_u32.pow(self.attempts.min(DOUBLINGS_MAX));
        doubled.min(CAP).mul_f64(jitter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_cap_with_the_jitter_behind_it() {
        let at = |attempts| Backoff { attempts }.delay(1.0);
        assert_eq!([at(0), at(1), at(2)], [FIRST, FIRST * 2, FIRST * 4]);
        assert_eq!([at(6), at(60), at(u32::MAX)], [CAP, CAP, CAP]);
        assert_eq!(Backoff { attempts: 60 }.delay(1.4), CAP.mul_f64(1.4));
    }

    #[test]
    fn long_delays_differ_and_stay_in_their_bounds() {
        let mut backoff = Backoff { attempts: 40 };
        let delays: Vec<_> = (0..200).map(|_| backoff.next()).collect();
        assert!(delays.iter().all(|d| (CAP / 2..=CAP * 3 / 2).contains(d)));
        assert!(delays.iter().any(|d| *d > CAP) && delays.iter().any(|d| *d < CAP));
        backoff.reset();
        assert!(backoff.next() <= FIRST * 3 / 2);
    }
}
