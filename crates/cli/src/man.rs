//! `coldframe man`: manual pages, generated from the definition of the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::failure::Failure;
use crate::output;

/// Print the manual page, or write one for each verb into a folder.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  coldframe man | man -l -\n  coldframe man --dir ~/.local/share/man/man1")]
pub struct Args {
    /// The folder for the pages of all verbs.
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let command = crate::Cli::command();
    let failed = |e: std::io::Error| Failure::Other { message: format!("the manual cannot be written: {e}"), code: 5 };
    match args.dir {
        Some(dir) => {
            std::fs::create_dir_all(&dir).map_err(failed)?;
            clap_mangen::generate_to(command, dir).map_err(failed)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).map_err(failed)?;
            output::exact(None, &String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
