//! A table from a list of columns.

use coldframe_show::table::{styled, Grid};

/// A column of a table: its heading, and its cell in the row of an item.
pub(crate) type Column<T> = (&'static str, fn(&T) -> String);

/// One row for each item; the first `text` columns are no numbers.
pub(crate) fn columns<T>(columns: &[Column<T>], text: usize, items: &[T]) -> Grid {
    let headings: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
    let rows = items.iter().map(|item| columns.iter().map(|(_, cell)| cell(item)).collect());
    styled(&headings, rows.collect(), text)
}
