//! The answer for a board as a file of another form.

use coldframe_search::json::Answer;
use coldframe_show::export::Exported;
use serde_json::Value;

/// The columns of a board's front.
const COLUMNS: [&str; 7] =
    ["ram_bytes", "paging_ps", "own_time_ps", "true_faults", "page_loads", "page_writes", "longest_ps"];

/// The answer with its words; `within`: if yes or no was asked.
///
/// # Panics
/// Never: an answer is plain data.
pub fn exported(answer: &Answer, words: String, within: Option<bool>) -> Exported {
    let json = serde_json::to_value(answer).expect("plain data has a JSON form");
    let row = |object: &Value| COLUMNS.iter().map(|column| object[*column].clone()).collect();
    let seconds = answer.best.as_ref().and_then(|best| best.own_time_ps).unwrap_or(0) as f64 / 1e12;
    Exported {
        program: answer.trace.path.clone(),
        within,
        words,
        columns: COLUMNS.to_vec(),
        rows: json["front"].as_array().into_iter().flatten().map(row).collect(),
        seconds,
        json,
    }
}
