//! Pinned frames: the kernel, a device or a file server writes to them past the page table (`FOLL_PIN` in the kernel).
//! A page in a pinned frame must not be evicted, or those bytes would go to a frame that no page table maps. Only
//! `UFFDIO_MOVE` refuses a pinned page, and each move flushes the TLB by itself. We use it only after the program opens
//! a file that can pin frames or an io_uring, and from then on always.
//!
//! ```text
//!   a page ─ moved to the aside mapping ─ from there into the pipe if it was written to, and dropped there
//!          └ refused: it stays, its present bytes go to the log if it was written to, and the engine gets a fault
//! ```
//! A page that the program has released is dropped where it is, as without the pager.
//!
//! A system call that does not go through the C library is not noticed. If it registers memory with an io_uring, the
//! kernel's count of pinned memory shows it soon (`check_for_pinned`).
//!
//! A write-protected page cannot be pinned for writing: pinning it causes the write fault. But it may have been pinned
//! before it was protected: so an untouched page that is still zeros, and is to leave without a write.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::kernel_reads::LOOK_US;
use super::Work;
use crate::memory::extents::Kind;
use crate::stats::Stats;
use crate::sys::{self, fatal, pids, Errno, Sys};
use crate::task::reaching::Reach;
use crate::task::{Task, Victim};
use crate::PAGE;

/// Memory that is found pinned may have been pinned for this long.
const HELD_NS: u64 = 2 * LOOK_US * 1000;
/// If fewer frames than this part are not pinned, for this long, the program is stopped: it may fault on the same page
/// for ever.
const FEW: usize = 8;
const STUCK_NS: u64 = 5_000_000_000;
/// If a page is found dropped this often, it is an internal error.
const LOOKS: u32 = 100;

/// While this value lives, its task evicts pages.
pub(super) struct Evicting<'a> {
    turn: &'a AtomicU32,
    /// Pages are moved, because their frames may be pinned.
    pub(super) by_move: bool,
}

impl Drop for Evicting<'_> {
    fn drop(&mut self) {
        self.turn.fetch_add(1, Ordering::SeqCst);
    }
}

/// Whether frames may be pinned, and how many pages could not leave.
pub struct PinnedFrames {
    expected: AtomicBool,
    /// Of the last check for pinned memory: when it was, how often pages had left, and since when no page has.
    looked: [AtomicU64; 3],
    /// Pages that could not leave, one after the other.
    refused: AtomicUsize,
    /// Pages that could not leave, less `frames / FEW` for each that could; and since when there are such.
    held: AtomicUsize,
    since: AtomicU64,
    frames: usize,
}

impl PinnedFrames {
    pub fn new(frames: usize) -> PinnedFrames {
        let looked = [const { AtomicU64::new(0) }; 3];
        let zero = || AtomicUsize::new(0);
        PinnedFrames {
            expected: AtomicBool::new(false),
            looked,
            refused: zero(),
            held: zero(),
            since: AtomicU64::new(0),
            frames,
        }
    }
}

impl Work {
    /// Whether the kernel may write to a frame without a fault.
    pub fn may_be_pinned(&self) -> bool {
        self.pinned.expected.load(Ordering::SeqCst)
    }

    /// Whether as many pages as there are frames have been refused in a row.
    pub fn all_refused(&self) -> bool {
        self.pinned.refused.load(Ordering::Relaxed) > self.pinned.frames
    }

    /// A page has left: the next refusal is the first in a row.
    pub fn reset_refusals(&self) {
        self.pinned.refused.store(0, Ordering::Relaxed);
    }

    /// From now on, no page in a pinned frame is evicted. Returns false if this kernel cannot do that.
    pub fn expect_pinned_frames(&self) -> bool {
        if self.memory.is_plain() || self.pinned.expected.load(Ordering::SeqCst) {
            return true;
        }
        if !self.can_refuse() {
            return false;
        }
        self.pinned.expected.store(true, Ordering::SeqCst);
        for turn in (0..self.tasks().len()).map(|task| &self.task(task).evicting) {
            let before = turn.load(Ordering::SeqCst);
            while before % 2 == 1 && turn.load(Ordering::SeqCst) == before {
                sys::sleep_us(20);
            }
        }
        true
    }

    /// Only a move refuses a page whose frame is pinned.
    fn can_refuse(&self) -> bool {
        self.memory.uffd().can_move && !self.memory.space.is_of_file()
    }

    /// `may_be_pinned`, before the first pages leave after a while.
    pub fn finds_pinned(&self) -> bool {
        if self.log().dozes() {
            self.check_for_pinned();
        }
        self.may_be_pinned()
    }

    pub(super) fn evicting<'a>(&self, task: &'a Task) -> Evicting<'a> {
        self.finds_pinned();
        task.evicting.fetch_add(1, Ordering::SeqCst);
        Evicting { turn: &task.evicting, by_move: self.may_be_pinned() }
    }

    /// Checks whether a call that was not intercepted has registered memory with an io_uring. The log's writer looks
    /// while pages leave, and a thread does before it takes the first ones out after a while. So there are two cases:
    /// none has left for some time, and none will leave unseen; or some may have left while the kernel held them, and
    /// the program must not continue.
    pub(super) fn check_for_pinned(&self) {
        if self.pinned.expected.load(Ordering::SeqCst) || !pids::is_pager() {
            return;
        }
        let ([looked, turns, at], time) = (&self.pinned.looked, sys::now());
        if time - looked.swap(time, Ordering::SeqCst).min(time) < LOOK_US * 500 {
            return;
        }
        let tasks = (0..self.tasks().len()).map(|task| self.task(task));
        let now = tasks.map(|task| u64::from(task.evicting.load(Ordering::SeqCst))).sum();
        let left = turns.swap(now, Ordering::SeqCst) != now;
        if left {
            at.store(time, Ordering::SeqCst);
        }
        if pids::pinned_pages() == 0 {
            return;
        }
        // The kernel counts a buffer only when all of it is pinned.
        if left || time - at.load(Ordering::SeqCst).min(time) < HELD_NS || !self.can_refuse() {
            fatal::stop(
                "the program has registered memory with an io_uring by a system call of its own while pages left RAM, \
                 and their bytes may be lost; link liburing as a shared library, or give more RAM",
            );
        }
        self.pinned.expected.store(true, Ordering::SeqCst);
    }

    /// Moves pages into the aside mapping, and marks those that cannot leave.
    pub(super) fn try_leave_all(&self, task: &Task, pages: &mut [Victim]) {
        for victim in pages.iter_mut().filter(|victim| !(victim.is_aside || victim.released || victim.refused)) {
            match self.try_leave(task, victim.page, !victim.write) {
                true => (victim.is_aside, victim.address) = (true, self.memory.aside(victim.page)),
                false => victim.refused = true,
            }
        }
    }

    /// Moves a page to the aside mapping. Returns false if the kernel holds its frame; or if it is `clean`, and the
    /// program could write to it before a second attempt: then it is a dirty page that has not left. Only for its
    /// owner.
    pub(super) fn try_leave(&self, task: &Task, page: usize, clean: bool) -> bool {
        let (address, aside, uffd) = (self.memory.address(page), self.memory.aside(page), self.memory.uffd());
        let mut shared = true;
        let mut moved = Err(Errno::NOENT);
        for _ in 0..LOOKS {
            moved = uffd.move_page(aside, address);
            match moved {
                Err(Errno::NOENT) => _ = self.memory.refill(page),
                // Shared with a child, or merged: then it is not pinned, and this gives it a frame of its own.
                Err(Errno::BUSY) if shared => {
                    shared = false;
                    self.memory.unprotect(page);
                    let _reach = Reach::new(&task.reaching, std::iter::once(page));
                    self.log().watch();
                    // SAFETY: changes no byte.
                    let _ = unsafe { sys::advise(address..address + PAGE, libc::MADV_POPULATE_WRITE) };
                }
                Err(Errno::INVAL) => {
                    moved = self.try_leave_read_only(page);
                    break;
                }
                _ => break,
            }
            if clean {
                break;
            }
        }
        match moved {
            Ok(()) => {
                Stats::add(&self.stats.flushes, 1);
                self.reset_refusals();
                let less = |held: usize| Some(held.saturating_sub((self.pinned.frames / FEW).max(1)));
                let _ = self.pinned.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
            Err(_) => self.count_refusal(),
        }
        moved.is_ok()
    }

    fn count_refusal(&self) {
        let PinnedFrames { refused, held, since, frames, .. } = &self.pinned;
        refused.fetch_add(1, Ordering::Relaxed);
        match held.fetch_add(1, Ordering::Relaxed) {
            0 => since.store(sys::now(), Ordering::Relaxed),
            held if held > 2 * frames && sys::now() - since.load(Ordering::Relaxed) > STUCK_NS => fatal::stop(
                "the kernel holds all pages that --ram has room for (buffers of an io_uring or of a device); give more \
                 RAM",
            ),
            _ => {}
        }
    }

    /// The same for a page that the program may not write to: the kernel moves only what is writable. No thread of the
    /// program gets more rights during this time, because the page is elsewhere; a thread that touches its place waits.
    fn try_leave_read_only(&self, page: usize) -> Sys<()> {
        let (address, aside, uffd) = (self.memory.address(page), self.memory.aside(page), self.memory.uffd());
        let rights = || match self.memory.space.extents().within(address..address + PAGE).next() {
            Some((_, Kind::Managed(manner))) => manner.protection,
            _ => libc::PROT_NONE,
        };
        // SAFETY: the page is this thread's, and comes back to its place if it does not leave.
        unsafe {
            let new = match sys::set_apart(address) {
                Ok(new) => new,
                Err(error) => fatal::stop(format_args!("cannot move the page at {address:#x}: {}", sys::words(error))),
            };
            let mut moved = uffd.move_page(aside, new);
            if moved == Err(Errno::BUSY) {
                // Shared with a child, as in `try_leave`; here no fault is ours.
                let _ = sys::advise(new..new + PAGE, libc::MADV_POPULATE_WRITE);
                moved = uffd.move_page(aside, new);
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
