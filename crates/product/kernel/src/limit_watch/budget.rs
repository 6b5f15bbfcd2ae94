//! What a group's limit must be so that a program has the RAM that the user gives it.
//!
//! The RAM is for what can leave to swap: heap and anonymous mappings, and, compressed, what has left for a device in
//! RAM. A cgroup counts more: stacks, libraries' data, the kernel's tables, mapped files. And it does not count the
//! memory of zram, nor, in v1, of zswap. So the limit is
//!
//! ```text
//!   RAM + memory outside the heap, its maximum so far - compressed pages that no group pays for
//! ```

/// Assumed memory outside the heap until it is first measured, bytes: a C program's stack, libraries and page tables
/// take 1 to 3 MiB, those of an interpreter 3 to 6.
const FIRST: u64 = 4 << 20;
/// Changes of the limit smaller than this are not worth a call.
const STEP: u64 = 256 << 10;
/// The least part of the RAM that compressed pages leave for others.
const SHARE_MIN: u64 = 8;
/// The most that a limit falls at once, as a part of the RAM. The kernel returns when the group is below it, and a
/// program that takes pages back as fast as the kernel pushes them out keeps it from a large step for seconds.
const FALL: u64 = 64;

/// The RAM that the user gives, and the limit that follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    ram: u64,
    outside_heap: Option<u64>,
    limit: u64,
    /// The RAM is for all memory: nothing comes on top.
    total: bool,
}

impl Budget {
    pub(crate) fn new(ram: u64, total: bool) -> Budget {
        Budget { ram, outside_heap: total.then_some(0), limit: if total { ram } else { ram + FIRST }, total }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The most memory outside the heap so far, bytes; zero before it is first measured.
    pub(crate) fn outside_heap(&self) -> u64 {
        self.outside_heap.unwrap_or(0)
    }

    /// A measurement of the memory outside the heap, bytes.
    pub(crate) fn observe(&mut self, outside_heap: u64) {
        if !self.total {
            self.outside_heap = Some(self.outside_heap().max(outside_heap));
        }
    }

    /// The kernel has refused the last limit, since it could not push out enough: this one is still in force.
    pub(crate) fn refused(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// The next limit for this many bytes of compressed pages that no group pays for; `None`: the present limit is
    /// close enough.
    pub(crate) fn follow(&mut self, compressed: u64) -> Option<u64> {
        let heap = self.ram.saturating_sub(compressed).max(self.ram / SHARE_MIN);
        let limit = (heap + self.outside_heap.unwrap_or(FIRST)) / 4096 * 4096;
        if limit.abs_diff(self.limit) < STEP.min(self.ram / SHARE_MIN) {
            return None;
        }
        self.limit = limit.max(self.limit.saturating_sub(STEP.max(self.ram / FALL)));
        Some(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_limit_is_the_ram_and_the_memory_outside_the_heap_less_what_is_compressed() {
        let mut budget = Budget::new(64 * MIB, false);
        assert_eq!(budget.limit(), 68 * MIB);
        budget.observe(2 * MIB);
        assert_eq!(budget.follow(0), Some(67 * MIB), "in small steps");
        let mut last = |compressed: u64| std::iter::from_fn(|| budget.follow(compressed)).last();
        assert_eq!(last(0), Some(66 * MIB));
        assert_eq!(last(0), None);
        assert_eq!(last(10 * MIB), Some(56 * MIB));
        assert_eq!(last(640 * MIB), Some(10 * MIB), "an eighth is left");
        budget.observe(0);
        budget.refused(11 * MIB);
        assert_eq!(budget.follow(640 * MIB), Some(10 * MIB), "what lay beside once stays; it is asked for again");
        let mut all = Budget::new(64 * MIB, true);
        all.observe(20 * MIB);
        assert_eq!((all.limit(), all.follow(0), all.follow(MIB)), (64 * MIB, None, Some(63 * MIB)));
    }
}
