//! Manual pages and completion scripts, generated from the definition of a command line: the verbs `completions` and
//! `man`.

use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;

use crate::output::{self, OutputError};

/// Print the completion script of a shell.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  coldframe completions bash > ~/.local/share/bash-completion/completions/coldframe\n  \
                  coldframe completions zsh > _coldframe"
)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    /// Prints it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn print(&self, mut command: Command) -> Result<(), OutputError> {
        let name = command.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        output::exact(None, &String::from_utf8_lossy(&script))
    }
}

/// Print the manual page, or write one for each verb into a folder.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  coldframe man | man -l -\n  coldframe man --dir ~/.local/share/man/man1")]
pub struct Man {
    /// The folder for the pages of all verbs.
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Man {
    /// Prints or writes them.
    ///
    /// # Errors
    /// A page cannot be written.
    pub fn print(&self, command: Command) -> Result<(), OutputError> {
        let Some(folder) = &self.dir else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).map_err(OutputError::for_path("the manual"))?;
            return output::exact(None, &String::from_utf8_lossy(&page));
        };
        let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
        written.map_err(OutputError::for_path(folder))
    }
}
