//! `--export FILE` of an answer for a board.

use std::path::PathBuf;

use coldframe_plots::board_export;
use coldframe_plots::html::Page;
use coldframe_search::json::Answer;

use crate::failure::Failure;

/// Exports an answer for a board.
///
/// # Errors
/// A file cannot be written.
pub fn export_board(files: &[PathBuf], answer: &Answer, words: String, within: Option<bool>) -> Result<(), Failure> {
    Ok(board_export::exported(answer, words, within).write(files, &Page::of(answer))?)
}
