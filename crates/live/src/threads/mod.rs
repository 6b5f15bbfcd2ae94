//! The pager's own threads and the process that they are in. A start and a fork call this room; nothing else knows it.
//!
//! [`Threads`] in order: `start`, `stop`. Around a fork: `hold_still`, then `free` in both processes; in the child
//! `forget`, `forget_keeper` and `start` before that.

mod handlers;
pub mod keeper;

use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::fault::Faults;
use crate::sys::lock::Lock;
use crate::sys::{fatal, Own, Signals, Sys};
use crate::work::{Sleepers, Work};
use crate::LiveError;
use handlers::Crew;
use keeper::Keeper;

/// The threads of a pager.
pub struct Threads {
    /// How many handlers there should be.
    handlers: usize,
    /// The handlers, if they are in this process.
    crew: Lock<Option<Crew>>,
    /// The process that all threads are in, if they are in one of their own.
    keeper: Own<Option<Keeper>>,
}

impl Threads {
    pub fn new(handlers: usize) -> Threads {
        Threads { handlers, crew: Lock::new(None), keeper: Own::new(None) }
    }

    /// Starts the threads: in a process of their own (`kept`), or in this one.
    ///
    /// # Safety
    /// Both live until `stop` has returned, with a keeper until the process ends. This is the only thread that knows
    /// the pager; in a forked child the fork has taken the locks.
    pub unsafe fn start(&self, faults: &Faults, kept: bool) -> Result<(), LiveError> {
        // SAFETY: the caller answers for it.
        unsafe {
            match kept {
                true => *self.keeper.renew() = Some(self.start_keeper(faults)?),
                false => self.start_crew(faults).map_err(|e| LiveError::os("threads that handle faults", e))?,
            }
        }
        Ok(())
    }

    /// All threads of the pager, in the calling thread's process.
    unsafe fn start_crew(&self, faults: &Faults) -> Sys<()> {
        let _signals = Signals::block();
        let argument = (&raw const *faults).cast_mut().cast::<c_void>();
        // SAFETY: the caller answers for it, and what runs neither allocates nor takes a lock of the C library.
        unsafe {
            *self.crew.held() = Some(Crew::hire(faults, self.handlers)?);
            faults.work.log().start_writer(write, (&raw const faults.work).cast_mut().cast());
            faults.reclaimer.start(reclaim, argument);
        }
        Ok(())
    }

    /// Number of threads of this process that belong to the pager, without the reclaimer: a recorder, which asks, has
    /// none.
    pub fn count(&self, faults: &Faults) -> usize {
        let _signals = Signals::block();
        let crew = self.crew.lock().as_ref().map_or(0, Crew::len);
        if crew == 0 {
            0
        } else {
            crew + usize::from(faults.work.log().has_writer())
        }
    }

    /// Ends the threads of this process. No thread may need them any more.
    pub fn stop(&self, faults: &Faults) {
        faults.reclaimer.stop();
        let signals = Signals::block();
        self.crew.lock().take().into_iter().for_each(Crew::dismiss);
        drop(signals);
        faults.work.log().stop_writer();
    }

    /// Before a fork.
    pub fn hold_still(&self) {
        std::mem::forget(self.crew.lock());
    }

    /// After a fork, in parent and child.
    pub fn free(&self) {
        self.crew.free();
    }

    /// In a forked child, first of all: handlers and reclaimer are the parent's.
    ///
    /// # Safety
    /// This is its only thread, and `hold_still` was called before the fork.
    pub unsafe fn forget(&self, faults: &Faults) {
        // SAFETY: the caller answers for it.
        unsafe { self.crew.held().take() }.into_iter().for_each(Crew::forget_in_child);
        faults.work.lead.forget();
        faults.reclaimer.forget();
    }

    /// In a forked child whose log is its own already: the keeper is the parent's. Returns whether there is one.
    ///
    /// # Safety
    /// As for `forget`.
    pub unsafe fn forget_keeper(&self) -> bool {
        // SAFETY: the caller answers for it.
        let keeper = unsafe { self.keeper.renew() }.take();
        keeper.map(Keeper::forget_in_child).is_some()
    }

    /// How the keeper is told by which descriptor a child's end is seen, if there is one.
    pub fn tell(&self) -> Option<impl FnOnce(u32, &OwnedFd) -> bool + '_> {
        self.keeper.get().as_ref().map(|keeper| |epoch, alive: &OwnedFd| keeper.tell(epoch, alive))
    }

    /// The descriptor by which the program speaks to the keeper.
    pub fn descriptor(&self) -> Option<i32> {
        self.keeper.get().as_ref().map(Keeper::descriptor)
    }
}

unsafe extern "C" fn write(work: *mut c_void) {
    // SAFETY: `start_crew` gave it, and it lives until this thread has been joined.
    let work = unsafe { &*work.cast::<Work>() };
    work.log().write_on(work.pages(), work.stats, &mut Sleepers::of(work));
}

unsafe extern "C" fn reclaim(faults: *mut c_void) {
    // SAFETY: as above.
    let faults = unsafe { &*faults.cast::<Faults>() };
    if catch_unwind(AssertUnwindSafe(|| faults.reclaim_on())).is_err() {
        fatal::stop("the thread that takes pages out has failed");
    }
}
