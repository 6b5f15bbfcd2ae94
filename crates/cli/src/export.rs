//! `--export FILE`: an answer as a file; its suffix says the form.

use std::path::{Path, PathBuf};

use coldframe_answer::Answer;
use coldframe_plots::board_export;
use coldframe_search::json;
use coldframe_show::export::{Exported, SUFFIXES};
use coldframe_show::html::{Html, Page};
use serde_json::Value;

use crate::failure::Failure;
use crate::output;

fn suffix(path: &Path) -> Option<&'static str> {
    let given = path.extension()?.to_str()?;
    SUFFIXES.into_iter().find(|suffix| given.eq_ignore_ascii_case(suffix))
}

/// Whether all files have a suffix that is a form. Asked before a program runs for minutes.
///
/// # Errors
/// One has none.
pub fn known(files: &[PathBuf]) -> Result<(), Failure> {
    match files.iter().find(|file| suffix(file).is_none()) {
        None => Ok(()),
        Some(file) => {
            let (all, file) = (SUFFIXES.join(", ."), file.display());
            Err(Failure::usage(format!("--export {file}: the suffix says the form, and can be .{all}")))
        }
    }
}

/// Whether all files have a suffix for a table: no page, and no test report.
///
/// # Errors
/// One has not.
pub fn tables(files: &[PathBuf]) -> Result<(), Failure> {
    known(files)?;
    match files.iter().find(|file| matches!(suffix(file), Some("html" | "xml"))) {
        None => Ok(()),
        Some(file) => Err(Failure::usage(format!("--export {}: give .json, .csv, .md or .prom", file.display()))),
    }
}

/// Exports an answer that has no page.
///
/// # Errors
/// As [`all`].
pub fn export_table(files: &[PathBuf], exported: &Exported) -> Result<(), Failure> {
    all(files, exported, &Page::default())
}

/// Writes the files.
///
/// # Errors
/// As [`Exported::text`]; a file cannot be written.
pub fn all(files: &[PathBuf], exported: &Exported, page: &dyn Html) -> Result<(), Failure> {
    known(files)?;
    for file in files {
        output::write(Some(file), &exported.text(suffix(file).unwrap_or_default(), page)?)?;
    }
    Ok(())
}

/// Exports an answer for a board.
///
/// # Errors
/// As [`all`].
pub fn export_board(files: &[PathBuf], data: Value, said: String, within: Option<bool>) -> Result<(), Failure> {
    if files.is_empty() {
        return Ok(());
    }
    let mut page = coldframe_plots::html::Page::default();
    page.add("advice", data.to_string().as_bytes())?;
    let answer: json::Answer = serde_json::from_value(data).expect("it has just been made from one");
    all(files, &board_export::exported(&answer, said, within), &page)
}

/// Exports an answer for this machine.
///
/// # Errors
/// As [`all`].
pub fn export_here(files: &[PathBuf], answer: &Answer, exported: &Exported) -> Result<(), Failure> {
    if files.is_empty() {
        return Ok(());
    }
    all(files, exported, &Page::of(answer))
}
