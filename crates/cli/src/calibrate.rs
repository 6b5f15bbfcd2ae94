//! `coldframe calibrate`: this machine as a device.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_answer::calibrate::{calibrate, Extent};
use coldframe_answer::program::default_backing;
use coldframe_show::calibrated;

use crate::failure::Failure;
use crate::output;
use coldframe_terminal::listener::Terminal;

/// Measure what paging costs on this machine, for `--device here`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe calibrate
  coldframe calibrate --show --format json
  coldframe calibrate --backing /mnt/flash
  sudo coldframe calibrate --swap zram --swap /var/tmp/new.swap
  coldframe-lab devices here

This takes about 8 seconds. A pager in this process meets each event some thousand times, as the pager of `coldframe \
run` would. The thread that touches the memory times each event. `best` and `worst` are the means of the best and of \
the worst tenth of stretches of accesses. Stretches in which other programs had the processor do not count. Still, \
measure while the machine has nothing else to do.

The kernel's swap is measured, too: this process pushes out memory of its own and touches it again. If no swap is on, \
--swap makes one for this time.

The numbers are kept as the sheet of the device `here`, in ~/.cache/coldframe/here.toml, each with its source. They \
hold for one processor, kernel and disk; if one of these changes, they are measured again.

Exit codes: 0 done; 4 this machine cannot page (see `coldframe doctor`); 5 the swap file cannot be used.")]
pub struct Args {
    /// Folder (or block device, whose content is lost) for the swap file [default: the folder for temporary files, or /var/tmp
    /// if that is in RAM].
    #[arg(long)]
    backing: Option<PathBuf>,
    /// Measure this swap, too: make it, and take it away again. As root. May repeat.
    #[arg(long, value_name = "zram|FILE", conflicts_with = "show")]
    swap: Vec<String>,
    /// Show the last measurement. Measure only if there is none for this processor, kernel and disk.
    #[arg(long)]
    show: bool,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
    /// Measure for less than a second: for tests.
    #[arg(long, hide = true)]
    short: bool,
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    let backing = args.backing.unwrap_or_else(default_backing);
    let extent = if args.short { Extent::Short } else { Extent::Whole };
    let done = calibrate(&backing, &args.swap, args.show, extent, &Terminal::new(quiet))?;
    output::result(&args.format, &done, || calibrated::words(&done))?;
    Ok(ExitCode::SUCCESS)
}
