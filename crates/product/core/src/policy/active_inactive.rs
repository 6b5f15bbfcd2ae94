//! Two lists, after Linux without MGLRU: pages that were used more than once are on the active list, all others on the
//! inactive list, from whose old end pages leave.
//!
//! ```text
//!   new page ─────────→ [ inactive ] ── used again ──→ [ active ] ←── evicted a short while ago
//!                     ↺ used │   ↑                          │
//!                            ▼   └──────── deactivated ─────┘
//!                         victim
//! ```
//!
//! Source: Linux 5.9 to 6.18; names in this file are the kernel's. What is kept, for anonymous pages:
//! - a new page starts on the inactive list (`folio_add_lru` in `mm/swap.c`). Its bit is set, since the access that
//!   faulted is repeated;
//! - the oldest inactive page is examined (`folio_check_references` in `mm/vmscan.c`). Used once: it is marked and
//!   spared. Used again after that: it is activated. Not used since the last look: it leaves;
//! - active pages are deactivated with any bit, and their bits are cleared (`shrink_active_list`), as many for an
//!   inactive page that is examined as the lists' lengths say (`get_scan_count`). This happens while the inactive list
//!   is short (`inactive_is_low`: less than the active list by the root of 10 for each GiB of both, with pages of 4
//!   KiB), and after a refault that was activated (`prepare_scan_control`), for the 32 pages of a reclaim;
//! - a page that leaves notes the age: the number of pages evicted and activated so far (`mm/workingset.c`). A page
//!   that comes back is activated if no more than that many pages have aged since as are active
//!   (`workingset_test_recent`).
//!
//! What is left out: MGLRU (see `generations`); pages of files, with which a memory cgroup's lists share the scan by
//! swappiness and by cost; batches, since the kernel frees 32 pages at a time; large folios, locked pages, several
//! processes that map a page. An age outlives a page that is freed while it is swapped out. Read-ahead is not the
//! policy's: a page that is read ahead comes unmapped, so it leaves at the first look if nothing has touched it.
//!
//! A search finds each page's bit set at most once, and deactivates it at most once: 2 frames + 1 steps at most.
//!
//! When not to use it: where each page used once is worth a frame, such a page lives as long as one used twice; and
//! without hardware bits, where each look unmaps a page.

use alloc::boxed::Box;
use alloc::vec;

use super::{Policy, PolicySpec, Victim};
use crate::frames::Residents;
use crate::ids::FrameId;
use crate::lists::{Links, List};
use crate::machine::After;
use crate::units::Walk;

/// Pages that one reclaim frees (Linux, `include/linux/swap.h`).
const SWAP_CLUSTER_MAX: u32 = 32;
/// Pages of 4 KiB in a GiB are two to this power.
const GIB_SHIFT: u32 = 18;

/// The entry of the table of policies.
pub const SPEC: PolicySpec = PolicySpec {
    name: "active-inactive",
    summary: "after Linux without MGLRU: pages used twice are active, the oldest inactive one leaves",
    source: "Linux 6.x mm/vmscan.c, mm/workingset.c",
    params: &[],
    build: |_, frames, pages| Ok(Box::new(ActiveInactive::new(frames, pages))),
    #[cfg(feature = "naive")]
    naive: |_, frames| Box::new(naive::NaiveTwoLists::new(frames)),
};

/// The lists, from old to new, and the shadow entries.
#[derive(Debug)]
pub struct ActiveInactive {
    inactive: List,
    active: List,
    links: Links,
    is_active: Box<[bool]>,
    /// Found used once since the page was loaded.
    marked: Box<[bool]>,
    /// By page: the age when it left, plus 1; 0 if it has not left.
    shadows: Box<[u64]>,
    age: u64,
    /// Victims that are still to be found with deactivation, since a refault was activated.
    pressed: u32,
    /// What is left over when active pages are divided by inactive ones.
    rest: usize,
}

impl ActiveInactive {
    /// For a number of frames and pages.
    pub fn new(frames: usize, pages: usize) -> ActiveInactive {
        ActiveInactive {
            inactive: List::new(),
            active: List::new(),
            links: Links::new(frames),
            is_active: vec![false; frames].into(),
            marked: vec![false; frames].into(),
            shadows: vec![0; pages].into(),
            age: 0,
            pressed: 0,
            rest: 0,
        }
    }

    fn join(&mut self, frame: usize, active: bool) {
        let list = if active { &mut self.active } else { &mut self.inactive };
        list.push_tail(&mut self.links, frame);
        self.is_active[frame] = active;
        self.age += u64::from(active);
    }

    fn inactive_is_low(&self) -> bool {
        let ratio = (10 * (self.len() >> GIB_SHIFT)).isqrt().max(1);
        self.inactive.len() * ratio < self.active.len()
    }

    /// How many active pages are deactivated before the next inactive page is examined.
    fn due(&mut self) -> usize {
        if self.pressed == 0 && !self.inactive_is_low() {
            return 0;
        }
        let Some(steps) = (self.active.len() + self.rest).checked_div(self.inactive.len()) else { return 1 };
        self.rest = (self.active.len() + self.rest) % self.inactive.len();
        steps.min(self.active.len())
    }
}

impl Policy for ActiveInactive {
    fn victim(&mut self, residents: &mut Residents<'_>) -> Victim {
        let mut walk = Walk::ZERO;
        loop {
            for _ in 0..self.due() {
                let frame = self.active.pop_head(&mut self.links).expect("an active page is due");
                residents.referenced(frame.into(), After::Clear);
                self.join(frame, false);
                walk += Walk(1);
            }
            let frame = self.inactive.pop_head(&mut self.links).expect("a page is inactive");
            walk += Walk(1);
            if residents.referenced(frame.into(), After::Clear) {
                let again = core::mem::replace(&mut self.marked[frame], true);
                self.join(frame, again);
                continue;
            }
            self.age += 1;
            self.shadows[residents.page(frame.into()).index()] = self.age;
            self.pressed = self.pressed.saturating_sub(1);
            return Victim { frame: frame.into(), walk, forced: false };
        }
    }

    fn insert(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        let shadow = core::mem::take(&mut self.shadows[residents.page(frame).index()]);
        let active = shadow > 0 && self.age + 1 - shadow <= self.active.len() as u64;
        self.marked[frame.index()] = false;
        self.join(frame.index(), active);
        if active {
            self.pressed = SWAP_CLUSTER_MAX;
        }
    }

    fn remove(&mut self, frame: FrameId) {
        let list = if self.is_active[frame.index()] { &mut self.active } else { &mut self.inactive };
        list.unlink(&mut self.links, frame.index());
    }

    fn len(&self) -> usize {
        self.active.len() + self.inactive.len()
    }
}

#[cfg(feature = "naive")]
mod naive {
    use crate::naive::{Naive, Touch};
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    struct TwoListsPage {
        number: u64,
        active: bool,
        bit: bool,
        marked: bool,
    }

    /// All pages in one queue, in the order in which they joined their list. Fewer than a GiB, so the ratio is 1.
    pub struct NaiveTwoLists {
        queue: Vec<TwoListsPage>,
        frames: usize,
        /// The age at which each page left.
        left: BTreeMap<u64, u64>,
        age: u64,
        pressed: u64,
        rest: usize,
    }

    impl NaiveTwoLists {
        pub fn new(frames: usize) -> NaiveTwoLists {
            NaiveTwoLists { queue: Vec::new(), frames, left: BTreeMap::new(), age: 0, pressed: 0, rest: 0 }
        }

        fn count(&self, active: bool) -> usize {
            self.queue.iter().filter(|page| page.active == active).count()
        }

        fn take_oldest(&mut self, active: bool) -> TwoListsPage {
            let at = self.queue.iter().position(|page| page.active == active).expect("the list is not empty");
            self.queue.remove(at)
        }

        fn evict(&mut self, walk: &mut u64) -> u64 {
            loop {
                let (active, inactive) = (self.count(true), self.count(false));
                let mut due = 0;
                if inactive == 0 {
                    due = 1;
                } else if self.pressed > 0 || inactive < active {
                    due = active.min((active + self.rest) / inactive);
                    self.rest = (active + self.rest) % inactive;
                }
                for _ in 0..due {
                    let page = self.take_oldest(true);
                    self.queue.push(TwoListsPage { active: false, bit: false, ..page });
                }
                *walk += due as u64 + 1;
                let page = self.take_oldest(false);
                if !page.bit {
                    self.left.insert(page.number, self.age);
                    self.age += 1;
                    self.pressed = self.pressed.max(1) - 1;
                    return page.number;
                }
                self.age += u64::from(page.marked);
                self.queue.push(TwoListsPage { active: page.marked, bit: false, marked: true, ..page });
            }
        }
    }

    impl Naive for NaiveTwoLists {
        fn reference(&mut self, page: u64) -> Touch {
            if let Some(entry) = self.queue.iter_mut().find(|p| p.number == page) {
                entry.bit = true;
                return Touch::Hit;
            }
            let mut walk = 0;
            let victim = (self.queue.len() == self.frames).then(|| self.evict(&mut walk));
            let active = self.left.remove(&page).is_some_and(|left| self.age - left <= self.count(true) as u64);
            if active {
                self.age += 1;
                self.pressed = 32;
            }
            self.queue.push(TwoListsPage { number: page, active, bit: true, marked: false });
            Touch::TrueFault { victim, walk, forced: false }
        }
    }
}
