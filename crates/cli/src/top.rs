//! `coldframe top`: shows the work of a running pager.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use coldframe_live::{Snapshot, StatsFile, PAGE};
use coldframe_sheet::quantity::{self, human_count};
use coldframe_show::table::styled;
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

PID is any process of the run. Without it, the only running program is shown. Counts are sums over all processes of \
the run. The bars show the last 20 intervals; the highest bar is full. Ctrl-C ends it.")]
pub struct Args {
    /// Process.
    pid: Option<u32>,
    /// Time between two looks.
    #[arg(long, default_value = "1s")]
    interval: String,
    /// Print the totals once, and end.
    #[arg(long)]
    once: bool,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json", "prometheus"], default_value = "table")]
    format: String,
}

/// Samples that are kept: 20 intervals.
const LOOKS: usize = 21;

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let interval = quantity::time(&args.interval).map_err(|e| Failure::usage(format!("--interval: {e}")))?;
    let interval = Duration::from_nanos((interval.0 / 1000).max(10_000_000));
    let (pid, path) = find(args.pid)?;
    let stats = StatsFile::open(&path)?;
    if args.once || args.format == "prometheus" {
        let seen = VecDeque::from([Snapshot::default(), stats.snapshot()]);
        let text = show(&args.format, &seen, None);
        match args.format.as_str() {
            "prometheus" => output::exact(None, &text)?,
            _ => output::write(None, &text)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|e| Failure::Other { message: format!("cannot catch signal {signal}: {e}"), code: 5 })?;
    }
    let redraw = args.format == "table" && std::io::stdout().is_terminal();
    let mut seen = VecDeque::from([stats.snapshot()]);
    while !stop.load(Ordering::Relaxed) && PathBuf::from(format!("/proc/{pid}")).exists() {
        std::thread::sleep(interval);
        seen.push_back(stats.snapshot());
        if seen.len() > LOOKS {
            seen.pop_front();
        }
        let clear = if redraw { "\x1b[H\x1b[2J" } else { "" };
        output::write(None, &format!("{clear}{}", show(&args.format, &seen, Some(interval))))?;
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

/// `seen`: at least two samples, the newest last.
fn show(format: &str, seen: &VecDeque<Snapshot>, interval: Option<Duration>) -> String {
    let now = &seen[seen.len() - 1];
    match format {
        "json" => format!("{}\n", json!({ "seconds": interval.map(|i| i.as_secs_f64()), "now": now })),
        "prometheus" => prometheus(now),
        _ => table(seen, interval),
    }
}

/// A bar for each interval, in proportion to the highest.
fn bars(counts: &[u64]) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let steps: Vec<u64> = counts.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let most = steps.iter().max().copied().unwrap_or(0).max(1);
    steps.iter().map(|step| BARS[(step * 8).div_ceil(most) as usize]).collect()
}

fn table(seen: &VecDeque<Snapshot>, interval: Option<Duration>) -> String {
    let (now, before) = (&seen[seen.len() - 1], &seen[seen.len() - 2]);
    let seconds = interval.map_or(1.0, |i| i.as_secs_f64());
    let rate = |n: u64, b: u64| human_count((n.saturating_sub(b) as f64 / seconds) as u64);
    let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
    let row = |name: &str, of: fn(&Snapshot) -> coldframe_live::Times| {
        let (n, b) = (of(now), of(before));
        let counts: Vec<u64> = seen.iter().map(|look| of(look).count).collect();
        vec![name.to_string(), bars(&counts), rate(n.count, b.count), us(n.p50_ns), us(n.p99_ns), us(n.p999_ns)]
    };
    let mut rows = vec![
        row("page from the device", |look| look.device_fault),
        row("page from RAM or zeros", |look| look.memory_fault),
        row("false fault", |look| look.false_fault),
        row("first write", |look| look.write_fault),
    ];
    let per = if interval.is_some() { "/s" } else { "in all" };
    let mut headings = vec!["fault", "", per, "p50 us", "p99", "p99.9"];
    if interval.is_none() {
        // Totals have no history.
        headings.remove(1);
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    let text = headings.len() - 4;
    let mib = |pages: u64| format!("{:.1} MiB", (pages * PAGE as u64) as f64 / (1 << 20) as f64);
    let bytes = |n: u64, b: u64| format!("{:.1} MiB", n.saturating_sub(b) as f64 / seconds / (1 << 20) as f64);
    format!(
        "{}\nRAM {} of {}, {} managed, {} processes; device {per}: {} read, {} written; evictions {per}: {}\n",
        styled(&headings, rows, text),
        mib(now.resident),
        mib(now.frames),
        mib(now.managed),
        now.processes,
        bytes(now.device_bytes_read, before.device_bytes_read),
        bytes(now.device_bytes_written, before.device_bytes_written),
        rate(now.evictions, before.evictions),
    )
}

/// Values that can fall; all others only grow.
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

#[cfg(test)]
mod tests {
    use super::bars;

    #[test]
    fn the_highest_interval_has_a_full_bar_and_the_least_fault_is_seen() {
        assert_eq!(bars(&[0, 800, 800, 801, 1201]), "█ ▁▄");
        assert_eq!(bars(&[5, 5]), " ");
    }
}
