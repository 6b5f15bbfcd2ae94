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
//! of pages that are sampled (`coldframe_recording::entries::is_sampled`). Both change while a program runs.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use coldframe_core::frames::Residents;
use coldframe_core::lists::{Links, List};
use coldframe_core::policy::{Policy, Victim};
use coldframe_core::{FrameId, Walk};
use coldframe_recording::entries::is_sampled;

/// The most pages that leave the window for one that enters, after the window was shortened.
const LEAVES: usize = 4;

/// The knobs. The machine that drives the engine sets them.
#[derive(Debug, Default)]
pub struct Knobs {
    pub window: AtomicUsize,
    /// One chunk in 2^shift is sampled.
    pub shift: AtomicU32,
}

/// Which list a frame is on; on none, `Rest`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FrameList {
    Rest,
    Window,
    Outside,
}

#[derive(Debug)]
pub struct Watched {
    knobs: Arc<Knobs>,
    links: Links,
    lists: [List; 3],
    places: Box<[FrameList]>,
}

impl Watched {
    pub fn new(frames: usize, knobs: Arc<Knobs>) -> Watched {
        let (links, places) = (Links::new(frames), vec![FrameList::Rest; frames].into_boxed_slice());
        Watched { knobs, links, lists: [const { List::new() }; 3], places }
    }

    fn list(&self, place: FrameList) -> &List {
        &self.lists[place as usize]
    }

    fn put(&mut self, frame: usize, place: FrameList) {
        self.lists[place as usize].push_tail(&mut self.links, frame);
        self.places[frame] = place;
    }

    fn take(&mut self, frame: usize) {
        self.lists[self.places[frame] as usize].unlink(&mut self.links, frame);
        self.places[frame] = FrameList::Rest;
    }

    fn enter(&mut self, frame: FrameId, residents: &mut Residents<'_>) {
        let (room, shift) = (self.knobs.window.load(Relaxed).max(1), self.knobs.shift.load(Relaxed));
        if !is_sampled(residents.page(frame).0, shift) {
            return self.put(frame.index(), FrameList::Rest);
        }
        self.put(frame.index(), FrameList::Window);
        for _ in 0..LEAVES {
            let window = self.list(FrameList::Window);
            let Some(oldest) = window.head().filter(|_| window.len() > room) else { return };
            self.take(oldest);
            match is_sampled(residents.page(oldest.into()).0, shift) {
                true => {
                    self.put(oldest, FrameList::Outside);
                    residents.downgrade(oldest.into());
                }
                false => self.put(oldest, FrameList::Rest),
            }
        }
    }
}

impl Policy for Watched {
    fn victim(&mut self, _: &mut Residents<'_>) -> Victim {
        let oldest = [FrameList::Outside, FrameList::Rest, FrameList::Window]
            .into_iter()
            .find_map(|place| self.list(place).head());
        let oldest = oldest.expect("a page is resident");
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
        self.lists.iter().map(List::len).sum()
    }
}
