//! ARC, as in figure 4 of its paper: four lists and a target size p for T1. The pages of T1 and T2 are in memory; B1
//! and B2 only remember pages.
//!
//! p is a real number; delta is max(|B2|/|B1|, 1) or its mirror image. ARC is an oracle here because it needs every
//! hit: the second reference moves a page from T1 to T2.

use std::collections::VecDeque;

use super::{Oracle, OracleCounts, OracleSpec};
use coldframe_lane::PageRef;

/// The entry of the table of oracles.
pub const SPEC: OracleSpec = OracleSpec {
    name: "arc",
    summary: "adaptive replacement: balances recency and frequency by ghost hits",
    source: "Megiddo and Modha, FAST 2003, figure 4",
    params: &[],
    build: |frames| Box::new(Sizes(frames.iter().map(|f| Arc::new(*f)).collect())),
};

struct Sizes(Vec<Arc>);

impl Oracle for Sizes {
    fn feed(&mut self, references: &[PageRef]) {
        for arc in &mut self.0 {
            references.iter().for_each(|r| arc.reference(r.page() as u32, r.writing()));
        }
    }

    fn finish(&mut self, _: &[u64]) -> Vec<OracleCounts> {
        self.0.iter().map(|arc| arc.counts).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Nothing,
    T1,
    T2,
    B1,
    B2,
}

/// A list that drops entries lazily: an entry is valid while its stamp is the page's newest.
#[derive(Default)]
struct Lru {
    queue: VecDeque<(u32, u64)>,
    len: usize,
}

struct Entry {
    on: On,
    stamp: u64,
    dirty: bool,
    touched: bool,
}

struct Arc {
    frames: usize,
    target: f64,
    t1: Lru,
    t2: Lru,
    b1: Lru,
    b2: Lru,
    pages: Vec<Entry>,
    stamp: u64,
    counts: OracleCounts,
}

impl Arc {
    fn new(frames: usize) -> Arc {
        let [t1, t2, b1, b2] = [(); 4].map(|()| Lru::default());
        Arc { frames, target: 0.0, t1, t2, b1, b2, pages: Vec::new(), stamp: 0, counts: OracleCounts::default() }
    }

    fn list(&mut self, on: On) -> &mut Lru {
        match on {
            On::T1 => &mut self.t1,
            On::T2 => &mut self.t2,
            On::B1 => &mut self.b1,
            On::B2 => &mut self.b2,
            On::Nothing => unreachable!("no list"),
        }
    }

    /// Moves the page from its list to the recent end of another list.
    fn put(&mut self, page: u32, on: On) {
        let old = self.pages[page as usize].on;
        if old != On::Nothing {
            self.list(old).len -= 1;
        }
        self.stamp += 1;
        let stamp = self.stamp;
        self.pages[page as usize].on = on;
        self.pages[page as usize].stamp = stamp;
        if on != On::Nothing {
            let list = self.list(on);
            list.len += 1;
            list.queue.push_back((page, stamp));
            if list.queue.len() > 4 * list.len + 64 {
                let mut queue = std::mem::take(&mut self.list(on).queue);
                queue.retain(|(page, stamp)| self.pages[*page as usize].stamp == *stamp);
                self.list(on).queue = queue;
            }
        }
    }

    /// The page at the old end of a list.
    fn oldest(&mut self, on: On) -> u32 {
        loop {
            let (page, stamp) = self.list(on).queue.pop_front().expect("the list is not empty");
            if self.pages[page as usize].stamp == stamp {
                self.list(on).queue.push_front((page, stamp));
                return page;
            }
        }
    }

    fn drop_oldest(&mut self, on: On) {
        let page = self.oldest(on);
        self.put(page, On::Nothing);
    }

    fn evict(&mut self, page: u32, to: On) {
        let entry = &mut self.pages[page as usize];
        self.counts.evictions += 1;
        self.counts.dirty_evictions += u64::from(std::mem::take(&mut entry.dirty));
        self.put(page, to);
    }

    /// The paper's REPLACE.
    fn replace(&mut self, in_b2: bool) {
        let t1 = self.t1.len as f64;
        if self.t1.len > 0 && (t1 > self.target || (in_b2 && t1 == self.target)) {
            let page = self.oldest(On::T1);
            self.evict(page, On::B1);
        } else {
            let page = self.oldest(On::T2);
            self.evict(page, On::B2);
        }
    }

    fn reference(&mut self, page: u32, writing: bool) {
        let p = page as usize;
        if p >= self.pages.len() {
            self.pages.resize_with(p + 1, || Entry { on: On::Nothing, stamp: 0, dirty: false, touched: false });
        }
        let c = self.frames;
        match self.pages[p].on {
            On::T1 | On::T2 => self.put(page, On::T2),
            On::B1 => {
                self.counts.true_faults += 1;
                let delta = (self.b2.len as f64 / self.b1.len as f64).max(1.0);
                self.target = (self.target + delta).min(c as f64);
                self.replace(false);
                self.put(page, On::T2);
            }
            On::B2 => {
                self.counts.true_faults += 1;
                let delta = (self.b1.len as f64 / self.b2.len as f64).max(1.0);
                self.target = (self.target - delta).max(0.0);
                self.replace(true);
                self.put(page, On::T2);
            }
            On::Nothing => {
                self.counts.true_faults += 1;
                let (l1, l2) = (self.t1.len + self.b1.len, self.t2.len + self.b2.len);
                if l1 == c {
                    if self.t1.len < c {
                        self.drop_oldest(On::B1);
                        self.replace(false);
                    } else {
                        let oldest = self.oldest(On::T1);
                        self.evict(oldest, On::Nothing);
                    }
                } else if l1 + l2 >= c {
                    if l1 + l2 == 2 * c {
                        self.drop_oldest(On::B2);
                    }
                    self.replace(false);
                }
                self.put(page, On::T1);
            }
        }
        let entry = &mut self.pages[p];
        entry.dirty |= writing;
        self.counts.cold_faults += u64::from(!entry.touched);
        entry.touched = true;
    }
}
