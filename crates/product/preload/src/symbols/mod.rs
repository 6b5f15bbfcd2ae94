//! Functions of the C library: those that the program would call without this library, and who calls a replaced one.

pub mod caller;
pub mod deepbind;
pub mod libc_symbols;
pub mod next;
pub mod own_calls;
pub mod shim;
