//! Which address is which page.
//!
//! ```text
//! pages      images, one task's after the other's │ data regions, alike
//! addresses  each task's image at the start of its two megabytes, its data region a megabyte above it
//! ```

use coldframe_core::PageId;

use crate::mmu::{MEGABYTE, PAGED, TASKS, TASK_MEGABYTES};

/// An image and a data region for each task.
const REGIONS: usize = 2 * TASKS as usize;

/// Whose a region is, its address, its first page and its number of pages.
#[derive(Clone, Copy, Default)]
struct Region {
    task: u32,
    start: u32,
    first: u32,
    pages: u32,
}

/// The paged space of all tasks.
pub struct Space {
    page: u32,
    image: u32,
    /// In the order of pages: images, then data.
    regions: [Region; REGIONS],
}

impl Space {
    /// For images of these sizes in bytes, one for each task, and a data region of that size for each.
    ///
    /// # Panics
    /// If one of them is larger than a megabyte, if there are too many, or if an image before the last does not end
    /// with a page: the next starts there in the chip.
    pub fn new(page: u32, images: &[u32], data: u32) -> Space {
        assert!((1..=TASKS as usize).contains(&images.len()), "{} images; give 1 to {TASKS}", images.len());
        assert!(images[..images.len() - 1].iter().all(|bytes| bytes % page == 0), "an image ends within a page");
        let mut regions = [Region::default(); REGIONS];
        let (mut first, mut number) = (0, 0);
        for (name, above) in [("image", 0), ("data", MEGABYTE)] {
            for (task, image) in images.iter().enumerate() {
                let bytes = if above == 0 { *image } else { data };
                assert!(bytes <= MEGABYTE, "{name}={bytes}; give at most {MEGABYTE}");
                let start = PAGED + task as u32 * TASK_MEGABYTES * MEGABYTE + above;
                let task = task as u32;
                regions[number] = Region { task, start, first, pages: bytes.div_ceil(page) };
                first += regions[number].pages;
                number += 1;
            }
        }
        let image = regions[images.len()].first;
        Space { page, image, regions }
    }

    /// Pages in all.
    pub fn pages(&self) -> u32 {
        self.regions.iter().map(|region| region.pages).sum()
    }

    /// Pages of the images, the first ones.
    pub fn image_pages(&self) -> u32 {
        self.image
    }

    /// Whether the program may write to the page.
    pub fn is_data(&self, page: PageId) -> bool {
        page.0 >= self.image
    }

    /// Where the page starts.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn address(&self, page: PageId) -> u32 {
        let is_in = |region: &&Region| page.0.wrapping_sub(region.first) < region.pages;
        let region = self.regions.iter().find(is_in).expect("a page is in a region");
        region.start + (page.0 - region.first) * self.page
    }

    /// The page at an address of this task.
    pub fn page_at(&self, address: u32, task: u32) -> Option<PageId> {
        self.regions.iter().filter(|region| region.task == task).find_map(|region| {
            let page = address.checked_sub(region.start)? / self.page;
            (page < region.pages).then_some(PageId(region.first + page))
        })
    }

    /// The tasks' data pages, and the task of each.
    pub fn data(&self) -> impl Iterator<Item = (u32, PageId)> {
        let image = self.image;
        let data = self.regions.into_iter().filter(move |region| region.first >= image);
        data.flat_map(|region| (region.first..region.first + region.pages).map(move |page| (region.task, PageId(page))))
    }
}
