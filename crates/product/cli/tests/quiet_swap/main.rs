//! Tests that change what the whole machine has: swap and groups. They take turns (`common::alone`), and as a program
//! of their own no other test runs beside them (`make test`).

#[path = "../common/mod.rs"]
mod common;

mod by_kernel;
mod park;
mod pasted;
mod squeeze;
