//! Memory that the kernel accesses where it cannot wait for a page, or past the page table.

pub mod process_vm;
pub mod rings;
pub mod splice;
pub mod threads;
