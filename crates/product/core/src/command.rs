//! What the engine tells the machine. The order of commands is their meaning.

use crate::ids::{BlockId, BufferId, FrameId, PageId, SlotId, TaskId, Ticket};
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

/// The work that a stage took, in counts that do not depend on the machine. A simulator prices the work; a live
/// machine measures it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Frames examined in the search for a victim.
    pub walk: Walk,
    /// Downgrades done now that an earlier false fault had made necessary (PA-FIFO-SC).
    pub delayed_downgrades: u32,
    /// The stage belongs to a false fault: the page was in RAM.
    pub false_fault: bool,
}

/// An order to the machine. The machine carries it out at once and returns nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// End of a stage of a fault. All commands since the last such mark belong to this stage.
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
        /// The slot that holds it, unless the machine places pages itself (`Caps::places`).
        from: SlotId,
        /// The buffer that it is loaded into.
        into: BufferId,
    },
    /// Copy the loaded page from the buffer into the frame. The page may be mapped in the buffer, read-only; that
    /// mapping stays until `Map`.
    Move {
        /// The page.
        page: PageId,
        /// The buffer it was loaded into.
        from: BufferId,
        /// The frame it shall live in.
        to: FrameId,
    },
    /// Let no further write to the page succeed. The dirty bit does not change after this.
    Protect {
        /// The page.
        page: PageId,
    },
    /// Take the page's bytes out of the frame and write them to the slot. The frame may be reused when `issue`
    /// returns. The machine keeps the bytes until it reports `Event::Written`, and repeats the write on command.
    Write {
        /// The page.
        page: PageId,
        /// The frame with its bytes. `None`: the machine has kept the bytes of a failed write.
        from: Option<FrameId>,
        /// The slot that they are written to, unless the machine places pages itself (`Caps::places`).
        to: SlotId,
    },
    /// The page leaves RAM. Remove it from the page table and the TLB if it is there. The frame may be reused when
    /// `issue` returns; a `Write` before this command has taken its dirty bytes out.
    Evict {
        /// The page.
        page: PageId,
        /// Its frame.
        from: FrameId,
    },
    /// Remove the page from the page table and the TLB, and keep it in its frame: the next touch faults. A page that
    /// is released while a buffer holds it is unmapped by this command, too; the buffer is then free.
    Unmap {
        /// The page.
        page: PageId,
    },
    /// Put the page into the page table; an entry that it has there is replaced.
    Map {
        /// The page.
        page: PageId,
        /// Where it is.
        place: Place,
        /// Whether a write may go through without a fault.
        writable: bool,
        /// The reference bit it starts with.
        referenced: bool,
    },
    /// Put a page of zeros into the page table, writable and with a clear reference bit.
    Zero {
        /// The page, which was never touched.
        page: PageId,
        /// Where it is.
        frame: FrameId,
    },
    /// Let the task repeat the access that faulted.
    Resume {
        /// The task.
        task: TaskId,
    },
    /// Copy a page from one slot of the swap area to another, after all loads and writes issued before. The end of a
    /// copy is not reported. A failed copy is reported with `Event::Failed`, before the end of any later command. The
    /// machine then still has the bytes, and refuses loads from `to` until something else is written there. Issued
    /// only if the engine has a swap area.
    CopySlot {
        /// The page.
        page: PageId,
        /// The slot with its bytes; `None`: repeat the copy with the bytes that the machine has kept.
        from: Option<SlotId>,
        /// The slot that they are copied to.
        to: SlotId,
    },
    /// Erase a block of the swap area, after all commands issued before. As with `CopySlot`, only a failure is
    /// reported.
    EraseBlock {
        /// The block.
        block: BlockId,
    },
    /// Memory is short: end the task. The commands that follow remove its anonymous pages. If the task is started
    /// again, the machine loads zeros for them. Issued only if the engine has slots that are rewritten in place.
    Kill {
        /// The task.
        task: TaskId,
    },
    /// The page is lost: stop the task with a message. The task must never read garbage.
    Halt {
        /// The task.
        task: TaskId,
        /// The page that is lost.
        page: PageId,
    },
}
