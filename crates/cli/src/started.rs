//! Verbs that a program of their own carries out. It is found beside this one or on PATH, as git and cargo find theirs,
//! and takes this one's place: its output and its exit code are the verb's.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::failure::Failure;

/// The started programs: their verbs, their names, and how to get them.
const PROGRAMS: [(&[&str], &str, &str); 1] = [(
    &["generate", "teach", "papers"],
    "coldframe-papers",
    "`make build` or `cargo install --path crates/figures` in coldframe's source tree builds it",
)];

/// What the started program reads.
#[derive(clap::Args)]
#[command(
    disable_help_flag = true,
    disable_version_flag = true,
    after_help = "With --help, the verb lists its arguments."
)]
pub struct Args {
    /// The verb's arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Starts the verb's program. Returns only if there is none.
pub fn run(verb: &str, args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    let found = PROGRAMS.iter().find(|(verbs, ..)| verbs.contains(&verb));
    let (_, name, remedy) = found.expect("every started verb has a row");
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name(name)).filter(|path| path.is_file());
    let mut program = Command::new(beside.unwrap_or_else(|| name.into()));
    let error = program.args(quiet.then_some("--quiet")).arg(verb).args(args.arguments).exec();
    let message =
        format!("`coldframe {verb}` is done by the program {name}, which cannot be started ({error}); {remedy}");
    Err(Failure::Other { message, code: 4 })
}
