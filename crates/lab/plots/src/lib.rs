//! # coldframe-plots: results of the simulator for a person
//!
//! - [`results_table`], [`tasks_table`], [`swap_table`] and [`swap_analysis`] show results of
//!   `experiment`.
//! - [`board_answer`] is the answer of `search` in words.
//! - [`html`] is a page with any of these, and [`board_export`] an answer of `search` as a file of another form.
#![forbid(unsafe_code)]

pub mod board_answer;
pub mod board_export;
pub mod html;
pub mod results_table;
pub mod swap_analysis;
pub mod swap_table;
pub mod tasks_table;

use coldframe_show::table::{styled, Grid};

/// A column of a table: its heading, and its cell in the row of an item.
type Column<T> = (&'static str, fn(&T) -> String);

/// One row for each item; the first `text` columns are no numbers.
fn columns<T>(columns: &[Column<T>], text: usize, items: &[T]) -> Grid {
    let headings: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
    let rows = items.iter().map(|item| columns.iter().map(|(_, cell)| cell(item)).collect());
    styled(&headings, rows.collect(), text)
}
