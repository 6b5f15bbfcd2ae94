//! Filters of system calls (seccomp) that the program sets for itself. They also apply to what this library does in
//! the program's threads, and to the children and their pagers. A filter is not set if it refuses a call that this
//! library needs: the call fails with EINVAL, as on a kernel without filters, and one message says so. If a filter
//! refuses what only a child's pager needs, later children have none.
//!
//! To decide this, the filter is run here. It is a program that gets a call's number, address and arguments, and
//! returns what happens to the call (Documentation/userspace-api/seccomp_filter.rst). Its instructions are those of
//! classic BPF that the kernel allows; [`judged`] knows them.

use std::ffi::{c_int, c_ulong};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use coldframe_live::calls::{ALWAYS, ARCHITECTURE, NEEDED, WANTED};
use coldframe_live::ForkedChild;

use crate::descriptors::pinning::MAY_LOOK;
use crate::managed::memory;
use crate::managed::ranges::{failed, pass};
use crate::pointers::{value, values};
use crate::say::once;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const LOG: u32 = libc::SECCOMP_RET_LOG;
const ERROR: u32 = libc::SECCOMP_RET_ERRNO;

/// Calls by which a child that does not page gets its memory.
const UNPAGED: [i64; 4] = [libc::SYS_madvise, libc::SYS_mprotect, libc::SYS_mmap, libc::SYS_munmap];
/// Calls by which a child gets what its pager needs.
const IN_A_FORK: [i64; 7] = [
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_prlimit64,
    libc::SYS_fcntl,
    libc::SYS_close,
];
/// Calls that a forked child makes, under the same filter, to give its pager a process of its own. It can do without
/// them, as without those of [`WANTED`].
const IN_A_CHILD: [i64; 12] = [
    libc::SYS_openat,
    libc::SYS_pidfd_open,
    libc::SYS_close_range,
    libc::SYS_dup3,
    libc::SYS_setpgid,
    libc::SYS_chdir,
    libc::SYS_capset,
    libc::SYS_pipe2,
    libc::SYS_wait4,
    libc::SYS_epoll_create1,
    libc::SYS_eventfd2,
    libc::SYS_userfaultfd,
];

/// What is possible under a filter, the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Under {
    Nothing,
    /// The process pages, and can have no children.
    Alone,
    /// Its children do not page.
    Paging,
    All,
}

/// `within`: the pager works in the program's threads.
fn judge(filter: &[libc::sock_filter], within: bool) -> Under {
    let answer = |call: i64| judged(filter, call).map(|answer| answer & libc::SECCOMP_RET_ACTION_FULL);
    let allowed = |call: &i64| matches!(answer(*call), Some(ALLOW | LOG));
    let borne = |call: &i64| matches!(answer(*call), Some(ALLOW | LOG | ERROR));
    if !ALWAYS.iter().all(allowed) || within && !(NEEDED.iter().all(allowed) && WANTED.iter().all(borne)) {
        Under::Nothing
    } else if !UNPAGED.iter().all(allowed) {
        Under::Alone
    } else if !NEEDED.iter().chain(&IN_A_FORK).all(allowed) || !WANTED.iter().chain(&IN_A_CHILD).all(borne) {
        Under::Paging
    } else {
        Under::All
    }
}

/// The least that is possible under all filters so far.
static POSSIBLE: AtomicU8 = AtomicU8::new(Under::All as u8);

/// What the filters leave to a child.
pub fn child() -> ForkedChild {
    let possible = POSSIBLE.load(Relaxed);
    if possible >= Under::All as u8 {
        ForkedChild::Pages
    } else if possible >= Under::Paging as u8 {
        ForkedChild::IsFiltered
    } else {
        ForkedChild::MustNotBe
    }
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

/// The lines of a filter. `None`: it cannot be read.
fn lines(filter: usize) -> Option<Vec<libc::sock_filter>> {
    value(filter as *const libc::sock_fprog).and_then(|f| values(f.filter, f.len.into()))
}

/// What is possible under this filter (`None`: strict mode, which allows only reading, writing and ending).
fn under(filter: Option<usize>) -> Under {
    if !memory::ready() {
        return Under::All;
    }
    let within = memory::pager().options().record.is_some();
    // What cannot be read, the kernel refuses.
    let possible = filter.map_or(Under::Nothing, |at| lines(at).map_or(Under::All, |lines| judge(&lines, within)));
    if possible == Under::Nothing {
        let what =
            "the program does not get its filter of system calls (seccomp), which leaves out what the pager needs";
        once!("{what}");
    }
    possible
}

/// Sets a filter by this call; a result of the C library's kind.
fn set(filter: Option<usize>, call: impl FnOnce() -> isize) -> isize {
    let possible = under(filter);
    if possible == Under::Nothing {
        return failed(libc::EINVAL);
    }
    let answer = call();
    if answer >= 0 {
        POSSIBLE.fetch_min(possible as u8, Relaxed);
        let answer = filter.and_then(lines).and_then(|lines| judged(&lines, libc::SYS_fstatfs));
        let ends = answer.is_some_and(|answer| !matches!(answer & libc::SECCOMP_RET_ACTION_FULL, ALLOW | LOG | ERROR));
        MAY_LOOK.fetch_and(!ends, Relaxed);
    }
    answer
}

/// prctl, with the C library's kind of result.
pub unsafe fn control(number: usize, arguments: [usize; 4]) -> isize {
    let [b, c, d, e] = arguments;
    let call = || pass(libc::SYS_prctl, [number, b, c, d, e, 0]);
    if number != libc::PR_SET_SECCOMP as usize {
        return call();
    }
    set((b == libc::SECCOMP_MODE_FILTER as usize).then_some(c), call)
}

/// seccomp, with the kind of result of the C library's `syscall`.
pub unsafe fn seccomp(operation: usize, flags: usize, argument: usize) -> isize {
    let call = || pass(libc::SYS_seccomp, [operation, flags, argument, 0, 0, 0]);
    let strict = operation == libc::SECCOMP_SET_MODE_STRICT as usize;
    if strict || operation == libc::SECCOMP_SET_MODE_FILTER as usize {
        return set((!strict).then_some(argument), call);
    }
    call()
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
    fn what_a_filter_refuses_decides_what_is_possible() {
        let under = |call, answer| judge(&but_for(call, answer), false);
        for answer in [ERROR | 1, libc::SECCOMP_RET_KILL_PROCESS] {
            assert!(ALWAYS.iter().all(|call| under(*call, answer) == Under::Nothing));
            assert!(UNPAGED.iter().all(|call| under(*call, answer) == Under::Alone));
            let others = NEEDED.iter().chain(&IN_A_FORK).filter(|call| !UNPAGED.contains(call));
            assert!(others.into_iter().all(|call| under(*call, answer) == Under::Paging));
            assert!(NEEDED.iter().all(|call| judge(&but_for(*call, answer), true) == Under::Nothing));
        }
        for call in WANTED.into_iter().chain(IN_A_CHILD).filter(|call| !IN_A_FORK.contains(call)) {
            let with = [under(call, ERROR | 1), under(call, libc::SECCOMP_RET_TRAP)];
            assert_eq!(with, [Under::All, Under::Paging]);
        }
        assert_eq!(under(libc::SYS_unshare, libc::SECCOMP_RET_KILL_PROCESS), Under::All);
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
