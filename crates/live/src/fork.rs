//! Forks. A child sees the parent's memory as it was at the fork and pages for itself from then on.
//!
//! ```text
//!   prepare   shut the gate, wait until no fault is in flight, bring the log to the device, let the region be inherited
//!   fork      both have the same frames (shared until written), the same engine, the same slots
//!   parent    a slot that the child can see is not reused until the child is gone (its end of a pipe is closed, by exit or exec)
//!   child     a userfaultfd, rings, pipes, a swap file and a budget of its own; the parent's swap file is only read
//! ```
//! A frame that is shared with a child, or was once, must be write-protected before it is held for eviction, since a write would go to a
//! new frame that is not held: each page knows the epoch it was mapped in, and a fork begins another. Outside of `prepare` and the
//! fork the memory is not inherited at all: a child that was made by a raw system call finds nothing there and never zeros.

use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use crate::device::Device;
use crate::fatal;
use crate::pager::Inner;
use crate::pages::Where;
use crate::stats::Stats;
use crate::sys::{self, Notify, Uffd};
use crate::{Faults, LiveError};

impl Inner {
    pub(crate) fn fork_prepare(&self) {
        let mask = sys::block_signals();
        self.gate.store(true, Ordering::Relaxed);
        loop {
            let decider = self.decider.lock();
            if self.active.load(Ordering::Acquire) == 0 {
                std::mem::forget(decider);
                break;
            }
            drop(decider);
            sys::give_way();
        }
        // Another thread's fork may have opened the gate while this one waited.
        self.gate.store(true, Ordering::Relaxed);
        self.space.freeze();
        self.fork_mask.store(mask as usize, Ordering::Relaxed);
        // SAFETY: no fault is in flight.
        (0..self.tasks().len()).for_each(|task| self.settle(unsafe { self.tasks().get(task).todo() }));
        self.log.get().flush(&self.pages, self.stats());
        match sys::pipe(0) {
            Ok((read, write)) => *self.fork_pipe.lock() = Some((sys::move_high(read), sys::move_high(write))),
            Err(error) => fatal::stop(format_args!("no pipe for a fork: {}", error.io())),
        }
        self.inherit(libc::MADV_DOFORK);
    }

    pub(crate) fn fork_parent(&self) {
        self.inherit(libc::MADV_DONTFORK);
        if let Some((read, _write)) = self.fork_pipe.lock().take() {
            self.log.get().adopt(read);
        }
        self.epoch.fetch_add(1, Ordering::Relaxed);
        Stats::add(&self.stats().forks, 1);
        self.reopen();
    }

    pub(crate) fn fork_child(&self) {
        self.inherit(libc::MADV_DONTFORK);
        if let Some((_read, write)) = self.fork_pipe.lock().take() {
            // Open until this process and those that it forks are gone, or run another program.
            std::mem::forget(write);
        }
        if let Err(error) = self.become_own() {
            fatal::stop(format_args!("a forked process cannot page: {error}"));
        }
        self.epoch.fetch_add(1, Ordering::Relaxed);
        let stats = self.stats();
        Stats::add(&stats.processes, 1);
        Stats::add(&stats.frames, self.frames() as u64);
        Stats::add(&stats.resident, self.resident.load(Ordering::Relaxed) as u64);
        let mask = self.fork_mask.load(Ordering::Relaxed) as u64;
        self.open_gate();
        if let Faults::Handlers(count) = self.options.faults {
            crate::handlers::start(self, count);
        }
        sys::restore_signals(mask);
    }

    fn become_own(&self) -> Result<(), LiveError> {
        let notify = match self.options.faults {
            Faults::InThread => Notify::Signal,
            Faults::Handlers(_) => Notify::Message,
        };
        let uffd = Uffd::open(notify).map_err(|e| LiveError::os("userfaultfd", e))?;
        let all = self.space.all();
        uffd.register(all).map_err(|e| LiveError::os("watch memory (UFFDIO_REGISTER)", e))?;
        // Protection does not survive a fork; which pages are clean does.
        uffd.protect(self.space.span(), true).map_err(|e| LiveError::os("protect memory", e))?;
        // SAFETY: a forked child has one thread, and this is it.
        unsafe {
            *self.uffd.renew() = uffd;
            *self.pidfd.renew() = sys::move_high(sys::own_pidfd().map_err(|e| LiveError::os("a pidfd", e))?);
            self.tasks.renew().renew(self.rings)?;
            self.log.renew().inherit(Device::swap(&self.options.backing, self.options.inject)?)?;
        }
        for page in 0..self.space.used_end() {
            // A first write that was under way in another thread of the parent.
            self.pages.change(page, Where::Busy, Where::Dirty);
        }
        // SAFETY: `fork_prepare` has taken the lock. The journal is the parent's.
        unsafe { self.decider.held() }.side.journal = None;
        Ok(())
    }

    fn reopen(&self) {
        let mask = self.fork_mask.load(Ordering::Relaxed) as u64;
        self.open_gate();
        sys::restore_signals(mask);
    }

    fn open_gate(&self) {
        self.space.thaw();
        self.gate.store(false, Ordering::Relaxed);
        self.decider.free();
    }

    fn inherit(&self, advice: i32) {
        // SAFETY: says only whether a child inherits the memory.
        if let Err(error) = unsafe { sys::advise(self.space.all(), advice) } {
            fatal::stop(format_args!("the kernel refused to (un)share memory with a child: {}", error.io()));
        }
    }

    /// All descriptors that the program must leave alone.
    pub(crate) fn descriptors(&self) -> Vec<i32> {
        let mut all = vec![self.uffd.get().raw(), self.pidfd.get().as_raw_fd()];
        all.extend(self.log.get().files().iter().flat_map(Device::descriptors));
        all.extend(self.tasks().descriptors());
        all.extend(self.stats_fd.iter().map(AsRawFd::as_raw_fd));
        all.extend(self.options.stats_fd);
        all
    }
}
