//! Demand paging of a Linux process within a given amount of RAM. The engine, policies and handlers are in
//! `coldframe-core`; this crate is the machine that carries out their commands, with userfaultfd and io_uring.
//!
//! ```no_run
//! use coldframe_live::{Options, Pager};
//! let pager = Pager::start(Options::new(64 << 20))?;          // 64 MiB of RAM
//! let mut region = pager.anonymous(1 << 30)?;                 // for 1 GiB of memory
//! region.as_mut_slice()[123_456_789] = 1;
//! println!("{:?}", pager.stats().true_faults);
//! # Ok::<(), coldframe_live::LiveError>(())
//! ```

mod budget;
mod calibrate;
mod codec;
mod compressibility;
mod descriptors;
mod device;
pub mod doctor;
mod errno;
mod error;
mod evict;
pub mod extents;
mod fatal;
mod fork;
mod free_tasks;
mod handlers;
mod inject;
mod journal;
mod keeper;
mod kernel_reads;
mod lead;
mod load;
mod lock;
pub mod locked;
mod log;
mod machine;
mod mapping;
mod memory;
mod options;
mod overhead;
mod packed;
mod page_table;
mod pager;
mod pages;
mod parking;
mod pause;
mod process;
mod reclaim;
mod recorder;
mod region;
mod rights;
mod seal;
mod secret;
mod space;
#[cfg(test)]
mod stale_faults;
mod start;
mod state;
mod stats;
mod stats_file;
mod sum;
mod swap_area;
mod swap_files;
mod sync;
mod sys;
mod table;
mod task;
mod thread;
mod tier;
mod unpaged;
mod window;

pub use device::swap_file;
pub use error::LiveError;
pub use fatal::{say, Mail, STOPPED};
pub use inject::Inject;
pub use keeper::reap_old;
pub use mapping::Spot;
pub use options::{Options, Tier, Wait, FRAMES_MIN, PAGE, READ_AHEAD, READ_AHEAD_MAX};
pub use pager::Pager;
pub use recorder::Recorder;
pub use region::{Pin, Region};
pub use stats::{Chosen, Histogram, Snapshot, Stats, Times};
pub use stats_file::{is_later, StatsFile};
pub use swap_area::SwapArea;

/// System calls that do not go through the C library, for a library that replaces its functions.
pub mod calls {
    pub use crate::lock::Lock;
    pub use crate::sys::{
        block_signals, exit_group, futex_wait, futex_wake, raw, read_file, restore_signals, sleep_us, thread,
    };
}
