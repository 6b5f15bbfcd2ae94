//! Managed memory: the pager, its stacks in the program's threads, addresses by owner, and pages that stay in RAM.

pub mod gate;
pub mod memory;
pub mod pins;
pub mod ranges;
pub mod stacks;
