//! Evictions: into a pipe, out of the page table, read back.
//!
//! The frames of the dirty victims go into a pipe, one call drops all victims, and the final bytes are read from the
//! pipe. A write between the two is in these bytes. A later write faults and waits.

use std::sync::atomic::Ordering;

use super::pinned_frames::Evicting;
use super::Work;
use crate::page::pages::{Owner, Where};
use crate::stats::Stats;
use crate::sys::{self, fatal, Errno};
use crate::task::reaching::Reach;
use crate::task::{Task, Todo, Victim, VICTIMS};
use crate::PAGE;

impl Work {
    /// Takes the victims out. Those that had bytes to save stay in `todo.victims`; they are safe in the log.
    pub fn evict(&self, todo: &mut Todo) {
        if !todo.victims.is_empty() {
            self.zap(todo);
            self.save(todo);
        }
    }

    /// Takes out the victims that are still there. The last bytes of the dirty ones are then in the staging memory; the
    /// others are finished. Needs no lock, and may be called with the engine's lock held.
    pub fn zap(&self, todo: &mut Todo) {
        let (first, task) = (todo.zapped, self.task(todo.task));
        let victims = &mut todo.victims[first..];
        if victims.is_empty() {
            return;
        }
        let dirty = in_order(victims);
        self.pull(task, victims, dirty, first, &self.evicting(task));
        self.note_zapped(todo, dirty);
    }

    /// The victims after `todo.zapped` have left memory. The first `dirty` of them have bytes to save; the others are
    /// finished.
    fn note_zapped(&self, todo: &mut Todo, dirty: usize) {
        for i in todo.zapped..todo.victims.len() {
            if todo.victims[i].refused {
                self.pages().refuse(todo.victims[i].page, Owner::task(todo.task));
                todo.note_unevicted(todo.victims[i].page);
            }
        }
        let victims = &todo.victims[todo.zapped..];
        self.memory.have_left(victims.len());
        for victim in &victims[dirty..] {
            self.pages().release(victim.page, Owner::task(todo.task), Where::Out);
        }
        todo.zapped += dirty;
        todo.victims.truncate(todo.zapped);
    }

    /// Takes pages out of the page table. The last bytes of the first `dirty` of them are then in the staging memory,
    /// from place `at` on.
    pub(super) fn pull(&self, task: &Task, pages: &mut [Victim], dirty: usize, at: usize, evicting: &Evicting) {
        if evicting.by_move {
            self.try_leave_all(task, pages);
        }
        // As a rule it has room for all.
        let room = task.pipe().1;
        let first = if dirty > room { dirty - dirty % room } else { 0 };
        let (full, rest) = pages.split_at_mut(first);
        for (i, together) in full.chunks_mut(room).enumerate() {
            self.pull_together(task, together, together.len(), at + i * room);
        }
        self.pull_together(task, rest, dirty - first, at + first);
    }

    /// The same, if the pipe has room for the `dirty` pages.
    fn pull_together(&self, task: &Task, pages: &mut [Victim], dirty: usize, at: usize) {
        let mut vector: [libc::iovec; VICTIMS] =
            std::array::from_fn(|i| sys::iovec(pages.get(i).map_or(0, |page| page.address), PAGE));
        self.shield(&pages[..dirty]);
        self.to_pipe(task, &pages[..dirty], &vector[..dirty]);
        let mut leaving = 0;
        for (i, _) in pages.iter().enumerate().filter(|(_, page)| !page.refused) {
            vector[leaving] = vector[i];
            leaving += 1;
        }
        // SAFETY: the pages are this thread's, and the bytes that are needed are in the pipe.
        unsafe { self.memory.drop_pages(&vector[..leaving]) };
        task.read_back(at, dirty);
        pages[..dirty].iter_mut().enumerate().for_each(|(i, page)| page.staged = at + i);
    }

    /// Write-protects those pages whose frames may be shared. A write to a shared frame would go to a new frame,
    /// which is not in the pipe.
    fn shield(&self, victims: &[Victim]) {
        let all = self.memory.may_share_all();
        let shared = victims.iter().filter(|v| !v.is_aside && (all || self.memory.is_shared(v.page)));
        shared.for_each(|victim| self.memory.protect(victim.page));
    }

    /// Puts all pages into the pipe. A page that the program has made inaccessible cannot go there. It is
    /// write-protected and copied, so that its bytes stay the same even if it becomes accessible just now.
    ///
    /// A page that should be there may be absent (see `refill`). This thread then sleeps in the call until another
    /// thread helps (see `kernel_reads`), or the call fails if faults of system calls are not reported.
    fn to_pipe(&self, task: &Task, victims: &[Victim], mut pages: &[libc::iovec]) {
        // Victims take long, and this thread may sleep until it is helped. While only one thread faults, the log's
        // writer helps, and the reader need not hand over with each batch.
        if !victims.is_empty() {
            self.reader.hand_over_unless_alone();
        }
        let (pipe, scratch) = (task.pipe().0, task.scratch());
        let own = || victims.iter().filter(|v| !v.is_aside).map(|v| v.page);
        let _reach = Reach::new(&task.reaching, own());
        self.log().watch();
        own().for_each(|page| _ = self.memory.refill(page));
        while let Some(first) = pages.first() {
            let address = first.iov_base as usize;
            let victim = victims[victims.len() - pages.len()];
            let gone = match sys::to_pipe(pipe, pages) {
                Err(Errno::FAULT) if !victim.is_aside && self.memory.refill(victim.page) => continue,
                // The page is inaccessible to the program; or a filter of system calls that the program has set does
                // not allow this thread to do so.
                Err(Errno::FAULT | Errno::PERM | Errno::ACCESS | Errno::NOSYS) => {
                    match victim.is_aside {
                        // SAFETY: a page of the aside mapping, and this thread's scratch page.
                        true => unsafe {
                            std::ptr::copy_nonoverlapping(address as *const u8, scratch as *mut u8, PAGE)
                        },
                        false => self.memory.peek(victim.page, scratch),
                    }
                    // SAFETY: the scratch page is this thread's.
                    unsafe { sys::write_pipe(pipe, scratch) }.map(|()| 1)
                }
                other => other,
            };
            match gone {
                Ok(gone) => pages = &pages[gone..],
                Err(error) => fatal::stop(format_args!(
                    "the page at {address:#x} cannot go into a pipe (vmsplice): {}",
                    sys::words(error)
                )),
            }
        }
    }

    fn save(&self, todo: &mut Todo) {
        todo.victims.sort_unstable_by_key(|victim| victim.staged);
        let written = todo.victims.len();
        let (log, staging) = (self.log(), self.task(todo.task).staging);
        let mut bytes = [(0, 0, 0); VICTIMS];
        for (to, victim) in bytes.iter_mut().zip(&todo.victims) {
            let from = staging + victim.staged * PAGE;
            // SAFETY: the staged pages are this thread's.
            *to = (victim.page as u32, from, unsafe { log.sum(from) });
        }
        let saved = log.append(&bytes[..written], self.pages());
        Stats::add(&self.stats.writes_saved, saved as u64);
        if log.slow.is_some() {
            let pages = (written - saved) as u64;
            Stats::add(&self.stats.pages_written, pages);
            Stats::add(&self.stats.device_writes, pages);
            Stats::add(&self.stats.device_bytes_written, pages * PAGE as u64);
        }
        (0..written).for_each(|i| self.note_written(i >= saved));
    }

    /// The share of the pages mapped readable lately that were written later. Above a tenth, hashing is cheaper than
    /// write faults.
    pub fn note_written(&self, written: bool) {
        let old = self.write_share.load(Ordering::Relaxed);
        let aim = if written { 256 } else { 0 };
        let new = (old * 63 + aim) / 64;
        self.write_share.store(if written { new.max(old + 1).min(256) } else { new }, Ordering::Relaxed);
    }
}

/// Sorts: pages with bytes to write come first. Returns how many there are.
fn in_order(victims: &mut [Victim]) -> usize {
    victims.sort_unstable_by_key(|victim| !victim.write);
    victims.partition_point(|victim| victim.write)
}
