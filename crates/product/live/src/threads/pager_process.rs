//! The pager process. It shares the program's memory, and nothing else: it has descriptors, signals, a working
//! folder, a process group and credentials of its own. So the program sees no thread of the pager, and cannot stop it,
//! bind it to a processor or restrict it; and the pager keeps no right that the program has dropped, since it has none.
//!
//! ```text
//!   program    clone(CLONE_VM) ── waits ──► runs ...... fork: sends the child's pipe ... ends, or runs another program
//!                     │             ▲                              │                         │
//!   pager process     └► settles ───┴► handlers, writer            └► notes it               └► ends
//! ```
//! The pager process is no child of the program: its parent is the nearest subreaper above, `coldframe run` or init.
//! Only a subreaper within the program itself, above the process that is paged, inherits it. It has the only writing
//! end of a pipe, and the kernel sends the program SIGKILL when that is closed. So if the pager process fails or is
//! killed, the program does not wait for ever for a page, nor reads a wrong one. When the memory has no user any more,
//! it takes that back first: a program that runs another one may have closed the socket and not yet the pipe.
//!
//! The pager process serves all processes that share the memory, and ends with the last of them: each has a copy of the
//! program's end of a socket, which is closed on exec.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering::*};

use super::Threads;
use crate::region::ManagedMemory;
use crate::swap::log::Log;
use crate::sys::pids::{PAGER, PROGRAM};
use crate::sys::thread::{spawn, RawThread, PROCESS};
use crate::sys::{self, own_descriptors, rights, Errno, High, Sys};
use crate::LiveError;

pub struct PagerProcess {
    thread: RawThread,
    socket: High,
    /// Brings SIGKILL when the pager process is gone.
    _lives: High,
}

/// By this name top and gdb show the pager process.
const NAME: &std::ffi::CStr = c"coldframe-pager";

struct ProcessStart {
    threads: *const Threads,
    managed: *const ManagedMemory,
    socket: RawFd,
    /// The ends of the pipe that shows the program that this process lives, for reading and for writing.
    deadly: RawFd,
    lives: RawFd,
    ready: AtomicU32,
}

/// Values of `ProcessStart::ready`; others are error numbers.
const BEGINS: u32 = 0;
const READY: u32 = u32::MAX;

impl Threads {
    /// Starts the pager process, with all threads of the pager.
    ///
    /// # Safety
    /// Both live until the process ends. This is the only thread that knows the pager; in a forked child the fork has
    /// taken the locks.
    pub(super) unsafe fn start_process(&self, managed: &ManagedMemory) -> Result<PagerProcess, LiveError> {
        let failed = |error: Errno| LiveError::os("a process that handles faults", error);
        let (ours, theirs) = sys::sockets().map_err(failed)?;
        let (read, write) = sys::deadly_pipe().map_err(failed)?;
        let (socket, ready) = (theirs.as_raw_fd(), AtomicU32::new(BEGINS));
        let (deadly, lives) = (read.as_raw_fd(), write.as_raw_fd());
        let mut start = ProcessStart { threads: self, managed, socket, deadly, lives, ready };
        PROGRAM.store(sys::getpid(), Relaxed);
        // SAFETY: `start` lives until the pager process is ready, and the pager as long as the pager process.
        let thread = match unsafe { spawn(run, (&raw mut start).cast(), PROCESS) } {
            Ok(thread) => thread,
            Err(error) => {
                drop(read); // first, or it would end this process
                return Err(failed(error));
            }
        };
        drop(write);
        let pager_process = PagerProcess { thread, socket: sys::move_high(ours), _lives: sys::move_high(read) };
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
    let start = unsafe { &*start.cast::<ProcessStart>() };
    // SAFETY: the pager lives as long as its program.
    let (threads, managed) = unsafe { (&*start.threads, &*start.managed) };
    PAGER.store(sys::getpid(), Relaxed);
    // SAFETY: as above, and the program waits.
    let settled = settle(managed, start).and_then(|socket| unsafe { threads.start_threads(managed) }.map(|()| socket));
    match settled {
        Ok(_) => rights::only_work(PROGRAM.load(Relaxed)),
        // Memory that is no longer watched is the program's alone.
        Err(_) => _ = sys::close_range(0..start.lives).and_then(|()| sys::close_range(start.lives + 1..RawFd::MAX)),
    }
    let (deadly, lives) = (start.deadly, start.lives);
    start.ready.store(settled.as_ref().map_or_else(|error| error.raw_os_error() as u32, |_| READY), Release);
    sys::futex_wake(&start.ready, 1);
    match settled {
        Ok(socket) => watch(managed.work.log(), socket, deadly),
        // The program says why, and closes its end of the pipe. It ends, or does not page.
        Err(_) => {
            let _ = sys::await_events([lives, -1], true);
            sys::exit_group(0);
        }
    }
}

/// Leaves all that is the program's. Returns the socket.
fn settle(managed: &ManagedMemory, start: &ProcessStart) -> Sys<RawFd> {
    let _ = rustix::thread::set_name(NAME);
    crate::sys::descriptors::allow_all();
    let mut open: Vec<RawFd> = own_descriptors::all().chain([start.deadly, start.lives, start.socket]).collect();
    open.sort_unstable();
    let mut from = 0;
    for descriptor in open {
        sys::close_range(from..descriptor)?;
        from = descriptor + 1;
    }
    sys::close_range(from..RawFd::MAX)?;
    // Now there are free descriptors, even if the program has hardly any.
    managed.memory().take_pidfd(&sys::pidfd(sys::getpid())?)?;
    // A filter of the program's may refuse this.
    sys::await_events([start.socket, -1], false)?;
    sys::leave_group_and_folder();
    sys::pids::open_status();
    rights::drop_all()?;
    Ok(start.socket)
}

fn watch(log: &Log, socket: RawFd, deadly: RawFd) -> ! {
    loop {
        let [events, _] = sys::await_events([socket, -1], true).unwrap_or_default();
        match if events & libc::POLLIN != 0 { sys::receive(socket) } else { Err(Errno::AGAIN) } {
            Ok((epoch, alive)) => log.follow(epoch, alive),
            Err(_) if events & libc::POLLHUP != 0 => {
                sys::disarm(deadly);
                sys::exit_group(0)
            }
            Err(_) => {}
        }
    }
}
