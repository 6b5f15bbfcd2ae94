//! The allocation functions of C, and the heaps behind them: the program's, the C library's, and this library's own.

pub mod heap;
pub mod malloc;
pub mod pool;
pub mod program_break;
pub mod unmanaged;
