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

use crate::fault::serve::Kind;
use crate::fault::Faults;
use crate::sys::thread::{spawn_raw, RawThread};
use crate::sys::{self, fatal, Errno, Message, Sys};
use crate::task::lead::Streak;
use crate::PAGE;

/// The handlers of a pager.
pub struct Crew {
    shift: Box<Shift>,
    threads: Vec<RawThread>,
    /// The process that they belong to.
    process: usize,
}

/// What the handlers of a crew share.
struct Shift {
    faults: *const Faults,
    /// Number of handlers that are ready.
    ready: AtomicU32,
    /// Their control pages, one for each handler, and how many of them are mapped.
    control: usize,
    pages: usize,
    count: AtomicUsize,
}

// SAFETY: what it points to outlives its threads, which are joined before either is dropped.
unsafe impl Send for Crew {}

impl Crew {
    /// Starts a crew of `count` handlers; fewer are enough.
    ///
    /// # Safety
    /// `faults` lives until the crew has been dismissed.
    pub unsafe fn hire(faults: &Faults, count: usize) -> Sys<Crew> {
        let control = sys::map_memory(count * PAGE, None)?;
        let pages = control..control + count * PAGE;
        let mut threads = Vec::with_capacity(count);
        let shift =
            Box::new(Shift { faults, ready: AtomicU32::new(0), control, pages: count, count: AtomicUsize::new(0) });
        // SAFETY: says only that a child does not inherit these pages.
        let watched = unsafe { sys::advise(pages.clone(), libc::MADV_DONTFORK) }
            .and_then(|()| faults.memory().uffd().register(pages.clone()));
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

    /// Number of handlers, if they belong to the calling process.
    pub fn len(&self) -> usize {
        if self.process == sys::getpid() {
            self.threads.len()
        } else {
            0
        }
    }

    /// Ends the crew. No thread may need it any more.
    pub fn dismiss(self) {
        let Crew { shift, threads, process: of } = self;
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
        unsafe { sys::unmap_memory(shift.control, shift.pages * PAGE) };
    }

    /// In a forked child: the parent's handlers are not in this process.
    pub fn forget_in_child(self) {
        self.threads.into_iter().for_each(RawThread::forget_in_child);
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
        if let Some(recording) = unsafe { &*self.faults }.work.recording() {
            recording.joins();
        }
        self.ready.fetch_add(1, Ordering::Release);
        sys::futex_wake(&self.ready, 1);
    }

    /// Its handlers.
    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
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
    let faults = unsafe { &*shift.faults };
    let me = sys::thread();
    let mut streak = Streak::default();
    loop {
        faults.work.lead.take(me);
        match faults.memory().uffd().read() {
            Ok(message) => match message.address.wrapping_sub(shift.control) / PAGE {
                turn if turn < shift.count() => {
                    faults.work.lead.give(me);
                    return shift.leave(faults, turn);
                }
                _ => serve(faults, &message, &mut streak),
            },
            Err(Errno::AGAIN) => {}
            Err(error) => fatal::stop(format_args!("faults cannot be read: {}", error.io())),
        }
    }
}

fn serve(faults: &Faults, message: &Message, streak: &mut Streak) {
    let kind = if message.protected { Kind::Protected } else { Kind::Missing };
    faults.work.lead.serves(streak, message.thread);
    faults.serve(message.address, message.write, kind, message.thread);
    faults.memory().uffd().wake(message.address & !(PAGE - 1));
}

impl Shift {
    /// A handler's last step.
    fn leave(&self, faults: &Faults, turn: usize) {
        let page = self.control + turn * PAGE;
        if let Err(error) = faults.memory().uffd().copy(page, faults.memory().space.zeros, false) {
            fatal::stop(format_args!("a fault handler cannot end: {}", error.io()));
        }
        faults.memory().uffd().wake(page);
    }
}
