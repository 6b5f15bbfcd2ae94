//! The compressed form of a page: a word that it repeats, or lz4's or zstd's output behind a byte that tells which.

pub use coldframe_pager_plan::TIER_PAGE_MAX as SIZE_MAX;
use lz4_flex::block::{compress_into_with_table, decompress_into, CompressTable};

use crate::{dense, packed, PAGE};

/// Compressed size of a page that repeats one word.
const WORD: usize = size_of::<u64>();
/// The first byte of a compressed page, unless it repeats one word.
const LZ4: u8 = 0;
const ZSTD: u8 = 1;
/// Room for the output of a page that does not compress (`lz4_flex::block::get_maximum_output_size`).
pub const PACKED: usize = 2 * PAGE;

/// Decompresses the output of [`pack`]. Returns false if these are not the bytes of a page.
///
/// # Safety
/// `from` must be good for `size` bytes, `into` for a page, and no other thread may write to either.
pub unsafe fn unpack(from: usize, size: u32, into: usize) -> bool {
    if size as usize == WORD {
        // SAFETY: the caller answers for it; a word has any alignment.
        let word = unsafe { (from as *const u64).read_unaligned() };
        // SAFETY: as above; a page is a multiple of words.
        unsafe { std::slice::from_raw_parts_mut(into as *mut u64, PAGE / WORD) }.fill(word);
        return true;
    }
    // SAFETY: as above.
    let (packed, page) =
        unsafe { (std::slice::from_raw_parts(from as *const u8, size as usize), &mut *(into as *mut [u8; PAGE])) };
    match packed.split_first() {
        Some((&LZ4, packed)) => decompress_into(packed, page).is_ok_and(|size| size == PAGE),
        // SAFETY: as above.
        Some((&ZSTD, packed)) => unsafe { dense::decompress(packed.as_ptr() as usize, packed.len(), into) },
        _ => false,
    }
}

/// Compresses a page of the pool, whose bytes are at `from`, a second time, in place. Returns its size then: the old one
/// if it did not become smaller. `None`: these are not the bytes of a page.
///
/// # Safety
/// `from` must be good for [`SIZE_MAX`] bytes, `scratch` for a page, `packed` for [`PACKED`] bytes, and no other thread
/// may use them.
pub unsafe fn repack(from: usize, size: u32, scratch: usize, packed: usize) -> Option<u32> {
    // SAFETY: the caller answers for it.
    unsafe {
        if *(from as *const u8) == ZSTD {
            return Some(size);
        }
        if !unpack(from, size, scratch) {
            return None;
        }
        let smaller = dense::compress(scratch, packed, PACKED).filter(|new| new + 1 < size as usize && new + 1 > WORD);
        let Some(new) = smaller else { return Some(size) };
        *(from as *mut u8) = ZSTD;
        std::ptr::copy_nonoverlapping(packed as *const u8, (from + 1) as *mut u8, new);
        Some(new as u32 + 1)
    }
}

/// Decompresses a page that lies in a slot with others. Returns false if the page is not there.
///
/// # Safety
/// Both must be good for a page, and nobody else may write to either.
pub unsafe fn unfold(block: usize, page: usize, into: usize) -> bool {
    // SAFETY: the caller answers for it.
    unsafe { packed::find(block, page).is_some_and(|(from, size)| unpack(from, size, into)) }
}

/// Compresses a page in place, through `packed`, which has room for [`PACKED`] bytes. Returns the compressed size;
/// `PAGE`: the page is unchanged.
///
/// # Safety
/// Both must be good for their sizes, and no other thread may use them.
pub unsafe fn pack(page: usize, packed: usize, table: &mut CompressTable) -> u32 {
    // SAFETY: the caller answers for it; staged pages are aligned to pages.
    let words = unsafe { std::slice::from_raw_parts(page as *const u64, PAGE / WORD) };
    if words.iter().all(|word| *word == words[0]) {
        return WORD as u32;
    }
    // SAFETY: as above.
    let (from, into) = unsafe { (&mut *(page as *mut [u8; PAGE]), &mut *(packed as *mut [u8; PACKED])) };
    match compress_into_with_table(from, into, table).map(|size| size + 1) {
        // The size of a word means a repeated word.
        Ok(size) if size <= SIZE_MAX && size > WORD => {
            from[0] = LZ4;
            from[1..size].copy_from_slice(&into[..size - 1]);
            size as u32
        }
        _ => PAGE as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(page: &mut [u64; PAGE / 8]) -> u32 {
        let (mut packed, mut back, before) = ([0u64; PACKED / 8], [1u64; PAGE / 8], *page);
        // SAFETY: three pages of this test.
        let size =
            unsafe { pack(page.as_mut_ptr() as usize, packed.as_mut_ptr() as usize, &mut CompressTable::small()) };
        if (size as usize) < PAGE {
            // SAFETY: as above.
            assert!(unsafe { unpack(page.as_ptr() as usize, size, back.as_mut_ptr() as usize) });
            assert!(back == before, "it comes back as it was");
            repacked(page, size, before);
        } else {
            assert!(*page == before, "what does not compress is left alone");
        }
        size
    }

    /// The second compressor's page is not larger, and is the same.
    fn repacked(page: &mut [u64; PAGE / 8], size: u32, before: [u64; PAGE / 8]) {
        if size as usize == WORD {
            return;
        }
        dense::prepare().unwrap();
        let (mut scratch, mut packed, at) = ([0u64; PAGE / 8], [0u64; PACKED / 8], page.as_mut_ptr() as usize);
        let (scratch, packed) = (scratch.as_mut_ptr(), packed.as_mut_ptr() as usize);
        // SAFETY: memory of this test.
        unsafe {
            let new = repack(at, size, scratch as usize, packed).unwrap();
            assert!(new <= size && repack(at, new, scratch as usize, packed) == Some(new));
            scratch.write_bytes(1, PAGE / 8);
            assert!(unpack(at, new, scratch as usize) && *scratch.cast::<[u64; PAGE / 8]>() == before);
        }
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
        assert!(!unsafe { unpack(spoilt.as_ptr() as usize, 64, into.as_mut_ptr() as usize) });
    }
}
