//! `coldframe check`: yes or no about a program, by the exit code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::check::{check, Check};
use coldframe_answer::Need;
use coldframe_show::export::{self, Exported};
use coldframe_show::html::Page;
use coldframe_show::verdict_answer;

use crate::failure::Failure;
use crate::flags::{percent, size, time, Form};
use crate::output;
use coldframe_terminal::listener::Terminal;
use coldframe_terminal::verb::Verb;

/// Say yes or no: does a program keep within so much RAM?
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe check --max-ram 64MiB --max-slowdown 10% -- python3 script.py
  coldframe check --write-baseline need.json -- ./tests
  coldframe check --baseline need.json --export check.md --export check.xml -- ./tests

The program is recorded as `coldframe -- PROGRAM` records it. The number that is compared with --max-ram is the \
least RAM for its heap with which it is at most --max-slowdown (10 %) slower than with all it needs. It counts pages \
that must be in RAM: not memory that was allocated and not touched, not what an allocator keeps, no page cache, no code. \
If the answer is no, the program is recorded twice more, and the median counts.
Where the pager cannot record it, its pages' referenced bits are watched: coarser, and the answer says so.
--baseline also takes the program's own time and the costs of paging from that file, so that a slower or busier machine \
changes nothing. Without --max-ram, the limit is then the baseline's number and 2 %.

Exit codes: 0 within the limit; 1 over it; 2 usage; 3 the program failed, or touched no heap; 4 the program \
cannot be watched, or not as for the baseline; 5 a file cannot be read or written; 126, 127 as in shells.")]
pub struct Args {
    /// Most RAM for the program's heap.
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    max_ram: Option<u64>,
    /// Largest slowdown, in percent of the program's stand-alone time [default: 10%].
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    max_slowdown: Option<f64>,
    /// The program's stand-alone time, if it is known better than from a recording.
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    program_time: Option<Duration>,
    /// What the program needed earlier: say what grew since then, and measure with that machine's costs.
    #[arg(long, value_name = "NEED.json")]
    baseline: Option<PathBuf>,
    /// Write what the program needs to this file, as the median of three recordings.
    #[arg(long, value_name = "NEED.json")]
    write_baseline: Option<PathBuf>,
    /// Write the answer to this file, too; its suffix says the form: json, csv, md, html, prom, or xml (JUnit). May
    /// repeat.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
    #[command(flatten)]
    form: Form,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        export::known(&self.export)?;
        let before = self.baseline.as_deref().map(Need::read).transpose()?;
        let name = self.baseline.as_deref().map(Path::display).map(|name| name.to_string());
        let question = Check {
            command: &self.command,
            max_ram: self.max_ram,
            slowdown: self.max_slowdown.map(|percent| percent / 100.0),
            seconds: self.program_time.map(|time| time.as_secs_f64()),
            baseline: name.as_deref().zip(before.as_ref()),
            whole: self.write_baseline.is_some(),
        };
        let done = check(&question, &Terminal::new(quiet))?;
        if let Some(file) = &self.write_baseline {
            output::file(file, &output::json(&done.need))?;
        }
        self.form.print(&done.verdict, || verdict_answer::words(&done.verdict))?;
        Exported::verdict(&done.verdict).write(&self.export, &Page::of(&done.answer))?;
        Ok(ExitCode::from(u8::from(!done.verdict.within)))
    }
}
