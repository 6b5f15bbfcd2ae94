//! `coldframe doctor`: what this machine allows; what paging costs on it; and the right to page, for a group of users.

use std::process::ExitCode;

use coldframe_answer::machine::calibrate::{calibrate, Extent};
use coldframe_answer::machine::doctor::doctor;
use coldframe_answer::machine::setup::setup;
use coldframe_show::{calibrated, doctor as shown};
use coldframe_terminal::listener::Terminal;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::flags::{Backing, Form};
use crate::output;

/// Say what this machine allows and how to mend it; measure it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe doctor --all
  coldframe doctor --backing /mnt/flash --format json
  coldframe doctor --calibrate
  sudo coldframe doctor --calibrate --swap zram --swap /var/tmp/new.swap
  sudo coldframe doctor --setup

--calibrate takes about 8 seconds. A pager in this process meets each event some thousand times, as the pager of \
`coldframe run` would. The thread that touches the memory times each event. `best` and `worst` are the means of the \
best \
and of the worst tenth of stretches of accesses. Stretches in which other programs had the processor do not count. \
Still, \
measure while the machine has nothing else to do. The kernel's swap is measured, too: this process pushes out memory \
of its \
own and touches it again. If no swap is on, --swap makes one for this time.
The numbers are kept as the sheet of the device `here`, in ~/.cache/coldframe/here.toml, each with its source. They \
hold for one processor, kernel and disk; if one of these changes, they are measured again.

--setup makes the group `coldframe`, writes a rule for udev that lets this group open /dev/userfaultfd and \
/dev/cpu_dma_latency (it keeps processors awake while faults come fast), applies it now, and \
adds the user who calls sudo to the group. Members of the group can delay system calls of their own programs: the \
kernel's \
developers keep that from other users because it has made bugs of the kernel easier to exploit.

Exit codes: 0 `coldframe run` works here, or done; 4 it does not, this machine cannot page, or --setup is not root; \
5 the swap file cannot be used, or something cannot be written.")]
pub struct Args {
    #[command(flatten)]
    backing: Backing,
    #[command(flatten)]
    form: Form,
    /// Everything that was examined, not only what is wrong.
    #[arg(long, conflicts_with_all = ["calibrate", "setup"])]
    all: bool,
    /// Measure what paging costs on this machine.
    #[arg(long)]
    calibrate: bool,
    /// Show the last measurement. Measure only if there is none for this processor, kernel and disk.
    #[arg(long, requires = "calibrate")]
    show: bool,
    /// Measure this swap, too: make it, and take it away again. As root. May repeat.
    #[arg(long, value_name = "zram|FILE", requires = "calibrate", conflicts_with = "show")]
    swap: Vec<String>,
    /// Measure for less than a second: for tests.
    #[arg(long, requires = "calibrate", hide = true)]
    short: bool,
    /// Give users the right to page their programs, once. As root.
    #[arg(long, conflicts_with_all = ["calibrate", "format", "backing"])]
    setup: bool,
    /// A user to add to the group [default: the one who calls sudo].
    #[arg(long, value_name = "NAME", requires = "setup", conflicts_with = "undo")]
    user: Option<String>,
    /// Remove the rule and the group, and give the device back to root.
    #[arg(long, requires = "setup")]
    undo: bool,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        if self.setup {
            // Nobody may read it any more: what it tells has been done.
            let say = |text: &str| drop(output::exact(None, &format!("{text}\n")));
            setup(self.user, self.undo, &|text| {
                if !quiet {
                    say(text)
                }
            })?;
            return Ok(ExitCode::SUCCESS);
        }
        let backing = self.backing.folder();
        if self.calibrate {
            let extent = if self.short { Extent::Short } else { Extent::Whole };
            let done = calibrate(&backing, &self.swap, self.show, extent, &Terminal::new(quiet))?;
            self.form.print(&done, || calibrated::words(&done))?;
            return Ok(ExitCode::SUCCESS);
        }
        let doctor = doctor(&backing);
        self.form.print(&doctor, || shown::words(&doctor, self.all))?;
        Ok(ExitCode::from(if doctor.run_works { 0 } else { 4 }))
    }
}
