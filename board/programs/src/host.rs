//! The program's data and output on the host.

use crate::DATA;

/// The data region, all zeros at first. On the board it is paged, and its dirty pages are written to the chip. Call
/// this once.
pub fn data() -> &'static mut [u8] {
    Box::leak(Box::new([0; DATA]))
}

/// Writes bytes to the program's output.
pub fn write(bytes: &[u8]) {
    use std::io::Write;
    std::io::stdout().write_all(bytes).expect("standard output takes the bytes");
}
