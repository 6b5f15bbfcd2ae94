//! Pinned frames: the kernel, a device or a file server writes to them past the page table (`FOLL_PIN` in the kernel).
//! A page in a pinned frame must not be evicted, or those bytes would go to a frame that no page table maps. Only
//! `UFFDIO_MOVE` refuses a pinned page, and each move flushes the TLB by itself. We use it only after the program opens
//! a file that can pin frames or an io_uring, and from then on always: the program is *wary* then.
//!
//! ```text
//!   wary   a page that was written to ─ moved to the shelf ─ from there into the pipe, as all others
//!                                     └ refused: it stays, its present bytes go to the log, and the engine gets a fault
//! ```
//! A system call that does not go through the C library is not noticed. If it registers memory with an io_uring, the
//! kernel's count of pinned memory shows it soon (`look_for_held`).
//!
//! A write-protected page cannot be pinned for writing: pinning it causes the write fault.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::kernel_reads::LOOK_US;
use super::Work;
use crate::memory::extents::Kind;
use crate::stats::Stats;
use crate::sys::{self, fatal, whose, Errno, Sys};
use crate::task::reaching::Reach;
use crate::task::{Task, Victim};
use crate::PAGE;

/// Memory that the kernel is found to hold may have been held for so long.
const HELD_NS: u64 = 2 * LOOK_US * 1000;
/// With fewer frames that the kernel does not hold, for so long, the program is stopped: it may fault on the same page
/// for ever.
const FEW: usize = 8;
const STUCK_NS: u64 = 5_000_000_000;
/// If a page is found dropped this often, it is an internal error.
const LOOKS: u32 = 100;

/// While it lives, its task takes pages out.
pub(super) struct Taking<'a> {
    turn: &'a AtomicU32,
    /// The program was wary before.
    pub(super) wary: bool,
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        self.turn.fetch_add(1, Ordering::SeqCst);
    }
}

/// Whether the program is wary, and what that takes.
pub struct Wary {
    on: AtomicBool,
    /// Of the last look for held memory: when it was, how often pages had left, and since when no page has.
    looked: [AtomicU64; 3],
    /// Pages that could not leave, one after the other.
    refused: AtomicUsize,
    /// Pages that could not leave, less `frames / FEW` for each that could; and since when there are such.
    held: AtomicUsize,
    since: AtomicU64,
    frames: usize,
}

impl Wary {
    pub fn new(frames: usize) -> Wary {
        let looked = [const { AtomicU64::new(0) }; 3];
        let zero = || AtomicUsize::new(0);
        Wary { on: AtomicBool::new(false), looked, refused: zero(), held: zero(), since: AtomicU64::new(0), frames }
    }
}

impl Work {
    /// Whether as many pages as there are frames could not leave, one after the other.
    pub fn goes_round(&self) -> bool {
        self.wary.refused.load(Ordering::Relaxed) > self.wary.frames
    }

    /// Enough pages have left.
    pub fn came_round(&self) {
        self.wary.refused.store(0, Ordering::Relaxed);
    }

    /// From now on, no page leaves whose frame the kernel holds. Returns false if this kernel cannot do that.
    pub fn be_wary(&self) -> bool {
        if self.memory.is_plain() || self.wary.on.load(Ordering::SeqCst) {
            return true;
        }
        if !self.memory.uffd().can_move || self.memory.space.is_of_file() {
            return false;
        }
        self.wary.on.store(true, Ordering::SeqCst);
        for turn in (0..self.tasks().len()).map(|task| &self.task(task).taking) {
            let seen = turn.load(Ordering::SeqCst);
            while seen % 2 == 1 && turn.load(Ordering::SeqCst) == seen {
                sys::sleep_us(20);
            }
        }
        true
    }

    /// The task's thread is about to take pages out.
    pub(super) fn taking<'a>(&self, task: &'a Task) -> Taking<'a> {
        if self.log().dozes() {
            self.look_for_held();
        }
        task.taking.fetch_add(1, Ordering::SeqCst);
        Taking { turn: &task.taking, wary: self.wary.on.load(Ordering::SeqCst) }
    }

    /// Looks whether a call that nobody saw has registered memory with an io_uring. The log's writer looks while pages
    /// leave, and a thread does before it takes the first ones out after a while. So there are two cases: none has left
    /// for some time, and none will leave unseen; or some may have left while the kernel held them, and the program
    /// must not go on.
    pub(super) fn look_for_held(&self) {
        if self.wary.on.load(Ordering::SeqCst) || !whose::is_here() {
            return;
        }
        let ([looked, turns, at], time) = (&self.wary.looked, sys::now());
        if time - looked.swap(time, Ordering::SeqCst).min(time) < LOOK_US * 500 {
            return;
        }
        let tasks = (0..self.tasks().len()).map(|task| self.task(task));
        let now = tasks.map(|task| u64::from(task.taking.load(Ordering::SeqCst))).sum();
        let left = turns.swap(now, Ordering::SeqCst) != now;
        if left {
            at.store(time, Ordering::SeqCst);
        }
        if !whose::is_held() {
            return;
        }
        // The kernel tells of a buffer only when it holds all of it.
        if left || time - at.load(Ordering::SeqCst).min(time) < HELD_NS || !self.memory.uffd().can_move {
            fatal::stop(
                "the program has registered memory with an io_uring by a system call of its own while pages left RAM, and \
                 their bytes may be lost; link liburing as a shared library, or give more RAM",
            );
        }
        self.wary.on.store(true, Ordering::SeqCst);
    }

    /// Moves the pages that may have been written to onto the shelf, and marks those that cannot leave.
    pub(super) fn try_leave_all(&self, task: &Task, pages: &mut [Victim]) {
        for victim in pages.iter_mut().filter(|victim| victim.write && !victim.shelved) {
            match self.try_leave(task, victim.page) {
                true => (victim.shelved, victim.address) = (true, self.memory.shelf(victim.page)),
                false => victim.refused = true,
            }
        }
    }

    /// Moves a page to the shelf. Returns false if the kernel holds its frame. Only for its owner.
    pub(super) fn try_leave(&self, task: &Task, page: usize) -> bool {
        let (address, shelf, uffd) = (self.memory.address(page), self.memory.shelf(page), self.memory.uffd());
        let mut shared = true;
        let mut moved = Err(Errno::NOENT);
        for _ in 0..LOOKS {
            moved = uffd.move_page(shelf, address);
            match moved {
                Err(Errno::NOENT) => _ = self.memory.refill(page),
                // Shared with a child, or merged: then nobody holds it, and this gives it a frame of its own.
                Err(Errno::BUSY) if shared => {
                    shared = false;
                    self.memory.unprotect(page);
                    let _reach = Reach::new(&task.reaching, std::iter::once(page));
                    self.log().watch();
                    // SAFETY: changes no byte.
                    let _ = unsafe { sys::advise(address..address + PAGE, libc::MADV_POPULATE_WRITE) };
                }
                Err(Errno::INVAL) => {
                    moved = self.try_leave_apart(page);
                    break;
                }
                _ => break,
            }
        }
        match moved {
            Ok(()) => {
                Stats::add(&self.stats.flushes, 1);
                self.came_round();
                let less = |held: usize| Some(held.saturating_sub((self.wary.frames / FEW).max(1)));
                let _ = self.wary.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
            Err(_) => self.stayed(),
        }
        moved.is_ok()
    }

    /// A page could not leave.
    fn stayed(&self) {
        let Wary { refused, held, since, frames, .. } = &self.wary;
        refused.fetch_add(1, Ordering::Relaxed);
        match held.fetch_add(1, Ordering::Relaxed) {
            0 => since.store(sys::now(), Ordering::Relaxed),
            held if held > 2 * frames && sys::now() - since.load(Ordering::Relaxed) > STUCK_NS => fatal::stop(
                "the kernel holds all pages that --ram has room for (buffers of an io_uring or of a device); give more RAM",
            ),
            _ => {}
        }
    }

    /// The same for a page that the program may not write to: the kernel moves only what is writable. No thread of the
    /// program gets more rights meanwhile, for the page is elsewhere; who touches its place waits.
    fn try_leave_apart(&self, page: usize) -> Sys<()> {
        let (address, shelf, uffd) = (self.memory.address(page), self.memory.shelf(page), self.memory.uffd());
        let rights = || match self.memory.space.extents().within(address..address + PAGE).next() {
            Some((_, Kind::Managed(manner))) => manner.protection,
            _ => libc::PROT_NONE,
        };
        // SAFETY: the page is this thread's, and comes back to its place if it does not leave.
        unsafe {
            let new = match sys::set_apart(address) {
                Ok(new) => new,
                Err(error) => fatal::stop(format_args!("cannot move the page at {address:#x}: {}", error.io())),
            };
            let mut moved = uffd.move_page(shelf, new);
            if moved == Err(Errno::BUSY) {
                // Shared with a child, as in `try_leave`; here no fault is ours.
                let _ = sys::advise(new..new + PAGE, libc::MADV_POPULATE_WRITE);
                moved = uffd.move_page(shelf, new);
            }
            match moved {
                Ok(()) => sys::unmap_memory(new, PAGE),
                Err(_) => {
                    let back = sys::put_back(new, address, rights());
                    self.memory.must(
                        back.and_then(|()| uffd.register(address..address + PAGE)),
                        "put a page back",
                        page,
                    );
                }
            }
            moved
        }
    }
}
