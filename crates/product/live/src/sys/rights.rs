//! The pager's threads need no right: all that they use is open. They drop all capabilities and can get no new ones;
//! in a process of their own they also lose every system call but those of a pager at work. So whoever gets them to
//! run code of his own, from the program, whose memory they share, gets no file of the user's and no other process.

use std::os::fd::RawFd;

use crate::sys::{self, Sys};

/// `_LINUX_CAPABILITY_VERSION_3` (`include/uapi/linux/capability.h`).
const VERSION: u32 = 0x2008_0522;

/// Of the calling thread, permanently.
pub fn drop_all() -> Sys<()> {
    let (head, none) = ([VERSION, 0], [0u32; 6]);
    // SAFETY: the structures that the kernel reads, of two and of six words.
    unsafe {
        // A filter of the program's may refuse this; without capabilities it is the second lock on the same door.
        let _ = sys::call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0]);
        sys::call(libc::SYS_capset, [head.as_ptr() as usize, none.as_ptr() as usize, 0, 0, 0, 0])?;
    }
    Ok(())
}

/// The calls that the pager's library makes in the program's threads, if the pager has a process of its own.
pub const ALWAYS: [i64; 4] = [libc::SYS_futex, libc::SYS_gettid, libc::SYS_getpid, libc::SYS_rt_sigprocmask];
/// The calls of a pager at work, in its own process or in threads of the program: those that it needs there.
pub const NEEDED: [i64; 10] = [
    libc::SYS_read,
    libc::SYS_ioctl,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_write,
    libc::SYS_madvise,
    libc::SYS_mprotect,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_exit_group,
];
/// The same: those that it can do without.
pub const WANTED: [i64; 16] = [
    libc::SYS_process_madvise,
    libc::SYS_vmsplice,
    libc::SYS_io_uring_enter,
    libc::SYS_mremap,
    libc::SYS_mincore,
    libc::SYS_ppoll,
    libc::SYS_close,
    libc::SYS_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_membarrier,
    libc::SYS_prctl,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
];
/// Others, in its own process only.
const ITS_OWN: [i64; 16] = [
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    libc::SYS_clock_gettime,
    libc::SYS_pkey_mprotect,
    libc::SYS_fallocate,
    libc::SYS_ftruncate,
    libc::SYS_fstatfs,
    libc::SYS_restart_syscall,
    libc::SYS_sysinfo,
    libc::SYS_exit,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_getsockname,
    libc::SYS_accept4,
    libc::SYS_getrandom,
    libc::SYS_pidfd_open,
];

/// `AUDIT_ARCH_X86_64` and `AUDIT_ARCH_AARCH64`.
#[cfg(target_arch = "x86_64")]
pub const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub const ARCHITECTURE: u32 = 0xc000_00b7;

/// A filter of system calls that is being written. In `struct seccomp_data`, the number of the call is at byte 0, the
/// architecture at 4, the lower half of argument `n` at 16 + 8 n. Jumps count from the next line.
struct FilterLines {
    lines: [libc::sock_filter; FilterLines::LINES],
    len: usize,
}

impl FilterLines {
    const LINES: usize = 130;
    const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;

    fn add(&mut self, code: u16, jt: u8, jf: u8, k: u32) {
        self.lines[self.len] = libc::sock_filter { code, jt, jf, k };
        self.len += 1;
    }

    fn load(&mut self, offset: u32) {
        self.add(0x20, 0, 0, offset);
    }

    fn give(&mut self, answer: u32) {
        self.add(0x06, 0, 0, answer);
    }

    /// Allows a call if each of these arguments is one of two values.
    fn allow_if(&mut self, call: i64, arguments: &[(u32, [u32; 2])]) {
        self.add(0x15, 0, (4 * arguments.len() + 1) as u8, call as u32);
        for (n, [first, second]) in arguments {
            self.load(16 + 8 * n);
            self.add(0x15, 2, 0, *first);
            self.add(0x15, 1, 0, *second);
            self.give(FilterLines::REFUSE);
        }
        self.give(libc::SECCOMP_RET_ALLOW);
    }
}

/// From now on, all threads of the calling process can make only these calls, send a signal to the program's process,
/// make a socket for processes of this machine, and make nameless files in `folder`; others fail with EPERM. Without
/// effect where the kernel or a filter of the program's refuses it.
pub fn only_work(program: usize, folder: RawFd) {
    let none = libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 };
    let mut filter = FilterLines { lines: [none; FilterLines::LINES], len: 0 };
    filter.load(4);
    filter.add(0x15, 1, 0, ARCHITECTURE);
    filter.give(FilterLines::REFUSE);
    filter.load(0);
    let calls = [&ALWAYS[..], &NEEDED, &WANTED, &ITS_OWN];
    calls.into_iter().flatten().for_each(|call| filter.allow_if(*call, &[]));
    let same = |value: u32| [value; 2];
    filter.allow_if(libc::SYS_tgkill, &[(0, same(program as u32))]);
    let kind = (libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC) as u32;
    filter.allow_if(libc::SYS_socket, &[(0, same(libc::AF_UNIX as u32)), (1, same(kind))]);
    // O_TMPFILE makes a file without a name, whatever folder the path names.
    let flags = (libc::O_RDWR | libc::O_TMPFILE | libc::O_CLOEXEC) as u32;
    let flags = [flags, flags | libc::O_DIRECT as u32];
    filter.allow_if(libc::SYS_openat, &[(0, same(folder as u32)), (2, flags)]);
    filter.give(FilterLines::REFUSE);
    let program = libc::sock_fprog { len: filter.len as u16, filter: filter.lines.as_mut_ptr() };
    let (set, sync) = (libc::SECCOMP_SET_MODE_FILTER as usize, libc::SECCOMP_FILTER_FLAG_TSYNC as usize);
    // SAFETY: the filter lives through the call.
    let _ = unsafe { sys::call(libc::SYS_seccomp, [set, sync, &raw const program as usize, 0, 0, 0]) };
}
