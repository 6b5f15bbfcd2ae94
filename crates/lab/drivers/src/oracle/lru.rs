//! LRU for every number of frames in one pass, by stack distances (Mattson et al. 1970).
//!
//! The distance of a reference is the number of different pages touched since the last touch of its page, including
//! that page. The reference misses in every memory with fewer frames. A Fenwick tree over time counts the pages that
//! were last touched after a given time. When the tree is full, the times are renumbered; so the tree stays within a
//! few times the number of pages.
//!
//! Dirty evictions for all sizes come from the same pass. `clean_below` of a page is the number of frames below which
//! the page has left memory since its last write: the page is dirty in a memory of F >= `clean_below` frames. At a
//! reference with distance d, the page has been evicted from every memory with F < d frames, and was dirty there if F
//! >= `clean_below`.

use super::{Oracle, OracleCounts, OracleSpec};
use coldframe_lane::PageRef;

pub const SPEC: OracleSpec = OracleSpec {
    name: "lru",
    summary: "least recently used, by stack distances: all sizes in one pass",
    source: "Mattson, Gecsei, Slutz, Traiger 1970",
    build: |frames| Box::new(Curve::new(frames)),
};

const NEVER: u32 = u32::MAX;

pub struct Curve {
    frames: Vec<usize>,
    /// The time of each page's last touch.
    last: Vec<u32>,
    /// See the top of this file; `NEVER` while the page is clean in every memory.
    clean_below: Vec<u32>,
    /// The page touched at each time; `NEVER` if the page was touched again later.
    at: Vec<u32>,
    tree: Vec<u32>,
    now: usize,
    alive: u32,
    /// The number of references at each distance d. They miss with fewer than d frames.
    distances: Vec<u64>,
    /// Dirty evictions, as differences: +1 from F = a, -1 from F = b.
    dirty: Vec<i64>,
    cold: u64,
    newest: Option<u32>,
}

impl Curve {
    /// `frames` are the sizes that `finish` returns.
    pub fn new(frames: &[usize]) -> Curve {
        Curve {
            frames: frames.to_vec(),
            last: Vec::new(),
            clean_below: Vec::new(),
            at: vec![NEVER; 1 << 12],
            tree: vec![0; (1 << 12) + 1],
            now: 0,
            alive: 0,
            distances: vec![0; 2],
            dirty: vec![0; 2],
            cold: 0,
            newest: None,
        }
    }

    fn add(&mut self, time: usize, by: i32) {
        let mut i = time + 1;
        while i < self.tree.len() {
            self.tree[i] = self.tree[i].wrapping_add_signed(by);
            i += i & i.wrapping_neg();
        }
    }

    /// The number of pages last touched at or before `time`.
    fn up_to(&self, time: usize) -> u32 {
        let (mut i, mut sum) = (time + 1, 0);
        while i > 0 {
            sum += self.tree[i];
            i -= i & i.wrapping_neg();
        }
        sum
    }

    /// Renumbers the last touches 0, 1, 2, ... in their order, and makes room for three times as many more.
    fn compact(&mut self) {
        let pages: Vec<u32> = self.at[..self.now].iter().copied().filter(|p| *p != NEVER).collect();
        let room = (pages.len() * 4).max(1 << 12);
        self.at = vec![NEVER; room];
        self.tree = vec![0; room + 1];
        self.now = pages.len();
        for (time, page) in pages.into_iter().enumerate() {
            self.at[time] = page;
            self.last[page as usize] = time as u32;
            self.tree[time + 1] = 1;
        }
        for i in 1..=room {
            let parent = i + (i & i.wrapping_neg());
            if parent <= room {
                self.tree[parent] += self.tree[i];
            }
        }
    }

    fn grow(&mut self, page: usize) {
        if page >= self.last.len() {
            self.last.resize(page + 1, NEVER);
            self.clean_below.resize(page + 1, NEVER);
            self.distances.resize(page + 3, 0);
            self.dirty.resize(page + 3, 0);
        }
    }

    fn note_dirty(&mut self, from: u32, below: u32) {
        if from < below {
            self.dirty[from as usize] += 1;
            self.dirty[below as usize] -= 1;
        }
    }

    fn touch(&mut self, page: u32) {
        if self.now == self.at.len() {
            self.compact();
        }
        let p = page as usize;
        let last = self.last[p];
        if last == NEVER {
            self.cold += 1;
            self.alive += 1;
        } else {
            let distance = self.alive - self.up_to(last as usize) + 1;
            self.distances[distance as usize] += 1;
            let clean_below = self.clean_below[p];
            self.note_dirty(clean_below, distance);
            if clean_below != NEVER {
                self.clean_below[p] = clean_below.max(distance);
            }
            self.add(last as usize, -1);
            self.at[last as usize] = NEVER;
        }
        self.last[p] = self.now as u32;
        self.at[self.now] = page;
        self.add(self.now, 1);
        self.now += 1;
    }

    /// Misses for each number of frames, from 1 to the number of pages.
    pub fn misses(&self) -> Vec<u64> {
        let pages = self.last.len();
        let mut misses = vec![0; pages + 1];
        let mut beyond = 0;
        for frames in (1..=pages).rev() {
            misses[frames] = self.cold + beyond;
            beyond += self.distances[frames];
        }
        misses.remove(0);
        misses
    }
}

impl Oracle for Curve {
    fn feed(&mut self, references: &[PageRef]) {
        for reference in references {
            let page = reference.page() as u32;
            // The page on top of the stack stays on top.
            if self.newest != Some(page) {
                self.grow(page as usize);
                self.touch(page);
                self.newest = Some(page);
            }
            if reference.writing() {
                self.clean_below[page as usize] = 1;
            }
        }
    }

    fn finish(&mut self, _: &[u64]) -> Vec<OracleCounts> {
        // A page deeper in the stack than F has left a memory of F frames, and was written back if it was dirty there.
        for page in 0..self.last.len() {
            if self.last[page] != NEVER {
                let depth = self.alive - self.up_to(self.last[page] as usize) + 1;
                self.note_dirty(self.clean_below[page], depth);
            }
        }
        let misses = self.misses();
        let mut dirty = vec![0u64; self.last.len() + 1];
        let mut sum = 0;
        for (frames, count) in dirty.iter_mut().enumerate().skip(1) {
            sum += self.dirty[frames];
            *count = sum as u64;
        }
        let pages = misses.len();
        let at = |frames: &usize| {
            let f = (*frames).min(pages);
            let true_faults = if f == 0 { 0 } else { misses[f - 1] };
            OracleCounts {
                true_faults,
                cold_faults: self.cold,
                evictions: true_faults.saturating_sub(*frames as u64),
                dirty_evictions: if *frames > pages || f == 0 { 0 } else { dirty[f] },
            }
        };
        self.frames.iter().map(at).collect()
    }
}
