//! Where copies lie: in an area that sees its erase blocks, or on a device whose translation layer hides them.
//!
//! With a translation layer the kernel's slots are numbers of the device's pages (`Layout::Linux` for the kernel is then a [`SlotMap`]), and the
//! device keeps a log of its own below. A slot that is released stays valid for the device until it is written again, unless the
//! kernel tells it (discard).

use coldframe_core::swap::linux::SlotMap;
use coldframe_core::swap::{Full, Perfect, Swap, SwapError};
use coldframe_core::{PageId, SlotId};

use super::SwapConfig;

/// A device with a translation layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translation {
    /// SWAPFILE_CLUSTER of the kernel's slot allocation.
    pub cluster: u32,
    /// The kernel tells the device of slots that are free.
    pub discard: bool,
    /// Percent of the device's blocks that it keeps for itself.
    pub spare_percent: u32,
}

pub(super) enum Store {
    Direct(Box<Swap>),
    Translated(Box<Translated>),
}

pub(super) struct Translated {
    swap: Swap,
    map: SlotMap,
    discard: bool,
    /// The kernel's slot of each page, and the page in each slot.
    slot: Vec<Option<u32>>,
    page: Vec<Option<PageId>>,
}

impl Store {
    pub(super) fn new(config: &SwapConfig, pages: usize) -> Result<Store, SwapError> {
        let Some(translation) = config.translation else {
            return Ok(Store::Direct(Box::new(Swap::new(pages, config.slots_per_block, &config.areas)?)));
        };
        // What is kept back must at least hold the blocks that a collection needs.
        let usable = |a: &coldframe_core::swap::AreaConfig| {
            let spare = (u64::from(a.blocks) * u64::from(translation.spare_percent)).div_ceil(100) as u32;
            a.blocks.saturating_sub(spare.max(a.stop + 2))
        };
        let slots = config.areas.iter().map(usable).sum::<u32>() * config.slots_per_block;
        let swap = Swap::new(slots.max(1) as usize, config.slots_per_block, &config.areas)?;
        Ok(Store::Translated(Box::new(Translated {
            swap,
            map: SlotMap::new(slots, translation.cluster),
            discard: translation.discard,
            slot: vec![None; pages],
            page: vec![None; slots as usize],
        })))
    }

    pub(super) fn swap(&self) -> &Swap {
        match self {
            Store::Direct(swap) => swap,
            Store::Translated(device) => &device.swap,
        }
    }

    #[inline]
    pub(super) fn holds(&self, page: PageId) -> bool {
        match self {
            Store::Direct(swap) => swap.slot_of(page).is_some(),
            Store::Translated(device) => device.slot[page.index()].is_some(),
        }
    }

    #[inline]
    pub(super) fn swap_out(&mut self, page: PageId) -> Result<(), Full> {
        match self {
            Store::Direct(swap) => swap.swap_out(page, &mut Perfect).map(drop),
            Store::Translated(device) => device.swap_out(page),
        }
    }

    #[inline]
    pub(super) fn release(&mut self, page: PageId) {
        match self {
            Store::Direct(swap) => drop(swap.release(page)),
            Store::Translated(device) => device.release(page),
        }
    }

    /// The kernel's slot of a page, as a number within all areas.
    pub(super) fn slot_of(&self, page: PageId) -> Option<SlotId> {
        match self {
            Store::Direct(swap) => swap.slot_of(page),
            Store::Translated(device) => device.slot[page.index()].map(SlotId),
        }
    }

    /// Slots of the kernel.
    pub(super) fn slots(&self) -> u32 {
        match self {
            Store::Direct(swap) => swap.block_count() as u32 * swap.slots_per_block(),
            Store::Translated(device) => device.page.len() as u32,
        }
    }

    pub(super) fn page_in(&self, slot: SlotId) -> Option<PageId> {
        match self {
            Store::Direct(swap) => swap.page_in(slot),
            Store::Translated(device) => *device.page.get(slot.index())?,
        }
    }
}

impl Translated {
    /// A page that has a slot is written into it again, as the kernel does.
    fn swap_out(&mut self, page: PageId) -> Result<(), Full> {
        let known = self.slot[page.index()];
        let slot = known.or_else(|| self.map.allocate()).ok_or(Full)?;
        if let Err(full) = self.swap.swap_out(PageId(slot), &mut Perfect) {
            if known.is_none() {
                self.map.release(slot);
            }
            return Err(full);
        }
        self.slot[page.index()] = Some(slot);
        self.page[slot as usize] = Some(page);
        Ok(())
    }

    fn release(&mut self, page: PageId) {
        let Some(slot) = self.slot[page.index()].take() else { return };
        self.page[slot as usize] = None;
        self.map.release(slot);
        if self.discard {
            self.swap.release(PageId(slot));
        }
    }
}
