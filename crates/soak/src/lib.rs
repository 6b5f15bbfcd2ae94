//! The live pager under random settings, beside a shadow copy of all that was written: no byte may be lost or wrong, nothing may hang.
//!
//! A seed is a [`setting::Setting`]: policy, RAM, regions, threads, how faults are handled and waited for, the device, forks. Each setting runs in a
//! process of its own ([`watch`]), which ends with 0 when every word was what its writer had written last. What fails is printed with its seed,
//! and the seed alone says the setting again; the interleaving of threads is the machine's.
//!
//! ```text
//!   shared   every thread has 16 words of each page, which it alone writes; all read all          area.rs
//!   file     the same, in a region that is a file; at the end the file itself is read              area.rs
//!   own      a region of each thread: whole pages, discarded, pinned, wished for, dropped, taken    own.rs
//!   forks    a child checks what it sees at the fork, writes for itself, forks again               forks.rs
//! ```

pub mod area;
pub mod forks;
pub mod own;
pub mod run;
pub mod setting;
pub mod tally;
pub mod watch;

/// The exit code of a process that has read what nobody wrote.
pub const WRONG: i32 = 3;

/// Ends the process: a word was wrong. Allocates little, since it may be called in a forked child.
pub fn wrong(what: std::fmt::Arguments<'_>) -> ! {
    eprintln!("WRONG: {what}");
    // SAFETY: ends the process at once, whatever its other threads do.
    unsafe { libc::_exit(WRONG) }
}
