//! Which events the engine takes.

use super::Engine;
use crate::event::{Event, Transfer};
use crate::ids::PageId;
use crate::page_state::PageState;

impl Engine {
    /// Whether a machine may send this event now. Not accepted are: the end of something that was not begun, a second
    /// fault of a task that already waits, a page or task beyond the bounds, and the release of a page in flight.
    pub fn accepts(&self, event: &Event) -> bool {
        let page_state = |page: PageId| self.pages.find(page);
        match *event {
            Event::Fault { task, page, .. } => {
                task.index() < self.config.tasks && page_state(page).is_some() && !self.flights.concern(task, |_| false)
            }
            Event::Loaded { ticket } | Event::Failed { transfer: Transfer::Load(ticket) } => {
                self.flights.find(ticket).is_some_and(|flight| flight.buffer.is_some())
            }
            Event::Written { page } | Event::Failed { transfer: Transfer::Write(page) } => {
                matches!(page_state(page), Some(PageState::Writing { .. }))
            }
            Event::Failed { transfer: Transfer::Copy { page, to } } => {
                page_state(page).is_some() && self.backing.takes_copies(page, to)
            }
            Event::Failed { transfer: Transfer::Erase(block) } => {
                self.swap().is_some_and(|swap| block.index() < swap.block_count())
            }
            Event::Slice => true,
            Event::Released { page } => !matches!(page_state(page), None | Some(PageState::Loading(_))),
            Event::FirstTouchNeighbour { page } => {
                page_state(page) == Some(PageState::Untouched) && self.backing.slots.is_none()
            }
            Event::WillNeed { page } => page_state(page).is_some(),
            Event::Pinned { page } => {
                self.frame_of(page).is_some_and(|frame| self.frames().get(frame).mapped)
                    || (matches!(page_state(page), Some(PageState::Held(_))) && self.ram.has_frame_to_give())
            }
            Event::Owned { task, page, .. } => {
                task.index() < self.config.tasks
                    && page_state(page) == Some(PageState::Untouched)
                    && self.backing.is_unowned(page)
            }
            Event::Foreground { task } => task.index() < self.config.tasks && self.backing.slots.as_ref().is_some(),
            Event::ReadOften { page } => matches!(page_state(page), Some(PageState::InSlot(_))),
            Event::Lend { frames } => {
                let stay = self.frames().pinned() + self.flights.most() + frames as usize;
                self.backing.slots.is_none() && stay <= self.frames().len()
            }
            Event::Borrow { frames } => self.frames().len() + frames as usize <= self.config.frames,
            Event::Unpinned { page } => self.frame_of(page).is_some_and(|frame| self.frames().get(frame).pins > 0),
        }
    }
}
