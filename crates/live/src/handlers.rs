//! Threads that handle faults. If the process has the rights, they also serve the faults of system calls.
//!
//! If a handler died, threads would wait for ever. So any failure of a handler ends the whole process with a message.
//! The C library does not see these threads (see [`crate::thread`]), and they allocate nothing.
//!
//! One handler leads: it reads the messages and serves those that need no waiting, so that one processor does the
//! work. Before the leader waits, another handler takes the lead (see [`crate::lead`]).
//!
//! A crew is stopped through the descriptor that it reads anyway, so stopping costs nothing during work. The stopping
//! thread touches one control page for each handler. A handler that gets the message for a control page brings the
//! page in and leaves. If another crew follows, the last handler of the crew opens the gate of the next crew with its
//! last step. So some crew always serves faults, and two crews never take each other's messages.
//!
//! ```text
//!   stopper   touch page 0 .. | touch page 1 .. | join
//!   handler A          ▼ leaves
//!   handler B                          ▼ opens the gate of the next crew, leaves
//! ```

use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::fatal;
use crate::lead::Streak;
use crate::memory::Signals;
use crate::pager::{Inner, Kind};
use crate::sys::{self, Errno, Message, Sys};
use crate::thread::{spawn_raw, RawThread};
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
    /// 1 as soon as they may begin.
    open: AtomicU32,
    /// Number of handlers that are ready.
    ready: AtomicU32,
    /// Their control pages, one for each handler.
    control: usize,
    count: AtomicUsize,
    /// The crew that follows them.
    next: AtomicPtr<Shift>,
}

// SAFETY: what it points to outlives its threads, which are joined before either is dropped.
unsafe impl Send for Crew {}

impl Inner {
    /// The pager's first handlers, or those of a forked child.
    pub(crate) fn start_handlers(&self) -> Result<(), LiveError> {
        let _signals = Signals::block();
        let crew = self.hire(true).map_err(|error| LiveError::os("threads that handle faults", error))?;
        *self.crew.lock() = Some(crew);
        Ok(())
    }

    /// Number of threads of this process that belong to the pager.
    pub(crate) fn threads(&self) -> usize {
        let _signals = Signals::block();
        let crew = self.crew.lock();
        match crew.as_ref().filter(|crew| crew.process == sys::process()) {
            Some(crew) => {
                crew.threads.len() + usize::from(self.log.get().has_writer()) + usize::from(self.reclaimer.runs())
            }
            None => 0,
        }
    }

    /// Ends the handlers. No thread may need them any more.
    pub(crate) fn stop_handlers(&self) {
        let _signals = Signals::block();
        if let Some(crew) = self.crew.lock().take() {
            self.dismiss(crew, std::ptr::null_mut());
        }
    }

    /// Replaces the handlers by new ones, with the credentials that the calling thread has now.
    pub(crate) fn renew_handlers(&self) -> Sys<()> {
        let _signals = Signals::block();
        let mut crew = self.crew.lock();
        // A child that shares its parent's memory (vfork) has no handlers and needs none: its parent's handlers serve
        // it.
        if crew.as_ref().is_none_or(|crew| crew.process != sys::process()) {
            return Ok(());
        }
        self.stop_reclaimer();
        self.stop_writer();
        self.start_writer();
        self.start_reclaimer();
        let next = self.hire(false)?;
        if let Some(old) = crew.replace(next) {
            let next = crew.as_ref().map_or(std::ptr::null_mut(), |crew| (&raw const *crew.shift).cast_mut());
            self.dismiss(old, next);
        }
        Ok(())
    }

    /// Runs `work` while the pager has no thread. `work` must not touch managed memory; other threads that touch it
    /// wait meanwhile.
    pub(crate) fn without_handlers<T>(&self, work: impl FnOnce() -> T) -> T {
        let _signals = Signals::block();
        let mut crew = self.crew.lock();
        if crew.as_ref().is_none_or(|crew| crew.process != sys::process()) {
            return work();
        }
        // The start and end of the writer use the allocator, and the handlers may have to bring in its memory.
        self.stop_reclaimer();
        self.stop_writer();
        if let Some(old) = crew.take() {
            self.dismiss(old, std::ptr::null_mut());
        }
        let result = work();
        match self.hire(true) {
            Ok(next) => *crew = Some(next),
            Err(error) => fatal::stop(format_args!("no thread for handling faults: {}", error.io())),
        }
        self.start_writer();
        self.start_reclaimer();
        result
    }

    /// Starts a new crew, with its gate open or shut. Fewer handlers than asked for are enough.
    pub(crate) fn hire(&self, open: bool) -> Sys<Crew> {
        let count = self.options.handlers;
        let control = sys::map_memory(count * PAGE, None)?;
        let pages = control..control + count * PAGE;
        let mut threads = Vec::with_capacity(count);
        let shift = Box::new(Shift {
            inner: self,
            open: AtomicU32::new(0),
            ready: AtomicU32::new(0),
            control,
            count: AtomicUsize::new(0),
            next: AtomicPtr::new(std::ptr::null_mut()),
        });
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
        let crew = Crew { shift, threads, process: sys::process() };
        if open {
            crew.shift.begin();
        }
        Ok(crew)
    }

    /// Ends a crew, and lets the next one begin.
    fn dismiss(&self, crew: Crew, next: *mut Shift) {
        let Crew { shift, threads, process: of } = crew;
        if of != sys::process() {
            // They belong to another process: the parent, if a bare system call has made this one.
            std::mem::forget((shift, threads));
            return;
        }
        shift.next.store(next, Ordering::Release);
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

    /// Lets its handlers read messages.
    fn begin(&self) {
        self.open.store(1, Ordering::Release);
        sys::futex_wake(&self.open, i32::MAX as usize);
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
    while shift.open.load(Ordering::Acquire) == 0 {
        sys::futex_wait(&shift.open, 0);
    }
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
    /// A handler's last step. The last handler lets the next crew begin.
    fn leave(&self, inner: &Inner, turn: usize) {
        if turn + 1 == self.count() {
            // SAFETY: the next crew is there until the stopper, who waits for this thread, has returned.
            if let Some(next) = unsafe { self.next.load(Ordering::Acquire).as_ref() } {
                next.begin();
            }
        }
        let page = self.control + turn * PAGE;
        if let Err(error) = inner.uffd.get().copy(page, inner.space.zeros(), false) {
            fatal::stop(format_args!("a fault handler cannot end: {}", error.io()));
        }
        inner.uffd.get().wake(page);
    }
}
