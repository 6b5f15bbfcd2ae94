//! The compressed form of a page: a word that it repeats, or lz4's output.

use coldframe_plan::TIER_PAGE_MAX;
use lz4_flex::block::{compress_into_with_table, decompress_into, CompressTable};

use crate::tier::packed;
use crate::PAGE;

/// Compressed size of a page that repeats one word.
const WORD: usize = size_of::<u64>();
/// Room for the output of a page that does not compress (`lz4_flex::block::get_maximum_output_size`).
pub const COMPRESSED_MAX: usize = 2 * PAGE;

/// Decompresses the output of [`compress`]. Returns false if these are not the bytes of a page.
///
/// # Safety
/// `from` must be good for `size` bytes, `into` for a page, and no other thread may write to either.
pub unsafe fn decompress(from: usize, size: u32, into: usize) -> bool {
    if size as usize == WORD {
        // SAFETY: the caller answers for it; a word has any alignment.
        let word = unsafe { (from as *const u64).read_unaligned() };
        // SAFETY: as above; a page is a multiple of words.
        unsafe { std::slice::from_raw_parts_mut(into as *mut u64, PAGE / WORD) }.fill(word);
        return true;
    }
    // SAFETY: as above.
    let (compressed, page) =
        unsafe { (std::slice::from_raw_parts(from as *const u8, size as usize), &mut *(into as *mut [u8; PAGE])) };
    decompress_into(compressed, page).is_ok_and(|size| size == PAGE)
}

/// Decompresses a page that lies in a slot with others. Returns false if the page is not there.
///
/// # Safety
/// Both must be good for a page, and nobody else may write to either.
pub unsafe fn unpack(block: usize, page: usize, into: usize) -> bool {
    // SAFETY: the caller answers for it.
    unsafe { packed::find(block, page).is_some_and(|(from, size)| decompress(from, size, into)) }
}

/// Compresses a page in place, through `compressed`, which has room for [`COMPRESSED_MAX`] bytes. Returns the compressed size;
/// `PAGE`: the page is unchanged.
///
/// # Safety
/// Both must be good for their sizes, and no other thread may use them.
pub unsafe fn compress(page: usize, compressed: usize, table: &mut CompressTable) -> u32 {
    // SAFETY: the caller answers for it.
    match unsafe { packed_size(page, compressed, table) } {
        size if size == WORD => WORD as u32,
        size if size <= TIER_PAGE_MAX => {
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(compressed as *const u8, page as *mut u8, size) };
            size as u32
        }
        _ => PAGE as u32,
    }
}

/// The compressed size of a page, up to `PAGE`; lz4's output is in `compressed`. The size of a word means a repeated word.
///
/// # Safety
/// As for [`compress`].
pub unsafe fn packed_size(page: usize, compressed: usize, table: &mut CompressTable) -> usize {
    // SAFETY: the caller answers for it; staged pages are aligned to pages.
    let words = unsafe { std::slice::from_raw_parts(page as *const u64, PAGE / WORD) };
    if words.iter().all(|word| *word == words[0]) {
        return WORD;
    }
    // SAFETY: as above.
    let (from, into) = unsafe { (&*(page as *const [u8; PAGE]), &mut *(compressed as *mut [u8; COMPRESSED_MAX])) };
    match compress_into_with_table(from, into, table) {
        Ok(size) if size > WORD => size.min(PAGE),
        _ => PAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(page: &mut [u64; PAGE / 8]) -> u32 {
        let (mut compressed, mut back, before) = ([0u64; COMPRESSED_MAX / 8], [1u64; PAGE / 8], *page);
        // SAFETY: three pages of this test.
        let size = unsafe {
            compress(page.as_mut_ptr() as usize, compressed.as_mut_ptr() as usize, &mut CompressTable::small())
        };
        if (size as usize) < PAGE {
            // SAFETY: as above.
            assert!(unsafe { decompress(page.as_ptr() as usize, size, back.as_mut_ptr() as usize) });
            assert!(back == before, "it comes back as it was");
        } else {
            assert!(*page == before, "what does not compress is left alone");
        }
        size
    }

    #[test]
    fn a_page_comes_back_as_it_was_and_one_word_is_eight_bytes() {
        assert_eq!(round(&mut [0; PAGE / 8]), 8);
        assert_eq!(round(&mut [0x1234_5678_9abc_def0; PAGE / 8]), 8);
        let mut text = [0u64; PAGE / 8];
        text.iter_mut().enumerate().for_each(|(i, word)| *word = i as u64 / 16);
        assert!((9..1000).contains(&round(&mut text)));
        let mut random = fastrand::Rng::with_seed(5);
        assert_eq!(round(&mut std::array::from_fn(|_| random.u64(..))), PAGE as u32);
    }

    #[test]
    fn spoilt_bytes_are_no_page() {
        let (spoilt, mut into) = ([0xffu8; 64], [0u64; PAGE / 8]);
        // SAFETY: memory of this test.
        assert!(!unsafe { decompress(spoilt.as_ptr() as usize, 64, into.as_mut_ptr() as usize) });
    }
}
