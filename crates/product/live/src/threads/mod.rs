//! The threads of the pager and the process that they run in. Only a start and a fork call this module.
//!
//! [`Threads`] in order: `start`, `stop`. In a forked child: `forget`, `forget_process` and `start`.

mod handlers;
mod lender;
pub mod pager_process;

use std::ffi::c_void;

use crate::region::ManagedMemory;
use crate::sys::thread::RawThread;
use crate::sys::{High, Own, Signals, Sys};
use crate::work::{Sampler, Sleepers, Work};
use crate::LiveError;
use handlers::HandlerPool;
use pager_process::PagerProcess;

pub struct Threads {
    handlers: usize,
    /// The handler threads, if they are in this process.
    pool: Own<Option<HandlerPool>>,
    /// The thread that gives frames back to the run, if there is one.
    lender: Own<Option<RawThread>>,
    /// The process that all threads are in, if they are in one of their own.
    pager_process: Own<Option<PagerProcess>>,
}

impl Threads {
    pub fn new(handlers: usize) -> Threads {
        Threads { handlers, pool: Own::new(None), lender: Own::new(None), pager_process: Own::new(None) }
    }

    /// Starts the threads: in a process of their own (`own_process`), or in this one.
    ///
    /// # Safety
    /// Both live until `stop` has returned, with a pager process until the process ends. This is the only thread that
    /// knows the pager; in a forked child the fork has taken the locks.
    pub unsafe fn start(&self, managed: &ManagedMemory, own_process: bool) -> Result<(), LiveError> {
        // SAFETY: the caller answers for it.
        unsafe {
            match own_process {
                true => *self.pager_process.renew() = Some(self.start_process(managed)?),
                false => self.start_threads(managed).map_err(|e| LiveError::os("threads that handle faults", e))?,
            }
        }
        Ok(())
    }

    /// All threads of the pager, in the calling thread's process.
    unsafe fn start_threads(&self, managed: &ManagedMemory) -> Sys<()> {
        let _signals = Signals::block();
        // SAFETY: the caller answers for it, and what runs neither allocates nor takes a lock of the C library.
        unsafe {
            let log = managed.work.log();
            log.writer.start(write, (&raw const managed.work).cast_mut().cast())?;
            let pool = HandlerPool::start(managed, self.handlers).inspect_err(|_| log.writer.stop());
            *self.pool.renew() = Some(pool?);
            if managed.memory().share.is_on() {
                *self.lender.renew() = Some(lender::start(managed)?);
            }
        }
        Ok(())
    }

    /// Ends the threads of this process. No thread may need them any more.
    pub fn stop(&self, managed: &ManagedMemory) {
        // SAFETY: the pager ends, so only this thread has it.
        unsafe { self.pool.renew() }.take().into_iter().for_each(HandlerPool::stop);
        managed.work.log().writer.stop();
    }

    /// In a forked child, first of all: the handlers are the parent's.
    ///
    /// # Safety
    /// This is its only thread.
    pub unsafe fn forget(&self, managed: &ManagedMemory) {
        // SAFETY: the caller answers for it.
        unsafe { self.pool.renew() }.take().into_iter().for_each(HandlerPool::forget_in_child);
        // Its place is the parent's.
        managed.memory().share.set_place(None);
        // SAFETY: as above.
        unsafe { self.lender.renew() }.take().into_iter().for_each(RawThread::forget_in_child);
        managed.work.reader.forget();
    }

    /// In a forked child whose log is its own already: the pager process is the parent's. Returns whether there is one.
    ///
    /// # Safety
    /// As for `forget`.
    pub unsafe fn forget_process(&self) -> bool {
        // SAFETY: the caller answers for it.
        let pager_process = unsafe { self.pager_process.renew() }.take();
        pager_process.map(PagerProcess::forget_in_child).is_some()
    }

    /// Sends the pager process the descriptor that shows a child's end; `None`: there is no pager process.
    pub fn send_child(&self) -> Option<impl FnOnce(u32, &High) -> bool + '_> {
        self.pager_process
            .get()
            .as_ref()
            .map(|pager_process| |epoch, alive: &High| pager_process.send_child(epoch, alive))
    }
}

unsafe extern "C" fn write(work: *mut c_void) {
    // SAFETY: `start_threads` gave it, and it lives until this thread has been joined.
    let work = unsafe { &*work.cast::<Work>() };
    let (mut sleepers, mut sampler) = (Sleepers::of(work), Sampler::of(work));
    let visit = || sampler.as_mut().map(Sampler::visit).into_iter().chain(sleepers.visit()).min();
    work.log().write_on(work.pages(), work.stats, visit);
}
