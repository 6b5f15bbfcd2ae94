//! What the engine tells the machine. The order of commands is their meaning.

use crate::ids::{BlockId, BufferId, FrameId, PageId, PoolId, SlotId, TaskId, Ticket};
use crate::place::Place;
use crate::units::Walk;

/// The stages of a page fault, as the SWL paper names them (section 3.1 and equations 1 and 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Save registers, find the page's slot.
    PreProcess,
    /// Find a free frame, or a victim and evict it.
    GetFreeframe,
    /// Device array to stopover buffer; the device does it.
    LoadStopover,
    /// Stopover buffer to frame; the processor does it.
    TransHostMem,
    /// Page table, TLB, and the policy's lists for the new page.
    UpdateMMU,
    /// Restore registers.
    PostProcess,
}

impl Stage {
    /// All six, in the order of the sequential handler.
    pub const ALL: [Stage; 6] = [
        Stage::PreProcess,
        Stage::GetFreeframe,
        Stage::LoadStopover,
        Stage::TransHostMem,
        Stage::UpdateMMU,
        Stage::PostProcess,
    ];
}

/// The work a stage took, in counts that do not depend on the machine. A simulator prices it, a live machine measures instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Frames examined in the search for a victim.
    pub walk: Walk,
    /// Pages moved to the invalid list now although a false fault before had made it necessary (PA-FIFO-SC).
    pub delayed_downgrades: u32,
    /// The stage belongs to a false fault: the page was in RAM.
    pub false_fault: bool,
}

/// An order to the machine, which carries it out at once and answers nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// A stage of a fault has been gone through; everything issued since the last such mark belongs to it.
    Stage {
        /// Which.
        stage: Stage,
        /// What it took.
        work: Work,
    },
    /// Start to load the page from its slot into a buffer; `Event::Loaded` or `Event::Failed` comes later.
    Load {
        /// The number under which the end is reported.
        ticket: Ticket,
        /// The page.
        page: PageId,
        /// Where it lies, unless the machine places pages itself (`Caps::places`).
        from: SlotId,
        /// Where it shall go.
        into: BufferId,
    },
    /// Copy the loaded page from the buffer into the frame. It may be mapped in the buffer, read-only, and stays so until `Map`.
    Move {
        /// The page.
        page: PageId,
        /// The buffer it was loaded into.
        from: BufferId,
        /// The frame it shall live in.
        to: FrameId,
    },
    /// Let no write to the page succeed from now on. The dirty bit does not change after this.
    Protect {
        /// The page.
        page: PageId,
    },
    /// Take the page's bytes out of the frame and bring them to the slot. The frame may be reused when `issue` returns; the machine
    /// keeps the bytes until it reports `Event::Written`, and tries again when told to.
    Write {
        /// The page.
        page: PageId,
        /// Where its bytes are; `None`: the machine has them, from a write that failed, from `Compress`, or from `TakeOut`.
        from: Option<FrameId>,
        /// Where they shall go, unless the machine places pages itself (`Caps::places`).
        to: SlotId,
    },
    /// The page leaves RAM: take it out of the page table and the TLB if it is there. The frame may be reused when `issue` returns;
    /// what was dirty in it has been taken out by `Write`.
    Evict {
        /// The page.
        page: PageId,
        /// Its frame.
        from: FrameId,
    },
    /// Take the page out of the page table and the TLB, and keep it in its frame: the next touch faults. (A page that is released while
    /// it is held in a buffer is unmapped, too, and the buffer is free.)
    Unmap {
        /// The page.
        page: PageId,
    },
    /// Put the page into the page table; an entry that it has there is replaced.
    Map {
        /// The page.
        page: PageId,
        /// Where it lies.
        place: Place,
        /// Whether a write may go through without a fault.
        writable: bool,
        /// The reference bit it starts with.
        referenced: bool,
    },
    /// Let the task repeat the access that faulted.
    Resume {
        /// The task.
        task: TaskId,
    },
    /// Copy a page from one slot of the swap area to another, after all loads and writes issued before. Its end is not reported; if it
    /// failed `Event::Failed` says so, before the end of anything that was issued later. The machine then still has the bytes, and refuses
    /// loads from `to` until something else is brought there. Only if the engine was given a swap area.
    CopySlot {
        /// The page.
        page: PageId,
        /// Where its bytes are; `None`: try again with the bytes that the machine has kept.
        from: Option<SlotId>,
        /// Where they shall go.
        to: SlotId,
    },
    /// Erase a block of the swap area, after everything issued before. As `CopySlot`, only a failure is reported.
    EraseBlock {
        /// The block.
        block: BlockId,
    },
    /// Take the page's bytes out of the frame, compress them, and keep both forms; `Event::Compressed` comes later. The frame may be reused
    /// when `issue` returns. Only if the engine was given a tier, as the next six.
    Compress {
        /// The page.
        page: PageId,
        /// Its frame.
        from: FrameId,
        /// Its slot has older bytes.
        dirty: bool,
    },
    /// Put the compressed page into the pool. Its bytes are nowhere else to be kept.
    Store {
        /// The page.
        page: PageId,
        /// Where.
        at: PoolId,
        /// Its bytes, as `Event::Compressed` told.
        size: u32,
    },
    /// Drop the bytes that the machine has kept since `Compress`: the page's slot has the same bytes, or the page was released.
    Forget {
        /// The page.
        page: PageId,
    },
    /// Move a compressed page within the pool. The two places may overlap.
    Shift {
        /// The page.
        page: PageId,
        /// Where it was.
        from: PoolId,
        /// Where it is from now on.
        to: PoolId,
        /// Its bytes.
        size: u32,
    },
    /// Decompress the page into a buffer; its place in the pool may be reused when `issue` returns. `Event::Loaded` comes later.
    Unpack {
        /// The number under which the end is reported.
        ticket: Ticket,
        /// The page.
        page: PageId,
        /// Where it lies in the pool.
        at: PoolId,
        /// Its bytes there.
        size: u32,
        /// Where it shall go.
        into: BufferId,
    },
    /// Take the page out of the pool and keep its bytes: a `Write` of them follows. Its place may be reused when `issue` returns.
    TakeOut {
        /// The page.
        page: PageId,
        /// Where it lies in the pool.
        at: PoolId,
        /// Its bytes there.
        size: u32,
    },
    /// The RAM of a frame is a part of the pool from now on, or is a frame again.
    Lend {
        /// The frame.
        frame: FrameId,
        /// Which page-sized part of the pool, from its beginning.
        part: u32,
        /// Whether the pool has it.
        lent: bool,
    },
    /// Memory is short: end the task. Its anonymous pages are taken out by the commands that follow; if it is begun anew the
    /// machine loads zeros for them. Only if the engine was given slots.
    Kill {
        /// The task.
        task: TaskId,
    },
    /// The page cannot be had: stop the task with a message. It must never read garbage.
    Halt {
        /// The task.
        task: TaskId,
        /// The page that is lost.
        page: PageId,
    },
}
