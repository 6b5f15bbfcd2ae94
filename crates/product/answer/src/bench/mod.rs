//! Programs that run again and again, plain and in less RAM, and what their runs decide.

pub mod check;
pub mod compare;
pub mod compared;
pub mod measure;
pub mod need;
pub mod page_cache;
pub mod pair;
pub mod runner;
pub mod trials;
pub mod verdict;
