//! A page fault: the state of its page, the engine's decision under the engine's lock, and the work that follows. The
//! pager's threads call it for messages; regions call it for pages that they need.

pub mod machine;
pub mod pager;
#[cfg(test)]
mod stale_faults;
