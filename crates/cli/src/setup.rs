//! `coldframe setup`: gives a group the right to page, once.

use std::process::ExitCode;

use coldframe_answer::setup::setup;

use crate::failure::Failure;
use crate::output;

/// Give users the right to page their programs, once: `sudo coldframe setup`.
///
/// Makes the group `coldframe`, writes a rule for udev that lets this group open /dev/userfaultfd, applies it now, and
/// adds the user who calls sudo to the group. Members of the group can delay system calls of their own programs: the
/// kernel's developers keep that from other users because it has made bugs of the kernel easier to exploit.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo coldframe setup
  sudo coldframe setup --user alice
  sudo coldframe setup --undo

Exit codes: 0 done; 4 not root, or this kernel has no /dev/userfaultfd; 5 something cannot be written.")]
pub struct Args {
    /// A user to add to the group [default: the one who calls sudo].
    #[arg(long, value_name = "NAME", conflicts_with = "undo")]
    user: Option<String>,
    /// Remove rule and group, and give the device back to root.
    #[arg(long)]
    undo: bool,
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    setup(args.user, args.undo, &|text| {
        if !quiet {
            // Nobody may read it any more: what it tells has been done.
            let _ = output::exact(None, &format!("{text}\n"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
