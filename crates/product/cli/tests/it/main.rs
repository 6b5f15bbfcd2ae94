//! The program `coldframe`, as one test program. What measures (`quiet_times`), and what makes swap (`quiet_swap`),
//! are programs of their own.

#[path = "../common/mod.rs"]
mod common;

mod deb;
mod documents;
mod others;
mod outputs;
mod page;
mod processes;
mod programs;
mod run;
mod signals;
mod streams;
