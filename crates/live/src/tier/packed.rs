//! A slot with several compressed pages.
//!
//! ```text
//!   0       8                                                       PAGE
//!   | count | bytes of page 1 | of page 2 | ... ▒▒▒ ... | entry 2 | entry 1 |      an entry: page, place, size
//! ```

use coldframe_core::tier::{PACK_EACH, PACK_HEAD, PACK_MAX};
use coldframe_core::SlotId;

use crate::PAGE;

const HEAD: usize = PACK_HEAD as usize;
const EACH: usize = PACK_EACH as usize;
const _: () = assert!(EACH == size_of::<Entry>() && HEAD >= size_of::<u32>());

/// Where a page of the slot lies.
#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    page: u32,
    place: u16,
    size: u16,
}

/// The slot that is being filled, with the engine's number of it.
#[derive(Clone, Copy, Debug)]
pub struct Filling {
    pub to: SlotId,
    members: [u32; PACK_MAX],
    count: usize,
    end: usize,
}

impl Filling {
    /// A slot without pages.
    pub fn new(to: SlotId) -> Filling {
        Filling { to, members: [0; PACK_MAX], count: 0, end: HEAD }
    }

    /// Its pages.
    pub fn members(&self) -> &[u32] {
        &self.members[..self.count]
    }

    /// Puts a page's compressed bytes into the slot, whose bytes are at `block`. Returns their place there; `None`: the
    /// engine has packed too much.
    ///
    /// # Safety
    /// `block` must be good for a page that nobody else uses.
    pub unsafe fn put(&mut self, block: usize, page: usize, size: u32) -> Option<usize> {
        let place = self.end;
        let end = place + size as usize;
        if self.count == PACK_MAX || end + EACH * (self.count + 1) > PAGE {
            return None;
        }
        self.members[self.count] = page as u32;
        (self.count, self.end) = (self.count + 1, end);
        let entry = Entry { page: page as u32, place: place as u16, size: size as u16 };
        // SAFETY: within the page, by the test above; entries and count are aligned.
        unsafe {
            entry_of(block, self.count - 1).write(entry);
            (block as *mut u32).write(self.count as u32);
        }
        Some(block + place)
    }
}

/// The place of entry `i`, from 0.
fn entry_of(block: usize, i: usize) -> *mut Entry {
    (block + PAGE - EACH * (i + 1)) as *mut Entry
}

/// The page's compressed bytes in a slot: address and size. `None`: the page is not there, or these are not the bytes
/// of a slot.
///
/// # Safety
/// `block` must be good for a page that nobody writes to.
pub unsafe fn find(block: usize, page: usize) -> Option<(usize, u32)> {
    // SAFETY: the caller answers for it.
    let count = unsafe { (block as *const u32).read() } as usize;
    let room = PAGE.checked_sub(EACH * count.min(PACK_MAX + 1))?;
    let mut entries = (0..count.min(PACK_MAX)).map(|i| unsafe { entry_of(block, i).read() });
    let Entry { place, size, .. } = entries.find(|entry| entry.page as usize == page)?;
    let within = usize::from(place) >= HEAD && usize::from(place) + usize::from(size) <= room && size > 0;
    within.then_some((block + usize::from(place), u32::from(size)))
}

/// The pages of a slot that this process has filled, in the order of their entries.
///
/// # Safety
/// As for `find`.
pub unsafe fn members(block: usize) -> impl Iterator<Item = usize> {
    // SAFETY: the caller answers for it.
    let count = unsafe { (block as *const u32).read() } as usize;
    // SAFETY: as above.
    (0..count.min(PACK_MAX)).map(move |i| unsafe { entry_of(block, i).read() }.page as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_found_with_its_bytes_and_what_is_no_slot_has_none() {
        let mut block = [0u64; PAGE / 8];
        let at = block.as_mut_ptr() as usize;
        let mut filling = Filling::new(SlotId(3));
        for page in 0..5usize {
            // SAFETY: a page of this test.
            unsafe {
                let place = filling.put(at, 100 + page, 700).unwrap();
                std::ptr::write_bytes(place as *mut u8, page as u8 + 1, 700);
            }
        }
        // SAFETY: as above.
        unsafe {
            assert_eq!(filling.put(at, 200, 700), None, "8 + 6 * 708 bytes are more than a page");
            for page in 0..5usize {
                let (place, size) = find(at, 100 + page).unwrap();
                assert!(size == 700 && (0..700).all(|i| *((place + i) as *const u8) == page as u8 + 1));
            }
            assert_eq!((find(at, 99), members(at).collect::<Vec<_>>()), (None, vec![100, 101, 102, 103, 104]));
            block.fill(u64::MAX);
            assert_eq!(find(at, u32::MAX as usize), None);
        }
    }
}
