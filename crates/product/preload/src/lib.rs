//! The library that `coldframe run` puts into an unmodified program through the dynamic linker. The program's heap
//! then is in managed memory: the C library's malloc gets its memory from this library. A function with `no_mangle`
//! replaces the C library's of that name.
//!
//! - [`start`]: the constructor; reads `COLDFRAME_OPTIONS`, starts the pager
//! - [`allocation`]: the program break, from which malloc grows; the memory of this library itself (`pool`)
//! - [`symbols`]: the functions behind those that are replaced, for the program (`next`) and for this library
//!   (`own_calls`); who calls a replaced function; libraries that would otherwise not use any of this (`deepbind`)
//! - [`entries`]: the C library's own calls of functions that are replaced, which come here, too
//! - [`mappings`], [`descriptors`], [`syscall`]: system calls that concern managed memory; what the program does with
//!   descriptors of the pager, where there are some (a recording, an old C library); O_DIRECT, other files and
//!   devices by which the kernel writes past the page table, descriptors from elsewhere
//! - [`kernel_access`]: memory that must stay in RAM for the kernel, pages that a pipe refers to, process_vm_writev
//! - [`process`]: a child finds memory and heap as its parent left them; programs that the program runs, which get the
//!   run's statistics (`exec`); limits on the process's resources and on its system calls; a signal to all processes
//!   does not reach the pagers
//! - [`managed`]: the pager, the stacks on which it works in the program's threads, pins
//!
//! | environment | |
//! |---|---|
//! | `LD_PRELOAD` | this library; it stays there, so that programs started by the program page too |
//! | `COLDFRAME_OPTIONS` | `Options::encode` of the live crate; `base` is 0x8000_0000 if not given |
//! | `COLDFRAME_WRITES` | in its place: nothing is managed, and another process sees writes ([`writes`]) |
//!
//! If this library cannot start, it says so on file descriptor 2. The first program of a run then ends, with 2 for a
//! setting, 4 for a feature that this machine lacks, and 5 for other reasons. A later program of the run (the shared
//! statistics show that it is one) continues with plain memory. A program that needs more than `max_memory` gets
//! ENOMEM, and one line gives the reason.
//!
//! Not managed: stacks, static data, what malloc has before this library starts, shared and file mappings, mappings
//! below 32 KiB, and system calls made without the C library. Where the C library's code may not be changed, or is
//! older than version 2.34, its malloc is not managed either. If the program has its own allocator, inside its
//! executable or preloaded, it keeps that allocator; memory that the allocator maps or takes with `sbrk` is managed. A
//! child made by the bare system call, without the C library, has no managed memory. A program executed in that way is
//! not counted in the run's statistics. If another process writes with process_vm_writev or ptrace, its bytes may be
//! lost when the page leaves RAM at that very moment.
#![cfg_attr(test, allow(dead_code))] // nothing is exported to a test

mod allocation;
mod descriptors;
mod entries;
mod kernel_access;
mod managed;
mod mappings;
mod pointers;
mod process;
mod say;
mod start;
mod symbols;
mod sys;
mod syscall;
mod writes;

#[cfg(not(test))]
#[global_allocator]
static INTERNAL: allocation::pool::Internal = allocation::pool::Internal;
