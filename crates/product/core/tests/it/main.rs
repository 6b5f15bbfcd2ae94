//! The engine, as one test program. `lazy.rs` is a program of its own: it counts the memory of its process.

mod nand;
mod support;

mod delayed_dual_buffering;
mod direct_read;
mod engine;
mod engine_swap;
mod first_touch;
mod lend;
mod policies;
mod prefetch;
mod swap;
