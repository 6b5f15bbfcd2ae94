//! The live pager in forked processes, as one test program. `in_process` has those that page in their own.

#[path = "../common/mod.rs"]
mod common;

mod budget;
mod findings_pages;
mod forks;
mod handlers;
mod journal;
mod log;
