//! Threads that handle faults. If the process has the rights, they also serve the faults of system calls.
//!
//! If a handler died, threads would wait for ever. So any failure of a handler ends the whole process with a message.
//! The C library does not see these threads (see [`crate::sys::thread`]), and they allocate nothing.
//!
//! One handler leads: it reads the messages and serves those that need no waiting, so that one processor does the
//! work. Before the leader waits, another handler takes the lead (see [`crate::task::lead`]).
//!
//! In a program that knows nothing of its pager, the threads are in a process of their own (see [`crate::threads::keeper`]), and
//! end with it. Elsewhere a crew is stopped through the descriptor that it reads anyway, so stopping costs nothing
//! during work. The stopping thread touches one control page for each handler. A handler that gets the message for a
//! control page brings the page in and leaves.

use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::fault::pager::{Inner, Kind};
use crate::region::content::Signals;
use crate::sys::fatal;
use crate::sys::thread::{spawn_raw, RawThread};
use crate::sys::{self, Errno, Message, Sys};
use crate::task::lead::Streak;
use crate::{LiveError, PAGE};

/// The handlers of a pager.
pub(crate) struct Crew {
    shift: Box<Shift>,
    threads: Vec<RawThread>,
    /// The process that they belong to.
    process: usize,
}

/// What the handlers of a crew share.
struct Shift {
    inner: *const Inner,
    /// Number of handlers that are ready.
    ready: AtomicU32,
    /// Their control pages, one for each handler.
    control: usize,
    count: AtomicUsize,
}

// SAFETY: what it points to outlives its threads, which are joined before either is dropped.
unsafe impl Send for Crew {}

impl Inner {
    /// Starts the pager's threads: in a process of their own, or in this one.
    ///
    /// # Safety
    /// This is the only thread that knows the pager.
    pub(crate) unsafe fn start_own(&self, kept: bool) -> Result<(), LiveError> {
        // SAFETY: the caller answers for it.
        unsafe {
            match kept {
                true => *self.keeper.renew() = Some(self.start_keeper()?),
                false => self.start_crew().map_err(|e| LiveError::os("threads that handle faults", e))?,
            }
        }
        Ok(())
    }

    /// All threads of the pager, in the calling thread's process. No other thread knows the pager, or all wait.
    pub(crate) fn start_crew(&self) -> Sys<()> {
        let _signals = Signals::block();
        let crew = self.hire()?;
        // SAFETY: this thread is alone; in a forked child the fork has taken the lock.
        *unsafe { self.crew.held() } = Some(crew);
        self.start_writer();
        self.start_reclaimer();
        Ok(())
    }

    /// Number of threads of this process that belong to the pager.
    pub(crate) fn threads(&self) -> usize {
        let _signals = Signals::block();
        let crew = self.crew.lock();
        crew.as_ref().filter(|crew| crew.process == sys::getpid()).map_or(0, |crew| {
            crew.threads.len() + usize::from(self.log.get().has_writer()) + usize::from(self.reclaimer.runs())
        })
    }

    /// Ends the handlers. No thread may need them any more.
    pub(crate) fn stop_handlers(&self) {
        let _signals = Signals::block();
        if let Some(crew) = self.crew.lock().take() {
            self.dismiss(crew);
        }
    }

    /// Starts a crew. Fewer handlers than asked for are enough.
    fn hire(&self) -> Sys<Crew> {
        let count = self.options.handlers;
        let control = sys::map_memory(count * PAGE, None)?;
        let pages = control..control + count * PAGE;
        let mut threads = Vec::with_capacity(count);
        let shift = Box::new(Shift { inner: self, ready: AtomicU32::new(0), control, count: AtomicUsize::new(0) });
        // SAFETY: says only that a child does not inherit these pages.
        let watched = unsafe { sys::advise(pages.clone(), libc::MADV_DONTFORK) }
            .and_then(|()| self.uffd.get().register(pages.clone()));
        let mut result = watched;
        while result.is_ok() && threads.len() < count {
            // SAFETY: the shift outlives its threads.
            match unsafe { spawn_raw(handler, (&raw const *shift).cast_mut().cast()) } {
                Ok(thread) => threads.push(thread),
                Err(error) if threads.is_empty() => result = Err(error),
                Err(_) => break,
            }
        }
        if let Err(error) = result {
            // SAFETY: no thread knows of them.
            unsafe { sys::unmap_memory(pages.start, pages.len()) };
            return Err(error);
        }
        shift.count.store(threads.len(), Ordering::Relaxed);
        shift.await_all();
        Ok(Crew { shift, threads, process: sys::getpid() })
    }

    /// Ends a crew.
    fn dismiss(&self, crew: Crew) {
        let Crew { shift, threads, process: of } = crew;
        if of != sys::getpid() {
            // They belong to another process: the parent, if a bare system call has made this one.
            std::mem::forget((shift, threads));
            return;
        }
        for i in 0..shift.count() {
            // SAFETY: the page is good for reading, and comes in when a handler leaves for it.
            unsafe { ((shift.control + i * PAGE) as *const u8).read_volatile() };
        }
        threads.into_iter().for_each(RawThread::join);
        // SAFETY: they are no longer used.
        unsafe { sys::unmap_memory(shift.control, shift.len() * PAGE) };
    }

    /// In a forked child that took `crew`'s lock before the fork: the parent's handlers are not in this process.
    pub(crate) fn forget_handlers(crew: &mut Option<Crew>) {
        if let Some(Crew { threads, .. }) = crew.take() {
            threads.into_iter().for_each(RawThread::forget_in_child);
        }
    }
}

impl Shift {
    /// Waits until all handlers of the crew are ready. They are ready before the program begins or goes on.
    fn await_all(&self) {
        loop {
            match self.ready.load(Ordering::Acquire) {
                all if all as usize >= self.count() => return,
                some => sys::futex_wait(&self.ready, some),
            }
        }
    }

    /// The calling handler is ready.
    fn arrives(&self) {
        // SAFETY: the pager outlives the crew.
        if let Some(recording) = unsafe { &*self.inner }.recording.get() {
            recording.joins();
        }
        self.ready.fetch_add(1, Ordering::Release);
        sys::futex_wake(&self.ready, 1);
    }

    /// Its handlers.
    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Control pages that are mapped.
    fn len(&self) -> usize {
        // SAFETY: the pager outlives the crew.
        unsafe { &*self.inner }.options.handlers
    }
}

unsafe extern "C" fn handler(shift: *mut c_void) {
    // SAFETY: `hire` gave it, and joins this thread before it is dropped.
    let shift = unsafe { &*shift.cast::<Shift>() };
    shift.arrives();
    if catch_unwind(AssertUnwindSafe(|| run(shift))).is_err() {
        fatal::stop("a fault handler has failed");
    }
}

fn run(shift: &Shift) {
    // SAFETY: the pager outlives the crew.
    let inner = unsafe { &*shift.inner };
    let me = sys::thread();
    let mut streak = Streak::default();
    loop {
        inner.lead.take(me);
        match inner.uffd.get().read() {
            Ok(message) => match message.address.wrapping_sub(shift.control) / PAGE {
                turn if turn < shift.count() => {
                    inner.lead.give(me);
                    return shift.leave(inner, turn);
                }
                _ => serve(inner, &message, &mut streak),
            },
            Err(Errno::AGAIN) => {}
            Err(error) => fatal::stop(format_args!("faults cannot be read: {}", error.io())),
        }
    }
}

fn serve(inner: &Inner, message: &Message, streak: &mut Streak) {
    let kind = if message.protected { Kind::Protected } else { Kind::Missing };
    inner.lead.serves(streak, message.thread);
    inner.serve(message.address, message.write, kind, message.thread);
    inner.uffd.get().wake(message.address & !(PAGE - 1));
}

impl Shift {
    /// A handler's last step.
    fn leave(&self, inner: &Inner, turn: usize) {
        let page = self.control + turn * PAGE;
        if let Err(error) = inner.uffd.get().copy(page, inner.space.zeros(), false) {
            fatal::stop(format_args!("a fault handler cannot end: {}", error.io()));
        }
        inner.uffd.get().wake(page);
    }
}
