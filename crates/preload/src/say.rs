//! Messages to the user on file descriptor 2, without buffers or locks.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::sys;

/// Failures that are reported only once.
#[derive(Clone, Copy)]
pub enum Once {
    Full,
    Reservation,
    Low,
    Insists,
    OnFault,
    Userfaultfd,
    FixedMove,
    Advice,
    Direct,
    Kept,
    Rings,
    Words,
    Break,
    Limit,
    Filter,
}

static TOLD: AtomicU32 = AtomicU32::new(0);

/// Prints one line, with `coldframe: ` before it.
pub fn say(text: std::fmt::Arguments) {
    struct Line([u8; 1024], usize);
    impl Write for Line {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.0.len() - 1 - self.1);
            self.0[self.1..self.1 + n].copy_from_slice(&bytes[..n]);
            self.1 += n;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut line = Line([0; 1024], 0);
    let _ = write!(line, "coldframe: {text}");
    line.0[line.1] = b'\n';
    // SAFETY: reads the line.
    unsafe { sys::call(libc::SYS_write, [2, line.0.as_ptr() as usize, line.1 + 1, 0, 0, 0]) };
}

/// Prints one line, the first time only.
pub fn once(what: Once, text: std::fmt::Arguments) {
    if TOLD.fetch_or(1 << what as u32, Relaxed) & 1 << what as u32 == 0 {
        say(text);
    }
}

/// Prints one line and ends the process.
pub fn fail(code: u8, text: std::fmt::Arguments) -> ! {
    say(text);
    // SAFETY: ends the process.
    unsafe { sys::call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]) };
    std::process::abort()
}
