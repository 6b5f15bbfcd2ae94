//! # coldframe-kernel: the machine Linux, with its own pager
//!
//! Here the kernel decides which page leaves. This crate gives a program a budget and a place to swap to, and reads
//! what happened. It knows no engine.
//!
//! ```text
//!   Tree ── the files of the kernel: / of this machine, or a folder that a test has made
//!    ├─ Place    where a group can be made: cgroup v1, v2 as root, v2 in a delegated subtree
//!    ├─ Swaps    what there is to swap to
//!    └─ Guard    a process that makes groups and swap devices, and removes them when this process is gone
//!         ├─ Group ── limit, counters, pressure;  LimitWatch ── keeps the limit while the program runs
//!         ├─ Parking ── stops programs and pushes them out, remembers what they used, fetches it before they run again
//!    │           (`Parked`: one of them, in the process that holds it; `Lists`: what they used, for their next start)
//!         └─ Squeeze ── lowers the limit of an existing group (`group_of`), step by step; `Hold` keeps it low for long
//! ```
//!
//! Only the guard changes the machine, so that a killed coldframe leaves nothing behind. The one exception is the limit
//! of a group that the guard has made or whose old limit the guard knows. What killed guards leave is on record
//! (`left_behind`).
#![deny(unsafe_code)]

mod error;
mod files;
mod group;
mod guard;
mod inode;
mod limit_watch;
mod parking;
mod squeeze;
mod swap;

pub use coldframe_proc::Tree;
pub use error::KernelError;
pub use group::counters::Counters;
pub use group::place::{stay, Place};
pub use group::pressure::{machine_stall, Stall};
pub use group::target::{group_of, process_of};
pub use group::version::Version;
pub use group::{join, Group, Work};
pub use guard::left::left_behind;
pub use guard::undo::{Left, Rest};
pub use guard::{serve, Guard};
pub use limit_watch::{GroupUsage, LimitWatch};
pub use parking::parked::{Bytes, Parked, Program};
pub use parking::Parking;
pub use squeeze::hold::{Hold, PageTimes, Reading};
pub use squeeze::{lowered, End, Squeeze, Step, PART};
pub use swap::devices::PRIORITY_RUN;
pub use swap::{Pool, SwapKind, SwapSpace, Swaps};
