//! The hidden verbs, which coldframe starts itself: the process that joins groups and becomes a program, and the guard
//! that takes groups and swap away.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_answer::run::by_kernel;
use coldframe_answer::run::guards;

use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::flags::Program;

/// Joins groups and becomes a program: `run --by kernel` starts it.
#[derive(clap::Args)]
pub struct StartArgs {
    /// Files that put this process into the groups.
    #[arg(long)]
    door: Vec<PathBuf>,
    #[command(flatten)]
    program: Program,
}

impl Verb<Failure> for StartArgs {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        Err(by_kernel::become_program(&self.door, &self.program.words).into())
    }
}

/// Takes groups and swap away when its input ends: `run --by kernel`, `squeeze` and `park` start it.
#[derive(clap::Args)]
pub struct GuardArgs {}

impl Verb<Failure> for GuardArgs {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        let done = guards::serve(|complaint| eprintln!("coldframe: {complaint}"));
        Ok(ExitCode::from(if done { 0 } else { 5 }))
    }
}
