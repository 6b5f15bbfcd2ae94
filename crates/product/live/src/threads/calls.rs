//! Calls of the program's threads that need the pager's descriptors. Only the pager process has these, so its threads
//! carry out the calls: they share the program's memory.
//!
//! ```text
//!   program's thread   place taken ─ function and argument ─ posted ─ sleeps ············· continues
//!   pager process                                             └► a worker runs it ─ done ──┘
//! ```
//! A thread waits with all signals blocked. A worker holds nothing while it reads the function from the program's
//! stack and writes the result there: that stack may be managed.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering::*};

use crate::sys::thread::{spawn, Body, RawThread, THREAD};
use crate::sys::{self, pids, Own, Signals, Sys};

/// Calls at a time; further threads wait. Two of them may be long: pins that load pages, and a fork.
pub const WORKERS: usize = 4;
const PLACES: usize = 32;
/// A thread that waits for a call, and a worker after one, look for this long before they sleep: about what it takes to
/// wake the other. Calls come in bursts.
const LOOKING_NS: u64 = 50_000;
const NAP_US: u64 = 20;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const POSTED: u32 = 2;
const RUNS: u32 = 3;
const DONE: u32 = 4;

struct Place {
    state: AtomicU32,
    call: UnsafeCell<(Body, *mut c_void)>,
}

/// The calls of a process, in memory that its pager process shares.
pub struct Calls {
    places: [Place; PLACES],
    /// Grows with each call.
    posted: AtomicU32,
    idle: AtomicU32,
    /// There is more than one processor: the other side can work meanwhile.
    may_look: bool,
    workers: Own<[Option<RawThread>; WORKERS]>,
}

// SAFETY: a place's call is written by who has taken the place, and read by the worker that runs it.
unsafe impl Sync for Calls {}
// SAFETY: as above.
unsafe impl Send for Calls {}

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// A function and its result, on the stack of the thread that waits for it.
struct PostedCall<F, T>(ManuallyDrop<F>, Option<T>);

unsafe extern "C" fn perform<F: FnOnce() -> T, T>(job: *mut c_void) {
    // SAFETY: `run` gave it and waits. The function is copied to this stack, whole and now: its parts may be needed
    // while a lock is held that would bring in the caller's stack.
    unsafe {
        let job = job.cast::<PostedCall<F, T>>();
        let result = ManuallyDrop::into_inner((&raw const (*job).0).read_volatile())();
        (*job).1 = Some(result);
    }
}

impl Calls {
    pub fn new() -> Calls {
        let place = || Place { state: AtomicU32::new(FREE), call: UnsafeCell::new((nothing, std::ptr::null_mut())) };
        Calls {
            places: std::array::from_fn(|_| place()),
            posted: AtomicU32::new(0),
            idle: AtomicU32::new(0),
            may_look: rustix::thread::sched_getaffinity(None).is_ok_and(|set| set.count() > 1),
            workers: Own::new([const { None }; WORKERS]),
        }
    }

    /// Runs `work` where the pager's descriptors are: in the pager process, if there is one.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        if !pids::pager_is_elsewhere() {
            return work();
        }
        let _signals = Signals::block();
        self.elsewhere(work)
    }

    fn elsewhere<F: FnOnce() -> T, T>(&self, work: F) -> T {
        let mut job = PostedCall(ManuallyDrop::new(work), None);
        let place = self.take();
        // SAFETY: the place is this thread's.
        unsafe { *place.call.get() = (perform::<F, T>, (&raw mut job).cast()) };
        place.state.store(POSTED, SeqCst);
        self.posted.fetch_add(1, SeqCst);
        if self.idle.load(SeqCst) > 0 {
            sys::futex_wake(&self.posted, 1);
        }
        self.look(|| place.state.load(Acquire) == DONE);
        loop {
            match place.state.load(Acquire) {
                DONE => break,
                state => sys::futex_wait(&place.state, state),
            }
        }
        place.state.store(FREE, Release);
        // SAFETY: the worker has written it.
        unsafe { (&raw const job.1).read_volatile() }.expect("the call is done")
    }

    /// Looks for a while whether something has happened.
    fn look(&self, has_happened: impl Fn() -> bool) {
        let end = sys::now() + LOOKING_NS;
        while self.may_look && !has_happened() && sys::now() < end {
            (0..20).for_each(|_| std::hint::spin_loop());
        }
    }

    fn take(&self) -> &Place {
        let free = |place: &&Place| place.state.compare_exchange(FREE, TAKEN, AcqRel, Relaxed).is_ok();
        loop {
            match self.places.iter().find(free) {
                Some(place) => return place,
                None => sys::sleep_us(NAP_US),
            }
        }
    }

    /// In a forked child: the calls are those of its parent's threads.
    ///
    /// # Safety
    /// This is its only thread.
    pub unsafe fn forget(&self) {
        // SAFETY: the caller answers for it.
        unsafe { self.workers.renew() }.iter_mut().filter_map(Option::take).for_each(RawThread::forget_in_child);
        self.places.iter().for_each(|place| place.state.store(FREE, Relaxed));
        self.idle.store(0, Relaxed);
    }

    /// Starts the workers, in a pager process.
    ///
    /// # Safety
    /// This lives as long as the process, and no other thread knows it.
    pub unsafe fn start(&self) -> Sys<()> {
        // SAFETY: the caller answers for it. They end with the process.
        unsafe {
            for worker in self.workers.renew() {
                *worker = Some(spawn(work, (&raw const *self).cast_mut().cast(), THREAD)?);
            }
        }
        Ok(())
    }

    fn work(&self) -> ! {
        loop {
            let posted = self.posted.load(SeqCst);
            let next = |place: &&Place| place.state.compare_exchange(POSTED, RUNS, AcqRel, Relaxed).is_ok();
            if let Some(place) = self.places.iter().find(next) {
                // SAFETY: posted by a thread that waits for its end.
                unsafe {
                    let (body, job) = *place.call.get();
                    body(job);
                }
                place.state.store(DONE, SeqCst);
                sys::futex_wake(&place.state, 1);
                self.look(|| self.posted.load(Relaxed) != posted);
                continue;
            }
            self.idle.fetch_add(1, SeqCst);
            sys::futex_wait(&self.posted, posted);
            self.idle.fetch_sub(1, SeqCst);
        }
    }
}

unsafe extern "C" fn work(calls: *mut c_void) {
    // SAFETY: `start` gave it.
    unsafe { &*calls.cast::<Calls>() }.work()
}
