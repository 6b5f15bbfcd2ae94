//! The program accepts what the documents tell a reader to type: every `coldframe` line of every `sh` block is
//! parsed, and every example of the help. `tests/documents.rs` runs the commands of README and the book.

use std::path::{Path, PathBuf};

use clap::CommandFactory;
use coldframe_toolbox::documents::{markdown_under, parse_documents, parse_examples};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn parse(words: &[String]) -> Result<(), String> {
    match crate::Cli::command().try_get_matches_from(words) {
        Err(error) if !matches!(error.kind(), clap::error::ErrorKind::DisplayHelp) => Err(error.to_string()),
        _ => Ok(()),
    }
}

#[test]
fn every_command_in_the_documents_is_one_that_the_program_takes() {
    let tried = parse_documents("coldframe", &parse);
    assert!(tried > 30, "only {tried} commands found: are the documents where they were?");
}

#[test]
fn every_example_in_the_help_is_one_that_the_program_takes() {
    let program = crate::Cli::command();
    let helps = program.get_subcommands().chain([&program]).filter_map(|verb| verb.get_after_help());
    let tried: usize = helps.map(|help| parse_examples("coldframe", &help.to_string(), &parse)).sum();
    assert!(tried > 30, "only {tried} examples found");
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
