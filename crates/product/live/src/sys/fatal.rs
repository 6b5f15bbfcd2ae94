//! Ends the process with a message on stderr. A program must never read wrong bytes, so it is stopped instead.

use std::fmt::{self, Write};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU8, Ordering::*};

use crate::sys::{self, pids};

/// The exit code of a program that the pager had to stop.
pub const STOPPED: i32 = 125;

const LINE: usize = 1024;

/// Prints the reason and ends the process. Allocates nothing, so it may be called from a signal handler.
pub fn stop(reason: impl fmt::Display) -> ! {
    while HAS_ENDED.load(Relaxed) {
        sys::sleep_us(PATIENCE_MS * 1000);
    }
    let mut line = Line::new();
    let _ = writeln!(line, "coldframe: {reason}; the program is stopped");
    tell(line.text());
    // If this is the pager process, its end ends the program.
    if let (true, Some(mail)) = (pids::program() != sys::getpid(), mail()) {
        mail.stopped.store(pids::program() as u32, Release);
    }
    if pids::is_pager() {
        end_program();
    }
    sys::exit_group(STOPPED)
}

/// In a pager process: a descriptor by which a byte ends the program, and its pidfd.
static ENDS: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];
/// The program has ended, and its memory is gone: a thread that was at work there has nobody to tell.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// In a pager process whose program has ended: no thread reports anything, nor ends the process.
pub(crate) fn end_quietly() {
    HAS_ENDED.store(true, Relaxed);
}

/// A program that does not end within this time is in the kernel.
const PATIENCE_MS: u64 = 5000;

/// A pager process begins: a byte that is written to the first ends the program of the second, a pidfd.
pub(crate) fn end_by(write: RawFd, program: RawFd) {
    [write, program].into_iter().zip(&ENDS).for_each(|(fd, place)| place.store(fd, Relaxed));
}

/// Ends the program and waits until it has ended: when this process's userfaultfd is closed, absent pages are zeros.
fn end_program() {
    let [write, program] = ENDS.each_ref().map(|fd| fd.load(Relaxed));
    // SAFETY: a byte that lives through the call.
    let _ = unsafe { sys::call(libc::SYS_write, [write as usize, b"x".as_ptr() as usize, 1, 0, 0, 0]) };
    let _ = sys::await_events_for([program, -1], Some(PATIENCE_MS));
}

/// Prints one line, with `coldframe: ` before it, without buffers or locks.
pub fn say(what: impl fmt::Display) {
    let mut line = Line::new();
    let _ = writeln!(line, "coldframe: {what}");
    tell(line.text());
}

fn tell(text: &str) {
    // A pager process has no stderr, and perhaps another file under its number.
    if pids::is_pager() || !sys::say(text) {
        mail().into_iter().for_each(|mail| mail.put(text));
    }
}

/// Lines for who started the program, from processes without stderr. In the statistics' memory, which the reader
/// cannot write to.
#[repr(C)]
#[derive(Debug)]
pub struct Mail {
    last: AtomicU32,
    /// The process that the pager had to stop; 0: none.
    stopped: AtomicU32,
    /// The last lines: their numbers, and their texts with zeros behind them.
    lines: [(AtomicU32, [AtomicU8; LINE]); LINES],
}

/// Lines that are kept for the reader.
const LINES: usize = 4;

static MAIL: AtomicPtr<Mail> = AtomicPtr::new(std::ptr::null_mut());

fn mail() -> Option<&'static Mail> {
    // SAFETY: null, or in the statistics, which are never unmapped.
    unsafe { MAIL.load(Relaxed).as_ref() }
}

impl Mail {
    /// From now on, lines of this process go here if there is no stderr.
    pub(crate) fn use_it(&'static self) {
        MAIL.store((&raw const *self).cast_mut(), Relaxed);
    }

    fn put(&self, text: &str) {
        let number = self.last.fetch_add(1, AcqRel) + 1;
        let (place, bytes) = &self.lines[number as usize % LINES];
        place.store(0, Relaxed);
        let padded = text.bytes().chain(std::iter::repeat(0));
        bytes.iter().zip(padded).for_each(|(place, byte)| place.store(byte, Release));
        place.store(number, Release);
    }

    /// The line after the one of number `number_read`, which becomes its number. A line that four later ones have
    /// overtaken is lost.
    pub fn next(&self, number_read: &mut u32) -> Option<String> {
        let last = self.last.load(Acquire);
        while *number_read < last {
            let (place, bytes) = &self.lines[(*number_read as usize + 1) % LINES];
            match place.load(Acquire) {
                number if number == *number_read + 1 => {
                    let bytes = bytes.iter().map(|byte| byte.load(Acquire)).take_while(|byte| *byte != 0);
                    let text = String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned();
                    *number_read += 1;
                    return Some(text.replace(|c: char| c.is_control() && c != '\n', "?"));
                }
                number if number > *number_read => *number_read += 1,
                // It is being written.
                _ => break,
            }
        }
        None
    }

    /// Whether the pager had to stop this process.
    pub fn has_stopped(&self, process: u32) -> bool {
        self.stopped.load(Acquire) == process
    }
}

/// Text of bounded length on the stack.
struct Line {
    bytes: [u8; LINE],
    len: usize,
}

impl Line {
    fn new() -> Line {
        Line { bytes: [0; LINE], len: 0 }
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
