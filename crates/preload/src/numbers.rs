//! A set of descriptors, with a bit for each number. It is read and changed without locks, so that a signal handler
//! may close files.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

/// The largest set of numbers: more than a process has, unless its limit was raised above the kernel's own default
/// (`fs.nr_open`).
const NUMBERS: usize = 1 << 20;
const WORD: usize = 64;

/// A set of numbers.
pub struct Numbers {
    words: [AtomicU64; NUMBERS / WORD],
    /// All words from here on are zero.
    end: AtomicUsize,
}

impl Numbers {
    /// The empty set.
    pub const fn new() -> Numbers {
        Numbers { words: [const { AtomicU64::new(0) }; NUMBERS / WORD], end: AtomicUsize::new(0) }
    }

    /// Whether the set has a number.
    pub fn has(&self, number: i32) -> bool {
        let number = number as u32 as usize;
        number < NUMBERS && self.words[number / WORD].load(Relaxed) >> (number % WORD) & 1 != 0
    }

    /// Replaces the set by `numbers`. A number that is in both sets is never missing meanwhile.
    pub fn become_these(&self, numbers: &[i32]) {
        let word_of = |word: usize| {
            let here = numbers.iter().filter(|number| **number as u32 as usize / WORD == word);
            here.fold(0, |bits, number| bits | 1u64 << (*number as usize % WORD))
        };
        let highest = numbers.iter().map(|number| *number as u32 as usize).filter(|number| *number < NUMBERS).max();
        let end = highest.map_or(0, |number| number / WORD + 1);
        self.end.fetch_max(end, Relaxed);
        (0..self.end.load(Relaxed)).for_each(|word| self.words[word].store(word_of(word), Relaxed));
    }

    /// The first number of the set that is at least `from`.
    pub fn next(&self, from: u32) -> Option<u32> {
        let mut at = from as usize;
        while at / WORD < self.end.load(Relaxed) {
            match self.words[at / WORD].load(Relaxed) >> (at % WORD) {
                0 => at = (at / WORD + 1) * WORD,
                bits => return Some(at as u32 + bits.trailing_zeros()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_it_was_told_and_gives_it_in_order() {
        static SET: Numbers = Numbers::new();
        assert_eq!(SET.next(0), None);
        SET.become_these(&[4099, 3, 64, 1_048_575, -1]);
        let all = std::iter::successors(SET.next(0), |n| SET.next(n + 1));
        assert_eq!(all.collect::<Vec<_>>(), [3, 64, 4099, 1_048_575]);
        assert!(SET.has(64) && !SET.has(65) && !SET.has(-1) && !SET.has(i32::MAX));
        SET.become_these(&[65]);
        assert_eq!((SET.next(0), SET.next(66)), (Some(65), None));
    }
}
