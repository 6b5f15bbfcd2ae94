//! The pager process. It shares the program's memory, and nothing else: it has descriptors, signals, a working
//! folder, a process group and credentials of its own. So the program sees no thread of the pager, and cannot stop it,
//! bind it to a processor or restrict it; and the pager keeps no right that the program has dropped, since it has none.
//!
//! ```text
//!   program    clone(CLONE_VM) ── waits ──► runs ......... fork: sends the child's pipe .... ends, or runs another program
//!                     │             ▲                                 │                          │
//!   pager process     └► settles ───┴► handlers, writer               └► notes it                └► ends
//! ```
//! The pager process is a child of the program that `wait` does not report, since its end sends no SIGCHLD. Its end
//! sends SIGKILL instead. So if the pager process fails or is killed, the program does not wait for ever for a page,
//! nor reads a wrong one. If the program executes another one, the kernel sends that program SIGCHLD; there
//! [`reap_old`] reaps the pager process.
//!
//! The pager process learns of the program's end from a pidfd, and from a socket: the program's end of it is closed on
//! exec.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering::*};

use super::Threads;
use crate::fault::Faults;
use crate::swap::log::Log;
use crate::sys::pids::{PAGER, PROGRAM};
use crate::sys::thread::{spawn, RawThread, PROCESS};
use crate::sys::{self, own_descriptors, rights, Errno, High, Sys};
use crate::LiveError;

pub struct PagerProcess {
    thread: RawThread,
    socket: High,
}

/// By this name top and gdb show the pager process.
const NAME: &std::ffi::CStr = c"coldframe-pager";

struct Start {
    threads: *const Threads,
    faults: *const Faults,
    socket: RawFd,
    ready: AtomicU32,
}

/// Values of `Start::ready`; others are error numbers.
const BEGINS: u32 = 0;
const READY: u32 = u32::MAX;

impl Threads {
    /// Starts the pager process, with all threads of the pager.
    ///
    /// # Safety
    /// Both live until the process ends. This is the only thread that knows the pager; in a forked child the fork has
    /// taken the locks.
    pub(super) unsafe fn start_process(&self, faults: &Faults) -> Result<PagerProcess, LiveError> {
        let failed = |error: Errno| LiveError::os("a process that handles faults", error);
        let (ours, theirs) = sys::sockets().map_err(failed)?;
        let (threads, socket, ready) = (self, theirs.as_raw_fd(), AtomicU32::new(BEGINS));
        let mut start = Start { threads, faults, socket, ready };
        PROGRAM.store(sys::getpid(), Relaxed);
        // SAFETY: `start` lives until the pager process is ready, and the pager as long as the pager process.
        let thread = unsafe { spawn(run, (&raw mut start).cast(), PROCESS) }.map_err(failed)?;
        let pager_process = PagerProcess { thread, socket: sys::move_high(ours) };
        loop {
            match start.ready.load(Acquire) {
                BEGINS => sys::futex_wait(&start.ready, BEGINS),
                READY => return Ok(pager_process),
                error => return Err(failed(Errno::from_raw_os_error(error as i32))),
            }
        }
    }
}

impl PagerProcess {
    /// Sends the pager process the descriptor that shows a child's end; it was forked at the end of `epoch`. Returns
    /// false if the message cannot be sent.
    pub fn send_child(&self, epoch: u32, alive: &High) -> bool {
        sys::send(self.socket.as_raw_fd(), epoch, alive.as_raw_fd()).is_ok()
    }

    pub fn forget_in_child(self) {
        PAGER.store(0, Relaxed);
        self.thread.forget_in_child();
    }
}

unsafe extern "C" fn run(start: *mut c_void) {
    // SAFETY: `start_process` gave it, and waits until `ready` is set.
    let start = unsafe { &*start.cast::<Start>() };
    // SAFETY: the pager lives as long as its program.
    let (threads, faults) = unsafe { (&*start.threads, &*start.faults) };
    PAGER.store(sys::getpid(), Relaxed);
    // SAFETY: as above, and the program waits.
    let settled = settle(faults, start).and_then(|program| unsafe { threads.start_threads(faults) }.map(|()| program));
    match settled {
        Ok(_) => rights::only_work(PROGRAM.load(Relaxed)),
        // Memory that is no longer watched is the program's alone.
        Err(_) => _ = sys::close_range(0..RawFd::MAX),
    }
    start.ready.store(settled.as_ref().map_or_else(|error| error.raw_os_error() as u32, |_| READY), Release);
    sys::futex_wake(&start.ready, 1);
    match settled {
        Ok(program) => watch(faults.work.log(), &program, start.socket),
        // The program says why. It ends, or does not page.
        Err(_) => loop {
            if sys::parent() != PROGRAM.load(Relaxed) {
                sys::exit_group(0);
            }
            sys::sleep_us(1_000_000);
        },
    }
}

/// Leaves all that is the program's. Returns the program's pidfd.
fn settle(faults: &Faults, start: &Start) -> Sys<OwnedFd> {
    let _ = rustix::thread::set_name(NAME);
    crate::sys::descriptors::allow_all();
    let program = sys::pidfd(PROGRAM.load(Relaxed))?;
    faults.memory().take_pidfd(&sys::pidfd(sys::getpid())?)?;
    let mut open: Vec<RawFd> = own_descriptors::all().chain([program.as_raw_fd(), start.socket]).collect();
    open.sort_unstable();
    let mut from = 0;
    for descriptor in open {
        sys::close_range(from..descriptor)?;
        from = descriptor + 1;
    }
    sys::close_range(from..RawFd::MAX)?;
    // A filter of the program's may refuse this.
    sys::await_events([program.as_raw_fd(), start.socket], false)?;
    sys::leave_group_and_folder();
    sys::pids::open_status();
    rights::drop_all()?;
    Ok(program)
}

fn watch(log: &Log, program: &OwnedFd, socket: RawFd) -> ! {
    loop {
        let [ended, events] = sys::await_events([program.as_raw_fd(), socket], true).unwrap_or_default();
        match if events & libc::POLLIN != 0 { sys::receive(socket) } else { Err(Errno::AGAIN) } {
            Ok((epoch, alive)) => log.follow(epoch, alive),
            Err(_) if ended | events & libc::POLLHUP != 0 => sys::exit_group(0),
            Err(_) => {}
        }
    }
}

/// The pager process of a program that has executed another one ends at once. An emulator's pager process, as the
/// emulated program finds it, lives on.
const REAPING_MS: u32 = 1000;

/// In a program that was executed by one with a pager process: reaps that process, which is a child of this program
/// now.
pub fn reap_old() {
    let mut text = [0u8; 4096];
    let len = sys::read_file(c"/proc/thread-self/children", &mut text);
    for child in std::str::from_utf8(&text[..len]).unwrap_or_default().split_ascii_whitespace() {
        let mut name = [0u8; 16];
        let path = std::ffi::CString::new(format!("/proc/{child}/comm")).unwrap_or_default();
        let len = sys::read_file(&path, &mut name);
        if let (true, Ok(child)) = (name[..len].strip_suffix(b"\n") == Some(NAME.to_bytes()), child.parse()) {
            for _ in 0..REAPING_MS {
                if sys::reap(child) {
                    break;
                }
                sys::sleep_us(1000);
            }
        }
    }
}
