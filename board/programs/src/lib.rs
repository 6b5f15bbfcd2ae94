//! The parts of a program that runs on the board and on the host: a start, a heap, and [`write()`].
//!
//! `programs::program!(run)` makes `fn run()` the program. On the board it starts at the first byte of its image,
//! copies its data to RAM like any C runtime, and ends with a call to the kernel. On the host it is `main`.
#![cfg_attr(target_os = "none", no_std)]

#[cfg(target_os = "none")]
mod board;
#[cfg(not(target_os = "none"))]
mod host;

#[cfg(target_os = "none")]
pub use board::{data, write};
#[cfg(not(target_os = "none"))]
pub use host::{data, write};

/// Bytes of the data region.
pub const DATA: usize = 48 << 10;

/// Makes a function the program.
#[macro_export]
macro_rules! program {
    ($run:path) => {
        #[cfg(target_os = "none")]
        #[no_mangle]
        extern "C" fn program_main() {
            $run();
        }
        #[cfg(not(target_os = "none"))]
        fn main() {
            $run();
        }
    };
}
