//! A program whose memory is not managed, but whose writes another process looks at: this library opens a userfaultfd
//! that notes writes without a message, and leaves it open. Only a process can open one for its own memory.

use crate::sys::call;

/// `UFFDIO_API`, `UFFD_USER_MODE_ONLY`, `UFFD_API`, and the features `PAGEFAULT_FLAG_WP`, `WP_UNPOPULATED` and
/// `WP_ASYNC` of include/uapi/linux/userfaultfd.h.
const UFFDIO_API: usize = 0xc018_aa3f;
const USER_MODE_ONLY: usize = 1;
const API: [u64; 3] = [0xaa, 1 | 1 << 13 | 1 << 15, 0];

/// Where the descriptor goes, above those that programs count on.
const HIGH: usize = 900;

/// Opens it. Where that is refused, nobody sees the writes.
pub fn note() {
    // It has no messages, so it needs no rights.
    let (flags, mut api) = (libc::O_CLOEXEC as usize | USER_MODE_ONLY, API);
    // SAFETY: the array lives through the call; the descriptors are new and stay as they are.
    unsafe {
        let fd = call(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]);
        if fd < 0 {
            return;
        }
        let fd = fd as usize;
        call(libc::SYS_ioctl, [fd, UFFDIO_API, &raw mut api as usize, 0, 0, 0]);
        if call(libc::SYS_fcntl, [fd, libc::F_DUPFD_CLOEXEC as usize, HIGH, 0, 0, 0]) >= 0 {
            call(libc::SYS_close, [fd, 0, 0, 0, 0, 0]);
        }
    }
}
