//! Fork. The C library's `fork` calls [`_Fork`] here (`entries.rs`): after it has locked malloc and before it
//! touches anything in the child. Where it cannot, handlers do the work, and malloc is not managed. Our handlers are
//! registered before all others, so `prepare` runs last and `child` runs first: other libraries' handlers find their
//! memory in both. The first registration of any library also registers ours, since it may come before the first
//! constructor. An allocator inside the executable is asked for memory, and registers its handlers, while the program
//! is still being loaded.
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
//! child, [`copied`] does what is needed here.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use coldframe_live::{ForkedChild, PAGE};

use crate::kernel_access::threads;
use crate::managed::memory::{self, pager};
use crate::managed::ranges::{failed, parts, Owner};
use crate::managed::{gate, stacks};
use crate::pointers::values;
use crate::process::files;
use crate::process::filter;
use crate::symbols::libc_symbols::{Symbol, ENTRIES_TAKEN};
use crate::symbols::next::{call_at, next, none};
use crate::sys::Lock;
use crate::{say, sys};

extern "C" {
    fn _IO_list_lock();
    fn _IO_list_unlock();
    fn _IO_list_resetlock();
}

/// The part of the stack that a fork uses, if a program runs on a stack in managed memory (as coroutines do).
const STACK: usize = 64 << 10;
/// A generous estimate of the stack that the C library's fork and the callers of its handlers use.
const CALLERS: usize = 2 << 10;
/// While it lives, the calling thread's stack stays in RAM, if it is managed: from its upper end down, this many pages.
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
        let managed = |i: &usize| top > (i + 1) * PAGE && memory::manages(top - (i + 1) * PAGE);
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
        let result = unsafe {
            let handlers = [prepare_unless_taken, parent_unless_taken, child_unless_taken].map(Some);
            register_next(handlers[0], handlers[1], handlers[2], std::ptr::null_mut())
        };
        assert_eq!(result, 0, "pthread_atfork");
    }
}

unsafe fn register_next(prepare: Handler, parent: Handler, child: Handler, library: *mut c_void) -> c_int {
    match REGISTER.address() {
        0 => libc::ENOSYS,
        // SAFETY: the C library's function of that type.
        own => unsafe { register_at(own, prepare, parent, child, library) },
    }
}

unsafe fn register_at(own: usize, prepare: Handler, parent: Handler, child: Handler, library: *mut c_void) -> c_int {
    // SAFETY: the caller's function of that type.
    unsafe { call_at!(own, (prepare, parent, child, library)) }
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
/// The reason why a thread must not have the child that `fork` is making: the thread's number, and the error in the
/// lower half.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// Handlers that were called once more for the same fork: two C libraries can share one list.
static AGAIN: AtomicU32 = AtomicU32::new(0);

/// The C library calls this before a fork.
unsafe extern "C" fn prepare() {
    prepare_for(false);
}

/// Handlers of a C library that calls [`_Fork`], or cannot.
unsafe extern "C" fn prepare_unless_taken() {
    if !ENTRIES_TAKEN.load(Relaxed) {
        prepare_for(false);
    }
}

unsafe extern "C" fn parent_unless_taken() {
    if !ENTRIES_TAKEN.load(Relaxed) {
        // SAFETY: as the C library calls it.
        unsafe { parent() };
    }
}

unsafe extern "C" fn child_unless_taken() {
    if !ENTRIES_TAKEN.load(Relaxed) {
        // SAFETY: as the C library calls it.
        unsafe { child() };
    }
}

/// If no memory is managed, not yet or not at all, nothing is to be done. A child that `shares` the table of
/// descriptors must open and close none there: it does not page.
fn prepare_for(shares: bool) {
    if !memory::ready() {
        return;
    }
    let mask = sys::block_signals();
    // SAFETY: a recursive lock, opened in `parent` or initialised again in `child`.
    unsafe { _IO_list_lock() };
    if FORKING.with(|forking| forking.is_some()) {
        AGAIN.fetch_add(1, Relaxed);
        return sys::restore_signals(mask);
    }
    // SAFETY: it is locked now.
    unsafe { files::pin() };
    let still = Still::here();
    gate::shut();
    FORKING.with(|forking| *forking = Some((still, mask)));
    let child = if shares { ForkedChild::SharesDescriptors } else { filter::child() };
    stacks::run(move || pager().fork_prepare(child));
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
    if let Some(error) = parent_of() {
        REFUSED.store(u64::from(sys::thread()) << 32 | error as u64, Relaxed);
    }
}

/// Returns the reason why there must be no child.
fn parent_of() -> Option<c_int> {
    if !memory::ready() {
        return None;
    }
    let errno = sys::errno();
    let mut refused = None;
    if AGAIN.load(Relaxed) > 0 {
        AGAIN.fetch_sub(1, Relaxed);
    } else {
        refused = stacks::run(|| pager().fork_parent()).err().and_then(|error| error.raw_os_error());
        gate::open();
        done();
    }
    // SAFETY: locked in `prepare`.
    unsafe { _IO_list_unlock() };
    sys::set_errno(errno);
    refused
}

unsafe extern "C" fn child() {
    if !memory::ready() || FORKING.with(|forking| forking.is_none()) {
        return;
    }
    AGAIN.store(0, Relaxed);
    stacks::free_all();
    gate::start(threads::keep_robust_list); // before a pager process shares the memory
    stacks::run(|| pager().fork_child());
    gate::open_in_child();
    done();
    // SAFETY: this process has no other thread.
    unsafe { _IO_list_resetlock() };
}

/// What the kernel gets in place of words in managed memory, where it could not write: the pager stands still. The
/// program's words are written when it is at work again.
static WORDS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

const SETS: usize = libc::CLONE_CHILD_SETTID as usize;
const CLEARS: usize = libc::CLONE_CHILD_CLEARTID as usize;

/// The words of a child that the kernel writes: the parent's pidfd and the parent's copy of the child's number, as the
/// flags ask for them; and the child's.
type Words = [usize; 3];

fn is_writable(word: usize) -> bool {
    let page = word / PAGE * PAGE;
    let writable = |owner| matches!(owner, Owner::Managed(manner) if manner.protection & libc::PROT_WRITE != 0);
    memory::manages(word) && parts(page..page + PAGE).iter().all(|(_, owner)| writable(*owner))
}

/// Makes a child that the C library's `fork` does not know of. `make` gets flags and words for the kernel. It returns 0
/// in the child; in the parent it returns the child's number or a negative error. So does this function.
///
/// # Safety
/// `make` makes a process with a copy of this one's memory, or fails.
unsafe fn copied(flags: usize, words: Words, make: impl FnOnce(usize, Words) -> isize) -> isize {
    let managed = words.map(is_writable);
    let asked = [libc::CLONE_PIDFD, libc::CLONE_PARENT_SETTID].map(|flag| flags & flag as usize != 0);
    let of_parent = |i: usize| if managed[i] { WORDS[i].as_ptr() as usize } else { words[i] };
    let of_kernel = if managed[2] { flags & !(SETS | CLEARS) } else { flags };
    prepare_for(flags & libc::CLONE_FILES as usize != 0);
    let made = make(of_kernel, [of_parent(0), of_parent(1), words[2]]);
    let values = WORDS.each_ref().map(|word| word.load(Relaxed));
    if made == 0 {
        // SAFETY: as the C library calls it.
        unsafe { child() };
        own_words(flags, words[2]);
        return 0;
    }
    if let Some(error) = parent_of() {
        return refused(made, error);
    }
    for i in (0..2).filter(|i| made > 0 && asked[*i] && managed[*i]) {
        // SAFETY: the program lets the kernel write there.
        unsafe { (words[i] as *mut u32).write(values[i]) };
    }
    made
}

/// In a child: what the kernel would do with a word of its memory.
fn own_words(flags: usize, word: usize) {
    if !is_writable(word) {
        return;
    }
    if flags & SETS != 0 {
        // SAFETY: the program lets the kernel write there.
        unsafe { (word as *mut u32).write(sys::thread()) };
    }
    if flags & CLEARS != 0 {
        // SAFETY: notes the address.
        unsafe { sys::call(libc::SYS_set_tid_address, [word, 0, 0, 0, 0, 0]) };
    }
}

/// Waits for a child that there must not be, which ends at once. The result for its maker.
fn refused(child: isize, error: c_int) -> isize {
    if child > 0 {
        // SAFETY: no pointers.
        unsafe { sys::call(libc::SYS_wait4, [child as usize, 0, libc::__WALL as usize, 0, 0, 0]) };
    }
    -(error as isize)
}

/// Replaces the C library's function: if the kernel does not let a child have the memory, there is no child.
///
/// Signals are blocked from the start, for the C library holds a lock while it looks for the handlers of a fork. A
/// signal handler that needed memory just then would wait for another thread's fork, and that fork for the lock.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fork() -> c_int {
    REFUSED.store(0, Relaxed);
    let mask = sys::block_signals();
    let made = next!(FORK, (), none());
    sys::restore_signals(mask);
    let state = REFUSED.load(Relaxed);
    if made == 0 || state >> 32 != u64::from(sys::thread()) {
        return made;
    }
    REFUSED.store(0, Relaxed);
    sys::answer(refused(made as isize, state as u32 as i32)) as c_int
}

/// The result of a function of the C library as the kernel gives it.
fn raw(result: c_int) -> isize {
    if result < 0 {
        -(sys::errno() as isize)
    } else {
        result as isize
    }
}

/// Replaces the C library's function, which calls no handlers.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[allow(non_snake_case)] // the C library's name
pub unsafe extern "C" fn _Fork() -> c_int {
    let make = |_: usize, _: Words| raw(next!(FORK_ALONE, (), none()));
    // SAFETY: the C library's function makes a process, or fails.
    unsafe { sys::answer(copied(0, [0; 3], make)) as c_int }
}

/// The system calls that make a process: whether this one makes a copy that continues at the place of the call.
pub fn copies(number: i64, flags: usize, stack: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_fork {
        return true;
    }
    number == libc::SYS_clone && flags & libc::CLONE_VM as usize == 0 && stack == 0
}

/// `fork` or `clone` through `syscall`, with its kind of result, for what [`copies`].
///
/// # Safety
/// As for the system call.
pub unsafe fn by_number(number: i64, [flags, stack, parent, fourth, fifth, _]: [usize; 6]) -> isize {
    let (flags, parent) = if number == libc::SYS_clone { (flags, parent) } else { (0, 0) };
    let (child, tls) = if cfg!(target_arch = "x86_64") { (fourth, fifth) } else { (fifth, fourth) };
    let make = |flags, [pidfd, parent, child]: Words| {
        let number_at = if flags & libc::CLONE_PIDFD as usize != 0 { pidfd } else { parent };
        let (fourth, fifth) = if cfg!(target_arch = "x86_64") { (child, tls) } else { (tls, child) };
        // SAFETY: the kernel makes a copy, which returns from here too.
        unsafe { sys::call(number, [flags, stack, number_at, fourth, fifth, 0]) }
    };
    // SAFETY: the caller's call.
    sys::answer(unsafe { copied(flags, [parent, parent, child], make) })
}

/// clone3 through `syscall`, with its kind of result. A copy of the program is made as `clone` makes one. ENOSYS, as
/// from kernels that do not have the call, where the child would begin elsewhere.
///
/// # Safety
/// As for the system call.
pub unsafe fn clone3(arguments: usize, len: usize) -> isize {
    /// The least length, and room for more words than any kernel has yet (`struct clone_args`).
    const LEAST: usize = 64;
    /// The deepest namespaces of process numbers (MAX_PID_NS_LEVEL).
    const DEEPEST: usize = 32;
    let numbers;
    let mut own = [0u64; 16];
    let given = values(arguments as *const u8, len.min(size_of_val(&own))).filter(|_| len >= LEAST);
    // SAFETY: the caller's call.
    unsafe {
        if let Some(given) = &given {
            std::ptr::copy_nonoverlapping(given.as_ptr(), own.as_mut_ptr().cast(), given.len());
        }
        let [flags, pidfd, child, parent, _, stack, _, _, chosen, count, ..] = own;
        if given.is_none() || flags & libc::CLONE_VM as u64 != 0 {
            if !threads::pinned_for_clone(flags as c_int, child as usize) {
                return failed(libc::ENOMEM);
            }
            return sys::answer(sys::call(libc::SYS_clone3, [arguments, len, 0, 0, 0, 0]));
        }
        if len > size_of_val(&own) || stack != 0 {
            return sys::answer(-(libc::ENOSYS as isize));
        }
        if memory::manages(chosen as usize) && count as usize <= DEEPEST {
            let Some(all) = values(chosen as *const u32, count as usize) else { return failed(libc::EFAULT) };
            numbers = all;
            own[8] = numbers.as_ptr() as u64;
        }
        let make = |flags, [pidfd, parent, child]: Words| {
            own[..4].copy_from_slice(&[flags as u64, pidfd as u64, child as u64, parent as u64]);
            sys::call(libc::SYS_clone3, [own.as_ptr() as usize, len, 0, 0, 0, 0])
        };
        sys::answer(copied(flags as usize, [pidfd, parent, child].map(|word| word as usize), make))
    }
}

type Body = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The function of a child of `clone`, its argument, the child's stack, and the flags and the child's word as the
/// program gave them.
struct Begin(Body, *mut c_void, Still, usize, usize);

unsafe extern "C" fn begin(what: *mut c_void) -> c_int {
    // SAFETY: `clone` gave it; the child has a copy of the parent's stack.
    unsafe {
        child();
        let Begin(body, argument, still, flags, word) = what.cast::<Begin>().read();
        drop(still);
        own_words(flags, word);
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
    let make = |body: Body, flags: c_int, what, parent: usize, child: usize| {
        next!(CLONE, (body, stack, flags, what, parent, block, child), none())
    };
    if !memory::ready() {
        return make(body, flags, argument, parent_number, child_number);
    }
    if flags & libc::CLONE_VM != 0 {
        if !threads::pinned_for_clone(flags, child_number) {
            return failed(libc::ENOMEM) as c_int;
        }
        let made = make(body, flags, argument, parent_number, child_number);
        if made > 0 && flags & (libc::CLONE_THREAD | libc::CLONE_VFORK) == 0 {
            memory::inside(move || pager().shares_memory_with(made as usize));
        }
        return made;
    }
    // While the pager stands still, no thread could bring in the child's stack.
    let still = Still::below((stack as usize).next_multiple_of(PAGE));
    let mut what = Begin(body, argument, still, flags as usize, child_number);
    let make = |flags: usize, [pidfd, parent, child]: Words| {
        let number_at = if flags & libc::CLONE_PIDFD as usize != 0 { pidfd } else { parent };
        raw(make(begin, flags as c_int, (&raw mut what).cast(), number_at, child))
    };
    let asks = |flag: c_int, word: usize| if flags & flag != 0 { word } else { 0 };
    let words = [asks(libc::CLONE_PIDFD, parent_number), asks(libc::CLONE_PARENT_SETTID, parent_number)];
    let child_number = asks(libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID, child_number);
    // SAFETY: the C library's function makes a process whose `begin` runs what was to run, or fails.
    sys::answer(unsafe { copied(flags as usize, [words[0], words[1], child_number], make) }) as c_int
}

/// Replaces the C library's function. A library in a namespace of its own has a C library of its own, whose forks call
/// its own list of handlers: ours are put there, too.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dlmopen(namespace: c_long, name: *const c_char, flags: c_int) -> *mut c_void {
    let library: *mut c_void = next!(DLMOPEN, (namespace, name, flags), std::ptr::null_mut());
    if namespace != libc::LM_ID_BASE && !library.is_null() && memory::ready() {
        // SAFETY: looks a name up.
        match unsafe { libc::dlsym(library, c"__register_atfork".as_ptr()) } as usize {
            0 => say::once!("a library has a C library of its own that cannot fork with managed memory"),
            // SAFETY: that C library's function of that type.
            register => {
                _ = unsafe { register_at(register, Some(prepare), Some(parent), Some(child), std::ptr::null_mut()) }
            }
        }
    }
    library
}
