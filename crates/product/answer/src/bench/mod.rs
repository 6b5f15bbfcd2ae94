//! Programs that run again and again, plain and in less RAM, and what their runs decide.

pub mod alone;
pub mod check;
pub mod compare;
pub mod compared;
pub mod evidence;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod fit;
pub mod jobs;
pub mod limit;
pub mod limit_answer;
pub mod log;
pub mod measure;
pub mod need;
pub mod plan;
pub mod rules;
pub mod runner;
pub mod search;
#[cfg(test)]
mod tests;
pub mod trial;
pub mod verdict;
