//! Changes of managed memory that are not faults: ranges are opened and closed, content is dropped or loaded, pages
//! are pinned.
//!
//! These functions of [`Faults`](crate::fault::Faults) are the only ones that change the managed address space and
//! cause events that are no fault. The door ([`crate::Pager`]) calls them for the program, and a fork for the child.
//! This room knows neither threads nor forks.

mod block_cache;
mod content;
pub mod mapping;
mod take_over;
mod unpaged;
