//! The recorder's window: nothing leaves, and pages are unmapped only so that their next reference shows. No policy to choose; the live
//! pager takes it to record a program.
//!
//! ```text
//!   entry ─→ [ window: the last pages that entered, mapped ] ─→ [ outside: in RAM, not mapped ] ─ reference = entry ─┐
//!     ↑                                                                                                          │
//!     └──────────────────────────────────────────────────────────────────────────────────────────────────────────┘
//!   pages that are not sampled: mapped from their first reference on, in neither list
//! ```
//! Two knobs turn while a program runs, since a reference that shows costs it time: the window's length, and the share of pages that are
//! sampled at all. Pages are sampled by their place, in chunks of [`CHUNK`] neighbours so that sequential runs stay whole. SHARDS (Waldspurger
//! et al., FAST 2015) samples single blocks by a hash of each. Here the hash chooses one of two neighbouring chunks, then one of two such pairs,
//! and so on: each region of memory has its share of the sample, exactly, and no pattern of addresses meets another one.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use super::{Policy, Victim};
use crate::frames::Residents;
use crate::ids::{FrameId, PageId};
use crate::lists::{Links, List};
use crate::units::Walk;

/// Neighbouring pages that are sampled together.
pub const CHUNK: u32 = 8;

/// Most pages that leave the window for one that enters, when it has been made shorter.
const LEAVES: usize = 4;

/// The knobs, turned by whoever drives the engine.
#[derive(Debug, Default)]
pub struct Knobs {
    /// Sampled pages in the window.
    pub window: AtomicUsize,
    /// Of the chunks one in 2^shift is sampled.
    pub shift: AtomicU32,
}

/// Whether a page is sampled when one chunk in 2^`shift` is. What is sampled at one shift is sampled at each smaller one.
pub fn is_sampled(page: PageId, shift: u32) -> bool {
    let chunk = page.0 / CHUNK;
    (0..shift.min(u32::BITS - 1)).all(|level| {
        let pair = chunk >> level >> 1;
        chunk >> level & 1 == hash(pair ^ level.wrapping_mul(0x9e37_79b9)) & 1
    })
}

/// The finalizer of MurmurHash3 (Appleby, public domain): 32 bits that are as good as random.
fn hash(number: u32) -> u32 {
    let mut h = number.wrapping_add(0x9e37_79b9);
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}

/// Which list a frame is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Rest,
    Window,
    Outside,
}

/// The window.
#[derive(Debug)]
pub struct Watched {
    knobs: Arc<Knobs>,
    links: Links,
    window: List,
    outside: List,
    rest: List,
    /// 0: on no list or `rest`, 1: in the window, 2: outside.
    places: Box<[u8]>,
}

impl Watched {
    /// For so many frames.
    pub fn new(frames: usize, knobs: Arc<Knobs>) -> Watched {
        let (links, places) = (Links::new(frames), vec![0; frames].into_boxed_slice());
        Watched { knobs, links, window: List::new(), outside: List::new(), rest: List::new(), places }
    }

    fn place(&self, frame: usize) -> Place {
        match self.places[frame] {
            0 => Place::Rest,
            1 => Place::Window,
            _ => Place::Outside,
        }
    }

    fn put(&mut self, frame: usize, place: Place) {
        let list = match place {
            Place::Rest => &mut self.rest,
            Place::Window => &mut self.window,
            Place::Outside => &mut self.outside,
        };
        list.push_tail(&mut self.links, frame);
        self.places[frame] = place as u8;
    }

    fn take(&mut self, frame: usize) {
        let list = match self.place(frame) {
            Place::Rest => &mut self.rest,
            Place::Window => &mut self.window,
            Place::Outside => &mut self.outside,
        };
        list.unlink(&mut self.links, frame);
        self.places[frame] = 0;
    }

    fn enter(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        let (room, shift) = (self.knobs.window.load(Relaxed).max(1), self.knobs.shift.load(Relaxed));
        if !is_sampled(residents.page(frame), shift) {
            return self.put(frame.index(), Place::Rest);
        }
        self.put(frame.index(), Place::Window);
        for _ in 0..LEAVES {
            let Some(oldest) = self.window.head().filter(|_| self.window.len() > room) else { return };
            self.take(oldest);
            match is_sampled(residents.page(oldest.into()), shift) {
                true => {
                    self.put(oldest, Place::Outside);
                    residents.downgrade(oldest.into());
                }
                false => self.put(oldest, Place::Rest),
            }
        }
    }
}

impl Policy for Watched {
    fn victim(&mut self, _: &mut Residents<'_>) -> Victim {
        let oldest = self.outside.head().or(self.rest.head()).or(self.window.head()).expect("a page is resident");
        self.take(oldest);
        Victim { frame: oldest.into(), walk: Walk(1), forced: false }
    }

    fn insert(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        self.enter(frame, residents);
    }

    fn promote(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        self.take(frame.index());
        self.enter(frame, residents);
    }

    fn remove(&mut self, frame: FrameId) {
        self.take(frame.index());
    }

    fn len(&self) -> usize {
        self.window.len() + self.outside.len() + self.rest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_sample_is_part_of_a_larger_one_and_chunks_stay_whole() {
        let pages = 1 << 20;
        for shift in 0..6 {
            let sampled = (0..pages).filter(|page| is_sampled(PageId(*page), shift)).count();
            assert_eq!(sampled, pages as usize >> shift);
            for page in (0..pages).filter(|page| is_sampled(PageId(*page), shift + 1)) {
                assert!(is_sampled(PageId(page), shift));
            }
        }
        // Each region has its share: of any 2^shift chunks side by side that begin at a multiple of as many, one.
        for region in (0..pages).step_by(CHUNK as usize * 8) {
            let sampled = (region..region + CHUNK * 8).filter(|page| is_sampled(PageId(*page), 3)).count();
            assert_eq!(sampled, CHUNK as usize);
        }
        let alike = |page: u32| is_sampled(PageId(page), 3) == is_sampled(PageId(page / CHUNK * CHUNK), 3);
        assert!((0..pages).all(alike));
    }
}
