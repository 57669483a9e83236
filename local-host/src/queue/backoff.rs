//! How long to wait after an empty receive.

use std::time::Duration;

/// Growing waits.
#[derive(Debug, Clone)]
pub struct Backoff {
    minimum: Duration,
    maximum: Duration,
    empty: u32,
}

impl Backoff {
    /// From `minimum` up to `maximum`.
    pub fn new(minimum: Duration, maximum: Duration) -> Self {
        Self { minimum: minimum.min(maximum), maximum, empty: 0 }
    }

    /// The wait after one more empty receive: the minimum, then minimum + 2^(n-1) x minimum x `jitter`, at most the maximum.
    /// `jitter` is between 0.8 and 1.2.
    pub fn after_empty(&mut self, jitter: f64) -> Duration {
        let earlier = self.empty;
        self.empty = self.empty.saturating_add(1);
        if earlier == 0 {
            return self.minimum;
        }
        let factor = 2f64.powi(i32::try_from(earlier - 1).unwrap_or(i32::MAX).min(60)) * jitter;
        let grown = (self.minimum.as_secs_f64() * (1.0 + factor)).min(self.maximum.as_secs_f64());
        Duration::from_secs_f64(grown).min(self.maximum)
    }

    /// A message was found.
    pub fn reset(&mut self) {
        self.empty = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_maximum_and_begin_anew() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));
        let mut waits =
            |count: usize| -> Vec<u128> { (0..count).map(|_| backoff.after_empty(1.0).as_millis()).collect() };
        assert_eq!(waits(8), [100, 200, 300, 500, 900, 1700, 2000, 2000]);
        backoff.reset();
        assert_eq!(backoff.after_empty(1.2).as_millis(), 100);
        assert_eq!(backoff.after_empty(1.2).as_millis(), 220);
        assert_eq!(backoff.after_empty(0.8).as_millis(), 260);
        for _ in 0..5000 {
            backoff.after_empty(1.2);
        }
        assert_eq!(backoff.after_empty(1.2), Duration::from_secs(2));
    }
}
