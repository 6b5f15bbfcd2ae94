//! `coldframe-lab record`: the memory references of an unmodified program, by QEMU.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use coldframe_answer::run::bundle;
use coldframe_record::{record, Level, Limits, Outcome, Recording, PLUGIN};
use coldframe_sheet::quantity::{self, human_count};
use serde::Serialize;

use coldframe_terminal::suffix;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;
use crate::progress::Line;

/// Page size of an emulator's recording: that of this machine's pager.
const PAGE: &str = "4KiB";

/// Record the memory references of an unmodified program under QEMU.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab record --level exact -o bzip2.parquet -- bzip2 -9 -k file
  coldframe-lab record --max-refs 100000000 -- python3 script.py
  coldframe-lab record --for 30s -- redis-server --save ''
  coldframe-lab record --level exact --skip-refs 50000000 --max-refs 4000000 -- povray scene.pov

The program runs in QEMU's user mode with coldframe's plugin (Debian package qemu-user), many times slower. It \
records runs of references to pages of 4 KiB. --level exact records every reference with its address; --system swl \
and ddb need that. An emulator does not see what the kernel touches in system calls. `coldframe record` records the \
pages of a program's heap at nearly its own speed.

The trace is complete and valid when a limit, Ctrl-C or SIGTERM ends the recording. The program then gets SIGTERM, and \
SIGKILL after 2 s.

Exit codes: 0 recorded (the program's own code is printed); 2 usage; 3 nothing was recorded; 4 QEMU cannot record \
here; 5 the trace cannot be written; 126 the program cannot be executed; 127 there is no such program.")]
pub struct Args {
    /// The trace to write [default: PROGRAM.parquet].
    #[arg(short, value_parser = suffix::trace)]
    output: Option<PathBuf>,
    /// exact: every reference with its address and size; page: runs of references to a page.
    #[arg(long, value_parser = ["exact", "page"], default_value = "page")]
    level: String,
    /// Page size of `--level page` [default: 4KiB].
    #[arg(long, value_name = "SIZE")]
    page: Option<String>,
    /// References to leave out at the start.
    #[arg(long, default_value_t = 0)]
    skip_refs: u64,
    /// Stop after this number of references.
    #[arg(long)]
    max_refs: Option<u64>,
    /// End the recording and the program after this time.
    #[arg(long = "for", value_name = "TIME")]
    time: Option<String>,
    /// For programs of another machine: the folder that contains its `lib`.
    #[arg(long)]
    sysroot: Option<PathBuf>,
    /// Write counts and times as JSON to this file.
    #[arg(long)]
    stats: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let order = order(&self)?;
        stop_by_signal(&order.stop)?;
        let mut line = Line::new(quiet);
        let outcome = record(&order, &mut |p| {
            line.show(p.references, None, &format!("{} references", human_count(p.references)));
        });
        drop(line);
        let outcome = outcome?;
        if outcome.references == 0 {
            let out = order.out.display();
            let done = outcome.instructions;
            let message = format!(
                "{out}: nothing was recorded: the program ended after {done} instructions; give less to --skip-refs"
            );
            let _ = std::fs::remove_file(&order.out);
            return Err(Failure::Other { message, code: 3 });
        }
        if !quiet {
            output::tell(&words(&order, &outcome));
        }
        if let Some(path) = &self.stats {
            let stats = Stats { trace: &order.out, via: "qemu", outcome: &outcome, status: outcome.status.code() };
            output::file(path, &output::json(&stats))?;
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

/// Ctrl-C and SIGTERM end a recording, not the recorder.
fn stop_by_signal(stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(stop))
            .map_err(|e| Failure::Other { message: format!("cannot catch signal {signal}: {e}"), code: 5 })?;
    }
    Ok(())
}

fn max_time(args: &Args) -> Result<Option<Duration>, Failure> {
    let time = Failure::option("--for", args.time.as_deref(), quantity::time)?;
    Ok(time.map(|time| Duration::from_nanos(time.0 / 1000)))
}

fn order(args: &Args) -> Result<Recording, Failure> {
    let bad = |option: &str, error: quantity::QuantityError| Failure::usage(format!("{option}: {error}"));
    let (program, arguments) = args.command.split_first().expect("clap requires one");
    let out = args.output.clone().unwrap_or_else(|| default_output(&args.command));
    let mut order = Recording::new(program.clone(), arguments.to_vec(), out);
    let page = args.page.as_deref().unwrap_or(PAGE);
    order.level = match args.level.as_str() {
        "exact" => Level::Exact,
        _ => Level::Pages(quantity::bytes(page).map_err(|e| bad("--page", e))?.0),
    };
    order.limits = Limits { skip_refs: args.skip_refs, max_refs: args.max_refs, max_time: max_time(args)? };
    order.plugin = bundle::library(PLUGIN)?;
    order.sysroot = args.sysroot.clone();
    Ok(order)
}

fn words(order: &Recording, o: &Outcome) -> String {
    let mut text = format!(
        "coldframe: {}: {} references of {} instructions in {:.1} s ({:.1} M references/s) through qemu, {} bytes \
            ({:.2} a reference)\n",
        order.out.display(),
        human_count(o.references),
        human_count(o.instructions),
        o.seconds,
        o.references_per_second / 1e6,
        human_count(o.bytes),
        o.bytes_per_reference(),
    );
    if let Some(limit) = o.limit {
        text += &format!("coldframe: recording ended by {limit}\n");
    }
    for line in &o.not_recorded {
        text += &format!("coldframe: {line}\n");
    }
    if !o.status.success() && o.limit.is_none() {
        text += &format!("coldframe: the program ended with {}\n", o.status);
    }
    text
}

/// For `--stats`.
#[derive(Serialize)]
struct Stats<'a> {
    trace: &'a Path,
    via: &'static str,
    #[serde(flatten)]
    outcome: &'a Outcome,
    status: Option<i32>,
}
