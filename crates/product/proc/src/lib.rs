//! # coldframe-proc: reads what the kernel's files say about processes and the machine
//!
//! The only room that reads `/proc` (the pager in a program's own process has a few readers of its own, which may not
//! allocate). Each file has one parser:
//!
//! ```text
//!   Tree ── swap_areas, mounts, meminfo, vmstat, processor, load      /proc of this machine, or of a folder of a test
//!    └─ Process ── stat, thread_stats, children, cgroups, pages, command_line
//!        └─ smaps, maps ── mappings
//! ```
//! Beside the parsers, `pages` finds the pages of a process and brings them in or pushes them out, `nodes` moves
//! them to other nodes, `faults` records which ones it touches, in order, and `writes` which ones it writes.
//!
//! Nothing here decides, waits or has a budget. What referenced bits say about less RAM is decided by
//! `coldframe-answer`.
#![warn(missing_docs)]

mod access;
mod areas;
mod error;
mod faults;
mod files;
mod maps;
mod nodes;
mod pages;
mod process;
mod rest;
mod sanitizer;
mod text;
mod tree;
mod writes;

pub use access::{check, processor_ns};
pub use areas::Area;
pub use error::{unmade, ProcError};
pub use faults::Faults;
pub use files::{add_files, FileUse, Files};
pub use maps::{mappings, Counts, Mapping};
pub use nodes::{has_processors, move_pages, nodes_of, prefer_node};
pub use pages::{advise, page_in_ram, scan, touch, Advice, Place};
pub use process::{Cgroup, Process, References, Stat};
pub use rest::Rest;
pub use sanitizer::sanitizer;
pub use text::{escaped, field, printable, text, unescaped};
pub use tree::{Mount, SwapArea, Tree};
pub use writes::Writes;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
