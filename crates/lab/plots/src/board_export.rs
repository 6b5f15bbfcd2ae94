//! The answer for a board as a file of another form.

use coldframe_search::json::{Answer, Priced};
use coldframe_show::export::{names, Column, Exported};

/// The columns of a board's front.
const COLUMNS: [Column<Priced>; 7] = [
    (names("ram_bytes", "RAM", "RAM of the board"), |one| one.ram_bytes.into()),
    (names("paging_ps", "paging", "Time that paging takes"), |one| one.paging_ps.into()),
    (names("own_time_ps", "own time", "The program's own time"), |one| one.own_time_ps.into()),
    (names("true_faults", "true faults", "True faults"), |one| one.true_faults.into()),
    (names("page_loads", "page loads", "Pages loaded from the device"), |one| one.page_loads.into()),
    (names("page_writes", "page writes", "Pages written to the device"), |one| one.page_writes.into()),
    (names("longest_ps", "longest fault", "Longest fault"), |one| one.longest_ps.into()),
];

pub fn exported(answer: &Answer, words: String) -> Exported {
    let seconds = answer.best.as_ref().and_then(|best| best.own_time_ps).unwrap_or(0) as f64 / 1e12;
    Exported { seconds, ..Exported::new(&answer.trace.path, words, &COLUMNS, &answer.front, answer) }
}
