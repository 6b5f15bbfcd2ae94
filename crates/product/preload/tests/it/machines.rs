//! Differences between machines must not matter: the oracle's programs run again, on a machine that is made to look
//! different.
//!
//! The C library's copying routines follow `GLIBC_TUNABLES`. ChaCha20 detects the processor's features itself, and xxh3
//! is compiled for features that every processor of the kind has, so neither can be switched at run time. What they
//! need is stack, and the fault path has its own.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::oracle::judge::{Case, Oracle, Setting, LIMITS, USUAL};
use coldframe_live::{Inject, Options, Wait};
use coldframe_toolbox::{have, skip, GCC};

/// Steps of a program, and the programs: few, because there are many machines. `make oracle` uses new ones.
const STEPS: u32 = 40;
const SEEDS: std::ops::Range<u64> = 1..4;

fn the_same_on(setting: Setting) {
    // The kernel writes to pages of a file that a process serves: without UFFDIO_MOVE it is refused, as the book says.
    let refused = (setting.name == NO_MOVE).then_some("served");
    if !have(&[GCC]) {
        return;
    }
    let oracle = Oracle::build();
    for seed in SEEDS {
        let case = Case { seed, steps: STEPS, without: LIMITS.into_iter().chain(refused).map(Into::into).collect() };
        if let Some(text) = oracle.judge(&case, &setting) {
            panic!("{}: {text}", setting.name);
        }
    }
}

/// Runs `change` in the child between fork and exec.
fn before(command: &mut Command, change: fn() -> io::Result<()>) {
    // SAFETY: the tests below make one system call there, which allocates nothing.
    unsafe { command.pre_exec(change) };
}

fn done(result: i64) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn processors<const N: usize>() -> io::Result<()> {
    // SAFETY: the set lives through the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (0..N).for_each(|cpu| libc::CPU_SET(cpu, &mut set));
        done(libc::sched_setaffinity(0, size_of_val(&set), &set).into())
    }
}

/// The C library must not use these features; a processor that lacks them is such a machine by itself. The pager's own
/// code is not affected: see above.
fn without(name: &'static str, around: fn(&mut Command)) {
    the_same_on(Setting { name, around, ..USUAL });
    the_same_on(Setting { name, change: |o| o.encrypt = true, around, ..USUAL });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_c_library_without_wide_registers() {
    without("no AVX-512", |c| {
        c.env("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW");
    });
    without("no AVX2", |c| {
        c.env("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2");
    });
    without("no AVX", |c| {
        c.env("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-ERMS,-FSRM");
    });
}

/// The kernel may then merge pages of all memory of the process, including the pager's.
#[test]
fn pages_that_the_kernel_merges() {
    const PR_SET_MEMORY_MERGE: i32 = 67;
    fn merge() -> io::Result<()> {
        // SAFETY: no pointers.
        done(unsafe { libc::prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0) }.into())
    }
    let mut probe = Command::new("true");
    before(&mut probe, merge);
    if probe.status().is_err() {
        return skip("prctl(PR_SET_MEMORY_MERGE) is refused; it takes Linux 6.4 with KSM");
    }
    let _scanner = Scanner::start();
    the_same_on(Setting { name: "merged pages", around: |c| before(c, merge), ..USUAL });
    let tight = |o: &mut Options| o.evict_batch = Some(1);
    the_same_on(Setting { name: "merged, tight", ram: 256, change: tight, around: |c| before(c, merge), ..USUAL });
}

/// Runs KSM's scanner while the value exists, if that is allowed; restores the settings afterwards.
struct Scanner(Vec<(&'static str, String)>);

impl Scanner {
    fn start() -> Scanner {
        let wanted = [
            ("/sys/kernel/mm/ksm/pages_to_scan", "20000"),
            ("/sys/kernel/mm/ksm/sleep_millisecs", "1"),
            ("/sys/kernel/mm/ksm/run", "1"),
        ];
        let mut was = Vec::new();
        for (path, value) in wanted {
            let Ok(old) = std::fs::read_to_string(path) else { continue };
            if std::fs::write(path, value).is_ok() {
                was.push((path, old));
            }
        }
        Scanner(was)
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        for (path, old) in self.0.iter().rev() {
            let _ = std::fs::write(path, old.trim());
        }
    }
}

/// Makes a system call fail, as on a kernel without it. With `argument`: only for this second argument.
fn refuse(call: i64, argument: Option<u32>, error: i32) -> io::Result<()> {
    const LOAD: u16 = 0x20;
    const EQUAL: u16 = 0x15;
    const ANSWER: u16 = 0x06;
    let line = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // `seccomp_data`: the call's number comes first, its second argument 24 bytes later. A jump gives the number of
    // skipped lines.
    let mut program = [
        line(LOAD, 0, 0, 0),
        line(EQUAL, if argument.is_some() { 0 } else { 2 }, 3, call as u32),
        line(LOAD, 0, 0, 24),
        line(EQUAL, 0, 1, argument.unwrap_or(0)),
        line(ANSWER, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
        line(ANSWER, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter lives through the call.
    unsafe {
        done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        done(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter).into())
    }
}

fn no_huge_pages() -> io::Result<()> {
    // SAFETY: no pointers.
    done(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) }.into())
}

fn no_io_uring(command: &mut Command) {
    before(command, || refuse(libc::SYS_io_uring_setup, None, libc::ENOSYS));
}

const NO_MOVE: &str = "no UFFDIO_MOVE";
/// `_IOWR(0xaa, 5, 40 bytes)`.
const UFFDIO_MOVE: u32 = 0xc028_aa05;

#[test]
fn other_processors_and_kernels() {
    let machines = [
        Setting { name: "one processor", around: |c| before(c, processors::<1>), ..USUAL },
        Setting { name: "one processor, eight handlers", handlers: 8, around: |c| before(c, processors::<1>), ..USUAL },
        Setting { name: "two processors", around: |c| before(c, processors::<2>), ..USUAL },
        Setting { name: "no huge pages", around: |c| before(c, no_huge_pages), ..USUAL },
        // glibc's heap then requests huge pages wherever it can; the oracle requests them too (`advise-new`).
        Setting { name: "huge pages", around: |c| _ = c.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"), ..USUAL },
        Setting { name: "no io_uring", around: no_io_uring, ..USUAL },
        Setting { name: "no io_uring, plain reads", change: |o| o.wait = Wait::Read, around: no_io_uring, ..USUAL },
        Setting {
            name: NO_MOVE,
            around: |c| before(c, || refuse(libc::SYS_ioctl, Some(UFFDIO_MOVE), libc::EINVAL)),
            ..USUAL
        },
        Setting {
            name: "no process_madvise",
            around: |c| before(c, || refuse(libc::SYS_process_madvise, None, libc::EPERM)),
            ..USUAL
        },
    ];
    machines.into_iter().for_each(the_same_on);
}

#[test]
fn other_devices() {
    let slow = |o: &mut Options| o.inject = Some(Inject { slow_us: 1000, ..Inject::default() });
    the_same_on(Setting { name: "slow device", ram: 4096, change: slow, ..USUAL });
    let stumbles = |o: &mut Options| {
        let seed = 5;
        o.inject =
            Some(Inject { seed, read_short: 40, again: 20, read_error: 400, write_short: 30, ..Inject::default() });
    };
    the_same_on(Setting { name: "stumbling device", ram: 1024, change: stumbles, ..USUAL });
    if !std::path::Path::new("/dev/shm").is_dir() {
        return skip("/dev/shm is not here");
    }
    the_same_on(Setting { name: "fast device", ram: 512, change: |o| o.backing = "/dev/shm".into(), ..USUAL });
}

#[test]
fn a_programs_own_clock_is_not_the_pagers() {
    let source = r#"
#include <time.h>
static volatile int asked;
int clock_gettime(clockid_t clock, struct timespec *time) { asked++; return syscall(SYS_clock_gettime, clock, time); }
int main(void) {
    enum { LEN = 4 << 20 };
    char *memory = malloc(LEN); int before = asked;
    for (int round = 0; round < 3; round++) for (int i = 0; i < LEN; i += 4096) memory[i]++;
    CHECK(asked == before);
}"#;
    crate::common::check_paged("clock", source, 1 << 20, &["-rdynamic"]);
}
