//! Tables for a person.

use std::fmt;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent};

use crate::text::{page, wrap};

/// A table in the house style. On a narrow page ([`crate::text::fit`]) its text is cut, and its numbers go on below.
#[derive(Clone, Debug)]
pub struct Grid {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    text: usize,
    keys: usize,
}

/// A table in the house style: headings, rows, numbers right-aligned from column `text` on. A column of numbers with
/// only dashes is left out: no row has such a number.
pub fn styled(headings: &[&str], rows: Vec<Vec<String>>, text: usize) -> Grid {
    let has =
        |i: &usize| *i < text || rows.is_empty() || rows.iter().any(|row| row.get(*i).is_some_and(|cell| cell != "-"));
    let shown: Vec<usize> = (0..headings.len()).filter(has).collect();
    let cells = |row: &Vec<String>| shown.iter().map(|i| row.get(*i).cloned().unwrap_or_default()).collect();
    let rows = rows.iter().map(cells).collect();
    Grid { headings: shown.iter().map(|i| headings[*i].to_string()).collect(), rows, text, keys: text }
}

/// The width of a column in addition to its text: a blank on each side, and one between it and the next.
const PADDING: usize = 3;
/// The same where room is short: without the blank behind it.
const TIGHT: usize = 2;
/// The least width to which text is cut.
const CUT: usize = 12;

impl Grid {
    /// The first columns that say which row it is: they stand again where the numbers go on below.
    pub fn keys(self, keys: usize) -> Grid {
        Grid { keys, ..self }
    }

    /// The table for this many columns. Headings are broken first, then text is cut, then columns move together, and
    /// what has no room then goes on below. A table of text alone has all its words, in more lines.
    pub fn text(&self, width: usize) -> String {
        let all: Vec<usize> = (0..self.headings.len()).collect();
        if self.text >= all.len() {
            let mut table = self.table(&all, &[], PADDING);
            if taken(&all.iter().map(|column| self.whole(*column)).collect::<Vec<_>>(), PADDING) > width {
                table
                    .set_content_arrangement(ContentArrangement::Dynamic)
                    .set_width(width.try_into().unwrap_or(u16::MAX));
            }
            return table.to_string();
        }
        let (keys, mut left) = all.split_at(self.keys.min(all.len()));
        let fits = |shown: &[usize], padding| taken(&self.widths(shown, width, padding), padding) <= width;
        let padding = if fits(&all, PADDING) { PADDING } else { TIGHT };
        let mut tables = Vec::new();
        while !left.is_empty() {
            let more = (1..=left.len()).rev().find(|more| fits(&[keys, &left[..*more]].concat(), padding)).unwrap_or(1);
            let shown = [keys, &left[..more]].concat();
            tables.push(self.table(&shown, &self.widths(&shown, width, padding), padding).to_string());
            left = &left[more..];
        }
        tables.join("\n")
    }

    /// The widths of these columns, as near to this page as text can be cut.
    fn widths(&self, shown: &[usize], width: usize, padding: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = shown.iter().map(|column| self.whole(*column)).collect();
        if taken(&widths, padding) > width {
            widths =
                shown.iter().map(|column| self.cells(*column).max(longest_word(&self.headings[*column]))).collect();
        }
        while taken(&widths, padding) > width {
            let texts = widths.iter_mut().zip(shown).filter(|(width, column)| **column < self.text && **width > CUT);
            let Some((widest, _)) = texts.max_by_key(|(width, _)| **width) else { break };
            *widest -= 1;
        }
        widths
    }

    /// The width of a column's cells.
    fn cells(&self, column: usize) -> usize {
        self.rows.iter().flat_map(|row| row[column].lines()).map(columns).max().unwrap_or(0)
    }

    /// The same, with its heading.
    fn whole(&self, column: usize) -> usize {
        self.cells(column).max(columns(&self.headings[column]))
    }

    /// These columns, cut to their widths; without widths, as they are.
    fn table(&self, shown: &[usize], widths: &[usize], padding: usize) -> Table {
        let width = |position: usize| widths.get(position).copied().unwrap_or(usize::MAX);
        let heading = |(position, i): (usize, &usize)| wrap("", &self.headings[*i], 0, width(position)).join("\n");
        let cells = |row: &Vec<String>| {
            let cell =
                |(position, i): (usize, &usize)| row[*i].lines().map(|line| cut(line, width(position))).collect();
            shown.iter().enumerate().map(cell).map(|lines: Vec<String>| lines.join("\n")).collect::<Vec<_>>()
        };
        let mut table = Table::new();
        table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(shown.iter().enumerate().map(heading));
        table.remove_style(TableComponent::HorizontalLines);
        table.remove_style(TableComponent::MiddleIntersections);
        table.add_rows(self.rows.iter().map(cells));
        for (position, column) in shown.iter().enumerate() {
            let Some(shown) = table.column_mut(position) else { continue };
            shown.set_padding((1, u16::from(padding == PADDING)));
            if *column >= self.text {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The columns of a table with these widths.
fn taken(widths: &[usize], padding: usize) -> usize {
    widths.iter().map(|width| width + padding).sum::<usize>().saturating_sub(1)
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(columns).max().unwrap_or(0)
}

/// Text of at most this many columns; an ellipsis stands for the rest.
fn cut(text: &str, width: usize) -> String {
    match columns(text) > width {
        true => text.chars().take(width - 1).collect::<String>() + "…",
        false => text.into(),
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
        let rows = vec![row("clock"), row("pa-clock:budget=13,batch=4")];
        styled(&["policy", "true faults", "ratio", "walk"], rows, 1)
    }

    /// Each number of the table is in the text, whole, and no line is wider than the page.
    fn holds(grid: &Grid, width: usize) -> String {
        let text = grid.text(width);
        assert!(text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
        for number in grid.rows.iter().flat_map(|row| &row[grid.text..]) {
            let ended = text.lines().any(|line| format!("{line} ").contains(&format!(" {number} ")));
            assert!(ended, "{width}: {number} is missing:\n{text}");
        }
        text
    }

    #[test]
    fn headings_are_broken_then_text_is_cut_then_numbers_go_on_below() {
        let (grid, headings) = (grid(), |text: &str| text.matches("policy").count());
        // 26 + 11 + 5 + 4, and 11 between and around.
        assert!(holds(&grid, 57).contains(" true faults "));
        let text = holds(&grid, 56);
        assert!(!text.contains("true faults") && text.contains("budget=13,batch=4"), "{text}");
        let text = holds(&grid, 45);
        assert!(text.contains(" pa-clock:budget=13… ") && headings(&text) == 1, "{text}");
        // 12 + 6 + 5 + 4, and 7 between.
        assert!(holds(&grid, 34).contains(" pa-clock:bu…") && headings(&holds(&grid, 34)) == 1);
        let text = holds(&grid, 33);
        assert_eq!((headings(&text), text.matches(" pa-clock:bud").count()), (2, 2), "{text}");
        (25..60).for_each(|width| drop(holds(&grid, width)));
    }

    #[test]
    fn a_table_of_text_alone_has_all_its_words() {
        let grid = styled(&["", "what to do"], vec![vec!["swap".into(), "type some words of a remedy".into()]], 2);
        let words = grid.text(24).split_whitespace().map(String::from).collect::<Vec<_>>();
        assert!(words.join(" ").contains("remedy") && !words.concat().contains('…'), "{words:?}");
    }

    #[test]
    fn a_column_that_no_row_has_is_left_out() {
        let row = |life: &str| vec!["a".to_string(), "1".into(), life.into()];
        let shown = |rows| styled(&["name", "faults", "life"], rows, 1).text(80);
        assert!(!shown(vec![row("-"), row("-")]).contains("life"));
        assert!(shown(vec![row("-"), row("2 years")]).contains("life"));
    }
}
