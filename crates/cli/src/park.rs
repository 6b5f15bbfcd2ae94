//! `coldframe park` and `coldframe resume`: programs that take turns in less RAM than they need together. And the hidden
//! verb that keeps one of them.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

use coldframe_kernel::{Guard, KernelError, Parking, Standing, Tree};
use coldframe_sheet::quantity::human_size;
use coldframe_show::table::styled;
use serde_json::json;

use crate::failure::Failure;
use crate::output;
use crate::run_kernel::this;

/// Stop a running process, unit, container or group, push its pages out to swap, and remember those that it used.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo coldframe park jupyter-a.service
  coldframe park 4711
  coldframe park --list

The program stands still (cgroup.freeze, or SIGSTOP for each process) until `coldframe resume`. Which pages it used is seen \
in its page tables: those that were in swap when it was last resumed and are in RAM now. A process stands for itself and \
its descendants. Two processes of coldframe hold a parked program; if one of them is killed, the program runs on. One of \
them keeps the list until the program ends.

Pages are pushed out with CAP_SYS_NICE (root), or by memory.reclaim of a group that you may write to. Without either the \
program only stands still, and its pages leave when the kernel needs RAM.

Exit codes: 0 done; 2 usage; 4 it cannot be parked: it goes on as before.")]
pub struct Args {
    /// A process number, a systemd unit, a docker or podman container, or a folder of the cgroup tree (/...).
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List the programs that are or were parked.
    #[arg(long, conflicts_with = "name")]
    list: bool,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
}

/// Let a parked program run, or fetch the pages that it used while another one still runs.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe resume 4711
  coldframe resume --soon jupyter-b.service; coldframe park jupyter-a.service; coldframe resume jupyter-b.service

`--soon` only fetches, while another program still runs (scheduler-assisted prefetching, SAP): `resume` then starts it \
with its pages in RAM. The list is what it used between its last resume and its last park, so the first resume has none. \
Without `--soon` the list is fetched beside the program if swap is on a disk; if swap is compressed RAM, that would only \
take the program's time.

Exit codes: 0 done; 2 usage; 4 it is not parked, has ended, or is in a group that another has frozen.")]
pub struct ResumeArgs {
    /// The name that it was parked by.
    name: String,
    /// Fetch its pages now, and do not start it yet.
    #[arg(long)]
    soon: bool,
}

/// What the keeper reads.
#[derive(clap::Args)]
pub struct KeepArgs {
    name: String,
}

fn parking() -> Result<Parking, Failure> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = if rustix::process::geteuid().is_root() { Some("/run".into()) } else { own };
    let message = "XDG_RUNTIME_DIR is not set; set it to a folder of your own, for the sockets of parked programs";
    let folder = folder.ok_or_else(|| Failure::Other { message: message.into(), code: 4 })?;
    Ok(Parking::at(folder.join("coldframe"), env!("CARGO_PKG_VERSION")))
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let parking = parking()?;
    let Some(name) = args.name else {
        let all = parking.all();
        return say(&args.format, &all, table(&all));
    };
    let done = match parking.ask(&name, "park")? {
        Some(done) => done,
        None => {
            start(&name)?;
            parking.ask(&name, "park")?.ok_or_else(|| lost(&name))?
        }
    };
    let size = human_size;
    let used = match done.listed {
        0 => "What it uses is seen from its next resume on.".into(),
        listed => format!("It has used {} of what was in swap.", size(listed)),
    };
    let said = format!("{name} is parked: {} in swap, {} still in RAM. {used}\n", size(done.swapped), size(done.stays));
    say(&args.format, &[done], said)
}

/// Prints these programs, in words or as JSON.
fn say(format: &str, all: &[Standing], words: String) -> Result<ExitCode, Failure> {
    let one = |of: &Standing| {
        let bytes = json!({ "ram": of.stays, "swapped": of.swapped, "listed": of.listed });
        json!({ "name": of.name, "parked": of.parked, "bytes": bytes })
    };
    let programs = || json!({ "programs": all.iter().map(one).collect::<Vec<_>>() });
    output::write(None, &if format == "json" { output::json(&programs()) } else { words })?;
    Ok(ExitCode::SUCCESS)
}

fn lost(name: &str) -> Failure {
    let message = format!("{name} is not parked: it never was, or has ended; `coldframe park --list` lists what is");
    Failure::Other { message, code: 4 }
}

/// Starts the program's keeper, which outlives this process.
fn start(name: &str) -> Result<(), Failure> {
    let failed = |e: std::io::Error| KernelError::Refused(format!("the keeper cannot be started: {e}"));
    let mut command = this("kernel-park")?;
    command.arg("--").arg(name).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped()).current_dir("/");
    let mut keeper = command.spawn().map_err(failed)?;
    let mut said = String::new();
    let stdout = keeper.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut said).map_err(failed)?;
    match said.trim() {
        "ready" => Ok(()),
        why => Err(KernelError::Refused(why.into()).into()),
    }
}

pub fn resume(args: ResumeArgs) -> Result<ExitCode, Failure> {
    let verb = if args.soon { "soon" } else { "resume" };
    let done = parking()?.ask(&args.name, verb)?.ok_or_else(|| lost(&args.name))?;
    let (name, listed) = (&args.name, human_size(done.listed));
    let said = match (args.soon, done.listed) {
        (true, 0) => format!("{name} has no list yet: it has one when it is parked after a resume.\n"),
        (true, _) => format!("{listed} of {name} fetched; it stands still until `coldframe resume`.\n"),
        (false, 0) => format!("{name} runs.\n"),
        (false, _) => format!("{name} runs; {listed} that it used before are fetched beside it.\n"),
    };
    output::write(None, &said)?;
    Ok(ExitCode::SUCCESS)
}

/// The keeper's process, in a session of its own.
pub fn keep(args: KeepArgs) -> Result<ExitCode, Failure> {
    let _ = rustix::process::setsid();
    let guard = || {
        let command = this("kernel-guard").map_err(|e| KernelError::Refused(e.to_string()))?;
        Guard::start(command)
    };
    let say = |line: &str| {
        let mut stdout = std::io::stdout();
        let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    };
    if let Err(error) = parking()?.keep(&Tree::machine(), &args.name, &guard, || say("ready")) {
        say(&error.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

fn table(all: &[Standing]) -> String {
    if all.is_empty() {
        return "No program is parked.\n".into();
    }
    let row = |of: &Standing| {
        let state = if of.parked { "parked" } else { "runs" };
        vec![of.name.clone(), state.into(), human_size(of.stays), human_size(of.swapped), human_size(of.listed)]
    };
    format!("{}\n", styled(&["program", "", "in RAM", "in swap", "used"], all.iter().map(row).collect(), 2))
}
