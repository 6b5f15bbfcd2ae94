//! # coldframe-lane: the engine in virtual time
//!
//! A *lane* is one configuration: policy, handler, frames. Up to 16 lanes share a [`page_table`] whose entry is one
//! 64-bit word. So a reference that hits in all of them costs one compare and one store for any number of lanes. A
//! reference that does not hit in a lane is a fault of its [`lane`]: the engine decides, and the [`machine`] prices the
//! commands with a [`bus`], a clock and meters.
//!
//! Drivers give the references. This crate names no paper's system: prices, sizes and readings are arguments.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bus;
pub mod clock;
pub mod faulty;
pub mod in_slots;
pub mod lane;
pub mod latency;
pub mod machine;
pub mod meters;
pub mod numbering;
pub mod page_ref;
pub mod page_table;
pub mod prices;
pub mod read_ahead;
pub mod sources;
pub mod watch;
pub mod window;
pub mod xip;

pub use faulty::Failures;
pub use lane::{Lane, LaneConfig, LaneError, LaneResult, PageCost, SwapDone};
pub use latency::Latency;
pub use machine::{CollectTimes, DeviceTimes};
pub use page_ref::PageRef;
pub use sources::SourceCounts;
