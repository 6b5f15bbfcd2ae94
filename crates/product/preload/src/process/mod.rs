//! Forks, and what a program sets for its whole process: limits, filters of system calls, signals to all processes.

pub mod exec;
pub mod files;
pub mod filter;
pub mod fork;
pub mod kill;
pub mod limits;
pub mod wait;
