//! The place of copies: an area that sees its erase blocks, or a device whose translation layer hides them.
//!
//! With a translation layer, the kernel's slots are numbers of the device's pages (`Layout::Linux` for the kernel is
//! then a [`SlotMap`]), and the device keeps a log of its own below. A released slot stays valid for the device until
//! it is written again, unless the kernel tells the device of it (discard).

use coldframe_core::swap::linux::{SlotMap, CLUSTER};
use coldframe_core::swap::{Full, Perfect, Swap, SwapAreas, SwapError};
use coldframe_core::{Event, PageId, Ps, SlotId};
use coldframe_journal::{Entry, Journal, Noted};

use super::SwapConfig;
use coldframe_lane::faulty::{Failures, Faulty};

/// The part of its blocks that a translation layer keeps for itself: 1 GB of flash (2^30 bytes) sold as 10^9 leaves
/// 7.4 %, rounded down.
const SPARE_PERCENT: u64 = 7;

/// An area, and the journal of its events and commands, if there is one. The slots of a device behind a translation
/// layer are its pages.
struct Device {
    swap: Swap,
    faulty: Option<Box<Faulty>>,
    journal: Option<Journal>,
    now: Ps,
}

impl Device {
    fn new(swap: Swap, failures: Option<Failures>) -> Device {
        Device { swap, faulty: failures.map(|failures| Box::new(Faulty::new(failures))), journal: None, now: Ps::ZERO }
    }

    #[inline]
    fn swap_out(&mut self, page: PageId) -> Result<(), Full> {
        let now = self.now.0;
        let done = match (&mut self.faulty, &mut self.journal) {
            (None, None) => self.swap.swap_out(page, &mut Perfect),
            (Some(faulty), None) => self.swap.swap_out(page, &mut **faulty),
            (None, Some(journal)) => {
                journal.out(page, now);
                self.swap.swap_out(page, &mut Noted { flash: &mut Perfect, journal, now })
            }
            (Some(faulty), Some(journal)) => {
                journal.out(page, now);
                self.swap.swap_out(page, &mut Noted { flash: &mut **faulty, journal, now })
            }
        };
        done.map(drop)
    }

    #[inline]
    fn release(&mut self, page: PageId) {
        if let Some(journal) = &mut self.journal {
            journal.write(&Entry::Event { now: self.now.0, event: Event::Released { page } });
        }
        self.swap.release(page);
    }
}

pub(super) struct Store {
    device: Device,
    /// `None`: the kernel's slots are those of the area.
    translation: Option<Translation>,
}

/// The kernel's slots on a device that hides its own.
struct Translation {
    map: SlotMap,
    /// The kernel's slot of each page, and the page in each slot.
    slot: Vec<Option<u32>>,
    page: Vec<Option<PageId>>,
    discard: bool,
}

impl Store {
    pub(super) fn new(config: &SwapConfig, pages: usize) -> Result<Store, SwapError> {
        if !config.translation {
            let swap = Swap::new(pages, config.slots_per_block, &config.areas)?;
            return Ok(Store { device: Device::new(swap, config.failures), translation: None });
        }
        // The blocks that are kept back must be at least those that a collection needs.
        let usable = |a: &coldframe_core::swap::AreaConfig| {
            let spare = (u64::from(a.blocks) * SPARE_PERCENT).div_ceil(100) as u32;
            a.blocks.saturating_sub(spare.max(a.stop + 2))
        };
        let slots = config.areas.iter().map(usable).sum::<u32>() * config.slots_per_block;
        let swap = Swap::new(slots.max(1) as usize, config.slots_per_block, &config.areas)?;
        let map = SlotMap::new(slots, CLUSTER);
        let (slot, page) = (vec![None; pages], vec![None; slots as usize]);
        let translation = Translation { map, slot, page, discard: config.discard };
        Ok(Store { device: Device::new(swap, config.failures), translation: Some(translation) })
    }

    pub(super) fn keep_journal(&mut self, config: &SwapConfig) {
        let areas = SwapAreas { slots_per_block: config.slots_per_block, areas: config.areas.clone() };
        self.device.journal = Some(Journal::of_area(self.device.swap.pages(), &areas));
    }

    pub(super) fn drain_journal(&mut self) -> Vec<u8> {
        self.device.journal.as_mut().map(Journal::drain).unwrap_or_default()
    }

    /// Pages of this process leave RAM now.
    #[inline]
    pub(super) fn log_of(&mut self, process: u32) {
        self.device.swap.log_of(process);
    }

    #[inline]
    pub(super) fn set_time(&mut self, now: Ps) {
        self.device.now = now;
    }

    pub(super) fn swap(&self) -> &Swap {
        &self.device.swap
    }

    #[inline]
    pub(super) fn holds(&self, page: PageId) -> bool {
        self.slot_of(page).is_some()
    }

    /// A page that has a slot is written to that slot again, as the kernel does.
    #[inline]
    pub(super) fn swap_out(&mut self, page: PageId) -> Result<(), Full> {
        let Some(kernel) = &mut self.translation else { return self.device.swap_out(page) };
        let known = kernel.slot[page.index()];
        let slot = known.or_else(|| kernel.map.allocate()).ok_or(Full)?;
        if let Err(full) = self.device.swap_out(PageId(slot)) {
            if known.is_none() {
                kernel.map.release(slot);
            }
            return Err(full);
        }
        kernel.slot[page.index()] = Some(slot);
        kernel.page[slot as usize] = Some(page);
        Ok(())
    }

    #[inline]
    pub(super) fn release(&mut self, page: PageId) {
        let Some(kernel) = &mut self.translation else { return self.device.release(page) };
        let Some(slot) = kernel.slot[page.index()].take() else { return };
        kernel.page[slot as usize] = None;
        kernel.map.release(slot);
        if kernel.discard {
            self.device.release(PageId(slot));
        }
    }

    /// The kernel's slot of a page, as a number within all areas.
    #[inline]
    pub(super) fn slot_of(&self, page: PageId) -> Option<SlotId> {
        match &self.translation {
            None => self.device.swap.slot_of(page),
            Some(kernel) => kernel.slot[page.index()].map(SlotId),
        }
    }

    pub(super) fn page_in(&self, slot: SlotId) -> Option<PageId> {
        match &self.translation {
            None => self.device.swap.page_in(slot),
            Some(kernel) => *kernel.page.get(slot.index())?,
        }
    }
}
