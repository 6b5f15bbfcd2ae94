//! Our own stacks for the pager's work in the program's threads. A thread's own stack may be too small for it. Or it
//! is managed (a coroutine's stack, or a stack that was given to a thread): its page may then become the victim of the
//! thread's own work, or leave while the thread holds a lock of the engine, and only that work could bring it back.
//!
//! A thread takes a stack for one piece of work, inside the gate and with all signals blocked. If no stack is free, it
//! waits. That ends: a thread that has a stack waits only for others that have one and for the pager's own threads. A
//! fork takes one when no thread is inside the gate.

use std::arch::asm;
use std::cell::Cell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

use coldframe_live::PAGE;

use crate::sys;

/// Threads that can do the pager's work at a time: the bits of `TAKEN`.
const STACKS: usize = 32;
/// Bytes of one stack; its lowest page is a guard. Pages that are never touched cost nothing.
const STACK: usize = 256 << 10;
const NAP_US: u64 = 20;

/// The stacks' address: they have a mapping of their own. A garbage collector (libgc) reads all data of all loaded
/// libraries, and must not meet a guard page there.
static BASE: AtomicUsize = AtomicUsize::new(0);
static TAKEN: AtomicU32 = AtomicU32::new(0);

fn bottom(stack: usize) -> usize {
    BASE.load(Relaxed) + stack * STACK
}

/// Makes the stacks, before their first use. Returns false if there is no memory for them.
pub fn start() -> bool {
    let base = sys::map_memory(STACKS * STACK).unwrap_or(0);
    BASE.store(base, Relaxed);
    for stack in 0..if base == 0 { 0 } else { STACKS } {
        // SAFETY: the lowest page of each stack becomes a guard.
        unsafe { sys::call(libc::SYS_mprotect, [bottom(stack), PAGE, libc::PROT_NONE as usize, 0, 0, 0]) };
    }
    base != 0
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

/// A function and its result. It is on the caller's stack.
struct Job<F, T>(ManuallyDrop<F>, Option<T>);

unsafe extern "C" fn perform<F: FnOnce() -> T, T>(job: *mut c_void) {
    // SAFETY: `run` gave it and waits. The function is copied to this stack, whole and now: its parts may be needed
    // while a lock is held that would bring in the caller's.
    unsafe {
        let job = job.cast::<Job<F, T>>();
        let work = ManuallyDrop::into_inner((&raw const (*job).0).read_volatile());
        let result = work();
        (*job).1 = Some(result);
    }
}

/// Runs `work` on one of our stacks. Call it with all signals blocked. What lives for `'static` borrows nothing from
/// the caller's stack.
pub fn run<F: FnOnce() -> T + 'static, T: 'static>(work: F) -> T {
    let here = Cell::new(0u8);
    if (here.as_ptr() as usize).wrapping_sub(bottom(0)) < STACKS * STACK {
        return work();
    }
    let stack = take();
    let mut job = Job(ManuallyDrop::new(work), None);
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
        asm!("xchg rsp, r12", "call {body}", "mov rsp, r12", body = in(reg) body, inout("r12") top => _,
            in("rdi") argument, clobber_abi("C"));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("mov x9, sp", "mov sp, x20", "mov x20, x9", "blr x8", "mov sp, x20", in("x8") body, inout("x20") top => _,
            in("x0") argument, clobber_abi("C"));
    }
}
