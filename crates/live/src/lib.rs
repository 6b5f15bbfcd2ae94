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
//!
//! The rooms, from the bottom up. A room imports only rooms that stand before it here, and only it changes its fields:
//!
//! - [`options`], [`error`], [`inject`]: plain data that all rooms know
//! - [`sys`]: system calls, locks, threads and tables without the C library; how a process is stopped with a message
//! - [`stats`]: the counters that other processes read
//! - [`page`]: where each page is, and whose task changes it
//! - [`memory`]: the managed addresses, the page table, and the RAM behind them
//! - [`tier`], [`swap`]: compressed pages; the log on a device, encryption, hashes
//! - [`record`]: recordings and journals
//! - [`task`]: what a thread has while it serves a fault; which handler reads the messages
//! - [`work`]: what follows from the engine's commands after its lock is freed
//! - [`fault`]: a fault, the engine behind its gate, Linux as the engine's machine
//! - [`region`]: what may happen to managed memory besides faults
//! - [`threads`]: handlers, writer, reclaimer, keeper
//! - [`measure`]: what this machine allows, and how fast it is
//! - [`life`]: start, forks, end
//! - [`pager`]: the door, with the order of its calls

mod error;
mod fault;
mod inject;
mod life;
mod measure;
mod memory;
mod options;
mod page;
mod pager;
mod record;
mod region;
mod stats;
mod swap;
mod sys;
mod task;
mod threads;
mod tier;
mod work;

pub use error::LiveError;
pub use inject::Inject;
pub use life::locked;
pub use measure::trials;
pub use memory::extents;
pub use options::{Options, Recorder, SwapArea, Tier, Wait, FRAMES_MIN, PAGE, READ_AHEAD, READ_AHEAD_MAX};
pub use pager::{Pager, Pin, Region};
pub use record::compressibility::trial_ns;
pub use region::mapping::Spot;
pub use stats::file::{is_later, StatsFile};
pub use stats::{Chosen, Histogram, Snapshot, Stats, Times};
pub use swap::device::swap_file;
pub use sys::fatal::{say, Mail, STOPPED};
pub use sys::kept;
pub use threads::keeper::reap_old;

/// System calls that do not go through the C library, for a library that replaces its functions.
pub mod calls {
    pub use crate::sys::lock::Lock;
    pub use crate::sys::rights::{ARCHITECTURE, NEEDED, WANTED};
    pub use crate::sys::{
        block_signals, exit_group, futex_wait, futex_wake, map_memory, raw, read_file, restore_signals, sleep_us,
        symbol_in, thread,
    };
}
