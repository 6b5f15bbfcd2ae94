//! A FUSE file system with one file, served by threads of the test. With `direct`, the kernel reads the file straight
//! into the reader's memory, which it pins for the time of the read; `wait` makes that time long.
//!
//! The file system is its own root, mounted over a file, in a mount namespace of the calling thread: it ends with
//! that thread and with the programs that the thread starts, and the machine never sees it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coldframe_toolbox::skip;

/// Bytes of the file.
const SIZE: u64 = 1 << 30;
/// Threads that answer: that many reads can be under way.
const SERVERS: usize = 2;

/// The numbers of `include/uapi/linux/fuse.h`.
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const FORGET: u32 = 2;
const INTERRUPT: u32 = 36;
const BATCH_FORGET: u32 = 42;
const DIRECT_IO: u32 = 1;
/// Bytes of `struct fuse_in_header`.
const HEAD: usize = 40;

/// What the file holds: each word of 8 bytes is its own offset, times this.
pub const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mounts the file system over a new file at `path`. Returns false, and says why, where that is not possible.
pub fn serve(path: &Path, direct: bool, wait: Duration) -> bool {
    match mount(path) {
        Ok(device) => {
            let device = Arc::new(device);
            for _ in 0..SERVERS {
                let device = device.clone();
                std::thread::spawn(move || answer(&device, direct, wait));
            }
            true
        }
        Err(error) => {
            skip(&format!("no FUSE file system can be mounted here: {error}"));
            false
        }
    }
}

fn mount(path: &Path) -> io::Result<File> {
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse")?;
    File::create(path)?;
    let at = [path.as_os_str().as_bytes(), b"\0"].concat();
    let options = format!("fd={},rootmode=100444,user_id=0,group_id=0,allow_other\0", device.as_raw_fd());
    let done = |result: i32| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: strings that end with a zero.
    unsafe {
        done(libc::unshare(libc::CLONE_NEWNS))?;
        let private = libc::MS_REC | libc::MS_PRIVATE;
        done(libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), private, std::ptr::null()))?;
        let (name, kind) = (c"coldframe-test".as_ptr(), c"fuse".as_ptr());
        done(libc::mount(name, at.as_ptr().cast(), kind, libc::MS_NODEV | libc::MS_NOSUID, options.as_ptr().cast()))?;
    }
    Ok(device)
}

/// Answers requests until the file system is gone.
fn answer(device: &File, direct: bool, wait: Duration) {
    let mut request = vec![0; 1 << 20];
    loop {
        let len = match (&*device).read(&mut request) {
            Ok(len) => len,
            // The request was taken back in between.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::ENOENT | libc::EAGAIN)) => continue,
            Err(_) => return,
        };
        let (head, body) = request[..len].split_at(HEAD);
        let word = |bytes: &[u8], at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let reply = match word(head, 4) {
            INIT => Ok(init()),
            GETATTR => Ok(attributes()),
            OPEN => Ok(words(&[0, 0, if direct { DIRECT_IO } else { 0 }, 0])),
            READ => {
                std::thread::sleep(wait);
                let offset = u64::from_ne_bytes(body[8..16].try_into().unwrap());
                Ok(content(offset, word(body, 16) as usize))
            }
            RELEASE | FLUSH => Ok(Vec::new()),
            FORGET | BATCH_FORGET | INTERRUPT => continue,
            _ => Err(libc::ENOSYS),
        };
        let (error, data) = reply.map_or_else(|error| (-error, Vec::new()), |data| (0, data));
        let mut whole = words(&[16 + data.len() as u32, error as u32]);
        whole.extend_from_slice(&head[8..16]);
        whole.extend_from_slice(&data);
        // It fails if the reader has gone.
        let _ = (&*device).write(&whole);
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// `struct fuse_init_out`: version 7.31, no read-ahead, no flags, 128 KiB in a write, 32 pages in a request.
fn init() -> Vec<u8> {
    let mut all = [0; 16];
    (all[0], all[1], all[4], all[5], all[6], all[7]) = (7, 31, 0x0010_0010, 128 << 10, 1, 32);
    words(&all)
}

/// `struct fuse_attr_out`: a regular file that anyone may read, forgotten at once.
fn attributes() -> Vec<u8> {
    let mut all = [0; 26];
    // Inode and size, each of two words; mode, links.
    (all[4], all[6], all[19], all[20]) = (1, SIZE as u32, libc::S_IFREG | 0o444, 1);
    words(&all)
}

fn content(offset: u64, len: usize) -> Vec<u8> {
    let end = SIZE.min(offset + len as u64);
    (offset / 8..end.div_ceil(8)).flat_map(|word| (word * 8).wrapping_mul(FACTOR).to_ne_bytes()).collect()
}
