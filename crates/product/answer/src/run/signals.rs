//! Signals to coldframe, which stands where its program stood: who sends one to coldframe means the program.
//!
//! ```text
//!   a process sends it (kill, a supervisor) ─► to the program, at its next look
//!   the kernel sends it ─┬─ Ctrl-C, Ctrl-\, the size of a window: the terminal has sent it to the program, too
//!                        └─ an alarm, or a hang-up of the session's leader: to coldframe alone ─► to the program
//!   TERM, INT, HUP where a program is measured ─► the end of the measurement (SIGTERM to the program)
//! ```
//! A program's own signals are not returned to it: a process that it has started may send one to its whole process
//! group, in which coldframe is. A signal that another process sends to the whole group comes twice, which nothing
//! shows. KILL and STOP cannot be caught, and signals of a processor's faults are coldframe's own.
//!
//! A program starts with the signals ignored and blocked that were so when coldframe started, `nohup` and `&` in
//! scripts among them. What was ignored then ends neither coldframe nor a measurement.

use std::io;
use std::mem::zeroed;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;

use coldframe_proc::Tree;
use libc::{c_int, c_void, siginfo_t};
use signal_hook::low_level::{emulate_default_handler, exit};

use crate::error::AnswerError;

/// They end a measurement.
const ENDS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// They stop a process.
const STOPS: [c_int; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
/// Not for the program: a child's end, which is coldframe's, and faults of a processor.
const OWN: [c_int; 7] =
    [libc::SIGCHLD, libc::SIGILL, libc::SIGTRAP, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV, libc::SIGSYS];
/// The kernel sends these to coldframe alone: timers outlive an exec, and so come from who started it.
const ALONE: [c_int; 4] = [libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF, libc::SIGTERM];
/// The highest signal of Linux.
const LAST: c_int = 64;

/// A signal that came.
struct Arrival {
    times: AtomicU32,
    /// Who sent the last one; 0: it is not known.
    sender: AtomicI32,
}

static ARRIVALS: [Arrival; LAST as usize + 1] =
    [const { Arrival { times: AtomicU32::new(0), sender: AtomicI32::new(0) } }; LAST as usize + 1];
/// Whether one came that ends a measurement.
static END: AtomicBool = AtomicBool::new(false);
/// Values of [`Signals`] that live. Without one, signals do what they do to any program.
static USERS: AtomicUsize = AtomicUsize::new(0);
/// The signals that were ignored when this program started, and that were blocked: a bit for each.
static IGNORED: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);

/// Signals that come to coldframe. They do not end it while one of these lives.
pub struct Signals(());

impl Signals {
    /// Catches the signals from now on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn catch() -> Result<Signals, AnswerError> {
        if USERS.fetch_add(1, Relaxed) == 0 {
            END.store(false, Relaxed);
        }
        let (signals, caught) = (Signals(()), ENDS.map(handle).into_iter().collect::<io::Result<()>>());
        caught.map_err(|e| AnswerError::new(5, format!("cannot catch signals: {e}")))?;
        Ok(signals)
    }

    /// Whether one came that ends a measurement.
    pub fn came(&self) -> bool {
        END.load(Relaxed)
    }

    /// Passes those on to a program that came for it since the last call. `ends`: also those that end a measurement.
    pub(crate) fn pass_on(&self, program: u32, ends: bool) {
        for (signal, Arrival { times, sender }) in (0..).zip(&ARRIVALS) {
            if times.load(Relaxed) == 0 || !ends && is_end(signal) {
                continue;
            }
            let (times, sender) = (times.swap(0, Relaxed), sender.load(Relaxed) as u32);
            if Tree::machine().own_process().with_descendants().contains(&sender) {
                continue;
            }
            // SAFETY: the call takes two numbers; the program may have ended in the meantime.
            (0..times).for_each(|_| _ = unsafe { libc::kill(program as c_int, signal) });
            if STOPS.contains(&signal) {
                let _ = emulate_default_handler(signal);
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        USERS.fetch_sub(1, Relaxed);
    }
}

/// From the first program on, all signals that a process can catch are for programs.
pub(crate) fn catch_all() {
    static CAUGHT: OnceLock<()> = OnceLock::new();
    CAUGHT.get_or_init(|| {
        // Some are the C library's own, which it refuses to hand over.
        (1..=LAST).filter(|signal| !OWN.contains(signal) && !ENDS.contains(signal)).for_each(|it| _ = handle(it));
        let none = set(0);
        // SAFETY: the set lives through the call. Threads that are made later inherit it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &none, null_mut()) };
    });
}

/// The program gets the signals ignored and blocked that were so when coldframe started.
pub(crate) fn hand_down(command: &mut Command) -> &mut Command {
    let as_at_start = || {
        let (ignored, blocked) = (IGNORED.load(Relaxed), set(BLOCKED.load(Relaxed)));
        for signal in (1..=LAST).filter(|signal| ignored & bit(*signal) != 0) {
            // SAFETY: it names no function of this program.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        // SAFETY: the set lives through the call.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &blocked, null_mut()) };
        Ok(())
    };
    // SAFETY: between fork and exec it makes system calls and allocates nothing.
    unsafe { command.pre_exec(as_at_start) }
}

fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// The kernel's signal set as the C library's.
fn set(bits: u64) -> libc::sigset_t {
    // SAFETY: a set of zeros is empty, and the calls add to it.
    unsafe {
        let mut set = zeroed();
        (1..=LAST).filter(|signal| bits & bit(*signal) != 0).for_each(|signal| _ = libc::sigaddset(&mut set, signal));
        set
    }
}

/// Whether it ends a measurement, as it would have ended the program.
fn is_end(signal: c_int) -> bool {
    ENDS.contains(&signal) && IGNORED.load(Relaxed) & bit(signal) == 0
}

fn handle(signal: c_int) -> io::Result<()> {
    // SAFETY: the handler has the form that SA_SIGINFO asks for, and does what a handler may do.
    let done = unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = arrived as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // One at a time: the frames of many take more than a small stack has.
        action.sa_mask = set(u64::MAX);
        libc::sigaction(signal, &action, null_mut())
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The handler of all of them.
extern "C" fn arrived(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives it; a number that is no sender's is not used as one.
    let (code, sender) = unsafe { ((*info).si_code, (*info).si_pid()) };
    let sent = matches!(code, libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL);
    // A pipe that nobody reads: its writer is named as the sender.
    let own = sent && sender == std::process::id() as i32;
    if USERS.load(Relaxed) == 0 {
        match IGNORED.load(Relaxed) & bit(signal) != 0 {
            true => {}
            false if ENDS.contains(&signal) => exit(128 + signal),
            false if emulate_default_handler(signal).is_err() => exit(128 + signal),
            false => {}
        }
    } else if STOPS.contains(&signal) && !sent {
        let _ = emulate_default_handler(signal);
    } else if !own {
        if is_end(signal) {
            END.store(true, Relaxed);
        }
        // SAFETY: the call takes a number.
        let leads = || unsafe { libc::getsid(0) } == std::process::id() as i32;
        if sent || ALONE.contains(&signal) || signal == libc::SIGHUP && leads() {
            ARRIVALS[signal as usize].sender.store(if sent { sender } else { 0 }, Relaxed);
            ARRIVALS[signal as usize].times.fetch_add(1, Relaxed);
        }
    }
}

/// Notes what is ignored and blocked before Rust's runtime ignores SIGPIPE. Whose children's ends are ignored cannot
/// wait for a program.
extern "C" fn note() {
    // SAFETY: what the calls fill lives through them, and a set and an action of zeros are valid.
    unsafe {
        let (mut blocked, mut now): (libc::sigset_t, libc::sigaction) = (zeroed(), zeroed());
        libc::pthread_sigmask(libc::SIG_BLOCK, null(), &mut blocked);
        for signal in 1..=LAST {
            if libc::sigaction(signal, null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN {
                IGNORED.fetch_or(bit(signal), Relaxed);
            }
            if libc::sigismember(&blocked, signal) == 1 {
                BLOCKED.fetch_or(bit(signal), Relaxed);
            }
        }
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Called before `main`.
#[used]
#[link_section = ".init_array"]
static AT_START: extern "C" fn() = note;
