//! Threads of their own that handle faults: they serve those of system calls too, which a signal cannot.
//!
//! A handler that dies leaves threads that wait for ever. So it does not die: whatever happens ends the whole process with a message.

use crate::fatal;
use crate::pager::{Inner, Kind};
use crate::sys::{self, Errno};

/// Starts so many. The pager must outlive the process.
pub fn start(inner: &Inner, count: usize) {
    let address = inner as *const Inner as usize;
    for i in 0..count.max(1) {
        let mask = sys::block_signals();
        let started =
            std::thread::Builder::new().name(format!("coldframe-{i}")).stack_size(256 << 10).spawn(move || {
                // SAFETY: a pager with handler threads is never dropped.
                let inner = unsafe { &*(address as *const Inner) };
                let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(inner)));
                if end.is_err() {
                    fatal::stop("a fault handler has failed");
                }
            });
        sys::restore_signals(mask);
        if let Err(error) = started {
            fatal::stop(format_args!("no thread for handling faults: {error}"));
        }
    }
}

fn run(inner: &Inner) {
    loop {
        match inner.uffd.get().read() {
            Ok(message) => {
                let kind = if message.protected { Kind::Protected } else { Kind::Missing };
                inner.serve(message.address, message.write, kind);
                inner.uffd.get().wake(message.address & !(crate::PAGE - 1));
            }
            Err(Errno::AGAIN) => {}
            Err(error) => fatal::stop(format_args!("faults cannot be read: {}", error.io())),
        }
    }
}
