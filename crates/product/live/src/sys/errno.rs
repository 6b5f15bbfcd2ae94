//! Words for the kernel's error numbers, without the C library. The C library's function takes a lock. A thread that
//! the C library does not know (a handler, the log's writer) would leave this lock in a wrong state for the whole
//! program, and a signal handler may find the lock taken by its own thread.

use std::fmt;

struct Words(i32);

/// An error number, for people.
pub fn words(error: rustix::io::Errno) -> impl fmt::Display {
    Words(error.raw_os_error())
}

/// The messages of glibc 2.36, for the errors that the pager's system calls can return.
const WORDS: &[(i32, &str)] = &[
    (libc::EPERM, "Operation not permitted"),
    (libc::ENOENT, "No such file or directory"),
    (libc::ESRCH, "No such process"),
    (libc::EINTR, "Interrupted system call"),
    (libc::EIO, "Input/output error"),
    (libc::ENXIO, "No such device or address"),
    (libc::EBADF, "Bad file descriptor"),
    (libc::EAGAIN, "Resource temporarily unavailable"),
    (libc::ENOMEM, "Cannot allocate memory"),
    (libc::EACCES, "Permission denied"),
    (libc::EFAULT, "Bad address"),
    (libc::EBUSY, "Device or resource busy"),
    (libc::EEXIST, "File exists"),
    (libc::ENODEV, "No such device"),
    (libc::ENOTDIR, "Not a directory"),
    (libc::EISDIR, "Is a directory"),
    (libc::EINVAL, "Invalid argument"),
    (libc::ENFILE, "Too many open files in system"),
    (libc::EMFILE, "Too many open files"),
    (libc::ETXTBSY, "Text file busy"),
    (libc::EFBIG, "File too large"),
    (libc::ENOSPC, "No space left on device"),
    (libc::ESPIPE, "Illegal seek"),
    (libc::EROFS, "Read-only file system"),
    (libc::EPIPE, "Broken pipe"),
    (libc::ENOSYS, "Function not implemented"),
    (libc::ELOOP, "Too many levels of symbolic links"),
    (libc::EOPNOTSUPP, "Operation not supported"),
    (libc::ETIMEDOUT, "Connection timed out"),
    (libc::ESTALE, "Stale file handle"),
    (libc::EDQUOT, "Disk quota exceeded"),
    (libc::ECANCELED, "Operation canceled"),
    (libc::ENOKEY, "Required key not available"),
    (libc::EHWPOISON, "Memory page has hardware error"),
];

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = WORDS.iter().find(|(number, _)| *number == self.0);
        write!(f, "{} (os error {})", known.map_or("The system refused", |(_, words)| words), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_c_library() {
        for (number, _) in WORDS {
            assert_eq!(Words(*number).to_string(), std::io::Error::from_raw_os_error(*number).to_string());
        }
    }
}
