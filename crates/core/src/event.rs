//! What the machine tells the engine.

use crate::ids::{BlockId, PageId, SlotId, TaskId, Ticket};
use crate::slots::Backed;

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
    /// The copy of a page to this slot of the swap area. Told only when it failed.
    Copy {
        /// The page.
        page: PageId,
        /// Where it was to go.
        to: SlotId,
    },
    /// The erase of this block of the swap area. Told only when it failed.
    Erase(BlockId),
}

/// What happened. The engine is told of faults and of the ends of what it asked for; it never sees a hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// `task` touched `page` and the page table did not let it. The task stands still until `Command::Resume` or `Command::Halt`.
    Fault {
        /// The task that stands still.
        task: TaskId,
        /// The page it touched.
        page: PageId,
        /// What it wanted of it.
        access: Access,
    },
    /// The load with this ticket is in its buffer.
    Loaded {
        /// The ticket of the `Command::Load`.
        ticket: Ticket,
    },
    /// The page's bytes are safe in the slot that `Command::Write` named. A machine that places pages itself may say so after
    /// `Command::Compress`, too: it has found a place of its own, such as the nowhere of zeros.
    Written {
        /// The page of the `Command::Write`.
        page: PageId,
    },
    /// The device could not do it. The machine still has the bytes of a failed write or copy.
    Failed {
        /// What failed.
        transfer: Transfer,
    },
    /// Somebody says that the page will be wanted soon. Nobody stands still for it; if it can be loaded now it is.
    WillNeed {
        /// The page.
        page: PageId,
    },
    /// The page must stay in RAM from now on. It must be mapped, in a frame or held in a buffer. Nests. The machine sees to it that enough frames stay
    /// unpinned: one for each load that can be in flight.
    Pinned {
        /// The page.
        page: PageId,
    },
    /// Undoes one `Pinned`.
    Unpinned {
        /// The page.
        page: PageId,
    },
    /// The page is this task's. Once, before its first fault, and only if the engine was given slots.
    Owned {
        /// The task.
        task: TaskId,
        /// The page.
        page: PageId,
        /// What it is a copy of.
        backed: Backed,
    },
    /// The task is the one that its user looks at from now on. Only if the engine was given slots.
    Foreground {
        /// The task.
        task: TaskId,
    },
    /// The page, mapped in its slot, has been read there more often than it may, as the machine counts: it is worth a copy. Nobody stands
    /// still for it; if it can be copied now it is.
    ReadOften {
        /// The page.
        page: PageId,
    },
    /// A fork: `child` has the bytes of `page`, which lies in a slot, and shares the slot until either is written. What lies in a frame
    /// the machine copies or shares by itself.
    Forked {
        /// The parent's page.
        page: PageId,
        /// The child's, owned and never touched.
        child: PageId,
    },
    /// The page's bytes, which the machine has kept since `Command::Compress`, take so many compressed. A machine that does not want to
    /// compress a page says the size of the page.
    Compressed {
        /// The page.
        page: PageId,
        /// Bytes, at least 1.
        size: u32,
    },
    /// Another task runs from now on: a slice begins in the policy's recency order.
    Slice,
    /// Nobody wants the page's bytes any more (unmapped, or its last task ended). The page must not be in flight.
    Released {
        /// The page.
        page: PageId,
    },
}
