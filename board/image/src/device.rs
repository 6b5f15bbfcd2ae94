//! Page loads: the chip's operations that one takes, and the time that the emulator does not let pass.
//!
//! QEMU's chip is ready when the command has been written. The busy time of each operation is modelled from the sheet: `wait` returns when
//! that time has passed since the operation was started, so what the processor did meanwhile is hidden, as on the board.

use coldframe_core::{BufferId, Event, Ps, SlotId, Ticket};

use crate::chip::{Chip, Operation, CHIP_PAGE, IMAGE, SECTOR};
use crate::platform::{self, Clock};

/// Array to DataRAM, one chip page; the sheet knows no shorter time for a part of it (SWL, LCTES 2007, section 2: 30 us).
const LOAD: u64 = platform::ticks(Ps(30_000_000));

/// Buffers of one page: a DataRAM each, or both together for a page larger than one.
pub const fn buffers(page: u32) -> u32 {
    if page > CHIP_PAGE {
        1
    } else {
        2
    }
}

/// Where a buffer lies.
pub fn buffer_address(buffer: BufferId) -> u32 {
    Chip::data_ram(buffer.0)
}

/// A load under way: the part of it that the chip is at.
#[derive(Clone, Copy)]
struct Load {
    ticket: Ticket,
    slot: SlotId,
    buffer: BufferId,
    part: u32,
    ready_at: u64,
}

/// The chip, with one page load at a time.
pub struct Device {
    chip: Chip,
    page: u32,
    load: Option<Load>,
    /// Ticks that the processor has waited.
    pub waited: u64,
}

impl Device {
    /// For pages of so many bytes.
    pub fn new(page: u32) -> Device {
        Device { chip: Chip::new(), page, load: None, waited: 0 }
    }

    /// Starts a load.
    ///
    /// # Panics
    /// If another is under way: the engine has one task and one fault.
    pub fn load(&mut self, ticket: Ticket, slot: SlotId, buffer: BufferId, clock: &mut Clock) {
        assert!(self.load.is_none(), "two loads at a time");
        self.start(Load { ticket, slot, buffer, part: 0, ready_at: 0 }, clock);
    }

    fn start(&mut self, load: Load, clock: &mut Clock) {
        let bytes = self.page.min(CHIP_PAGE);
        let sector = IMAGE + (load.slot.0 * self.page + load.part * CHIP_PAGE) / SECTOR;
        self.chip.start(Operation::Load, sector, bytes / SECTOR, load.buffer.0 + load.part);
        self.load = Some(Load { ready_at: clock.ticks() + LOAD, ..load });
    }

    /// Waits for the load that is under way, and says how it ended.
    ///
    /// # Panics
    /// If none is.
    pub fn wait(&mut self, clock: &mut Clock) -> Event {
        loop {
            let load = self.load.take().expect("a load is under way");
            self.waited += until(load.ready_at, clock);
            while !self.chip.ready() {}
            if self.chip.failed() {
                return Event::Failed { transfer: coldframe_core::Transfer::Load(load.ticket) };
            }
            if (load.part + 1) * CHIP_PAGE >= self.page {
                return Event::Loaded { ticket: load.ticket };
            }
            self.start(Load { part: load.part + 1, ..load }, clock);
        }
    }
}

fn until(ticks: u64, clock: &mut Clock) -> u64 {
    let began = clock.ticks();
    while clock.ticks() < ticks {}
    ticks.saturating_sub(began)
}
