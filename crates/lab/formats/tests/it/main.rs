//! The readers and writers of traces, as one test program.

mod common;

mod export;
mod formats;
mod readers;
