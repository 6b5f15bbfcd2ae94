//! # coldframe-show: what a person sees
//!
//! - [`table`] and [`plot`] draw any table and plot as text, and [`png`] a plot as a picture.
//! - [`tasks_table`], [`foreground_table`], [`swap_table`] and [`swap_analysis`] show results of `experiment`.
//! - [`board_answer`] and [`machine_answer`] are the answers of `advise` in words.
//! - [`verdict_answer`] is the yes or no of `check -- PROGRAM`.
//! - [`html`] is a page with any of these, and [`export`] an answer as a file of another form.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod board_answer;
pub mod export;
pub mod foreground_table;
pub mod html;
pub mod machine_answer;
pub mod plot;
pub mod png;
pub mod swap_analysis;
pub mod swap_table;
pub mod table;
pub mod tasks_table;
pub mod verdict_answer;
