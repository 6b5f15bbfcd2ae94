//! The hidden verbs, which coldframe starts itself: the process that joins groups and becomes a program, and the guard
//! that takes groups and swap away.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_answer::run_kernel;

use crate::failure::Failure;

/// What the hidden verb that becomes the program reads.
#[derive(clap::Args)]
pub struct StartArgs {
    /// Files that put this process into the groups.
    #[arg(long)]
    door: Vec<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Joins the groups and becomes the program.
pub fn start(args: StartArgs) -> Result<ExitCode, Failure> {
    Err(run_kernel::become_program(&args.door, &args.command).into())
}

/// The guard's process.
pub fn guard() -> Result<ExitCode, Failure> {
    let complaints = run_kernel::guard();
    complaints.iter().for_each(|complaint| eprintln!("coldframe: {complaint}"));
    Ok(ExitCode::from(if complaints.is_empty() { 0 } else { 5 }))
}
