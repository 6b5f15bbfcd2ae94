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
//! without a write. Pages of zeros have no place, as without a tier.

use coldframe_core::tier::BIN_FRAMES;
use coldframe_core::PoolId;
use coldframe_plan::TIER_BATCH_MAX;

use super::Work;
use crate::page::pages::{Owner, Where};
use crate::stats::Stats;
use crate::sys::fatal;
use crate::task::{Load, Source, Todo, Victim};
use crate::tier::codec::{compress, decompress, unpack};
use crate::tier::packed::{self, Filling};
use crate::tier::{Compressed, IN_POOL};
use crate::PAGE;

const _: () = assert!(2 * (TIER_BATCH_MAX + 2 * BIN_FRAMES) <= crate::task::VICTIMS);

impl Work {
    /// Hashes and compresses the pages staged for the pool.
    pub fn compress_staged<'a>(&self, task: usize, victims: impl Iterator<Item = &'a mut Victim>) {
        let task = self.task(task);
        for victim in victims {
            let page = task.staging + victim.staged * PAGE;
            // SAFETY: the staging memory and the table are this thread's.
            unsafe {
                victim.digest = match self.pages().slot(victim.page) {
                    // No thread could write to it.
                    Some(_) if !victim.write => self.pages().sum(victim.page),
                    _ => self.log().sum(page),
                };
                victim.size = compress(page, task.compressed(), task.table());
            }
        }
    }

    /// PoolOp::Store, for the page that is being reported.
    pub fn store_compressed(&self, compressed: &Compressed, at: PoolId, size: u32) {
        self.pool.store(at, size, compressed.from);
        Stats::add(&self.stats.tier_stores, 1);
        Stats::add(&self.stats.tier_bytes, size.into());
        self.note_stored(compressed);
    }

    /// The page's newest bytes are in the pool now. Its slot in the log stays if it has the same bytes.
    fn note_stored(&self, compressed: &Compressed) {
        let Compressed { page, sum, dirty, .. } = *compressed;
        let old = self.pages().slot(page);
        let same = old.is_some() && self.pages().sum(page) == sum;
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
        self.pages().set_sum(page, sum);
        self.pages().set_slot(page, Some(IN_POOL));
        self.log().forget(page, old);
    }

    /// PoolOp::Decompress. The bytes are checked after the lock is freed.
    pub fn decompress(&self, todo: &mut Todo, mut load: Load, at: PoolId, size: u32) {
        load.source = Source::Pool;
        load.good = Some(self.pool.decompress(at, size, load.into));
        todo.loads.push(load);
    }

    /// PoolOp::TakeOut: the page is on its way to the slot that is being filled.
    pub fn take_out(&self, task: usize, filling: &mut Filling, page: usize, (at, size): (PoolId, u32)) {
        let take = |from, to| self.pages().acquire(page, from, to, Owner::task(task));
        if !take(Where::Out, Where::Leaving) && !take(Where::Kept, Where::Refused) {
            fatal::stop(format_args!("internal error: page {page} is compressed and {:?}", self.pages().get(page)));
        }
        // SAFETY: the block is this thread's.
        match unsafe { filling.put(self.task(task).block(), page, size) } {
            Some(into) => self.pool.copy_out(at, size, into),
            None => fatal::stop(format_args!("internal error: page {page} does not fit into its slot")),
        }
    }

    /// The slot gets no more pages. They are safe when this returns.
    pub fn append_filling(&self, todo: &mut Todo, filling: &Filling) {
        let (block, members) = (self.task(todo.task).block(), filling.members());
        self.log().append_shared(block, members, self.pages());
        Stats::add(&self.stats.tier_writes, members.len() as u64);
        todo.written.extend_from_slice(members);
    }

    /// PoolOp::Keep: the page lies in the same slot as the one whose load is being reported, in the buffer `block`.
    pub fn keep(&self, page: usize, block: usize, (at, size): (PoolId, u32)) {
        // SAFETY: the buffer with the slot; it is the load's until the page has been moved.
        let found = unsafe { packed::find(block, page) }.filter(|(_, found)| *found == size);
        let Some((from, _)) = found else {
            fatal::stop(format_args!("internal error: page {page} is not in the slot that was loaded"));
        };
        self.pool.store(at, size, from);
        Stats::add(&self.stats.tier_bytes, size.into());
    }

    /// The page of a slot with several, in the task's scratch page. It has been verified before.
    pub(super) fn unpacked(&self, task: usize, page: usize, block: usize) -> usize {
        let scratch = self.task(task).scratch();
        // SAFETY: the buffer and the scratch page are this thread's.
        if !unsafe { unpack(block, page, scratch) } {
            self.spoilt(page);
        }
        scratch
    }

    /// Command::Write for bytes that were on their way to the pool. They are safe when this returns.
    pub fn write_taken(&self, todo: &mut Todo, compressed: &Compressed) {
        let (from, page) = (self.plain(todo.task, compressed), compressed.page as u32);
        let saved = self.log().append(&[(page, from, compressed.sum)], self.pages());
        Stats::add(&self.stats.writes_saved, saved as u64);
        Stats::add(&self.stats.tier_writes, 1);
        todo.written.push(page);
    }

    /// The page's own bytes.
    fn plain(&self, task: usize, compressed: &Compressed) -> usize {
        if compressed.size as usize == PAGE {
            return compressed.from;
        }
        let scratch = self.task(task).scratch();
        // SAFETY: staged bytes and the scratch page are this thread's.
        if !unsafe { decompress(compressed.from, compressed.size, scratch) } {
            self.spoilt(compressed.page);
        }
        scratch
    }

    /// Whether the bytes from the pool are those that left.
    pub(super) fn is_decompressed(&self, load: &Load) -> bool {
        // SAFETY: the buffer is the load's.
        let good = load.good == Some(true) && unsafe { self.log().sum(load.into) } == self.pages().sum(load.page);
        if !good && self.pages().slot(load.page) == Some(IN_POOL) {
            self.spoilt(load.page);
        }
        // Otherwise the slot has the same bytes, and the engine asks for them.
        Stats::add(&self.stats.tier_loads, u64::from(good));
        good
    }

    /// PoolOp::Lend.
    pub fn lend(&self, part: u32, lent: bool) {
        match lent {
            true => Stats::add(&self.stats.tier_frames, 1),
            false => {
                self.pool.returned(part);
                Stats::sub(&self.stats.tier_frames, 1);
            }
        }
    }

    /// In a child that does not page: copies the bytes of a page from the pool.
    pub fn bring_from_pool(&self, page: usize, (at, size): (PoolId, u32), into: usize) -> bool {
        // SAFETY: the page's place, which no other page has yet.
        self.pool.decompress(at, size, into) && unsafe { self.log().sum(into) } == self.pages().sum(page)
    }

    fn spoilt(&self, page: usize) -> ! {
        let address = self.memory.address(page);
        Stats::add(&self.stats.halts, 1);
        fatal::stop(format_args!(
            "the compressed page for {address:#x} is not what was put into memory (its checksum differs)"
        ))
    }
}
