//! Every invariant of an engine.

use super::Engine;
use crate::frames::{Frame, Use};
use crate::ids::{FrameId, PageId};
use crate::page_state::PageState;
use crate::swap::Swap;

impl Engine {
    /// Checks every invariant. It looks at everything, so use it only in tests and fuzzing.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        self.swap().into_iter().for_each(Swap::check);
        let mut resident = 0;
        for (frame, state) in self.frames().iter() {
            if let Use::Resident(page) = state.used {
                resident += 1;
                assert_eq!(self.pages.get(page), PageState::Resident(frame), "frame and page disagree");
            } else {
                assert!(!state.mapped && !state.dirty, "frame {} is nobody's but mapped or dirty", frame.0);
            }
        }
        let pages = self.pages.iter().filter(|s| matches!(s, PageState::Resident(_))).count();
        assert_eq!(pages, resident, "a page claims a frame that is not its own");
        let known = self.ram.choices() + self.frames().pinned() + self.frames().first_touch_neighbours();
        assert_eq!(known, resident, "the policy has lost count of its frames");
        let (flying, waiting) = self.flights.check();
        let reserved = self.flights.iter().filter(|f| f.frame.is_some()).count();
        assert_eq!(self.frames().free() + reserved + resident, self.frames().len(), "a frame has leaked");
        assert!(self.frames().pinned() + reserved <= self.frames().len(), "frames are lent that are in use");
        self.buffers.check(self.flights.iter().filter_map(|f| f.buffer));
        self.check_held();
        self.check_slots();
        let mut loading = 0;
        for (page, state) in self.pages.iter().enumerate() {
            if let PageState::Loading(ticket) = state {
                loading += 1;
                let flies = self.flights.find(ticket).is_some_and(|flight| flight.page.index() == page);
                assert!(flies, "page {page} waits for a load that is not under way");
            }
        }
        assert_eq!(loading, flying, "a load nobody waits for");
        assert!(waiting <= self.config.tasks, "more faults wait than there are tasks");
        assert!(
            waiting == 0 || loading > 0 || self.pages.iter().any(|s| matches!(s, PageState::Writing { .. })),
            "a fault waits for nothing"
        );
    }

    /// Each held page is in no other place, and pages are held only under a handler that reads from buffers.
    fn check_held(&self) {
        let held = self.buffers.held();
        assert!(held.is_empty() || self.handler.needs_xip, "handler {} holds pages", self.handler.name);
        for (page, buffer) in held {
            assert_eq!(self.pages.get(*page), PageState::Held(*buffer), "page and buffer disagree");
        }
        let pages = self.pages.iter().filter(|s| matches!(s, PageState::Held(_))).count();
        assert_eq!(pages, held.len(), "a page claims a buffer that is not its own");
    }

    /// A page mapped in its slot has that slot, on a machine that can read it there. A page in a frame has no slot,
    /// and neither has a page that was never touched.
    fn check_slots(&self) {
        let Some(slots) = self.backing.slots.as_ref() else { return };
        let files = |(_, frame): (FrameId, &Frame)| matches!(frame.used, Use::Resident(p) if slots.is_file(p));
        slots.check(self.frames().iter().filter(|f| files(*f)).count());
        for (i, state) in self.pages.iter().enumerate() {
            let slot = slots.slot_of(PageId::from(i));
            match state {
                PageState::InSlot(at) => {
                    assert!(slot == Some(at) && self.config.caps.direct_read, "page {i} is in no slot")
                }
                PageState::Resident(_) | PageState::Untouched => assert_eq!(slot, None, "page {i} has kept its slot"),
                _ => {}
            }
        }
    }
}
