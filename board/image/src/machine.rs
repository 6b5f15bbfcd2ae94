//! The machine: the engine's commands, carried out on page tables and chip.

use core::cell::UnsafeCell;

use coldframe_core::{After, Command, Event, FrameId, Machine, PageId, Place};
use coldframe_journal::{Entry, Journal};

use crate::debug::File;
use crate::device::{buffer_address, Device};
use crate::mmu::{self, PageTable};
use crate::platform::{self, Clock};
use crate::space::Space;
use crate::{io, quirks};

/// RAM for frames, in bytes.
const FRAMES: usize = 512 << 10;

#[repr(C, align(4096))]
struct Frames(UnsafeCell<[u8; FRAMES]>);
// SAFETY: reached through the page tables and `io` only; one processor.
unsafe impl Sync for Frames {}
static FRAMES_MEMORY: Frames = Frames(UnsafeCell::new([0; FRAMES]));

/// Stops the board if there is no RAM for this many frames.
///
/// # Panics
/// If `frames` is 0, or if there is less RAM; the panic stops the board.
pub fn check_frames(frames: u32, page: u32) {
    let room = FRAMES as u32 / page;
    assert!((1..=room).contains(&frames), "frames={frames}; give 1 to {room}");
}

/// The board.
pub struct Board {
    pub clock: Clock,
    pub device: Device,
    /// Which address is which page.
    pub space: Space,
    table: PageTable,
    journal: Option<(Journal, File)>,
    resumed: bool,
}

impl Board {
    /// A board with nothing mapped.
    pub fn new(table: PageTable, space: Space, clock: Clock, journal: Option<(Journal, File)>) -> Board {
        let device = Device::new(table.page(), space.pages());
        Board { clock, device, space, table, journal, resumed: false }
    }

    /// Bytes of a page.
    pub fn page(&self) -> u32 {
        self.table.page()
    }

    /// Whether the task may continue; a fault that begins revokes this.
    pub fn take_resumed(&mut self) -> bool {
        core::mem::take(&mut self.resumed)
    }

    /// Notes an event that is about to be delivered.
    pub fn note(&mut self, event: Event) {
        let now = if self.journal.is_some() { platform::time(self.clock.ticks()).0 } else { 0 };
        self.write(&Entry::Event { now, event });
    }

    /// Sends what the journal has gathered to the host.
    pub fn flush(&mut self) {
        if let Some((journal, file)) = &mut self.journal {
            journal.drain_with(|bytes| file.write(bytes));
        }
    }

    fn write(&mut self, entry: &Entry) {
        if let Some((journal, _)) = &mut self.journal {
            journal.write(entry);
        }
    }

    fn address(&self, page: PageId) -> u32 {
        self.space.address(page)
    }

    fn frame(&self, frame: FrameId) -> u32 {
        FRAMES_MEMORY.0.get() as u32 + frame.0 * self.page()
    }

    fn map(&mut self, page: PageId, place: Place, writable: bool) {
        let to = match place {
            Place::Frame(frame) => self.frame(frame),
            Place::Buffer(buffer) => {
                quirks::drop_stale_translations(buffer_address(buffer), self.page());
                buffer_address(buffer)
            }
            Place::Slot(slot) => self.device.slot_address(slot),
        };
        self.table.map(self.address(page), to, writable);
        mmu::invalidate_instructions();
    }
}

impl Machine for Board {
    fn issue(&mut self, command: Command) {
        self.write(&Entry::Command(command));
        match command {
            // Measured, not priced.
            Command::Stage { .. } => {}
            Command::Load { ticket, from, into, .. } => self.device.load(ticket, from, into, &mut self.clock),
            Command::Move { from, to, .. } => io::copy(buffer_address(from), self.frame(to), self.page()),
            Command::Protect { page } => self.table.protect(self.address(page)),
            Command::Write { page, from: Some(frame), to } => {
                self.device.write(page, self.frame(frame), to, &mut self.clock);
            }
            // The emulated chip refuses nothing; a board whose chip does would keep the bytes.
            Command::Write { page, from: None, .. } | Command::CopySlot { page, from: None, .. } => {
                panic!("the chip refused to program page {}", page.0)
            }
            Command::CopySlot { page, from: Some(from), to } => {
                self.device.copy_slot(page, from, to, &mut self.clock);
            }
            Command::EraseBlock { block } => self.device.erase(block, &mut self.clock),
            Command::Evict { page, .. } | Command::Unmap { page } => self.table.unmap(self.address(page)),
            Command::Map { page, place, writable, .. } => self.map(page, place, writable),
            Command::Zero { page, .. } => unreachable!("page {} comes in beside no other", page.0),
            Command::Resume { .. } => self.resumed = true,
            Command::Kill { task } => unreachable!("task {}: only an engine with slots kills", task.0),
            Command::Halt { page, .. } => panic!("page {} cannot be had from the chip", page.0),
        }
    }

    fn referenced(&mut self, page: PageId, _: After) -> bool {
        unreachable!("page {}: ARMv5 has no reference bits", page.0)
    }

    fn dirty(&mut self, page: PageId) -> bool {
        unreachable!("page {}: ARMv5 has no dirty bits", page.0)
    }
}
