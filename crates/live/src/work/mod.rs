//! The work for a fault after the engine's lock is freed: loads, evictions, moves to the shelf and back, and the bytes of
//! the compressed tier. The engine's machine notes it, and the thread of the fault carries it out.

pub mod evict;
pub mod kernel_reads;
pub mod load;
pub mod page_table;
pub mod pool;
pub mod wary;
