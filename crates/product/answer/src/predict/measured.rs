//! What measured runs say about a predicted answer.

use crate::run::runs::{By, Runs};

/// The runs of an answer.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    /// The program alone.
    pub plain: Runs,
    /// In less RAM, by way and size.
    pub less_ram: Vec<Runs>,
    /// The recommended size; `None`: nobody could page a run.
    pub size: Option<Measured>,
}

/// What runs in less RAM have found.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Measured {
    /// The smallest RAM that was fast enough, and who was the fastest in it.
    pub good: Option<(u64, By)>,
    /// The largest RAM in which a run was too slow.
    pub too_slow_bytes: Option<u64>,
}

impl Measured {
    /// The recommended RAM, and who pages. What no run has refuted stays recommended, as a prediction; `needed`: all of
    /// its RAM, unpaged.
    pub fn recommended(&self, predicted: Option<u64>, needed: u64) -> (u64, Option<By>) {
        let refuted = |ram: u64| self.too_slow_bytes.is_some_and(|slow| slow >= ram);
        match (self.good, predicted.filter(|ram| !refuted(*ram))) {
            (Some((ram, by)), _) => (ram, Some(by)),
            (None, Some(ram)) => (ram, None),
            (None, None) => (needed, Some(By::Plain)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_run_has_refuted_stays_recommended() {
        let slow = |bytes| Measured { good: None, too_slow_bytes: Some(bytes) };
        assert_eq!(slow(30).recommended(Some(40), 100), (40, None));
        assert_eq!(slow(40).recommended(Some(40), 100), (100, Some(By::Plain)));
        assert_eq!(slow(50).recommended(None, 100), (100, Some(By::Plain)));
        let good = Measured { good: Some((60, By::Kernel)), ..slow(50) };
        assert_eq!(good.recommended(Some(40), 100), (60, Some(By::Kernel)));
    }
}
