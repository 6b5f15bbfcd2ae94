//! Where the least size may lie that is fast enough, after runs of which each one alone may be delayed by chance.
//!
//! ```text
//!   sizes    |-----------------------------------------|   each has a weight: how likely it is the least good one
//!   a run    fast enough: weights of larger sizes fall     too slow or killed: weights of its size and smaller ones do
//!   next     the size at which half of the weight lies     ends when most of it lies between two near sizes
//! ```
//! A search that halves an interval takes each result for certain, and cannot return to the half that chance took from
//! it (M. Horstein, *Sequential transmission using noiseless feedback*, 1963; R. Waeber, P. Frazier, S. Henderson,
//! *Bisection search with noisy responses*, 2013: this is their probabilistic bisection).

/// Two neighbouring sizes differ by this part.
const STEP: f64 = 1.0 / 64.0;
/// Smaller sizes than this part of the largest are one.
const LEAST: f64 = 1.0 / 64.0;

/// Sizes, and how likely each is the least good one.
#[derive(Clone, Debug)]
pub struct Threshold {
    /// From the largest down, in bytes.
    sizes: Vec<u64>,
    weights: Vec<f64>,
}

impl Threshold {
    /// All sizes up to this one. `likely`: half of the weight lies above this size. In each half an equal part of bytes
    /// has an equal weight: hardly a program needs a small part of what it takes.
    pub fn new(largest: u64, likely: Option<u64>) -> Threshold {
        let mut sizes = vec![largest];
        let least = (largest as f64 * LEAST) as u64;
        while let Some(size) =
            sizes.last().map(|size| (*size as f64 * (1.0 - STEP)) as u64).filter(|size| *size > least)
        {
            sizes.push(size);
        }
        let likely = likely.unwrap_or(largest / 2);
        let half = |above: bool| sizes.iter().filter(move |size| (**size >= likely) == above).map(|size| *size as f64);
        let sums = [half(false).sum::<f64>(), half(true).sum::<f64>()];
        let weight = |size: &u64| *size as f64 / sums[usize::from(*size >= likely)];
        let mut threshold = Threshold { weights: sizes.iter().map(weight).collect(), sizes };
        threshold.normalize();
        threshold
    }

    /// A run in this size. `too_small`: how likely the size is too small, by this run alone.
    pub fn saw(&mut self, size: u64, too_small: f64) {
        for (at, weight) in self.sizes.iter().zip(&mut self.weights) {
            *weight *= if *at > size { too_small } else { 1.0 - too_small };
        }
        self.normalize();
    }

    fn normalize(&mut self) {
        let sum: f64 = self.weights.iter().sum();
        self.weights.iter_mut().for_each(|weight| *weight /= sum);
    }

    /// How likely this size is good.
    pub fn is_good(&self, size: u64) -> f64 {
        self.sizes.iter().zip(&self.weights).filter(|(at, _)| **at <= size).map(|(_, weight)| weight).sum()
    }

    /// The size that is good with this probability.
    pub fn good(&self, probability: f64) -> u64 {
        // From the least size up.
        let mut sum = 0.0;
        for (size, weight) in self.sizes.iter().zip(&self.weights).rev() {
            sum += weight;
            if sum >= probability {
                return *size;
            }
        }
        self.sizes[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks about half of the weight so often; `lies`: the runs that say the opposite of the truth.
    fn searched(truth: u64, runs: usize, lies: &[usize]) -> u64 {
        let mut threshold = Threshold::new(1000, Some(700));
        for run in 0..runs {
            let size = threshold.good(if run % 2 == 0 { 0.5 } else { 0.3 });
            let too_small = (size < truth) != lies.contains(&run);
            threshold.saw(size, if too_small { 0.75 } else { 0.05 });
        }
        threshold.good(0.5)
    }

    #[test]
    fn the_least_good_size_is_found_and_found_again_after_runs_that_chance_made_slow_or_fast() {
        for truth in [60, 300, 500, 800, 985] {
            for lies in [&[][..], &[0], &[1], &[0, 3], &[4, 5]] {
                let found = searched(truth, 40, lies) as f64 / truth as f64;
                assert!((0.96..1.04).contains(&found), "{found} of {truth}, {lies:?}");
            }
        }
    }

    #[test]
    fn half_of_the_weight_lies_above_a_likely_size_and_all_of_it_below_the_largest() {
        let threshold = Threshold::new(1000, Some(700));
        assert!((690..=710).contains(&threshold.good(0.5)) && threshold.good(1.0) == 1000);
        assert!(threshold.is_good(1000) > 0.999 && (threshold.is_good(699) - 0.5).abs() < 0.05);
        assert!(Threshold::new(1, None).good(0.5) == 1 && Threshold::new(1000, Some(5000)).is_good(1000) > 0.999);
    }

    #[test]
    fn a_kill_leaves_little_weight_to_smaller_sizes() {
        let mut threshold = Threshold::new(1000, None);
        threshold.saw(600, 0.999);
        assert!(threshold.is_good(600) < 0.01 && threshold.good(0.02) > 600);
    }
}
