//! The program accepts what the documents and its help tell a reader to type: every `coldframe-lab` line is parsed.

use clap::Command;
use coldframe_toolbox::documents::{parse_documents, parse_examples};

fn parse(words: &[String]) -> Result<(), String> {
    match crate::command().try_get_matches_from(words) {
        Err(error) if !matches!(error.kind(), clap::error::ErrorKind::DisplayHelp) => Err(error.to_string()),
        _ => Ok(()),
    }
}

#[test]
fn every_command_in_the_documents_is_one_that_the_program_takes() {
    let tried = parse_documents("coldframe-lab", &parse);
    assert!(tried > 60, "only {tried} commands found: are the documents where they were?");
}

#[test]
fn every_example_in_the_help_is_one_that_the_program_takes() {
    fn tried(command: &Command) -> usize {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = parse_examples("coldframe-lab", &help, &parse);
        own + command.get_subcommands().map(tried).sum::<usize>()
    }
    let tried = tried(&crate::command());
    assert!(tried > 40, "only {tried} examples found");
}
