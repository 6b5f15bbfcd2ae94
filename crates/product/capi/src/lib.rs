//! Demand paging for C programs: `include/coldframe.h`, which cbindgen makes from these files.
//!
//! Handles are opaque. A function that can fail returns a [`status::Status`]; `coldframe_last_error` has the thread's
//! message. No panic leaves this library. It prints only if a page is lost permanently.

pub mod options;
pub mod pager;
pub mod region;
pub mod status;
