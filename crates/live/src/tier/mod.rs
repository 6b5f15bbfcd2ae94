//! The compressed form of pages, in RAM and in slots that several pages share. Pure functions on memory of the caller;
//! the work on pages and the swap log call them. Knows no page's place.

pub mod codec;
pub mod packed;
