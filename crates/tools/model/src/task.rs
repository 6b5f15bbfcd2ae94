//! The pager's free tasks, unchanged.

#[path = "../../../product/live/src/task/free_tasks.rs"]
pub mod free_tasks;
