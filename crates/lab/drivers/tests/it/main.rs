//! The drivers as one test program. `allocation.rs` is a program of its own: its allocator counts.

mod foreground;
mod front_end;
mod l1;
mod oracles;
mod tasks;
mod window;
