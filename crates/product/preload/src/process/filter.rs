//! Filters of system calls (seccomp) that the program sets for itself. They also apply to the pager's work in the
//! program's threads, which map, unmap or discard memory. If a filter makes a call fail with an error, the pager
//! mostly works without that call. Some filters end the process, or block a call that has no substitute. Such a
//! filter is not set: the call fails with EINVAL, as on a kernel without filters, and one message says so.
//!
//! To decide this, the filter is run here. It is a program that gets a call's number, address and arguments, and
//! returns what happens to the call (Documentation/userspace-api/seccomp_filter.rst). Its instructions are those of
//! classic BPF that the kernel allows; [`judged`] knows them.

use std::ffi::{c_int, c_ulong};

use coldframe_live::calls::{ARCHITECTURE, NEEDED, WANTED};

use crate::managed::memory;
use crate::managed::ranges::{failed, pass};
use crate::pointers::{value, values};
use crate::say::once;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const LOG: u32 = libc::SECCOMP_RET_LOG;
const ERROR: u32 = libc::SECCOMP_RET_ERRNO;

/// Calls that a forked child makes, under the same filter, to give its pager a process of its own. It can do without
/// them, as without those of [`WANTED`].
const IN_A_CHILD: [i64; 13] = [
    libc::SYS_openat,
    libc::SYS_socketpair,
    libc::SYS_sendmsg,
    libc::SYS_pidfd_open,
    libc::SYS_close_range,
    libc::SYS_dup3,
    libc::SYS_prlimit64,
    libc::SYS_setpgid,
    libc::SYS_chdir,
    libc::SYS_capset,
    libc::SYS_pipe2,
    libc::SYS_fcntl,
    libc::SYS_wait4,
];

fn bearable(filter: &[libc::sock_filter]) -> bool {
    let answer = |call: i64| judged(filter, call).map(|answer| answer & libc::SECCOMP_RET_ACTION_FULL);
    let needed = |call: &i64| matches!(answer(*call), Some(ALLOW | LOG));
    let wanted = |call: &i64| matches!(answer(*call), Some(ALLOW | LOG | ERROR));
    NEEDED.iter().all(needed) && WANTED.iter().chain(&IN_A_CHILD).all(wanted)
}

/// The filter's answer to a call without arguments. `None`: it is not a valid filter, which the kernel will report.
fn judged(filter: &[libc::sock_filter], call: i64) -> Option<u32> {
    // `struct seccomp_data`: the number, the architecture, the caller's address, six arguments; 64 bytes.
    let data = |at: u32| match at {
        0 => call as u32,
        4 => ARCHITECTURE,
        _ => 0,
    };
    let (mut a, mut x, mut memory, mut at) = (0u32, 0u32, [0u32; 16], 0usize);
    loop {
        let line = filter.get(at)?;
        let (code, k) = (line.code, line.k);
        at += 1;
        let other = if code & 0x08 != 0 { x } else { k };
        let cell = (k as usize) % 16;
        match code {
            0x20 => a = data(k),
            0x80 => a = 64,
            0x81 => x = 64,
            0x00 => a = k,
            0x01 => x = k,
            0x60 => a = memory[cell],
            0x61 => x = memory[cell],
            0x02 => memory[cell] = a,
            0x03 => memory[cell] = x,
            0x07 => x = a,
            0x87 => a = x,
            0x06 => return Some(k),
            0x16 => return Some(a),
            0x05 => at += k as usize,
            _ if code & 0x07 == 0x05 => {
                let yes = match code & 0xf0 {
                    0x10 => a == other,
                    0x20 => a > other,
                    0x30 => a >= other,
                    0x40 => a & other != 0,
                    _ => return None,
                };
                at += usize::from(if yes { line.jt } else { line.jf });
            }
            _ if code & 0x07 == 0x04 => {
                a = match code & 0xf0 {
                    0x00 => a.wrapping_add(other),
                    0x10 => a.wrapping_sub(other),
                    0x20 => a.wrapping_mul(other),
                    0x30 => a.checked_div(other)?,
                    0x40 => a | other,
                    0x50 => a & other,
                    0x60 => a.wrapping_shl(other),
                    0x70 => a.wrapping_shr(other),
                    0x80 => a.wrapping_neg(),
                    0xa0 => a ^ other,
                    _ => return None,
                };
            }
            _ => return None,
        }
    }
}

/// Whether the program may not set this filter (`None`: strict mode, which allows only reading, writing and ending).
fn objects(filter: Option<usize>) -> bool {
    let lines = |at: usize| value(at as *const libc::sock_fprog).and_then(|f| values(f.filter, f.len.into()));
    let objects = memory::ready() && filter.is_none_or(|at| lines(at).is_some_and(|lines| !bearable(&lines)));
    if objects {
        let what =
            "the program does not get its filter of system calls (seccomp), which leaves out what the pager needs";
        once!("{what}");
    }
    objects
}

/// prctl, with the C library's kind of result.
pub unsafe fn control(number: usize, arguments: [usize; 4]) -> isize {
    let [b, c, d, e] = arguments;
    let filter = (b == libc::SECCOMP_MODE_FILTER as usize).then_some(c);
    if number == libc::PR_SET_SECCOMP as usize && objects(filter) {
        return failed(libc::EINVAL);
    }
    pass(libc::SYS_prctl, [number, b, c, d, e, 0])
}

/// seccomp, with the kind of result of the C library's `syscall`.
pub unsafe fn seccomp(operation: usize, flags: usize, argument: usize) -> isize {
    let strict = operation == libc::SECCOMP_SET_MODE_STRICT as usize;
    let sets = strict || operation == libc::SECCOMP_SET_MODE_FILTER as usize;
    if sets && objects((!strict).then_some(argument)) {
        return failed(libc::EINVAL);
    }
    pass(libc::SYS_seccomp, [operation, flags, argument, 0, 0, 0])
}

/// Replaces the C library's function. It has any number of arguments; all are passed in the same way.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn prctl(number: c_int, b: c_ulong, c: c_ulong, d: c_ulong, e: c_ulong) -> c_int {
    // SAFETY: the caller's call.
    unsafe { control(number as usize, [b as usize, c as usize, d as usize, e as usize]) as c_int }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code, jt, jf, k }
    }

    /// A filter with `answer` for one call that allows everything else.
    fn but_for(call: i64, answer: u32) -> [libc::sock_filter; 4] {
        [line(0x20, 0, 0, 0), line(0x15, 0, 1, call as u32), line(0x06, 0, 0, answer), line(0x06, 0, 0, ALLOW)]
    }

    #[test]
    fn an_error_is_borne_where_there_is_a_substitute_and_an_end_nowhere() {
        for call in NEEDED {
            assert!(!bearable(&but_for(call, ERROR | 1)) && !bearable(&but_for(call, libc::SECCOMP_RET_KILL_PROCESS)));
        }
        for call in WANTED.into_iter().chain(IN_A_CHILD) {
            assert!(bearable(&but_for(call, ERROR | 1)) && !bearable(&but_for(call, libc::SECCOMP_RET_TRAP)));
        }
        assert!(bearable(&but_for(libc::SYS_socket, libc::SECCOMP_RET_KILL_PROCESS)));
    }

    #[test]
    fn a_filter_is_run_as_the_kernel_runs_it() {
        // The architecture's low byte is masked out, shifted and stored before it is used.
        let lines = [
            line(0x20, 0, 0, 4),
            line(0x54, 0, 0, 0xff),
            line(0x64, 0, 0, 8),
            line(0x02, 0, 0, 3),
            line(0x61, 0, 0, 3),
            line(0x87, 0, 0, 0),
            line(0x25, 0, 1, 0x100),
            line(0x05, 0, 0, 1),
            line(0x06, 0, 0, 1),
            line(0x16, 0, 0, 0),
        ];
        assert_eq!(judged(&lines, 0), Some((ARCHITECTURE & 0xff) << 8));
        assert_eq!(judged(&lines[..3], 0), None);
    }
}
