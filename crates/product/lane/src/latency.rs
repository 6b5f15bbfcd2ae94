//! Latencies of one kind of fault: exact count, sum and maximum, and quantiles to three digits.

use coldframe_core::Ps;
use hdrhistogram::Histogram;

/// Most bins of a distribution.
pub const BINS_MAX: usize = 64;

/// Finest bins of an octave: about one percent wide, where the histogram's three digits still tell them apart.
const FINEST: f64 = 64.0;

/// The faults with a latency of at least `from` and below `to`, to the histogram's three digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bin {
    /// The shortest latency.
    pub from: Ps,
    /// The end of the bin, not in it.
    pub to: Ps,
    /// The number of faults.
    pub count: u64,
}

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
    /// No latency yet.
    pub fn new() -> Latency {
        // Three significant digits from 1 ns to 1000 s; in nanoseconds, so that the table stays small.
        let histogram = Histogram::new_with_bounds(1, 1_000_000_000_000, 3).expect("the bounds are valid");
        Latency { histogram, sum: 0, max: Ps::ZERO }
    }

    /// Adds the latency of one fault.
    pub fn record(&mut self, latency: Ps) {
        self.histogram.saturating_record((latency.0 / 1_000).max(1));
        self.sum += u128::from(latency.0);
        self.max = self.max.max(latency);
    }

    /// Adds all latencies of `other`.
    pub fn add(&mut self, other: &Latency) {
        self.histogram.add(&other.histogram).expect("all have the same bounds");
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The number of latencies.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The exact sum.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The exact maximum.
    pub fn max(&self) -> Ps {
        self.max
    }

    /// The exact mean, rounded to the nearest picosecond; `None` without faults.
    pub fn mean(&self) -> Option<Ps> {
        let n = u128::from(self.count());
        (n > 0).then(|| Ps(((self.sum + n / 2) / n) as u64))
    }

    /// The standard deviation, from latencies to three digits; `None` without faults.
    pub fn deviation(&self) -> Option<Ps> {
        (self.count() > 0).then(|| Ps((self.histogram.stdev() * 1_000.0) as u64))
    }

    /// The distribution over at most [`BINS_MAX`] bins of equal width on a logarithmic axis. Bins without a fault are
    /// left out.
    pub fn bins(&self) -> Vec<Bin> {
        let mut per_octave = FINEST;
        loop {
            let bins = self.bins_of(per_octave);
            if bins.len() <= BINS_MAX {
                return bins;
            }
            per_octave /= 2.0;
        }
    }

    fn bins_of(&self, per_octave: f64) -> Vec<Bin> {
        let mut bins: Vec<(i64, u64)> = Vec::new();
        for step in self.histogram.iter_recorded() {
            let at = ((step.value_iterated_to() as f64).log2() * per_octave).floor() as i64;
            match bins.last_mut().filter(|(last, _)| *last == at) {
                Some((_, count)) => *count += step.count_since_last_iteration(),
                None => bins.push((at, step.count_since_last_iteration())),
            }
        }
        let edge = |at: i64| Ps(((at as f64 / per_octave).exp2() * 1_000.0).round() as u64);
        bins.into_iter().map(|(at, count)| Bin { from: edge(at), to: edge(at + 1), count }).collect()
    }

    /// The latency that the fraction `q` of faults do not exceed, to three digits; `None` without faults.
    pub fn quantile(&self, q: f64) -> Option<Ps> {
        (self.count() > 0).then(|| Ps(self.histogram.value_at_quantile(q) * 1_000).min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_every_fault_once_and_each_within_its_edges() {
        let mut latency = Latency::new();
        for (us, times) in [(77, 3), (87, 2), (1000, 1)] {
            (0..times).for_each(|_| latency.record(Ps(us * 1_000_000)));
        }
        let bins = latency.bins();
        assert_eq!(bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), [3, 2, 1]);
        for (bin, us) in bins.iter().zip([77, 87, 1000]) {
            assert!(bin.from.0 <= us * 1_000_000 && us * 1_000_000 < bin.to.0, "{bin:?}");
            // A 64th of an octave, rounded to picoseconds.
            assert!((bin.to.0 as f64 / bin.from.0 as f64 - 2f64.powf(1.0 / 64.0)).abs() < 1e-4);
        }
    }

    #[test]
    fn the_deviation_is_that_of_the_latencies() {
        let mut latency = Latency::new();
        assert_eq!(latency.deviation(), None);
        [2, 4, 4, 4, 5, 5, 7, 9].into_iter().for_each(|us| latency.record(Ps(us * 1_000_000)));
        let deviation = latency.deviation().unwrap().0 as f64;
        assert!((deviation / 2e6 - 1.0).abs() < 1e-3, "{deviation}");
    }

    #[test]
    fn many_different_latencies_share_wider_bins() {
        let mut latency = Latency::new();
        (0..5000).for_each(|i| latency.record(Ps(((i as f64 / 100.0).exp2() as u64).min(900_000_000) * 1_000)));
        let bins = latency.bins();
        assert!(bins.len() <= BINS_MAX && bins.iter().map(|bin| bin.count).sum::<u64>() == 5000, "{}", bins.len());
        assert!(bins.windows(2).all(|pair| pair[0].to <= pair[1].from));
    }
}
