//! LFU: the page with the fewest references since it came into memory leaves, of several the one that was touched
//! first.
//!
//! An oracle, since it needs every hit. It forgets the count of a page that leaves ("in-memory LFU").

use std::collections::BTreeSet;

use super::{OneSize, OracleCounts, OracleSpec, Sizes};

pub const SPEC: OracleSpec = OracleSpec {
    name: "lfu",
    summary: "least frequently used since it came into memory, of equals the least recently used",
    source: "as LFU in Robinson and Devarakonda, SIGMETRICS 1990",
    build: |frames| Box::new(Sizes(frames.iter().map(|frames| Lfu { frames: *frames, ..Lfu::default() }).collect())),
};

impl OneSize for Lfu {
    fn counts(&self) -> OracleCounts {
        self.counts
    }

    fn reference(&mut self, page: u32, writing: bool) {
        self.now += 1;
        if page as usize >= self.pages.len() {
            self.pages.resize((page as usize + 1).next_power_of_two(), LfuPage::default());
        }
        let entry = self.pages[page as usize];
        if entry.uses > 0 {
            self.order.remove(&(entry.uses, entry.last, page));
        } else {
            self.counts.true_faults += 1;
            self.counts.cold_faults += u64::from(!entry.touched);
            if self.order.len() == self.frames {
                self.evict();
            }
        }
        let (uses, dirty) = (entry.uses + 1, entry.uses > 0 && entry.dirty || writing);
        self.order.insert((uses, self.now, page));
        self.pages[page as usize] = LfuPage { uses, last: self.now, dirty, touched: true };
    }
}

#[derive(Clone, Copy, Default)]
struct LfuPage {
    /// References since it came into memory; 0: it is not there.
    uses: u64,
    last: u64,
    dirty: bool,
    touched: bool,
}

#[derive(Default)]
struct Lfu {
    frames: usize,
    now: u64,
    pages: Vec<LfuPage>,
    /// Uses, last touch and page of all that is in memory.
    order: BTreeSet<(u64, u64, u32)>,
    counts: OracleCounts,
}

impl Lfu {
    fn evict(&mut self) {
        let Some((_, _, page)) = self.order.pop_first() else { return };
        let entry = &mut self.pages[page as usize];
        self.counts.evictions += 1;
        self.counts.dirty_evictions += u64::from(entry.dirty);
        entry.uses = 0;
    }
}
