//! Tests that change what the whole machine has: swap and groups. They take turns (`common::alone`), and as a program
//! of their own no other test runs beside them (`make test`).

#[path = "../common/mod.rs"]
mod common;

mod by_kernel;
mod park;
mod pasted;
mod squeeze;

use std::process::Command;

use coldframe_kernel::{Guard, SwapKind};

/// Swap that is there until its guard ends.
fn zram() -> Guard {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    command.arg("kernel-guard");
    let mut guard = Guard::start(command, None).unwrap();
    guard.swap(&SwapKind::Zram, 256 << 20).unwrap();
    guard
}
