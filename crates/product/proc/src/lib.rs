//! # coldframe-proc: Linux's files and calls about other processes and the machine
//!
//! The only room that reads `/proc` (the pager in a program's own process has a few readers of its own, which may not
//! allocate). Each file has one parser:
//!
//! ```text
//!   Tree ── swap_areas, mounts, meminfo, vmstat, processor, load      /proc of this machine, or of a folder of a test
//!    └─ Process ── stat, thread_stats, children, cgroups, pages, command_line
//!        └─ smaps, maps ── mappings
//! ```
//! Beside the parsers, `pages` finds the pages of a process and brings them in or pushes them out; `halt` stops processes;
//! `sample` compresses pages at random places.
//!
//! ## Watching a working set
//! The processor notes in each page table entry that its page was referenced. The owner of a process may clear these
//! bits (`/proc/PID/clear_refs`) and count them (`Referenced` in `/proc/PID/smaps`), for static programs, Go, musl,
//! virtual machines of Java, and processes that have run for long.
//!
//! ```text
//!   stretch │ clear │ look        look               look                             look │ clear │ look ...
//!           └───────┴─────────────┴──────────────────┴────────────────────────────────┴────┘
//!   pages referenced since the clearing = the top of the LRU stack; a page that is there and is referenced for the
//!   first time since then has left every RAM with fewer pages than that
//! ```
//! What these counts say about less RAM is decided by `coldframe-answer`.
//!
//! The bits have limits. A page whose translation stays in a processor's TLB is not noted again until the translation
//! leaves it, so working sets are too small by at most the TLB's reach ([`TLB_PAGES`] pages). A huge page has one bit. If the
//! kernel itself reclaims pages of the process, it clears bits, too.
#![warn(missing_docs)]

mod access;
mod areas;
mod error;
mod files;
mod halt;
mod maps;
mod pages;
mod process;
mod rest;
mod sample;
mod text;
mod tree;
mod watch;

pub use access::{check, processor_ns};
pub use areas::Area;
pub use error::ProcError;
pub use files::{FileLooks, FileUse, Files};
pub use halt::start;
pub use maps::{mappings, Counts, Mapping};
pub use pages::{advise, scan, touch, Advice, Place};
pub use process::{Cgroup, Process, Stat};
pub use rest::Rest;
pub use sample::{random_page, Random};
pub use text::{field, text};
pub use tree::{Mount, SwapArea, Tree};
pub use watch::{Progress, Watch};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// The most translations that a TLB keeps: 1536 to 2048 in the second level of Intel's processors since Skylake (Intel
/// 64 and IA-32 Architectures Optimization Reference Manual, sections on caches and TLBs), 2048 to 3072 in AMD's Zen 2
/// to Zen 4 (Software Optimization Guides for the families 17h and 19h, section 2.7).
pub const TLB_PAGES: u64 = 2048;

/// What was counted at one time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Look {
    /// Seconds of processor time of all threads since the clearing: the middle of what is possible.
    pub seconds: f64,
    /// How far the time may be off, either way: clearing and counting take time in which the program runs.
    pub spread: f64,
    /// Pages of the heap referenced since the clearing.
    pub referenced: f64,
    /// Of those, pages that were there before they were referenced: they would have had to be brought back.
    pub again: f64,
}

/// The time from one clearing to the next.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Stretch {
    /// What was counted, in order of time.
    pub looks: Vec<Look>,
    /// The most pages of the heap.
    pub pages: f64,
}

/// All that was seen.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Watched {
    /// In order of time.
    pub stretches: Vec<Stretch>,
    /// The most pages of the heaps at a time.
    pub peak_pages: f64,
    /// The most bytes of what is not heap: code, libraries, stacks, files.
    pub rest_bytes: u64,
    /// The kinds of it, at that time.
    pub rest: Rest,
    /// The share of the heap in huge pages, at its peak.
    pub huge: f64,
    /// The share of the heap that the kernel had swapped out, at most.
    pub swapped: f64,
    /// The part of its size that a page takes in compressed RAM, on average of some of the heap's; `None`: they may not be
    /// read.
    pub compressed: Option<f64>,
    /// Seconds that were watched, without those in which it was stopped.
    pub seconds: f64,
    /// Of those, seconds of the stretches up to their last looks.
    pub covered: f64,
    /// Seconds that watching took: those in which it was stopped, else of processor time.
    pub own_seconds: f64,
    /// Processes that were seen.
    pub processes: usize,
    /// Threads of the process with the most.
    pub threads: usize,
}
