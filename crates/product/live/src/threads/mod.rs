//! The threads of the pager and the process that they run in. Only a start and a fork call this module.
//!
//! [`Threads`] in order: `start`, `stop`. In a forked child: `forget`, `forget_process` and `start`.

pub mod calls;
mod handlers;
mod lender;
pub mod page_server;
pub mod pager_process;

use std::ffi::c_void;
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::region::ManagedMemory;
use crate::sys::thread::RawThread;
use crate::sys::{self, Own, Signals, Sys};
use crate::work::{Sampler, Sleepers, Work};
use crate::LiveError;
use calls::Calls;
use handlers::HandlerPool;
use page_server::PageServer;
use pager_process::PagerProcess;

/// Processes besides the program that have its memory. More of them end with the program.
const OTHERS: usize = 64;

pub struct Threads {
    handlers: usize,
    /// The handler threads, if they are in this process.
    pool: Own<Option<HandlerPool>>,
    /// The thread that gives frames back to the run, if there is one.
    lender: Own<Option<RawThread>>,
    /// The process that all threads are in, if they are in one of their own.
    pager_process: Own<Option<PagerProcess>>,
    /// What the program's threads have the pager process do.
    pub calls: Calls,
    /// Serves forked children, in a pager process.
    server: Own<Option<(PageServer, Option<RawThread>)>>,
    /// The pidfds of processes that were made with this memory, or -1; for the pager process.
    others: [AtomicI32; OTHERS],
}

impl Threads {
    pub fn new(handlers: usize) -> Threads {
        Threads {
            handlers,
            pool: Own::new(None),
            lender: Own::new(None),
            pager_process: Own::new(None),
            calls: Calls::new(),
            server: Own::new(None),
            others: [const { AtomicI32::new(-1) }; OTHERS],
        }
    }

    /// Starts the threads: in a process of their own (`own_process`), which makes swap files in `folder` (or -1), or in
    /// this one.
    ///
    /// # Safety
    /// Both live until `stop` has returned, with a pager process until the process ends. This is the only thread that
    /// knows the pager; in a forked child the fork has taken the locks.
    pub unsafe fn start(
        &self,
        managed: &ManagedMemory,
        own_process: bool,
        folder: RawFd,
        kept: Option<RawFd>,
    ) -> Result<(), LiveError> {
        // SAFETY: the caller answers for it.
        unsafe {
            *self.server.renew() = own_process.then(PageServer::new).transpose()?.map(|server| (server, None));
            match own_process {
                true => *self.pager_process.renew() = Some(self.start_process(managed, folder, kept)?),
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
            if let Some((server, thread)) = self.server.renew() {
                *thread = Some(server.start(managed)?);
            }
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

    pub fn have_process(&self) -> bool {
        self.pager_process.get().is_some()
    }

    /// Serves the pages of a forked child; none: it cannot be served.
    pub fn server(&self) -> Option<&PageServer> {
        self.server.get().as_ref().map(|(server, _)| server)
    }

    /// Another process has this memory, as the pager process learns.
    pub fn add_other(&self, process: usize) {
        self.calls.run(|| {
            let Ok(other) = sys::pidfd(process) else { return };
            let other = other.into_raw_fd();
            let free = |place: &&AtomicI32| {
                let before = place.load(Ordering::Acquire);
                // A place of one that has ended is free.
                let ended = before < 0 || sys::await_events([before, -1], false).is_ok_and(|[events, _]| events != 0);
                ended && place.compare_exchange(before, other, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            };
            self.others.iter().find(free);
        });
    }

    /// In a forked child, first of all: the handlers are the parent's.
    ///
    /// # Safety
    /// This is its only thread.
    pub unsafe fn forget(&self, managed: &ManagedMemory) {
        // SAFETY: the caller answers for it.
        unsafe { self.pool.renew() }.take().into_iter().for_each(HandlerPool::forget_in_child);
        // SAFETY: as above.
        if let Some((_, Some(thread))) = unsafe { self.server.renew() }.take() {
            thread.forget_in_child();
        }
        // SAFETY: as above.
        unsafe { self.calls.forget() };
        self.others.iter().for_each(|other| other.store(-1, Ordering::Relaxed));
        // Its place is the parent's.
        managed.memory().share.set_place(None);
        // SAFETY: as above.
        unsafe { self.lender.renew() }.take().into_iter().for_each(RawThread::forget_in_child);
        managed.work.reader.forget();
    }

    /// In a forked child: the pager process is the parent's. Returns whether there is one.
    ///
    /// # Safety
    /// As for `forget`.
    pub unsafe fn forget_process(&self) -> bool {
        // SAFETY: the caller answers for it.
        let pager_process = unsafe { self.pager_process.renew() }.take();
        pager_process.map(PagerProcess::forget_in_child).is_some()
    }
}

unsafe extern "C" fn write(work: *mut c_void) {
    // SAFETY: `start_threads` gave it, and it lives until this thread has been joined.
    let work = unsafe { &*work.cast::<Work>() };
    let (mut sleepers, mut sampler) = (Sleepers::of(work), Sampler::of(work));
    let visit = || sampler.as_mut().map(Sampler::visit).into_iter().chain(sleepers.visit()).min();
    work.log().write_on(work.pages(), work.stats, visit);
}
