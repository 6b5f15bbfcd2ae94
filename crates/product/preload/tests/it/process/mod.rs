//! Forks, rights, limits and filters of system calls: what concerns a whole process.

mod exec;
mod filters;
mod fork;
mod identity;
mod init;
mod limits;
