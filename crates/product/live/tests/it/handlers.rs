//! Faults that the pager's own threads handle.

use crate::common::succeeds;
use coldframe_live::{Options, Pager, Wait, PAGE};

const RAM: u64 = 1 << 20;

fn pager(handlers: usize) -> Pager {
    let options = Options { max_memory: 1 << 30, handlers, ..Options::new(RAM) };
    Pager::start(options).unwrap()
}

fn work(pager: &Pager) {
    let mut region = pager.anonymous(4 * RAM as usize).unwrap();
    let pages = region.len() / PAGE;
    (0..pages).for_each(|page| region.as_mut_slice()[page * PAGE] = page as u8);
    (0..pages).for_each(|page| assert_eq!(region.as_slice()[page * PAGE], page as u8));
}

/// The threads of this process that have our name.
fn ours() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: &std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.flatten().filter(|task| name(task).trim() == "coldframe").count()
}

#[test]
fn a_dropped_pager_leaves_no_thread_and_no_descriptor() {
    succeeds(|| {
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = (ours(), descriptors());
        for handlers in [1, 2, 7] {
            let pager = pager(handlers);
            work(&pager);
            // The log's writer is one of them.
            assert_eq!(ours(), before.0 + handlers + 1);
            drop(pager);
            assert_eq!((ours(), descriptors()), before);
        }
    });
}

#[test]
fn a_thread_that_blocks_every_signal_can_touch_a_region() {
    succeeds(|| {
        let pager = Pager::start(Options { max_memory: 1 << 30, ..Options::new(RAM) }).unwrap();
        // SAFETY: zero is a value of the set.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            assert_eq!(libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut()), 0);
        }
        work(&pager);
        pager.check();
    });
}

#[test]
fn threads_handle_faults_without_any_rights() {
    succeeds(|| {
        // SAFETY: no pointers.
        unsafe {
            // If the tests do not run as root, the process already is an ordinary user.
            let _ = (libc::setgid(65534), libc::setuid(65534));
            assert_ne!(libc::geteuid(), 0);
        }
        let pager = pager(2);
        work(&pager);
        pager.check();
    });
}

/// Makes `io_uring_setup` fail in this process, as on a kernel without io_uring.
fn refuse_rings() {
    let line = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // Load the call's number, compare it, answer.
    let mut program = [
        line(0x20, 0, 0, 0),
        line(0x15, 0, 1, libc::SYS_io_uring_setup as u32),
        line(0x06, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        line(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter lives through the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter), 0);
    }
}

#[test]
fn without_io_uring_plain_reads_do_and_who_asks_for_a_ring_is_told() {
    succeeds(|| {
        refuse_rings();
        let options = |wait| Options { max_memory: 1 << 30, wait, ..Options::new(RAM) };
        let pager = Pager::start(options(Wait::Auto)).unwrap();
        assert_eq!(pager.options().wait, Wait::Read);
        work(&pager);
        let refused = Pager::start(options(Wait::Brief)).unwrap_err();
        assert!(refused.to_string().contains("io_uring"), "{refused}");
    });
}
