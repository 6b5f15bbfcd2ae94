//! Pages on the chip: the operations of a load, a write, a copy or an erase, and the time that the emulator leaves out.
//!
//! ```text
//! IMAGE  home slots, page after page  program, then data as it is before the first write: zeros
//! SWAP   slots of the swap area       a slot is one chip page or more, so each chip page is programmed once per erase
//! ```
//!
//! Or the slots are in byte-addressable memory (DR.Swap): `move_to_nvm` copies the chip's there, and each slot has an
//! address that a page table can point at. A load and a write are copies then, and take what the processor takes.
//!
//! A load runs in parallel with the processor; a second one waits for the end of the first. Writes, copies and erases
//! are carried out at once, after the loads in flight. A page that is being evicted is in the half of a DataRAM that
//! buffers of 1 KiB leave free.
//!
//! QEMU's chip is ready as soon as the command is written. The busy time of each operation is modelled from the sheet:
//! `wait` returns when this time has passed since the start of the operation. So work of the processor in this time is
//! hidden, as on the board.

use alloc::collections::VecDeque;

use coldframe_core::{BlockId, BufferId, Event, PageId, Ps, SlotId, Ticket, Transfer};

use crate::chip::{Chip, Operation, BLOCK_SECTORS, CHIP_PAGE, IMAGE, SECTOR};
use crate::platform::{self, Clock};
use crate::{io, mmu};

/// Array to DataRAM, one chip page. The sheet has no shorter time for a part of a page (SWL, LCTES 2007, section 2: 30
/// us).
const LOAD: u64 = platform::ticks(Ps(30_000_000));

/// One block (SWL footnote 2: 2 ms). The papers and the sheet give no program time, so a program takes the emulator's
/// time: none.
const ERASE: u64 = platform::ticks(Ps(2_000_000_000));

/// The first sector of the swap area, far after any image.
const SWAP: u32 = IMAGE + 64 * BLOCK_SECTORS;
/// Sectors of a slot of the swap area.
const SLOT_SECTORS: u32 = CHIP_PAGE / SECTOR;
/// Slots of a block.
pub const SLOTS_PER_BLOCK: u32 = BLOCK_SECTORS / SLOT_SECTORS;
/// The DataRAM for pages that are being evicted, and the sector in it.
const STAGING: (u32, u32) = (1, 2);

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

/// The chip, with one page load at a time and one that waits for it.
pub struct Device {
    chip: Chip,
    page: u32,
    /// Home slots. The slots of the swap area have the numbers after them.
    homes: u32,
    /// The slots are in byte-addressable memory.
    nvm: bool,
    load: Option<Load>,
    queued: Option<Load>,
    /// Ends that the engine has not been told, the oldest first; at most two loads and the writes of one fault.
    ended: VecDeque<Event>,
    /// Ticks that the processor has waited.
    pub waited: u64,
}

/// Ends of one fault: two loads, and a write for each frame that they take, which are two at most.
const ENDS: usize = 6;

impl Device {
    /// A device for this many pages of this size.
    pub fn new(page: u32, pages: u32) -> Device {
        Device {
            chip: Chip::new(),
            page,
            homes: pages,
            nvm: false,
            load: None,
            queued: None,
            ended: VecDeque::with_capacity(ENDS),
            waited: 0,
        }
    }

    /// Starts a load, or lets it wait for the one that is under way.
    ///
    /// # Panics
    /// If another waits: the engine has a fault and a prefetch.
    pub fn load(&mut self, ticket: Ticket, slot: SlotId, buffer: BufferId, clock: &mut Clock) {
        assert!(self.queued.is_none(), "three loads at a time");
        if self.nvm {
            io::copy(self.slot_address(slot), buffer_address(buffer), self.page);
            return self.ended.push_back(Event::Loaded { ticket });
        }
        let load = Load { ticket, slot, buffer, part: 0, ready_at: 0 };
        match self.load {
            None => self.start(load, clock),
            Some(_) => self.queued = Some(load),
        }
    }

    /// Copies the image to memory that stands for non-volatile memory, where the slots are from now on; the data behind
    /// it are zeros.
    ///
    /// # Panics
    /// If the chip does not load a page.
    pub fn move_to_nvm(&mut self, image: u32, pages: u32, clock: &mut Clock) {
        let buffer = BufferId(0);
        for slot in (0..image).map(SlotId) {
            self.load(Ticket(0), slot, buffer, clock);
            let end = self.wait(clock);
            assert!(matches!(end, Event::Loaded { .. }), "the chip does not load page {}", slot.0);
            io::copy(buffer_address(buffer), self.slot_address(slot), self.page);
        }
        let data = self.slot_address(SlotId(image))..self.slot_address(SlotId(pages));
        data.step_by(4).for_each(|at| io::write32(at, 0));
        (self.nvm, self.waited) = (true, 0);
    }

    /// Where a slot lies in byte-addressable memory.
    pub fn slot_address(&self, slot: SlotId) -> u32 {
        mmu::nvm() + slot.0 * self.page
    }

    /// Brings a page from its frame to a slot of the swap area.
    pub fn write(&mut self, page: PageId, frame: u32, to: SlotId, clock: &mut Clock) {
        if self.nvm {
            io::copy(frame, self.slot_address(to), self.page);
            return self.ended.push_back(Event::Written { page });
        }
        self.finish_loads(clock);
        io::copy(frame, Chip::data_ram(STAGING.0) + STAGING.1 * SECTOR, self.page);
        let to = self.swap_sector(to);
        let failed = self.operate(Operation::Program, to);
        self.ended.push_back(match failed {
            true => Event::Failed { transfer: Transfer::Write(page) },
            false => Event::Written { page },
        });
    }

    /// Copies a slot of the swap area to another; only a failure is reported.
    pub fn copy_slot(&mut self, page: PageId, from: SlotId, to: SlotId, clock: &mut Clock) {
        self.finish_loads(clock);
        let (from_sector, to_sector) = (self.swap_sector(from), self.swap_sector(to));
        let load_failed = self.operate(Operation::Load, from_sector);
        self.waited += until(clock.ticks() + LOAD, clock);
        if load_failed || self.operate(Operation::Program, to_sector) {
            self.ended.push_back(Event::Failed { transfer: Transfer::Copy { page, to } });
        }
    }

    /// Erases a block of the swap area; only a failure is reported.
    pub fn erase(&mut self, block: BlockId, clock: &mut Clock) {
        self.finish_loads(clock);
        let sector = SWAP + block.0 * BLOCK_SECTORS;
        self.chip.unlock(sector);
        let failed = self.operate(Operation::Erase, sector);
        self.waited += until(clock.ticks() + ERASE, clock);
        if failed {
            self.ended.push_back(Event::Failed { transfer: Transfer::Erase(block) });
        }
    }

    /// Erases a block before anything else is done.
    ///
    /// # Panics
    /// If the chip does not.
    pub fn erase_at_start(&mut self, block: BlockId, clock: &mut Clock) {
        self.erase(block, clock);
        assert!(self.ended.pop_front().is_none(), "the chip does not erase block {}", block.0);
    }

    /// An operation of the processor itself, on the page in the staging half. Returns whether it failed.
    fn operate(&mut self, operation: Operation, sector: u32) -> bool {
        self.chip.start(operation, sector, self.page / SECTOR, STAGING);
        while !self.chip.ready() {}
        self.chip.failed()
    }

    fn swap_sector(&self, slot: SlotId) -> u32 {
        assert!(
            slot.0 >= self.homes,
            "slot {} is a home slot, which cannot be programmed: the swap area is too small",
            slot.0
        );
        SWAP + (slot.0 - self.homes) * SLOT_SECTORS
    }

    fn sector(&self, slot: SlotId) -> u32 {
        if slot.0 < self.homes {
            IMAGE + slot.0 * self.page / SECTOR
        } else {
            self.swap_sector(slot)
        }
    }

    fn start(&mut self, load: Load, clock: &mut Clock) {
        let bytes = self.page.min(CHIP_PAGE);
        let sector = self.sector(load.slot) + load.part * CHIP_PAGE / SECTOR;
        self.chip.start(Operation::Load, sector, bytes / SECTOR, (load.buffer.0 + load.part, 0));
        self.load = Some(Load { ready_at: clock.ticks() + LOAD, ..load });
    }

    /// The oldest end that the engine has not been told, if there is one already.
    pub fn ended(&mut self) -> Option<Event> {
        self.ended.pop_front()
    }

    /// The next end; waits for the load that is under way.
    ///
    /// # Panics
    /// If nothing is.
    pub fn wait(&mut self, clock: &mut Clock) -> Event {
        loop {
            if let Some(end) = self.ended() {
                return end;
            }
            assert!(self.load.is_some(), "a task that stands still waits for the chip");
            self.finish_part(clock);
        }
    }

    /// When the operation of the load under way ends.
    pub fn ready_at(&self) -> Option<u64> {
        self.load.map(|load| load.ready_at)
    }

    /// Takes up what the chip has loaded by now.
    pub fn poll(&mut self, clock: &mut Clock) {
        while self.ready_at().is_some_and(|at| at <= clock.ticks()) {
            self.finish_part(clock);
        }
    }

    fn finish_loads(&mut self, clock: &mut Clock) {
        while self.load.is_some() {
            self.finish_part(clock);
        }
    }

    /// Waits for the operation of the load under way. The load's next one begins, or the load that waits.
    fn finish_part(&mut self, clock: &mut Clock) {
        let Some(load) = self.load.take() else { return };
        self.waited += until(load.ready_at, clock);
        while !self.chip.ready() {}
        if self.chip.failed() {
            self.ended.push_back(Event::Failed { transfer: Transfer::Load(load.ticket) });
        } else if (load.part + 1) * CHIP_PAGE < self.page {
            return self.start(Load { part: load.part + 1, ..load }, clock);
        } else {
            self.ended.push_back(Event::Loaded { ticket: load.ticket });
        }
        if let Some(next) = self.queued.take() {
            self.start(next, clock);
        }
    }
}

fn until(ticks: u64, clock: &mut Clock) -> u64 {
    let began = clock.ticks();
    while clock.ticks() < ticks {}
    ticks.saturating_sub(began)
}
