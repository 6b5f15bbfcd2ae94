//! The program break, from which the C library's malloc takes its memory; and the memory of this library's own code.

pub mod pool;
pub mod program_break;
