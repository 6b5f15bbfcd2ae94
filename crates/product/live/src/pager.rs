//! The door of the crate.

mod region;
#[cfg(test)]
mod stale_faults;

use std::ops::Range;
use std::sync::Arc;

pub use region::{Pin, Region};

use crate::life::fork::{ForkedChild, Inherited};
use crate::life::{start, Inner};
use crate::memory::extents::{Kind, Manner};
use crate::region::mapping::Spot;
use crate::sys::Signals;
use crate::{LiveError, Options, Snapshot, PAGE};

/// One RAM budget for any number of regions. It is cheap to clone. All clones are the same pager.
///
/// Its methods are of four kinds, called in this order:
///
/// - **start**: [`Pager::start`], for a program that knows its pager; it ends with the last clone and the last region.
///   [`Pager::start_for_program`], for a library that puts a program's memory under the pager; it ends with the
///   process, and the library calls [`Pager::end`] just before.
/// - **memory**: [`Pager::anonymous`] makes a [`Region`]. Who manages memory himself calls [`Pager::map_at`] or
///   [`Pager::map_foreign`] first, then [`Pager::note`], [`Pager::discard`], [`Pager::will_need`], [`Pager::pin`] and
///   [`Pager::unpin`] for mapped ranges, then [`Pager::unmap`]. Any thread may call them, but no
///   signal handler that has interrupted one of them.
/// - **forks**: for a program, the library calls [`Pager::fork_prepare`], and after the fork [`Pager::fork_parent`] or
///   [`Pager::fork_child`] in the same thread. Between them nothing else of the pager may be called, and no page
///   touched that may be absent. Otherwise this happens by itself.
/// - **questions**, at any time: [`Pager::stats`], [`Pager::options`], [`Pager::span`], [`Pager::extents`],
///   [`Pager::contents`].
#[derive(Clone)]
pub struct Pager {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Pager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pager({} bytes of RAM)", self.options().ram)
    }
}

impl Pager {
    /// Starts a pager.
    ///
    /// # Errors
    /// This machine does not allow it, settings are not possible, or the backing cannot be used.
    pub fn start(options: Options) -> Result<Pager, LiveError> {
        start::start(options).map(|inner| Pager { inner })
    }

    /// Starts a pager for a library that keeps the memory of a whole program in it. Faults in system calls must be
    /// served, and the library itself calls `fork_prepare` and the functions that follow it. The pager lives as long as
    /// the process.
    ///
    /// # Errors
    /// As for `start`.
    pub fn start_for_program(options: Options) -> Result<Pager, LiveError> {
        start::start_for_program(options).map(|inner| Pager { inner })
    }

    #[cfg(test)]
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Maps `len` bytes of zeroed managed memory at a given spot and with given rights, and returns its address. For
    /// code that manages memory itself; other code uses [`Pager::anonymous`].
    ///
    /// # Errors
    /// No address space is left, or the spot is not free or not in the span.
    pub fn map_at(&self, spot: Spot, len: usize, protection: i32) -> Result<usize, LiveError> {
        let _signals = Signals::block();
        let len = len.div_ceil(PAGE).max(1) * PAGE;
        self.inner.run(|| self.inner.managed.map(spot, len, protection)).map(|at| at.start)
    }

    /// Unmaps a range; a later touch is a SIGSEGV. Parts that are free stay so.
    ///
    /// # Errors
    /// The kernel has no room to record that a part of a mapping is gone. The content of the range is lost all the
    /// same.
    pub fn unmap(&self, range: Range<usize>) -> Result<(), LiveError> {
        let _signals = Signals::block();
        self.inner.run(|| self.inner.managed.unmap(&range)).map_err(|e| LiveError::os("give memory back", e))
    }

    /// Lets the kernel put a mapping of the program itself into a range of the span, replacing whatever is there.
    /// `place` makes the mapping and returns the kernel's answer: an address, or a negative error. Then the range is
    /// free.
    pub fn map_foreign(&self, range: Range<usize>, place: impl FnOnce() -> isize) -> isize {
        let _signals = Signals::block();
        self.inner.run(|| self.inner.managed.begin_foreign(&range));
        let answer = place();
        self.inner.run(|| self.inner.managed.end_foreign(range, answer >= 0));
        answer
    }

    /// The kernel has moved a foreign mapping, or a part of one, away: its place is free again.
    pub fn foreign_gone(&self, range: Range<usize>) {
        let _signals = Signals::block();
        self.inner.run(|| self.inner.managed.foreign_gone(&range));
    }

    /// The extents in a range of addresses, lowest first; gaps are free.
    pub fn extents(&self, range: Range<usize>) -> Vec<(Range<usize>, Kind)> {
        let _signals = Signals::block();
        self.inner.managed.space().extents().within(range).collect()
    }

    /// Before the program may touch a part of the range that it could not touch.
    ///
    /// # Errors
    /// The kernel does not watch memory.
    pub fn open(&self, range: Range<usize>) -> Result<(), LiveError> {
        if !self.inner.managed.memory().kernel_owned.is_on() {
            return Ok(());
        }
        let opened = self.inner.run(|| self.inner.managed.open_range(range));
        opened.map_err(|e| LiveError::os("watch memory (UFFDIO_REGISTER)", e))
    }

    /// Changes what the program has asked for the managed memory in a range.
    pub fn note(&self, range: Range<usize>, change: impl Fn(&mut Manner)) {
        let _signals = Signals::block();
        let space = self.inner.managed.space();
        let _changing = space.changing();
        space.extents().change(range, change);
    }

    /// The parts of a managed range that may hold anything but zeros, in whole pages, lowest first.
    pub fn contents(&self, range: Range<usize>) -> Vec<Range<usize>> {
        self.inner.managed.contents(self.pages_of(range))
    }

    /// Statistics now.
    pub fn stats(&self) -> Snapshot {
        self.inner.stats.snapshot()
    }

    /// The options it was made from, with the values measured and chosen at the start.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The managed address space.
    pub fn span(&self) -> Range<usize> {
        self.inner.managed.space().span()
    }

    /// Notes in a recording, if there is one, who has mapped or allocated this memory: an address in the program.
    pub fn note_caller(&self, range: Range<usize>, caller: impl FnOnce() -> usize) {
        if let Some(recording) = self.inner.managed.work.recording() {
            let first = (range.start - self.span().start) / PAGE;
            recording.mapping(first..first + range.len() / PAGE, caller());
        }
    }

    /// From now on, no page leaves whose frame the kernel holds. Call it before a device, a server of files or an
    /// io_uring can write past the page table. Returns false if this kernel cannot do that (Linux before 6.8).
    pub fn expect_pinned_frames(&self) -> bool {
        self.inner.run(|| {
            self.inner.managed.take_over();
            self.inner.managed.work.expect_pinned_frames()
        })
    }

    /// Whether the kernel can put guards here (MADV_GUARD_INSTALL). In a mapping of a file, write protection outlasts
    /// the page, and Linux 6.18 tries for ever to put a guard in its place.
    pub fn takes_guards(&self) -> bool {
        !self.inner.managed.space().is_of_file()
    }

    /// Drops the content of a range: it reads as zeros.
    pub fn discard(&self, range: Range<usize>) {
        self.inner.run(|| self.inner.managed.discard(self.pages_of(range)));
    }

    /// Loads a range, many pages at a time.
    pub fn will_need(&self, range: Range<usize>) {
        self.inner.run(|| {
            let memory = self.inner.managed.memory();
            let touched = memory.space.touched(self.pages_of(range)).flatten();
            self.inner.managed.load_pages(touched.filter(|page| memory.has_content(*page)));
        });
    }

    /// Loads a range and keeps it in RAM until `unpin`. Pins nest.
    ///
    /// # Errors
    /// More pages than may be pinned.
    pub fn pin(&self, range: Range<usize>) -> Result<(), LiveError> {
        self.inner.run(|| self.inner.managed.pin_pages(self.pages_of(range)))
    }

    /// Undoes `pin`.
    pub fn unpin(&self, range: Range<usize>) {
        self.inner.run(|| self.inner.managed.unpin_touched(self.pages_of(range)));
    }

    fn pages_of(&self, range: Range<usize>) -> Range<usize> {
        self.inner.managed.space().pages_of(&range)
    }

    /// Whether the kernel may hold so many bytes in all. They have their frames until the next call of this, which is
    /// due when the kernel holds them.
    pub fn may_hold(&self, bytes: usize) -> bool {
        self.inner.run(|| self.inner.managed.promise(bytes.div_ceil(PAGE)))
    }

    /// Before a fork, called by the forking thread where [`Pager::start_for_program`] made the pager (otherwise this
    /// happens by itself). That thread blocks all signals until the fork is over. When this returns, no fault is in
    /// flight and none begins.
    pub fn fork_prepare(&self, child: ForkedChild) {
        self.inner.fork_prepare(child);
    }

    /// After the fork, in the parent.
    ///
    /// # Errors
    /// The kernel refused to let a child have the memory. If there is a child, it has ended at once.
    pub fn fork_parent(&self) -> std::io::Result<()> {
        self.inner.fork_parent().map_err(std::io::Error::from)
    }

    /// After the fork, in the child: from now on it pages for itself.
    pub fn fork_child(&self) {
        Inner::fork_children(std::iter::once(&*self.inner));
    }

    /// From now on only the pager process has the descriptor of the statistics ([`Options::stats_fd`]), if it is a
    /// process of its own. The library then calls [`Pager::inherit_statistics`] before each execution of a program.
    pub fn leave_statistics(&self) {
        self.inner.leave_statistics();
    }

    /// Before the program executes another one: opens the descriptor of the statistics for that one, under the number
    /// that it expects.
    pub fn inherit_statistics(&self) -> Option<Inherited> {
        self.inner.inherit_statistics()
    }

    /// A process that this one has made has its memory, too (CLONE_VM): the pager serves it as long as it lives.
    pub fn shares_memory_with(&self, process: usize) {
        self.inner.shares_memory_with(process);
    }

    /// The process is about to end: writes the journal to its file, and takes this process's share out of the
    /// statistics of the present.
    pub fn end(&self) {
        self.inner.end();
    }

    /// Writes the journal to its file.
    pub fn flush_journal(&self) {
        self.inner.run(|| self.inner.flush_journal());
    }

    /// Checks every invariant of the engine. For tests, while no fault is in flight.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        let _signals = Signals::block();
        self.inner.managed.gate.lock().engine().check();
    }
}
