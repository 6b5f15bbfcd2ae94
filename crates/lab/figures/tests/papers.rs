//! The figures of every paper, as they were read last.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use coldframe_figures::figure::{Origin, Paper, Row};
use coldframe_figures::papers::{changed_predictions, line, rows, ALL};
use rayon::prelude::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// One line per figure of a paper, and the paper's line in the book.
fn figures_are_as_they_were_read_last(paper: &Paper) {
    let name = paper.name;
    let traces = root().join("data/traces");
    let computed = |short| rows(name, short, &traces, &mut |_| {}).expect("the shipped traces");
    let rows = computed(false);
    let marked = rows.iter().filter(|row| row.claim.is_some()).count();
    assert_eq!(marked, paper.claims.len(), "a headline of {name} names no row");
    let silent = rows.iter().find(|row| row.note.is_empty()).map(|row| &row.row);
    assert_eq!(silent, None, "a row does not say how it was found");
    let headlines: Vec<Row> = rows.iter().filter(|row| row.claim.is_some()).cloned().collect();
    assert_eq!(computed(true), headlines, "the short form has other rows");
    book_has(&line(paper, &rows));
    insta::assert_snapshot!(name, rows.iter().map(Row::snapshot_line).collect::<Vec<_>>().join("\n"));
}

/// With `COLDFRAME_WRITE_PAPERS` the line is written (`make papers-book`).
fn book_has(line: &str) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = root().join("docs/book/src/systems/combined.md");
    let text = std::fs::read_to_string(&path).expect("the page");
    let head = line.split_once('(').expect("a link").0;
    let now: String =
        text.lines().map(|old| if old.starts_with(head) { line } else { old }.to_string() + "\n").collect();
    if std::env::var_os("COLDFRAME_WRITE_PAPERS").is_some() {
        std::fs::write(path, now).expect("the page is written");
    } else {
        assert!(text == now && text.contains(line), "the page's line is stale; `make papers-book` writes it:\n{line}");
    }
}

#[test]
fn the_figures_of_every_paper_are_as_they_were_read_last() {
    ALL.par_iter().for_each(figures_are_as_they_were_read_last);
}

/// `--strict` is about predictions: what was fitted or put in is no news.
#[test]
fn a_prediction_that_is_not_where_it_stood_is_named() {
    let mut rows = rows("ddb", false, &root().join("data/traces"), &mut |_| {}).expect("the shipped traces");
    assert_eq!(changed_predictions(&rows), Vec::<String>::new());
    rows.iter_mut().for_each(|row| row.our_value += 0.1);
    let predicted = rows.iter().filter(|row| row.origin == Origin::Predicted).count();
    assert_eq!(changed_predictions(&rows).len(), predicted);
}
