//! Descriptors: the pager's, which the program cannot close, and those by which the kernel writes past the page table.

pub mod closing;
pub mod direct;
pub mod pinning;
pub mod received;
