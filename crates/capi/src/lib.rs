//! Demand paging for C programs: `include/coldframe.h`, which cbindgen makes from these files.
//!
//! Handles are opaque. A function that can fail answers with a [`status::Status`], and the words for it are the thread's
//! `coldframe_last_error`. No panic leaves here, and nothing is printed but what must be said when a page is lost for good.

pub mod options;
pub mod pager;
pub mod region;
pub mod status;
