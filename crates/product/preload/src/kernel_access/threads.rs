//! Words that the kernel touches where it cannot wait for a page: it then skips an absent one, or the call fails. So
//! these words stay in RAM: robust mutexes (otherwise the next owner would never learn of the last owner's death),
//! mutexes with priority inheritance (otherwise FUTEX_LOCK_PI would fail, and the C library end the program), the
//! control block of a thread whose stack the program made in managed memory (otherwise a joining thread would wait for
//! ever), other words that the program lets the kernel clear at the end, a robust list of its own, and the words that
//! `futex` by number writes.
//!
//! Not covered: threads with a list of their own that end by a system call past the C library, and such mutexes whose
//! memory is freed without pthread_mutex_destroy. The latter stay in RAM until the memory is unmapped.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

use crate::managed::memory;
use crate::managed::pins::{self, Pinned, Why};
use crate::managed::ranges::{failed, pass};
use crate::say::once;
use crate::symbols::next::next;
use crate::sys;

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

/// Releases the pins of threads that have ended: the kernel has cleared their word, or does not know their number.
fn sweep() {
    for word in pins::owners(Why::Thread) {
        // SAFETY: a pinned word is in memory that is mapped: what is unmapped is forgotten.
        if unsafe { (*(word as *const AtomicU32)).load(Acquire) } == 0 {
            pins::release((Why::Thread, word));
        }
    }
    for place in pins::owners(Why::Robust) {
        // SAFETY: no pointers, and no signal is sent.
        let lives = unsafe {
            let own = sys::call(libc::SYS_getpid, [0; 6]) as usize;
            sys::call(libc::SYS_tgkill, [own, place >> 16, 0, 0, 0, 0]) == 0
        };
        if !lives {
            pins::release((Why::Robust, place));
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

/// A futex of the program's own. Where the kernel writes the word, it cannot wait for its page, which stays in RAM
/// during the call.
pub fn futex(arguments: [usize; 6]) -> isize {
    let [word, operation, _, _, other, _] = arguments;
    let written = match operation as c_int & libc::FUTEX_CMD_MASK {
        libc::FUTEX_LOCK_PI | libc::FUTEX_LOCK_PI2 | libc::FUTEX_TRYLOCK_PI | libc::FUTEX_UNLOCK_PI => word,
        libc::FUTEX_WAKE_OP | libc::FUTEX_CMP_REQUEUE_PI | libc::FUTEX_WAIT_REQUEUE_PI => other,
        _ => return pass(libc::SYS_futex, arguments),
    };
    let _pinned = Pinned::new(written, size_of::<u32>()).map_err(|_| too_many());
    pass(libc::SYS_futex, arguments)
}

/// Some thread has a robust list that is not the C library's.
static ROBUST: AtomicBool = AtomicBool::new(false);

/// The owner of a part of a thread's robust list.
fn robust(place: usize) -> pins::PinOwner {
    (Why::Robust, (sys::thread() as usize) << 16 | place)
}

/// A robust list of the program's own: when its thread ends, the kernel goes along it. The head stays in RAM from now
/// on, and the rest when the thread ends.
pub fn set_robust_list(head: usize, len: usize) -> isize {
    sweep();
    if memory::meets(head, len) {
        match Pinned::new(head, len) {
            Ok(pinned) => pinned.belong_to(robust(0)),
            Err(_) => {
                too_many();
                return failed(libc::ENOMEM);
            }
        }
    }
    ROBUST.store(true, Relaxed);
    pass(libc::SYS_set_robust_list, [head, len, 0, 0, 0, 0])
}

/// The calling thread ends: its robust list and the words on it stay in RAM until it is gone.
pub fn keep_robust_list() {
    /// The kernel goes no further (ROBUST_LIST_LIMIT).
    const LONGEST: usize = 2048;
    if !ROBUST.load(Relaxed) {
        return;
    }
    let (mut head, mut len) = (0usize, 0usize);
    // SAFETY: the kernel writes the two.
    unsafe { sys::call(libc::SYS_get_robust_list, [0, &raw mut head as usize, &raw mut len as usize, 0, 0, 0]) };
    // `struct robust_list_head`: the first entry, from an entry to its word, an entry on its way in or out.
    let field = |i: usize| sys::word_at(head + i * size_of::<usize>());
    let (Some(first), Some(offset), Some(pending)) = (field(0), field(1), field(2)) else { return };
    let keep = |place: usize, address: usize, len: usize| match Pinned::new(address, len) {
        Ok(pinned) => pinned.belong_to(robust(place)),
        Err(_) => too_many(),
    };
    // The lowest bit of an address says that the word is one with priority inheritance.
    let following = |entry: &usize| sys::word_at(*entry & !1);
    let entries = std::iter::successors(Some(first), following).take_while(|entry| *entry & !1 != head);
    for (i, entry) in entries.take(LONGEST).chain(Some(pending)).map(|entry| entry & !1).enumerate() {
        if entry != 0 {
            keep(2 * i + 1, entry, size_of::<usize>());
            keep(2 * i + 2, entry.wrapping_add(offset), size_of::<u32>());
        }
    }
}

/// A thread of a recorded program, in whose process the pager's threads are, ends by the bare system call. If it is the
/// program's last thread, the process ends with the code of that thread, as it would without a pager (Linux 5.17 and
/// newer; before, the code was the first thread's).
pub fn leave_process(code: usize) {
    keep_robust_list();
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
