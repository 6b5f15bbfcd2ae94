//! `coldframe completions`: completion scripts for shells.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

/// Print the completion script of a shell.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  coldframe completions bash > ~/.local/share/bash-completion/completions/coldframe\n  coldframe completions zsh > _coldframe"
)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "coldframe", &mut script);
    output::exact(None, &String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
