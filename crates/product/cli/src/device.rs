//! `coldframe device`: how little RAM this device can live with, which zram it needs, and how long its flash lasts.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::device::{look, read, trial, DeviceAnswer, WatchOptions};
use coldframe_answer::run::guards;
use coldframe_answer::AnswerError;
use coldframe_sheet::sheet;
use coldframe_show::device;
use coldframe_terminal::listener::Terminal;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::flags::{time, Form};

/// How little RAM this device needs; its zram, its flash's life.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo coldframe device
  sudo coldframe device --for 24h --save day.json --device my-card.toml
  sudo coldframe device --for 24h --save day.json --resume
  coldframe device --from day.json --device my-card.toml
  sudo coldframe device --for 1h --apply

All processes are watched by the referenced bits of their pages, for about 1 % of a processor's time (more below a \
minute). Nothing is changed. Some pages are read and compressed as zram would compress them. The answer has the RAM \
that was needed, and for this RAM and less: the size of a zram, how long processes wait, what is written to flash, and \
from an hour on the flash's life; then lines to paste, also for systemd-oomd, earlyoom, lmkd or the kubelet. Watch \
the device while it does its ordinary work. Ctrl-C ends it with what is known by then.

--apply then makes the recommended zram, counts for the same time again, compares, and puts everything back. A guard \
process does this, also if coldframe is killed.

Exit codes: 0 done; 2 usage; 3 a file cannot be read; 4 not root, a container, or the kernel lacks a feature.")]
pub struct Args {
    /// How long to watch.
    #[arg(long = "for", value_name = "TIME", value_parser = time, default_value = "10m")]
    time: Duration,
    /// A window for the RAM that was needed [default: a thirtieth of the time, from 1 s to a minute].
    #[arg(long, value_name = "TIME", value_parser = time)]
    every: Option<Duration>,
    /// Keep what was watched in this file, while it is watched.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Go on with what the file of --save has.
    #[arg(long, requires = "save")]
    resume: bool,
    /// Do not watch: answer from a file of --save, of any device.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["save", "every", "apply"])]
    from: Option<PathBuf>,
    /// The sheet of the flash: its name (`coldframe-lab devices`) or file.
    #[arg(long, value_name = "SHEET")]
    device: Option<String>,
    /// Thresholds for all programs that kill when memory runs out, not only this machine's.
    #[arg(long)]
    killers: bool,
    /// Try the recommended zram for the same time, compare, and put everything back.
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    form: Form,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let listener = Terminal::new(quiet);
        guards::warn(&listener);
        if self.time.is_zero() {
            return Err(Failure::usage("--for 0s watches nothing; give at least 1s"));
        }
        let sheet = self.device.as_deref().map(sheet::find).transpose().map_err(AnswerError::from)?;
        let seen = match self.from {
            Some(path) => read(&path)?,
            None => {
                let options = WatchOptions { time: self.time, every: self.every, save: self.save, resume: self.resume };
                look(&options, &listener)?
            }
        };
        let answer = DeviceAnswer::new(seen, sheet.as_ref());
        if !self.apply {
            self.form.print(&answer, || device::words(&answer, self.killers, 0))?;
            return Ok(ExitCode::SUCCESS);
        }
        let done = trial(&answer, &listener)?;
        let shown = device::trial(&done);
        self.form.print(&done, || device::words(&answer, self.killers, shown.lines().count()) + &shown)?;
        Ok(ExitCode::SUCCESS)
    }
}
