//! The compressed tier on Linux. The thread that takes a page out also compresses it, with lz4. Compressed pages lie in
//! a mapping of ours, in RAM that is taken from the frames. The engine keeps the tables; this file moves the bytes.
//!
//! ```text
//!   no lock   zap, read back to the staging memory, hash, compress in place there
//!   lock      Event::Compressed ─► Store: copied to the pool            Decompress: into the load's buffer
//!             TakeOut: put into a slot with others that leave the pool; the slot is appended to the log
//!             Event::Loaded ─► Keep: copied to the pool from the slot that was loaded
//!   no lock   what came from the pool is hashed, and must be what left
//! ```
//! If a page's newest bytes are in the pool, or came from there, its slot is [`IN_POOL`]: the page has content, and
//! the log has none of it. A page whose slot in the log has the same bytes keeps that slot, and leaves the pool
//! without a write. Pages of zeros have no place, as without a
//! tier.
//!
//! The pool is plain private memory. So a forked child has its parent's pool, shared until written, and a copy of the
//! tables.

use std::ops::Range;

use coldframe_core::tier::{BIN_FRAMES, GRAIN};
use coldframe_core::{Event, PageId, PoolId, PoolOp, SlotId};
use coldframe_pager_plan::TIER_BATCH_MAX;

use crate::fault::machine::Linux;
use crate::fault::pager::{Decider, Inner};
use crate::page::pages::{Owner, Where};
use crate::stats::Stats;
use crate::sys;
use crate::sys::fatal;
use crate::task::{Load, Source, Todo, Victim};
use crate::tier::codec::{compress, decompress, unpack};
use crate::tier::packed::{self, Filling};
use crate::{LiveError, PAGE};

/// The slot of a page that has content, but none in the log.
pub const IN_POOL: u64 = 1 << 62;

const _: () = assert!(2 * (TIER_BATCH_MAX + 2 * BIN_FRAMES) <= crate::task::VICTIMS);

/// The mapping. Pages of it that are not lent are not in RAM.
#[derive(Debug)]
pub struct Pool {
    start: usize,
    len: usize,
}

impl Pool {
    /// A pool of `frames` frames; fails without address space.
    pub fn new(frames: usize) -> Result<Pool, LiveError> {
        if frames == 0 {
            return Ok(Pool { start: 0, len: 0 });
        }
        let bad = |error| LiveError::os("address space for compressed pages", error);
        let len = frames * PAGE;
        let start = sys::map_memory(len, None).map_err(bad)?;
        // A huge page would take RAM that is not lent.
        // SAFETY: our own new memory.
        let _ = unsafe { sys::advise(start..start + len, libc::MADV_NOHUGEPAGE) };
        Ok(Pool { start, len })
    }

    /// Where it lies.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.len
    }

    fn place(&self, at: PoolId, size: u32) -> usize {
        let place = at.index() * GRAIN;
        assert!(place + size as usize <= self.len, "the engine places pages within the pool");
        self.start + place
    }

    /// Stores the page's compressed bytes.
    pub fn store(&self, at: PoolId, size: u32, from: usize) {
        let to = self.place(at, size);
        // SAFETY: the engine has given the place to this page alone; the bytes are the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, size as usize) };
    }

    /// Copies the page's compressed bytes.
    fn copy_out(&self, at: PoolId, size: u32, into: usize) {
        // SAFETY: the place is the page's, and the caller has room for its bytes.
        unsafe { std::ptr::copy_nonoverlapping(self.place(at, size) as *const u8, into as *mut u8, size as usize) };
    }

    /// Moves a page.
    pub fn shift(&self, from: PoolId, to: PoolId, size: u32) {
        let (from, to) = (self.place(from, size), self.place(to, size));
        // SAFETY: as above; the two places may overlap.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, size as usize) };
    }

    /// Decompresses a page. Returns false if these are not the bytes of a page.
    pub fn decompress(&self, at: PoolId, size: u32, into: usize) -> bool {
        // SAFETY: the place is the page's, and the caller has a page for the result.
        unsafe { decompress(self.place(at, size), size, into) }
    }

    /// The last frame of a bin comes back: the memory of the whole bin goes back to the kernel.
    fn returned(&self, part: u32) {
        let (part, bin) = (part as usize, BIN_FRAMES);
        if part % bin != bin - 1 {
            return;
        }
        let end = self.start + (part + 1) * PAGE;
        // SAFETY: nothing is in these frames any more.
        if let Err(error) = unsafe { sys::drop_range(end - bin * PAGE..end) } {
            fatal::stop(format_args!("memory of compressed pages cannot be given back: {}", error.io()));
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: it is no longer in use.
            unsafe { sys::unmap_memory(self.start, self.len) };
        }
    }
}

/// A page that has left, and whose size is being reported.
#[derive(Clone, Copy, Debug)]
pub struct Compressed {
    pub page: usize,
    /// Its bytes, compressed if the size is less than a page's.
    pub from: usize,
    pub size: u32,
    pub sum: u128,
    /// The engine takes the page's slot as older.
    pub dirty: bool,
}

impl Linux<'_> {
    /// Command::Pool.
    pub(crate) fn pool(&mut self, op: PoolOp) {
        match op {
            PoolOp::Compress { page, dirty, .. } => self.side.compressing = Some((page.index(), dirty)),
            PoolOp::Store { page, at, size } => match self.todo.compressed {
                Some(compressed) if compressed.page == page.index() => {
                    self.pager.store_compressed(self.todo, &compressed, at, size)
                }
                _ => fatal::stop(format_args!("internal error: {op:?}, but the page is not at hand")),
            },
            PoolOp::Forget { page } => self.pager.forget_compressed(self.todo, page.index()),
            PoolOp::Shift { from, to, size, .. } => self.pager.pool.shift(from, to, size),
            PoolOp::Decompress { ticket, page, at, size, into } => {
                let (page, into) = (page.index(), self.side.buffers[into.index()]);
                self.pager.decompress(self.todo, Load::new(ticket, page, into), at, size);
            }
            PoolOp::TakeOut { page, at, size, to } => self.pager.take_out(self.todo, page.index(), (at, size), to),
            PoolOp::Keep { page, from, at, size } => {
                self.pager.keep(self.todo, page.index(), self.side.buffers[from.index()], (at, size));
            }
            PoolOp::Lend { part, lent, .. } => self.pager.lend(part, lent),
        }
    }
}

impl Inner {
    /// Hashes and compresses the pages staged for the pool.
    pub(crate) fn compress_staged<'a>(&self, task: usize, victims: impl Iterator<Item = &'a mut Victim>) {
        let task = self.tasks().get(task);
        for victim in victims {
            let page = task.staging + victim.staged * PAGE;
            // SAFETY: the staging memory and the table are this thread's.
            unsafe {
                victim.digest = match self.pages.slot(victim.page) {
                    // No thread could write to it.
                    Some(_) if !victim.write => self.pages.sum(victim.page),
                    _ => self.log.get().sum(page),
                };
                victim.size = compress(page, task.compressed(), task.table());
            }
        }
    }

    /// Reports the compressed size of each page. A page that is not kept goes to the log; a page of zeros needs no
    /// place.
    pub(crate) fn report_compressed(&self, decider: &mut Decider, todo: &mut Todo, victim: &Victim) {
        let Victim { page, staged, size, digest, write, .. } = *victim;
        let from = self.tasks().get(todo.task).staging + staged * PAGE;
        if digest == self.log.get().zero() {
            let old = self.pages.set_slot(page, None);
            self.log.get().forget(page, old);
            self.deliver(decider, todo, Event::Written { page: PageId::from(page) });
            return self.pages.release(page, Owner::task(todo.task), Where::Out);
        }
        let known = self.pages.slot(page).is_some_and(|slot| slot != IN_POOL) && self.pages.sum(page) == digest;
        todo.compressed = Some(Compressed { page, from, size, sum: digest, dirty: write && !known });
        Stats::add(&self.stats().writes_saved, u64::from(write && known));
        self.deliver(decider, todo, Event::Compressed { page: PageId::from(page), size, same: known });
        self.has_settled(todo, page);
    }

    /// The page that is being reported is out: other commands of the same event may use it.
    fn settle_compressed(&self, todo: &mut Todo, page: usize) {
        todo.compressed = None;
        self.pages.release(page, Owner::task(todo.task), Where::Out);
    }

    /// PoolOp::Forget.
    pub(crate) fn forget_compressed(&self, todo: &mut Todo, page: usize) {
        if todo.compressed.is_some_and(|compressed| compressed.page == page) {
            self.settle_compressed(todo, page);
        }
    }

    /// PoolOp::Store, for the page that is being reported.
    pub(crate) fn store_compressed(&self, todo: &mut Todo, compressed: &Compressed, at: PoolId, size: u32) {
        self.pool.store(at, size, compressed.from);
        Stats::add(&self.stats().tier_stores, 1);
        Stats::add(&self.stats().tier_bytes, size.into());
        self.note_stored(compressed);
        self.settle_compressed(todo, compressed.page);
    }

    /// The page's newest bytes are in the pool now. Its slot in the log stays if it has the same bytes.
    fn note_stored(&self, compressed: &Compressed) {
        let Compressed { page, sum, dirty, .. } = *compressed;
        let old = self.pages.slot(page);
        let same = old.is_some() && self.pages.sum(page) == sum;
        if old.is_some() {
            self.note_written(!same);
        }
        if same {
            return;
        }
        if !dirty {
            fatal::stop(format_args!(
                "internal error: page {page} has other bytes than its slot, and nobody has written to it"
            ));
        }
        self.pages.set_sum(page, sum);
        self.pages.set_slot(page, Some(IN_POOL));
        self.log.get().forget(page, old);
    }

    /// PoolOp::Decompress. The bytes are checked after the lock is freed.
    pub(crate) fn decompress(&self, todo: &mut Todo, mut load: Load, at: PoolId, size: u32) {
        load.source = Source::Pool;
        load.good = Some(self.pool.decompress(at, size, load.into));
        todo.loads.push(load);
    }

    /// The page whose size has been reported must have a place now.
    fn has_settled(&self, todo: &Todo, page: usize) {
        if todo.compressed.is_some() {
            fatal::stop(format_args!("internal error: page {page} is compressed, and nothing is to become of it"));
        }
    }

    /// PoolOp::TakeOut: the page is on its way to the slot that is being filled.
    pub(crate) fn take_out(&self, todo: &mut Todo, page: usize, (at, size): (PoolId, u32), to: SlotId) {
        if todo.filling.is_some_and(|filling| filling.to != to) {
            self.append_filling(todo);
        }
        let take = |from, to| self.pages.acquire(page, from, to, Owner::task(todo.task));
        if !take(Where::Out, Where::Leaving) && !take(Where::Kept, Where::Refused) {
            fatal::stop(format_args!("internal error: page {page} is compressed and {:?}", self.pages.get(page)));
        }
        let block = self.tasks().get(todo.task).block();
        let filling = todo.filling.get_or_insert_with(|| Filling::new(to));
        // SAFETY: the block is this thread's.
        match unsafe { filling.put(block, page, size) } {
            Some(into) => self.pool.copy_out(at, size, into),
            None => fatal::stop(format_args!("internal error: page {page} does not fit into its slot")),
        }
    }

    /// The slot that is being filled gets no more pages. They are safe when this returns.
    fn append_filling(&self, todo: &mut Todo) {
        let Some(filling) = todo.filling.take() else { return };
        let (block, members) = (self.tasks().get(todo.task).block(), filling.members());
        self.log.get().append_shared(block, members, &self.pages, self.stats());
        Stats::add(&self.stats().tier_writes, members.len() as u64);
        todo.written.extend_from_slice(members);
    }

    /// PoolOp::Keep: the page lies in the same slot as the one whose load is being reported.
    pub(crate) fn keep(&self, todo: &Todo, page: usize, block: usize, (at, size): (PoolId, u32)) {
        // SAFETY: the buffer with the slot; it is the load's until the page has been moved.
        let found = unsafe { packed::find(block, page) }.filter(|(_, found)| todo.shared && *found == size);
        let Some((from, _)) = found else {
            fatal::stop(format_args!("internal error: page {page} is not in the slot that was loaded"));
        };
        self.pool.store(at, size, from);
        Stats::add(&self.stats().tier_bytes, size.into());
    }

    /// The page of a slot with several, in the task's scratch page. It has been verified before.
    pub(crate) fn unpacked(&self, task: usize, page: usize, block: usize) -> usize {
        let scratch = self.tasks().get(task).scratch();
        // SAFETY: the buffer and the scratch page are this thread's.
        if !unsafe { unpack(block, page, scratch) } {
            self.spoilt(page);
        }
        scratch
    }

    /// Command::Write for bytes that were on their way to the pool. They are safe when this returns.
    pub(crate) fn write_taken(&self, todo: &mut Todo, page: usize) {
        let Some(compressed) = todo.compressed.take().filter(|compressed| compressed.page == page) else {
            fatal::stop(format_args!("internal error: page {page} is to be written, and its bytes are nowhere"));
        };
        let (from, sum) = (self.plain(todo.task, &compressed), compressed.sum);
        let saved = self.log.get().append(from, &[page as u32], &[sum], &self.pages, self.stats());
        Stats::add(&self.stats().writes_saved, saved as u64);
        Stats::add(&self.stats().tier_writes, 1);
        todo.written.push(page as u32);
    }

    /// The page's own bytes.
    fn plain(&self, task: usize, compressed: &Compressed) -> usize {
        if compressed.size as usize == PAGE {
            return compressed.from;
        }
        let scratch = self.tasks().get(task).scratch();
        // SAFETY: staged bytes and the scratch page are this thread's.
        if !unsafe { decompress(compressed.from, compressed.size, scratch) } {
            self.spoilt(compressed.page);
        }
        scratch
    }

    /// Whether the bytes from the pool are those that left.
    pub(crate) fn is_decompressed(&self, load: &Load) -> bool {
        // SAFETY: the buffer is the load's.
        let good = load.good == Some(true) && unsafe { self.log.get().sum(load.into) } == self.pages.sum(load.page);
        if !good && self.pages.slot(load.page) == Some(IN_POOL) {
            self.spoilt(load.page);
        }
        // Otherwise the slot has the same bytes, and the engine asks for them.
        Stats::add(&self.stats().tier_loads, u64::from(good));
        good
    }

    /// Finished writes, which are not reported to the engine one by one.
    pub(crate) fn settle_tier(&self, decider: &mut Decider, todo: &mut Todo) {
        loop {
            self.append_filling(todo);
            let Some(page) = todo.written.pop() else { return };
            self.deliver_one(decider, todo, Event::Written { page: PageId(page) });
            self.pages.release(page as usize, Owner::task(todo.task), Where::Out);
        }
    }

    /// PoolOp::Lend.
    pub(crate) fn lend(&self, part: u32, lent: bool) {
        match lent {
            true => Stats::add(&self.stats().tier_frames, 1),
            false => {
                self.pool.returned(part);
                Stats::sub(&self.stats().tier_frames, 1);
            }
        }
    }

    /// Frames that the tier of this process has now.
    pub(crate) fn tier_frames(&self) -> u64 {
        let _signals = crate::region::content::Signals::block();
        self.decider.lock().engine.tier_size().map_or(0, |(frames, ..)| frames as u64)
    }

    /// In a child that does not page: copies the bytes of a page from the pool.
    pub(crate) fn bring_from_pool(&self, page: usize, into: usize) -> bool {
        let place = self.decider.lock().engine.tier_place(PageId::from(page));
        let Some((at, size)) = place else { return false };
        // SAFETY: the page's place, which no other page has yet.
        self.pool.decompress(at, size, into) && unsafe { self.log.get().sum(into) } == self.pages.sum(page)
    }

    fn spoilt(&self, page: usize) -> ! {
        let address = self.address(page);
        Stats::add(&self.stats().halts, 1);
        fatal::stop(format_args!(
            "the compressed page for {address:#x} is not what was put into memory (its checksum differs)"
        ))
    }
}
