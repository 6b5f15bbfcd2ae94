//! What this machine allows, and how fast it is. The start of a pager and `coldframe doctor` ask; nothing here outlives
//! the question.

pub mod calibrate;
pub mod trials;
