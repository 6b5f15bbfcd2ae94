//! A table of processes in place of the kernel's files: what of its pages each references in a time. Its clock moves
//! only when somebody waits, or when a look costs time.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::predict::bits::reader::Reader;

/// A process of a table.
pub(crate) struct Row {
    /// KiB of its heap in RAM, of its stack, of its heap in swap, and of a mapped file.
    pub kib: [u64; 4],
    /// Processes that share the heap.
    pub sharers: u64,
    /// The part of a processor that it uses.
    pub load: f64,
    /// KiB of the heap that it references in so many seconds.
    pub working_set: fn(f64) -> f64,
    /// When it ends.
    pub end: Duration,
    pub cleared: Duration,
}

impl Row {
    /// A heap of so many KiB in RAM that nobody shares, of a process that always runs.
    pub fn new(heap: u64, working_set: fn(f64) -> f64) -> Row {
        Row { kib: [heap, 0, 0, 0], sharers: 1, load: 1.0, working_set, end: Duration::MAX, cleared: Duration::ZERO }
    }
}

/// Processes, a clock, and what looks cost.
#[derive(Default)]
pub(crate) struct Table {
    pub rows: BTreeMap<u32, Row>,
    /// Seconds that reading or clearing a process takes.
    pub cost: f64,
    pub clock: Cell<Duration>,
    pub spent: Cell<f64>,
    /// Whether the processes may be stopped, and whether they are.
    pub stops: bool,
    pub stopped: Cell<bool>,
    /// Times that all bits were cleared.
    pub clearings: usize,
    /// The longest wait.
    pub longest: Duration,
}

impl Table {
    fn pay(&self) {
        self.spent.set(self.spent.get() + self.cost);
        if !self.stopped.get() {
            self.clock.set(self.clock.get() + Duration::from_secs_f64(self.cost));
        }
    }
}

impl Reader for Table {
    fn clock(&self) -> Duration {
        self.clock.get()
    }

    fn spent_seconds(&self) -> f64 {
        self.spent.get()
    }

    fn sleep(&mut self, time: Duration) {
        assert!(!self.stopped.get(), "nobody waits while processes are stopped");
        self.longest = self.longest.max(time);
        self.clock.set(self.clock.get() + time.max(Duration::from_nanos(1)));
    }

    fn processes(&mut self) -> Vec<u32> {
        let now = self.clock.get();
        self.rows.iter().filter(|(_, row)| now < row.end).map(|(pid, _)| *pid).collect()
    }

    fn smaps(&self, process: u32) -> Option<String> {
        let row = &self.rows[&process];
        let since = self.clock.get().saturating_sub(row.cleared).as_secs_f64();
        self.pay();
        let ([heap, stack, swap, file], sharers) = (row.kib, row.sharers);
        let hot = ((row.working_set)(since * row.load) as u64).min(heap) / 4 * 4;
        let mapping = |head: &str, [rss, pss, referenced, anonymous, swap]: [u64; 5]| {
            let counts =
                [("Rss", rss), ("Pss", pss), ("Referenced", referenced), ("Anonymous", anonymous), ("Swap", swap)];
            counts.iter().fold(format!("{head}\n"), |text, (name, kib)| text + &format!("{name}: {kib} kB\n"))
        };
        Some(
            mapping("10000000-20000000 rw-p 00000000 00:00 0 [heap]", [heap, heap / sharers, hot, heap, swap])
                + &mapping("30000000-40000000 rw-p 00000000 00:00 0 [stack]", [stack, stack, stack, stack, 0])
                + &mapping("50000000-60000000 r-xp 00000000 fe:00 7 /bin/one", [file, file, file, 0, 0]),
        )
    }

    fn clear(&mut self, process: u32) -> bool {
        self.pay();
        self.clearings += 1;
        let now = self.clock.get();
        self.rows.get_mut(&process).is_some_and(|row| {
            row.cleared = now;
            now < row.end
        })
    }

    fn processor_ns(&self, process: u32) -> u64 {
        (self.clock.get().as_nanos() as f64 * self.rows[&process].load) as u64
    }

    fn stop(&mut self) {
        self.stopped.set(self.stops);
    }

    fn resume(&mut self) {
        self.stopped.set(false);
    }
}
