//! Working sets by referenced bits: one watcher for a program and for a whole machine, and the curve from working sets
//! to faults.
//!
//! The processor notes in each page table entry that its page was referenced. The owner of a process may clear these
//! bits (`/proc/PID/clear_refs`) and count them (`Referenced` in `/proc/PID/smaps`), for static programs, Go, musl,
//! virtual machines of Java, and processes that have run for long.
//!
//! ```text
//!   Reader ── what is read of processes: a program's (`family`), a machine's (`everyone`), a table of a test
//!     └─ Watcher ── clears and counts, within its Budget ─► Stretch of Looks ─ faults ─► faults by RAM
//!          └─ PageSample ── pages at random places, compressed as zram would
//!
//!   stretch │ clear │ look        look               look                             look │ clear │ look ...
//!           └───────┴─────────────┴──────────────────┴────────────────────────────────┴────┘
//!   pages referenced since the clearing = the top of the LRU stack; a page that is there and is referenced for the
//!   first time since then has left every RAM with fewer pages than that
//! ```
//!
//! The bits have limits. A page whose translation stays in a processor's TLB is not noted again until the translation
//! leaves it, so working sets are too small by at most the TLB's reach (`TLB_PAGES` pages). A huge page has one bit. If
//! the kernel itself reclaims pages of the process, it clears bits, too.

pub(crate) mod budget;
pub(crate) mod everyone;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod family;
pub(crate) mod faults;
pub(crate) mod file_looks;
pub mod look;
pub mod page_sample;
pub(crate) mod program;
pub(crate) mod reader;
pub mod touched;
pub(crate) mod watcher;
