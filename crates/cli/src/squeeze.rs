//! `coldframe squeeze`: takes memory from a group that runs, step by step, says what each step costs, and puts the old
//! limit back.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use coldframe_kernel::{group_of, End, Guard, KernelError, Squeeze, SwapKind, SwapSpace, Tree};
use coldframe_search::limits::percent;
use coldframe_sheet::quantity;

use crate::failure::Failure;
use crate::progress::Line;
use crate::recording_end::Signals;
use crate::run_kernel::{swappable, this};
use crate::squeeze_answer::{waited, Squeezed};
use crate::{export, output};

/// Take memory from a running unit, container, group or process, measure what that costs, and put the old limit back.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe squeeze nginx.service
  sudo coldframe squeeze --yes nginx.service
  sudo coldframe squeeze --yes --max-stall 2% --watch 30s --export squeezed.md web-1
  sudo coldframe squeeze --yes --swap zram 4711

The limit of the group goes down by a sixteenth at a time (cgroup v2: memory.high; v1: memory.limit_in_bytes, with the \
killer turned off meanwhile). After each step coldframe watches how many pages come back, and how long some process waits \
for memory. It stops at --max-stall, at Ctrl-C, or when nothing more can leave. Then the old limit is put back: a guard \
process does this, also if coldframe is killed. Pages in swap come back when they are needed. The result holds for what \
the group did meanwhile, so squeeze it while it works. Without --yes nothing is changed, and coldframe says what it would \
do.

A process stands for its group, with all processes there. Swap must have room for all of the group's data.

Exit codes: 0 done; 1 the first step stalled more than --max-stall, or could not be made; 2 usage; 4 this group cannot be \
squeezed; 5 the old limit could not be put back (the guard says how to).")]
pub struct Args {
    /// A systemd unit, a docker or podman container, a folder of the cgroup tree (/...), or a process number.
    name: String,
    /// Stop when some process waits for memory for more than this part of the time.
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    max_stall: String,
    /// How long each step is watched.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    watch: String,
    /// Change the limit.
    #[arg(long)]
    yes: bool,
    /// Say what would be done, as without --yes.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Swap for the squeeze, made now and taken away at the end (root) [default: the swap that is on].
    #[arg(long, value_name = "zram|FILE|zswap:FILE")]
    swap: Option<String>,
    /// How to print the curve.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
    /// Write the curve to this file, too; its suffix says the form: json, csv, md or prom. Can be given more than once.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    let most = percent("max-stall", &args.max_stall)? / 100.0;
    let watch = quantity::time(&args.watch).map_err(|e| Failure::usage(format!("--watch: {e}")))?;
    let watch = Duration::from_nanos(watch.0 / 1000);
    if watch < LEAST || most <= 0.0 || most >= 1.0 {
        let message = "give --watch at least 100ms, and --max-stall more than 0% and less than 100%";
        return Err(Failure::usage(message));
    }
    export::tables(&args.export)?;
    let tree = Tree::machine();
    let group = group_of(&tree, &args.name)?;
    let kind = args.swap.as_deref().map(SwapKind::parse);
    kind.as_ref().map_or(Ok(()), |kind| swappable(&tree, kind))?;
    let mut squeeze = Squeeze::new(&tree, group, kind.as_ref().map_or(0, |kind| kind.size(&tree, None)))?;
    let mut found = Squeezed::new(&args.name, &squeeze, most, watch);
    if args.yes {
        let mut guard = Guard::start(this("kernel-guard")?)?;
        let done = begin(&mut guard, kind.as_ref(), &mut squeeze).map_err(Failure::from);
        let space = SwapSpace::on(&tree, squeeze.group().version());
        let done = done.and_then(|()| steps(&mut squeeze, &mut found, quiet));
        found.compressed = space.compressed();
        guard.end();
        done?;
    }
    found.restored = squeeze.restored();
    let said = if args.format == "json" { output::json(&found.json()) } else { found.words() };
    output::write(None, &said)?;
    export::export_table(&args.export, &found.exported())?;
    Ok(ExitCode::from(match (found.restored, args.yes && found.advised().is_none()) {
        (false, _) => 5,
        (true, none) => u8::from(none),
    }))
}

/// Less shows nothing.
const LEAST: Duration = Duration::from_millis(100);

fn begin(guard: &mut Guard, swap: Option<&SwapKind>, squeeze: &mut Squeeze) -> Result<(), KernelError> {
    swap.map_or(Ok(String::new()), |kind| guard.swap(kind, kind.size(&Tree::machine(), None)))?;
    squeeze.begin(guard)
}

/// Takes memory away until something ends it.
fn steps(squeeze: &mut Squeeze, found: &mut Squeezed, quiet: bool) -> Result<(), Failure> {
    let signals = Signals::catch()?;
    let mut line = Line::new(quiet);
    let end = loop {
        let step = match squeeze.watch(found.watch, found.most, || signals.came()) {
            Ok(step) => step,
            Err(end) => break end,
        };
        line.show(found.steps.len() as u64, None, &waited(&step));
        found.steps.push(step);
        if step.stalled > found.most {
            break End::Stall;
        }
        match squeeze.lower() {
            _ if signals.came() => break End::Stopped,
            Ok(()) => {}
            Err(end) => break end,
        }
    };
    found.end = Some(end);
    found.usable()
}
