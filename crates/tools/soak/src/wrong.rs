//! The end of a process that read a wrong word.

/// The exit code of a process that read a wrong word.
pub const WRONG: i32 = 3;

/// Ends the process: a word was wrong. Allocates little, because a forked child may call it.
pub fn wrong(what: std::fmt::Arguments<'_>) -> ! {
    eprintln!("WRONG: {what}");
    // SAFETY: ends the process at once, whatever its other threads do.
    unsafe { libc::_exit(WRONG) }
}
