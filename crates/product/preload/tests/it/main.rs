//! The library under programs, as one test program.

#[macro_use]
mod common;

mod addresses;
mod allocators;
mod descriptors;
mod heap;
mod kernel;
mod kernel_owned;
mod machines;
mod mapping;
mod one_budget;
mod oracle;
mod pinned;
mod process;
mod races;
mod rings;
mod signals;
mod slow;
mod threads;
