//! The recorder's window. No page leaves RAM; pages are unmapped only so that their next reference shows. Users
//! cannot choose this policy; the live pager uses it to record a program.
//!
//! ```text
//!   entry ─→ [ window: the last pages that entered, mapped ] ─→ [ outside: in RAM, not mapped ] ─ reference = entry ─┐
//!     ↑                                                                                                          │
//!     └──────────────────────────────────────────────────────────────────────────────────────────────────────────┘
//!   pages that are not sampled: mapped from their first reference on, in neither list
//! ```
//! There are two knobs, since a reference that shows costs the program time: the length of the window, and the share
//! of pages that are sampled (`coldframe_journal::entries::is_sampled`). Both change while a program runs.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use coldframe_core::frames::Residents;
use coldframe_core::lists::{Links, List};
use coldframe_core::policy::{Policy, Victim};
use coldframe_core::{FrameId, Walk};
use coldframe_journal::entries::is_sampled;

/// The most pages that leave the window for one that enters, after the window was shortened.
const LEAVES: usize = 4;

/// The knobs. The machine that drives the engine sets them.
#[derive(Debug, Default)]
pub struct Knobs {
    /// Sampled pages in the window.
    pub window: AtomicUsize,
    /// One chunk in 2^shift is sampled.
    pub shift: AtomicU32,
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
    /// Makes it for a number of frames.
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
        if !is_sampled(residents.page(frame).0, shift) {
            return self.put(frame.index(), Place::Rest);
        }
        self.put(frame.index(), Place::Window);
        for _ in 0..LEAVES {
            let Some(oldest) = self.window.head().filter(|_| self.window.len() > room) else { return };
            self.take(oldest);
            match is_sampled(residents.page(oldest.into()).0, shift) {
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
