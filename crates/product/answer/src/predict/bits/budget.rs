//! What watching may cost.

use std::time::Duration;

/// What watching may cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Budget {
    /// The part of the time that it may take.
    pub share: f64,
    /// Seconds that it may take in addition, so that the first looks come soon.
    pub patience: f64,
    /// If those are an advance: the time in which it is all paid back.
    pub advance: Option<Duration>,
}

impl Budget {
    /// Whether it may have taken so many seconds after this time.
    pub fn allows(&self, seconds: f64, elapsed: Duration) -> bool {
        let paid_back = self.advance.map_or(0.0, |time| self.patience / time.as_secs_f64());
        seconds < self.patience + (self.share - paid_back).max(0.0) * elapsed.as_secs_f64()
    }

    /// The time after which so many seconds are a small part of the time again.
    pub fn pause(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds.max(0.0) / self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_may_cost_some_at_once_and_a_part_of_the_time_later() {
        let budget = Budget { share: 0.1, patience: 0.5, advance: None };
        assert!(budget.allows(0.4, Duration::ZERO) && !budget.allows(0.6, Duration::ZERO));
        assert!(budget.allows(0.6, Duration::from_secs(2)));
        assert_eq!(budget.pause(0.5), Duration::from_secs(5));
        let advance = Budget { advance: Some(Duration::from_secs(10)), ..budget };
        assert!(advance.allows(0.9, Duration::from_secs(9)) && !advance.allows(1.0, Duration::from_secs(10)));
    }
}
