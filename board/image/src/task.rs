//! A task's registers while another one runs.

use crate::mmu::{MEGABYTE, PAGED, TASK_MEGABYTES};

/// The registers of user mode, as `start.rs` lays them out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Registers {
    /// r0 to r14.
    general: [u32; 15],
    status: u32,
    next_instruction: u32,
}

/// User mode, interrupts open.
const USER: u32 = 0x10;

/// Where a task's program starts: at the first byte of its paged space.
pub const fn entry(task: u32) -> u32 {
    PAGED + task * TASK_MEGABYTES * MEGABYTE
}

impl Registers {
    /// Those of a task that has not begun. Its program sets its stack itself.
    pub const fn at_start(task: u32) -> Registers {
        Registers { general: [0; 15], status: USER, next_instruction: entry(task) }
    }
}
