//! `coldframe-lab completions` and `coldframe-lab man`.

use std::process::ExitCode;

use coldframe_terminal::manual::{Completions, Man};
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;

impl Verb<Failure> for Completions {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        self.print(crate::command())?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Verb<Failure> for Man {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        self.print(crate::command())?;
        Ok(ExitCode::SUCCESS)
    }
}
