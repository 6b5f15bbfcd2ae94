//! `coldframe check`: yes or no about a program, by the exit code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::bench::check::{check, Check};
use coldframe_answer::run::program::{line, Executable};
use coldframe_answer::Need;
use coldframe_show::export::{self, Exported, FileForm};
use coldframe_show::html::Page;
use coldframe_show::verdict_answer;

use crate::failure::Failure;
use crate::flags::{percent, size, time, Form};
use crate::output;
use coldframe_terminal::listener::Terminal;
use coldframe_terminal::verb::Verb;

/// The exit code if answers from referenced bits are on both sides of the limit.
const CANNOT_TELL: u8 = 6;

/// Say yes or no: does a program keep within so much RAM?
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe check --max-ram 64MiB --max-slowdown 10% -- python3 script.py
  coldframe check --write-baseline need.json -- ./tests
  coldframe check --baseline need.json --export check.md --export check.xml -- ./tests

With --max-ram the program is run alone and in that RAM, by our pager or the kernel, and both again while the times \
are \
near the limit: yes means that it is at most --max-slowdown (10 %) slower. Of several processes all together get \
that RAM.
--need, --baseline and --write-baseline record it as `coldframe -- PROGRAM` does. Its need is the least RAM for its \
heap \
with which it is fast enough: not memory that was allocated and not touched, no page cache, no code. \
If a need is over the limit, the program is recorded twice more, and the median counts.
Where nobody can page it here, its pages' referenced bits are watched three times: coarser, and the answer says how \
much.
--baseline also takes the program's own time and the costs of paging from that file, so that a slower or busier \
machine \
changes nothing. Without --max-ram, the limit is then the baseline's number and 2 %.

The answer is on stderr if stdout is no terminal: stdout is the program's, once.

Exit codes: 0 within the limit; 1 over it; 2 usage; 3 the program failed, or touched no heap; 4 the program \
cannot be watched, or not as for the baseline; 5 a file cannot be read or written; 6 cannot tell: answers from \
referenced bits are on both sides of \
the limit; 126, 127 as in shells.")]
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
    /// Say what the program needs, too: it is recorded for that.
    #[arg(long)]
    need: bool,
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

/// The command line; of a shell that runs a script (`bash -c`), the script.
fn case(command: &[OsString]) -> String {
    match command {
        [_, option, script] if option == "-c" => script.to_string_lossy().into_owned(),
        _ => line(command),
    }
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let exports = export::files(&self.export)?;
        let before = self.baseline.as_deref().map(Need::read).transpose()?;
        let name = self.baseline.as_deref().map(Path::display).map(|name| name.to_string());
        let question = Check {
            command: &Executable::find(&self.command)?,
            max_ram: self.max_ram,
            slowdown: self.max_slowdown.map(|percent| percent / 100.0),
            seconds: self.program_time.map(|time| time.as_secs_f64()),
            baseline: name.as_deref().zip(before.as_ref()),
            writes_baseline: self.write_baseline.is_some(),
            // The page is about a recording.
            need: self.need || exports.iter().any(|file| file.form == FileForm::Page),
        };
        self.form.keep_apart()?;
        let done = check(&question, &Terminal::new(quiet))?;
        if let (Some(file), Some((need, _))) = (&self.write_baseline, &done.need) {
            output::file(file, &output::json(need))?;
        }
        self.form.print_beside(&done.verdict, || verdict_answer::words(&done.verdict))?;
        Exported::verdict(&done.verdict, &case(&self.command))
            .write(&exports, &done.need.as_ref().map_or_else(Page::default, |(_, answer)| Page::new(answer)))?;
        Ok(ExitCode::from(match (done.verdict.certain, done.verdict.within) {
            (false, _) => CANNOT_TELL,
            (true, within) => u8::from(!within),
        }))
    }
}
