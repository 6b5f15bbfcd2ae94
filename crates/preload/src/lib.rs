//! The library that `coldframe run` has the dynamic linker load into an unmodified program, so that the program's heap lies in
//! managed memory.
//!
//! - [`start`]: the constructor; reads `COLDFRAME_OPTIONS`, starts the pager
//! - [`malloc`], [`heap`]: malloc and its kin, over mimalloc in managed memory
//! - [`unmanaged`], [`caller`]: what must not be managed, and how it is told
//! - [`mapping`], [`descriptors`], [`syscall`]: system calls that concern managed memory or the pager's descriptors
//! - [`deepbind`]: libraries that would not see any of this
//! - [`fork`], [`gate`]: a child finds memory and heap as its parent left them
//! - [`memory`], [`extents`]: the pager, or in layout-only mode its addresses without it
//!
//! | environment | |
//! |---|---|
//! | `LD_PRELOAD` | this library; it stays there, so that programs started by the program page too, each in a budget of its own |
//! | `COLDFRAME_OPTIONS` | `Options::encode` of the live crate; `faults` must be handlers; `base` is 0x2000_0000_0000 if not given; needed unless layout only |
//! | `COLDFRAME_LAYOUT_ONLY=1` | the same addresses, no pager; of the options, `base`, `max_memory` and `stats_fd` count |
//! | `COLDFRAME_MMAP_THRESHOLD` | least length of a managed mapping, in bytes; 131072 |
//!
//! What cannot start says so on file descriptor 2 and ends the program, with 2 for a setting, 4 for what this machine does not have,
//! 5 for the rest. A program that needs more than `max_memory` gets ENOMEM, and one line says why.
//!
//! Not managed: stacks, static data, `brk`, shared and file mappings, mappings below 128 KiB, small blocks that the C library
//! makes for itself (`getline`, `asprintf`), memory of programs that bring an allocator inside their own executable unless it
//! uses `mmap`, system calls made without the C library. A raw `clone` or `_Fork` without the C library's `fork` leaves the child without
//! managed memory.
#![cfg_attr(test, allow(dead_code))] // nothing is exported to a test

mod caller;
mod deepbind;
mod descriptors;
mod direct;
mod extents;
mod fork;
mod gate;
mod heap;
mod malloc;
mod mapping;
mod memory;
mod say;
mod shim;
mod start;
mod sys;
mod syscall;
mod unmanaged;

#[cfg(not(test))]
#[global_allocator]
static INTERNAL: unmanaged::Internal = unmanaged::Internal;
