//! The library for C, as one test program.

mod c;
mod header;
