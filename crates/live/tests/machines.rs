//! Differences between machines must not matter: the pager runs with the smallest stacks, on one processor, without
//! parts of the kernel, beside KSM and huge pages, with a fast and a slow device. Each case runs in a thread that is
//! prepared before its pager starts, because the pager's own threads inherit the thread's settings.
//!
//! ChaCha20 detects the processor's features at run time, and they cannot be disabled from outside. What they need is
//! stack.

use std::io;
use std::path::Path;

use coldframe_live::{Inject, Options, Pager, Region, Wait, PAGE};

const RAM: u64 = 1 << 20;
const PAGES: usize = 1024;

fn pager(change: impl FnOnce(&mut Options)) -> Pager {
    let mut options = Options { max_memory: 1 << 28, ..Options::new(RAM) };
    change(&mut options);
    Pager::start(options).unwrap()
}

const MODES: [usize; 2] = [1, 3];

/// Writes and reads four times the RAM, in order and at random, and compares with a shadow.
fn exercise(pager: &Pager, mut region: Region, rounds: u64) {
    let mut shadow = vec![0u64; PAGES];
    let mut random = fastrand::Rng::with_seed(11);
    for round in 1..=rounds {
        for step in 0..PAGES {
            let page = if random.u8(..4) == 0 { step } else { random.usize(..PAGES) };
            let word = &mut region.as_mut_slice()[page * PAGE..][..8];
            assert_eq!(u64::from_le_bytes(word.try_into().unwrap()), shadow[page], "page {page} in round {round}");
            if random.bool() {
                shadow[page] = round << 20 | step as u64;
                word.copy_from_slice(&shadow[page].to_le_bytes());
            }
        }
    }
    drop(region);
    pager.check();
}

/// A pager and a region, in a thread that `prepare` has changed.
fn on_a_machine(prepare: impl Fn() -> io::Result<()> + Sync, change: impl Fn(&mut Options) + Sync) {
    for handlers in MODES {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                prepare().unwrap();
                let pager = pager(|o| {
                    o.handlers = handlers;
                    change(o);
                });
                let region = pager.anonymous(PAGES * PAGE).unwrap();
                exercise(&pager, region, 3);
            });
        });
    }
}

fn done(result: i64) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[test]
fn one_processor() {
    let one = || {
        // SAFETY: the set lives through the call.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(0, &mut set);
            done(libc::sched_setaffinity(0, size_of_val(&set), &set).into())
        }
    };
    on_a_machine(one, |_| {});
    on_a_machine(one, |o| o.wait = Wait::Poll);
}

/// Makes a system call fail in this thread and in threads that it starts, as on a kernel without the call. With
/// `argument`: only for this second argument.
fn refuse(call: i64, argument: Option<u32>, error: i32) -> io::Result<()> {
    const LOAD: u16 = 0x20;
    const EQUAL: u16 = 0x15;
    const ANSWER: u16 = 0x06;
    let line = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // `seccomp_data`: the call's number comes first, its second argument 24 bytes later. A jump gives the number of
    // skipped lines.
    let mut program = [
        line(LOAD, 0, 0, 0),
        line(EQUAL, if argument.is_some() { 0 } else { 2 }, 3, call as u32),
        line(LOAD, 0, 0, 24),
        line(EQUAL, 0, 1, argument.unwrap_or(0)),
        line(ANSWER, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
        line(ANSWER, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter lives through the call.
    unsafe {
        done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        done(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter).into())
    }
}

#[test]
fn no_io_uring() {
    let none = || refuse(libc::SYS_io_uring_setup, None, libc::ENOSYS);
    on_a_machine(none, |o| o.wait = Wait::Read);
    on_a_machine(none, |o| o.wait = Wait::Auto);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            none().unwrap();
            assert_eq!(pager(|o| o.wait = Wait::Auto).options().wait, Wait::Read);
            let asked = Options { max_memory: 1 << 28, wait: Wait::Brief, ..Options::new(RAM) };
            let refused = Pager::start(asked).expect_err("who asks for a ring is told that there is none");
            assert!(refused.to_string().contains("io_uring"), "{refused}");
        });
    });
}

#[test]
fn no_moves_of_pages() {
    // UFFDIO_MOVE: _IOWR(0xaa, 5, 40 bytes).
    on_a_machine(|| refuse(libc::SYS_ioctl, Some(0xc028_aa05), libc::EINVAL), |_| {});
}

#[test]
fn no_advice_for_other_processes() {
    on_a_machine(|| refuse(libc::SYS_process_madvise, None, libc::EPERM), |_| {});
}

#[test]
fn a_slow_device_and_one_that_lies_in_ram() {
    on_a_machine(
        || Ok(()),
        |o| {
            o.ram = 3 << 20;
            o.inject = Some(Inject { slow_us: 300, ..Inject::default() });
        },
    );
    if Path::new("/dev/shm").is_dir() {
        on_a_machine(|| Ok(()), |o| o.backing = "/dev/shm".into());
    }
}

#[test]
fn a_device_that_stumbles_in_either_mode() {
    let stumbles = Inject { seed: 3, read_short: 40, again: 20, read_error: 400, write_short: 30, ..Inject::default() };
    on_a_machine(|| Ok(()), |o| o.inject = Some(stumbles));
}

/// The program may tell the kernel how to use the memory; the pager's pages still stay single and small.
#[test]
fn memory_that_the_program_gives_to_ksm_or_wants_in_huge_pages() {
    for advice in [libc::MADV_MERGEABLE, libc::MADV_HUGEPAGE] {
        for handlers in MODES {
            let pager = pager(|o| o.handlers = handlers);
            let region = pager.anonymous(PAGES * PAGE).unwrap();
            // SAFETY: advice about memory of ours; a kernel that does not know it refuses.
            unsafe { libc::madvise(region.as_ptr() as *mut libc::c_void, PAGES * PAGE, advice) };
            exercise(&pager, region, 3);
        }
    }
}

/// The smallest alternate stack that the kernel accepts, and the smallest stack that the C library accepts.
#[test]
fn the_smallest_stacks_that_the_system_allows() {
    for encrypt in [false, true] {
        for handlers in MODES {
            let pager = pager(|o| (o.handlers, o.encrypt) = (handlers, encrypt));
            let region = pager.anonymous(PAGES * PAGE).unwrap();
            let job = Job { memory: region.as_ptr(), bad: false };
            assert!(!in_a_small_thread(job), "{handlers} handlers, encrypted: {encrypt}");
            pager.check();
        }
    }
}

struct Job {
    memory: *mut u8,
    bad: bool,
}

/// Writes a byte in every page and reads it back, twice, without large variables on the stack.
extern "C" fn small(job: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the job lives until the thread has been joined, and its memory is `PAGES` pages.
    unsafe {
        let job = &mut *job.cast::<Job>();
        let least = libc::getauxval(51).max(2048) as usize; // AT_MINSIGSTKSZ
        let stack = libc::mmap(
            std::ptr::null_mut(),
            least,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        let alternate = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: least };
        job.bad |= libc::sigaltstack(&alternate, std::ptr::null_mut()) != 0;
        for _ in 0..2 {
            for page in 0..PAGES {
                job.memory.add(page * PAGE).write_volatile(page as u8);
            }
            for page in 0..PAGES {
                job.bad |= job.memory.add(page * PAGE).read_volatile() != page as u8;
            }
        }
    }
    std::ptr::null_mut()
}

fn in_a_small_thread(mut job: Job) -> bool {
    // SAFETY: plain use of pthread; the job outlives the thread.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        let least = libc::sysconf(libc::_SC_THREAD_STACK_MIN).max(16384) as usize;
        assert_eq!(libc::pthread_attr_setstacksize(&mut attributes, least.next_multiple_of(PAGE)), 0);
        let mut thread = std::mem::zeroed();
        let argument = std::ptr::from_mut(&mut job).cast();
        assert_eq!(libc::pthread_create(&mut thread, &attributes, small, argument), 0);
        assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
    }
    job.bad
}
