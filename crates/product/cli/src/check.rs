//! `coldframe check`: yes or no about a program, by the exit code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_answer::bench::check::{check, Check};
use coldframe_answer::run::program::{line, Executable};
use coldframe_answer::Need;
use coldframe_show::export::{self, Exported};
use coldframe_show::verdict_answer;

use crate::failure::Failure;
use crate::flags::{percent, ram_size, Form};
use crate::output;
use coldframe_terminal::listener::Terminal;
use coldframe_terminal::verb::Verb;

/// The exit code if too little was seen.
const CANNOT_TELL: u8 = 6;

/// Say yes or no: does a program keep within so much RAM?
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe check --max-ram 64MiB --max-slowdown 10% -- python3 script.py
  coldframe check --write-baseline need.json -- ./tests
  coldframe check --baseline need.json --export check.md --export check.xml -- ./tests

With --max-ram the program runs in a memory group with that limit, as in a container of that size: all that the kernel \
charges counts (heap, stacks, code, mapped files, tmpfs, shared memory once, page tables), there is no swap, and files \
that it maps are read from the disk. It runs in turn without and in the limit. No: it is killed, ends otherwise, or is \
over --max-slowdown (10 %) slower. Of several processes all together have that limit.
--write-baseline writes the peaks of its group and of its heap; with --baseline, growth by more than 2 % and 1 MiB is \
a no. They are counted, so load on the machine changes nothing.
Groups need root, or a group of this user (`systemd-run --user --scope`). Where none can be made, the verdict is \
estimated from what the program had in RAM.

The answer is on stderr if stdout is no terminal: stdout is the program's, once.

Exit codes: 0 yes; 1 no; 2 usage; 3 the program failed, or the baseline is none; 4 the program or the swap cannot be \
run so, or no peak can be measured; 5 a file cannot be read or written; 6 cannot tell: too little was seen, or it is \
only estimated; 126, 127 as in shells.")]
pub struct Args {
    /// Limit of the container.
    #[arg(long, value_name = "SIZE", value_parser = ram_size, allow_hyphen_values = true)]
    max_ram: Option<u64>,
    /// Largest slowdown, in percent of the time without a limit [default: 10%].
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    max_slowdown: Option<f64>,
    /// Swap that there will be, made for the runs as by `run --swap`: zram, zswap:FILE or FILE [default: none].
    #[arg(long, value_name = "SWAP", requires = "max_ram")]
    swap: Option<String>,
    /// What the program took earlier: say what grew since then.
    #[arg(long, value_name = "NEED.json")]
    baseline: Option<PathBuf>,
    /// Write what the program takes to this file: the larger peaks of two runs.
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
            swap: self.swap.as_deref(),
            baseline: name.as_deref().zip(before.as_ref()),
            writes_baseline: self.write_baseline.is_some(),
        };
        self.form.keep_apart()?;
        let done = check(&question, &Terminal::new(quiet))?;
        if let (Some(file), Some(need)) = (&self.write_baseline, &done.need) {
            output::file(file, &output::json(need))?;
        }
        self.form.print_beside(&done.verdict, || verdict_answer::words(&done.verdict))?;
        let exported = Exported::verdict(&done.verdict, &case(&self.command));
        exported.write(&exports, &exported)?;
        Ok(ExitCode::from(match (done.verdict.certain, done.verdict.within) {
            (false, _) => CANNOT_TELL,
            (true, within) => u8::from(!within),
        }))
    }
}
