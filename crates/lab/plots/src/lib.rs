//! # coldframe-plots: results of the simulator for a person
//!
//! - [`sim`] has the words of simulated runs; [`results_table`], [`tasks_table`], [`swap_table`], [`swap_analysis`],
//!   [`results_csv`] and [`results_plot`] their tables and pictures.
//! - [`trace_info`] and [`trace_map`] show a trace.
//! - [`board_answer`] is the answer of `search` in words.
//! - [`priced`] is what a run under our pager would have cost on a flash or in slow memory.
//! - [`png`] draws any of the pictures in pixels.
//! - [`html`] is a page with any of these, and [`board_export`] an answer of `search` as a file of another form.
#![forbid(unsafe_code)]

pub mod board_answer;
pub mod board_export;
mod columns;
pub mod html;
pub mod png;
pub mod priced;
pub mod results_csv;
pub mod results_plot;
pub mod results_table;
pub mod sim;
pub mod swap_analysis;
pub mod swap_table;
pub mod tasks_table;
pub mod trace_info;
pub mod trace_map;
