//! Forks, rights, limits and filters of system calls: what concerns a whole process.

mod filters;
mod fork;
mod identity;
mod init;
mod limits;
