//! Gets a userfaultfd from another process.
//!
//! A userfaultfd belongs to the memory of the process that opens it, so the other process must make the call. ptrace
//! stops the other process's first thread for two system calls. The calls use a `syscall` instruction of the vdso, so
//! no byte of code is changed; other threads may run there. Afterwards the thread continues as after an ignored
//! signal, also in a system call that waits.

use std::cell::Cell;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::sys::call;
use crate::LiveError;

/// How long a thread may take to stop.
const PATIENCE: Duration = Duration::from_secs(2);
/// `syscall` on x86-64.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A process whose first thread we have stopped. Dropping this resumes the process.
pub(crate) struct Stopped {
    pid: libc::pid_t,
    /// A signal that came while the process was stopped. The process gets it when it is resumed.
    owed: Cell<i32>,
}

/// The reason of a stop that we have caused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// It was interrupted.
    Interrupt,
    /// It has begun a program, or made a single step.
    Trap,
}

/// Starts a program and stops it before its first instruction.
pub(crate) fn start(command: &mut Command) -> Result<(Child, Stopped), LiveError> {
    // SAFETY: between fork and exec only this system call is made, which allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let child = command.spawn().map_err(|e| LiveError::os("starting the program", e))?;
    let stopped = Stopped { pid: child.id() as libc::pid_t, owed: Cell::new(0) };
    stopped.wait(Stop::Trap)?;
    Ok((child, stopped))
}

/// Stops a running process.
pub(crate) fn stop(pid: u32) -> Result<Stopped, LiveError> {
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0).ok_or_else(|| gone(pid))?;
    refuse_filtered(pid)?;
    for request in [libc::PTRACE_SEIZE, libc::PTRACE_INTERRUPT] {
        // SAFETY: neither request takes a pointer.
        if unsafe { libc::ptrace(request, pid, 0, 0) } == -1 {
            let error = io::Error::last_os_error();
            return Err(if error.raw_os_error() == Some(libc::ESRCH) { gone(pid as u32) } else { forbidden(&error) });
        }
    }
    let stopped = Stopped { pid, owed: Cell::new(0) };
    stopped.wait(Stop::Interrupt)?;
    Ok(stopped)
}

fn gone(pid: u32) -> LiveError {
    LiveError::Setting {
        field: "attach",
        reason: format!("there is no process {pid}; give the number of a running one"),
    }
}

fn forbidden(error: &io::Error) -> LiveError {
    LiveError::Missing {
        feature: "attaching to a running process",
        reason: error.to_string(),
        remedy:
            "attach as its owner or as root, with /proc/sys/kernel/yama/ptrace_scope at 0, and without another debugger",
    }
}

/// A seccomp filter may kill a process for a call that it did not expect.
fn refuse_filtered(pid: libc::pid_t) -> Result<(), LiveError> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(|_| gone(pid as u32))?;
    let filtered = status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() != "0"));
    if !filtered {
        return Ok(());
    }
    Err(LiveError::Missing {
        feature: "attaching to a running process",
        reason: "it filters its system calls (seccomp), and may be killed for one more".into(),
        remedy: "run it without the filter, or use --via perf",
    })
}

impl Stopped {
    /// Waits until the thread has stopped for this reason. If it stops for a signal of its own first, it gets that
    /// signal.
    fn wait(&self, why: Stop) -> Result<(), LiveError> {
        let began = Instant::now();
        loop {
            let mut status = 0;
            // SAFETY: `status` is an int.
            let got = unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL | libc::WNOHANG) };
            match got {
                -1 => return Err(LiveError::os("waiting for the process", io::Error::last_os_error())),
                0 if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_micros(200)),
                0 => return Err(LiveError::os("stopping the process", io::Error::from(io::ErrorKind::TimedOut))),
                _ if !libc::WIFSTOPPED(status) => return Err(gone(self.pid as u32)),
                _ if status >> 16 == libc::PTRACE_EVENT_STOP => match why {
                    Stop::Interrupt => return Ok(()),
                    // All threads of the process are to stop; first ours makes its step.
                    Stop::Trap => self.go_on(libc::PTRACE_SINGLESTEP, 0)?,
                },
                _ if why == Stop::Trap && libc::WSTOPSIG(status) == libc::SIGTRAP => return Ok(()),
                _ if why == Stop::Trap => {
                    self.owed.set(libc::WSTOPSIG(status));
                    self.go_on(libc::PTRACE_SINGLESTEP, 0)?;
                }
                _ => self.go_on(libc::PTRACE_CONT, libc::WSTOPSIG(status))?,
            }
        }
    }

    fn go_on(&self, how: libc::c_uint, signal: i32) -> Result<(), LiveError> {
        // SAFETY: no pointers.
        match unsafe { libc::ptrace(how, self.pid, 0, signal) } {
            -1 => Err(LiveError::os("letting the process go on", io::Error::last_os_error())),
            _ => Ok(()),
        }
    }

    /// Exchanges the thread's mask of signals. The signal of a step must stay unblocked; otherwise the kernel would
    /// reset what the program does with it.
    fn mask(&self, new: u64) -> io::Result<u64> {
        let (mut old, new) = (0u64, new & !(1 << (libc::SIGTRAP - 1)));
        // SAFETY: the requests write and read 8 bytes each.
        unsafe {
            let got = libc::ptrace(libc::PTRACE_GETSIGMASK, self.pid, 8, &raw mut old);
            if got == -1 || libc::ptrace(libc::PTRACE_SETSIGMASK, self.pid, 8, &raw const new) == -1 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(old)
    }

    /// A userfaultfd of the process's memory, as our descriptor. The process's own descriptor is closed again.
    pub(crate) fn userfaultfd(&self, flags: usize) -> Result<OwnedFd, LiveError> {
        let os = |what| move |error: io::Error| LiveError::os(what, error);
        let theirs = self.call(libc::SYS_userfaultfd, [flags as u64, 0, 0]).map_err(|error| LiveError::Missing {
            feature: "userfaultfd in the recorded process",
            reason: error.to_string(),
            remedy: "run it as root, or set /proc/sys/vm/unprivileged_userfaultfd to 1",
        })?;
        let ours = fetch(self.pid, theirs as RawFd).map_err(os("fetching the descriptor"));
        self.call(libc::SYS_close, [theirs, 0, 0]).map_err(os("closing the process's descriptor"))?;
        ours
    }

    /// Makes a system call in the process.
    #[cfg(target_arch = "x86_64")]
    fn call(&self, number: libc::c_long, arguments: [u64; 3]) -> io::Result<u64> {
        let place = syscall_instruction(self.pid)?;
        let before = self.registers()?;
        let [rdi, rsi, rdx] = arguments;
        // -1: there is no system call to restart.
        let made =
            libc::user_regs_struct { rip: place, rax: number as u64, orig_rax: u64::MAX, rdi, rsi, rdx, ..before };
        // Otherwise a signal could be handled instead of the call.
        let mask = self.mask(u64::MAX)?;
        self.set_registers(&made)?;
        // SAFETY: no pointer.
        let stepped = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, 0) };
        let waited = if stepped == -1 {
            Err(io::Error::last_os_error())
        } else {
            self.wait(Stop::Trap).map_err(io::Error::other)
        };
        let after = waited.and_then(|()| self.registers());
        self.set_registers(&before)?;
        self.restore_mask(mask)?;
        match after?.rax as i64 {
            error @ -4095..=-1 => Err(io::Error::from_raw_os_error(-error as i32)),
            value => Ok(value as u64),
        }
    }

    fn restore_mask(&self, mask: u64) -> io::Result<()> {
        // SAFETY: the request reads 8 bytes.
        match unsafe { libc::ptrace(libc::PTRACE_SETSIGMASK, self.pid, 8, &raw const mask) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn call(&self, _: libc::c_long, _: [u64; 3]) -> io::Result<u64> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this machine's registers are not known here, only x86-64's"))
    }

    #[cfg(target_arch = "x86_64")]
    fn registers(&self) -> io::Result<libc::user_regs_struct> {
        // SAFETY: the structure is plain numbers, and is what the request fills.
        unsafe {
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            match libc::ptrace(libc::PTRACE_GETREGS, self.pid, 0, &raw mut registers) {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(registers),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn set_registers(&self, registers: &libc::user_regs_struct) -> io::Result<()> {
        // SAFETY: the request reads this structure.
        match unsafe { libc::ptrace(libc::PTRACE_SETREGS, self.pid, 0, &raw const *registers) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // SAFETY: no pointer. A process that has ended needs it no more.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.pid, 0, self.owed.get()) };
    }
}

/// The place of a `syscall` instruction in the process's vdso. There is one, for clocks that need the kernel.
#[cfg(target_arch = "x86_64")]
fn syscall_instruction(pid: libc::pid_t) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let vdso = maps.lines().find(|line| line.ends_with("[vdso]")).and_then(crate::writes::range);
    let vdso = vdso.ok_or_else(|| io::Error::other("the process has no vdso"))?;
    let mut code = vec![0; (vdso.end - vdso.start) as usize];
    std::fs::File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut code, vdso.start)?;
    let found = code.windows(SYSCALL.len()).position(|bytes| bytes == SYSCALL);
    found.map(|at| vdso.start + at as u64).ok_or_else(|| io::Error::other("the process's vdso makes no system call"))
}

/// A copy of a process's descriptor.
fn fetch(pid: libc::pid_t, theirs: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the descriptors are new and ours.
    unsafe {
        let process = call(libc::SYS_pidfd_open, [pid as usize, 0, 0, 0, 0, 0])?;
        let process = OwnedFd::from_raw_fd(process as RawFd);
        use std::os::fd::AsRawFd;
        let ours = call(libc::SYS_pidfd_getfd, [process.as_raw_fd() as usize, theirs as usize, 0, 0, 0, 0])?;
        Ok(OwnedFd::from_raw_fd(ours as RawFd))
    }
}
