//! The log's books as they are, in the place of `live/src/log.rs`, which also reads and writes.

/// Slots of a segment, as there.
pub const SEGMENT: usize = 32;

#[path = "../../live/src/log/area.rs"]
pub mod area;
#[path = "../../live/src/log/blocks.rs"]
pub mod blocks;
#[path = "../../live/src/log/children.rs"]
pub mod children;
