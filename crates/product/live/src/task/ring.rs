//! A task's ring for asynchronous reads of the device.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{opcode, register, types, IoUring};

use super::LOADS;
use crate::sys::{self, own_descriptors};
use crate::{LiveError, PAGE};

/// Of a ring: the loads of a fault, and as many that it reads ahead.
const ENTRIES: u32 = 2 * LOADS as u32;

/// The same ring with a number that the program does not use. The memory that it shares with the kernel is mapped
/// again.
fn high(ring: io::Result<IoUring>) -> io::Result<IoUring> {
    let ring = ring?;
    // SAFETY: the number is open, and the duplicate is new.
    let fd = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }.try_clone_to_owned()?;
    let fd = sys::move_high(fd);
    // SAFETY: a ring's descriptor, which is given away, with the parameters that the kernel has filled in for it.
    unsafe { IoUring::from_fd(fd.into_raw(), ring.params().clone()) }
}

/// A ring for reads. The fault or call that submits a read also takes its completion. So nothing is in flight when a
/// thread goes back to its work, where a completion would interrupt its system calls.
pub struct Ring {
    io: IoUring,
    /// A filter of system calls has refused it to a thread. Reads noted then must never be submitted.
    refused: bool,
}

impl Ring {
    pub fn new() -> Result<Ring, LiveError> {
        // A ring would do more for its owner than his filter of system calls allows. So it only reads, where the
        // kernel can restrict it (Linux 5.10).
        let only_reads = || {
            let io = IoUring::builder().setup_r_disabled().build(ENTRIES)?;
            io.submitter().register_restrictions(&mut [register::Restriction::sqe_op(opcode::Read::CODE)])?;
            io.submitter().register_enable_rings()?;
            Ok(io)
        };
        let io = high(only_reads().or_else(|_: io::Error| IoUring::new(ENTRIES)));
        io.map(|io| Ring { io, refused: false }).map_err(|error| LiveError::Missing {
            feature: "io_uring",
            reason: error.to_string(),
            remedy: "allow it (sysctl kernel.io_uring_disabled=0) or use `--wait read`",
        })
    }

    /// In a forked child. The ring's memory is shared with the parent: it is left alone. Its descriptor is closed
    /// already.
    pub fn leave_to_parent(self) {
        std::mem::forget(self);
    }

    pub fn works(&self) -> bool {
        !self.refused
    }

    /// Notes a read of a page; `submit` submits it.
    pub fn read(&mut self, fd: i32, into: usize, offset: u64, number: usize) {
        let entry = opcode::Read::new(types::Fd(fd), into as *mut u8, PAGE as u32)
            .offset(offset)
            .build()
            .user_data(number as u64);
        // SAFETY: the buffer belongs to the load until its completion has been taken.
        let pushed = unsafe { self.io.submission().push(&entry) };
        pushed.expect("there are as many entries as loads");
    }

    /// Submits all noted reads with one system call. Returns false if this thread may not; the ring is then not used
    /// any more.
    pub fn submit(&mut self) -> bool {
        loop {
            match self.io.submit() {
                Ok(_) => return true,
                Err(error) if is_refusal(&error) => {
                    self.refused = true;
                    return false;
                }
                Err(error) => look(&error),
            }
        }
    }

    /// The next completion, if there is one: the load's number and what the kernel returned.
    pub fn next(&mut self) -> Option<(usize, i32)> {
        let entry = self.io.completion().next()?;
        Some((entry.user_data() as usize, entry.result()))
    }

    /// Sleeps until there are `completions` completions: one wake-up for all costs less than one for each.
    pub fn sleep(&mut self, completions: usize) {
        loop {
            match self.io.submit_and_wait(completions) {
                Ok(_) => return,
                // Refused after the request, for all threads at once. Completions come all the same.
                Err(error) if is_refusal(&error) => return sys::give_way(),
                Err(error) => look(&error),
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        own_descriptors::remove(self.io.as_raw_fd());
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}

fn look(error: &io::Error) {
    if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) {
        crate::sys::fatal::stop(format_args!("io_uring_enter: {error}"));
    }
}
