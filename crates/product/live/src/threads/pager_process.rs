//! The pager process. It shares the program's memory, and nothing else: it has descriptors, signals, a working
//! folder, a process group and credentials of its own. So the program sees no thread and no descriptor of the pager,
//! and cannot stop it, bind it to a processor or restrict it; and the pager keeps no right that the program has
//! dropped, since it has none.
//!
//! ```text
//!   program    clone(CLONE_VM) ── waits ──► closes its copies of the pager's descriptors, runs ... ends, or executes
//!                     │             ▲                                                                     │
//!   pager process     └► settles ───┴► handlers, writer, workers for the program's calls                  └► ends
//! ```
//! The pager process is no child of the program: its parent is the nearest subreaper above, `coldframe run` or init.
//! Only a subreaper within the program itself, above the process that is paged, inherits it.
//!
//! If the pager process fails or is killed, the program must not wait for ever for a page, nor read a wrong one. The
//! kernel sends the program SIGKILL when the last writing end of a pipe is closed, and both ends are in the pager
//! process. Its end closes all of its descriptors, from the lowest to the highest or the other way round. So there are
//! two such pipes: the writing ends are its lowest and its highest descriptor, and one of them is closed before all
//! else, also before the userfaultfd, without which the program's absent pages would be zeros.
//!
//! The pager process sees the end of the program by a pidfd. It sees that the program executes another one by its
//! size, which the kernel tells everybody (`/proc/PID/statm`): as long as they share their memory, it is the pager
//! process's own. Other processes that have the memory, made by clone with CLONE_VM, are known by their pidfds.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering::*};

use super::Threads;
use crate::region::ManagedMemory;
use crate::swap::device::may_write_little;
use crate::sys::pids::{PAGER, PAGER_NAME, PROGRAM};
use crate::sys::thread::{spawn, RawThread, PROCESS};
use crate::sys::{self, fatal, own_descriptors, rights, Errno, Sys};
use crate::{LiveError, PAGE};

pub struct PagerProcess {
    thread: RawThread,
}

/// Milliseconds between looks whether the program has executed another one.
const LOOK_MS: u64 = 250;
/// The size of a process changes by less between two looks, or it is that of another memory.
const NOISE: u64 = 64 << 20;
/// Of the memory that shows whether two processes share theirs.
const MARK: u64 = 256 << 30;
const MARKS: u64 = 3;

/// What shows the pager process the end of the program, and shows the program its end.
#[derive(Clone, Copy)]
struct Ties {
    /// Pipes, the ends for reading and for writing.
    pipes: [(RawFd, RawFd); 2],
    /// The program's pidfd.
    program: RawFd,
    /// The `statm` of the program, or -1; and of this process.
    sizes: [RawFd; 2],
}

struct ProcessStart {
    threads: *const Threads,
    managed: *const ManagedMemory,
    /// The program's `statm`, or -1.
    size: RawFd,
    folder: RawFd,
    ready: AtomicU32,
}

/// Values of `ProcessStart::ready`; others are error numbers.
const BEGINS: u32 = 0;
const READY: u32 = u32::MAX;

impl Threads {
    /// Starts the pager process, with all threads of the pager. `folder`: where it makes swap files for children, or
    /// -1.
    ///
    /// # Safety
    /// Both live until the process ends. This is the only thread that knows the pager; in a forked child the fork has
    /// taken the locks.
    pub(super) unsafe fn start_process(
        &self,
        managed: &ManagedMemory,
        folder: RawFd,
        kept: Option<RawFd>,
    ) -> Result<PagerProcess, LiveError> {
        let failed = |error: Errno| LiveError::os("a process that handles faults", error);
        let file = sys::open_file(c"/proc/self/statm").ok().map(sys::move_high);
        let size = file.as_ref().map_or(-1, |file| file.as_raw_fd());
        let mut start = ProcessStart { threads: self, managed, size, folder, ready: AtomicU32::new(BEGINS) };
        PROGRAM.store(sys::getpid(), Relaxed);
        // SAFETY: `start` lives until the pager process is ready, and the pager as long as the pager process.
        let started = unsafe { spawn(run, (&raw mut start).cast(), PROCESS) }.and_then(|thread| loop {
            match start.ready.load(Acquire) {
                BEGINS => sys::futex_wait(&start.ready, BEGINS),
                READY => return Ok(PagerProcess { thread }),
                error => return Err(Errno::from_raw_os_error(error as i32)),
            }
        });
        match started {
            Ok(_) => own_descriptors::leave(|number| Some(number) == kept),
            Err(_) => PAGER.store(0, Relaxed),
        }
        started.map_err(failed)
    }
}

impl PagerProcess {
    pub fn forget_in_child(self) {
        PAGER.store(0, Relaxed);
        self.thread.forget_in_child();
    }
}

unsafe extern "C" fn run(start: *mut c_void) {
    // SAFETY: `start_process` gave it, and waits until `ready` is set.
    let start = unsafe { &*start.cast::<ProcessStart>() };
    // SAFETY: the pager lives as long as its program.
    let (threads, managed) = unsafe { (&*start.threads, &*start.managed) };
    PAGER.store(sys::getpid(), Relaxed);
    // SAFETY: as above, and the program waits.
    let settled = settle(managed, start.folder).and_then(|own| unsafe {
        threads.calls.start()?;
        // Its last thread, the lender, would go on with the pages when another one cannot be made.
        threads.start_threads(managed)?;
        // Last: what fails before them does not end the program.
        Ties::make([start.size, own])
    });
    match settled {
        Ok(_) => rights::only_work(PROGRAM.load(Relaxed), start.folder),
        // Memory that is no longer watched is the program's alone.
        Err(_) => {
            threads.stop(managed);
            let _ = sys::close_range(0..RawFd::MAX);
        }
    }
    start.ready.store(settled.as_ref().map_or_else(|error| error.raw_os_error() as u32, |_| READY), Release);
    sys::futex_wake(&start.ready, 1);
    match settled {
        Ok(ties) => ties.watch(threads, managed),
        // The program says why. It ends, or does not page.
        Err(_) => sys::exit_group(0),
    }
}

/// Leaves all that is the program's. Returns this process's `statm`, or -1.
fn settle(managed: &ManagedMemory, folder: RawFd) -> Sys<RawFd> {
    let _ = rustix::thread::set_name(PAGER_NAME);
    sys::descriptors::allow_all();
    sys::lift_limits();
    if folder >= 0 && may_write_little() {
        return Err(Errno::FBIG);
    }
    let mut from = 0;
    for descriptor in own_descriptors::all() {
        sys::close_range(from..descriptor)?;
        from = descriptor + 1;
    }
    sys::close_range(from..RawFd::MAX)?;
    // Now there are free descriptors, even if the program has hardly any.
    managed.memory().take_pidfd(&sys::pidfd(sys::getpid())?)?;
    sys::leave_group_and_folder();
    rights::drop_all()?;
    Ok(sys::open_file(c"/proc/self/statm").map_or(-1, IntoRawFd::into_raw_fd))
}

impl Ties {
    fn make(sizes: [RawFd; 2]) -> Sys<Ties> {
        let program = PROGRAM.load(Relaxed);
        let pidfd = sys::pidfd(program)?;
        // A filter of the program's may refuse this.
        sys::await_events([pidfd.as_raw_fd(), -1], false)?;
        let highest = own_descriptors::all().last().unwrap_or(0) + 1;
        // The one that is closed first is the lowest of all: the numbers of the program's standard files are free.
        // The reading ends, and the other's writing end, are moved above the other descriptors.
        let above = [highest, sys::descriptors::highest() - 1].into_iter();
        let above = |fd: RawFd| above.clone().find_map(|number| sys::move_to(fd, number).ok()).unwrap_or(fd);
        let pipe = || sys::deadly_pipe(program).map(|(read, write)| (read.into_raw_fd(), write.into_raw_fd()));
        let (read, lowest) = pipe()?;
        let read = above(read);
        let (other, last) = pipe().inspect_err(|_| sys::disarm(read))?;
        let ties = Ties { pipes: [(read, lowest), (other, above(last))], program: pidfd.into_raw_fd(), sizes };
        fatal::end_by(lowest, ties.program);
        sys::pids::open_status();
        Ok(ties)
    }

    /// Until no other process has the memory.
    fn watch(&self, threads: &Threads, managed: &ManagedMemory) -> ! {
        while !self.has_ended(LOOK_MS) && !self.has_executed() {}
        self.pipes.iter().for_each(|(read, _)| sys::disarm(*read));
        for user in threads.others.iter().map(|user| user.load(Acquire)).filter(|user| *user >= 0) {
            let _ = sys::await_events([user, -1], true);
        }
        let log = managed.work.log();
        fatal::end_quietly();
        // SAFETY: whoever still has the memory, unknown to us, ends at a touch of it and does not read zeros.
        unsafe { managed.memory().space.unmap_all() };
        log.end_fork();
        if log.has_children() {
            managed.memory().share.leave();
            while log.has_children() {
                sys::sleep_us(LOOK_MS * 1000);
            }
        }
        sys::exit_group(0)
    }

    fn has_ended(&self, ms: u64) -> bool {
        sys::await_events_for([self.program, -1], Some(ms)).is_ok_and(|[events, _]| events != 0)
    }

    /// Whether the program's memory is not this process's any more. While the sizes are hardly different, it is; else
    /// memory that this process maps shows it, which the program would have as well.
    fn has_executed(&self) -> bool {
        let sizes = || Some((size(self.sizes[0])?, size(self.sizes[1])?));
        let is_near = |(program, pagers): (u64, u64)| program.abs_diff(pagers) < NOISE;
        if self.sizes.contains(&-1) || sizes().is_none_or(is_near) {
            return false;
        }
        (1..=MARKS).all(|n| {
            let (before, mark) = (size(self.sizes[0]), n * MARK);
            let after = sys::with_address_space(mark as usize, || size(self.sizes[0]));
            match (before, after) {
                (Some(before), Ok(Some(after))) => after.saturating_sub(before) < mark / 2,
                _ => false,
            }
        })
    }
}

/// In bytes, from a `statm`. None: it has no memory any more.
fn size(file: RawFd) -> Option<u64> {
    let mut text = [0u8; 64];
    let len = sys::read_start(file, &mut text);
    let digits = text[..len].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |sum, digit| 10 * sum + u64::from(digit - b'0')) * PAGE as u64).filter(|size| *size > 0)
}
