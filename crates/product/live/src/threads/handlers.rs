//! Threads that handle faults. If the process has the rights, they also serve the faults of system calls.
//!
//! If a handler died, threads would wait for ever. So any failure of a handler ends the whole process with a message.
//! The C library does not see these threads (see [`crate::sys::thread`]), and they allocate nothing.
//!
//! One handler thread reads the messages and serves those that need no waiting, so that one processor does the work.
//! Before it waits, another one becomes the reader (see [`crate::task::message_reader`]).
//!
//! In a program that knows nothing of its pager, the threads are in a process of their own (see
//! [`crate::threads::pager_process`]), and end with it. Elsewhere a pool is stopped through the descriptor that it
//! reads anyway, so stopping costs nothing during work. The stopping thread touches a control page. The handler that
//! gets the message for it brings the page in and ends, and so does each one that becomes the reader after it.

use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::fault::serve::FaultKind;
use crate::region::ManagedMemory;
use crate::sys::thread::{spawn, RawThread, THREAD};
use crate::sys::{self, fatal, Errno, Message, Sys};
use crate::task::message_reader::Consecutive;
use crate::PAGE;

pub struct HandlerPool {
    shared: Box<Shared>,
    threads: Vec<RawThread>,
    process: usize,
}

struct Shared {
    managed: *const ManagedMemory,
    ready: AtomicU32,
    /// The control page, and whether it has been touched.
    control: usize,
    over: AtomicBool,
}

// SAFETY: what it points to outlives its threads, which are joined before either is dropped.
unsafe impl Send for Shared {}
// SAFETY: as above; the rest are atomic, or do not change.
unsafe impl Sync for Shared {}

impl HandlerPool {
    /// Starts a pool of `count` handler threads.
    ///
    /// # Safety
    /// `managed` lives until the pool has been stopped.
    pub unsafe fn start(managed: &ManagedMemory, count: usize) -> Sys<HandlerPool> {
        let control = sys::map_memory(PAGE)?;
        let shared = Box::new(Shared { managed, ready: AtomicU32::new(0), control, over: AtomicBool::new(false) });
        let mut pool = HandlerPool { shared, threads: Vec::with_capacity(count), process: sys::getpid() };
        let page = control..control + PAGE;
        // SAFETY: says only that a child does not inherit the page.
        let mut result = unsafe { sys::advise(page.clone(), libc::MADV_DONTFORK) }
            .and_then(|()| managed.memory().uffd().register(page));
        while result.is_ok() && pool.threads.len() < count {
            // SAFETY: the shared state outlives its threads.
            let thread = unsafe { spawn(handler, (&raw const *pool.shared).cast_mut().cast(), THREAD) };
            result = thread.map(|thread| pool.threads.push(thread));
        }
        match result {
            Ok(()) => pool.shared.await_all(count),
            Err(error) => {
                pool.stop();
                return Err(error);
            }
        }
        Ok(pool)
    }

    /// Ends the threads. No other thread may need them any more.
    pub fn stop(self) {
        let HandlerPool { shared, threads, process } = self;
        if process != sys::getpid() {
            // They belong to another process: the parent, if a bare system call has made this one.
            std::mem::forget((shared, threads));
            return;
        }
        if !threads.is_empty() {
            // SAFETY: the page is good for reading, and comes in when a handler leaves for it.
            unsafe { (shared.control as *const u8).read_volatile() };
        }
        threads.into_iter().for_each(RawThread::join);
        // SAFETY: it is no longer used.
        unsafe { sys::unmap_memory(shared.control, PAGE) };
    }

    /// In a forked child: the parent's handlers are not in this process.
    pub fn forget_in_child(self) {
        self.threads.into_iter().for_each(RawThread::forget_in_child);
    }
}

impl Shared {
    /// Waits until all threads of the pool are ready. They are ready before the program begins or continues.
    fn await_all(&self, count: usize) {
        loop {
            match self.ready.load(Ordering::Acquire) {
                all if all as usize >= count => return,
                some => sys::futex_wait(&self.ready, some),
            }
        }
    }

    fn arrives(&self) {
        // SAFETY: the pager outlives the pool.
        if let Some(recording) = unsafe { &*self.managed }.work.recording() {
            recording.joins();
        }
        self.ready.fetch_add(1, Ordering::Release);
        sys::futex_wake(&self.ready, 1);
    }

    fn ends(&self, managed: &ManagedMemory) {
        self.over.store(true, Ordering::Release);
        if let Err(error) = managed.memory().uffd().copy(self.control, managed.memory().space.zeros, false) {
            fatal::stop(format_args!("a fault handler cannot end: {}", sys::words(error)));
        }
        managed.memory().uffd().wake(self.control);
    }
}

unsafe extern "C" fn handler(shared: *mut c_void) {
    // SAFETY: `HandlerPool::start` gave it, and its pool joins this thread before it is dropped.
    let shared = unsafe { &*shared.cast::<Shared>() };
    shared.arrives();
    if catch_unwind(AssertUnwindSafe(|| run(shared))).is_err() {
        fatal::stop("a fault handler has failed");
    }
}

fn run(shared: &Shared) {
    // SAFETY: the pager outlives the pool.
    let managed = unsafe { &*shared.managed };
    let me = sys::thread();
    let mut consecutive = Consecutive::default();
    managed.work.reader.become_reader(me);
    while !shared.over.load(Ordering::Acquire) {
        match managed.memory().uffd().read(!managed.stats.are_awake()) {
            Ok(message) if message.address & !(PAGE - 1) == shared.control => shared.ends(managed),
            Ok(message) => serve(managed, &message, &mut consecutive),
            Err(Errno::AGAIN) => {}
            Err(error) => fatal::stop(format_args!("faults cannot be read: {}", sys::words(error))),
        }
        managed.work.reader.become_reader(me);
    }
    managed.work.reader.resign(me);
}

fn serve(managed: &ManagedMemory, message: &Message, consecutive: &mut Consecutive) {
    let kind = if message.protected { FaultKind::Protected } else { FaultKind::Missing };
    managed.work.reader.serves(consecutive, message.thread);
    managed.serve(message.address, message.write, kind, message.thread);
    managed.memory().uffd().wake(message.address & !(PAGE - 1));
}
