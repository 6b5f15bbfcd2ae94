//! Every command of this program that a document, the help or a script tells a reader to type is one that it takes.

use std::path::Path;

use clap::CommandFactory;

/// The words of each command that begins with `coldframe VERB` in these lines.
fn commands(text: &str) -> Vec<Vec<String>> {
    let joined = text.replace("\\\n", " ").replace([';', '|'], "\n").replace(" > ", "\n");
    let verbs = ["papers", "teach", "generate"].map(|verb| format!("coldframe {verb}"));
    let own = |line: &&str| verbs.iter().any(|verb| *line == verb || line.starts_with(&format!("{verb} ")));
    joined.lines().map(str::trim).filter(own).map(|line| shlex::split(line).expect(line)).collect()
}

fn markdown(folder: &Path, found: &mut Vec<String>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !hidden && !path.ends_with("target") && !path.ends_with("generated") {
            markdown(&path, found);
        } else if path.extension().is_some_and(|suffix| suffix == "md") {
            // Commands are in blocks; a line of text may break in the middle of one.
            let text = std::fs::read_to_string(path).unwrap();
            found.extend(text.split("```").skip(1).step_by(2).map(String::from));
        }
    }
}

#[test]
fn every_command_in_documents_and_help_is_one_that_the_program_takes() {
    let mut texts = Vec::new();
    markdown(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), &mut texts);
    let program = crate::Cli::command();
    texts.extend(program.get_subcommands().map(|verb| verb.get_after_help().expect("examples").to_string()));
    let all: Vec<_> = texts.iter().flat_map(|text| commands(text)).collect();
    assert!(all.len() > 25, "only {} commands found", all.len());
    for words in all {
        let read = crate::Cli::command().try_get_matches_from(&words);
        assert!(read.is_ok(), "{words:?}: {}", read.unwrap_err());
    }
}
