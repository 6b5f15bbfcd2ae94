//! userfaultfd: how to open one, and its operations.

use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use linux_raw_sys::general as k;
use linux_raw_sys::ioctl;

use super::{again, call, give_way, ioctl, move_high, open_at, Errno, High, Sys};

/// How a userfaultfd reports faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notify {
    /// A message to the reader of the descriptor, also for faults of the kernel. Needs rights.
    Message,
    /// A message; faults of the kernel fail with EFAULT. Needs no rights.
    UserMessage,
}

#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub address: usize,
    pub write: bool,
    pub protected: bool,
    pub thread: u32,
}

#[derive(Debug)]
pub struct Uffd {
    fd: High,
    pub can_move: bool,
    /// It also reports touches of absent pages whose bytes are in a memory file.
    minor: bool,
    may_poll: bool,
    polling: Polling,
}

/// How long a reader polls for the next message before it sleeps: a thread on a processor that sleeps takes longer to
/// wake than a page to bring in.
#[derive(Debug, Default)]
struct Polling {
    /// The running mean of the last waits, in nanoseconds; a long wait counts as [`LONG_NS`].
    wait: AtomicU64,
    /// When polling would have taken the share that it may take.
    free_at: AtomicU64,
}

impl Polling {
    /// The nanoseconds to poll from `now` on: twice the mean wait, if that is short.
    fn time(&self, now: u64) -> u64 {
        let time = 2 * self.wait.load(Ordering::Relaxed);
        if time <= POLL_NS && self.free_at.load(Ordering::Relaxed) <= now + SLACK_NS {
            time
        } else {
            0
        }
    }

    /// A message came `waited` nanoseconds after `began`; `polled` of them were spent on polling.
    fn note(&self, began: u64, waited: u64, polled: u64) {
        let wait = self.wait.load(Ordering::Relaxed);
        self.wait.store((wait * 7 + waited.min(LONG_NS)) / 8, Ordering::Relaxed);
        let free_at = self.free_at.load(Ordering::Relaxed).max(began);
        self.free_at.store(free_at + polled * SHARE, Ordering::Relaxed);
    }
}

/// `_IOWR(0xAA, 0x05, struct uffdio_move)`; linux-raw-sys has the structure but not the number.
const UFFDIO_MOVE: u32 = 3 << 30 | (std::mem::size_of::<k::uffdio_move>() as u32) << 16 | 0xAA << 8 | 5;
/// `include/uapi/linux/userfaultfd.h`.
const MODE_MISSING: u64 = 1;
const MODE_WP: u64 = 2;
const MODE_MINOR: u64 = 4;
const COPY_DONTWAKE: u64 = 1;
const COPY_WP: u64 = 2;
const MOVE_DONTWAKE: u64 = 1;
const CONTINUE_DONTWAKE: u64 = 1;
const CONTINUE_WP: u64 = 2;
/// The most nanoseconds that a reader polls for one message: some wakes of a virtual processor. A guess.
const POLL_NS: u64 = 100_000;
const LONG_NS: u64 = 1_000_000;
/// Polling takes at most one in this many nanoseconds of a processor, but for the first `SLACK_NS`.
const SHARE: u64 = 4;
const SLACK_NS: u64 = 10_000_000;
const PROTECT_ON: u64 = 1;
const PROTECT_DONTWAKE: u64 = 2;

/// Makes userfaultfds, now and in forked children. `/dev/userfaultfd` is opened once and kept. So it still works
/// after the program has dropped its rights, changed its root folder or set a filter of system calls.
#[derive(Debug)]
pub struct Source {
    device: Option<High>,
    notify: Notify,
    features: u64,
    /// Whether a reader may poll for messages: this process has several processors.
    pub may_poll: bool,
}

impl Source {
    /// Finds out how they can be opened, and what they support.
    ///
    /// # Errors
    /// The kernel's error; EPERM without rights.
    pub fn find(notify: Notify) -> Sys<Source> {
        let device = open_at(libc::AT_FDCWD, c"/dev/userfaultfd", libc::O_RDWR, 0).ok().map(move_high);
        let processors = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
        let source = Source { device, notify, features: 0, may_poll: processors > 1 };
        let mut api = k::uffdio_api { api: k::UFFD_API.into(), features: 0, ioctls: 0 };
        ioctl(&source.fd()?, ioctl::UFFDIO_API, &mut api)?;
        Ok(Source { features: api.features, ..source })
    }

    /// `/dev/userfaultfd`, if it can be had.
    pub fn device(&self) -> Option<&High> {
        self.device.as_ref()
    }

    /// In a forked child: its own descriptor of it.
    pub fn set_device(&mut self, device: Option<High>) {
        self.device = device;
    }

    fn fd(&self) -> Sys<OwnedFd> {
        const USERFAULTFD_IOC_NEW: usize = 0xAA00;
        let user_only = if self.notify == Notify::UserMessage { k::UFFD_USER_MODE_ONLY as usize } else { 0 };
        let flags = (libc::O_CLOEXEC | libc::O_NONBLOCK) as usize | user_only;
        // SAFETY: no pointers; the descriptor is new and ours.
        unsafe {
            let fd = match self.device.as_ref().map(|device| device.as_raw_fd() as usize) {
                Some(device) => call(libc::SYS_ioctl, [device, USERFAULTFD_IOC_NEW, flags, 0, 0, 0]),
                None => call(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]),
            };
            fd.map(|fd| OwnedFd::from_raw_fd(fd as RawFd))
        }
    }

    /// A new one, for the memory of this process; `minor`: that also watches private mappings of memory files.
    ///
    /// # Errors
    /// The kernel's error; with `minor` EINVAL, if it is older than 6.4.
    pub fn make(&self, minor: bool) -> Sys<Uffd> {
        let fd = move_high(self.fd()?);
        let wanted = u64::from(k::UFFD_FEATURE_PAGEFAULT_FLAG_WP | k::UFFD_FEATURE_THREAD_ID);
        let more = match minor {
            true => u64::from(k::UFFD_FEATURE_MINOR_SHMEM | k::UFFD_FEATURE_WP_HUGETLBFS_SHMEM),
            false => self.features & u64::from(k::UFFD_FEATURE_MOVE),
        };
        let mut api = k::uffdio_api { api: k::UFFD_API.into(), features: wanted | more, ioctls: 0 };
        ioctl(&fd, ioctl::UFFDIO_API, &mut api)?;
        let uffd = Uffd { fd, can_move: false, minor, may_poll: self.may_poll, polling: Polling::default() };
        // ENOENT: nothing is mapped there. A filter of system calls may refuse what the kernel can do.
        let can_move = !minor && more != 0 && uffd.move_page(crate::PAGE, 0) == Err(Errno::NOENT);
        Ok(Uffd { can_move, ..uffd })
    }
}

impl Uffd {
    /// Opens one, as [`Source::find`] and [`Source::make`] do.
    pub fn open(notify: Notify) -> Sys<Uffd> {
        Source::find(notify)?.make(false)
    }

    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Asks for reports of touches of absent pages and of writes to protected ones.
    pub fn register(&self, range: Range<usize>) -> Sys<()> {
        crate::sys::pause::here();
        let register = |mode: u64| {
            let range = kernel_range(range.clone());
            ioctl(&self.fd, ioctl::UFFDIO_REGISTER, &mut k::uffdio_register { range, mode, ioctls: 0 })
        };
        match self.minor.then(|| register(MODE_MISSING | MODE_WP | MODE_MINOR)) {
            // Memory without a file has no such touches.
            None | Some(Err(Errno::INVAL)) => register(MODE_MISSING | MODE_WP),
            Some(other) => other,
        }
    }

    /// Maps the page of the memory file that is at this address, write-protected; wakes no thread.
    pub fn map_file_page(&self, address: usize) -> Sys<()> {
        crate::sys::pause::here();
        let range = kernel_range(address..address + crate::PAGE);
        let mode = CONTINUE_DONTWAKE | CONTINUE_WP;
        match retry(|| ioctl(&self.fd, ioctl::UFFDIO_CONTINUE, &mut k::uffdio_continue { range, mode, mapped: 0 })) {
            Err(Errno::EXIST) => Ok(()),
            other => other,
        }
    }

    /// Copies a page in, write-protected or not; wakes no thread.
    pub fn copy(&self, to: usize, from: usize, protected: bool) -> Sys<()> {
        crate::sys::pause::here();
        let mode = COPY_DONTWAKE | if protected { COPY_WP } else { 0 };
        let (dst, src, len) = (to as u64, from as u64, crate::PAGE as u64);
        retry(|| ioctl(&self.fd, ioctl::UFFDIO_COPY, &mut k::uffdio_copy { dst, src, len, mode, copy: 0 }))
    }

    /// Copies as many bytes as a range of absent pages has, with one call if they are in one mapping of the kernel's;
    /// wakes no thread. Pages that are there stay.
    pub fn fill(&self, mut to: Range<usize>, mut from: usize) -> Sys<()> {
        crate::sys::pause::here();
        let mut most = to.len();
        while !to.is_empty() {
            let (dst, src, len) = (to.start as u64, from as u64, to.len().min(most) as u64);
            let mut ask = k::uffdio_copy { dst, src, len, mode: COPY_DONTWAKE, copy: 0 };
            let done = match ioctl(&self.fd, ioctl::UFFDIO_COPY, &mut ask) {
                Ok(()) => len as usize,
                Err(_) if ask.copy > 0 => ask.copy as usize,
                Err(Errno::EXIST) => crate::PAGE,
                Err(Errno::AGAIN) => {
                    give_way();
                    0
                }
                Err(_) if most > crate::PAGE => {
                    most = crate::PAGE;
                    0
                }
                Err(error) => return Err(error),
            };
            (to.start, from) = (to.start + done, from + done);
        }
        Ok(())
    }

    /// Moves a page of this process to an empty place; wakes no thread. EBUSY if the frame is shared or pinned.
    ///
    /// Linux from 6.18 to 7.2 moves a page for which it has to wait, as while it compacts memory, and then says EEXIST
    /// ("userfaultfd: reset err to be 0 when move_pages_ptes succeeded", August 2026).
    pub fn move_page(&self, to: usize, from: usize) -> Sys<()> {
        crate::sys::pause::here();
        let (dst, src, len) = (to as u64, from as u64, crate::PAGE as u64);
        let ask = || ioctl(&self.fd, UFFDIO_MOVE, &mut k::uffdio_move { dst, src, len, mode: MOVE_DONTWAKE, move_: 0 });
        match retry(ask) {
            Err(Errno::EXIST) if !super::is_there(from) && super::is_there(to) => Ok(()),
            other => other,
        }
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

    /// There is no message: polls for one, if the last ones came soon, then sleeps.
    fn await_message(&self, may_poll: bool) {
        let began = super::now();
        let is_readable =
            |wait: bool| super::await_events([self.raw(), -1], wait).is_ok_and(|[is_readable, _]| is_readable != 0);
        let time = if may_poll && self.may_poll { self.polling.time(began) } else { 0 };
        let mut polled = 0;
        while polled < time && !is_readable(false) {
            polled = super::now() - began;
        }
        is_readable(true);
        self.polling.note(began, super::now() - began, polled);
    }

    /// The next message. `may_poll`: where a thread would wake late from sleep.
    pub fn read(&self, may_poll: bool) -> Sys<Message> {
        // The message is 32 bytes: event, padding, flags (u64), address (u64), thread.
        let mut words = [0u64; 4];
        loop {
            let a = [self.raw() as usize, words.as_mut_ptr() as usize, 32, 0, 0, 0];
            // SAFETY: `words` takes one message.
            let got = again(|| unsafe { call(libc::SYS_read, a) });
            if got == Err(Errno::AGAIN) {
                self.await_message(may_poll);
                continue;
            }
            got?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_polls_while_waits_are_short_and_takes_its_share_of_a_processor() {
        let (polling, mut now, mut polled) = (Polling::default(), 0, 0);
        for _ in 0..10_000 {
            let time = polling.time(now).min(20_000);
            polling.note(now, 20_000, time);
            (now, polled) = (now + 25_000, polled + time);
        }
        let share = now / SHARE;
        assert!(polled > share / 2 && polled <= share + SLACK_NS, "{polled} of {now}");
        (0..32).for_each(|_| polling.note(now, LONG_NS, 0));
        assert_eq!(polling.time(2 * now), 0, "a message is far");
    }
}
