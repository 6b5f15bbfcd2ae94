//! The library under programs, as one test program.

#[macro_use]
mod common;

mod allocators;
mod descriptors;
mod filters;
mod fork;
mod heap;
mod identity;
mod kernel;
mod kernel_owned;
mod limits;
mod machines;
mod mapping;
mod one_budget;
mod oracle;
mod pinned;
mod races;
mod rings;
mod signals;
mod slow;
mod threads;
