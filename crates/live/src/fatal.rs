//! Ends the process with a message on stderr. A program must never read wrong bytes, so it is stopped instead.

use std::fmt::{self, Write};

use crate::sys;

/// The exit code of a program that the pager had to stop.
pub const STOPPED: i32 = 125;

/// Prints the reason and ends the process. Allocates nothing, so it may be called from a signal handler.
pub fn stop(reason: impl fmt::Display) -> ! {
    let mut line = Line::new();
    let _ = writeln!(line, "coldframe: {reason}; the program is stopped");
    sys::say(line.text());
    sys::exit_group(STOPPED)
}

/// Prints one line, with `coldframe: ` before it, without buffers or locks.
pub fn say(what: impl fmt::Display) {
    let mut line = Line::new();
    let _ = writeln!(line, "coldframe: {what}");
    sys::say(line.text());
}

/// Text of bounded length on the stack.
struct Line {
    bytes: [u8; 1024],
    len: usize,
}

impl Line {
    fn new() -> Line {
        Line { bytes: [0; 1024], len: 0 }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or("coldframe: stopped\n")
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - self.len;
        let take = (0..=text.len().min(room)).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0);
        self.bytes[self.len..self.len + take].copy_from_slice(&text.as_bytes()[..take]);
        self.len += take;
        Ok(())
    }
}
