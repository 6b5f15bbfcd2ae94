//! `--export FILE` of an answer for a board.

use std::path::PathBuf;

use coldframe_plots::board_export;
use coldframe_search::json;
use serde_json::Value;

use crate::failure::Failure;

/// Exports an answer for a board.
///
/// # Errors
/// A file cannot be written.
pub fn export_board(files: &[PathBuf], data: Value, words: String, within: Option<bool>) -> Result<(), Failure> {
    if files.is_empty() {
        return Ok(());
    }
    let mut page = coldframe_plots::html::Page::default();
    page.add("advice", data.to_string().as_bytes())?;
    let answer: json::Answer = serde_json::from_value(data).expect("it has just been made from one");
    Ok(board_export::exported(&answer, words, within).write(files, &page)?)
}
