//! Words that the kernel touches where it cannot wait for a page: it then skips an absent one, or the call fails. So
//! these words stay in RAM: robust mutexes (otherwise the next owner would never learn of the last owner's death),
//! mutexes with priority inheritance (otherwise FUTEX_LOCK_PI would fail, and the C library end the program), the
//! control block of a thread whose stack the program made in managed memory (otherwise a joining thread would wait for
//! ever), and other words that the program lets the kernel clear at the end.
//!
//! Not covered: such futexes that a program uses without the C library's mutexes, and such mutexes
//! whose memory is freed without pthread_mutex_destroy. The latter stay in RAM until the memory is unmapped.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering::Acquire};

use crate::next::next;
use crate::pins::{self, Pinned, Why};
use crate::say::once;
use crate::{memory, sys};

type Routine = extern "C" fn(*mut c_void) -> *mut c_void;

/// Whether the kernel writes to mutexes with these attributes.
unsafe fn is_the_kernels(attributes: *const libc::pthread_mutexattr_t) -> bool {
    let (mut robust, mut protocol) = (libc::PTHREAD_MUTEX_STALLED, libc::PTHREAD_PRIO_NONE);
    if !attributes.is_null() {
        // SAFETY: the caller's attributes.
        unsafe {
            libc::pthread_mutexattr_getrobust(attributes, &mut robust);
            libc::pthread_mutexattr_getprotocol(attributes, &mut protocol);
        }
    }
    robust == libc::PTHREAD_MUTEX_ROBUST || protocol == libc::PTHREAD_PRIO_INHERIT
}

fn too_many() {
    let what = "mutexes and other words that the kernel writes to are more than may stay in RAM; --ram is too small";
    once!("{what}");
}

/// Replaces the C library's function. If there is no room for it in RAM, there is no such mutex: ENOMEM.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_mutex_init(
    mutex: *mut libc::pthread_mutex_t,
    attributes: *const libc::pthread_mutexattr_t,
) -> c_int {
    let (at, len) = (mutex as usize, size_of::<libc::pthread_mutex_t>());
    // SAFETY: the caller's attributes.
    if !(memory::ready() && memory::meets(at, len) && unsafe { is_the_kernels(attributes) }) {
        return next!(MUTEX_INIT, (mutex, attributes), libc::ENOSYS);
    }
    let Ok(pinned) = Pinned::new(at, len) else {
        too_many();
        return libc::ENOMEM;
    };
    let result = next!(MUTEX_INIT, (mutex, attributes), libc::ENOSYS);
    if result == 0 {
        pinned.belong_to((Why::Mutex, at));
    }
    result
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut libc::pthread_mutex_t) -> c_int {
    let result = next!(MUTEX_DESTROY, (mutex), libc::ENOSYS);
    if result == 0 {
        pins::release((Why::Mutex, mutex as usize));
    }
    result
}

/// The routine of a thread on a stack in managed memory.
#[repr(C)]
struct Start {
    routine: Routine,
    argument: *mut c_void,
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: *const c_void,
    argument: *mut c_void,
) -> c_int {
    let create = |routine, argument| next!(CREATE, (thread, attributes, routine, argument), libc::EAGAIN);
    // SAFETY: the caller's attributes.
    if !(memory::ready() && unsafe { has_managed_stack(attributes) }) {
        return create(routine, argument);
    }
    sweep();
    // SAFETY: a routine has this type; `begin` takes the box, or this function if there is no thread.
    unsafe {
        let routine = std::mem::transmute::<*const c_void, Routine>(routine);
        let start = Box::into_raw(Box::new(Start { routine, argument }));
        let result = create(trampoline as *const c_void, start.cast());
        if result != 0 {
            drop(Box::from_raw(start));
        }
        result
    }
}

unsafe fn has_managed_stack(attributes: *const libc::pthread_attr_t) -> bool {
    let (mut stack, mut len) = (std::ptr::null_mut(), 0);
    // SAFETY: the caller's attributes.
    !attributes.is_null()
        && unsafe { libc::pthread_attr_getstack(attributes, &mut stack, &mut len) } == 0
        && memory::meets(stack as usize, len)
}

/// Pins the memory, then continues with the program's own routine. Nothing of ours stays on the stack: the thread may
/// be cancelled and unwound.
#[unsafe(naked)]
unsafe extern "C" fn trampoline() {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {begin}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "mov rdi, rdx",
        "jmp rax",
        ".cfi_endproc",
        begin = sym begin
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "stp x29, x30, [sp, -16]!",
        "bl {begin}",
        "ldp x29, x30, [sp], 16",
        "mov x9, x0",
        "mov x0, x1",
        "br x9",
        begin = sym begin
    );
}

/// Bytes of a thread's control block that the kernel may touch: glibc's `struct pthread`, which is smaller in all
/// versions.
const CONTROL: usize = 4096;
/// `PR_GET_TID_ADDRESS`.
const GET_TID_ADDRESS: usize = 40;

/// Runs in the new thread. The result is in two registers.
unsafe extern "C" fn begin(start: *mut Start) -> Start {
    let mut word = 0usize;
    // SAFETY: `pthread_create` gave the box, to this thread alone; the call writes to `word`.
    let (todo, control) = unsafe {
        let todo = *Box::from_raw(start);
        sys::call(libc::SYS_prctl, [GET_TID_ADDRESS, &raw mut word as usize, 0, 0, 0, 0]);
        (todo, libc::pthread_self() as usize)
    };
    // Without that call (CONFIG_CHECKPOINT_RESTORE), the block is pinned as long as its memory exists.
    let owner = if word != 0 { word } else { control };
    match Pinned::new(control, CONTROL) {
        Ok(pinned) => pinned.belong_to((Why::Thread, owner)),
        Err(_) => too_many(),
    }
    todo
}

/// Releases the pins of threads that have ended: the kernel has cleared their word.
fn sweep() {
    for word in pins::owners(Why::Thread) {
        // SAFETY: a pinned word is in memory that is mapped: what is unmapped is forgotten.
        if unsafe { (*(word as *const AtomicU32)).load(Acquire) } == 0 {
            pins::release((Why::Thread, word));
        }
    }
}

/// Pins a word that the kernel clears when a thread ends. Returns false if that is more than may be pinned.
pub fn cleared_at_the_end(word: usize) -> bool {
    if !memory::manages(word) {
        return true;
    }
    sweep();
    match Pinned::new(word, size_of::<u32>()) {
        Ok(pinned) => pinned.belong_to((Why::Thread, word)),
        Err(_) => {
            too_many();
            return false;
        }
    }
    true
}

/// Pins the word of a thread that `clone` will make, if the kernel is to clear one. Returns false if that is more
/// than may be pinned.
pub fn pinned_for_clone(flags: c_int, word: usize) -> bool {
    const CLEARS: c_int = libc::CLONE_CHILD_CLEARTID | libc::CLONE_VM;
    flags & CLEARS != CLEARS || cleared_at_the_end(word)
}

/// A thread of a recorded program, in whose process the pager's threads are, ends by the bare system call. If it is the
/// program's last thread, the process ends with the code of that thread, as it would without a pager (Linux 5.17 and
/// newer; before, the code was the first thread's).
pub fn leave_process(code: usize) {
    let pager = memory::pager();
    let mut text = [0u8; 4096];
    let Some((all, first_is_gone)) = threads_now(&mut text) else { return };
    // Its handlers, and the log's writer.
    let ours = pager.options().handlers + 1;
    if pager.options().record.is_some() && all <= ours + 1 + usize::from(first_is_gone) {
        memory::inside(|| pager.end());
        sys::exit_group(code as i32);
    }
}

/// From `/proc/self/status`: the number of threads, including a first one that has ended, and whether there is such a
/// one.
fn threads_now(text: &mut [u8; 4096]) -> Option<(usize, bool)> {
    let len = sys::read_file(c"/proc/self/status", text);
    let text = std::str::from_utf8(&text[..len]).ok()?;
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some((value("Threads:")?.parse().ok()?, value("State:")?.starts_with('Z')))
}
