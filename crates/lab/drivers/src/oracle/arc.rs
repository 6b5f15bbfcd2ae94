//! ARC, as in figure 4 of its paper: four lists and a target size p for T1. The pages of T1 and T2 are in memory; B1
//! and B2 only remember pages.
//!
//! p is a real number; delta is max(|B2|/|B1|, 1) or its mirror image. ARC is an oracle here because it needs every
//! hit: the second reference moves a page from T1 to T2.

use coldframe_core::lists::{Links, List};

use super::{OneSize, OracleCounts, OracleSpec, Sizes};

pub const SPEC: OracleSpec = OracleSpec {
    name: "arc",
    summary: "adaptive replacement: balances recency and frequency by ghost hits",
    source: "Megiddo and Modha, FAST 2003, figure 4",
    build: |frames| Box::new(Sizes(frames.iter().map(|f| Arc::new(*f)).collect())),
};

/// The list that a page is on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    T1,
    T2,
    B1,
    B2,
    Nothing,
}

#[derive(Clone, Copy)]
struct ArcPage {
    on: On,
    dirty: bool,
    touched: bool,
}

struct Arc {
    frames: usize,
    target: f64,
    links: Links,
    /// T1, T2, B1 and B2, the oldest first.
    lists: [List; 4],
    pages: Vec<ArcPage>,
    counts: OracleCounts,
}

impl Arc {
    fn new(frames: usize) -> Arc {
        let (links, lists, counts) = (Links::new(0), [List::new(); 4], OracleCounts::default());
        Arc { frames, target: 0.0, links, lists, pages: Vec::new(), counts }
    }

    fn len(&self, on: On) -> usize {
        self.lists[on as usize].len()
    }

    /// Moves the page from its list to the recent end of another list.
    fn put(&mut self, page: u32, on: On) {
        let p = page as usize;
        let old = std::mem::replace(&mut self.pages[p].on, on);
        if let Some(list) = self.lists.get_mut(old as usize) {
            list.unlink(&mut self.links, p);
        }
        if let Some(list) = self.lists.get_mut(on as usize) {
            list.push_tail(&mut self.links, p);
        }
    }

    /// The page at the old end of a list.
    fn oldest(&self, on: On) -> u32 {
        self.lists[on as usize].head().expect("the list is not empty") as u32
    }

    fn drop_oldest(&mut self, on: On) {
        self.put(self.oldest(on), On::Nothing);
    }

    fn evict(&mut self, page: u32, to: On) {
        let entry = &mut self.pages[page as usize];
        self.counts.evictions += 1;
        self.counts.dirty_evictions += u64::from(std::mem::take(&mut entry.dirty));
        self.put(page, to);
    }

    /// The paper's REPLACE.
    fn replace(&mut self, in_b2: bool) {
        let t1 = self.len(On::T1) as f64;
        if t1 > 0.0 && (t1 > self.target || (in_b2 && t1 == self.target)) {
            let page = self.oldest(On::T1);
            self.evict(page, On::B1);
        } else {
            let page = self.oldest(On::T2);
            self.evict(page, On::B2);
        }
    }
}

impl OneSize for Arc {
    fn counts(&self) -> OracleCounts {
        self.counts
    }

    fn reference(&mut self, page: u32, writing: bool) {
        let p = page as usize;
        if p >= self.pages.len() {
            let pages = (p + 1).next_power_of_two();
            self.links.grow(pages);
            self.pages.resize(pages, ArcPage { on: On::Nothing, dirty: false, touched: false });
        }
        let c = self.frames;
        match self.pages[p].on {
            On::T1 | On::T2 => self.put(page, On::T2),
            On::B1 => {
                self.counts.true_faults += 1;
                let delta = (self.len(On::B2) as f64 / self.len(On::B1) as f64).max(1.0);
                self.target = (self.target + delta).min(c as f64);
                self.replace(false);
                self.put(page, On::T2);
            }
            On::B2 => {
                self.counts.true_faults += 1;
                let delta = (self.len(On::B1) as f64 / self.len(On::B2) as f64).max(1.0);
                self.target = (self.target - delta).max(0.0);
                self.replace(true);
                self.put(page, On::T2);
            }
            On::Nothing => {
                self.counts.true_faults += 1;
                let l1 = self.len(On::T1) + self.len(On::B1);
                let l2 = self.len(On::T2) + self.len(On::B2);
                if l1 == c {
                    if self.len(On::T1) < c {
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
