//! `coldframe record`: a trace of an unmodified program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use coldframe_answer::bundle;
use coldframe_answer::record as window;
use coldframe_record::{record, Level, Limits, Outcome, Recording, PLUGIN};
use coldframe_sheet::quantity::{self, human_count, human_size};
use coldframe_show::recording;
use serde_json::json;

use crate::failure::Failure;
use crate::output;
use crate::pick_recorder::{choose, neither, Choice};
use crate::progress::Line;

/// Page size of an emulator's recording: that of this machine's pager.
const PAGE: &str = "4KiB";

/// Record the pages that an unmodified program touches, or all of its memory references.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe record -o sort.parquet -- sort file
  coldframe record --max-time 30s -- redis-server --save ''
  coldframe record --level exact -o bzip2.parquet -- bzip2 -9 -k file
  coldframe record --via qemu --max-size 100MiB -- python3 script.py
  coldframe record --via faults --window 256 --overhead -- python3 script.py
  coldframe record --raw -o app.raw -- ./app; coldframe import app.raw -o app.parquet
  coldframe record --level exact --skip-refs 50000000 --max-refs 4000000 -- povray scene.pov

The program runs natively, up to three times as long and 10 s more. This machine's pager keeps a window of the heap's pages \
mapped, first in first out, and the other pages in RAM. Each page that enters the window is a row of the trace. With a \
window of W pages and C pages of RAM, OPT's misses lie between the misses of the rows at C and at C - W; LRU's lie \
between those at C + W and at C - W, from C = 2 W on.

An emulator records the program, many times slower, in two cases: an option needs it (--level, --page, --skip-refs, \
--max-refs, --max-size, --keep-running, --sysroot); or the pager cannot record the program (it is static or for \
another machine, or there is no userfaultfd). One line says so, and why. The emulator is QEMU's user mode with \
coldframe's plugin (Debian package qemu-user). It records runs of references to pages of 4 KiB. --level exact records every reference with its address; --system swl and ddb need that. \
An emulator does not see what the kernel touches in system calls.

The trace is complete and valid when a limit, Ctrl-C or SIGTERM ends the recording. The program then gets SIGTERM, and \
SIGKILL after 2 s.

Exit codes: 0 recorded (the program's own code is printed); 2 usage; 3 nothing was recorded; 4 neither pager nor \
emulator can record; 5 the trace cannot be written; 126 the program cannot be executed; 127 there is no such program.")]
pub struct Args {
    /// The trace to write [default: PROGRAM.parquet].
    #[arg(short)]
    output: Option<PathBuf>,
    /// What records. faults: this machine's pager, pages of the heap as they enter a window; qemu: an emulator, all
    /// references; auto: faults, or the emulator.
    #[arg(long, value_parser = ["auto", "qemu", "faults"], default_value = "auto")]
    via: String,
    /// Write a small raw file, for `coldframe import` on another machine [default: PROGRAM.raw].
    #[arg(long)]
    raw: bool,
    /// Size of the window with --via faults, without sampling [default: window and sample fit the program, within 10
    /// s].
    #[arg(long, value_name = "PAGES")]
    window: Option<usize>,
    /// exact: every reference with its address and size; page: runs of references to a page. Takes an emulator
    /// [default: page].
    #[arg(long, value_parser = ["exact", "page"])]
    level: Option<String>,
    /// Page size of `--level page` [default: 4KiB].
    #[arg(long, value_name = "SIZE")]
    page: Option<String>,
    /// References to leave out at the start.
    #[arg(long, default_value_t = 0)]
    skip_refs: u64,
    /// Stop after this number of references.
    #[arg(long)]
    max_refs: Option<u64>,
    /// Stop when the trace has this size.
    #[arg(long)]
    max_size: Option<String>,
    /// End the recording and the program after this time.
    #[arg(long)]
    max_time: Option<String>,
    /// At a limit, let the program continue without recording, instead of ending it.
    #[arg(long)]
    keep_running: bool,
    /// First run the program natively, without input and output, and print how much slower recording is.
    #[arg(long)]
    overhead: bool,
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

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    if args.via == "faults" {
        return heap_faults(&args, quiet);
    }
    if args.via == "qemu" {
        if args.raw {
            return Err(Failure::usage("--raw does not go with --via qemu; leave one out"));
        }
        return emulated(&args, None, quiet);
    }
    match choose(&args.command, of_emulators(&args).first().copied())? {
        Choice::Pager => heap_faults(&args, quiet),
        Choice::Emulator(why) if args.raw => {
            let message = format!("--raw is what this machine's pager records, which is not possible: {why}");
            Err(Failure::Other { message, code: 4 })
        }
        Choice::Emulator(why) => emulated(&args, Some(&why), quiet),
    }
}

/// Given options that only an emulator supports.
fn of_emulators(args: &Args) -> Vec<&'static str> {
    let given = [
        ("--level", args.level.is_some()),
        ("--page", args.page.is_some()),
        ("--skip-refs", args.skip_refs > 0),
        ("--max-refs", args.max_refs.is_some()),
        ("--max-size", args.max_size.is_some()),
        ("--keep-running", args.keep_running),
        ("--sysroot", args.sysroot.is_some()),
    ];
    given.into_iter().filter_map(|(option, given)| given.then_some(option)).collect()
}

/// Records by an emulator; `why`: the reason why this machine's pager cannot record.
pub fn emulated(args: &Args, why: Option<&str>, quiet: bool) -> Result<ExitCode, Failure> {
    if args.window.is_some() {
        return Err(Failure::usage(match why {
            Some(why) => {
                format!("--window is for this machine's pager, which does not record here: {why}; leave --window out")
            }
            None => "--window does not go with --via qemu; leave it out".into(),
        }));
    }
    let order = order(args)?;
    let mut remark = why.filter(|_| !quiet).map(|why| instead(&order.level, why));
    stop_by_signal(&order.stop)?;
    let mut line = Line::new(quiet);
    let outcome = record(&order, &mut |p| {
        // Now there is one.
        remark.take().iter().for_each(|line| output::tell(&format!("{line}\n")));
        line.show(
            p.references,
            None,
            &format!("{} references, {} bytes", human_count(p.references), human_count(p.bytes)),
        );
    });
    drop(line);
    let outcome = outcome.map_err(|error| match why {
        Some(why) if of_emulators(args).is_empty() => neither(why, error),
        _ => error.into(),
    })?;
    remark.iter().for_each(|line| output::tell(&format!("{line}\n")));
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
    if let Some(path) = &args.stats {
        output::write(Some(path), &output::json(&stats(&order, &outcome)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Why this machine's pager does not record.
fn instead(level: &Level, why: &str) -> String {
    let level = match level {
        Level::Exact => "reference by reference".into(),
        Level::Pages(bytes) => format!("by pages of {}", human_size(*bytes)),
    };
    format!("coldframe: an emulator records it, {level}, and not this machine's pager: {why}")
}

fn heap_faults(args: &Args, quiet: bool) -> Result<ExitCode, Failure> {
    // Refused rather than ignored.
    if let Some(option) = of_emulators(args).first() {
        return Err(Failure::usage(format!("{option} does not go with --via {}; leave it out", args.via)));
    }
    let out = args.output.clone().unwrap_or_else(|| default_output(&args.command));
    let order = window::Order {
        command: &args.command,
        pages: args.window,
        overhead: args.overhead,
        max_time: max_time(args)?,
        patience: window::PATIENCE,
    };
    if args.raw {
        return raw(args, &order, quiet);
    }
    let recorded = window::record(&order, &out)?;
    if !quiet {
        output::tell(&recording::words(&recorded));
    }
    if let Some(path) = &args.stats {
        output::write(Some(path), &output::json(&recorded))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A raw file.
fn raw(args: &Args, order: &window::Order, quiet: bool) -> Result<ExitCode, Failure> {
    if args.stats.is_some() {
        return Err(Failure::usage("--stats does not go with --raw: import computes them; leave it out"));
    }
    let out = args.output.clone().unwrap_or_else(|| default_output(&args.command).with_extension("raw"));
    let (status, bytes) = window::record_raw(order, &out)?;
    if !quiet {
        let (out, bytes) = (out.display(), human_count(bytes));
        output::tell(&format!("coldframe: {out}: {bytes} bytes; the program ended with {status}\n"));
    }
    Ok(ExitCode::SUCCESS)
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
    let time = args.max_time.as_deref().map(quantity::time).transpose();
    let time = time.map_err(|e| Failure::usage(format!("--max-time: {e}")))?;
    Ok(time.map(|time| Duration::from_nanos(time.0 / 1000)))
}

fn order(args: &Args) -> Result<Recording, Failure> {
    let bad = |option: &str, error: quantity::QuantityError| Failure::usage(format!("{option}: {error}"));
    let (program, arguments) = args.command.split_first().expect("clap requires one");
    let out = args.output.clone().unwrap_or_else(|| default_output(&args.command));
    let mut order = Recording::new(program.clone(), arguments.to_vec(), out);
    let page = args.page.as_deref().unwrap_or(PAGE);
    order.level = match args.level.as_deref() {
        Some("exact") => Level::Exact,
        _ => Level::Pages(quantity::bytes(page).map_err(|e| bad("--page", e))?.0),
    };
    let size = args.max_size.as_deref().map(quantity::bytes).transpose().map_err(|e| bad("--max-size", e))?;
    order.limits = Limits {
        skip_refs: args.skip_refs,
        max_refs: args.max_refs,
        max_size: size.map(|b| b.0),
        max_time: max_time(args)?,
        keep_running: args.keep_running,
    };
    order.plugin = bundle::library(PLUGIN)?;
    order.sysroot = args.sysroot.clone();
    order.overhead = args.overhead;
    Ok(order)
}

fn words(order: &Recording, o: &Outcome) -> String {
    let mut text = format!(
        "coldframe: {}: {} references of {} instructions in {:.1} s ({:.1} M references/s) through qemu, {} bytes ({:.2} a reference)\n",
        order.out.display(),
        human_count(o.references),
        human_count(o.instructions),
        o.seconds,
        o.references_per_second / 1e6,
        human_count(o.bytes),
        o.bytes as f64 / o.references.max(1) as f64,
    );
    if let Some(limit) = o.limit {
        text += &format!("coldframe: recording ended by {limit}\n");
    }
    if let Some(factor) = o.overhead() {
        text += &format!("coldframe: {factor:.1} times slower than the program alone\n");
    }
    for line in &o.not_recorded {
        text += &format!("coldframe: {line}\n");
    }
    if !o.status.success() && o.limit.is_none() {
        text += &format!("coldframe: the program ended with {}\n", o.status);
    }
    text
}

fn stats(order: &Recording, o: &Outcome) -> serde_json::Value {
    json!({
        "trace": order.out, "via": "qemu", "references": o.references, "rows": o.rows, "instructions": o.instructions,
        "bytes": o.bytes, "seconds": o.seconds, "references_per_second": o.references_per_second, "limit": o.limit,
        "tasks": o.tasks, "not_recorded": o.not_recorded, "native_seconds": o.native_seconds, "overhead": o.overhead(),
        "status": o.status.code(),
    })
}
