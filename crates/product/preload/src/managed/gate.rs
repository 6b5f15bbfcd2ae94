//! A gate in front of the pager. Fork shuts it and waits until no thread is inside. A thread that is copied in the
//! middle of the pager's work would leave a lock of the child's pager held, or a table half changed, for ever.
//!
//! Entering costs three plain stores. Each thread has a slot in which it notes that it is inside. The thread that forks
//! shuts the gate and has the kernel put a memory barrier into every running thread (membarrier). So a thread has
//! either noted itself before, and is waited for, or it sees the shut gate. If the kernel has no such call, every
//! entry pays for a barrier.
//!
//! ```text
//! thread: inside = 1 ┊ shut?  ── no ──► inside = 3 ──► pager ──► inside = 0            (┊ holds the compiler only)
//! fork:   shut = 1 ─ membarrier ─ every slot's inside = 0? ─ fork
//! ```

use std::arch::{asm, global_asm};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{compiler_fence, fence, AtomicBool, AtomicPtr, AtomicU32, Ordering::*};
use std::sync::OnceLock;

use crate::say::say;
use crate::sys;

/// The place of a thread. It is never freed; a later thread uses it again.
#[repr(align(64))]
struct Slot {
    taken: AtomicBool,
    /// [`KNOCKS`], and [`ADMITTED`] for each level inside: more than one if a signal handler allocates. A handler may
    /// interrupt its thread when that has knocked and has not looked: then it looks itself.
    inside: AtomicU32,
    next: AtomicPtr<Slot>,
}

/// All slots, a list that only grows.
static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(null_mut());
static SHUT: AtomicU32 = AtomicU32::new(0);
static STRONG: AtomicBool = AtomicBool::new(false);
/// Its destructor returns a thread's slot.
static KEY: AtomicU32 = AtomicU32::new(0);

const KNOCKS: u32 = 1;
const ADMITTED: u32 = 2;

/// After this many naps, two seconds, a message says what a fork waits for.
const PATIENCE: u32 = 20_000;
const NAP_US: u64 = 100;

// The thread's slot, as a variable of the static thread block: `thread_local!` would call `__tls_get_addr` at each
// entry.
global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".balign 8",
    ".globl coldframe_slot",
    ".hidden coldframe_slot",
    ".type coldframe_slot, @object",
    ".size coldframe_slot, 8",
    "coldframe_slot: .zero 8",
    ".popsection",
);

fn own() -> *mut *const Slot {
    let place: *mut *const Slot;
    // SAFETY: computes an address, in the initial-exec model: this library is loaded at the start, never later.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {0}, fs:[0]", "add {0}, [rip + coldframe_slot@GOTTPOFF]", out(reg) place,
            options(nostack, readonly, pure));
        #[cfg(target_arch = "aarch64")]
        asm!("mrs {0}, tpidr_el0", "adrp {1}, :gottprel:coldframe_slot",
            "ldr {1}, [{1}, :gottprel_lo12:coldframe_slot]", "add {0}, {0}, {1}",
            out(reg) place, out(reg) _, options(nostack, readonly, pure));
    }
    place
}

const MEMBARRIER_PRIVATE_EXPEDITED: usize = 8;
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: usize = 16;

fn membarrier(command: usize) -> bool {
    // SAFETY: a barrier, or the request to be allowed barriers.
    unsafe { sys::call(libc::SYS_membarrier, [command, 0, 0, 0, 0, 0]) == 0 }
}

/// What a thread that was inside does at its end.
static LAST: OnceLock<fn()> = OnceLock::new();

/// Call this before the first entry and before a pager process starts; again in a forked child. `last`: what each
/// thread that was inside does at its end.
pub fn start(last: fn()) {
    let _ = LAST.set(last);
    STRONG.store(!membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED), SeqCst);
    if KEY.load(Relaxed) == 0 {
        let mut key = 0;
        // SAFETY: writes the key; `leave` fits.
        let result = unsafe { libc::pthread_key_create(&mut key, Some(leave)) };
        assert_eq!(result, 0, "pthread_key_create");
        KEY.store(key + 1, Relaxed);
    }
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    // SAFETY: slots are never freed.
    let read = |slot: *mut Slot| unsafe { slot.as_ref() };
    std::iter::successors(read(SLOTS.load(Acquire)), move |slot| read(slot.next.load(Acquire)))
}

#[cold]
fn register() -> &'static Slot {
    let taken = slots().find(|s| s.taken.compare_exchange(false, true, AcqRel, Relaxed).is_ok());
    let slot = taken.unwrap_or_else(|| {
        let new = Slot { taken: AtomicBool::new(true), inside: AtomicU32::new(0), next: AtomicPtr::new(null_mut()) };
        let new = Box::leak(Box::new(new));
        let mut first = SLOTS.load(Acquire);
        loop {
            new.next.store(first, Relaxed);
            match SLOTS.compare_exchange(first, new, AcqRel, Acquire) {
                Ok(_) => break new,
                Err(now) => first = now,
            }
        }
    });
    // SAFETY: this thread's own variable; the destructor takes a slot.
    unsafe {
        *own() = slot;
        libc::pthread_setspecific(KEY.load(Relaxed) - 1, (&raw const *slot).cast());
    }
    slot
}

unsafe extern "C" fn leave(slot: *mut c_void) {
    LAST.get().inspect(|last| last());
    // SAFETY: this thread's own variable, and the slot that `register` gave with it.
    unsafe {
        *own() = std::ptr::null();
        (*slot.cast::<Slot>()).taken.store(false, Release);
    }
}

/// The thread is inside while this lives.
pub struct Inside(&'static Slot, u32);

/// Enters. Waits while the gate is shut, unless the thread is inside already.
#[inline]
pub fn enter() -> Inside {
    // SAFETY: this thread's own variable, null or a slot; slots are never freed.
    let slot = unsafe { (*own()).as_ref() }.unwrap_or_else(register);
    let before = slot.inside.load(Relaxed);
    loop {
        slot.inside.store(before | KNOCKS, Relaxed);
        match STRONG.load(Relaxed) {
            true => fence(SeqCst),
            false => compiler_fence(SeqCst),
        }
        if SHUT.load(Relaxed) == 0 || before >= ADMITTED {
            slot.inside.store((before | KNOCKS) + ADMITTED, Relaxed);
            return Inside(slot, before);
        }
        slot.inside.store(0, Release);
        sys::futex_wait(&SHUT, 1);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.store(self.1, Release);
    }
}

/// Shuts the gate and waits until no other thread is inside, however long that takes: a child with a half-changed
/// heap is worse than none. A signal handler that forks may be inside itself.
pub fn shut() {
    SHUT.store(1, SeqCst);
    membarrier(MEMBARRIER_PRIVATE_EXPEDITED);
    fence(SeqCst);
    // SAFETY: as in `enter`.
    let own = unsafe { *own() };
    let mut naps = 0;
    for slot in slots().filter(|s| !std::ptr::eq(*s, own)) {
        while slot.inside.load(Acquire) != 0 {
            naps += 1;
            if naps == PATIENCE {
                say("a fork waits for a thread that is allocating memory, or waits for a page while it is");
            }
            sys::sleep_us(NAP_US);
        }
    }
}

pub fn open() {
    SHUT.store(0, SeqCst);
    sys::futex_wake(&SHUT, i32::MAX as usize);
}

pub fn open_in_child() {
    // SAFETY: as in `enter`.
    let own = unsafe { *own() };
    for slot in slots().filter(|s| !std::ptr::eq(*s, own)) {
        slot.inside.store(0, Relaxed);
        slot.taken.store(false, Relaxed);
    }
    open();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests shut the one gate.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn a_handler_that_interrupts_a_thread_which_has_only_knocked_waits_too() {
        let _alone = ALONE.lock();
        static OPENED: AtomicBool = AtomicBool::new(false);
        start(|| ());
        drop(enter());
        // SAFETY: this thread's own variable; `enter` has given it a slot.
        let slot = unsafe { (*own()).as_ref() }.unwrap();
        SHUT.store(1, SeqCst);
        slot.inside.store(KNOCKS, SeqCst);
        let opener = std::thread::spawn(|| {
            sys::sleep_us(50_000);
            OPENED.store(true, SeqCst);
            open();
        });
        let inside = enter();
        assert!(OPENED.load(SeqCst));
        drop(inside);
        assert_eq!(slot.inside.swap(0, SeqCst), KNOCKS, "the thread still knocks");
        opener.join().unwrap();
    }

    #[test]
    fn nobody_is_inside_while_the_gate_is_shut() {
        let _alone = ALONE.lock();
        static WITHIN: AtomicU32 = AtomicU32::new(0);
        static ENTRIES: AtomicU32 = AtomicU32::new(0);
        static STOP: AtomicBool = AtomicBool::new(false);
        start(|| ());
        std::thread::scope(|scope| {
            for slow in [false, false, true] {
                scope.spawn(move || {
                    while !STOP.load(Relaxed) {
                        let _inside = enter();
                        let _deeper = enter();
                        WITHIN.fetch_add(1, Relaxed);
                        ENTRIES.fetch_add(1, Relaxed);
                        if slow {
                            sys::sleep_us(300);
                        }
                        WITHIN.fetch_sub(1, Relaxed);
                    }
                });
            }
            for _ in 0..200 {
                shut();
                let entries = ENTRIES.load(Relaxed);
                assert_eq!(WITHIN.load(Relaxed), 0);
                sys::sleep_us(100);
                assert_eq!((WITHIN.load(Relaxed), ENTRIES.load(Relaxed)), (0, entries));
                open();
                sys::sleep_us(100);
            }
            STOP.store(true, Relaxed);
        });
        assert!(ENTRIES.load(Relaxed) > 200);
        assert!(slots().count() >= 3 && slots().all(|s| s.inside.load(Relaxed) == 0));
    }
}
