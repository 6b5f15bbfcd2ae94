//! The pager's own threads and the process that they are in: handlers, the reclaimer, the keeper. The start of a pager
//! and a fork begin and end them. No other room waits for them by name.

pub mod handlers;
pub mod keeper;
pub mod reclaim;
