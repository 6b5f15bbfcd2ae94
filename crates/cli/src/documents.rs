//! The program accepts what the documents tell a reader to type: every `coldframe` line of every `sh` block is
//! parsed, and every example of the help. `tests/documents.rs` runs the commands of README and the book.

use std::path::{Path, PathBuf};

use clap::CommandFactory;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn markdown_under(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && name != "generated" && !name.to_string_lossy().starts_with('.') {
            markdown_under(&path, found);
        } else if path.extension().is_some_and(|suffix| suffix == "md") {
            found.push(path);
        }
    }
}

/// The lines of a document's `sh` blocks, with continued lines joined, and the number of their first line.
fn shell_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let (mut inside, mut continued) = (false, false);
    for (number, line) in text.lines().enumerate() {
        match line.trim() {
            "```sh" => inside = true,
            fence if fence.starts_with("```") => inside = false,
            _ if inside && continued => lines.last_mut().unwrap().1 += line.trim_end_matches('\\'),
            _ if inside => lines.push((number + 1, line.trim_end_matches('\\').into())),
            _ => {}
        }
        continued = inside && line.ends_with('\\');
    }
    lines
}

/// The `coldframe` commands in a line of shell, each as its words.
fn commands(line: &str) -> Vec<Vec<String>> {
    let words = shlex::split(&line.replace(';', " ; ")).unwrap_or_else(|| panic!("not shell: {line}"));
    let ends = |word: &String| [";", "|", "||", "&&", ">", "<", "2>"].contains(&word.as_str());
    let parts = words.split(ends).map(<[String]>::to_vec);
    parts.filter(|words| words.first().is_some_and(|word| word == "coldframe")).collect()
}

/// Parses the commands of a line of shell. Returns the number of those that clap reads. `place`: the start of a
/// message.
fn parse(place: &str, line: &str) -> usize {
    let mut tried = 0;
    for words in commands(line) {
        let own: Vec<_> = words[1..].iter().map(std::ffi::OsString::from).collect();
        if crate::one_go::Asked::read(&own).is_some() {
            continue;
        }
        tried += 1;
        let parsed = crate::Cli::command().try_get_matches_from(&words);
        let help = |e: &clap::Error| matches!(e.kind(), clap::error::ErrorKind::DisplayHelp);
        if let Err(error) = parsed.as_ref().map_err(|e| (help(e), e.to_string())) {
            assert!(error.0, "{place}: {line}\n{}", error.1);
        }
    }
    tried
}

#[test]
fn every_command_in_the_documents_is_one_that_the_program_takes() {
    let mut documents = Vec::new();
    markdown_under(&root(), &mut documents);
    let mut tried = 0;
    for document in documents {
        for (number, line) in shell_lines(&std::fs::read_to_string(&document).unwrap()) {
            tried += parse(&format!("{}:{number}", document.display()), &line);
        }
    }
    assert!(tried > 80, "only {tried} commands found: are the documents where they were?");
}

#[test]
fn every_example_in_the_help_is_one_that_the_program_takes() {
    let program = crate::Cli::command();
    let mut tried = 0;
    for verb in program.get_subcommands().chain([&program]) {
        let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = after.lines().skip_while(|line| *line != "Examples:").skip(1);
        for line in lines.take_while(|line| !line.is_empty()) {
            tried += parse(&format!("help of {}", verb.get_name()), line);
        }
    }
    assert!(tried > 60, "only {tried} examples found");
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
    let mut there = Vec::new();
    markdown_under(&book, &mut there);
    named.sort();
    there.sort();
    assert_eq!(named, there);
}

#[test]
fn links_and_includes_of_the_book_lead_somewhere() {
    let mut pages = Vec::new();
    markdown_under(&root().join("docs/book/src"), &mut pages);
    for page in pages {
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
