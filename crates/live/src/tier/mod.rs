//! The compressed form of pages, in RAM and in slots that several pages share. Pure functions on memory of the caller;
//! the work on pages and the swap log call them. Knows no page's place.

pub mod codec;
pub mod packed;
mod pool;

pub use pool::Pool;

/// The slot of a page that has content, but none in the log.
pub const IN_POOL: u64 = 1 << 62;

/// A page that has left, and whose size is being reported.
#[derive(Clone, Copy, Debug)]
pub struct Compressed {
    pub page: usize,
    /// Its bytes, compressed if the size is less than a page's.
    pub from: usize,
    pub size: u32,
    pub sum: u128,
    /// The engine takes the page's slot as older.
    pub dirty: bool,
}
