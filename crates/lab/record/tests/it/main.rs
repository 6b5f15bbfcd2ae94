//! Recordings under QEMU and valgrind, as one test program.

mod common;

mod ends;
mod record;
