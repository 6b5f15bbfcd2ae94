//! Faults in the faulting thread, with any stack and any use of signals.

mod apart;

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use apart::well;
use coldframe_live::{Faults, Options, Pager, Region, PAGE};

const RAM: u64 = 1 << 20;

fn in_thread(encrypt: bool) -> Pager {
    let options = Options { max_memory: 1 << 30, faults: Faults::InThread, encrypt, ..Options::new(RAM) };
    Pager::start(options).unwrap()
}

/// Fills a region of four times the RAM in the calling thread, one word per page, and reads it back, twice. So pages
/// are loaded and evicted one after the other, through the log and the device.
fn work(region: &mut Region) {
    let words = region.as_mut_slice();
    for round in 1..=2u64 {
        for page in 0..words.len() / PAGE {
            words[page * PAGE..][..8].copy_from_slice(&(round << 32 | page as u64).to_le_bytes());
        }
        for page in 0..words.len() / PAGE {
            let word = u64::from_le_bytes(words[page * PAGE..][..8].try_into().unwrap());
            assert_eq!(word, round << 32 | page as u64);
        }
    }
}

fn region(pager: &Pager) -> Region {
    pager.anonymous(4 * RAM as usize).unwrap()
}

static FRAME: AtomicUsize = AtomicUsize::new(0);

/// The lower end of the kernel's frame for a signal. On x86-64 the return address is below the context; on aarch64 the
/// signal's information comes first.
extern "C" fn lower_end(_: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    FRAME.store((context as usize - 8).min(info as usize), Ordering::Relaxed);
}

/// The exact size of the kernel's own frame for a signal. It differs between processors. AT_MINSIGSTKSZ also counts
/// registers that a program must request first. Measured in a new thread, since a frame contains the registers that its
/// thread has used.
fn least_alternate() -> usize {
    let top = std::thread::spawn(|| {
        let top = alternate(64 << 10);
        // SAFETY: zero is a value of the structure; the handler has the type that the flags say; the signal goes to this thread.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = lower_end as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
            assert_eq!(libc::pthread_kill(libc::pthread_self(), libc::SIGUSR1), 0);
        }
        top
    });
    let frame = top.join().unwrap() - FRAME.load(Ordering::Relaxed);
    frame.next_multiple_of(64).max(libc::MINSIGSTKSZ)
}

/// Gives the calling thread an alternate stack of this size, with an inaccessible page below it. Returns its upper end.
fn alternate(bytes: usize) -> usize {
    let room = bytes.next_multiple_of(PAGE);
    // SAFETY: new memory with a guard page on both sides, for this thread alone.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let all = libc::mmap(std::ptr::null_mut(), room + 2 * PAGE, libc::PROT_NONE, flags, -1, 0);
        assert_ne!(all, libc::MAP_FAILED);
        let start = all.add(PAGE);
        assert_eq!(libc::mprotect(start, room, libc::PROT_READ | libc::PROT_WRITE), 0);
        // Its lower end is at the guard page, so one byte below the kernel's frame is too much.
        let stack = libc::stack_t { ss_sp: start, ss_flags: 0, ss_size: bytes };
        assert_eq!(libc::sigaltstack(&stack, std::ptr::null_mut()), 0);
        start as usize + bytes
    }
}

#[test]
fn an_alternate_stack_that_takes_only_the_kernels_frame_is_enough() {
    well("an_alternate_stack_that_takes_only_the_kernels_frame_is_enough", || {
        for encrypt in [false, true] {
            let pager = in_thread(encrypt);
            let mut region = region(&pager);
            let least = least_alternate();
            std::thread::spawn(move || {
                alternate(least);
                work(&mut region);
            })
            .join()
            .unwrap();
            pager.check();
        }
    });
}

#[test]
fn the_threads_of_the_standard_library_can_fault_on_sealed_pages() {
    well("the_threads_of_the_standard_library_can_fault_on_sealed_pages", || {
        let pager = in_thread(true);
        let regions: Vec<Region> = (0..4).map(|_| region(&pager)).collect();
        std::thread::scope(|scope| {
            for mut region in regions {
                scope.spawn(move || work(&mut region));
            }
        });
        pager.check();
    });
}

extern "C" fn body(region: *mut c_void) -> *mut c_void {
    // SAFETY: the test gives each thread its own region.
    work(unsafe { &mut *region.cast::<Region>() });
    std::ptr::null_mut()
}

#[test]
fn threads_with_the_smallest_stack_can_fault_on_sealed_pages() {
    well("threads_with_the_smallest_stack_can_fault_on_sealed_pages", || {
        let pager = in_thread(true);
        for _ in 0..3 {
            let mut regions: Vec<Region> = (0..3).map(|_| region(&pager)).collect();
            // SAFETY: each thread has its own region, and is joined before the region is dropped.
            unsafe {
                let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
                libc::pthread_attr_init(&mut attributes);
                // The C library's minimum counts registers that are not used here; the frame and 8 KiB for the library
                // are enough.
                let least = (least_alternate() + (12 << 10)).next_multiple_of(PAGE);
                let least = least.max(16 << 10);
                assert_eq!(libc::pthread_attr_setstacksize(&mut attributes, least), 0);
                let threads: Vec<libc::pthread_t> = regions
                    .iter_mut()
                    .map(|region| {
                        let mut thread = std::mem::zeroed();
                        assert_eq!(libc::pthread_create(&mut thread, &attributes, body, (&raw mut *region).cast()), 0);
                        thread
                    })
                    .collect();
                for thread in threads {
                    assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
                }
            }
        }
    });
}

static SMALL: AtomicUsize = AtomicUsize::new(0);

extern "C" fn coroutine() {
    // SAFETY: the address of a region that the test does not use meanwhile.
    work(unsafe { &mut *(SMALL.load(Ordering::Relaxed) as *mut Region) });
}

#[test]
fn a_coroutine_with_a_small_stack_can_fault_on_sealed_pages() {
    well("a_coroutine_with_a_small_stack_can_fault_on_sealed_pages", || {
        let pager = in_thread(true);
        let mut region = region(&pager);
        SMALL.store(&raw mut region as usize, Ordering::Relaxed);
        // Without an alternate stack, the kernel puts its frame on the coroutine's stack.
        let room = (least_alternate() + 2048).next_multiple_of(PAGE);
        // SAFETY: contexts and stack live until the coroutine has ended.
        unsafe {
            let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            assert_eq!(libc::sigaltstack(&none, std::ptr::null_mut()), 0);
            let (flags, prot) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
            let stack = libc::mmap(std::ptr::null_mut(), room + PAGE, prot, flags, -1, 0);
            assert_eq!(libc::mprotect(stack, PAGE, libc::PROT_NONE), 0);
            let (mut here, mut there): (libc::ucontext_t, libc::ucontext_t) = (std::mem::zeroed(), std::mem::zeroed());
            assert_eq!(libc::getcontext(&mut there), 0);
            there.uc_stack = libc::stack_t { ss_sp: stack.add(PAGE), ss_flags: 0, ss_size: room };
            there.uc_link = &mut here;
            libc::makecontext(&mut there, coroutine, 0);
            assert_eq!(libc::swapcontext(&mut here, &there), 0);
        }
        pager.check();
    });
}

static SEEN_STACK: AtomicUsize = AtomicUsize::new(0);
static SEEN_MASK: AtomicU64 = AtomicU64::new(0);
static SEEN_ADDRESS: AtomicUsize = AtomicUsize::new(0);

/// The program's own handler: makes the touched page accessible.
extern "C" fn own(_: i32, info: *mut libc::siginfo_t, _: *mut c_void) {
    let here = 0u8;
    SEEN_STACK.store(&raw const here as usize, Ordering::Relaxed);
    // SAFETY: the kernel gives the address, and its page is the test's; the mask has 8 bytes.
    unsafe {
        let address = (*info).si_addr() as usize;
        SEEN_ADDRESS.store(address, Ordering::Relaxed);
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, std::ptr::null(), &mut mask);
        SEEN_MASK.store((&raw const mask).cast::<u64>().read(), Ordering::Relaxed);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let page = (address & !(PAGE - 1)) as *mut c_void;
        libc::mmap(page, PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
    }
}

fn own_handler() {
    // SAFETY: zero is a value of the structure; the handler has the type that the flags say.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = own as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaddset(&mut action.sa_mask, libc::SIGUSR2);
        assert_eq!(libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()), 0);
    }
}

/// A page beyond the end of a file: a touch is a SIGBUS for the program alone.
fn beyond_the_end() -> *mut u8 {
    use std::os::fd::AsRawFd;
    let file = tempfile::tempfile().unwrap();
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: new address space.
    unsafe { libc::mmap(std::ptr::null_mut(), PAGE, prot, flags, file.as_raw_fd(), 0).cast() }
}

#[test]
fn what_is_not_ours_goes_on_to_the_programs_handler_on_the_programs_stack() {
    well("what_is_not_ours_goes_on_to_the_programs_handler_on_the_programs_stack", || {
        own_handler();
        let pager = in_thread(false);
        let mut region = region(&pager);
        work(&mut region);
        alternate(64 << 10);
        // SAFETY: the old settings, and a touch that the handler repairs.
        let alternate = unsafe {
            let mut stack: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(std::ptr::null(), &mut stack);
            let page = beyond_the_end();
            page.write_volatile(7);
            assert_eq!((SEEN_ADDRESS.load(Ordering::Relaxed), page.read_volatile()), (page as usize, 7));
            stack.ss_sp as usize..stack.ss_sp as usize + stack.ss_size
        };
        assert!(alternate.contains(&SEEN_STACK.load(Ordering::Relaxed)), "on the thread's alternate stack");
        let bit = |signal: i32| 1u64 << (signal - 1);
        assert_eq!(SEEN_MASK.load(Ordering::Relaxed), bit(libc::SIGBUS) | bit(libc::SIGUSR2));
        work(&mut region);
        pager.check();
    });
}

#[test]
fn a_handler_for_sigbus_that_comes_too_late_is_noticed_and_told_once() {
    let words = well("a_handler_for_sigbus_that_comes_too_late_is_noticed_and_told_once", || {
        let pager = in_thread(false);
        own_handler();
        for _ in 0..3 {
            drop(region(&pager));
        }
    });
    assert_eq!(words.matches("set its own handler for SIGBUS").count(), 1, "{words}");
}

#[test]
fn more_threads_than_there_are_stacks_fault_at_a_time() {
    well("more_threads_than_there_are_stacks_fault_at_a_time", || {
        let pager = in_thread(false);
        let regions: Vec<Region> = (0..80).map(|_| pager.anonymous(64 * PAGE).unwrap()).collect();
        std::thread::scope(|scope| {
            for mut region in regions {
                scope.spawn(move || work(&mut region));
            }
        });
        pager.check();
    });
}
