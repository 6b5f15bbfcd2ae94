//! Latencies of one kind of fault: exact count, sum and maximum, and quantiles to three digits.

use coldframe_core::Ps;
use hdrhistogram::Histogram;

/// Latencies of one kind of fault.
#[derive(Clone, Debug)]
pub struct Latency {
    histogram: Histogram<u64>,
    sum: u128,
    max: Ps,
}

impl Default for Latency {
    fn default() -> Self {
        Latency::new()
    }
}

impl Latency {
    /// None yet.
    pub fn new() -> Latency {
        // Three significant digits from 1 ns to 1000 s; in nanoseconds, so that the table stays small.
        let histogram = Histogram::new_with_bounds(1, 1_000_000_000_000, 3).expect("the bounds are valid");
        Latency { histogram, sum: 0, max: Ps::ZERO }
    }

    /// One fault.
    pub fn record(&mut self, latency: Ps) {
        self.histogram.saturating_record((latency.0 / 1_000).max(1));
        self.sum += u128::from(latency.0);
        self.max = self.max.max(latency);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Exact sum.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Exact longest.
    pub fn max(&self) -> Ps {
        self.max
    }

    /// Exact mean, rounded to the nearest picosecond; `None` without faults.
    pub fn mean(&self) -> Option<Ps> {
        let n = u128::from(self.count());
        (n > 0).then(|| Ps(((self.sum + n / 2) / n) as u64))
    }

    /// The latency that the fraction `q` of faults do not exceed, to three digits; `None` without faults.
    pub fn quantile(&self, q: f64) -> Option<Ps> {
        (self.count() > 0).then(|| Ps(self.histogram.value_at_quantile(q) * 1_000).min(self.max))
    }
}
