//! # coldframe-toolbox: tools that tests need from outside
//!
//! A test that needs a tool calls [`have`], and returns if the tool is missing. The test is then skipped, with a
//! message that names the tool's Debian package. With `COLDFRAME_REQUIRE_TOOLS=1`, a missing tool is a failure: use
//! this where a skipped test would go unnoticed.
#![forbid(unsafe_code)]

mod browser;
mod coldframe;
pub mod command;
pub mod documents;
pub mod programs;
pub mod schemas;
mod tools;

pub use browser::browse;
pub use coldframe::{command_of, program, program_of, shared_library, verbs};
pub use tools::{have, skip, Tool, BZIP2, CHROMIUM, GCC, QEMU, VALGRIND};
