//! Prefetching: which pages are worth loading before a task stands still for them. A machine asks here when a fault comes, keeps those
//! pages that exist and have content, and wishes for them with `Event::WillNeed`.

mod streams;

pub use streams::Streams;
