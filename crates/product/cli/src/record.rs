//! `coldframe record`: a trace of an unmodified program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::predict::record as window;
use coldframe_answer::run::program::Executable;
use coldframe_answer::Listener;
use coldframe_show::recording;

use coldframe_terminal::listener::Terminal;
use coldframe_terminal::suffix;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::flags::{time, Program};
use crate::output;

/// Record the pages that a program touches, as a trace.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe record -o sort.parquet -- sort file
  coldframe record --for 30s -- redis-server --save ''
  coldframe record --window 256 --overhead -- python3 script.py

The program runs natively, up to three times as long and 10 s more. This machine's pager keeps a window of the \
heap's pages \
mapped, first in first out, and the other pages in RAM. Each page that enters the window is a row of the trace. With a \
window of W pages and C pages of RAM, OPT's misses lie between the misses of the rows at C and at C - W; LRU's lie \
between those at C + W and at C - W, from C = 2 W on. `coldframe --trace` answers about the trace; `coldframe-lab` \
shows and simulates it.

A program that the pager cannot record (static, of another machine) and all of a program's references are recorded by \
`coldframe-lab record`, under QEMU.

The trace is complete and valid when --for, Ctrl-C or SIGTERM ends the recording. The program then gets SIGTERM, and \
SIGKILL after 2 s.

Exit codes: 0 recorded (the program's own code is printed); 2 usage; 3 nothing was recorded; 4 the pager cannot \
record it \
here; 5 the trace cannot be written; 126 the program cannot be executed; 127 there is no such program.")]
pub struct Args {
    /// The trace to write [default: PROGRAM.parquet].
    #[arg(short, value_parser = suffix::trace)]
    output: Option<PathBuf>,
    /// Size of the window without sampling [default: window and sample fit the program, within 10 s].
    #[arg(long, value_name = "PAGES")]
    window: Option<usize>,
    /// End the recording and the program after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// First run the program natively, without input and output, and print how much slower recording is.
    #[arg(long)]
    overhead: bool,
    /// Write counts and times as JSON to this file.
    #[arg(long)]
    stats: Option<PathBuf>,
    #[command(flatten)]
    program: Program,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let out = self.output.clone().unwrap_or_else(|| default_output(&self.program.words));
        let terminal = Terminal::new(quiet);
        let program = Executable::find(&self.program.words)?;
        let order = window::RecordOrder {
            pages: self.window,
            overhead: self.overhead,
            max_time: self.time,
            patience: window::PATIENCE,
            listener: Some(&terminal),
            ..window::RecordOrder::new(&program)
        };
        let recorded = window::record(&order, &out)?;
        terminal.finish();
        if !quiet {
            output::tell(&recording::words(&recorded));
        }
        if let Some(path) = &self.stats {
            output::file(path, &output::json(&recorded))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A trace named after the program.
fn default_output(command: &[OsString]) -> PathBuf {
    let program = command.first().map(PathBuf::from);
    let name = program.as_deref().and_then(Path::file_name).unwrap_or("trace".as_ref());
    PathBuf::from(name).with_extension("parquet")
}
