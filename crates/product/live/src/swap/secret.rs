//! Memory for data that must not leave RAM: keys, and the bytes of pages before encryption.
//!
//! It is excluded from core dumps and locked, so that the kernel does not write it to its own swap. A key is
//! overwritten when it is dropped. The program's other pages are not protected from core dumps and the kernel's swap.

use std::ops::{Deref, Range};

use zeroize::Zeroize;

use crate::sys::{self, Errno, Sys};
use crate::{LiveError, PAGE};

/// Bytes of a thread's stack that may hold copies of a key after its use.
const STAINED: usize = 2048;

#[derive(Debug)]
pub struct Secret<T: Zeroize>(*mut T);

// SAFETY: it owns its page.
unsafe impl<T: Zeroize + Send> Send for Secret<T> {}
// SAFETY: it is only read.
unsafe impl<T: Zeroize + Sync> Sync for Secret<T> {}

impl<const N: usize> Secret<[u8; N]> {
    /// Random bytes. If they `must` be locked in RAM, this may fail.
    pub fn random(must: bool) -> Result<Secret<[u8; N]>, LiveError> {
        let page = sys::map_memory(PAGE).map_err(|e| LiveError::os("memory for a key", e))?;
        let secret = Secret(page as *mut [u8; N]);
        match lock(page..page + PAGE) {
            Err(error) if must => return Err(refused(error)),
            _ => {}
        }
        // SAFETY: our own new page.
        let bytes = unsafe { &mut *secret.0 };
        getrandom::fill(bytes).map_err(|e| LiveError::os("a random key", std::io::Error::other(e)))?;
        Ok(secret)
    }

    #[cfg(test)]
    pub fn address(&self) -> usize {
        self.0 as usize
    }

    /// In a forked child, which has inherited the page, but not its lock.
    pub fn lock_again(&self) -> Sys<()> {
        lock(self.0 as usize..self.0 as usize + PAGE)
    }
}

impl<T: Zeroize> Deref for Secret<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: filled when it was made, and never changed.
        unsafe { &*self.0 }
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        // SAFETY: no other thread has it.
        unsafe {
            (*self.0).zeroize();
            sys::unmap_memory(self.0 as usize, PAGE);
        }
    }
}

fn refused(error: Errno) -> LiveError {
    LiveError::Missing {
        feature: "a key that stays in RAM",
        reason: format!("mlock: {}", sys::words(error)),
        remedy: "allow at least one page to be locked (ulimit -l 64), or leave encryption off",
    }
}

/// Keeps a range out of core dumps and, from the first touch on, out of the kernel's swap.
///
/// # Errors
/// The range is not locked, usually because of RLIMIT_MEMLOCK. It is left out of core dumps all the same.
pub fn lock(range: Range<usize>) -> Sys<()> {
    const ONFAULT: usize = 1;
    // SAFETY: changes no content.
    unsafe {
        sys::advise(range.clone(), libc::MADV_DONTDUMP)?;
        sys::call(libc::SYS_mlock2, [range.start, range.len(), ONFAULT, 0, 0, 0]).map(drop)
    }
}

/// Overwrites the part of the stack below the caller, where called functions may have left a key.
#[inline(never)]
pub fn scrub_stack() {
    let mut stained = std::mem::MaybeUninit::<[u8; STAINED]>::uninit();
    for i in 0..STAINED / 8 {
        // SAFETY: within the array; a volatile write is not removed although the value is never read.
        unsafe { stained.as_mut_ptr().cast::<u64>().add(i).write_volatile(0) };
    }
    std::hint::black_box(&mut stained);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::page::pages::Where;
    use crate::{Options, Pager};

    /// The flags of the mapping that has an address: `man 5 proc_pid_smaps`.
    fn flags(address: usize) -> String {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in smaps.lines() {
            let range = line.split(' ').next().unwrap().split_once('-');
            let number = |text: &str| usize::from_str_radix(text, 16).ok();
            if let Some((Some(start), Some(end))) = range.map(|(a, b)| (number(a), number(b))) {
                inside = (start..end).contains(&address);
            } else if let (true, Some(flags)) = (inside, line.strip_prefix("VmFlags:")) {
                return flags.to_string();
            }
        }
        panic!("no mapping has {address:#x}");
    }

    #[test]
    fn a_key_is_locked_and_in_no_core() {
        let key = Secret::<[u8; 32]>::random(true).unwrap();
        assert_ne!(*key, [0; 32]);
        let flags = flags(key.0 as usize);
        assert!(flags.contains(" dd") && flags.contains(" lo"), "{flags}");
    }

    fn encrypting() -> Pager {
        let backing_max = Some(64 << 20);
        let options = Options { max_memory: 8 << 20, encrypt: true, backing_max, ..Options::new(1 << 18) };
        Pager::start(options).unwrap()
    }

    #[test]
    fn memory_in_which_pages_lie_before_they_are_encrypted_is_in_no_core() {
        let pager = encrypting();
        for range in pager.inner().managed.work.plaintext() {
            let flags = flags(range.start);
            assert!(flags.contains(" dd"), "{range:x?}: {flags}");
            assert!(flags.contains(" lo") || !pager.inner().keep_plaintext(), "{range:x?}: {flags}");
        }
    }

    /// The word that only this page has, at each of its places.
    fn marker(page: usize) -> u64 {
        (page as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5bd1_e995_1b87_3593
    }

    const PAGES: usize = 1024;

    /// In a process of its own: writes more pages than RAM holds. Reports which pages are out of RAM, and the keys
    /// from their place in memory.
    fn keep_secrets(to: i32) -> ! {
        let pager = encrypting();
        let region = pager.anonymous(PAGES * PAGE).unwrap();
        for page in 0..PAGES {
            for i in 0..PAGE / 8 {
                // SAFETY: inside the region, aligned.
                unsafe { region.as_ptr().add(page * PAGE).cast::<u64>().add(i).write_volatile(marker(page)) };
            }
        }
        let first = (region.as_ptr() as usize - pager.span().start) / PAGE;
        let out = |page: usize| u8::from(pager.inner().managed.memory().pages.get(first + page) == Where::Out);
        let out: Vec<u8> = (0..PAGES).map(out).collect();
        // SAFETY: both have this many bytes; the process is killed by its parent.
        unsafe {
            assert_eq!(libc::write(to, out.as_ptr().cast(), PAGES), PAGES as isize);
            for key in pager.inner().managed.work.log().keys() {
                assert_eq!(libc::write(to, key as *const libc::c_void, 32), 32);
            }
            libc::close(to);
            loop {
                libc::pause();
            }
        }
    }

    #[test]
    fn a_core_of_the_process_has_neither_keys_nor_what_has_left_ram() {
        if std::process::Command::new("gcore").output().is_err() {
            println!("there is no gcore; the test is left out");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut ends = [0; 2];
        // SAFETY: plain use of pipe, fork, kill and waitpid.
        let (pid, core_file) = unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            let pid = libc::fork();
            if pid == 0 {
                libc::close(ends[0]);
                keep_secrets(ends[1]);
            }
            libc::close(ends[1]);
            let mut core_file = Vec::new();
            let mut file = <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(ends[0]);
            std::io::Read::read_to_end(&mut file, &mut core_file).unwrap();
            (pid, core_file)
        };
        let output =
            std::process::Command::new("gcore").arg("-o").arg(folder.path().join("core")).arg(pid.to_string()).output();
        // SAFETY: the process is this one's child.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
        let output = output.unwrap();
        let core = std::fs::read(folder.path().join(format!("core.{pid}")));
        let core = core.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(core_file.len(), PAGES + 64, "a key of the hash and one of the cipher");
        for key in core_file[PAGES..].chunks(32) {
            assert!(core.windows(32).step_by(4).all(|bytes| bytes != key), "a key is in the core");
            assert!(core.windows(16).step_by(4).all(|bytes| bytes != &key[..16]), "half of a key is in the core");
        }
        let out: HashSet<u64> = (0..PAGES).filter(|page| core_file[*page] == 1).map(marker).collect();
        assert!(out.len() > PAGES / 2);
        let word = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        let words = core.chunks_exact(8).filter(|bytes| out.contains(&word(bytes))).count();
        assert_eq!(words, 0, "words of pages that have left RAM");
    }
}
