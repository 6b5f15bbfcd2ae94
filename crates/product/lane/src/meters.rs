//! What a driver may count besides the engine's own counts. A driver adds the meters that it wants; each hears of the
//! commands that concern it. No meter sees a hit.

use coldframe_core::{PageId, Place, Ps, Ticket};

use crate::in_slots::InSlots;
use crate::page_table::PageTable;
use crate::sources::Sources;
use crate::watch::Watch;
use crate::xip::XipMeter;

/// The meters of a machine.
pub struct Meters {
    /// Reads in buffers.
    pub xip: XipMeter,
    /// Reads in slots, if pages are read there.
    pub in_slots: Option<InSlots>,
    /// The outcome of prefetched pages, by task.
    pub watch: Option<Box<Watch>>,
    /// The sources of loads.
    pub sources: Option<Box<Sources>>,
    /// By slot of an area that is rewritten in place: how often it was written. Empty unless counted.
    pub slot_writes: Vec<u32>,
}

impl Meters {
    /// Reads in this many buffers, and nothing else.
    pub fn new(buffers: u32) -> Meters {
        Meters { xip: XipMeter::new(buffers), in_slots: None, watch: None, sources: None, slot_writes: Vec::new() }
    }

    /// References answered in slots.
    pub fn reads_in_slots(&self) -> u64 {
        self.in_slots.as_ref().map_or(0, |in_slots| in_slots.reads)
    }

    /// Extra time of references to slots.
    pub fn slot_reading(&self) -> Ps {
        self.in_slots.as_ref().map_or(Ps::ZERO, |in_slots| in_slots.longer)
    }

    /// Whether the page is read in its slot.
    pub fn is_in_slot(&self, page: PageId) -> bool {
        self.in_slots.as_ref().is_some_and(|in_slots| in_slots.has(page))
    }

    /// A page is loaded; `zeros`: no device has it.
    pub(crate) fn load(&mut self, page: PageId, zeros: bool) {
        if let Some(sources) = &mut self.sources {
            sources.load(page, zeros);
        }
    }

    /// The load of a page that has bytes is under way.
    pub(crate) fn load_begins(&mut self, page: PageId, ticket: Ticket) {
        if let Some(watch) = &mut self.watch {
            watch.load(page, ticket);
        }
    }

    /// A load has ended.
    pub(crate) fn load_ended(&mut self, ticket: Ticket) {
        if let Some(watch) = &mut self.watch {
            watch.came(ticket);
        }
    }

    /// A page is written to this slot of the swap area, or to its home slot.
    pub(crate) fn write(&mut self, page: PageId, slot: Option<usize>) {
        if let Some(sources) = &mut self.sources {
            sources.write(page);
        }
        if let Some(writes) = slot.and_then(|slot| self.slot_writes.get_mut(slot)) {
            *writes += 1;
        }
    }

    /// The page is mapped in this place.
    pub(crate) fn enters(&mut self, page: PageId, place: Place, table: &PageTable) {
        match place {
            Place::Frame(_) => {}
            Place::Buffer(_) => self.xip.enters(page, table),
            Place::Slot(_) => self.in_slots.as_mut().expect("the machine reads in slots").enters(page),
        }
    }

    /// The page has left its buffer or slot.
    pub(crate) fn leaves_place(&mut self, page: PageId, table: &PageTable) {
        self.xip.leaves(page, table);
        if let Some(in_slots) = &mut self.in_slots {
            in_slots.leaves(page);
        }
    }
}
