//! Threads of their own that handle faults: they serve those of system calls too, which a signal cannot.
//!
//! A handler that dies leaves threads that wait for ever. So it does not die: whatever happens ends the whole process with a message.
//! The threads are made by the C library alone: the standard library's take memory from the allocator of the program, which may be one
//! that this very pager keeps, and which stands still while a child is being forked.

use std::ffi::c_void;

use crate::fatal;
use crate::pager::{Inner, Kind};
use crate::sys::{self, Errno};

/// Bytes of a handler's stack.
const STACK: usize = 256 << 10;

/// Starts so many. The pager must outlive the process.
pub fn start(inner: &Inner, count: usize) {
    let mask = sys::block_signals();
    for _ in 0..count.max(1) {
        // SAFETY: the attributes are made before they are used; a pager with handler threads is never dropped.
        let result = unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            let mut thread: libc::pthread_t = std::mem::zeroed();
            libc::pthread_attr_init(&mut attributes);
            libc::pthread_attr_setstacksize(&mut attributes, STACK);
            libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
            let argument = (inner as *const Inner).cast_mut().cast::<c_void>();
            let result = libc::pthread_create(&mut thread, &attributes, handler, argument);
            libc::pthread_attr_destroy(&mut attributes);
            result
        };
        if result != 0 {
            fatal::stop(format_args!("no thread for handling faults: {}", Errno(result).io()));
        }
    }
    sys::restore_signals(mask);
}

extern "C" fn handler(inner: *mut c_void) -> *mut c_void {
    // SAFETY: `start` gave it, and the pager outlives the process.
    let inner = unsafe { &*inner.cast::<Inner>() };
    // The name that top and gdb show.
    // SAFETY: a C string of less than 16 bytes.
    let _ =
        unsafe { sys::call(libc::SYS_prctl, [libc::PR_SET_NAME as usize, c"coldframe".as_ptr() as usize, 0, 0, 0, 0]) };
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(inner)));
    fatal::stop("a fault handler has failed")
}

fn run(inner: &Inner) {
    loop {
        match inner.uffd.get().read() {
            Ok(message) => {
                let kind = if message.protected { Kind::Protected } else { Kind::Missing };
                inner.serve(message.address, message.write, kind, message.thread);
                inner.uffd.get().wake(message.address & !(crate::PAGE - 1));
            }
            Err(Errno::AGAIN) => {}
            Err(error) => fatal::stop(format_args!("faults cannot be read: {}", error.io())),
        }
    }
}
