//! Trials of what this machine allows. `coldframe doctor` says in words what they have found.

use std::os::fd::AsRawFd;
use std::path::Path;

use super::Measured;
use crate::memory::space::Space;
use crate::swap::device::Device;
use crate::sys::{self, Notify, Sys, Uffd};
use crate::{LiveError, PAGE};

/// Whether faults can be reported, those of system calls, too (`of_kernel`). Otherwise the kernel's reason.
///
/// # Errors
/// There is no userfaultfd, or no right to one for faults of system calls.
pub fn reports_faults(of_kernel: bool) -> std::io::Result<()> {
    let notify = if of_kernel { Notify::Message } else { Notify::UserMessage };
    Ok(Uffd::open(notify).map(drop)?)
}

/// Whether pages move without a copy.
pub fn moves_pages() -> bool {
    Uffd::open(Notify::UserMessage).is_ok_and(|uffd| uffd.can_move)
}

/// Whether scattered pages can be dropped with one call.
pub fn drops_scattered() -> bool {
    with_page(|page| {
        let (pidfd, vector) = (sys::own_pidfd()?, [sys::iovec(page, PAGE)]);
        let a = [pidfd.as_raw_fd() as usize, vector.as_ptr() as usize, 1, libc::MADV_DONTNEED as usize, 0, 0];
        // SAFETY: a page of our own that no other code uses.
        unsafe { sys::call(libc::SYS_process_madvise, a) }
    })
}

/// Whether a pipe can refer to a page's frame.
pub fn holds_in_pipe() -> bool {
    with_page(|page| {
        let (_read, write) = sys::pipe(32 * PAGE)?;
        // SAFETY: a page of our own.
        unsafe { (page as *mut u8).write_volatile(1) };
        sys::to_pipe(write.as_raw_fd(), &[sys::iovec(page, PAGE)])
    })
}

fn with_page(trial: impl FnOnce(usize) -> Sys<usize>) -> bool {
    matches!(sys::with_memory(PAGE, trial), Ok(Ok(_)))
}

/// Whether the swap file can be there.
///
/// # Errors
/// The folder or device cannot be used.
pub fn takes_swap_file(backing: &Path) -> Result<(), LiveError> {
    Device::swap(backing, None).map(drop)
}

/// The times of that device and of the page table.
///
/// # Errors
/// The folder or device cannot be used, or memory cannot be watched.
pub fn measure(backing: &Path) -> Result<Measured, String> {
    let device = Device::swap(backing, None).map_err(|e| e.to_string())?;
    let uffd = Uffd::open(Notify::UserMessage).map_err(|e| sys::words(e).to_string())?;
    let space = Space::new(16 * PAGE, None, None).map_err(|e| e.to_string())?;
    uffd.register(space.aside_range()).map_err(|e| sys::words(e).to_string())?;
    super::measure(&device, &uffd, &space).map_err(|e| e.to_string())
}
