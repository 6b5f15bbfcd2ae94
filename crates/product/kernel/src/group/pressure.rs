//! Pressure stall information: how long processes have waited for memory (Documentation/accounting/psi.rst).

use std::time::Duration;

use coldframe_proc::Tree;

/// Time that processes have waited for memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stall {
    /// At least one of them waited.
    pub some: Duration,
    /// All of them waited.
    pub full: Duration,
}

/// That of all processes of the machine since its start; `None`: this kernel does not count it.
pub fn machine_stall(tree: &Tree) -> Option<Stall> {
    stalled(&tree.text("/proc/pressure/memory"))
}

/// Reads a `memory.pressure` file. `None`: it has no times.
pub(crate) fn stalled(text: &str) -> Option<Stall> {
    let total_of = |kind: &str| {
        let line = text.lines().find(|line| line.split(' ').next() == Some(kind))?;
        let total = line.split(' ').find_map(|word| word.strip_prefix("total="))?;
        Some(Duration::from_micros(total.parse().ok()?))
    };
    Some(Stall { some: total_of("some")?, full: total_of("full").unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_are_microseconds() {
        let text =
            "some avg10=1.20 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7";
        let stall = Stall { some: Duration::from_millis(1500), full: Duration::from_micros(7) };
        assert_eq!(stalled(text), Some(stall));
        assert_eq!(stalled(""), None);
    }
}
