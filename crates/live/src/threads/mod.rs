//! The pager's own threads and the process that they are in. A start and a fork call this room; nothing else knows it.
//!
//! [`Threads`] in order: `start`, `stop`. In a forked child: `forget`, `forget_keeper` and `start`.

mod handlers;
pub mod keeper;

use std::ffi::c_void;

use crate::fault::Faults;
use crate::sys::{High, Own, Signals, Sys};
use crate::work::{Sleepers, Work};
use crate::LiveError;
use handlers::Crew;
use keeper::Keeper;

/// The threads of a pager.
pub struct Threads {
    /// How many handlers there should be.
    handlers: usize,
    /// The handlers, if they are in this process.
    crew: Own<Option<Crew>>,
    /// The process that all threads are in, if they are in one of their own.
    keeper: Own<Option<Keeper>>,
}

impl Threads {
    pub fn new(handlers: usize) -> Threads {
        Threads { handlers, crew: Own::new(None), keeper: Own::new(None) }
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
        // SAFETY: the caller answers for it, and what runs neither allocates nor takes a lock of the C library.
        unsafe {
            let log = faults.work.log();
            log.writer.worker.start(write, (&raw const faults.work).cast_mut().cast())?;
            let crew = Crew::hire(faults, self.handlers).inspect_err(|_| log.writer.worker.stop());
            *self.crew.renew() = Some(crew?);
        }
        Ok(())
    }

    /// Ends the threads of this process. No thread may need them any more.
    pub fn stop(&self, faults: &Faults) {
        // SAFETY: the pager ends, so only this thread has it.
        unsafe { self.crew.renew() }.take().into_iter().for_each(Crew::dismiss);
        faults.work.log().writer.worker.stop();
    }

    /// In a forked child, first of all: the handlers are the parent's.
    ///
    /// # Safety
    /// This is its only thread.
    pub unsafe fn forget(&self, faults: &Faults) {
        // SAFETY: the caller answers for it.
        unsafe { self.crew.renew() }.take().into_iter().for_each(Crew::forget_in_child);
        faults.work.lead.forget();
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
    pub fn tell(&self) -> Option<impl FnOnce(u32, &High) -> bool + '_> {
        self.keeper.get().as_ref().map(|keeper| |epoch, alive: &High| keeper.tell(epoch, alive))
    }
}

unsafe extern "C" fn write(work: *mut c_void) {
    // SAFETY: `start_crew` gave it, and it lives until this thread has been joined.
    let work = unsafe { &*work.cast::<Work>() };
    let mut sleepers = Sleepers::of(work);
    work.log().write_on(work.pages(), work.stats, || sleepers.visit());
}
