//! `coldframe check`: yes or no, by the exit code. It is asked about a trace, or about a program, which it records.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_answer::need::NOISE;
use coldframe_answer::verdict::{median, RECORDINGS};
use coldframe_answer::{Answer, Need, Question, Verdict};
use coldframe_plots::board_answer as words;
use coldframe_search::json;
use coldframe_search::limits::percent;
use coldframe_sheet::quantity;
use coldframe_show::export::Exported;
use coldframe_show::verdict_answer;
use coldframe_store::Reader;

use crate::advise::{self, Asked, How};
use crate::advise_here::Machine;
use crate::failure::Failure;
use crate::pick_recorder::pageable;
use crate::{export, output, watched, window};

/// Say yes or no: does a program keep within so much RAM, or is there a size that meets the limits? For pipelines.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe check --max-ram 64MiB --max-slowdown 10% -- python3 script.py
  coldframe check --write-baseline need.json -- ./tests
  coldframe check --baseline need.json --export check.md --export check.xml -- ./tests
  coldframe check bzip2.parquet --device NAND01GW3B2B --max-ram 512KiB --max-slowdown 5%

With a program: it is recorded as `coldframe -- PROGRAM` records it. The number that is compared with --max-ram is the \
least RAM for its heap with which it is at most --max-slowdown (10 %) slower than with all it needs. It counts pages \
that must be in RAM: not memory that was allocated and not touched, not what an allocator keeps, no page cache, no code. \
If the answer is no, the program is recorded twice more, and the median counts.
Where the pager cannot record it, its pages' referenced bits are watched: coarser, and the answer says so.
--baseline also takes the program's own time and the costs of paging from that file, so that a slower or busier machine \
changes nothing. Without --max-ram, the limit is then the baseline's number and 2 %.

Exit codes: 0 within the limit; 1 over it; 2 usage; 3 the program failed, or touched no heap; 4 the program \
cannot be watched, or not as for the baseline; 5 a file cannot be read or written; 126, 127 as in shells.")]
pub struct Args {
    /// A trace (Parquet), instead of a program. If its configuration (-c) has a RAM size, only that size is tried.
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    how: How,
    /// What the program needed earlier: say what grew since then, and measure with that machine's costs.
    #[arg(long, value_name = "NEED.json", requires = "command")]
    baseline: Option<PathBuf>,
    /// Write what the program needs to this file, as the median of three recordings.
    #[arg(long, value_name = "NEED.json", requires = "command")]
    write_baseline: Option<PathBuf>,
    /// Write the answer to this file, too; its suffix says the form: json, csv, md, html, prom, or xml (JUnit). May
    /// repeat.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
    /// How to print the answer.
    #[arg(long, value_parser = ["text", "json"], default_value = "text")]
    format: String,
    /// The program and its arguments.
    #[arg(last = true)]
    command: Vec<OsString>,
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    export::known(&args.export)?;
    let Args { trace: Some(trace), how, export, format, .. } = args else { return program(&args, quiet) };
    let asked = Asked { trace, how };
    if advise::is_here(&asked) {
        return of_trace(&asked, &export, &format);
    }
    let advice = advise::answer(&asked, quiet)?;
    let (within, sentence) = (advice.best.is_some(), words::sentence(&advice));
    let sentence = format!("{}: {sentence}", if within { "yes" } else { "no" });
    let data = json::json(&advice);
    let text = if format == "json" { output::json(&data) } else { sentence.clone() };
    output::write(None, &text)?;
    export::export_board(&export, data, sentence, Some(within))?;
    Ok(ExitCode::from(u8::from(!within)))
}

/// A trace of this machine's recorder.
fn of_trace(asked: &Asked, files: &[PathBuf], format: &str) -> Result<ExitCode, Failure> {
    let found = advise::answer_here(asked)?;
    let fits = advise::fits(&found, asked)?;
    let text = match format {
        "json" => output::json(&found.json()),
        _ => format!("{}: {}", if fits { "yes" } else { "no" }, advise::sentence(&found)),
    };
    output::write(None, &text)?;
    export::export_here(files, &found, &Exported::here(&found, Some(fits)))?;
    Ok(ExitCode::from(u8::from(!fits)))
}

/// A program, which is recorded.
fn program(args: &Args, quiet: bool) -> Result<ExitCode, Failure> {
    let asked = AskedOfProgram::of(args)?;
    crate::run::program(&args.command)?;
    // Where the pager cannot record it, its referenced bits are watched, as `coldframe -- PROGRAM` does.
    let recorder = match pageable(&args.command) {
        Ok(()) => Recorder::Pager(Box::new(asked.machine()?)),
        Err(why) => Recorder::Bits(why.to_string()),
    };
    let named = args.baseline.as_deref().map(Path::display).map(|name| name.to_string());
    let baseline = named.as_deref().zip(asked.baseline.as_ref());
    let (mut needs, mut answers) = (Vec::new(), Vec::new());
    let verdict = loop {
        let (need, answer) = asked.recorded(&args.command, &recorder, quiet)?;
        needs.push(need);
        answers.push(answer);
        let verdict = Verdict::of(&needs, asked.limit, baseline);
        if !verdict.is_open() && (args.write_baseline.is_none() || needs.len() >= RECORDINGS) {
            break verdict;
        }
        if !quiet {
            output::tell(&format!("coldframe: recorded {} of {RECORDINGS} times\n", needs.len()));
        }
    };
    if let Some(file) = &args.write_baseline {
        let need = serde_json::to_value(&needs[median(&needs)]).expect("plain data has a JSON form");
        output::write(Some(file), &output::json(&need))?;
    }
    let exported = Exported::verdict(&verdict);
    let text = if args.format == "json" { output::json(&exported.json) } else { verdict_answer::words(&verdict) };
    output::write(None, &text)?;
    export::export_here(&args.export, &answers[median(&needs)], &exported)?;
    Ok(ExitCode::from(u8::from(!verdict.within)))
}

/// The question about a program.
struct AskedOfProgram {
    limit: Option<u64>,
    baseline: Option<Need>,
    slowdown: Option<f64>,
    seconds: Option<f64>,
}

impl AskedOfProgram {
    fn of(args: &Args) -> Result<AskedOfProgram, Failure> {
        let how = &args.how;
        let other = how.device.iter().any(|device| device != coldframe_answer::json::DEVICE);
        if let Some(option) = other.then_some("--device").or(how.of_boards()) {
            return Err(Failure::usage(format!(
                "{option} is for a board, and a program is recorded for this machine; record it first, and check the trace"
            )));
        }
        let baseline = args.baseline.as_deref().map(read).transpose()?;
        let given = how.max_slowdown.as_deref().map(|text| percent("max-slowdown", text)).transpose()?;
        let slowdown = given.or(baseline.as_ref().map(|need| need.slowdown_percent)).map(|percent| percent / 100.0);
        let seconds = how.program_time.as_deref().map(quantity::time).transpose();
        let seconds = seconds.map_err(|e| Failure::usage(format!("--program-time: {e}")))?;
        let seconds = seconds.map(|time| time.0 as f64 / 1e12).or(baseline.as_ref().map(|need| need.program_seconds));
        let given = advise::max_ram(how)?;
        let limit = given.or(baseline.as_ref().map(|need| (need.need_bytes as f64 * (1.0 + NOISE)) as u64));
        if limit.is_none() && args.write_baseline.is_none() {
            return Err(Failure::usage("check -- PROGRAM needs a limit: --max-ram SIZE, or --baseline NEED.json"));
        }
        Ok(AskedOfProgram { limit, baseline, slowdown, seconds })
    }

    /// The machine whose costs count: the baseline's, or this one.
    fn machine(&self) -> Result<Machine, Failure> {
        match self.baseline.as_ref().and_then(|need| need.sheet.clone()) {
            Some(sheet) => Machine::of(sheet, 0.0),
            None => Machine::known(),
        }
    }

    /// Runs the program once, and records or watches it.
    fn recorded(&self, command: &[OsString], recorder: &Recorder, quiet: bool) -> Result<(Need, Answer), Failure> {
        let (need, answer) = match recorder {
            Recorder::Pager(machine) => self.paged(command, machine)?,
            Recorder::Bits(why) => {
                let answer = watched::of(command, why, self.slowdown.unwrap_or(Question::SLOWDOWN), quiet)?;
                (Need::of(&answer, &[], None), answer)
            }
        };
        if answer.exit != Some(0) {
            let how = answer.exit.map_or("by a signal".into(), |code| format!("with exit code {code}"));
            let message = format!("the program ended {how}, so there is no verdict: mend it, and check again");
            return Err(Failure::Other { message, code: 3 });
        }
        if self.baseline.as_ref().is_some_and(|before| before.rung != need.rung) {
            let message =
                "the baseline was measured in another way (the pager's recorder, or referenced bits), which this \
                           machine or program does not allow; write one here with --write-baseline";
            return Err(Failure::Other { message: message.into(), code: 4 });
        }
        Ok((need, answer))
    }

    fn paged(&self, command: &[OsString], machine: &Machine) -> Result<(Need, Answer), Failure> {
        let folder = tempfile::tempdir()
            .map_err(|e| Failure::Other { message: format!("no temporary folder: {e}; set TMPDIR"), code: 5 })?;
        let trace = folder.path().join("trace.parquet");
        let order = window::Order { command, patience: window::PATIENCE_OF_CHECK, ..window::Order::default() };
        window::record(&order, &trace)?;
        let answer = machine.priced(&trace, self.slowdown, self.seconds)?;
        let group = Reader::open(&trace)?.provenance().group.clone();
        Ok((Need::of(&answer, &group, Some(machine.sheet().clone())), answer))
    }
}

/// The best way that the machine allows, with the machine whose costs count, or why it is not better.
enum Recorder {
    Pager(Box<Machine>),
    Bits(String),
}

/// A baseline.
fn read(path: &Path) -> Result<Need, Failure> {
    let shown = path.display();
    let bad = |message: String, code| Failure::Other { message, code };
    let text = std::fs::read_to_string(path)
        .map_err(|e| bad(format!("{shown}: cannot be read: {e}; write one with --write-baseline {shown}"), 5))?;
    let need: Need = serde_json::from_str(&text)
        .map_err(|e| bad(format!("{shown}: is no baseline: {e}; write it anew with --write-baseline {shown}"), 3))?;
    match need.kind == "need" {
        true => Ok(need),
        false => Err(bad(format!("{shown}: is no baseline; write it anew with --write-baseline {shown}"), 3)),
    }
}
