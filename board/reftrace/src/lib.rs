//! A TCG plugin for QEMU's system emulation. It writes each change of the page that the emulated processor fetches
//! from, loads from or stores to, within a range of virtual addresses, as a line of a `din` trace (0 load, 1 store, 2
//! fetch; address in hexadecimal).
//!
//!   -plugin libreftrace.so,out=FILE,page=1024,from=0x20000000,to=0x20200000
//!
//! References to the page of the reference just before are left out: a machine without reference bits could not notice
//! them. An access that faults counts only when it is repeated. A block of instructions is within one page (QEMU ends
//! it there). Its fetch is noted when it is entered, and after each access to another page, because the next
//! instruction is fetched from the block again.

#[allow(dead_code)] // the recorder of programs uses the rest
#[path = "../../../crates/lab/qemu-plugin/src/api.rs"]
mod api;
mod plugin;
