//! `coldframe top`: what a running pager does, as it does it.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use coldframe_device::quantity;
use coldframe_live::{Snapshot, StatsFile, PAGE};
use coldframe_report::table::{human_count, styled};
use serde_json::json;

use crate::failure::Failure;
use crate::output;

/// Show what a paged program does while it runs: faults, latency, RAM, bytes to and from the device.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe top
  coldframe top 4711 --interval 5s
  coldframe top 4711 --once --format prometheus > /var/lib/node_exporter/coldframe.prom

PID is any process of the run; without it the only one that runs is shown. Counts are sums over all processes of the run.
Ctrl-C ends it.")]
pub struct Args {
    /// Process.
    pid: Option<u32>,
    /// Time between two looks.
    #[arg(long, default_value = "1s")]
    interval: String,
    /// Show the totals once.
    #[arg(long)]
    once: bool,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json", "prometheus"], default_value = "table")]
    format: String,
}

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let interval = quantity::time(&args.interval).map_err(|e| Failure::usage(format!("--interval: {e}")))?;
    let interval = Duration::from_nanos((interval.0 / 1000).max(10_000_000));
    let (pid, path) = find(args.pid)?;
    let stats = StatsFile::open(&path)?;
    if args.once || args.format == "prometheus" {
        output::write(None, &show(&args.format, &stats.snapshot(), &Snapshot::default(), None))?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|e| Failure::Other { message: format!("cannot catch signal {signal}: {e}"), code: 5 })?;
    }
    let redraw = args.format == "table" && std::io::stdout().is_terminal();
    let mut before = stats.snapshot();
    while !stop.load(Ordering::Relaxed) && PathBuf::from(format!("/proc/{pid}")).exists() {
        std::thread::sleep(interval);
        let now = stats.snapshot();
        let clear = if redraw { "\x1b[H\x1b[2J" } else { "" };
        output::write(None, &format!("{clear}{}", show(&args.format, &now, &before, Some(interval))))?;
        before = now;
    }
    Ok(ExitCode::SUCCESS)
}

/// The process, and where its statistics are.
fn find(pid: Option<u32>) -> Result<(u32, PathBuf), Failure> {
    let refuse = |message: String| Err(Failure::Other { message, code: 3 });
    if let Some(pid) = pid {
        return match StatsFile::find(pid) {
            Some(path) => Ok((pid, path)),
            None => refuse(format!("process {pid} is not paged by coldframe, has ended, or belongs to somebody else")),
        };
    }
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let own = std::process::id();
    let mut found: Vec<(u32, PathBuf)> =
        pids.filter(|pid| *pid != own).filter_map(|pid: u32| Some((pid, StatsFile::find(pid)?))).collect();
    // All processes of a run have the same file.
    found.sort_unstable();
    found.dedup_by_key(|(_, path)| std::fs::metadata(path).ok().map(|m| std::os::unix::fs::MetadataExt::ino(&m)));
    match found.len() {
        0 => refuse("no process is paged by coldframe now; start one with `coldframe run`".to_string()),
        1 => Ok(found.swap_remove(0)),
        _ => {
            let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let list: Vec<_> = found.iter().map(|(pid, _)| format!("{pid} ({})", name(pid).trim())).collect();
            refuse(format!("several runs are under way; give one of {}", list.join(", ")))
        }
    }
}

fn show(format: &str, now: &Snapshot, before: &Snapshot, interval: Option<Duration>) -> String {
    match format {
        "json" => format!("{}\n", json!({ "seconds": interval.map(|i| i.as_secs_f64()), "now": now })),
        "prometheus" => prometheus(now),
        _ => table(now, before, interval),
    }
}

fn table(now: &Snapshot, before: &Snapshot, interval: Option<Duration>) -> String {
    let seconds = interval.map_or(1.0, |i| i.as_secs_f64());
    let rate = |n: u64, b: u64| human_count(((n - b) as f64 / seconds) as u64);
    let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
    let row = |name: &str, n: coldframe_live::Times, b: coldframe_live::Times| {
        vec![name.to_string(), rate(n.count, b.count), us(n.p50_ns), us(n.p99_ns), us(n.p999_ns)]
    };
    let rows = vec![
        row("page from the device", now.device_fault, before.device_fault),
        row("page from RAM or zeros", now.memory_fault, before.memory_fault),
        row("false fault", now.false_fault, before.false_fault),
        row("first write", now.write_fault, before.write_fault),
    ];
    let per = if interval.is_some() { "/s" } else { "in all" };
    let mib = |pages: u64| format!("{:.1} MiB", (pages * PAGE as u64) as f64 / (1 << 20) as f64);
    let bytes = |n: u64, b: u64| format!("{:.1} MiB", (n - b) as f64 / seconds / (1 << 20) as f64);
    format!(
        "{}\nRAM {} of {}, {} managed, {} processes; device {per}: {} read, {} written; evictions {per}: {}\n",
        styled(&["fault", per, "p50 us", "p99", "p99.9"], rows, 1),
        mib(now.resident),
        mib(now.frames),
        mib(now.managed),
        now.processes,
        bytes(now.device_bytes_read, before.device_bytes_read),
        bytes(now.device_bytes_written, before.device_bytes_written),
        rate(now.evictions, before.evictions),
    )
}

/// What goes up and down; all else only counts.
const GAUGES: &[&str] =
    &["processes", "frames", "resident", "resident_max", "managed", "pinned", "device_read_ns", "walk_step_ns"];

/// Prometheus' text exposition format, version 0.0.4; times in seconds.
fn prometheus(now: &Snapshot) -> String {
    let mut text = String::new();
    for (name, value) in now.counters() {
        let gauge = GAUGES.contains(&name);
        let (kind, end) = if gauge { ("gauge", "") } else { ("counter", "_total") };
        match name.strip_suffix("_ns") {
            Some(name) => {
                let value = value as f64 / 1e9;
                text +=
                    &format!("# TYPE coldframe_{name}_seconds{end} {kind}\ncoldframe_{name}_seconds{end} {value}\n");
            }
            None => text += &format!("# TYPE coldframe_{name}{end} {kind}\ncoldframe_{name}{end} {value}\n"),
        }
    }
    for (name, times) in now.histograms() {
        text += &format!("# TYPE coldframe_{name}_seconds summary\n");
        for (quantile, ns) in [("0.5", times.p50_ns), ("0.99", times.p99_ns), ("0.999", times.p999_ns)] {
            text += &format!("coldframe_{name}_seconds{{quantile=\"{quantile}\"}} {}\n", ns as f64 / 1e9);
        }
        let sum = times.mean_ns as f64 * times.count as f64 / 1e9;
        text += &format!("coldframe_{name}_seconds_sum {sum}\ncoldframe_{name}_seconds_count {}\n", times.count);
    }
    text
}
