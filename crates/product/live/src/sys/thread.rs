//! Threads that the C library does not see.
//!
//! When a program changes its user (`setuid` and similar calls), glibc sends a signal to every thread it knows, and
//! waits for each. Our threads have every signal blocked, so glibc would wait for ever. A thread made by the bare
//! system call is in no list of glibc: glibc does not wait for it, cancel it or count it.
//!
//! ```text
//!   guard page | stack ........................ | function, argument |
//!   a block of thread-local memory from the dynamic linker, with the words of glibc's header filled in
//! ```
//! The code of such a thread may call functions that need thread-local memory (`errno`). It must not call functions
//! that allocate or lock: while glibc sees only one thread of a program, its malloc and stdio take no locks. If the
//! dynamic linker has no such function (a static program, another C library), the thread is an ordinary one.

use std::ffi::{c_void, CStr};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::sys::{self, Errno, Sys};
use crate::PAGE;

/// The function of a thread.
pub type Body = unsafe extern "C" fn(*mut c_void);

/// A thread that runs until its function returns. `join` it, or `forget` it: a drop does not stop it.
#[derive(Debug)]
pub struct RawThread {
    stack: usize,
    len: usize,
    /// Its thread-local block; none: an ordinary thread.
    block: Option<usize>,
}

/// The upper end of the stack. When the thread is gone, the kernel clears `alive` and wakes the waiting thread.
#[repr(C, align(16))]
struct Top {
    /// The first two are taken by `clone`'s child, in this order.
    enter: usize,
    argument: usize,
    body: Body,
    name: &'static CStr,
    alive: AtomicU32,
}

/// The size of a stack, enough for the fault path with encryption in a build without optimization.
const STACK: usize = 256 << 10;

type Allocate = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void, bool);

/// `_dl_allocate_tls` and `_dl_deallocate_tls`.
#[derive(Clone, Copy)]
struct Linker {
    allocate: Allocate,
    free: Free,
}

/// Looked up before memory is managed (`reserve`), and not again: a lookup frees the message of the program's last
/// failed one. In a forked child, whose pager does not work yet, nothing would ever bring that message's page.
fn linker() -> Option<Linker> {
    static LINKER: OnceLock<Option<Linker>> = OnceLock::new();
    *LINKER.get_or_init(look_up)
}

fn look_up() -> Option<Linker> {
    // SAFETY: names are C strings; the functions have had these types since there has been thread-local memory.
    unsafe {
        let allocate = libc::dlsym(libc::RTLD_DEFAULT, c"_dl_allocate_tls".as_ptr());
        let free = libc::dlsym(libc::RTLD_DEFAULT, c"_dl_deallocate_tls".as_ptr());
        // Another C library may use the name with another meaning; this one only glibc has.
        let glibc = libc::dlsym(libc::RTLD_DEFAULT, c"gnu_get_libc_version".as_ptr());
        if allocate.is_null() || free.is_null() || glibc.is_null() {
            return None;
        }
        Some(Linker {
            allocate: std::mem::transmute::<*mut c_void, Allocate>(allocate),
            free: std::mem::transmute::<*mut c_void, Free>(free),
        })
    }
}

/// Unused thread-local blocks. The dynamic linker takes them from the program's own allocator, if there is one. That
/// allocator may put them into memory that this very pager manages, or wait for a lock that a fork holds. So the
/// blocks are made before memory is managed, and later threads, including those of forked children, use them again.
static BLOCKS: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

/// Makes `count` blocks ahead.
pub fn reserve(count: usize) {
    let Some(linker) = linker() else { return };
    for _ in 0..count.min(BLOCKS.len()) {
        // SAFETY: null asks for a new block.
        match unsafe { (linker.allocate)(std::ptr::null_mut()) } as usize {
            0 => return,
            block => give_block(block),
        }
    }
}

fn take_block(linker: &Linker) -> Option<usize> {
    let reused = BLOCKS.iter().map(|place| place.swap(0, Ordering::AcqRel)).find(|block| *block != 0);
    // SAFETY: null asks for a new block.
    reused.or_else(|| Some(unsafe { (linker.allocate)(std::ptr::null_mut()) } as usize).filter(|block| *block != 0))
}

fn give_block(block: usize) {
    let empty = |place: &&AtomicUsize| place.compare_exchange(0, block, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if BLOCKS.iter().find(empty).is_some() {
        return;
    }
    if let Some(linker) = linker() {
        // SAFETY: the block came from the dynamic linker, and no thread uses it.
        unsafe { (linker.free)(block as *mut c_void, true) };
    }
}

/// What a thread shares with its process, besides memory.
pub const THREAD: i32 =
    libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD | libc::CLONE_SYSVSEM;
/// A process that shares this one's memory; it has copies of the descriptors and of all else. It is no child of this
/// process: a process in between makes it and ends, and its end is no news to anybody. A debugger does not follow it,
/// since it would take it for a thread of its own.
pub const PROCESS: i32 = libc::CLONE_UNTRACED;

/// The name of processes, by which top, gdb and the init of a container know them.
const PAGER_NAME: &CStr = c"coldframe-pager";

/// Starts a [`THREAD`] called "coldframe" or a [`PROCESS`], with every signal blocked, that runs `body(argument)` and
/// ends. It has the caller's credentials, without capabilities. A forked child does not inherit it or its stack.
///
/// # Safety
/// `body` must follow the rules of this module, and `argument` must be good for as long as it runs.
///
/// # Errors
/// ENOMEM; EAGAIN if the user may not have more threads; ENOSYS for a process where only ordinary threads can be made.
pub unsafe fn spawn(body: Body, argument: *mut c_void, flags: i32) -> Sys<RawThread> {
    let len = STACK + PAGE;
    let stack = sys::map_memory(len)?;
    let top = (stack + len - size_of::<Top>()) as *mut Top;
    // SAFETY: the upper end of our own new memory; the guard page is the lowest of it.
    unsafe {
        let _ = sys::set_rights(&(stack..stack + PAGE), libc::PROT_NONE);
        let _ = sys::advise(stack..stack + len, libc::MADV_DONTFORK);
        let enter = enter as *const () as usize;
        let name = if flags == PROCESS { PAGER_NAME } else { c"coldframe" };
        top.write(Top { enter, argument: argument as usize, body, name, alive: AtomicU32::new(1) });
    }
    let mask = sys::block_signals();
    // SAFETY: the stack is new, and the caller answers for what runs on it.
    let started = unsafe {
        match linker() {
            Some(linker) => bare(&linker, top, flags).map(Some),
            None if flags == PROCESS => Err(Errno::NOSYS),
            None => ordinary(top).map(|()| None),
        }
    };
    sys::restore_signals(mask);
    match started {
        Ok(block) => Ok(RawThread { stack, len, block }),
        Err(error) => {
            // SAFETY: no thread runs there.
            unsafe { sys::unmap_memory(stack, len) };
            Err(error)
        }
    }
}

/// # Safety
/// As for `spawn`; `top` is at the upper end of a stack.
unsafe fn bare(linker: &Linker, top: *mut Top, flags: i32) -> Sys<usize> {
    let Some(block) = take_block(linker) else { return Err(Errno::NOMEM) };
    let call = Call { flags: flags | libc::CLONE_VM | libc::CLONE_SETTLS | libc::CLONE_CHILD_CLEARTID, top, block };
    // SAFETY: the block is new; the caller answers for the rest.
    let result = unsafe {
        fill_header(block);
        if flags == PROCESS {
            between(linker, call)
        } else {
            call.make()
        }
    };
    if result < 0 {
        give_block(block);
        return Err(Errno::from_raw_os_error(-result as i32));
    }
    Ok(block)
}

/// A thread or a process that is to be made.
#[derive(Clone, Copy)]
struct Call {
    flags: i32,
    top: *mut Top,
    block: usize,
}

impl Call {
    /// # Safety
    /// As for `bare`.
    unsafe fn make(self) -> isize {
        // SAFETY: the caller answers for it.
        unsafe { clone(self.flags as usize, self.top as usize, 0, (*self.top).alive.as_ptr() as usize, self.block) }
    }
}

/// Makes a process by one in between, which ends at once: so its parent is the nearest subreaper above this process.
///
/// # Safety
/// As for `bare`.
unsafe fn between(linker: &Linker, call: Call) -> isize {
    struct Made(Call, isize);
    unsafe extern "C" fn make(made: *mut c_void) {
        // SAFETY: `between` waits until this process is gone.
        unsafe { (*made.cast::<Made>()).1 = (*made.cast::<Made>()).0.make() };
    }
    const SHARED: i32 = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_FS | libc::CLONE_UNTRACED;
    let len = STACK + PAGE;
    let (Ok(stack), Some(block)) = (sys::map_memory(len), take_block(linker)) else {
        return -(libc::ENOMEM as isize);
    };
    let mut made = Made(call, -(libc::EAGAIN as isize));
    let top = (stack + len - size_of::<Top>()) as *mut Top;
    // SAFETY: our own new memory; `made` lives until the process in between is gone. A subreaper would be the parent
    // itself: a program that was executed by one is none for a moment.
    unsafe {
        let enter = enter as *const () as usize;
        let (argument, alive) = ((&raw mut made) as usize, AtomicU32::new(1));
        top.write(Top { enter, argument, body: make, name: PAGER_NAME, alive });
        fill_header(block);
        let adopts = sys::adopts_orphans(None);
        if adopts {
            sys::adopts_orphans(Some(false));
        }
        let flags = SHARED | libc::CLONE_SETTLS | libc::CLONE_CHILD_CLEARTID;
        let child = Call { flags, top, block }.make();
        if child > 0 {
            sys::reap(child as usize);
        } else {
            made.1 = child;
        }
        if adopts {
            sys::adopts_orphans(Some(true));
        }
        give_block(block);
        sys::unmap_memory(stack, len);
    }
    made.1
}

/// The header of a glibc thread on x86-64 (`sysdeps/x86_64/nptl/tls.h`): its own address at 0 and 16; at 40 and 48 the
/// guards of stack and pointers, which all threads of a process share.
///
/// # Safety
/// `block` is new from the dynamic linker.
#[cfg(target_arch = "x86_64")]
unsafe fn fill_header(block: usize) {
    let (stack_guard, pointer_guard): (usize, usize);
    // SAFETY: reads the own thread's header, writes the new one's.
    unsafe {
        std::arch::asm!("mov {}, fs:[40]", "mov {}, fs:[48]", out(reg) stack_guard, out(reg) pointer_guard,
            options(nostack, readonly));
        let word = |offset: usize| (block + offset) as *mut usize;
        word(0).write(block);
        word(16).write(block);
        word(40).write(stack_guard);
        word(48).write(pointer_guard);
    }
}

/// On aarch64 the dynamic linker has already filled in everything.
#[cfg(target_arch = "aarch64")]
unsafe fn fill_header(_: usize) {}

/// The bare system call. The child takes function and argument off its stack and calls the function.
#[unsafe(naked)]
unsafe extern "C" fn clone(flags: usize, stack: usize, parent_tid: usize, child_tid: usize, block: usize) -> isize {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        ".cfi_startproc",
        "mov r10, rcx",
        "mov eax, 56",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2:",
        ".cfi_undefined rip",
        "xor ebp, ebp",
        "mov rax, [rsp]",
        "mov rdi, rsp",
        "call rax",
        "ud2",
        ".cfi_endproc",
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        ".cfi_startproc",
        "mov x5, x3",
        "mov x3, x4",
        "mov x4, x5",
        "mov x8, 220",
        "svc 0",
        "cbz x0, 2f",
        "ret",
        "2:",
        ".cfi_undefined x30",
        "mov x29, xzr",
        "ldr x1, [sp]",
        "mov x0, sp",
        "blr x1",
        "brk 1",
        ".cfi_endproc",
    );
}

unsafe extern "C" fn enter(top: *mut Top) -> ! {
    // SAFETY: `spawn` has filled it in; the name has less than 16 bytes.
    unsafe {
        let _ = rustix::thread::set_name((*top).name);
        // A thread in the program's process, too, needs none.
        let _ = crate::sys::rights::drop_all();
        ((*top).body)((*top).argument as *mut c_void);
        loop {
            let _ = sys::call(libc::SYS_exit, [0; 6]);
        }
    }
}

/// # Safety
/// As for `bare`.
unsafe fn ordinary(top: *mut Top) -> Sys<()> {
    extern "C" fn run(top: *mut c_void) -> *mut c_void {
        // SAFETY: `spawn` has filled it in, and unmaps it when `alive` is 0.
        unsafe {
            let top = &*top.cast::<Top>();
            (top.body)(top.argument as *mut c_void);
            top.alive.store(0, Ordering::Release);
            sys::futex_wake_shared(&top.alive);
        }
        std::ptr::null_mut()
    }
    // SAFETY: the attributes are made before they are used; the stack is the C library's.
    let result = unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        let mut thread: libc::pthread_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstacksize(&mut attributes, STACK);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let result = libc::pthread_create(&mut thread, &attributes, run, top.cast());
        libc::pthread_attr_destroy(&mut attributes);
        result
    };
    match result {
        0 => Ok(()),
        error => Err(Errno::from_raw_os_error(error)),
    }
}

impl RawThread {
    fn top(&self) -> *const Top {
        (self.stack + self.len - size_of::<Top>()) as *const Top
    }

    /// Waits until the thread is gone, and frees its memory.
    pub fn join(self) {
        // SAFETY: the stack is there until the end of this function.
        let alive = unsafe { &(*self.top()).alive };
        while alive.load(Ordering::Acquire) != 0 {
            sys::futex_wait_shared(alive, 1, None);
        }
        self.block.into_iter().for_each(give_block);
        // SAFETY: the thread is gone: the kernel clears the word as the last use of its memory.
        unsafe { sys::unmap_memory(self.stack, self.len) };
    }

    /// In a forked child, where the thread does not exist: frees its thread-local memory. Its stack was not inherited.
    pub fn forget_in_child(self) {
        self.block.into_iter().for_each(give_block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static RAN: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C" fn body(argument: *mut c_void) {
        // SAFETY: `errno` is thread-local, and the argument is not looked at.
        unsafe {
            *libc::__errno_location() = argument as i32;
            assert_eq!(*libc::__errno_location(), argument as i32);
        }
        let mut set = 0u64;
        let a = [libc::SIG_BLOCK as usize, 0, &raw mut set as usize, 8, 0, 0];
        // SAFETY: the kernel writes 8 bytes.
        unsafe { sys::call(libc::SYS_rt_sigprocmask, a) }.unwrap();
        // SIGKILL and SIGSTOP cannot be blocked.
        let all = !(1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1));
        if set == all {
            RAN.fetch_add(argument as usize, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_thread_that_nobody_sees_runs_with_all_signals_blocked_and_is_joined() {
        for round in 1..=20 {
            // SAFETY: the body does not look behind its argument.
            let threads: Vec<_> = (0..4).map(|_| unsafe { spawn(body, 5 as *mut c_void, THREAD) }.unwrap()).collect();
            threads.into_iter().for_each(RawThread::join);
            assert_eq!(RAN.load(Ordering::Relaxed), 20 * round);
        }
    }
}
