//! Faults in the thread that faulted: the kernel sends SIGBUS, and the handler resolves the fault before it returns.
//!
//! While the handler runs, every signal is blocked. So no handler of the program can run, fault, and wait for a lock
//! that its own thread holds.
//!
//! The program chooses the thread's stack. An alternate stack may be no larger than the kernel's own frame (1 to 12
//! KiB, by processor), and a coroutine's stack may have 4 KiB. So the handler first switches to a stack of ours,
//! before it pushes a byte. It need not preserve registers, since the return from the signal restores them.
//!
//! ```text
//!   SIGBUS ─► take a stack ─► resolve ─► give it back ─► ours? return : call the handler before us, on the thread's stack
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Once;

use crate::pager::{Inner, Kind};
use crate::sys::{self, Errno};
use crate::{fatal, process, Faults, LiveError, PAGE};

/// Stacks for handlers: this many threads can have a fault in progress at a time, twice as many as there are tasks.
const STACKS: usize = 64;
/// Bytes of one stack; its lowest page is a guard. The fault path takes 12 KiB with encryption, 40 KiB without
/// optimization. Pages that are never touched cost nothing.
const STACK: usize = 256 << 10;

/// The address of the stacks.
static BASE: AtomicUsize = AtomicUsize::new(0);
/// A bit for each free stack.
static FREE: AtomicU64 = AtomicU64::new(u64::MAX);
/// The signals that the thread on each stack had blocked before its fault.
static MASKS: [AtomicU64; STACKS] = [const { AtomicU64::new(u64::MAX) }; STACKS];
/// Signals that end a program without a handler for them, sent by a user or by a timer.
const ENDING: [i32; 10] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGXCPU,
];
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);
static INSTALL: Once = Once::new();
/// The program has taken SIGBUS for itself, and this has been reported.
static TOLD: AtomicBool = AtomicBool::new(false);

/// From now on SIGBUS comes here first.
pub fn install() -> Result<(), LiveError> {
    let mut result = Ok(());
    INSTALL.call_once(|| result = stacks().map(|()| take_signal()));
    match (result, BASE.load(Ordering::Acquire)) {
        (Err(error), _) => Err(LiveError::os("stacks for fault handlers", error)),
        (Ok(()), 0) => Err(LiveError::os("stacks for fault handlers", Errno(libc::ENOMEM))),
        (Ok(()), _) => Ok(()),
    }
}

fn stacks() -> Result<(), Errno> {
    let base = sys::map_memory(STACKS * STACK, None)?;
    for i in 0..STACKS {
        // SAFETY: the lowest page of each of our own new stacks.
        unsafe { sys::call(libc::SYS_mprotect, [base + i * STACK, PAGE, libc::PROT_NONE as usize, 0, 0, 0])? };
    }
    // SAFETY: advice on our own memory, which may hold plaintext of pages.
    let _ = unsafe { sys::advise(base..base + STACKS * STACK, libc::MADV_DONTDUMP) };
    BASE.store(base, Ordering::Release);
    Ok(())
}

fn take_signal() {
    // SAFETY: the structures are the kernel's, zero is a value of them, and the handler keeps to what a handler may do.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_sigbus as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigfillset(&mut action.sa_mask);
        let previous = Box::leak(Box::new(std::mem::zeroed::<libc::sigaction>()));
        libc::sigaction(libc::SIGBUS, &action, previous);
        PREVIOUS.store(previous as *const _ as usize, Ordering::Release);
    }
}

impl Inner {
    /// Called by each call to the pager.
    pub(crate) fn look_for_strangers(&self) {
        if self.options.faults == Faults::InThread {
            look_for_strangers();
        }
    }
}

/// A program that takes SIGBUS for itself later gets our faults, and ends at the next one. This cannot be prevented,
/// but it is reported.
fn look_for_strangers() {
    // SAFETY: zero is a value of the structure, which the call fills.
    let now = unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut now);
        now.sa_sigaction
    };
    if now != on_sigbus as *const () as usize && !TOLD.swap(true, Ordering::Relaxed) {
        fatal::warn(
            "the program has set its own handler for SIGBUS: faults of managed memory go there from now on. Set it before the pager starts, \
             or let threads handle faults (`Faults::Handlers`)",
        );
    }
}

/// In a forked child: the threads that used the stacks are not in this process.
pub fn free_stacks() {
    FREE.store(u64::MAX, Ordering::Release);
}

/// What the assembly does next.
#[repr(C)]
struct Next {
    /// The handler that gets the signal; 0: none, the fault is resolved.
    handler: usize,
    /// The signals blocked while it runs.
    mask: u64,
}

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn on_sigbus(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "2:",
        "mov rax, [rip + {free}]",
        "bsf rcx, rax",
        "jz 5f",
        "mov r8, rax",
        "btr r8, rcx",
        "lock cmpxchg [rip + {free}], r8",
        "jne 2b",
        "mov rbx, rsp",
        "mov r12, rcx",
        "mov r13, rdi",
        "mov r14, rsi",
        "mov r15, rdx",
        "inc rcx",
        "imul rcx, rcx, {stack}",
        "add rcx, [rip + {base}]",
        "mov rsp, rcx",
        "call {resolve}",
        "mov rsp, rbx",
        "lock bts qword ptr [rip + {free}], r12",
        "test rax, rax",
        "jnz 3f",
        "ret",
        // Our stack must be free before any other signal can come: that signal's handler may never return.
        "3:",
        "mov rbx, rax",
        "push rdx",
        "mov eax, 14",
        "mov edi, 2",
        "mov rsi, rsp",
        "xor edx, edx",
        "mov r10d, 8",
        "syscall",
        "add rsp, 8",
        "mov rdi, r13",
        "mov rsi, r14",
        "mov rdx, r15",
        "jmp rbx",
        // All are taken: sched_yield, which leaves the arguments in place.
        "5:",
        "mov eax, 24",
        "syscall",
        "jmp 2b",
        ".cfi_endproc",
        free = sym FREE,
        base = sym BASE,
        stack = const STACK,
        resolve = sym resolve,
    );
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn on_sigbus(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "adrp x25, {free}",
        "add x25, x25, :lo12:{free}",
        "2:",
        "ldaxr x10, [x25]",
        "cbz x10, 5f",
        "rbit x11, x10",
        "clz x11, x11",
        "mov x20, 1",
        "lsl x20, x20, x11",
        "bic x13, x10, x20",
        "stxr w14, x13, [x25]",
        "cbnz w14, 2b",
        "adrp x13, {base}",
        "ldr x13, [x13, :lo12:{base}]",
        "add x11, x11, 1",
        "mov x14, {stack}",
        "madd x13, x11, x14, x13",
        "mov x19, sp",
        "mov x21, x0",
        "mov x22, x1",
        "mov x23, x2",
        "mov x24, x30",
        "mov sp, x13",
        "bl {resolve}",
        "mov sp, x19",
        "mov x30, x24",
        "4:",
        "ldxr x10, [x25]",
        "orr x10, x10, x20",
        "stlxr w11, x10, [x25]",
        "cbnz w11, 4b",
        "cbnz x0, 3f",
        "ret",
        // Our stack must be free before any other signal can come: that signal's handler may never return.
        "3:",
        "mov x9, x0",
        "str x1, [sp, -16]!",
        "mov x0, 2",
        "mov x1, sp",
        "mov x2, xzr",
        "mov x3, 8",
        "mov x8, 135",
        "svc 0",
        "add sp, sp, 16",
        "mov x0, x21",
        "mov x1, x22",
        "mov x2, x23",
        "br x9",
        // All are taken: sched_yield.
        "5:",
        "clrex",
        "mov x15, x0",
        "mov x8, 124",
        "svc 0",
        "mov x0, x15",
        "b 2b",
        ".cfi_endproc",
        free = sym FREE,
        base = sym BASE,
        stack = const STACK,
        resolve = sym resolve,
    );
}

/// Runs on one of our stacks, with every signal blocked.
unsafe extern "C" fn resolve(_: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) -> Next {
    // SAFETY: the kernel gives both.
    let (address, code, (write, kind)) = unsafe { ((*info).si_addr() as usize, (*info).si_code, access(context)) };
    // SAFETY: the kernel gives the context, whose mask begins with the kernel's 8 bytes.
    let mask = unsafe { (&raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<u64>().read() };
    if let Some(stack) = stack_here() {
        MASKS[stack].store(mask, Ordering::Relaxed);
    }
    // SAFETY: errno is this thread's; io_uring's library sets it.
    let errno = unsafe { *libc::__errno_location() };
    let ours = code > 0 && process::with(address, |inner| inner.serve(address, write, kind, 0)).is_some();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    match ours {
        true => Next { handler: 0, mask: 0 },
        false => foreign(code, context),
    }
}

/// The number of our stack that the thread is on.
fn stack_here() -> Option<usize> {
    let (base, here) = (BASE.load(Ordering::Relaxed), std::cell::Cell::new(0u8));
    let stack = (here.as_ptr() as usize).wrapping_sub(base) / STACK;
    (base != 0 && stack < STACKS).then_some(stack)
}

/// In a fault that may wait long: a signal that would have ended the program outside of the fault ends it now.
/// Handlers of the program wait until the fault is over.
pub fn let_end() {
    let Some(stack) = stack_here() else { return };
    let pending = sys::pending_signals() & !MASKS[stack].load(Ordering::Relaxed);
    for signal in ENDING.into_iter().filter(|signal| pending >> (signal - 1) & 1 != 0) {
        if sys::has_default_action(signal) {
            sys::unblock_signal(signal);
        }
    }
}

/// A SIGBUS that is not ours is passed on to the earlier handler, with the signals blocked that this handler asked
/// for.
fn foreign(code: i32, context: *mut libc::c_void) -> Next {
    let nobody = Next { handler: 0, mask: 0 };
    // SAFETY: `install` has stored it. The kernel gives the context; its mask and the set begin with the kernel's 8
    // bytes.
    let (previous, blocked, also) = unsafe {
        let previous = &*(PREVIOUS.load(Ordering::Acquire) as *const libc::sigaction);
        let blocked = (&raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<u64>().read();
        (previous, blocked, (&raw const previous.sa_mask).cast::<u64>().read())
    };
    let sent = code <= 0;
    match previous.sa_sigaction {
        libc::SIG_IGN if sent => nobody,
        libc::SIG_DFL | libc::SIG_IGN => {
            // When the handler returns, the access is repeated, and the process ends as it would have without us. A
            // signal that another process has sent is sent again.
            // SAFETY: restores the default; no pointers.
            unsafe {
                libc::signal(libc::SIGBUS, libc::SIG_DFL);
                if sent {
                    let (pid, tid) = (sys::call(libc::SYS_getpid, [0; 6]), sys::call(libc::SYS_gettid, [0; 6]));
                    let (pid, tid) = (pid.unwrap_or(0), tid.unwrap_or(0));
                    let _ = sys::call(libc::SYS_tgkill, [pid, tid, libc::SIGBUS as usize, 0, 0, 0]);
                }
            }
            nobody
        }
        handler => {
            let itself = if previous.sa_flags & libc::SA_NODEFER != 0 { 0 } else { 1 << (libc::SIGBUS - 1) };
            Next { handler, mask: blocked | also | itself }
        }
    }
}

/// Whether it was a write, and whether the page was there. Intel SDM volume 3, 4.7: bit 0 of the error code is P, bit 1
/// is W/R.
#[cfg(target_arch = "x86_64")]
unsafe fn access(context: *mut libc::c_void) -> (bool, Kind) {
    // SAFETY: the kernel gives a context.
    let code = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] };
    (code & 2 != 0, if code & 1 != 0 { Kind::Protected } else { Kind::Missing })
}

/// Arm ARM, ESR_EL1: bit 6 (WnR) is set for a write; status codes 0b0011xx are permission faults. The kernel stores
/// the register in a record with the magic number of `arch/arm64/include/uapi/asm/sigcontext.h`.
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
