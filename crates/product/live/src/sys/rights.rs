//! The pager's threads need no right: all that they use is open. They drop all capabilities and can get no new ones;
//! in a process of their own they also lose every system call but those of a pager at work. So whoever gets them to
//! run code of his own, from the program, whose memory they share, gets no file of the user's and no other process.

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

/// The calls of a pager at work, in its own process and in threads of the program: those that it needs there.
pub const NEEDED: [i64; 14] = [
    libc::SYS_futex,
    libc::SYS_read,
    libc::SYS_ioctl,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_write,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_madvise,
    libc::SYS_mprotect,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_rt_sigprocmask,
    libc::SYS_exit_group,
];
/// The same: those that it can do without in threads of the program.
pub const WANTED: [i64; 12] = [
    libc::SYS_process_madvise,
    libc::SYS_vmsplice,
    libc::SYS_io_uring_enter,
    libc::SYS_mremap,
    libc::SYS_mincore,
    libc::SYS_ppoll,
    libc::SYS_recvmsg,
    libc::SYS_close,
    libc::SYS_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_membarrier,
    libc::SYS_prctl,
];
/// Others, in its own process only.
const ITS_OWN: [i64; 10] = [
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
];

/// `AUDIT_ARCH_X86_64` and `AUDIT_ARCH_AARCH64`.
#[cfg(target_arch = "x86_64")]
pub const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub const ARCHITECTURE: u32 = 0xc000_00b7;

/// From now on, all threads of the calling process can make only these calls, and send a signal to the program's
/// process; others fail with EPERM. Without effect where the kernel or a filter of the program's refuses it.
///
/// In `struct seccomp_data`, the number of the call is at byte 0, the architecture at 4, the first argument at 16.
pub fn only_work(program: usize) {
    const LOAD: u16 = 0x20;
    const EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const LEN: usize = NEEDED.len() + WANTED.len() + ITS_OWN.len() + 9;
    let line = |code, jt: usize, jf: usize, k| libc::sock_filter { code, jt: jt as u8, jf: jf as u8, k };
    let refuse = line(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    let mut lines = [line(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW); LEN];
    // Jumps count from the next line. The last five: refuse, first argument, compare, refuse, allow.
    lines[0] = line(LOAD, 0, 0, 4);
    lines[1] = line(EQUAL, 0, LEN - 5 - 2, ARCHITECTURE);
    lines[2] = line(LOAD, 0, 0, 0);
    lines[3] = line(EQUAL, LEN - 4 - 4, 0, libc::SYS_tgkill as u32);
    for (i, call) in NEEDED.iter().chain(&WANTED).chain(&ITS_OWN).enumerate() {
        lines[4 + i] = line(EQUAL, LEN - 1 - (5 + i), 0, *call as u32);
    }
    lines[LEN - 5] = refuse;
    lines[LEN - 4] = line(LOAD, 0, 0, 16);
    lines[LEN - 3] = line(EQUAL, 1, 0, program as u32);
    lines[LEN - 2] = refuse;
    let filter = libc::sock_fprog { len: LEN as u16, filter: lines.as_mut_ptr() };
    let (set, all) = (libc::SECCOMP_SET_MODE_FILTER as usize, libc::SECCOMP_FILTER_FLAG_TSYNC as usize);
    // SAFETY: the filter lives through the call.
    let _ = unsafe { sys::call(libc::SYS_seccomp, [set, all, &raw const filter as usize, 0, 0, 0]) };
}
