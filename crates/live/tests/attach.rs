//! Attaches to a process that constantly gets signals.

use std::sync::atomic::{AtomicU64, Ordering};

use coldframe_live::writes::WriteWatch;

static mut COUNT: *const AtomicU64 = std::ptr::null();

extern "C" fn count(_: i32) {
    // SAFETY: set before the timer runs.
    unsafe { (*COUNT).fetch_add(1, Ordering::Relaxed) };
}

/// A child that only counts the alarms of a timer.
fn child() -> (i32, &'static AtomicU64) {
    // SAFETY: a shared page that is never unmapped; the child uses only async-signal-safe functions and ends only by a
    // signal.
    unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let page = libc::mmap(std::ptr::null_mut(), 4096, rights, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        COUNT = page.cast();
        let pid = libc::fork();
        if pid == 0 {
            libc::signal(libc::SIGALRM, count as *const () as usize);
            let often = libc::timeval { tv_sec: 0, tv_usec: 100 };
            libc::setitimer(
                libc::ITIMER_REAL,
                &libc::itimerval { it_interval: often, it_value: often },
                std::ptr::null_mut(),
            );
            loop {
                libc::getppid();
            }
        }
        (pid, &*COUNT)
    }
}

#[test]
fn a_process_with_a_timer_is_attached_to_and_keeps_its_alarms() {
    let (pid, count) = child();
    while count.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    let mut result = Ok(());
    for _ in 0..200 {
        result = result.and_then(|()| WriteWatch::attach(pid as u32).map(drop));
    }
    let missing = matches!(&result, Err(coldframe_live::LiveError::Missing { .. }));
    let before = count.load(Ordering::Relaxed);
    let mut status = 0;
    // SAFETY: a child of this process.
    let alive = unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } == 0;
    while alive && count.load(Ordering::Relaxed) == before {
        std::thread::yield_now();
    }
    // SAFETY: as above.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, &mut status, 0);
    }
    assert!(alive, "it ended with status {status:#x}");
    assert!(missing || result.is_ok(), "{result:?}");
}
