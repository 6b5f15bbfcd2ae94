//! # coldframe-sim: the engine in virtual time
//!
//! ```text
//!  trace block ── front end ──► page references ──► page table, 16 lanes an entry
//!  (addresses)    numbering,    u32 each:             │ all lanes mapped: set bits, done (a hit)
//!                 I-cache, TLB  page, write, quiet    │ else, for each lane that faults:
//!                                                     └► Lane: engine + clock + device ── Event/Command
//! ```
//!
//! A *lane* is one configuration: policy, handler, frames. Up to 16 lanes share a page table whose entry is one 64-bit
//! word. So a reference that hits in all of them costs one compare and one store for any number of lanes. The trace is
//! decoded once for all lanes. Algorithms that need hits (LRU, OPT, ARC) are an [`oracle`] and run beside the lanes.
//!
//! This crate names no paper's system: prices, sizes and readings are arguments.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bus;
pub mod faulty;
pub mod foreground;
pub mod front_end;
mod in_slots;
pub mod lane;
pub mod latency;
pub mod machine;
pub mod numbering;
pub mod oracle;
pub mod page_table;
mod read_ahead;
mod read_counts;
pub mod run;
pub mod scheduler;
pub mod shorten;
mod sources;
pub mod swap;
pub mod tasks;
pub mod tier;
mod watch;
pub mod xip;

pub use faulty::Failures;
pub use foreground::{Foreground, ForegroundConfig, ForegroundPrices, ForegroundResult};
pub use front_end::{FrontEnd, PageRef, Stream};
pub use lane::{Lane, LaneBelow, LaneConfig, LaneError, LaneResult, PageCost, SwapDone};
pub use latency::Latency;
pub use machine::{CollectTimes, DeviceTimes};
pub use run::{Run, RunError};
pub use sources::SourceCounts;
pub use tier::{Sizes, TierDone, TierTimes};
