//! What the engine tells a machine with a compressed tier ([`crate::tier`]), as one command: `Command::Pool`.

use crate::ids::{BufferId, FrameId, PageId, PoolId, SlotId, Ticket};

/// An operation on the pool of compressed pages, or on a page on its way there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolOp {
    /// Take the page's bytes out of the frame, compress them, and keep both forms; `Event::Compressed` comes later.
    /// The frame may be reused when `issue` returns.
    Compress {
        /// The page.
        page: PageId,
        /// Its frame.
        from: FrameId,
        /// Its slot has older bytes.
        dirty: bool,
    },
    /// Put the compressed page into the pool. The machine need not keep any other copy of its bytes.
    Store {
        /// The page.
        page: PageId,
        /// Where.
        at: PoolId,
        /// Its size in bytes, as `Event::Compressed` reported it.
        size: u32,
    },
    /// Drop the bytes that the machine has kept since `Compress`: the page's slot has the same bytes, or the page was
    /// released.
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
    /// Decompress the page into a buffer; its place in the pool may be reused when `issue` returns. `Event::Loaded`
    /// comes later.
    Decompress {
        /// The number under which the end is reported.
        ticket: Ticket,
        /// The page.
        page: PageId,
        /// Its place in the pool.
        at: PoolId,
        /// Its size in the pool, in bytes.
        size: u32,
        /// The buffer that it is decompressed into.
        into: BufferId,
    },
    /// Take the page out of the pool and write its compressed bytes to a slot. Pages that one event takes out to the
    /// same slot lie there together; one write is enough for them. The place in the pool may be reused when `issue`
    /// returns. The machine keeps the bytes until it reports `Event::Written`, and repeats the write alone when told
    /// to (`Command::Write`).
    TakeOut {
        /// The page.
        page: PageId,
        /// Its place in the pool.
        at: PoolId,
        /// Its size in the pool, in bytes.
        size: u32,
        /// The slot. Such slots are numbered after the home slots.
        to: SlotId,
    },
    /// Put a compressed page into the pool that lies in the same slot as the page that has just been loaded. Its slot
    /// keeps the bytes, too. Issued before the `Command::Move` from the buffer.
    Keep {
        /// The page.
        page: PageId,
        /// The buffer of the loaded page.
        from: BufferId,
        /// Where.
        at: PoolId,
        /// Its compressed size in bytes.
        size: u32,
    },
    /// The RAM of a frame becomes a part of the pool, or a frame again.
    Lend {
        /// The frame.
        frame: FrameId,
        /// Which page-sized part of the pool, from its beginning.
        part: u32,
        /// True: the pool gets the frame. False: the frame comes back.
        lent: bool,
    },
}
