//! Forks. A child sees the parent's memory as it was at the fork and pages for itself from then on.
//!
//! ```text
//!   prepare   shut the gate, wait until no fault is in flight, bring the log to the device, let the memory be
//!             inherited, get what the child needs and the parent can get: its swap file, a pipe that shows when the
//!             child is gone
//!   fork      both have the same frames (shared until written), the same engine, the same slots
//!   parent    a slot that the child can see is not reused until the child is gone (exit or exec closes its end of
//!             the pipe)
//!   child     its own userfaultfd, rings, pipes, threads, and place in the budget; the parent's swap file is only read
//! ```
//! If a child does not get one of these, it cannot page. It then runs without paging (`region/unpaged.rs`); it is not
//! stopped. A child that shares its parent's table of descriptors runs so, too: what it closes, its parent loses.
//!
//! A frame that is or was shared with a child must be write-protected before it goes into the pipe of an eviction: a
//! write would go to a new frame that is not there. Each page knows the epoch in which it was mapped, and a fork begins
//! a new epoch. Outside of `prepare` and the fork, a child does not inherit the memory. So a child made by a raw system
//! call finds no memory there, and never zeros. Until the child's pager has started, zeros hold the place, so that
//! other mappings of the child, including the pager's own memory, get other addresses.

use std::os::fd::AsRawFd;

use super::Inner;
use crate::memory::extents::Manner;
use crate::memory::space;
use crate::page::pages::Where;
use crate::stats::Stats;
use crate::swap::device::Device;
use crate::swap::files::SwapFiles;
use crate::sys::lock::Lock;
use crate::sys::{self, fatal, Errno, High, Sys};
use crate::LiveError;

/// What a child gets from its parent.
struct Ready {
    /// Both ends of a pipe. The child keeps the second end open while it can see the parent's slots. None: there were
    /// no descriptors, and the slots that the child sees are kept for ever.
    alive: Option<(High, High)>,
    /// None: it does not page, since slow memory serves one process, or since it shares the descriptors.
    device: Option<Result<Device, LiveError>>,
    shares: bool,
    /// The kernel refused to let the memory be inherited: there must be no child.
    refused: Option<Errno>,
}

pub struct Forks {
    /// What a child gets; present from `prepare` until the fork is over.
    ready: Lock<Option<Ready>>,
    /// The pipes that show the parent processes that this one lives.
    alive: Lock<Vec<High>>,
    files: SwapFiles,
}

impl Forks {
    pub fn new(files: SwapFiles) -> Forks {
        Forks { ready: Lock::new(None), alive: Lock::new(Vec::new()), files }
    }
}

impl Inner {
    /// Signals are blocked, here and until the fork is over.
    pub fn fork_prepare(&self, shares: bool) {
        self.managed.take_over();
        self.managed.space().hold_still();
        self.managed.gate.close();
        self.managed.space().freeze();
        if self.managed.memory().is_plain() {
            return;
        }
        self.managed.work.log().fork_prepare();
        let slow = self.managed.space().is_of_file();
        if slow {
            self.fill_dropped();
        }
        let refused = self.inherit(true).err();
        let pipe = sys::with_room(|_| sys::pipe(0)).ok();
        let alive = pipe.map(|(read, write)| (sys::move_high(read), sys::move_high(write)));
        let waits = slow || shares;
        let refused = refused.or((waits && alive.is_none()).then_some(Errno::AGAIN));
        let device = (!waits).then(|| self.forks.files.another());
        *self.forks.ready.lock() = Some(Ready { alive, device, shares, refused });
    }

    /// Pages that a raw system call has dropped are zeros in a child, too, and not what is in their slots.
    fn fill_dropped(&self) {
        let (space, memory) = (self.managed.space(), self.managed.memory());
        for (range, _) in space.frozen() {
            let touched = space.touched(space.pages_of(&range)).flatten();
            let here = |state: Where| state.is_mapped() || state == Where::InPlace;
            touched.filter(|page| here(memory.pages.get(*page))).for_each(|page| _ = memory.refill(page));
        }
    }

    /// Returns the reason if there must be no child. If a child was made all the same, it has ended at once.
    pub fn fork_parent(&self, child: usize) -> Sys<()> {
        let mut refused = None;
        if !self.managed.memory().is_plain() {
            self.keep_to_itself();
            let ready = self.forks.ready.lock().take();
            refused = ready.as_ref().and_then(|ready| ready.refused);
            let shares = ready.as_ref().is_some_and(|ready| ready.shares);
            let mut alive = ready.and_then(|ready| ready.alive);
            if let (true, Some((read, _)), Ok(child)) = (shares && child > 0, &alive, sys::pidfd(child)) {
                // It has all of its memory, or has ended. Then the log learns that nobody reads the slots.
                let _ = sys::await_events([read.as_raw_fd(), child.as_raw_fd()], true);
            }
            if self.managed.space().is_of_file() {
                if let Some((read, _)) = alive.take().map(|(read, write)| (read, drop(write))) {
                    // The child copies all pages out of slow memory first.
                    let _ = sys::await_events([read.as_raw_fd(), -1], true);
                }
            }
            self.managed.work.log().fork_parent(alive.map(|(read, _write)| read), self.threads.send_child());
            self.managed.memory().begin_epoch();
            Stats::add(&self.stats.forks, 1);
        }
        self.open_gate();
        refused.map_or(Ok(()), Err)
    }

    pub fn fork_child(&self) {
        // SAFETY: a forked child has one thread, and this is it.
        unsafe { self.threads.forget(&self.managed) };
        self.managed.memory().count_anew();
        if self.managed.memory().is_plain() {
            self.open_gate();
            return self.managed.settle(|_, _| Ok(()));
        }
        let Some(Ready { alive, device, shares, refused }) = self.forks.ready.lock().take() else {
            fatal::stop("internal error: a fork that was not prepared")
        };
        if let Some(error) = refused {
            fatal::stop(format_args!("the kernel refused to share memory with a child: {}", sys::words(error)));
        }
        // Open until this process and its forks are gone, or run another program.
        if shares {
            return self.share_descriptors(alive);
        }
        self.forks.alive.lock().extend(alive.map(|(_read, write)| write));
        let own = device.map(|device| device.and_then(|device| sys::with_room(|_| self.become_own(device))));
        self.managed.memory().forget_threads();
        // SAFETY: `fork_prepare` has taken the lock. The journal is the parent's.
        *unsafe { self.managed.gate.held() }.journal() = None;
        self.managed.memory().begin_epoch();
        self.open_gate();
        match own {
            Some(Ok(())) => {
                self.count_in();
                // If the parent could not lock it, neither can this process; the parent has reported that.
                self.keep_plaintext();
                self.managed.after_fork();
            }
            own => {
                // Its parent's pager does not wait for this process.
                // SAFETY: a forked child has one thread, and this is it.
                unsafe { self.threads.forget_process() };
                self.managed.run_unpaged(own.and_then(Result::err).as_ref());
                // The parents' swap files are not read any more.
                self.forks.alive.lock().clear();
            }
        }
    }

    /// In a child that has its parent's descriptors: it reads all pages by them, tells the parent, and closes none.
    fn share_descriptors(&self, alive: Option<(High, High)>) {
        self.managed.memory().forget_threads();
        self.open_gate();
        self.managed.run_unpaged(Some(&LiveError::Missing {
            feature: "a pager for it",
            reason: "it shares its parent's table of descriptors".to_string(),
            remedy: "make it without CLONE_FILES",
        }));
        if let Some((read, write)) = alive {
            let _ = rustix::io::write(&*write, b"x");
            let _numbers = (read.into_raw(), write.into_raw());
        }
        self.forks.alive.lock().drain(..).for_each(|inherited| _ = inherited.into_raw());
    }

    /// Makes all that a pager needs. The gate is shut, and this is the child's only thread.
    fn become_own(&self, device: Device) -> Result<(), LiveError> {
        // SAFETY: a forked child has one thread, and this is it.
        let own_process = unsafe {
            self.managed.work.renew(device)?;
            self.threads.forget_process()
        };
        self.forks.files.renew();
        // SAFETY: as above.
        unsafe { self.managed.work.renew_recording(self.options.record.as_ref())? };
        let uffd = self.source.make(false).map_err(|e| LiveError::os("userfaultfd", e))?;
        // SAFETY: as above.
        let parents = unsafe { self.managed.memory().watch_with(uffd) };
        // SAFETY: as above; the pager lives as long as its process, or stops the threads.
        self.watch_all().and_then(|()| unsafe { self.threads.start(&self.managed, own_process) }).inspect_err(|_| {
            // It is closed, and the memory is no longer watched. The parent's descriptor takes its place and is not
            // used.
            // SAFETY: as above.
            drop(unsafe { self.managed.memory().watch_with(parents) });
        })
    }

    fn open_gate(&self) {
        self.managed.space().thaw();
        self.managed.gate.open();
    }

    fn watch_all(&self) -> Result<(), LiveError> {
        let uffd = self.managed.memory().uffd();
        let watch = |range| uffd.register(range).map_err(|e| LiveError::os("watch memory (UFFDIO_REGISTER)", e));
        watch(self.managed.space().aside_range())?;
        for (range, manner) in self.managed.space().frozen() {
            if !manner.dont_fork {
                self.dont_inherit(&range)?;
                watch(range.clone())?;
                self.protect_clean(self.managed.space().pages_of(&range))?;
            } else {
                // Zeros hold the place; it is closed as soon as there are handlers.
                // SAFETY: the child has nothing there.
                let mapped =
                    unsafe { space::map_plain(&range, manner.protection).and_then(|()| space::prepare(&range)) };
                mapped.map_err(|e| LiveError::os("map memory", e))?;
                watch(range)?;
            }
        }
        self.dont_inherit(&self.managed.space().aside_range())
    }

    /// A fork loses the write protection, but not the record of which pages are clean. Other pages stay writable:
    /// this thread's own stack may be among them.
    fn protect_clean(&self, pages: std::ops::Range<usize>) -> Result<(), LiveError> {
        let space = self.managed.space();
        let clean = space.touched(pages).flatten().filter(|page| self.managed.pages().get(*page) == Where::Clean);
        let protected = space.runs(clean).try_for_each(|run| self.managed.memory().uffd().protect(run, true));
        protected.map_err(|e| LiveError::os("protect memory", e))
    }

    fn dont_inherit(&self, range: &std::ops::Range<usize>) -> Result<(), LiveError> {
        // SAFETY: says only whether a child inherits the memory.
        unsafe { sys::advise(range.clone(), libc::MADV_DONTFORK) }.map_err(|e| LiveError::os("MADV_DONTFORK", e))
    }

    /// Sets whether a child inherits the memory. Memory that a child must not have is inherited as zeros. So the
    /// child cannot map anything else at these addresses before it takes the memory over.
    fn inherit(&self, on: bool) -> Sys<()> {
        let inherited = if on { &[libc::MADV_DOFORK][..] } else { &[libc::MADV_DONTFORK] };
        let wiped = if on { [libc::MADV_WIPEONFORK, inherited[0]] } else { [inherited[0], libc::MADV_KEEPONFORK] };
        // A child takes nothing over from slow memory; and the kernel wipes no mapping of a file.
        let all = self.managed.space().is_of_file();
        let advice = |manner: &Manner| if all || !manner.dont_fork { inherited } else { &wiped };
        let managed = self.managed.space().frozen().into_iter().map(|(range, manner)| (range, advice(&manner)));
        for (range, advice) in managed.chain([(self.managed.space().aside_range(), inherited)]) {
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
            fatal::say(format_args!("managed memory is left to children of raw system calls: {}", sys::words(error)));
        }
    }
}
