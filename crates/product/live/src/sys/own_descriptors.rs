//! The numbers of all descriptors of the pager in this process, a bit for each. The program does not close them, nor
//! puts another file in their place. The set is read and changed without locks, so that a signal handler may close
//! files.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

use super::pids;

/// The largest set of numbers: more than a process has, unless its limit was raised above the kernel's own default
/// (`fs.nr_open`).
const NUMBERS: usize = 1 << 20;
const WORD: usize = 64;

static WORDS: [AtomicU64; NUMBERS / WORD] = [const { AtomicU64::new(0) }; NUMBERS / WORD];
/// All words from here on are zero.
static END: AtomicUsize = AtomicUsize::new(0);

/// The word of a number, and its bit there.
fn place(number: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let number = number as u32 as usize;
    let word = WORDS.get(number / WORD)?;
    Some((word, 1 << (number % WORD)))
}

/// Adds a descriptor of the pager. Those of a pager process are not in the set.
pub fn add(number: RawFd) {
    if let Some((word, bit)) = place(number).filter(|_| !pids::is_pager()) {
        END.fetch_max(number as usize / WORD + 1, Relaxed);
        word.fetch_or(bit, Relaxed);
    }
}

pub(crate) fn remove(number: RawFd) {
    if let Some((word, bit)) = place(number).filter(|_| !pids::is_pager()) {
        word.fetch_and(!bit, Relaxed);
    }
}

/// Closes all of them here but those that are `kept`: a pager process has copies, or they are a parent's.
pub(crate) fn leave(kept: impl Fn(RawFd) -> bool) {
    for number in all().filter(|number| !kept(*number)) {
        // SAFETY: the pager's own, which this process does not use any more.
        let _ = unsafe { super::call(libc::SYS_close, [number as usize, 0, 0, 0, 0, 0]) };
        remove(number);
    }
}

/// Whether the pager has this descriptor.
pub fn has(number: RawFd) -> bool {
    place(number).is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0)
}

/// The first of its descriptors that is at least `from`.
pub fn next(from: u32) -> Option<u32> {
    let mut at = from as usize;
    while at / WORD < END.load(Relaxed) {
        match WORDS[at / WORD].load(Relaxed) >> (at % WORD) {
            0 => at = (at / WORD + 1) * WORD,
            bits => return Some(at as u32 + bits.trailing_zeros()),
        }
    }
    None
}

/// All of them, the lowest first.
pub fn all() -> impl Iterator<Item = RawFd> {
    std::iter::successors(next(0), |number| next(number + 1)).map(|number| number as RawFd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_it_was_told_and_gives_it_in_order() {
        // Above all numbers of the pagers of other tests.
        let (first, all_of) = (1_000_000, |first: i32| all().filter(|number| *number >= first).collect::<Vec<_>>());
        [1_048_575, first, first + 64, -1, 1 << 20].into_iter().for_each(add);
        assert_eq!(all_of(first), [first, first + 64, 1_048_575]);
        assert!(has(first) && !has(first + 1) && !has(-1) && !has(i32::MAX));
        [first, 1_048_575].into_iter().for_each(remove);
        assert_eq!((all_of(first), next(1_000_065)), (vec![first + 64], None));
        remove(first + 64);
    }
}
