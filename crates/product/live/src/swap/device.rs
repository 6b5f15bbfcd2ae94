//! A file or block device that holds pages. A read or write is complete or fails. Tests can inject failures.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::{self, open_at, Errno, High, Sys};
use crate::{Inject, LiveError, PAGE};

/// How often a device may return EAGAIN, or move fewer bytes than asked for, before this counts as an error.
const PATIENCE: u32 = 64;

/// The least size that a swap file must be allowed: 16 MiB, the unit in which it grows.
const LEAST: u64 = 16 << 20;

/// A file that is opened as the pager opens its swap file, for measurements.
///
/// # Errors
/// As for a pager's `backing`.
pub fn swap_file(path: &Path) -> Result<File, LiveError> {
    Device::swap(path, None)?.fd.try_clone().map(File::from).map_err(|error| backing(path, error))
}

#[derive(Debug)]
pub struct Device {
    fd: High,
    path: PathBuf,
    pub len: Option<u64>,
    inject: Option<Injector>,
}

impl Device {
    /// A swap file in a folder, unlinked at once and readable by no other user; or a block device.
    ///
    /// # Errors
    /// The folder or device cannot be used.
    pub fn swap(path: &Path, inject: Option<Inject>) -> Result<Device, LiveError> {
        let meta = std::fs::metadata(path).map_err(|e| backing(path, e))?;
        let kind = meta.file_type();
        if kind.is_block_device() {
            let mut options = OpenOptions::new();
            options.read(true).write(true).custom_flags(libc::O_DIRECT | libc::O_EXCL);
            let file = options.open(path).map_err(|e| backing(path, e))?;
            let len = io::Seek::seek(&mut &file, io::SeekFrom::End(0)).map_err(|e| backing(path, e))?;
            return Ok(Device::new(sys::move_high(file.into()), path, Some(len), inject));
        }
        if !kind.is_dir() {
            let reason = "exists and is neither a folder nor a block device; give a folder for the swap file";
            return Err(LiveError::Backing { path: path.to_path_buf(), reason: reason.to_string() });
        }
        let file = open_folder(path).and_then(|folder| nameless(folder.as_raw_fd()));
        let file = file.map_err(|error| backing(path, error.into()))?;
        Ok(Device::new(sys::move_high(file), path, None, inject))
    }

    /// A device of the same kind and speed that measurements may write to, without injected failures: another swap
    /// file, or the same block device, which is open exclusively and cannot be opened again.
    pub fn to_measure(&self) -> Result<Device, LiveError> {
        let slow = self.inject.as_ref().map(|i| Inject { slow_us: i.inject.slow_us, ..Inject::default() });
        match self.len {
            None => Device::swap(&self.path, slow),
            Some(_) => {
                let fd = self.fd.try_clone().map_err(|error| backing(&self.path, error))?;
                Ok(Device::new(sys::move_high(fd), &self.path, self.len, slow))
            }
        }
    }

    /// From a swap file that is open already, or a block device of this length.
    pub fn new(fd: High, path: &Path, len: Option<u64>, inject: Option<Inject>) -> Device {
        let injector = |inject| Injector { inject, operations: AtomicU64::new(0) };
        Device { fd, path: path.to_path_buf(), len, inject: inject.filter(Inject::is_of_device).map(injector) }
    }

    /// In a forked child that has inherited the descriptor.
    pub fn inherit(&mut self) {
        self.fd.inherit();
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Whether reads must go through `read`, since tests change their results.
    pub fn injects(&self) -> bool {
        self.inject.is_some()
    }

    /// Reads one page.
    ///
    /// # Safety
    /// `into` must be good for a page, aligned to one.
    pub unsafe fn read(&self, into: usize, offset: u64) -> Sys<()> {
        let mut patience = PATIENCE;
        loop {
            if self.one_in(|i| i.read_late) {
                sys::sleep_us(20_000);
            }
            // SAFETY: the caller answers for the memory.
            let result = match self.chance(|inject| (inject.read_error, 0)) {
                Some(error) => Err(error),
                None => unsafe { sys::read_at(self.raw(), into, PAGE, offset) },
            };
            match result {
                Ok(n) if n >= PAGE && !self.one_in(|i| i.read_short) => {
                    self.flip(into);
                    return Ok(());
                }
                Ok(_) | Err(Errno::AGAIN) if patience > 0 => sys::give_way(),
                Ok(_) => return Err(Errno::IO),
                Err(error) => return Err(error),
            }
            patience -= 1;
        }
    }

    /// Writes whole pages.
    ///
    /// # Safety
    /// `from` must be good for `len` bytes, aligned to a page.
    pub unsafe fn write(&self, from: usize, len: usize, offset: u64) -> Sys<()> {
        let (mut done, mut patience) = (0, PATIENCE);
        while done < len {
            // SAFETY: the caller answers for the memory.
            let result = match self.chance(|inject| (inject.write_error, inject.write_full)) {
                Some(error) => Err(error),
                None => unsafe { sys::write_at(self.raw(), from + done, len - done, offset + done as u64) },
            };
            match result {
                // A direct write starts at a page: what a short one has written of the last page is written again.
                Ok(n) if n > 0 && !self.one_in(|i| i.write_short) => {
                    done += if n == len - done { n } else { n / PAGE * PAGE };
                }
                Ok(_) | Err(Errno::AGAIN) if patience > 0 => patience -= 1,
                Ok(_) => return Err(Errno::IO),
                Err(error) => {
                    swallow_signal(&error);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Reserves room on the file system, so that a later write does not find it full.
    pub fn reserve(&self, from: u64, to: u64) -> Sys<()> {
        if let Some(len) = self.len {
            return if to <= len { Ok(()) } else { Err(Errno::NOSPC) };
        }
        if self.one_in(|i| i.write_full) {
            return Err(Errno::NOSPC);
        }
        let a = [self.raw() as usize, 0, from as usize, (to - from) as usize, 0, 0];
        // SAFETY: no pointers.
        let made = match sys::again(|| unsafe { sys::call(libc::SYS_fallocate, a) }) {
            // The file system does not have this call, or a filter of system calls refuses it.
            Err(Errno::OPNOTSUPP | Errno::PERM | Errno::ACCESS | Errno::NOSYS) => {
                let a = [self.raw() as usize, to as usize, 0, 0, 0, 0];
                // SAFETY: no pointers.
                sys::again(|| unsafe { sys::call(libc::SYS_ftruncate, a) })
            }
            other => other,
        };
        made.map(drop).inspect_err(swallow_signal)
    }

    /// The largest size that it can ever have: that of a block device, or of the whole file system, including the
    /// parts that others use.
    pub fn room(&self) -> u64 {
        self.len.unwrap_or_else(|| rustix::fs::fstatfs(&*self.fd).map_or(0, |s| s.f_blocks * s.f_bsize as u64))
    }

    /// The largest size that it is allowed, if that is less than the largest size that it can have.
    pub fn limit(&self) -> Option<u64> {
        self.len.or_else(file_limit)
    }

    fn one_in(&self, field: impl Fn(&Inject) -> u32) -> bool {
        self.inject.as_ref().is_some_and(|injector| injector.one_in(field(&injector.inject)))
    }

    /// `of`: how often such an operation fails, and how often the device is full.
    fn chance(&self, of: impl Fn(&Inject) -> (u32, u32)) -> Option<Errno> {
        let inject = self.inject.as_ref()?.inject;
        if inject.slow_us > 0 {
            sys::sleep_us(inject.slow_us.into());
        }
        let (error, full) = of(&inject);
        if self.one_in(|_| inject.again) {
            return Some(Errno::AGAIN);
        }
        if self.one_in(|_| error) {
            return Some(Errno::IO);
        }
        // The file system is full, or the user's share of it.
        self.one_in(|_| full).then(|| if self.one_in(|_| 2) { Errno::DQUOT } else { Errno::NOSPC })
    }

    fn flip(&self, page: usize) {
        if self.one_in(|i| i.read_flip) {
            // SAFETY: a page that has just been read.
            unsafe { *((page + 1234) as *mut u8) ^= 0x10 };
        }
    }
}

#[derive(Debug)]
struct Injector {
    inject: Inject,
    operations: AtomicU64,
}

impl Injector {
    /// True once in `n` on average. The seed decides when (splitmix64 of the operation's number).
    fn one_in(&self, n: u32) -> bool {
        if n == 0 {
            return false;
        }
        let i = self.operations.fetch_add(1, Ordering::Relaxed);
        let mut z = self.inject.seed.wrapping_add((i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31).is_multiple_of(u64::from(n))
    }
}

/// Refuses a folder for swap files if the limit on file sizes is too low: each write beyond the limit would raise a
/// signal.
///
/// # Errors
/// The limit on file sizes is below the least size of a swap file.
pub fn refuse_small(path: &Path) -> Result<(), LiveError> {
    match file_limit().filter(|limit| *limit < LEAST && path.is_dir()) {
        None => Ok(()),
        Some(limit) => Err(LiveError::Missing {
            feature: "a swap file",
            reason: format!("this process may write files of at most {limit} bytes"),
            remedy: "allow 16 MiB or more (ulimit -f unlimited), or give a block device",
        }),
    }
}

/// Whether this process may not write files as large as the least swap file.
pub fn may_write_little() -> bool {
    file_limit().is_some_and(|limit| limit < LEAST)
}

pub fn file_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Fsize).current
}

/// Takes away the signal of a write beyond the limit on file sizes. Otherwise it would end the program when its
/// thread lets signals in again.
pub fn swallow_signal(error: &Errno) {
    if *error == Errno::FBIG {
        sys::take_signal(libc::SIGXFSZ);
    }
}

/// A new file in a folder, without a name, readable by no other user, past the page cache if the file system allows it.
pub fn nameless(folder: RawFd) -> Sys<OwnedFd> {
    let plain = libc::O_RDWR | libc::O_TMPFILE;
    match open_at(folder, c".", plain | libc::O_DIRECT, 0o600) {
        Err(Errno::INVAL) => open_at(folder, c".", plain, 0o600),
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => named_and_unlinked(folder),
        other => other,
    }
}

pub fn open_folder(path: &Path) -> Sys<OwnedFd> {
    let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| Errno::INVAL)?;
    open_at(libc::AT_FDCWD, &name, libc::O_PATH | libc::O_DIRECTORY, 0)
}

/// For file systems without O_TMPFILE.
fn named_and_unlinked(folder: RawFd) -> Sys<OwnedFd> {
    let name = CString::new(format!(".coldframe-swap-{}", std::process::id())).map_err(|_| Errno::IO)?;
    let plain = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
    let file =
        open_at(folder, &name, plain | libc::O_DIRECT, 0o600).or_else(|_| open_at(folder, &name, plain, 0o600))?;
    // SAFETY: a C string.
    unsafe { sys::call(libc::SYS_unlinkat, [folder as usize, name.as_ptr() as usize, 0, 0, 0, 0]) }?;
    Ok(file)
}

fn backing(path: &Path, error: io::Error) -> LiveError {
    let remedy = match error.raw_os_error() {
        Some(libc::ENOENT) => "; make the folder or give another one",
        Some(libc::EROFS) => "; the file system is read-only, give a folder on another one",
        Some(libc::ENOSPC) => "; the file system is full, give a folder on another one",
        Some(libc::EACCES) => "; give a folder you may write to",
        _ => "",
    };
    LiveError::Backing { path: path.to_path_buf(), reason: format!("{error}{remedy}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(4096))]
    struct Page([u8; PAGE]);

    #[test]
    fn a_swap_file_leaves_no_name_behind() {
        let folder = tempfile::tempdir().unwrap();
        let device = Device::swap(folder.path(), None).unwrap();
        let page = Page([7; PAGE]);
        // SAFETY: a page.
        unsafe { device.write(page.0.as_ptr() as usize, PAGE, 8192).unwrap() };
        let mut back = Page([0; PAGE]);
        // SAFETY: a page.
        unsafe { device.read(back.0.as_mut_ptr() as usize, 8192).unwrap() };
        assert_eq!(back.0, page.0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_folder_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let refusal = |path: &Path| Device::swap(path, None).unwrap_err().to_string();
        assert!(refusal(&path).contains("neither a folder nor a block device"));
        assert!(refusal(&folder.path().join("none")).contains("make the folder"));
    }
}
