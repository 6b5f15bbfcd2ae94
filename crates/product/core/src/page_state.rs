//! The place of each page, one word a page. Zero means "never touched", so a table costs no RAM until its pages are
//! used.

use crate::ids::{BufferId, FrameId, PageId, SlotId, Ticket};
use crate::leaves::Leaves;

/// Where a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageState {
    /// Never touched.
    Untouched,
    /// In its slot only.
    Absent,
    /// On the way from its slot.
    Loading(Ticket),
    /// In a frame.
    Resident(FrameId),
    /// On the way to its slot. A fault waits until the page is there.
    Writing { tries: u8, released: bool },
    /// The device finally refused its bytes.
    Lost,
    /// In a buffer of the device, mapped and read there.
    Held(BufferId),
    /// In its slot of the swap area, mapped and read there.
    InSlot(SlotId),
}

/// Three bits select the state; the others hold its number.
const TAG_BITS: u32 = 3;

/// The number of different frame or ticket numbers that a word can hold.
pub(crate) const NUMBERS: usize = 1 << (32 - TAG_BITS);

impl PageState {
    fn pack(self) -> u32 {
        let (tag, number) = match self {
            PageState::Untouched => (0, 0),
            PageState::Absent => (1, 0),
            PageState::Loading(ticket) => (2, ticket.0),
            PageState::Resident(frame) => (3, frame.0),
            PageState::Writing { tries, released } => (4, u32::from(tries) << 1 | u32::from(released)),
            PageState::Lost => (5, 0),
            PageState::Held(buffer) => (6, buffer.0),
            PageState::InSlot(slot) => (7, slot.0),
        };
        number << TAG_BITS | tag
    }

    fn unpack(word: u32) -> PageState {
        let number = word >> TAG_BITS;
        match word & ((1 << TAG_BITS) - 1) {
            0 => PageState::Untouched,
            1 => PageState::Absent,
            2 => PageState::Loading(Ticket(number)),
            3 => PageState::Resident(FrameId(number)),
            4 => PageState::Writing { tries: (number >> 1) as u8, released: number & 1 != 0 },
            6 => PageState::Held(BufferId(number)),
            7 => PageState::InSlot(SlotId(number)),
            _ => PageState::Lost,
        }
    }
}

/// The states of all pages.
#[derive(Debug)]
pub(crate) struct PageStates {
    words: Leaves,
    pages: usize,
}

impl PageStates {
    /// States of this many pages, none of which was touched.
    pub(crate) fn new(pages: usize) -> PageStates {
        PageStates { words: Leaves::new(pages), pages }
    }

    /// The state of a page; `None` beyond the last.
    pub(crate) fn find(&self, page: PageId) -> Option<PageState> {
        (page.index() < self.pages).then(|| self.get(page))
    }

    pub(crate) fn get(&self, page: PageId) -> PageState {
        PageState::unpack(self.words.get(page.index()))
    }

    pub(crate) fn set(&mut self, page: PageId, state: PageState) {
        self.words.set(page.index(), state.pack());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = PageState> + '_ {
        (0..self.pages).map(|page| PageState::unpack(self.words.get(page)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_comes_back_from_its_word() {
        let last = NUMBERS as u32 - 1;
        for state in [
            PageState::Untouched,
            PageState::Absent,
            PageState::Loading(Ticket(last)),
            PageState::Resident(FrameId(0)),
            PageState::Resident(FrameId(last)),
            PageState::Writing { tries: 255, released: true },
            PageState::Writing { tries: 1, released: false },
            PageState::Lost,
            PageState::Held(BufferId(last)),
            PageState::InSlot(SlotId(last)),
        ] {
            assert_eq!(PageState::unpack(state.pack()), state);
        }
        assert_eq!(PageState::Untouched.pack(), 0);
    }
}
