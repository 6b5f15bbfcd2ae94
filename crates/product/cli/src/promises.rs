//! What is promised of every row of the verbs: a help that fits, an example that the program takes, a schema; and what
//! is promised of the documents: every `coldframe` line of every `sh` block is one that the program takes.
//! `tests/it/documents.rs` runs the commands of README and the book.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use coldframe_toolbox::documents::{markdown_under, parse_code, parse_documents, parse_examples, sources};

use crate::moved::MOVED;
use crate::VERBS;

/// Lines and columns of a small terminal.
const SCREEN: (usize, usize) = (41, 80);
/// The most verbs and options that a reader is shown, the program without a verb among them.
const VERBS_MAX: usize = 15;
const OPTIONS_MAX: usize = 16;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn parse(words: &[String]) -> Result<(), String> {
    match crate::command().try_get_matches_from(words) {
        Err(error) if error.kind() != ErrorKind::DisplayHelp => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// The help of a verb, or of the program, in so many columns.
fn help(verb: Option<&str>, columns: usize) -> String {
    let words = ["coldframe"].into_iter().chain(verb).chain(["--help"]);
    let shown = crate::command().term_width(columns).try_get_matches_from(words).unwrap_err();
    assert_eq!(shown.kind(), ErrorKind::DisplayHelp);
    shown.to_string()
}

fn shown_verbs() -> Vec<&'static str> {
    VERBS.iter().filter(|row| row.group.is_some()).map(|row| row.name).collect()
}

#[test]
fn help_of_the_program_fits_a_screen_and_names_every_verb() {
    let help = help(None, SCREEN.1);
    assert!(help.lines().count() <= SCREEN.0, "{} lines:\n{help}", help.lines().count());
    assert!(help.lines().all(|line| line.chars().count() <= SCREEN.1), "{help}");
    let usage = help.lines().find(|line| line.starts_with("Usage:"));
    assert_eq!(usage, Some("Usage: coldframe [OPTIONS] -- PROGRAM..."));
    let verbs = shown_verbs();
    assert!(verbs.len() < VERBS_MAX && verbs.iter().all(|verb| help.contains(&format!("\n  {verb} "))), "{help}");
}

#[test]
fn help_of_every_verb_fits_and_has_two_examples_that_the_program_takes() {
    for verb in shown_verbs() {
        for columns in [80, 120] {
            let help = help(Some(verb), columns);
            // A single word may be a path, which must not be broken.
            let wide = help.lines().find(|line| line.chars().count() > columns && line.trim().contains(' '));
            assert_eq!(wide, None, "{verb}, {columns} columns");
        }
        let help = help(Some(verb), 0);
        assert!(parse_examples("coldframe", &help, &parse) >= 2, "{help}");
        let options = help.lines().filter(|line| line.trim_start().starts_with('-')).count();
        assert!(options <= OPTIONS_MAX + 3, "{verb}: {options} options");
    }
}

#[test]
fn help_of_every_verb_is_as_it_was_read_last() {
    let all = [None].into_iter().chain(shown_verbs().into_iter().map(Some));
    let text: String = all
        .map(|verb| {
            format!(
                "$ coldframe {}--help\n{}\n",
                verb.map_or(String::new(), |verb| format!("{verb} ")),
                help(verb, 100)
            )
        })
        .collect();
    insta::assert_snapshot!("help", text);
}

#[test]
fn every_command_in_the_documents_is_one_that_the_program_takes() {
    let tried = parse_documents("coldframe", &parse);
    assert!(tried > 30, "only {tried} commands found: are the documents where they were?");
}

#[test]
fn every_command_that_an_answer_or_a_remedy_names_is_one_that_the_program_takes() {
    let tried = parse_code("coldframe", &parse);
    assert!(tried > 15, "only {tried} commands found: are the sources where they were?");
}

#[test]
fn lines_to_paste_are_made_in_one_place() {
    let marks = [
        "MemoryHigh=",
        "MemoryMax=",
        "mem_limit:",
        "{memory: ",
        "xdg-open {",
        "coldframe run {",
        "coldframe squeeze -",
    ];
    for (file, strings) in sources() {
        let names = file.display().to_string();
        // Help and the settings of the kubelet, which `paste/settings.rs` prints.
        let others = ["show/src/paste/", "cli/src/", "machine/killers.rs"];
        let mark = marks.iter().find(|mark| strings.contains(*mark));
        let found = mark.filter(|_| !others.iter().any(|other| names.contains(other)));
        assert_eq!(found, None, "{names}: make this line in show/src/paste, where tests paste it");
    }
}

#[test]
fn a_word_that_is_no_verb_gets_the_command_to_type() {
    let failure = |line: &str| {
        let words: Vec<_> = line.split(' ').map(std::ffi::OsString::from).collect();
        let error = crate::command().try_get_matches_from(&words).expect_err(line);
        crate::moved::failure(&words, &error).map(|failure| failure.to_string())
    };
    for (old, new) in MOVED {
        let sentence = failure(&format!("coldframe -q {old} a b")).unwrap();
        assert!(sentence.ends_with(&format!("; type: {new} -q a b")), "{sentence}");
    }
    let sentence = failure("coldframe --ram 4MiB sort file").unwrap();
    assert!(sentence.ends_with("type: coldframe --ram 4MiB -- sort file"), "{sentence}");
    assert_eq!(failure("coldframe run"), None);
    assert_eq!(failure("coldframe --nonsense"), None);
}

#[test]
fn the_book_has_every_page_that_its_contents_name_and_no_other() {
    let book = root().join("docs/book/src");
    let summary = std::fs::read_to_string(book.join("SUMMARY.md")).unwrap();
    let mut named: Vec<PathBuf> = summary
        .split("](")
        .skip(1)
        .map(|rest| book.join(rest.split(')').next().unwrap()))
        .chain([book.join("SUMMARY.md")])
        .collect();
    let mut there = markdown_under(&book);
    named.sort();
    there.sort();
    assert_eq!(named, there);
}

#[test]
fn links_and_includes_of_the_book_lead_somewhere() {
    for page in markdown_under(&root().join("docs/book/src")) {
        let text = std::fs::read_to_string(&page).unwrap();
        let links = text.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap());
        let includes = text.split("{{#include ").skip(1).map(|rest| rest.split([':', '}']).next().unwrap());
        for target in
            links.chain(includes).filter(|to| !to.is_empty() && !to.contains("://") && !to.contains("generated/"))
        {
            assert!(page.parent().unwrap().join(target).exists(), "{}: {target} is not there", page.display());
        }
    }
}
