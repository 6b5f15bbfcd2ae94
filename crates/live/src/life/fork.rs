//! Forks. A child sees the parent's memory as it was at the fork and pages for itself from then on.
//!
//! ```text
//!   prepare   shut the gate, wait until no fault is in flight, bring the log to the device, let the memory be inherited,
//!             get what the child needs and the parent can get: its swap file, a pipe that shows when the child is gone
//!   fork      both have the same frames (shared until written), the same engine, the same slots
//!   parent    a slot that the child can see is not reused until the child is gone (exit or exec closes its end of the pipe)
//!   child     its own userfaultfd, rings, pipes, threads and budget; the parent's swap file is only read
//! ```
//! If a child does not get one of these, it cannot page. It then runs without paging (`region/unpaged.rs`); it is not
//! stopped.
//!
//! A frame that is or was shared with a child must be write-protected before it goes into the pipe of an eviction: a write would
//! go to a new frame that is not there. Each page knows the epoch in which it was mapped, and a fork begins a new
//! epoch. Outside of `prepare` and the fork, a child does not inherit the memory. So a child made by a raw system
//! call finds no memory there, and never zeros. Until the child's pager has started, zeros hold the
//! place, so that other mappings of the child, including the pager's own memory, get other addresses.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use crate::fault::pager::Inner;
use crate::memory::extents::Manner;
use crate::memory::space;
use crate::page::pages::Where;
use crate::record::journal::JournalFile;
use crate::record::recorder::Recording;
use crate::stats::Stats;
use crate::swap::device::Device;
use crate::sys::fatal;
use crate::sys::{self, Errno, Sys};
use crate::threads::keeper::Keeper;
use crate::LiveError;

/// After this time, a message says what a fork waits for.
const LONG_NS: u64 = 2_000_000_000;

/// What a child gets from its parent.
pub(crate) struct Ready {
    /// Both ends of a pipe. The child keeps the second end open while it can see the parent's slots. None: there were
    /// no descriptors, and the slots that the child sees are kept for ever.
    alive: Option<(OwnedFd, OwnedFd)>,
    device: Result<Device, LiveError>,
    /// The kernel refused to let the memory be inherited: there must be no child.
    refused: Option<Errno>,
}

impl Inner {
    pub(crate) fn fork_prepare(&self) {
        let mask = sys::block_signals();
        std::mem::forget(self.crew.lock());
        self.space.hold_still();
        self.shut_gate();
        self.space.freeze();
        self.fork_mask.store(mask as usize, Ordering::Relaxed);
        if self.is_unpaged() {
            return;
        }
        self.log.get().fork_prepare(&self.pages, self.stats());
        let refused = self.inherit(true).err();
        let pipe = sys::with_room(|_| sys::pipe(0)).ok();
        let alive = pipe.map(|(read, write)| (sys::move_high(read), sys::move_high(write)));
        *self.ready.lock() = Some(Ready { alive, device: self.swap_files.another(), refused });
    }

    /// Takes the engine's lock when no fault is in flight, and keeps it.
    fn shut_gate(&self) {
        let started = sys::now();
        let mut said = false;
        loop {
            // Another thread's fork may have opened the gate meanwhile.
            self.gate.store(true, Ordering::Relaxed);
            let decider = self.decider.lock();
            if self.active.load(Ordering::Acquire) == 0 {
                self.gate.store(true, Ordering::Relaxed);
                std::mem::forget(decider);
                return;
            }
            drop(decider);
            if !said && sys::now() - started > LONG_NS {
                said = true;
                fatal::say("a fork waits until the device has answered the faults in flight");
            }
            sys::give_way();
        }
    }

    /// Returns the reason if there must be no child. If a child was made all the same, it has ended at once.
    pub(crate) fn fork_parent(&self) -> Sys<()> {
        let mut refused = None;
        if !self.is_unpaged() {
            self.keep_to_itself();
            let ready = self.ready.lock().take();
            refused = ready.as_ref().and_then(|ready| ready.refused);
            let alive = ready.and_then(|ready| ready.alive);
            self.log.get().fork_parent(alive.map(|(read, _write)| read), self.keeper.get().as_ref());
            self.epoch.fetch_add(1, Ordering::Relaxed);
            Stats::add(&self.stats().forks, 1);
        }
        let mask = self.fork_mask.load(Ordering::Relaxed) as u64;
        self.open_gate();
        sys::restore_signals(mask);
        refused.map_or(Ok(()), Err)
    }

    pub(crate) fn fork_child(&self) {
        let mask = self.fork_mask.load(Ordering::Relaxed) as u64;
        // SAFETY: `fork_prepare` has taken the lock.
        Inner::forget_handlers(unsafe { self.crew.held() });
        self.lead.forget();
        self.reclaimer.forget();
        if self.is_unpaged() {
            self.open_gate();
            return sys::restore_signals(mask);
        }
        let Some(Ready { alive, device, refused }) = self.ready.lock().take() else {
            fatal::stop("internal error: a fork that was not prepared")
        };
        if let Some(error) = refused {
            fatal::stop(format_args!("the kernel refused to share memory with a child: {}", error.io()));
        }
        // Open until this process and its forks are gone, or run another program.
        self.alive.lock().extend(alive.map(|(_read, write)| write));
        let own = device.and_then(|device| sys::with_room(|_| self.become_own(device)));
        // A first write that was in progress in another thread of the parent.
        self.each_touched(|page| self.pages.states().disown(page, Where::Dirty));
        self.pages.states().forget_sleepers();
        self.sharing.forget();
        // SAFETY: `fork_prepare` has taken the lock. The journal is the parent's.
        unsafe { self.decider.held() }.side.journal = None;
        self.epoch.fetch_add(1, Ordering::Relaxed);
        self.open_gate();
        match own {
            Ok(()) => {
                self.count_in();
                // If the parent could not lock it, neither can this process; the parent has reported that.
                self.keep_plaintext();
                self.after_fork();
            }
            Err(error) => self.run_unpaged(&error),
        }
        sys::restore_signals(mask);
    }

    fn count_in(&self) {
        let stats = self.stats();
        Stats::add(&stats.processes, 1);
        Stats::add(&stats.frames, self.frames() as u64);
        Stats::add(&stats.resident, self.resident.load(Ordering::Relaxed) as u64);
        Stats::add(&stats.tier_frames, self.tier_frames());
    }

    /// Makes all that a pager needs. The gate is shut, and this is the child's only thread.
    fn become_own(&self, device: Device) -> Result<(), LiveError> {
        let pidfd = sys::move_high(sys::own_pidfd().map_err(|e| LiveError::os("a pidfd", e))?);
        // SAFETY: a forked child has one thread, and this is it.
        unsafe {
            *self.pidfd.renew() = pidfd;
            *self.memory.renew() = sys::OwnMemory::open();
            *self.rings.renew() = self.tasks.renew().renew(*self.rings.get())?;
            self.log.renew().fork_child(device)?;
        }
        // SAFETY: as above.
        let keeper = unsafe { self.keeper.renew() }.take();
        let kept = keeper.is_some();
        keeper.into_iter().for_each(Keeper::forget_in_child);
        self.swap_files.renew();
        // SAFETY: as above.
        let recording = unsafe { self.recording.renew() };
        if let (Some(asked), Some(recording)) = (&self.options.record, recording) {
            recording.renew(asked)?;
        }
        let uffd = self.source.make().map_err(|e| LiveError::os("userfaultfd", e))?;
        // SAFETY: as above.
        let parents = std::mem::replace(unsafe { self.uffd.renew() }, uffd);
        // SAFETY: as above; `fork_prepare` has taken the crew's lock.
        self.watch_all().and_then(|()| unsafe { self.start_own(kept) }).inspect_err(|_| {
            // It is closed, and the memory is no longer watched. The parent's descriptor takes its place and is not
            // used.
            // SAFETY: as above.
            drop(std::mem::replace(unsafe { self.uffd.renew() }, parents));
        })
    }

    fn watch_all(&self) -> Result<(), LiveError> {
        let uffd = self.uffd.get();
        let watch = |range| uffd.register(range).map_err(|e| LiveError::os("watch memory (UFFDIO_REGISTER)", e));
        watch(self.space.shelf_range())?;
        for (range, manner) in self.space.frozen() {
            if !manner.dont_fork {
                self.dont_inherit(&range)?;
                watch(range.clone())?;
                self.protect_clean(self.space.pages_of(&range))?;
            } else {
                // Zeros hold the place; it is closed as soon as there are handlers.
                // SAFETY: the child has nothing there.
                unsafe { space::map_open(&range, manner.protection) }.map_err(|e| LiveError::os("map memory", e))?;
                watch(range)?;
            }
        }
        self.dont_inherit(&self.space.shelf_range())
    }

    /// A fork loses the write protection, but not the record of which pages are clean. Other pages stay writable:
    /// this thread's own stack may be among them.
    fn protect_clean(&self, pages: std::ops::Range<usize>) -> Result<(), LiveError> {
        let protect = |pages: &std::ops::Range<usize>| match pages.is_empty() {
            true => Ok(()),
            false => self.uffd.get().protect(self.space.addresses_of(pages), true),
        };
        let mut run = pages.start..pages.start;
        for page in self.space.touched(pages).flatten().filter(|page| self.pages.get(*page) == Where::Clean) {
            if page != run.end {
                protect(&run).map_err(|e| LiveError::os("protect memory", e))?;
                run.start = page;
            }
            run.end = page + 1;
        }
        protect(&run).map_err(|e| LiveError::os("protect memory", e))
    }

    fn dont_inherit(&self, range: &std::ops::Range<usize>) -> Result<(), LiveError> {
        // SAFETY: says only whether a child inherits the memory.
        unsafe { sys::advise(range.clone(), libc::MADV_DONTFORK) }.map_err(|e| LiveError::os("MADV_DONTFORK", e))
    }

    /// Calls `f` for every managed page that may not be `Nowhere`. Call it between `fork_prepare` and the opening of
    /// the gate.
    fn each_touched(&self, mut f: impl FnMut(usize)) {
        for (range, _) in self.space.frozen() {
            self.space.touched(self.space.pages_of(&range)).flatten().for_each(&mut f);
        }
    }

    fn open_gate(&self) {
        self.space.thaw();
        self.gate.store(false, Ordering::Relaxed);
        self.decider.free();
        self.crew.free();
    }

    /// Sets whether a child inherits the memory. Memory that a child must not have is inherited as zeros. So the
    /// child cannot map anything else at these addresses before it takes the memory over.
    fn inherit(&self, on: bool) -> Sys<()> {
        let kept = if on { &[libc::MADV_DOFORK][..] } else { &[libc::MADV_DONTFORK] };
        let wiped = if on { [libc::MADV_WIPEONFORK, kept[0]] } else { [kept[0], libc::MADV_KEEPONFORK] };
        let advice = |manner: &Manner| if !manner.dont_fork { kept } else { &wiped };
        let managed = self.space.frozen().into_iter().map(|(range, manner)| (range, advice(&manner)));
        for (range, advice) in managed.chain([(self.space.shelf_range(), kept)]) {
            for advice in advice {
                // SAFETY: says only what a child inherits.
                unsafe { sys::advise(range.clone(), *advice) }?;
            }
        }
        Ok(())
    }

    /// In the parent again. A child of a raw fork that found this memory would read zeros for pages that are out.
    fn keep_to_itself(&self) {
        if let Err(error) = self.inherit(false) {
            fatal::say(format_args!("managed memory is left to children of raw system calls: {}", error.io()));
        }
    }

    /// All descriptors that the program must leave alone.
    pub(crate) fn descriptors(&self) -> Vec<i32> {
        let mut all: Vec<i32> = self.stats_fd.iter().map(AsRawFd::as_raw_fd).chain(self.options.stats_fd).collect();
        if self.is_unpaged() {
            return all;
        }
        let _signals = crate::region::content::Signals::block();
        all.extend(self.working_descriptors());
        all.extend(self.decider.lock().side.journal.as_ref().map(JournalFile::descriptor));
        all.extend(self.keeper.get().iter().map(Keeper::descriptor));
        all.extend(self.source.descriptor());
        all.extend(self.swap_files.descriptors());
        all.extend(self.alive.lock().iter().map(AsRawFd::as_raw_fd));
        all
    }

    /// Those that the pager's own threads need, but for the journal, whose lock a fork may hold.
    pub(crate) fn working_descriptors(&self) -> Vec<i32> {
        let mut all = vec![self.uffd.get().raw(), self.pidfd.get().as_raw_fd()];
        all.extend(self.memory.get().descriptor());
        all.extend(self.recording.get().iter().flat_map(Recording::descriptors));
        all.extend(self.log.get().descriptors());
        all.extend(self.tasks().descriptors());
        all
    }
}
