//! Descriptors with which the kernel can pin frames and write to them past the page table: files that are read without
//! a page cache (FUSE with `direct_io`, virtiofs, 9p, cifs, ZFS), devices (SG_IO, NVMe, V4L2, RDMA, VFIO), some
//! sockets, an io_uring. Before the program gets the first of them, the pager is told to expect pinned frames
//! (`Pager::expect_pinned_frames`); from then on it evicts no page in a pinned frame. If the kernel is too old for
//! that, the program does not get the descriptor.
//!
//! Every new descriptor is checked: those that a replaced function opens or receives, and inherited ones. A file system
//! or device that is not known to copy counts as one that does not.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::managed::memory;
use crate::managed::ranges::{failed, pass};
use crate::say::once;
use crate::symbols::next::{next, none};
use crate::sys;

/// File systems that read by way of the page cache, or copy what they make up, if the file has no O_DIRECT
/// (`include/uapi/linux/magic.h` and the file systems' own headers): ext, xfs, btrfs, f2fs, bcachefs, overlay, tmpfs,
/// ramfs, hugetlbfs, NFS, FAT, exFAT, ISO 9660, squashfs, erofs, proc, sysfs, cgroups, debugfs, tracefs, securityfs,
/// configfs, efivarfs, pidfs, mqueue.
const COPIES: [u32; 27] = [
    0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0xca451a4e, 0x794c7630, 0x01021994, 0x858458f6, 0x958458f6, 0x6969,
    0x4d44, 0x2011bab0, 0x9660, 0x73717368, 0xe0f5e1e2, 0x9fa0, 0x62656572, 0x0027e0eb, 0x63677270, 0x64626720,
    0x74726163, 0x73636673, 0x62656570, 0xde5e81e4, 0x50494446, 0x19800202, 0x6e736673,
];
/// Major numbers of devices that copy: null, zero, random and the like; terminals.
const DEVICES: [u32; 3] = [1, 4, 5];
const TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;
/// Sockets that do not: RDS, encryption by the kernel, XDP.
const SOCKETS: [c_int; 3] = [21, 38, 44];

/// `/dev/fuse` (`Documentation/admin-guide/devices.txt`); level and option for decryption (`include/uapi/linux/tls.h`).
const FUSE: libc::dev_t = libc::makedev(10, 229);
const TLS_RX: (c_int, c_int) = (282, 2);

/// The pager expects pinned frames; descriptors are not checked any more.
static ANNOUNCED: AtomicBool = AtomicBool::new(false);

/// Call this before the kernel may pin frames. Returns false if it must not.
pub fn announce(what: &str) -> bool {
    if !ANNOUNCED.load(Relaxed) && memory::ready() {
        if !memory::pager().expect_pinned_frames() {
            let why = "needs Linux 6.8, or bytes could be lost";
            once!("the program does not get {what}: that {why}");
            return false;
        }
        ANNOUNCED.store(true, Relaxed);
    }
    true
}

/// Whether the kernel may write past the page table by this descriptor.
pub fn is_direct(descriptor: c_int) -> bool {
    let Some(status) = sys::status(descriptor) else { return false };
    match status.st_mode & libc::S_IFMT {
        libc::S_IFREG => !COPIES.contains(&file_system(descriptor)),
        libc::S_IFCHR => {
            let major = libc::major(status.st_rdev);
            !DEVICES.contains(&major) && !TERMINALS.contains(&major)
        }
        libc::S_IFSOCK => SOCKETS.contains(&domain(descriptor)),
        libc::S_IFDIR | libc::S_IFIFO | libc::S_IFLNK => false,
        // A disk; and what has no name, as an io_uring.
        _ => true,
    }
}

/// No filter of system calls would end the program at fstatfs, by which this library looks at descriptors.
pub static MAY_LOOK: AtomicBool = AtomicBool::new(true);

fn file_system(descriptor: c_int) -> u32 {
    if !MAY_LOOK.load(Relaxed) {
        return 0;
    }
    // SAFETY: all bytes zero is a value of it, and the call writes it.
    unsafe {
        let mut status: libc::statfs = std::mem::zeroed();
        sys::call(libc::SYS_fstatfs, [descriptor as usize, &raw mut status as usize, 0, 0, 0, 0]);
        status.f_type as u32
    }
}

fn domain(descriptor: c_int) -> c_int {
    let (mut domain, mut len) = (0, size_of::<c_int>());
    let (option, into) = (libc::SO_DOMAIN as usize, &raw mut domain as usize);
    let arguments = [descriptor as usize, libc::SOL_SOCKET as usize, option, into, &raw mut len as usize, 0];
    // SAFETY: the kernel writes a number, and its length.
    unsafe { sys::call(libc::SYS_getsockopt, arguments) };
    domain
}

/// A new descriptor of the program's, or the result of a failed call. Returns what the program gets.
pub fn given(descriptor: c_int) -> c_int {
    if descriptor < 0 || !memory::ready() {
        return descriptor;
    }
    let error = match serves_files(descriptor) || makes_userfaultfds(descriptor) {
        true => libc::EPERM,
        false if ANNOUNCED.load(Relaxed) || !is_direct(descriptor) || announce("a file") => return descriptor,
        false => libc::EOPNOTSUPP,
    };
    // SAFETY: the program does not know the descriptor yet.
    unsafe { sys::call(libc::SYS_close, [descriptor as usize, 0, 0, 0, 0, 0]) };
    failed(error) as c_int
}

/// Whether it is `/dev/fuse`. Requests come from there to frames that the kernel holds for a moment, in a way that no
/// call shows (`iov_iter_get_pages2`).
fn serves_files(descriptor: c_int) -> bool {
    let is_fuse = sys::status(descriptor)
        .is_some_and(|status| status.st_mode & libc::S_IFMT == libc::S_IFCHR && status.st_rdev == FUSE);
    if is_fuse {
        once!("the program does not get /dev/fuse: what it reads there could be lost");
    }
    is_fuse
}

/// Whether it is `/dev/userfaultfd`: a range of memory can belong to only one userfaultfd.
fn makes_userfaultfds(descriptor: c_int) -> bool {
    const MISCELLANEOUS: u32 = 10;
    let is_one = |status: &libc::stat| {
        status.st_mode & libc::S_IFMT == libc::S_IFCHR && libc::major(status.st_rdev) == MISCELLANEOUS
    };
    let Some(status) = sys::status(descriptor).filter(is_one) else { return false };
    // SAFETY: all bytes zero is a value of it, and the call writes it.
    let device = unsafe {
        let mut device: libc::stat = std::mem::zeroed();
        let path = c"/dev/userfaultfd".as_ptr() as usize;
        sys::call(libc::SYS_newfstatat, [libc::AT_FDCWD as usize, path, &raw mut device as usize, 0, 0, 0]);
        device
    };
    let makes = is_one(&device) && device.st_rdev == status.st_rdev;
    if makes {
        once!("the program wants a userfaultfd of its own and does not get it");
    }
    makes
}

/// Decryption of TLS in the kernel is held in the same way.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn setsockopt(
    socket: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: libc::socklen_t,
) -> c_int {
    if (level, option) == TLS_RX && memory::ready() {
        return failed(libc::ENOPROTOOPT) as c_int;
    }
    let call = [socket as usize, level as usize, option as usize, value as usize, len as usize, 0];
    pass(libc::SYS_setsockopt, call) as c_int
}

/// A stream, or 0: the C library opens its file without `open`.
fn stream(file: usize) -> usize {
    // SAFETY: a stream that the C library has just opened.
    if file == 0 || given(unsafe { libc::fileno(file as *mut libc::FILE) }) >= 0 {
        return file;
    }
    // Its descriptor is closed already.
    // SAFETY: the program does not know the stream yet.
    unsafe { libc::fclose(file as *mut libc::FILE) };
    sys::set_errno(libc::EOPNOTSUPP);
    0
}

/// Functions by which the C library opens a file for the program, with at most three arguments, all of them passed
/// alike.
macro_rules! opens {
    ($($name:ident $next:ident $given:expr;)*) => { $(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(a: usize, b: usize, c: usize) -> usize {
            let given: fn(usize) -> usize = $given;
            given(next!($next, (a, b, c), none() as usize))
        }
    )* };
}

fn number(descriptor: usize) -> usize {
    given(descriptor as c_int) as usize
}

opens! {
    fopen FOPEN stream; fopen64 FOPEN stream; freopen FREOPEN stream; freopen64 FREOPEN stream;
    tmpfile TMPFILE stream; tmpfile64 TMPFILE stream;
    mkstemp MKSTEMP number; mkstemp64 MKSTEMP number; mkostemp MKOSTEMP number; mkostemp64 MKOSTEMP number;
    mkstemps MKSTEMPS number; mkstemps64 MKSTEMPS number; mkostemps MKOSTEMPS number; mkostemps64 MKOSTEMPS number;
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let call = [domain as usize, kind as usize, protocol as usize, 0, 0, 0];
    if SOCKETS.contains(&domain) && !announce("a socket of this family") {
        return failed(libc::EAFNOSUPPORT) as c_int;
    }
    pass(libc::SYS_socket, call) as c_int
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fanotify_init(flags: u32, events: u32) -> c_int {
    if !announce("files of fanotify") {
        return failed(libc::EPERM) as c_int;
    }
    pass(libc::SYS_fanotify_init, [flags as usize, events as usize, 0, 0, 0, 0]) as c_int
}
