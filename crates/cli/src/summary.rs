//! A run's statistics as a table of faults, stages and device traffic, and as JSON.

use std::time::Duration;

use coldframe_live::{Chosen, Options, Snapshot, Times, PAGE};
use coldframe_sheet::quantity::human_count;
use coldframe_show::table::styled;
use serde_json::{json, Value};

use crate::area;

/// Bytes of an erase block, to convert written bytes to blocks. LOBI's flash (slide 4): 128 KiB.
const ERASE_BLOCK: u64 = 128 << 10;

/// The statistics of a run as JSON. `status`: the program's exit code.
pub fn json(options: &Options, stats: &Snapshot, chosen: Option<&Chosen>, status: u8, took: Duration) -> Value {
    let counts: serde_json::Map<String, Value> =
        stats.counters().into_iter().map(|(name, n)| (name.to_string(), n.into())).collect();
    let latency: serde_json::Map<String, Value> =
        stats.histograms().into_iter().map(|(name, times)| (name.to_string(), json!(times))).collect();
    json!({
        "schema_version": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "config": options,
        "chosen": chosen,
        "counts": counts,
        "latency_ns": latency,
        "device": {
            "bytes_written": stats.device_bytes_written,
            "bytes_read": stats.device_bytes_read,
            "erase_block_bytes": ERASE_BLOCK,
            "erase_estimate": stats.device_bytes_written.div_ceil(ERASE_BLOCK),
        },
        "swap_area": area::json(options, stats),
        "program": { "status": status, "seconds": took.as_secs_f64() },
    })
}

/// The same as text.
pub fn table(options: &Options, stats: &Snapshot, chosen: Option<&Chosen>, took: Duration) -> String {
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64);
    let (most, given) = (mib(stats.resident_max * PAGE as u64), mib(options.ram));
    if stats.true_faults == 0 {
        let seconds = took.as_secs_f64();
        let fits = "nothing was paged: the program could touch at most";
        return format!("{fits} {most} at a time, and RAM is {given}\n{seconds:.2} s, {} forks\n", stats.forks);
    }
    let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
    let row = |name: &str, t: Times| {
        vec![
            name.to_string(),
            human_count(t.count),
            us(t.mean_ns),
            us(t.p50_ns),
            us(t.p99_ns),
            us(t.p999_ns),
            us(t.max_ns),
        ]
    };
    let rows = vec![
        row(if options.slow.is_some() { "copied, to be written" } else { "page from the device" }, stats.device_fault),
        row("page from RAM or zeros", stats.memory_fault),
        row("false fault", stats.false_fault),
        row("first write", stats.write_fault),
        row("wait for the device", stats.device_wait),
    ];
    let hidden = match stats.evict_ns {
        0 => "not observable".to_string(),
        all => format!("{:.1} %", 100.0 * (all - stats.evict_exposed_ns.min(all)) as f64 / all as f64),
    };
    format!(
        "{}\nRAM {most} of at most {given}, {} managed; {} evictions, {} of them written ({} found unchanged)\n\
         {}: {} read, {} written in {} writes; search and eviction hidden behind the device: {hidden}\n\
         {}{}{}{:.2} s, {} forks\n",
        styled(&["fault", "count", "mean us", "p50", "p99", "p99.9", "max"], rows, 1),
        mib(stats.managed * PAGE as u64),
        human_count(stats.evictions),
        human_count(stats.dirty_evictions),
        human_count(stats.writes_saved),
        if options.slow.is_some() { "slow memory" } else { "device" },
        mib(stats.device_bytes_read),
        mib(stats.device_bytes_written),
        human_count(stats.device_writes),
        area::words(options, stats),
        stages(stats),
        chosen.map_or_else(String::new, |chosen| decided(chosen, stats, options.slow.is_some())),
        took.as_secs_f64(),
        stats.forks,
    )
}

/// The time of each stage of a true fault.
fn stages(stats: &Snapshot) -> String {
    let Some(faults) = std::num::NonZero::new(stats.true_faults) else { return String::new() };
    let stages = [
        ("PreProcess", stats.pre_process_ns),
        ("GetFreeframe", stats.get_freeframe_ns),
        ("LoadStopover", stats.load_stopover_ns),
        ("TransHostMem + UpdateMMU", stats.trans_host_mem_ns),
        ("PostProcess", stats.post_process_ns),
    ];
    let each = stages.map(|(stage, ns)| format!("{stage} {:.1}", ns as f64 / faults.get() as f64 / 1e3));
    format!("a true fault's stages, mean us: {}\n", each.join(", "))
}

fn decided(chosen: &Chosen, stats: &Snapshot, slow: bool) -> String {
    let us = |ns: u64| ns as f64 / 1e3;
    let (read, step) = (us(stats.device_read_ns), us(stats.walk_step_ns));
    let measured = match slow {
        true => String::new(),
        false => format!("; measured: device read {read:.1} us, walk step {step:.1} us"),
    };
    format!(
        "{}, {} victims at a time, wait {}{}\n",
        chosen.policy,
        chosen.evict_batch,
        json!(chosen.wait).as_str().unwrap_or_default(),
        measured
    )
}
