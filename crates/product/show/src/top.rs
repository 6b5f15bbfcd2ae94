//! The counters of a running pager: a table for a terminal, and Prometheus' text format.

use std::collections::VecDeque;
use std::time::Duration;

use coldframe_answer::run::paged::{Snapshot, Times, PAGE};
use coldframe_answer::service::top::Top;
use coldframe_sheet::quantity::human_count;

use crate::table::styled;

/// A bar for each interval, in proportion to the highest.
fn bars(counts: &[u64]) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let steps: Vec<u64> = counts.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let highest = steps.iter().max().copied().unwrap_or(0).max(1);
    steps.iter().map(|step| BARS[(step * 8).div_ceil(highest) as usize]).collect()
}

/// The runs, the one with most page reads first. `looks`: of each run, at least two, the newest last.
pub fn list(runs: &[&VecDeque<Top>], interval: Option<Duration>) -> String {
    let seconds = interval.map_or(1.0, |i| i.as_secs_f64());
    let row = |looks: &&VecDeque<Top>| {
        let [now, before] = [1, 2].map(|back| &looks[looks.len() - back]);
        let reads = now.now.device_bytes_read.saturating_sub(before.now.device_bytes_read) / PAGE as u64;
        let (ram, limit) = (mib(now.now.resident), mib(now.now.frames));
        let rate = human_count((reads as f64 / seconds) as u64);
        (reads, vec![now.program.clone(), now.user.clone(), now.process.to_string(), ram, limit, rate])
    };
    let mut rows: Vec<_> = runs.iter().map(row).collect();
    rows.sort_by_key(|(reads, _)| std::cmp::Reverse(*reads));
    let reads = if interval.is_some() { "reads/s" } else { "reads" };
    let headings = ["program", "user", "process", "paged, in RAM", "at most", reads];
    format!("{}\n", styled(&headings, rows.into_iter().map(|(_, row)| row).collect(), 2))
}

fn mib(pages: u64) -> String {
    format!("{:.1} MiB", (pages * PAGE as u64) as f64 / (1 << 20) as f64)
}

/// The rates since the look before; without an interval, totals. `looks`: at least two looks, the newest last.
pub fn table(looks: &VecDeque<Top>, interval: Option<Duration>) -> String {
    let newest = &looks[looks.len() - 1];
    let (now, before) = (&newest.now, &looks[looks.len() - 2].now);
    let seconds = interval.map_or(1.0, |i| i.as_secs_f64());
    let rate = |n: u64, b: u64| human_count((n.saturating_sub(b) as f64 / seconds) as u64);
    let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
    let row = |name: &str, times: fn(&Snapshot) -> Times| {
        let (n, b) = (times(now), times(before));
        let counts: Vec<u64> = looks.iter().map(|look| times(&look.now).count).collect();
        vec![name.to_string(), bars(&counts), rate(n.count, b.count), us(n.p50_ns), us(n.p99_ns), us(n.p999_ns)]
    };
    let mut rows = vec![
        row("page from the disk", |look| look.device_fault),
        row("page from RAM or zeros", |look| look.memory_fault),
        row("page that was still in RAM", |look| look.false_fault),
        row("first write", |look| look.write_fault),
    ];
    let per = if interval.is_some() { "/s" } else { "total" };
    let mut headings = vec!["fault", "", per, "p50 us", "p99", "p99.9"];
    if interval.is_none() {
        // Totals have no history.
        headings.remove(1);
        rows.iter_mut().for_each(|row| drop(row.remove(1)));
    }
    let text = headings.len() - 4;
    let bytes = |n: u64, b: u64| format!("{:.1} MiB", n.saturating_sub(b) as f64 / seconds / (1 << 20) as f64);
    format!(
        "{}, process {} of {}, {} of them\n{}\nPaged memory in RAM: {} of at most {}\ndisk {per}: {} read, {} written; \
         pages out {per}: {}\n",
        newest.program,
        newest.process,
        newest.user,
        now.processes,
        styled(&headings, rows, text),
        mib(now.resident),
        mib(now.frames),
        bytes(now.device_bytes_read, before.device_bytes_read),
        bytes(now.device_bytes_written, before.device_bytes_written),
        rate(now.evictions, before.evictions),
    )
}

/// Values that can fall; all others only grow.
const GAUGES: &[&str] = &[
    "processes",
    "frames",
    "resident",
    "resident_max",
    "together_max",
    "managed",
    "pinned",
    "device_read_ns",
    "walk_step_ns",
];

/// Prometheus' text exposition format, version 0.0.4; times in seconds.
pub fn prometheus(now: &Snapshot) -> String {
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
