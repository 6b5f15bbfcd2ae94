//! The answer for a board as a file of another form.

use coldframe_search::json::{Answer, Priced};
use coldframe_show::export::{Column, Exported};

/// The columns of a board's front.
const COLUMNS: [Column<Priced>; 7] = [
    ("ram_bytes", |one| one.ram_bytes.into()),
    ("paging_ps", |one| one.paging_ps.into()),
    ("own_time_ps", |one| one.own_time_ps.into()),
    ("true_faults", |one| one.true_faults.into()),
    ("page_loads", |one| one.page_loads.into()),
    ("page_writes", |one| one.page_writes.into()),
    ("longest_ps", |one| one.longest_ps.into()),
];

pub fn exported(answer: &Answer, words: String) -> Exported {
    let seconds = answer.best.as_ref().and_then(|best| best.own_time_ps).unwrap_or(0) as f64 / 1e12;
    Exported { seconds, ..Exported::new(&answer.trace.path, words, &COLUMNS, &answer.front, answer) }
}
