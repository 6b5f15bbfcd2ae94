//! Faults in the thread that faulted: the kernel sends SIGBUS, and the handler resolves the fault before it returns.
//!
//! While the handler runs every signal is blocked, so no handler of the program can run, fault in its turn, and wait for a lock that
//! its own thread holds.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use crate::lock::Lock;
use crate::memory::Signals;
use crate::pager::{Inner, Kind};
use crate::sys;
use crate::LiveError;

/// Pagers whose faults come as signals.
const PAGERS: usize = 16;

static PAGERS_HERE: [AtomicPtr<Inner>; PAGERS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; PAGERS];
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);
static INSTALL: Once = Once::new();
/// The signals that the forking thread had blocked.
static MASK: AtomicUsize = AtomicUsize::new(0);
/// Taken while the list of pagers changes, and from before a fork until after it.
static LIST: Lock<()> = Lock::new(());

/// From now on the pager's faults are handled.
pub fn register(inner: &Arc<Inner>) -> Result<(), LiveError> {
    INSTALL.call_once(install);
    let _signals = Signals::block();
    let _list = LIST.lock();
    let new = Arc::as_ptr(inner).cast_mut();
    let empty = std::ptr::null_mut();
    let free =
        |place: &&AtomicPtr<Inner>| place.compare_exchange(empty, new, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    PAGERS_HERE.iter().find(free).map(drop).ok_or_else(|| LiveError::Setting {
        field: "faults",
        reason: format!(
            "a process can have {PAGERS} pagers that handle faults in the faulting thread; use fewer pagers"
        ),
    })
}

/// The pager has no region any more.
pub fn unregister(inner: *const Inner) {
    let _signals = Signals::block();
    let _list = LIST.lock();
    for place in &PAGERS_HERE {
        let _ = place.compare_exchange(inner.cast_mut(), std::ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed);
    }
}

fn pagers() -> impl DoubleEndedIterator<Item = &'static Inner> {
    // SAFETY: a pager is taken off the list before it is dropped.
    PAGERS_HERE.iter().filter_map(|place| unsafe { place.load(Ordering::Acquire).as_ref() })
}

fn install() {
    // SAFETY: the structures are the kernel's, zero is a value of them, and the handler keeps to what a handler may do.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_sigbus as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigfillset(&mut action.sa_mask);
        let previous = Box::leak(Box::new(std::mem::zeroed::<libc::sigaction>()));
        libc::sigaction(libc::SIGBUS, &action, previous);
        PREVIOUS.store(previous as *const _ as usize, Ordering::Release);
        libc::pthread_atfork(Some(before_fork), Some(parent_after_fork), Some(child_after_fork));
    }
}

extern "C" fn before_fork() {
    let mask = sys::block_signals();
    std::mem::forget(LIST.lock());
    MASK.store(mask as usize, Ordering::Relaxed);
    pagers().for_each(Inner::fork_prepare);
}

extern "C" fn parent_after_fork() {
    pagers().rev().for_each(Inner::fork_parent);
    after_fork();
}

extern "C" fn child_after_fork() {
    pagers().rev().for_each(Inner::fork_child);
    after_fork();
}

fn after_fork() {
    let mask = MASK.load(Ordering::Relaxed) as u64;
    LIST.free();
    sys::restore_signals(mask);
}

extern "C" fn on_sigbus(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives both.
    let (address, (write, kind)) = unsafe { ((*info).si_addr() as usize, access(context)) };
    match pagers().find(|inner| inner.space.span().contains(&address)) {
        Some(inner) => {
            // SAFETY: errno is this thread's; io_uring's library sets it.
            let errno = unsafe { *libc::__errno_location() };
            inner.serve(address, write, kind, 0);
            // SAFETY: as above.
            unsafe { *libc::__errno_location() = errno };
        }
        None => foreign(signal, info, context),
    }
}

/// A SIGBUS that is not ours goes to whom it went before.
fn foreign(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: `install` has stored it, and a handler is a function of one of these two forms.
    unsafe {
        let previous = &*(PREVIOUS.load(Ordering::Acquire) as *const libc::sigaction);
        match previous.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                // The access is repeated when the handler returns and ends the process as it would have without us.
                libc::signal(signal, libc::SIG_DFL);
            }
            handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
                std::mem::transmute::<usize, extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void)>(handler)(
                    signal, info, context,
                );
            }
            handler => std::mem::transmute::<usize, extern "C" fn(i32)>(handler)(signal),
        }
    }
}

/// Whether it was a write, and whether the page was there. Intel SDM volume 3, 4.7: bit 0 of the error code is P, bit 1 is W/R.
#[cfg(target_arch = "x86_64")]
unsafe fn access(context: *mut libc::c_void) -> (bool, Kind) {
    // SAFETY: the kernel gives a context.
    let code = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] };
    (code & 2 != 0, if code & 1 != 0 { Kind::Protected } else { Kind::Missing })
}

/// Arm ARM, ESR_EL1: bit 6 (WnR) is set for a write; status codes 0b0011xx are permission faults. The kernel stores it as a record with
/// the magic number of `arch/arm64/include/uapi/asm/sigcontext.h`.
#[cfg(target_arch = "aarch64")]
unsafe fn access(context: *mut libc::c_void) -> (bool, Kind) {
    const ESR_MAGIC: u32 = 0x4553_5201;
    // SAFETY: the records lie behind the registers and end with a magic of zero.
    unsafe {
        let context = &*context.cast::<libc::ucontext_t>();
        let mut at = (&raw const context.uc_mcontext).add(1).cast::<u8>();
        loop {
            let (magic, size) = (at.cast::<u32>().read_unaligned(), at.cast::<u32>().add(1).read_unaligned());
            match magic {
                ESR_MAGIC => {
                    let esr = at.add(8).cast::<u64>().read_unaligned();
                    let kind = if esr & 0b11_1100 == 0b00_1100 { Kind::Protected } else { Kind::Missing };
                    return (esr & 1 << 6 != 0, kind);
                }
                0 => return (false, Kind::Missing),
                _ => at = at.add(size as usize),
            }
        }
    }
}
