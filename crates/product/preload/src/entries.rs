//! Entries of the C library's functions that jump to this library's. The C library's malloc gets memory from the
//! functions of these names, and does not look them up. So it stays the program's, with its settings and statistics,
//! and what it maps is managed. So are the calls of `execve` within the C library.
//!
//! The C library's `fork` locks malloc, and goes on with it in the child. So it calls this library's [`_Fork`], which
//! stops the pager after the first and starts the child's before the second.
//!
//! The code that is changed becomes this process's own copy. All of it is changed, or nothing: a kernel or a security
//! module may refuse it. The constructor does it, when there is no other thread in that code.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use coldframe_live::PAGE;

use crate::allocation::program_break::sbrk;
use crate::mappings::{advice::madvise, mapping, remap::mremap};
use crate::process::exec::{execve, execveat};
use crate::process::fork::_Fork;
use crate::symbols::libc_symbols::{place, ENTRIES_TAKEN};
use crate::sys;

/// The functions, by name; this library's has the same.
fn functions() -> [(&'static CStr, usize); 7] {
    [
        (c"mmap", mapping::mmap as *const () as usize),
        (c"munmap", mapping::munmap as *const () as usize),
        (c"mprotect", mapping::mprotect as *const () as usize),
        (c"mremap", mremap as *const () as usize),
        (c"madvise", madvise as *const () as usize),
        (c"sbrk", sbrk as *const () as usize),
        (c"execve", execve as *const () as usize),
    ]
}

/// New bytes of code, and their address.
type Patch = (usize, Vec<u8>);

/// Takes the entries, or says why not.
pub fn take() -> Result<(), &'static str> {
    const OTHER: &str = "its code is not as this library knows it";
    let forks = place(c"fork").zip(place(c"_Fork")).ok_or("it is older than version 2.34")?;
    let mut patches = calls_instead(&forks.0, forks.1.start, _Fork as *const () as usize).ok_or(OTHER)?;
    for (name, to) in functions() {
        patches.push(place(name).and_then(|place| jump(&place, to)).ok_or(OTHER)?);
    }
    // The newest of them.
    patches.extend(place(c"execveat").and_then(|place| jump(&place, execveat as *const () as usize)));
    let protect = |(address, bytes): &Patch, rights: i32| {
        let (start, end) = (address / PAGE * PAGE, (address + bytes.len()).next_multiple_of(PAGE));
        // SAFETY: the C library's code, which stays executable.
        unsafe { sys::call(libc::SYS_mprotect, [start, end - start, rights as usize, 0, 0, 0]) == 0 }
    };
    const CODE: i32 = libc::PROT_READ | libc::PROT_EXEC;
    let writable = patches.iter().all(|patch| protect(patch, CODE | libc::PROT_WRITE));
    for (address, bytes) in patches.iter().filter(|_| writable) {
        // SAFETY: within functions of the C library, which nobody else runs now, and which can be written.
        unsafe { (*address as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        fetch_anew(*address..address + bytes.len());
    }
    patches.iter().for_each(|patch| _ = protect(patch, CODE));
    ENTRIES_TAKEN.store(writable, Relaxed);
    writable.then_some(()).ok_or("this machine does not let a program change code")
}

/// The bytes of code there.
fn code(place: &Range<usize>) -> &[u8] {
    // SAFETY: a function of the C library, which stays.
    unsafe { std::slice::from_raw_parts(place.start as *const u8, place.len()) }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use super::*;

    /// At an entry that is called by address (`endbr64`).
    const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

    /// `jmp [rip]`, and the address behind it. `None`: the function is too short.
    pub fn jump(place: &Range<usize>, to: usize) -> Option<Patch> {
        let address = place.start + if code(place).starts_with(&LANDING) { LANDING.len() } else { 0 };
        let bytes = [&[0xff, 0x25, 0, 0, 0, 0], &to.to_le_bytes()[..]].concat();
        (address + bytes.len() <= place.end).then_some((address, bytes))
    }

    /// The function's calls of `target` as ones of `to`. `None`: there is none, or the way is too far.
    pub fn calls_instead(place: &Range<usize>, target: usize, to: usize) -> Option<Vec<Patch>> {
        let way = |address: usize, to: usize| i32::try_from(to.wrapping_sub(address + 5) as isize).ok();
        let call = |address: usize, to: usize| way(address, to).map(|way| [&[0xe8], &way.to_le_bytes()[..]].concat());
        let is = |(i, bytes): &(usize, &[u8])| call(place.start + i, target).is_some_and(|call| call == *bytes);
        let calls = code(place).windows(5).enumerate().filter(is).map(|(i, _)| place.start + i);
        calls
            .map(|address| Some((address, call(address, to)?)))
            .collect::<Option<Vec<_>>>()
            .filter(|calls| !calls.is_empty())
    }

    pub fn fetch_anew(_: Range<usize>) {}
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use super::*;

    /// `ldr x16, .+8; br x16`, and the address behind them. `None`: the function is too short.
    pub fn jump(place: &Range<usize>, to: usize) -> Option<Patch> {
        let bytes = [&[0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6], &to.to_le_bytes()[..]].concat();
        (bytes.len() <= place.len()).then_some((place.start, bytes))
    }

    /// The function's calls of `target` as ones of `to`. `None`: there is none, or the way is too far.
    pub fn calls_instead(place: &Range<usize>, target: usize, to: usize) -> Option<Vec<Patch>> {
        const WAY: isize = 1 << 25;
        let words = |address: usize, to: usize| to.wrapping_sub(address) as isize / 4;
        let call = |address: usize, to: usize| (0x9400_0000 | words(address, to) as u32 & 0x03ff_ffff).to_le_bytes();
        let is = |(i, bytes): &(usize, &[u8])| call(place.start + 4 * i, target) == *bytes;
        let near =
            |address: usize| (-WAY..WAY).contains(&words(address, to)).then(|| (address, call(address, to).to_vec()));
        let calls = code(place).chunks_exact(4).enumerate().filter(is).map(|(i, _)| place.start + 4 * i);
        calls.map(near).collect::<Option<Vec<_>>>().filter(|calls| !calls.is_empty())
    }

    /// The processor reads these instructions again.
    pub fn fetch_anew(code: Range<usize>) {
        for address in code.step_by(4) {
            // SAFETY: brings caches in line with memory.
            unsafe { std::arch::asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb", in(reg) address) };
        }
    }
}

use machine::{calls_instead, fetch_anew, jump};

#[cfg(test)]
mod tests {
    use super::*;

    fn function(bytes: &'static [u8]) -> Range<usize> {
        bytes.as_ptr() as usize..bytes.as_ptr() as usize + bytes.len()
    }

    #[test]
    fn a_function_that_is_shorter_than_a_jump_is_left_alone() {
        let there = function(&[0; 16]);
        let (address, bytes) = jump(&there, 0x1234_5678_9abc).unwrap();
        assert_eq!(address, there.start);
        assert!(bytes.ends_with(&0x1234_5678_9abcusize.to_le_bytes()));
        assert_eq!(jump(&(there.start..there.start + 12), 1), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_jump_is_behind_the_landing() {
        let there = function(&[0xf3, 0x0f, 0x1e, 0xfa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(jump(&there, 1).unwrap().0, there.start + 4);
        assert_eq!(jump(&(there.start..there.end - 1), 1), None);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn each_call_of_a_function_is_found_and_goes_elsewhere_if_that_is_near() {
        let there = function(&[0x90, 0xe8, 0x10, 0, 0, 0, 0xe8, 0x0b, 0, 0, 0, 0xe8, 0x10, 0, 0, 0]);
        let target = there.start + 6 + 0x10;
        let call = |way: u8| vec![0xe8, way, 0, 0, 0];
        let expected = vec![(there.start + 1, call(0x11)), (there.start + 6, call(0x0c))];
        assert_eq!(calls_instead(&there, target, target + 1), Some(expected));
        assert_eq!(calls_instead(&there, target, target + (1 << 32)), None);
        assert_eq!(calls_instead(&there, target + 1, target), None);
    }

    #[test]
    fn the_c_librarys_fork_calls_its_own_half() {
        let (Some(fork), Some(half)) = (place(c"fork"), place(c"_Fork")) else { return };
        assert!(calls_instead(&fork, half.start, fork.start).is_some());
        functions().into_iter().for_each(|(name, _)| assert!(jump(&place(name).unwrap(), 1).is_some(), "{name:?}"));
    }
}
