//! Which address is which page: the program's image first, then the data region, which starts a megabyte above it.

use coldframe_core::PageId;

use crate::mmu::PAGED;

/// Where the data region starts.
const DATA: u32 = PAGED + (1 << 20);

/// The paged space.
#[derive(Clone, Copy)]
pub struct Space {
    page: u32,
    image: u32,
    data: u32,
}

impl Space {
    /// For an image and a data region of these sizes in bytes.
    ///
    /// # Panics
    /// If one of them is larger than a megabyte.
    pub fn new(page: u32, image: u32, data: u32) -> Space {
        for (name, bytes) in [("image", image), ("data", data)] {
            assert!(bytes <= 1 << 20, "{name}={bytes}; give at most {}", 1 << 20);
        }
        Space { page, image: image.div_ceil(page), data: data.div_ceil(page) }
    }

    /// Pages in all.
    pub fn pages(&self) -> u32 {
        self.image + self.data
    }

    /// Pages of the image, the first ones.
    pub fn image_pages(&self) -> u32 {
        self.image
    }

    /// Whether the program may write to the page.
    pub fn is_data(&self, page: PageId) -> bool {
        page.0 >= self.image
    }

    /// Where the page starts.
    pub fn address(&self, page: PageId) -> u32 {
        match page.0.checked_sub(self.image) {
            None => PAGED + page.0 * self.page,
            Some(data) => DATA + data * self.page,
        }
    }

    /// The page at an address.
    pub fn page_at(&self, address: u32) -> Option<PageId> {
        match address.checked_sub(DATA) {
            None => Some(address.checked_sub(PAGED)? / self.page).filter(|page| *page < self.image),
            Some(offset) => Some(offset / self.page).filter(|page| *page < self.data).map(|page| page + self.image),
        }
        .map(PageId)
    }
}
