//! The pager's free tasks, unchanged.

#[path = "../../live/src/task/free_tasks.rs"]
pub mod free_tasks;
