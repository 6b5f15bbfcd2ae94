//! Fork. Our handlers are registered before all others, so `prepare` runs last and `child` runs first: other
//! libraries' handlers find their memory in both. The first registration of any library also registers ours, since it
//! may come before the first constructor. An allocator inside the executable is asked for memory, and registers its
//! handlers, while the program is still being loaded.
//!
//! ```text
//! prepare: the C library's list of files ─ the heap's gate ─ the pager
//! (fork itself takes the list again, which the same thread may, and the C library's heap)
//! parent and child: the pager ─ the heap's gate ─ the list
//! ```
//!
//! The list comes first, because a thread may hold it while it waits for a page (`fflush(NULL)` writes from any
//! buffer); once the pager has stopped, that thread would wait for ever. Signals are blocked while the gate is
//! shut: a handler of the program would wait at it.
//!
//! The handlers of other libraries do not run for children that are made without the C library's `fork`. For such a
//! child, [`around`] does what is needed here.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use coldframe_live::PAGE;

use crate::libc_symbols::Symbol;
use crate::memory::{self, pager};
use crate::next::{call_at, next, none};
use crate::ranges::failed;
use crate::sys::Lock;
use crate::{files, gate, stacks, sys, threads, waits};

extern "C" {
    fn _IO_list_lock();
    fn _IO_list_unlock();
    fn _IO_list_resetlock();
}

/// The part of the stack that a fork uses, if a program runs on a stack in managed memory (as coroutines do).
const STACK: usize = 64 << 10;
/// A generous estimate of the stack that the C library's fork and the callers of its handlers use.
const CALLERS: usize = 1 << 10;
/// While it lives, the calling thread's stack stays in RAM, if it is managed: from its upper end down, this many
/// pages.
pub struct Still(usize, usize);

impl Still {
    /// From here on and some way down, as far as there is memory.
    #[inline(never)]
    pub fn here() -> Still {
        let here = Cell::new(0u8);
        // Frames of the fork's own callers may be a little above.
        Still::below((here.as_ptr() as usize + CALLERS).next_multiple_of(PAGE))
    }

    fn below(top: usize) -> Still {
        let managed = |i: &usize| memory::manages(top - (i + 1) * PAGE);
        let pinned = |i: &usize| memory::pin(top - (i + 1) * PAGE..top - i * PAGE).is_ok();
        Still(top, (0..STACK / PAGE).take_while(managed).take_while(pinned).count())
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        if self.1 > 0 {
            memory::unpin(self.0 - self.1 * PAGE..self.0);
        }
    }
}

type Handler = Option<unsafe extern "C" fn()>;

/// The C library's `pthread_atfork`, which is linked into each program, calls this function.
static REGISTER: Symbol = Symbol::own(c"__register_atfork");
static REGISTERED: AtomicBool = AtomicBool::new(false);

pub fn register() {
    if !REGISTERED.swap(true, Relaxed) {
        // SAFETY: the three are functions of that type and stay loaded.
        let result = unsafe { register_next(Some(prepare), Some(parent), Some(child), std::ptr::null_mut()) };
        assert_eq!(result, 0, "pthread_atfork");
    }
}

unsafe fn register_next(prepare: Handler, parent: Handler, child: Handler, library: *mut c_void) -> c_int {
    match REGISTER.address() {
        0 => libc::ENOSYS,
        // SAFETY: the C library's function of that type.
        own => unsafe { call_at!(own, (prepare, parent, child, library)) },
    }
}

/// Replaces the C library's function: no other handlers come before ours.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn __register_atfork(
    prepare: Handler,
    parent: Handler,
    child: Handler,
    library: *mut c_void,
) -> c_int {
    register();
    // SAFETY: the caller's call.
    unsafe { register_next(prepare, parent, child, library) }
}

/// Until a fork is over: its thread's stack, and the signals that the thread had blocked.
static FORKING: Lock<Option<(Still, u64)>> = Lock::new(None);
/// The reason why a thread must not have a child: the thread's number, and the error in the lower half.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// The C library calls this before a fork. If no memory is managed, not yet or not at all, nothing is to be done.
unsafe extern "C" fn prepare() {
    if !memory::ready() {
        return;
    }
    // SAFETY: a recursive lock, opened in `parent` or initialised again in `child`.
    unsafe { _IO_list_lock() };
    let mask = sys::block_signals();
    // SAFETY: it is locked now.
    unsafe { files::pin() };
    let still = Still::here();
    gate::shut();
    FORKING.with(|forking| *forking = Some((still, mask)));
    stacks::run(|| pager().fork_prepare());
}

/// The pager is at work again.
fn done() {
    let forking = FORKING.with(Option::take);
    files::release();
    if let Some((still, mask)) = forking {
        drop(still);
        sys::restore_signals(mask);
    }
}

unsafe extern "C" fn parent() {
    if !memory::ready() {
        return;
    }
    let errno = sys::errno();
    let refused = stacks::run(|| pager().fork_parent()).err().and_then(|error| error.raw_os_error());
    if let Some(error) = refused {
        REFUSED.store(u64::from(sys::thread()) << 32 | error as u64, Relaxed);
    }
    gate::open();
    done();
    // SAFETY: locked in `prepare`.
    unsafe { _IO_list_unlock() };
    sys::set_errno(errno);
}

unsafe extern "C" fn child() {
    if !memory::ready() {
        return;
    }
    stacks::free_all();
    waits::start();
    gate::start(); // before a pager process shares the memory
    stacks::run(|| pager().fork_child());
    gate::open_in_child();
    done();
    // SAFETY: this process has no other thread.
    unsafe { _IO_list_resetlock() };
}

/// Makes a child that the C library's `fork` does not know of. `make` returns 0 in the child; in the parent it
/// returns the child's number or a negative error.
///
/// # Safety
/// `make` makes a process with a copy of this one's memory, or fails.
pub unsafe fn around(make: impl FnOnce() -> isize) -> isize {
    // SAFETY: as the C library calls them.
    unsafe {
        prepare();
        match make() {
            0 => {
                child();
                0
            }
            made => {
                parent();
                made
            }
        }
    }
}

/// Replaces the C library's function: if the kernel does not let a child have the memory, there is no child.
///
/// Signals are blocked from the start, for the C library holds a lock while it looks for the handlers of a fork. A
/// signal handler that needed memory just then would wait for another thread's fork, and that fork for the lock.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fork() -> c_int {
    let mask = sys::block_signals();
    let made = next!(FORK, (), none());
    sys::restore_signals(mask);
    let refused = REFUSED.load(Relaxed);
    if made <= 0 || refused >> 32 != u64::from(sys::thread()) {
        return made;
    }
    REFUSED.store(0, Relaxed);
    // SAFETY: a child of this process, which has ended already.
    unsafe { sys::call(libc::SYS_wait4, [made as usize, 0, libc::__WALL as usize, 0, 0, 0]) };
    sys::set_errno(refused as u32 as i32);
    -1
}

/// Replaces the C library's function, which calls no handlers.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[allow(non_snake_case)] // the C library's name
pub unsafe extern "C" fn _Fork() -> c_int {
    let make = || next!(FORK_ALONE, (), none()) as isize;
    // SAFETY: the C library's function makes a process, or fails.
    unsafe { around(make) as c_int }
}

/// The system calls that make a process: whether this one makes a copy that continues at the place of the call.
pub fn copies(number: i64, flags: usize, stack: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_fork {
        return true;
    }
    number == libc::SYS_clone && flags & libc::CLONE_VM as usize == 0 && stack == 0
}

/// clone3 through `syscall`, with its kind of result. A copy of the program is made as `clone` makes one. ENOSYS, as
/// from kernels that do not have the call: the child would begin elsewhere, or the kernel would have to reach managed
/// memory while the pager stands still.
///
/// # Safety
/// As for the system call.
pub unsafe fn clone3(arguments: usize, len: usize) -> isize {
    /// The least length, and room for more words than any kernel has yet (`struct clone_args`).
    const LEAST: usize = 64;
    let mut own = [0u64; 16];
    // SAFETY: the caller's call, and its arguments, which the kernel would read as well.
    unsafe {
        if arguments != 0 && len >= LEAST {
            std::ptr::copy_nonoverlapping(arguments as *const u8, own.as_mut_ptr().cast(), len.min(size_of_val(&own)));
        }
        let [flags, pidfd, child, parent, signal, stack, _, _, numbers, ..] = own;
        waits::makes(flags as usize, signal as usize);
        if arguments == 0 || len < LEAST || flags & libc::CLONE_VM as u64 != 0 {
            return sys::answer(sys::call(libc::SYS_clone3, [arguments, len, 0, 0, 0, 0]));
        }
        let reached = [pidfd, child, parent, numbers].iter().any(|at| memory::manages(*at as usize));
        if len > size_of_val(&own) || stack != 0 || reached {
            return sys::answer(-(libc::ENOSYS as isize));
        }
        sys::answer(around(|| sys::call(libc::SYS_clone3, [own.as_ptr() as usize, len, 0, 0, 0, 0])))
    }
}

type Body = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The function of a child of `clone`, its argument, and the child's stack.
struct Begin(Body, *mut c_void, Still);

unsafe extern "C" fn begin(what: *mut c_void) -> c_int {
    // SAFETY: `clone` gave it; the child has a copy of the parent's stack.
    unsafe {
        child();
        let Begin(body, argument, still) = what.cast::<Begin>().read();
        drop(still);
        let code = body(argument);
        // The C library would end only this thread, and the pager's threads would live on.
        libc::_exit(code)
    }
}

/// Replaces the C library's function, which makes a child with its own memory without calling the handlers. The last
/// three arguments are present if the flags ask for them.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn clone(
    body: Body,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent_number: usize,
    block: usize,
    child_number: usize,
) -> c_int {
    waits::makes(flags as usize, flags as usize & 0xff);
    let make = |body: Body, what| next!(CLONE, (body, stack, flags, what, parent_number, block, child_number), none());
    if !memory::ready() {
        return make(body, argument);
    }
    if !threads::pinned_for_clone(flags, child_number) {
        return failed(libc::ENOMEM) as c_int;
    }
    if flags & libc::CLONE_VM != 0 {
        return make(body, argument);
    }
    // While the pager stands still, no thread could bring in the child's stack.
    let mut what = Begin(body, argument, Still::below((stack as usize).next_multiple_of(PAGE)));
    // SAFETY: as the C library calls them; `begin` runs what was to run.
    unsafe {
        prepare();
        let made = make(begin, (&raw mut what).cast());
        parent();
        made
    }
}
