//! The life of a pager: its start from options, forks, its end, and what it costs besides its pages. Only the door
//! ([`crate::Pager`]) and the C library's fork handlers call this room, and it may call all others.

pub mod fork;
pub mod locked;
pub mod overhead;
pub mod process;
pub mod start;
