//! Records the references of unmodified programs as a finished trace.
//!
//! ```text
//! program under QEMU user mode --plugin--> shared memory --ring--> expand --rows, runs--> Parquet
//! (x86-64, ARM, AArch64)
//! ```
//!
//! [`record`] does all of it: it finds the program and QEMU, starts the program, drains the ring, applies the
//! limits and finishes the file, also after a limit, a signal or a killed program. The program's standard streams
//! stay its own. This crate prints nothing.
//!
//! # What a trace holds
//!
//! [`Level::Exact`]: every instruction fetch and every data access of the program's own instructions, in program
//! order for each thread. An instruction that loads and stores one place is one write. Not recorded: the kernel's
//! reads and writes in system calls. Counted although not executed: the rest of a block of code that an access ended
//! by a signal (a handled SIGSEGV). Order between threads and processes: in stretches of up to 8187 words, in the
//! order in which they were handed over.
//!
//! [`Level::Pages`]: the fetches and the data accesses, each collapsed to runs on one page; see `runs.rs`. Each stream
//! alone is exact for FIFO, LRU, Clock, PA-Clock, FIFO-SC, ARC and OPT: third and later references of a run change
//! nothing, and counts of two and more are kept. Dirty pages are exact, too. In both streams together, the order of the
//! runs' beginnings is exact to the instruction. A run's later references count at its beginning, too, so recency
//! between a fetch page and a data page is approximate.

#![forbid(unsafe_code)]

mod error;
mod expand;
mod maps;
mod process;
mod qemu;
mod record;
mod recording;
mod ring;
mod rows;
mod runs;
#[allow(dead_code)] // the plugin uses the rest
#[path = "../../qemu-plugin/src/wire.rs"]
mod wire;

pub use error::RecordError;
pub use record::record;
pub use recording::{Level, Limits, Outcome, Progress, Recording};

/// The file name of the plugin that `coldframe-plugin` builds.
pub const PLUGIN: &str = "libcoldframe_plugin.so";
