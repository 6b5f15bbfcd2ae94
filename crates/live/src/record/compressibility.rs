//! Measures how well a program's pages compress. Of the pages that leave a recorder's window, one in [`EVERY`] is
//! compressed and decompressed, on a copy.
//!
//! A page that takes at most [`COMPRESSIBLE_MAX`] bytes counts as compressible. The time includes both directions and
//! the hashes, for each tried page.
//!
//! So pages that leave often are tried often. What swap holds is mostly pages that do not, so an equal sample of all
//! pages is compressed, too: in each of [`SLOTS`] classes, the page with the least hash of those that have left. It is
//! compressed again whenever it leaves with other bytes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use coldframe_recording::entries::{hash, Word};
use lz4_flex::block::{compress_into_with_table, decompress_into, CompressTable};

use crate::swap::sum::Summer;
use crate::sys::lock::Lock;
use crate::{sys, LiveError, PAGE};

/// One page in this many is tried. A try takes about as long as two entries, so entries become only slightly more
/// expensive.
const EVERY: u64 = 32;
/// Pages of the equal sample: the mean size of that many has a standard error of about 1.5 % of a page.
const SLOTS: u32 = 512;

/// The largest compressed page that counts as compressible: three quarters of a page. zram stores a page that takes
/// more as it is, or nearly so.
const COMPRESSIBLE_MAX: usize = PAGE / 4 * 3;

const WORD: usize = size_of::<u64>();
const WORDS: usize = PAGE / WORD;
/// Room for the output of a page that does not compress (`lz4_flex::block::get_maximum_output_size`).
const COMPRESSED_MAX: usize = 2 * PAGE;
type Compressed = [u8; COMPRESSED_MAX];

pub(crate) struct Trial {
    left: AtomicU64,
    room: Lock<Room>,
}

struct Room {
    page: Box<[u64; WORDS]>,
    back: Box<[u64; WORDS]>,
    compressed: Box<Compressed>,
    table: CompressTable,
    /// Hash of a page and its compressed size; 0: none yet.
    alike: Box<[(u32, u32)]>,
}

impl Trial {
    pub(crate) fn new() -> Trial {
        let page = || Box::new([0u64; WORDS]);
        let compressed = Box::new([0; COMPRESSED_MAX]);
        let alike = vec![(u32::MAX, 0); SLOTS as usize].into();
        let room = Room { page: page(), back: page(), compressed, table: CompressTable::small(), alike };
        Trial { left: AtomicU64::new(0), room: Lock::new(room) }
    }

    /// A page leaves the window. Its bytes are at `from`, and no thread writes to them. `sum` hashes a page. Counts
    /// the result.
    pub(crate) fn leaves(&self, from: usize, sum: impl Fn(usize), add: impl Fn(Word, u64)) {
        if !self.left.fetch_add(1, Relaxed).is_multiple_of(EVERY) {
            return;
        }
        let mut room = self.room.lock();
        let Room { page, back, compressed, table, .. } = &mut *room;
        // SAFETY: the page is the caller's.
        **page = unsafe { *(from as *const [u64; WORDS]) };
        let began = sys::now();
        sum(page.as_ptr() as usize);
        let size = compressed_size(page, compressed, table);
        let compressible = size <= COMPRESSIBLE_MAX;
        if compressible {
            match size {
                WORD => back.fill(page[0]),
                // SAFETY: plain bytes.
                _ => _ = decompress_into(&compressed[..size], unsafe { &mut *back.as_mut_ptr().cast::<[u8; PAGE]>() }),
            }
            sum(back.as_ptr() as usize);
        }
        add(Word::PackNanos, sys::now() - began);
        add(Word::Tried, 1);
        add(Word::Compressible, u64::from(compressible));
        add(Word::CompressibleBytes, if compressible { size as u64 } else { 0 });
    }

    /// A page leaves the window with new bytes, which are at `from` and change no more.
    pub(crate) fn changed(&self, page: u32, from: usize, add: impl Fn(Word, u64)) {
        let mut room = self.room.lock();
        let Room { compressed, table, alike, .. } = &mut *room;
        let (hash, slot) = (hash(page), &mut alike[(hash(page) % SLOTS) as usize]);
        if hash > slot.0 {
            return;
        }
        // SAFETY: the page is the caller's.
        let size = compressed_size(unsafe { &*(from as *const [u64; WORDS]) }, compressed, table) as u32;
        add(Word::Alike, u64::from(slot.1 == 0));
        add(Word::AlikeBytes, u64::from(size).wrapping_sub(slot.1.into()));
        *slot = (hash, size);
    }
}

/// The compressed size of a page, up to `PAGE`; lz4's output is in `compressed`. The size of a word means a repeated
/// word.
fn compressed_size(page: &[u64; WORDS], compressed: &mut Compressed, table: &mut CompressTable) -> usize {
    if page.iter().all(|word| *word == page[0]) {
        return WORD;
    }
    // SAFETY: plain bytes.
    let bytes = unsafe { &*page.as_ptr().cast::<[u8; PAGE]>() };
    match compress_into_with_table(bytes, compressed, table) {
        Ok(size) if size > WORD => size.min(PAGE),
        _ => PAGE,
    }
}

/// The time that a trial of a page takes, in nanoseconds: what a recording says for a program's pages, for this one.
///
/// # Errors
/// There is no randomness for the hash's key.
pub fn trial_ns(page: &[u64; WORDS]) -> Result<u64, LiveError> {
    let (trial, summer, nanos) = (Trial::new(), Summer::new(false)?, AtomicU64::new(0));
    // SAFETY: a page of the caller's, or the trial's copy of it.
    let sum = |page| _ = std::hint::black_box(summer.of(unsafe { &*(page as *const [u8; PAGE]) }));
    let add = |word, n| _ = (word == Word::PackNanos).then(|| nanos.store(n, Relaxed));
    trial.leaves(page.as_ptr() as usize, sum, add);
    Ok(nanos.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::HashMap;

    #[test]
    fn one_page_of_thirty_two_is_tried_and_those_that_compress_are_counted() {
        let mut random = fastrand::Rng::with_seed(3);
        let noise: [u64; WORDS] = std::array::from_fn(|_| random.u64(..));
        let half: [u64; WORDS] = std::array::from_fn(|i| if i < WORDS / 4 { random.u64(..) } else { 7 });
        for (page, compressible) in [(noise, 0), (half, 3), ([9; WORDS], 3)] {
            let (trial, counts) = (Trial::new(), RefCell::new(HashMap::new()));
            let add = |word: Word, n| *counts.borrow_mut().entry(word as usize).or_insert(0) += n;
            (0..2 * EVERY + 1).for_each(|_| trial.leaves(page.as_ptr() as usize, |_| (), add));
            let of = |word: Word| counts.borrow()[&(word as usize)];
            assert_eq!((of(Word::Tried), of(Word::Compressible)), (3, compressible));
            assert!(
                of(Word::CompressibleBytes) <= compressible * PAGE as u64 / 2
                    && (compressible == 0 || of(Word::CompressibleBytes) >= compressible * 8)
            );
        }
    }

    #[test]
    fn each_page_of_the_equal_sample_counts_once_with_its_last_bytes() {
        let mut random = fastrand::Rng::with_seed(3);
        let noise: [u64; WORDS] = std::array::from_fn(|_| random.u64(..));
        let (trial, same, words) = (Trial::new(), [9u64; WORDS], [const { AtomicU64::new(0) }; 2]);
        let add = |word, n| _ = words[usize::from(word as usize == Word::AlikeBytes as usize)].fetch_add(n, Relaxed);
        for _ in 0..20 {
            (0..4).for_each(|page| trial.changed(page, noise.as_ptr() as usize, add));
        }
        assert_eq!(words.each_ref().map(|word| word.load(Relaxed)), [4, 4 * PAGE as u64]);
        (1..4).for_each(|page| trial.changed(page, same.as_ptr() as usize, add));
        assert_eq!(words.each_ref().map(|word| word.load(Relaxed)), [4, PAGE as u64 + 24]);
        (0..100 * SLOTS).for_each(|page| trial.changed(page, same.as_ptr() as usize, add));
        assert_eq!(words[0].load(Relaxed), u64::from(SLOTS));
    }
}
