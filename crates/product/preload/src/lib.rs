//! The library that `coldframe run` puts into an unmodified program through the dynamic linker. The program's heap
//! then is in managed memory. A function with `no_mangle` replaces the C library's of that name.
//!
//! - [`start`]: the constructor; reads `COLDFRAME_OPTIONS`, starts the pager
//! - [`malloc`], [`heap`]: malloc and related functions, over mimalloc in managed memory
//! - [`unmanaged`], [`caller`], [`libc_symbols`]: memory that must not be managed, and how it is recognised; the C
//!   library's own heap
//! - [`pool`]: the memory of this library itself
//! - [`program_break`], which is sbrk
//! - [`mapping`], [`remap`], [`advice`], [`lock`], [`parts`], [`descriptors`], [`syscall`]: system calls that concern
//!   managed memory or the pager's descriptors
//! - [`direct`], [`pinning`], [`received`]: O_DIRECT; other files and devices by which the kernel writes past the page
//!   table; descriptors from elsewhere
//! - [`next`], [`own_calls`]: the functions behind those that are replaced, for the program and for this library
//! - [`pins`], [`rings`], [`threads`]: memory that must stay in RAM, and its owners
//! - [`splice`]: pages that a pipe refers to
//! - [`process_vm`], which is process_vm_writev and process_vm_readv
//! - [`limits`], [`filter`]: limits on the process's resources, and on its system calls
//! - [`deepbind`]: libraries that would otherwise not use any of this
//! - [`fork`], [`gate`], [`files`]: a child finds memory and heap as its parent left them
//! - [`kill`]: a signal to all processes does not reach the pagers
//! - [`memory`]: the pager
//! - [`stacks`]: the stacks on which it works in the program's threads
//!
//! | environment | |
//! |---|---|
//! | `LD_PRELOAD` | this library; it stays there, so that programs started by the program page too |
//! | `COLDFRAME_OPTIONS` | `Options::encode` of the live crate; `base` is 0x8000_0000 if not given |
//!
//! If this library cannot start, it says so on file descriptor 2. The first program of a run then ends, with 2 for a
//! setting, 4 for a feature that this machine lacks, and 5 for other reasons. A later program of the run (the shared
//! statistics show that it is one) continues with plain memory. A program that needs more than `max_memory` gets
//! ENOMEM, and one line gives the reason.
//!
//! Not managed: stacks, static data, `brk`, shared and file mappings, mappings below 32 KiB, small blocks that the C
//! library allocates for itself (`getline`, `asprintf`), and system calls made without the C library. If the program
//! has its own allocator, inside its executable or preloaded before this library, it keeps that allocator; memory
//! that the allocator maps or takes with `sbrk` is managed. A child made by the bare system call, without the C
//! library, has no managed memory. If another process writes with process_vm_writev or ptrace, its bytes may be lost
//! when the page leaves RAM at that very moment.
#![cfg_attr(test, allow(dead_code))] // nothing is exported to a test

mod advice;
mod caller;
mod deepbind;
mod descriptors;
mod direct;
mod files;
mod filter;
mod fork;
mod gate;
mod heap;
mod kill;
mod libc_symbols;
mod limits;
mod lock;
mod malloc;
mod mapping;
mod memory;
mod next;
mod own_calls;
mod pinning;
mod pins;
mod pool;
mod process_vm;
mod program_break;
mod ranges;
mod received;
mod remap;
mod rings;
mod say;
mod shim;
mod splice;
mod stacks;
mod start;
mod sys;
mod syscall;
mod threads;
mod unmanaged;

#[cfg(not(test))]
#[global_allocator]
static INTERNAL: pool::Internal = pool::Internal;
