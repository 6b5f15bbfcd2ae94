//! Places of pages outside of RAM: each page is in its home slot, or in a slot that a swap area has assigned.
//!
//! Slots of a swap area have numbers above the home slots; there is one home slot for each page. A page that was
//! written to the area stays there until it is written again or released. When the page is loaded, its copy stays
//! valid, so the page can be evicted clean. If the area has no room, the page is written to its home slot.
//!
//! Instead of an area on flash, or before it, there can be an area whose slots are rewritten in place
//! ([`crate::swap::slots`]). Their numbers follow the home slots, and those of the area on flash follow theirs.
//!
//! Where an area on flash has several logs, a page goes to the log of the task that it belongs to.

use alloc::boxed::Box;
use alloc::vec;

use crate::command::Command;
use crate::ids::{BlockId, PageId, SlotId, TaskId};
use crate::machine::Machine;
use crate::page_state::{PageState, PageStates};
use crate::swap::slots::{Backed, Slots};
use crate::swap::{Flash, Order, Refused, Swap};

pub(crate) struct Backing {
    homes: u32,
    /// The first slot of the area on flash.
    flash: u32,
    pub(crate) swap: Option<Swap>,
    pub(crate) slots: Option<Slots>,
    /// The home slots are the area: pages are read there.
    read_at_home: bool,
    /// By page: its task plus 1; 0: nobody's. Empty where no area has several logs.
    owners: Box<[u32]>,
}

impl Backing {
    /// A home slot for each page, and the areas.
    pub(crate) fn new(pages: usize, swap: Option<Swap>, slots: Option<Slots>) -> Backing {
        let flash = (pages + slots.as_ref().map_or(0, Slots::len)) as u32;
        let owned = if swap.as_ref().is_some_and(Swap::has_logs) { pages } else { 0 };
        let owners = vec![0; owned].into();
        Backing { homes: pages as u32, flash, swap, slots, read_at_home: false, owners }
    }

    /// The page belongs to this task.
    pub(crate) fn own(&mut self, task: TaskId, page: PageId, backed: Backed) {
        if let Some(slots) = &mut self.slots {
            slots.own(task, page, backed);
        }
        if let Some(owner) = self.owners.get_mut(page.index()) {
            *owner = task.0 + 1;
        }
    }

    /// Whether the page has no owner, and it matters.
    pub(crate) fn is_unowned(&self, page: PageId) -> bool {
        match &self.slots {
            Some(slots) => slots.owner(page).is_none(),
            None => self.owners.get(page.index()) == Some(&0),
        }
    }

    /// Without an area of another kind, the home slots are one, and pages can be read there.
    pub(crate) fn read_at_home(self, direct_read: bool) -> Backing {
        Backing { read_at_home: direct_read && self.swap.is_none() && self.slots.is_none(), ..self }
    }

    /// Where the page's newest copy is.
    pub(crate) fn slot_of(&self, page: PageId) -> SlotId {
        if let Some(slot) = self.in_slots(page) {
            return SlotId(self.homes + slot.0);
        }
        self.on_flash(page).map_or(page.home(), |slot| SlotId(self.flash + slot.0))
    }

    /// The slot for the page's next copy. Copies and erases that a collection needs for it are issued first. If a
    /// page is mapped in a slot that the collection empties, the page is unmapped first.
    pub(crate) fn slot_for(&mut self, page: PageId, pages: &mut PageStates, machine: &mut dyn Machine) -> SlotId {
        let slot = self.slots.as_mut().and_then(|slots| slots.take(page));
        let is_file = self.slots.as_ref().is_some_and(|slots| slots.is_file(page));
        let Some(swap) = self.swap.as_mut().filter(|_| !is_file) else {
            return slot.map_or(page.home(), |slot| SlotId(self.homes + slot.0));
        };
        if let Some(slot) = slot {
            swap.release(page);
            return SlotId(self.homes + slot.0);
        }
        if let Some(owner) = self.owners.get(page.index()) {
            swap.log_of(owner.saturating_sub(1));
        }
        match swap.swap_out(page, &mut Orders { flash: self.flash, pages, machine }) {
            Ok(slot) => SlotId(self.flash + slot.0),
            Err(_) => {
                swap.release(page);
                page.home()
            }
        }
    }

    /// The device refused the page's last write.
    pub(crate) fn failed(&mut self, page: PageId) {
        if let Some((swap, slot)) = self.swap.as_mut().and_then(|swap| swap.slot_of(page).map(|slot| (swap, slot))) {
            swap.program_failed(page, slot);
        }
    }

    /// Whether a copy of the page to this slot can be under way.
    pub(crate) fn takes_copies(&self, page: PageId, to: SlotId) -> bool {
        let slots = |swap: &Swap| swap.block_count() * swap.slots_per_block() as usize;
        let in_area = |slot: u32| self.swap.as_ref().is_some_and(|swap| (slot as usize) < slots(swap));
        to.0.checked_sub(self.flash).map_or(self.swap.is_some() && to == page.home(), in_area)
    }

    /// The device refused to copy the page to this slot. Returns true if that was the page's newest copy.
    pub(crate) fn copy_failed(&mut self, page: PageId, to: SlotId) -> bool {
        match (to.0.checked_sub(self.flash), &mut self.swap) {
            (Some(slot), Some(swap)) => swap.program_failed(page, SlotId(slot)),
            _ => self.slot_of(page) == to,
        }
    }

    /// The device refused to erase the block.
    pub(crate) fn erase_failed(&mut self, block: BlockId) {
        if let Some(swap) = &mut self.swap {
            swap.erase_failed(block);
        }
    }

    /// The page's slot of an area that is rewritten in place.
    pub(crate) fn in_slots(&self, page: PageId) -> Option<SlotId> {
        self.slots.as_ref().and_then(|slots| slots.slot_of(page))
    }

    fn on_flash(&self, page: PageId) -> Option<SlotId> {
        self.swap.as_ref().and_then(|swap| swap.slot_of(page))
    }

    /// The page's slot of the area; of the first area if there are two.
    pub(crate) fn in_area(&self, page: PageId) -> Option<SlotId> {
        self.home_area(page).or_else(|| if self.slots.is_some() { self.in_slots(page) } else { self.on_flash(page) })
    }

    /// The page's home slot, if home slots are the area.
    pub(crate) fn home_area(&self, page: PageId) -> Option<SlotId> {
        self.read_at_home.then_some(page.home())
    }

    /// The slots, if no other area takes what they have no room for.
    pub(crate) fn only_slots(&self) -> Option<&Slots> {
        self.slots.as_ref().filter(|_| self.swap.is_none())
    }

    /// Whether the page can leave RAM. With home slots this is always so, since they take what an area refuses.
    pub(crate) fn has_room_for(&self, page: PageId) -> bool {
        self.only_slots().is_none_or(|slots| slots.has_room_for(page))
    }

    /// Whether the page belongs in the slots and nowhere else.
    pub(crate) fn wants_slot(&self, page: PageId) -> bool {
        self.only_slots().is_some_and(|slots| !slots.is_file(page))
    }

    /// The page came to a frame. Returns true if it gave its slot back, so that the only copy is in the frame.
    pub(crate) fn came(&mut self, page: PageId) -> bool {
        let Some(slots) = &mut self.slots else { return false };
        slots.came(page);
        slots.give_back(page)
    }

    /// The page left its frame.
    pub(crate) fn left(&mut self, page: PageId) {
        if let Some(slots) = &mut self.slots {
            slots.left(page);
        }
    }

    /// The page's copy is no longer needed.
    pub(crate) fn release(&mut self, page: PageId) {
        if let Some(slots) = &mut self.slots {
            slots.give_back(page);
        }
        if let Some(swap) = &mut self.swap {
            swap.release(page);
        }
    }
}

/// Passes a collection's orders on to the machine. A page from RAM is programmed by `Command::Write`, so a program
/// needs no order here. The machine reports refusals later.
struct Orders<'a> {
    flash: u32,
    pages: &'a mut PageStates,
    machine: &'a mut dyn Machine,
}

impl Flash for Orders<'_> {
    fn carry_out(&mut self, order: Order) -> Result<(), Refused> {
        let place = |slot: SlotId| SlotId(self.flash + slot.0);
        match order {
            Order::Program { from: None, .. } => {}
            Order::Program { page, from: Some(from), to } => {
                if matches!(self.pages.get(page), PageState::InSlot(_)) {
                    self.machine.issue(Command::Unmap { page });
                    self.pages.set(page, PageState::Absent);
                }
                self.machine.issue(Command::CopySlot { page, from: Some(place(from)), to: place(to) });
            }
            Order::Erase(block) => self.machine.issue(Command::EraseBlock { block }),
        }
        Ok(())
    }
}
