//! Pages that all threads touch. Each thread has 16 words in each page. Only that thread writes them, one after the
//! other. Each value contains the numbers of its page and its thread and its version. So a word from another page,
//! another thread or an older version is detected.
//!
//! ```text
//!   page     | 16 words of thread 0 | 16 words of thread 1 | ... 32 threads
//!   word k   the last version that is k modulo 16: version v overwrites v - 16
//! ```
//! A thread stores its last version of each page (the shadow). From it follows what each of the thread's 16 words must
//! be.

use std::sync::atomic::{AtomicU64, Ordering};

use coldframe_live::{Region, PAGE};

use crate::setting::THREADS_MAX;
use crate::wrong;

const WORDS: usize = PAGE / 8 / THREADS_MAX;

#[derive(Clone, Copy, Debug)]
pub struct Area {
    start: usize,
    pub pages: usize,
}

impl Area {
    /// The pages of a region. The region must outlive the area.
    pub fn new(region: &Region) -> Area {
        Area { start: region.as_ptr() as usize, pages: region.len() / PAGE }
    }

    pub fn address(&self, page: usize) -> usize {
        self.start + page * PAGE
    }

    fn word(&self, page: usize, thread: usize, k: usize) -> &AtomicU64 {
        let address = self.address(page) + (thread * WORDS + k) * 8;
        // SAFETY: inside the region and aligned; all access to these words is atomic.
        unsafe { AtomicU64::from_ptr(address as *mut u64) }
    }

    /// The value of a thread's word at version `v`; 0: never written.
    fn value(page: usize, thread: usize, v: u32) -> u64 {
        match v {
            0 => 0,
            v => 1 << 61 | (page as u64) << 37 | (thread as u64) << 32 | u64::from(v),
        }
    }

    /// The version that word `k` has when `last` was the last one written.
    fn version(last: u32, k: usize) -> u32 {
        // The word was last written this many versions ago.
        let ago = (last as usize + WORDS - k) % WORDS;
        last.saturating_sub(ago as u32)
    }

    pub fn check(&self, page: usize, thread: usize, last: u32, k: usize) {
        let expected = Area::value(page, thread, Area::version(last, k));
        let word = self.word(page, thread, k).load(Ordering::Relaxed);
        if word != expected {
            self.say(page, thread, last, word, expected);
        }
    }

    #[cold]
    fn say(&self, page: usize, thread: usize, last: u32, word: u64, expected: u64) -> ! {
        let again: Vec<u64> = (0..WORDS).map(|k| self.word(page, thread, k).load(Ordering::Relaxed)).collect();
        let address = self.address(page);
        wrong(format_args!(
            "page {page} ({address:#x}) thread {thread} version {last}: {word:#x} instead of {expected:#x}; its \
             words now: {again:x?}"
        ))
    }

    pub fn check_all(&self, page: usize, thread: usize, last: u32) {
        (0..WORDS).for_each(|k| self.check(page, thread, last, k));
    }

    pub fn write(&self, page: usize, thread: usize, last: &mut u32) {
        *last += 1;
        self.word(page, thread, *last as usize % WORDS).store(Area::value(page, thread, *last), Ordering::Relaxed);
    }

    /// Checks a word of another thread, which may have any version; returns the value.
    pub fn look(&self, page: usize, thread: usize, k: usize) -> u64 {
        let word = self.word(page, thread, k).load(Ordering::Relaxed);
        let v = word as u32;
        if word != Area::value(page, thread, v) || (v != 0 && v as usize % WORDS != k) {
            let again = self.word(page, thread, k).load(Ordering::Relaxed);
            wrong(format_args!("page {page}: word {k} of thread {thread} is {word:#x}, then {again:#x}"))
        }
        word
    }

    pub fn words() -> usize {
        WORDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_words_version_is_the_last_one_that_was_its_turn() {
        for last in 0..100u32 {
            for k in 0..WORDS {
                let known = (1..=last).rev().find(|v| *v as usize % WORDS == k).unwrap_or(0);
                assert_eq!(Area::version(last, k), known, "last {last} word {k}");
            }
        }
    }
}
