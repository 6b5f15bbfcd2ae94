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
//! ## The path of a page fault
//!
//! ```text
//!  program's thread ── touches a page ──► sleeps in the kernel ············································· continues
//!                                          │ message                                                             ▲
//!  handler thread   with the engine's lock:    Fault ─► start the Load; note the commands Move and Write          │
//!                   without it:                copy dirty victims into a pipe, unmap all victims with one call,   │
//!                                              read the copies back, wait for the load                            │
//!                   with the engine's lock:    Written, Loaded ─► note the command Map                            │
//!                   without it:                copy the page in and wake the thread ─────────────────────────────┘
//!  writer thread    writes full buffers of the swap log to the device; serves faults of threads that wait for a page
//!                   it writes
//! ```
//!
//! ## Who may change what
//!
//! Two threads can want the same thing at once, so each thing has one owner:
//!
//! - **A page** (`page/state.rs`): one word says where the page is, and which task is moving it. The word changes by
//!   compare-and-swap; other threads wait.
//! - **An address range** (`memory/extents.rs`, `region/mapping.rs`): one map has all open ranges with their rights and
//!   advice; free addresses are inaccessible. A range is closed in two steps: it leaves the map, then its pages are
//!   dropped.
//! - **Memory that fits into RAM** (`memory/kernel_owned.rs`, `region/take_over.rs`): while all that the program may
//!   touch fits, the kernel owns the memory and the program has no faults of ours. The thread that opens more memory,
//!   pins some, forks, or gets a file that can pin frames hands all of it to the engine first. It holds the lock of
//!   address changes; other threads continue.
//! - **Pages that were never touched**: the engine brings them in beside a first touch
//!   (`core/src/fault/first_touch.rs`). When it needs frames, it asks which of them were written to, and the thread
//!   with its lock looks; those that are still zeros stay protected until they are dropped.
//! - **The engine** (`fault/`): a thread with the engine's lock waits only for a page in transfer; the thread that
//!   transfers that page never needs the lock.
//! - **A slot** (`swap/log/`): a slot is written once, and never while a process can read its old data. A slot is free
//!   when no living process can read it. The log chooses the slots, except with a swap area (`run --system`): then the
//!   engine chooses, an erase block is a segment of the file, and an erase starts a new segment.
//! - **A thread of the pager** (`sys/thread.rs`, `threads/`): the C library does not know these threads. They have
//!   stacks of ours and allocate nothing.
//! - **The pager process** (`threads/pager_process.rs`, `sys/rights.rs`): these threads run in a process that shares
//!   the program's memory and has descriptors, credentials and a process group of its own. The program has none of the
//!   descriptors: what its threads need of them, the pager process does for them (`threads/calls.rs`). An executed
//!   program gets the statistics at its execution (`life/fork.rs`). A recorder runs
//!   inside the program's process instead, and so does the pager of a Rust or C program.
//! - **A child's old pages** (`swap/parent.rs`, `threads/page_server.rs`): what left RAM before a fork is read for the
//!   child by its parent's pager, which goes on for that after the parent's end.
//! - **The messages** (`task/message_reader.rs`): one handler thread reads the messages and serves them. Before it
//!   waits, another one takes over.
//! - **A frame of a run** (`stats/shares.rs`, `fault/lending.rs`): where the processes of a run have one budget, a
//!   process takes frames for its engine under the engine's lock. Only its own lender thread (`threads/lender.rs`)
//!   gives some back (`region/lending.rs`).
//! - **A fork** (`life/fork.rs`): all that the child needs is reserved before the fork. Its own pager gets it from its
//!   parent's by a connection that is made for the fork (`sys/sockets.rs`). If that fails, the child runs without
//!   paging (`region/unpaged.rs`); it is not ended.
//!
//! A recording (`record/`) is a pager that has RAM for everything. Pages leave a window of mapped pages, and each entry
//! into the window is written to a mapped file (`recording/src/entries.rs`). The window and the sample of pages adapt
//! to the time that the entries may take.
//!
//! ## Modules, from the bottom up
//!
//! A module imports only modules above it in this list, and only it changes its fields:
//!
//! - [`options`], [`error`], [`inject`]: plain data that all modules know
//! - [`sys`]: system calls, locks, threads and tables without the C library; how a process is stopped with a message
//! - [`stats`]: the counters that other processes read
//! - [`page`]: where each page is, and which task is moving it
//! - [`memory`]: the managed addresses, the page table, and the RAM behind them
//! - [`swap`]: the log on a device, encryption, hashes
//! - [`record`]: recordings and journals
//! - [`task`]: what a thread has while it serves a fault; which handler thread reads the messages
//! - [`work`]: what follows from the engine's commands after its lock is freed
//! - [`fault`]: a fault, the engine behind its lock, Linux as the engine's machine
//! - [`region`]: managed memory: its faults, and changes that are none
//! - [`threads`]: handlers, writer, the pager process
//! - [`measure`]: what this machine allows, and how fast it is
//! - [`life`]: start, forks, end
//! - [`pager`]: the public interface, with the order of its calls

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
mod work;

pub use error::LiveError;
pub use inject::Inject;
pub use life::fork::{ForkedChild, Inherited};
pub use life::locked;
pub use measure::trials;
pub use memory::extents;
pub use options::{Options, Recorder, SwapArea, Wait, FRAMES_MIN, PAGE, READ_AHEAD, READ_AHEAD_MAX};
pub use pager::{Pager, Pin, Region};
pub use region::mapping::Spot;
pub use stats::file::{is_later, StatsFile};
pub use stats::{Chosen, Histogram, Snapshot, Stats, Times};
pub use swap::device::swap_file;
pub use sys::fatal::{say, Mail, STOPPED};
pub use sys::own_descriptors;

/// System calls that do not go through the C library, for a library that replaces its functions.
pub mod calls {
    pub use crate::sys::lock::Lock;
    pub use crate::sys::own_range::{place, OWN};
    pub use crate::sys::rights::{ALWAYS, ARCHITECTURE, NEEDED, WANTED};
    pub use crate::sys::{
        block_signals, exit_group, futex_wait, futex_wake, map_memory, raw, read_file, restore_signals, sleep_us,
        symbol_in, thread, Errno,
    };
}
