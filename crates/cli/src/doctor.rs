//! `coldframe doctor`: what this machine allows.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_answer::{doctor, program};

use crate::failure::Failure;
use crate::output;

/// Check whether this machine allows `coldframe run`, and print what would mend it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe doctor
  coldframe doctor --all
  coldframe doctor --backing /mnt/flash --format json

Exit code 0 if `coldframe run` works here, 4 if not.")]
pub struct Args {
    /// Folder or block device for the swap file [default: the folder for temporary files, or /var/tmp if that is in RAM].
    #[arg(long)]
    backing: Option<PathBuf>,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
    /// Everything that was looked at, what is well too.
    #[arg(long)]
    all: bool,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let doctor = doctor::doctor(&args.backing.unwrap_or_else(program::default_backing));
    output::result(&args.format, &doctor, || coldframe_show::doctor::words(&doctor, args.all))?;
    Ok(ExitCode::from(if doctor.run_works { 0 } else { 4 }))
}
