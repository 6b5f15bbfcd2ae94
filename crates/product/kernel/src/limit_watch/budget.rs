//! What a group's limit must be so that a program has the RAM that the user gives it, in all.
//!
//! A cgroup counts all memory of its processes, but not that of zram, nor, in v1, of zswap. So the limit is
//!
//! ```text
//!   RAM - compressed pages that no group pays for, and no less than what a program can live in
//! ```

/// Changes of the limit smaller than this are not worth a call.
const STEP: u64 = 256 << 10;
/// The least part of the RAM that compressed pages leave for others. Pages beyond it go to a disk, if there is one.
const SHARE_MIN: u64 = 4;
/// The least that a program has beside what cannot leave. With less, each page that it touches pushes out another one
/// that it needs at once, and the kernel, which finds no old page, kills it while swap is free.
const LEAST: u64 = 2 << 20;
/// The most that a limit falls at once, as a part of the RAM. The kernel returns when the group is below it, and a
/// program that takes pages back as fast as the kernel pushes them out keeps it from a large step for seconds.
const FALL: u64 = 64;
/// Compressed pages tell how well all pages compress when there are so many of them, bytes.
const SAMPLE: u64 = 2 << 20;

/// The RAM that the user gives, and the limit that follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    ram: u64,
    /// Memory that cannot leave.
    fixed: u64,
    limit: u64,
}

impl Budget {
    pub(crate) fn new(ram: u64) -> Budget {
        Budget { ram, fixed: 0, limit: ram }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes of the group that cannot leave: the kernel's tables, locked memory.
    pub(crate) fn set_fixed(&mut self, fixed: u64) {
        self.fixed = fixed;
    }

    /// The kernel has refused the last limit, since it could not push out enough: this one is still in force.
    pub(crate) fn refused(&mut self, limit: u64) {
        self.limit = limit;
    }

    fn limit_min(&self) -> u64 {
        (self.ram / SHARE_MIN).max(self.fixed + LEAST).min(self.ram)
    }

    /// The next limit for this many bytes of compressed pages that no group pays for; `None`: the present limit is
    /// close enough.
    pub(crate) fn follow(&mut self, compressed: u64) -> Option<u64> {
        let limit = self.ram.saturating_sub(compressed).max(self.limit_min()) / 4096 * 4096;
        if limit.abs_diff(self.limit) < STEP.min(self.ram / 8) {
            return None;
        }
        self.limit = limit.max(self.limit.saturating_sub(STEP.max(self.ram / FALL)));
        Some(self.limit)
    }

    /// Whether it is known how well pages compress, of which so many bytes were compressed.
    pub(crate) fn knows(&self, held: u64) -> bool {
        held >= SAMPLE
    }

    /// Whether compressing gains less than a fifth.
    pub(crate) fn is_vain(&self, held: u64, compressed: u64) -> bool {
        self.knows(held) && compressed * 5 > held * 4
    }

    /// Whether compressing further pages does not pay: it gains little, or leaves the program too little.
    pub(crate) fn is_full(&self, held: u64, compressed: u64) -> bool {
        self.is_vain(held, compressed) || compressed > self.ram - self.limit_min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_limit_is_the_ram_less_what_is_compressed_in_small_steps_and_what_a_program_needs_is_left() {
        let mut budget = Budget::new(64 * MIB);
        assert_eq!((budget.limit(), budget.follow(0), budget.follow(2 * MIB)), (64 * MIB, None, Some(63 * MIB)));
        let mut last = |compressed: u64| std::iter::from_fn(|| budget.follow(compressed)).last();
        assert_eq!((last(2 * MIB), last(2 * MIB)), (Some(62 * MIB), None));
        assert_eq!((last(640 * MIB), last(10 * MIB)), (Some(16 * MIB), Some(54 * MIB)));
        budget.set_fixed(20 * MIB);
        assert_eq!(std::iter::from_fn(|| budget.follow(640 * MIB)).last(), Some(22 * MIB));
        budget.refused(23 * MIB);
        assert_eq!(budget.follow(640 * MIB), Some(22 * MIB), "it is asked for again");
    }

    #[test]
    fn compressing_does_not_pay_if_it_gains_less_than_a_fifth_or_leaves_the_program_too_little() {
        let budget = Budget::new(64 * MIB);
        let full = [(MIB, MIB), (4 * MIB, 3 * MIB), (4 * MIB, 4 * MIB), (200 * MIB, 48 * MIB), (200 * MIB, 49 * MIB)];
        assert_eq!(full.map(|(held, compressed)| budget.is_full(held, compressed)), [false, false, true, false, true]);
    }
}
