//! The files of traces, as one test program.

mod damaged;
mod store;
mod window;
