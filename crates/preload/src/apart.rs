//! Our own stacks for the pager's work in a thread whose stack is managed (a coroutine's stack, or a stack that was
//! given to a thread). The page of such a stack may become the victim of the thread's own work, or leave while the
//! thread holds a lock of the engine. The thread would then wait for a page that only its own work can bring.
//!
//! A thread takes a stack for one piece of work, with all signals blocked. If no stack is free, it waits.

use std::arch::asm;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

use coldframe_live::PAGE;

use crate::sys;

/// Threads on managed stacks that can do the pager's work at a time.
const STACKS: usize = 16;
/// Bytes of one stack; its lowest page is a guard. Pages that are never touched cost nothing.
const STACK: usize = 256 << 10;
const NAP_US: u64 = 20;

/// The stacks' address: they have a mapping of their own. A garbage collector (libgc) reads all data of all loaded
/// libraries, and must not meet a guard page there.
static BASE: AtomicUsize = AtomicUsize::new(0);
/// A bit for each stack in use.
static TAKEN: AtomicU32 = AtomicU32::new(0);

fn bottom(stack: usize) -> usize {
    BASE.load(Relaxed) + stack * STACK
}

/// Makes the stacks, before their first use. Returns false if there is no memory for them.
pub fn start() -> bool {
    let rights = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    // SAFETY: new memory, of which the lowest page of each stack is made a guard.
    unsafe {
        let base = sys::call(libc::SYS_mmap, [0, STACKS * STACK, rights, kind, usize::MAX, 0]);
        if (-4095..0).contains(&base) {
            return false;
        }
        BASE.store(base as usize, Relaxed);
        for stack in 0..STACKS {
            sys::call(libc::SYS_mprotect, [bottom(stack), PAGE, libc::PROT_NONE as usize, 0, 0, 0]);
        }
    }
    true
}

/// In a forked child: its one thread is on none of them.
pub fn free_all() {
    TAKEN.store(0, Relaxed);
}

fn take() -> usize {
    loop {
        let taken = TAKEN.load(Relaxed);
        let free = (!taken).trailing_zeros() as usize;
        if free >= STACKS {
            sys::sleep_us(NAP_US);
        } else if TAKEN.compare_exchange_weak(taken, taken | 1 << free, Acquire, Relaxed).is_ok() {
            return free;
        }
    }
}

/// A function and its result.
struct Job<F, T>(Option<F>, Option<T>);

unsafe extern "C" fn perform<F: FnOnce() -> T, T>(job: *mut c_void) {
    // SAFETY: `run` gave it and waits.
    let Job(work, result) = unsafe { &mut *job.cast::<Job<F, T>>() };
    *result = work.take().map(|work| work());
}

/// Runs `work` on one of our stacks. Call it with all signals blocked back.
#[cold]
pub fn run<F: FnOnce() -> T, T>(work: F) -> T {
    let stack = take();
    let mut job = Job(Some(work), None);
    // SAFETY: the stack is this thread's alone; `perform` fits the job, which outlives the call.
    unsafe { call_on(bottom(stack) + STACK, perform::<F, T>, (&raw mut job).cast()) };
    TAKEN.fetch_and(!(1 << stack), Release);
    job.1.expect("the work has been done")
}

/// Calls `body(argument)` on another stack with the upper end `top`.
///
/// # Safety
/// The stack is free, and the call is sound.
#[inline(never)]
unsafe fn call_on(top: usize, body: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) {
    // SAFETY: the stack pointer is kept in a register that `body` preserves. A panic in `body` ends the process.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("xchg rsp, r12", "call {body}", "mov rsp, r12", body = in(reg) body, inout("r12") top => _, in("rdi") argument,
            clobber_abi("C"));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("mov x9, sp", "mov sp, x20", "mov x20, x9", "blr x8", "mov sp, x20", in("x8") body, inout("x20") top => _,
            in("x0") argument, clobber_abi("C"));
    }
}
