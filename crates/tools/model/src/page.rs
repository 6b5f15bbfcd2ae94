//! The pager's states and tables of pages, unchanged, but for the leaves: the few pages of a model need none.

/// Replaces `live/src/page/leaves.rs`.
pub mod leaves {
    use crate::LiveError;

    /// One table for all pages.
    #[derive(Debug)]
    pub struct Leaves(usize);

    impl Leaves {
        /// For this many pages.
        pub fn new(pages: usize) -> Result<Leaves, LiveError> {
            Ok(Leaves(pages))
        }

        /// The length of a table.
        pub fn entries(&self) -> usize {
            self.0
        }

        /// The entry of a page.
        pub fn entry(&self, page: usize) -> usize {
            page
        }

        /// The same.
        pub fn begin(&self, page: usize) -> usize {
            page
        }
    }
}

#[path = "../../../product/live/src/page/pages.rs"]
pub mod pages;
#[path = "../../../product/live/src/page/parking.rs"]
pub mod parking;
#[path = "../../../product/live/src/page/state.rs"]
pub mod state;
