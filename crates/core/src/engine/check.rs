//! Every invariant of an engine.

use super::Engine;
use crate::frames::{Frame, Use};
use crate::ids::{FrameId, PageId};
use crate::page_state::PageState;
use crate::swap::Swap;

impl Engine {
    /// Checks every invariant; for tests and fuzzing, since it looks at everything.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        self.swap().into_iter().for_each(Swap::check);
        let mut resident = 0;
        for (frame, state) in self.frames.iter() {
            if let Use::Resident(page) = state.used {
                resident += 1;
                assert_eq!(self.pages.get(page), PageState::Resident(frame), "frame and page disagree");
            } else {
                assert!(!state.mapped && !state.dirty, "frame {} is nobody's but mapped or dirty", frame.0);
            }
        }
        let pages = self.pages.iter().filter(|s| matches!(s, PageState::Resident(_))).count();
        assert_eq!(pages, resident, "a page claims a frame that is not its own");
        assert_eq!(self.policy.len() + self.frames.pinned(), resident, "the policy has lost count of its frames");
        let flights = || self.in_flight.iter().flatten();
        let reserved = flights().filter(|f| f.frame.is_some()).count();
        assert_eq!(self.frames.free() + reserved + resident, self.config.frames, "a frame has leaked");
        assert_eq!(self.tickets.len() + flights().count(), self.in_flight.len(), "a ticket has leaked");
        let loading_into = flights().filter(|f| f.buffer.is_some()).count();
        let buffers = self.buffers.len() + loading_into + self.held.len();
        assert_eq!(buffers, self.config.caps.buffers as usize, "a buffer has leaked");
        self.check_held();
        self.check_slots();
        for (i, flight) in self.in_flight.iter().enumerate() {
            if let Some(flight) = flight {
                assert_eq!(self.pages.get(flight.page), PageState::Loading(i.into()), "a load nobody waits for");
            }
        }
        let loading = self.pages.iter().filter(|s| matches!(s, PageState::Loading(_))).count();
        assert_eq!(loading, flights().count(), "a page waits for a load that is not under way");
        assert!(self.waiting.len() <= self.config.tasks, "more faults wait than there are tasks");
        assert!(
            self.waiting.is_empty() || loading > 0 || self.pages.iter().any(|s| matches!(s, PageState::Writing { .. })),
            "a fault waits for nothing"
        );
    }

    /// Each held page has a buffer of its own, is nowhere else, and is there only under a handler that reads from buffers.
    fn check_held(&self) {
        assert!(self.held.is_empty() || self.handler.needs_xip, "handler {} holds pages", self.handler.name);
        for (i, (page, buffer)) in self.held.iter().enumerate() {
            assert_eq!(self.pages.get(*page), PageState::Held(*buffer), "page and buffer disagree");
            assert!(self.held[..i].iter().all(|(_, other)| other != buffer), "two pages in one buffer");
            assert!(!self.buffers.contains(buffer), "a free buffer holds a page");
            let loaded_into = self.in_flight.iter().flatten().any(|f| f.buffer == Some(*buffer));
            assert!(!loaded_into, "a page is loaded over another");
        }
        let pages = self.pages.iter().filter(|s| matches!(s, PageState::Held(_))).count();
        assert_eq!(pages, self.held.len(), "a page claims a buffer that is not its own");
    }

    /// A page mapped in its slot has that slot, and a machine that can; a page in a frame or never touched has none.
    fn check_slots(&self) {
        let Some(slots) = &self.backing.slots else { return };
        let files = |(_, frame): (FrameId, &Frame)| matches!(frame.used, Use::Resident(p) if slots.is_file(p));
        slots.check(self.frames.iter().filter(|f| files(*f)).count());
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
