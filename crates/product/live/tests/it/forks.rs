//! Children that are difficult for a pager: without descriptors, rights, threads or their old root folder. None of them
//! is stopped, and each sees every byte of its parent.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{forked, in_child, pager, round_of, stamp, succeeds, wait_for};
use coldframe_live::{Options, Pager, Region, PAGE};

const PAGES: usize = 512;
const UNPAGED: &str = "runs without paging";

/// A region of eight times the RAM, with each page stamped.
fn region(pager: &Pager) -> Region {
    let region = pager.anonymous(PAGES * PAGE).unwrap();
    (0..PAGES).for_each(|page| stamp(&region, page, 1));
    region
}

fn look(region: &Region, round: u64) {
    (0..PAGES).for_each(|page| assert_eq!(round_of(region, page), round, "page {page}"));
}

/// Runs `f` in a child, which must end well.
fn child(f: impl FnOnce()) {
    assert_eq!(wait_for(forked(f)), 0);
}

/// Uses managed memory in all ways of a program, in this process and in a child.
fn live_on(region: &mut Region) {
    look(region, 1);
    (0..PAGES).for_each(|page| stamp(region, page, 2));
    look(region, 2);
    let more = region.pager().anonymous(PAGES * PAGE).unwrap();
    assert!(more.as_slice().iter().all(|byte| *byte == 0));
    (0..PAGES).for_each(|page| stamp(&more, page, 7));
    let pin = more.pin(0..PAGE).unwrap();
    child(|| {
        look(region, 2);
        look(&more, 7);
        stamp(&more, 3, 8);
    });
    look(&more, 7);
    drop(pin);
    more.discard(0..PAGE).unwrap();
    assert_eq!(round_of(&more, 0), 0);
}

fn is_root() -> bool {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() == 0 }
}

fn limit(what: libc::__rlimit_resource_t, to: u64) {
    let limit = libc::rlimit { rlim_cur: to, rlim_max: to };
    // SAFETY: reads the limit.
    assert_eq!(unsafe { libc::setrlimit(what, &limit) }, 0);
}

fn both(name: &str, test: impl Fn(&dyn Fn(&mut Options))) {
    for encrypt in [false, true] {
        eprintln!("{name}, encrypted: {encrypt}");
        test(&|options| options.encrypt = encrypt);
    }
}

#[test]
fn a_child_without_descriptors_runs_unpaged_and_says_so_once() {
    both("no descriptors", |change| {
        let (status, words) = in_child(|| {
            let pager = pager(64 * PAGE as u64, change);
            let mut region = region(&pager);
            limit(libc::RLIMIT_NOFILE, 3);
            child(|| live_on(&mut region));
            look(&region, 1);
        });
        assert_eq!((status, words.matches(UNPAGED).count()), (0, 1), "{words}");
    });
}

#[test]
fn a_process_with_another_root_folder_has_children_that_page() {
    if !is_root() {
        return;
    }
    both("chroot", |change| {
        let (status, words) = in_child(|| {
            let mut region = region(&pager(64 * PAGE as u64, change));
            let folder = tempfile::tempdir().unwrap();
            std::os::unix::fs::chroot(folder.path()).unwrap();
            child(|| live_on(&mut region));
            look(&region, 1);
        });
        assert_eq!((status, words.contains(UNPAGED)), (0, false), "{words}");
    });
}

#[test]
fn a_child_after_rights_were_dropped_has_all_bytes_paged_or_not() {
    if !is_root() {
        return;
    }
    both("rights", |change| {
        let folder = tempfile::tempdir().unwrap();
        let (status, words) = in_child(|| {
            let mut region = region(&pager(64 * PAGE as u64, |options| {
                change(options);
                options.backing = folder.path().to_path_buf();
            }));
            // SAFETY: no pointers.
            assert_eq!(unsafe { libc::setresuid(54321, 54321, 54321) }, 0);
            child(|| live_on(&mut region));
            child(|| live_on(&mut region));
            look(&region, 1);
        });
        assert_eq!((status, words.contains("stopped")), (0, false), "{words}");
    });
}

#[test]
fn a_child_that_may_have_no_more_threads_runs_unpaged() {
    if !is_root() {
        return;
    }
    let (status, words) = in_child(|| {
        let mut region = region(&pager(64 * PAGE as u64, |_| ()));
        // SAFETY: no pointers.
        assert_eq!(unsafe { libc::setresuid(54322, 54322, 54322) }, 0);
        // The first limit that allows the child leaves no room for another thread.
        let pid = (1..100).find_map(|most| {
            limit_soft(libc::RLIMIT_NPROC, most);
            // SAFETY: the child ends without returning.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                limit_soft(libc::RLIMIT_NPROC, 100);
                let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| live_on(&mut region))).is_ok();
                // SAFETY: ends the process.
                unsafe { libc::_exit(if good { 0 } else { 101 }) };
            }
            (pid > 0).then_some(pid)
        });
        assert_eq!(wait_for(pid.unwrap()), 0);
        look(&region, 1);
    });
    assert_eq!((status, words.matches(UNPAGED).count()), (0, 1), "{words}");
}

fn limit_soft(what: libc::__rlimit_resource_t, to: u64) {
    let limit = libc::rlimit { rlim_cur: to, rlim_max: 100 };
    // SAFETY: reads the limit.
    assert_eq!(unsafe { libc::setrlimit(what, &limit) }, 0);
}

/// The address at which `map_kernel_owned` wants its page, and then the page's address.
static KERNEL_OWNED: AtomicUsize = AtomicUsize::new(0);

/// Maps a page in the child before the pager's own handler runs, as a library's fork handler may.
extern "C" fn map_kernel_owned() {
    let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let wish = KERNEL_OWNED.load(Ordering::Relaxed) as *mut libc::c_void;
    // SAFETY: a new page, which the kernel puts there only if the place is free.
    unsafe {
        let page = libc::mmap(wish, PAGE, rights, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        page.cast::<u8>().write(7);
        KERNEL_OWNED.store(page as usize, Ordering::Relaxed);
    }
}

#[test]
fn what_a_child_maps_before_its_pager_is_at_work_is_kept() {
    both("early", |change| {
        let (status, words) = in_child(|| {
            // SAFETY: a function of that type.
            assert_eq!(unsafe { libc::pthread_atfork(None, None, Some(map_kernel_owned)) }, 0);
            let pager = pager(64 * PAGE as u64, change);
            let (region, mut own) = (region(&pager), pager.anonymous(PAGES * PAGE).unwrap());
            own.as_mut_slice()[0] = 1;
            let address = own.as_ptr() as usize;
            pager.note(address..address + PAGES * PAGE, |manner| manner.dont_fork = true);
            KERNEL_OWNED.store(address, Ordering::Relaxed);
            child(|| {
                look(&region, 1);
                // SAFETY: the page that was mapped.
                assert_eq!(unsafe { (KERNEL_OWNED.load(Ordering::Relaxed) as *const u8).read_volatile() }, 7);
            });
            assert_eq!(own.as_slice()[0], 1);
        });
        assert_eq!(status, 0, "{words}");
    });
}

#[test]
fn a_child_that_outlives_its_parent_still_sees_its_memory() {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // The middle process forks the process that checks, and ends at once.
    let (status, words) = in_child(|| {
        let region = region(&pager(64 * PAGE as u64, |_| ()));
        // SAFETY: the parent ends, the child continues.
        unsafe {
            if libc::fork() != 0 {
                libc::_exit(0);
            }
            libc::usleep(100_000);
        }
        look(&region, 1);
        // SAFETY: one byte.
        assert_eq!(unsafe { libc::write(ends[1], c"!".as_ptr().cast(), 1) }, 1);
    });
    let mut verdict = 0u8;
    // SAFETY: our own end of the pipe; room for one byte.
    let read = unsafe {
        libc::close(ends[1]);
        libc::read(ends[0], (&raw mut verdict).cast(), 1)
    };
    assert_eq!((status, read, verdict), (0, 1, b'!'), "{words}");
}

#[test]
fn a_pager_names_the_descriptors_that_tell_of_its_children() {
    let (status, words) = in_child(|| {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let pager = pager(64 * PAGE as u64, |options| options.journal = Some(journal.clone()));
        let region = region(&pager);
        let named = |what: &str| {
            let links = coldframe_live::own_descriptors::all()
                .map(|fd| std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap());
            links.filter(|link| link.to_string_lossy().contains(what)).count()
        };
        assert_eq!(named(journal.to_str().unwrap()), 1);
        let sockets = named("socket:");
        // SAFETY: the child ends without returning.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let more = named("socket:");
            // SAFETY: ends the process; reads nothing.
            unsafe { libc::_exit(i32::from(more <= sockets)) };
        }
        // Pagers of other tests may be in this process, too.
        assert!(named("socket:") > sockets);
        assert_eq!(wait_for(pid), 0);
        look(&region, 1);
    });
    assert_eq!(status, 0, "{words}");
}

#[test]
fn what_a_child_unpins_and_unmaps_goes_off_its_own_share_of_the_statistics() {
    succeeds(|| {
        let pager = pager(64 * PAGE as u64, |_| ());
        let mut region = pager.anonymous(96 * PAGE).unwrap();
        region.as_mut_slice().fill(1);
        let pin = region.pin(0..10 * PAGE).unwrap();
        let now = || {
            let stats = pager.stats();
            [stats.processes, stats.frames, stats.resident, stats.managed, stats.pinned]
        };
        let before = now();
        assert_eq!(before[3..], [96, 10]);
        // SAFETY: the child ends without returning.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let both = now();
            drop(pin);
            drop(region);
            drop(pager);
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(both[3..] != [192, 20])) };
        }
        assert_eq!((wait_for(pid), now()), (0, before));
    });
}

/// All the pages that the pipes of one user may have; a new pipe then has two. Root may have more.
fn use_up_pipes() {
    // No other test runs as this user.
    let user = 65_533;
    // SAFETY: plain use of setresuid, pipe and fcntl; the pipes stay open.
    unsafe {
        assert!(!is_root() || libc::setresuid(user, user, user) == 0);
        for _ in 0..400 {
            let mut ends = [0; 2];
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            libc::fcntl(ends[1], libc::F_SETPIPE_SZ, 1 << 20);
            if libc::fcntl(ends[1], libc::F_GETPIPE_SZ) <= 2 * PAGE as i32 {
                return;
            }
        }
    }
    eprintln!("here a user's pipes have no limit");
}

#[test]
fn a_user_whose_pipes_have_all_the_pages_that_they_may_have_gets_a_pager_and_so_do_children() {
    for policy in ["fifo", "fifo-sc:valid=8"] {
        let (status, stderr) = in_child(|| {
            use_up_pipes();
            let pager = pager(1 << 18, |o| o.policy = Some(policy.to_string()));
            let mut region = region(&pager);
            live_on(&mut region);
            crate::common::count_up(&pager.anonymous(256 * PAGE).unwrap(), 4, 3000);
            pager.check();
        });
        assert!(status == 0 && stderr.is_empty(), "{policy}: {status}: {stderr}");
    }
}
