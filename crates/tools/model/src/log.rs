//! Replaces `live/src/swap/log.rs`, which also reads and writes. The log's tables are compiled unchanged.

/// Slots of a segment and buffers, as in `pager-plan`.
pub const SEGMENT: usize = 32;
pub const BUFFERS: usize = 8;

#[path = "../../../product/live/src/swap/log/blocks.rs"]
pub mod blocks;
#[path = "../../../product/live/src/swap/log/children.rs"]
pub mod children;
#[path = "../../../product/live/src/swap/log/segments.rs"]
pub mod segments;
