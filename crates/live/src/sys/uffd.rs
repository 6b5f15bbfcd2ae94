//! userfaultfd: how to open one, and its operations.

use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use linux_raw_sys::general as k;
use linux_raw_sys::ioctl;

use super::{again, call, give_way, ioctl, move_high, Errno, High, Sys};

/// How a userfaultfd reports faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notify {
    /// A message to the reader of the descriptor, also for faults of the kernel. Needs rights.
    Message,
    /// A message; faults of the kernel fail with EFAULT. Needs no rights.
    UserMessage,
}

/// A fault as the descriptor reports it.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub address: usize,
    pub write: bool,
    pub protected: bool,
    /// The thread, by the kernel's number.
    pub thread: u32,
}

/// A userfaultfd.
#[derive(Debug)]
pub struct Uffd {
    fd: High,
    /// The kernel has UFFDIO_MOVE.
    pub can_move: bool,
}

/// `_IOWR(0xAA, 0x05, struct uffdio_move)`; linux-raw-sys has the structure but not the number.
const UFFDIO_MOVE: u32 = 3 << 30 | (std::mem::size_of::<k::uffdio_move>() as u32) << 16 | 0xAA << 8 | 5;
/// `include/uapi/linux/userfaultfd.h`.
const MODE_MISSING: u64 = 1;
const MODE_WP: u64 = 2;
const COPY_DONTWAKE: u64 = 1;
const COPY_WP: u64 = 2;
const MOVE_DONTWAKE: u64 = 1;
const PROTECT_ON: u64 = 1;
const PROTECT_DONTWAKE: u64 = 2;

/// Makes userfaultfds, now and in forked children. `/dev/userfaultfd` is opened once and kept. So it still works
/// after the program has dropped its rights, changed its root folder or set a filter of system calls.
#[derive(Debug)]
pub struct Source {
    device: Option<High>,
    notify: Notify,
    features: u64,
}

impl Source {
    /// Finds out how they can be opened, and what they support.
    ///
    /// # Errors
    /// The kernel's error; EPERM without rights.
    pub fn find(notify: Notify) -> Sys<Source> {
        let mut source = Source { device: Source::device().ok(), notify, features: 0 };
        source.features = Uffd::features(&source.fd()?)?;
        Ok(source)
    }

    /// Whether faults of the kernel are reported too.
    pub fn serves_kernel(&self) -> bool {
        self.notify == Notify::Message
    }

    fn device() -> Sys<High> {
        let path = c"/dev/userfaultfd".as_ptr() as usize;
        let open = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
        // SAFETY: the path is a C string; the descriptor is new and ours.
        let device = unsafe {
            let device = call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, open, 0, 0, 0])?;
            OwnedFd::from_raw_fd(device as RawFd)
        };
        Ok(move_high(device))
    }

    fn fd(&self) -> Sys<OwnedFd> {
        const USERFAULTFD_IOC_NEW: usize = 0xAA00;
        let user_only = if self.serves_kernel() { 0 } else { k::UFFD_USER_MODE_ONLY as usize };
        let flags = libc::O_CLOEXEC as usize | user_only;
        // SAFETY: no pointers; the descriptor is new and ours.
        unsafe {
            let fd = match &self.device {
                Some(device) => {
                    call(libc::SYS_ioctl, [device.as_raw_fd() as usize, USERFAULTFD_IOC_NEW, flags, 0, 0, 0])
                }
                None => call(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]),
            }?;
            Ok(OwnedFd::from_raw_fd(fd as RawFd))
        }
    }

    /// A new one, for the memory of this process.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn make(&self) -> Sys<Uffd> {
        let fd = move_high(self.fd()?);
        let wanted = u64::from(k::UFFD_FEATURE_PAGEFAULT_FLAG_WP | k::UFFD_FEATURE_THREAD_ID);
        let moves = self.features & u64::from(k::UFFD_FEATURE_MOVE);
        let mut api = k::uffdio_api { api: k::UFFD_API.into(), features: wanted | moves, ioctls: 0 };
        ioctl(&fd, ioctl::UFFDIO_API, &mut api)?;
        Ok(Uffd { fd, can_move: moves != 0 })
    }
}

impl Uffd {
    /// Opens one.
    ///
    /// # Errors
    /// The kernel's error; EPERM without rights.
    pub fn open(notify: Notify) -> Sys<Uffd> {
        Source::find(notify)?.make()
    }

    fn features(fd: &OwnedFd) -> Sys<u64> {
        let mut api = k::uffdio_api { api: k::UFFD_API.into(), features: 0, ioctls: 0 };
        ioctl(fd, ioctl::UFFDIO_API, &mut api)?;
        Ok(api.features)
    }

    /// The descriptor's number.
    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Asks for reports of touches of absent pages and of writes to protected ones.
    pub fn register(&self, range: Range<usize>) -> Sys<()> {
        crate::sys::pause::here();
        let mut register = k::uffdio_register { range: kernel_range(range), mode: MODE_MISSING | MODE_WP, ioctls: 0 };
        ioctl(&self.fd, ioctl::UFFDIO_REGISTER, &mut register)
    }

    /// Copies a page in, write-protected or not; wakes no thread.
    pub fn copy(&self, to: usize, from: usize, protected: bool) -> Sys<()> {
        crate::sys::pause::here();
        let mode = COPY_DONTWAKE | if protected { COPY_WP } else { 0 };
        let (dst, src, len) = (to as u64, from as u64, crate::PAGE as u64);
        retry(|| ioctl(&self.fd, ioctl::UFFDIO_COPY, &mut k::uffdio_copy { dst, src, len, mode, copy: 0 }))
    }

    /// Moves a page of this process to an empty place; wakes no thread. EBUSY if the frame is shared or pinned.
    pub fn move_page(&self, to: usize, from: usize) -> Sys<()> {
        crate::sys::pause::here();
        let (dst, src, len) = (to as u64, from as u64, crate::PAGE as u64);
        retry(|| ioctl(&self.fd, UFFDIO_MOVE, &mut k::uffdio_move { dst, src, len, mode: MOVE_DONTWAKE, move_: 0 }))
    }

    /// Switches write protection on or off; wakes no thread.
    pub fn protect(&self, range: Range<usize>, on: bool) -> Sys<()> {
        crate::sys::pause::here();
        let mode = if on { PROTECT_ON } else { PROTECT_DONTWAKE };
        let range = kernel_range(range);
        retry(|| ioctl(&self.fd, ioctl::UFFDIO_WRITEPROTECT, &mut k::uffdio_writeprotect { range, mode }))
    }

    /// Wakes the threads that wait for a page, if they wait in the kernel.
    pub fn wake(&self, page: usize) {
        let _ = ioctl(&self.fd, ioctl::UFFDIO_WAKE, &mut kernel_range(page..page + crate::PAGE));
    }

    /// Waits for the next fault.
    pub fn read(&self) -> Sys<Message> {
        // The message is 32 bytes: event, padding, flags (u64), address (u64), thread.
        let mut words = [0u64; 4];
        loop {
            // SAFETY: `words` takes one message.
            again(|| unsafe { call(libc::SYS_read, [self.raw() as usize, words.as_mut_ptr() as usize, 32, 0, 0, 0]) })?;
            if words[0] as u8 == k::UFFD_EVENT_PAGEFAULT as u8 {
                let flag = |bit: u32| words[1] & u64::from(bit) != 0;
                return Ok(Message {
                    address: words[2] as usize,
                    write: flag(k::UFFD_PAGEFAULT_FLAG_WRITE),
                    protected: flag(k::UFFD_PAGEFAULT_FLAG_WP),
                    thread: words[3] as u32,
                });
            }
        }
    }
}

fn kernel_range(range: Range<usize>) -> k::uffdio_range {
    k::uffdio_range { start: range.start as u64, len: range.len() as u64 }
}

/// Another thread is changing the address space just now: try again.
fn retry(mut f: impl FnMut() -> Sys<()>) -> Sys<()> {
    for _ in 0..100_000 {
        match f() {
            Err(Errno::AGAIN) => give_way(),
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}
