//! What the machine tells the engine.

use crate::ids::{BlockId, PageId, SlotId, TaskId, Ticket};
use crate::swap::slots::Backed;

/// How a task touched a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// An instruction fetch or a load.
    Read,
    /// A store.
    Write,
}

/// A transfer between device and RAM that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// The load with this ticket.
    Load(Ticket),
    /// The write of this page; a page has at most one.
    Write(PageId),
    /// The copy of this page to this slot of the swap area. Reported only if it failed.
    Copy {
        /// The page.
        page: PageId,
        /// The slot that it was copied to.
        to: SlotId,
    },
    /// The erase of this block of the swap area. Reported only if it failed.
    Erase(BlockId),
}

/// What happened. The machine reports faults and the ends of transfers; the engine never sees a hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// `task` touched `page`, and the page table did not allow it. The task waits until `Command::Resume` or
    /// `Command::Halt`.
    Fault {
        /// The task that waits.
        task: TaskId,
        /// The page it touched.
        page: PageId,
        /// Whether it reads or writes.
        access: Access,
    },
    /// The load with this ticket is in its buffer.
    Loaded {
        /// The ticket of the `Command::Load`.
        ticket: Ticket,
    },
    /// The page's bytes are safe in the slot that `Command::Write` named.
    Written {
        /// The page of the `Command::Write`.
        page: PageId,
    },
    /// The device refused the transfer. The machine still has the bytes of a failed write or copy.
    Failed {
        /// What failed.
        transfer: Transfer,
    },
    /// A prefetch hint: the page will be needed soon. No task waits for it. The page is loaded if that is possible
    /// now; otherwise the hint is dropped.
    WillNeed {
        /// The page.
        page: PageId,
    },
    /// The page, never touched, is beside one that a task has just touched for the first time
    /// ([`Engine::block_around`](crate::Engine::block_around)), and may come in with it. Sent only by a machine that
    /// answers [`Machine::filled`](crate::Machine::filled), and not if the engine has slots that are rewritten in
    /// place.
    FirstTouchNeighbour {
        /// The page.
        page: PageId,
    },
    /// The page must stay in RAM from now on. It must be mapped, in a frame or held in a buffer. Pins nest. The
    /// machine must leave enough frames unpinned: one for each load that can be in flight.
    Pinned {
        /// The page.
        page: PageId,
    },
    /// Undoes one `Pinned`.
    Unpinned {
        /// The page.
        page: PageId,
    },
    /// The page belongs to this task. Sent once for each page, before its first fault, and only if the engine has
    /// slots that are rewritten in place, or an area on flash with several logs.
    Owned {
        /// The task.
        task: TaskId,
        /// The page.
        page: PageId,
        /// Anonymous memory, or a page of a file.
        backed: Backed,
    },
    /// The task is in the foreground from now on. Sent only if the engine has slots that are rewritten in place.
    Foreground {
        /// The task.
        task: TaskId,
    },
    /// The page, mapped in its slot, was read there more often than the machine's limit allows, so a copy in a frame
    /// pays. No task waits for it. The page is copied if that is possible now.
    ReadOften {
        /// The page.
        page: PageId,
    },
    /// The engine gives this many frames away: free ones first, then those of victims. From now on it has so many
    /// fewer. Enough must stay for all pins and all loads that can be in flight. Not if the engine has slots that are
    /// rewritten in place.
    Lend {
        /// How many.
        frames: u32,
    },
    /// So many frames that it has given away are the engine's again.
    Borrow {
        /// How many.
        frames: u32,
    },
    /// Another task runs from now on: a new slice begins in the policy's recency order.
    Slice,
    /// The page's bytes are no longer needed (unmapped, or its last task ended). The page must not be in flight.
    Released {
        /// The page.
        page: PageId,
    },
}
