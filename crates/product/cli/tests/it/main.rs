//! The program `coldframe`, as one test program. What measures, and what makes swap, are programs of their own.

#[path = "../common/mod.rs"]
mod common;

mod deb;
mod documents;
mod outputs;
mod page;
mod processes;
mod programs;
mod run;
