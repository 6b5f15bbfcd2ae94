//! Tables for a person.

use std::fmt;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent};

use crate::text::{folded, page};

/// A table in the house style. On a narrow page ([`crate::text::fit`]) it drops columns, and says which.
#[derive(Clone, Debug)]
pub struct Grid {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    text: usize,
    droppable: Vec<String>,
}

/// A table in the house style: headings, rows, numbers right-aligned from column `text` on. A column of numbers with
/// only dashes is dropped: no row has such a number.
pub fn styled(headings: &[&str], rows: Vec<Vec<String>>, text: usize) -> Grid {
    let has =
        |i: &usize| *i < text || rows.is_empty() || rows.iter().any(|row| row.get(*i).is_some_and(|cell| cell != "-"));
    let shown: Vec<usize> = (0..headings.len()).filter(has).collect();
    let cells = |row: &Vec<String>| shown.iter().filter_map(|i| row.get(*i).cloned()).collect();
    let rows = rows.iter().map(cells).collect();
    Grid { headings: shown.iter().map(|i| headings[*i].to_string()).collect(), rows, text, droppable: Vec::new() }
}

/// The width of a column in addition to its text: a blank on each side, and one between it and the next.
const PADDING: usize = 3;

impl Grid {
    /// The columns that a narrow page drops first, in this order; then columns of numbers are dropped from the right.
    pub fn drop_first(self, columns: &[&str]) -> Grid {
        Grid { droppable: columns.iter().map(ToString::to_string).collect(), ..self }
    }

    /// The table for this many columns, and the names of the dropped columns.
    pub fn within(&self, width: usize) -> (Table, Vec<&str>) {
        let mut shown: Vec<usize> = (0..self.headings.len()).collect();
        let wide = |shown: &[usize]| (shown.iter().map(|column| self.takes(*column)).sum::<usize>()).saturating_sub(1);
        let named = self.droppable.iter().filter_map(|name| self.headings.iter().position(|heading| heading == name));
        let right = (self.text + 1..self.headings.len()).rev();
        for column in named.chain(right) {
            if wide(&shown) <= width {
                break;
            }
            shown.retain(|other| *other != column);
        }
        let mut table = self.table(&shown);
        if wide(&shown) > width {
            let columns = u16::try_from(width).unwrap_or(u16::MAX);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        }
        let left = (0..self.headings.len()).filter(|column| !shown.contains(column));
        (table, left.map(|column| self.headings[column].as_str()).collect())
    }

    /// The table for this many columns, and a sentence with what is not shown.
    pub fn text(&self, width: usize) -> String {
        let (table, left) = self.within(width);
        match left.is_empty() {
            true => table.to_string(),
            false => {
                format!("{table}\n{}", folded(&format!("Not shown in {width} columns: {}.", left.join(", ")), width))
            }
        }
    }

    fn takes(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).chain([&self.headings[column]]);
        PADDING + cells.flat_map(|cell| cell.lines()).map(|line| line.chars().count()).max().unwrap_or(0)
    }

    fn table(&self, shown: &[usize]) -> Table {
        let cells =
            |row: &Vec<String>| shown.iter().map(|i| row.get(*i).cloned().unwrap_or_default()).collect::<Vec<_>>();
        let mut table = Table::new();
        table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(cells(&self.headings));
        table.remove_style(TableComponent::HorizontalLines);
        table.remove_style(TableComponent::MiddleIntersections);
        table.add_rows(self.rows.iter().map(cells));
        for (position, column) in shown.iter().enumerate() {
            if let (true, Some(column)) = (*column >= self.text, table.column_mut(position)) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(page().unwrap_or(usize::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let row = |name: &str| vec![name.to_string(), "12 345".into(), "0.25".into(), "7".into()];
        styled(&["policy", "faults", "ratio", "walk"], vec![row("clock"), row("pa-clock")], 1)
    }

    fn widest(table: &Table) -> usize {
        table.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn the_least_columns_go_first_then_those_on_the_right_and_the_first_number_stays() {
        let left = |width, first: &[&str]| {
            let grid = grid().drop_first(first);
            let (table, left) = grid.within(width);
            assert!(widest(&table) <= width, "{width}:\n{table}");
            left.join(" ")
        };
        assert_eq!(left(80, &["faults"]), "");
        // 11 + 9 + 8 + 7 - 1 columns.
        assert_eq!(left(34, &["ratio"]), "");
        assert_eq!(left(33, &["ratio"]), "ratio");
        assert_eq!(left(25, &["ratio"]), "ratio walk");
        assert_eq!(left(20, &[]), "ratio walk");
        // Then words are broken.
        assert_eq!(left(14, &[]), "ratio walk");
    }

    #[test]
    fn a_column_that_no_row_has_is_left_out() {
        let row = |life: &str| vec!["a".to_string(), "1".into(), life.into()];
        let shown = |rows| styled(&["name", "faults", "life"], rows, 1).within(80).0.to_string();
        assert!(!shown(vec![row("-"), row("-")]).contains("life"));
        assert!(shown(vec![row("-"), row("2 years")]).contains("life"));
    }
}
