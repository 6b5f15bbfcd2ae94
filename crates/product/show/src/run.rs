//! A run in words: faults, traffic, waits. The stages of faults and what the pager has decided are in its JSON.

use coldframe_answer::run::by_kernel::{KernelRun, Stall};
use coldframe_answer::run::paged::{PagedRun, PagerRun, SwapAreaRun, Times, PAGE};
use coldframe_answer::run::rented::RentedRun;
use coldframe_sheet::quantity::{human_count, human_size};

use crate::table::styled;

/// The statistics of a run; empty if no pager has started.
pub fn words(run: &PagedRun) -> String {
    match run {
        PagedRun::Pager(pager) if !pager.started => killed(run),
        PagedRun::Pager(pager) => nothing_came(pager) + &by_pager(pager) + &disk(pager) + &killed(run),
        PagedRun::Kernel(run) => by_kernel(run),
    }
}

/// A run in slow memory.
pub fn rented(run: &RentedRun) -> String {
    let [heap, dram, ram] = [run.heap_bytes, run.in_dram_bytes, run.ram_bytes].map(human_size);
    let [swapped, parts] = [run.swapped_pages, run.parts].map(human_count);
    format!(
        "{heap} at most, {dram} of it in DRAM ({ram} given), the rest on node {}\n{swapped} pairs of pages changed \
         places ({:.1} us a page), {parts} parts watched\n{:.2} s\n",
        run.node, run.move_us, run.program.seconds
    )
}

/// Whether the kernel has killed something of a run, which `--quiet` does not drop; empty: no.
pub fn killed(run: &PagedRun) -> String {
    match run {
        PagedRun::Pager(run) if run.killed => {
            "the kernel has killed the program: no memory on this machine or in its container; give less --ram\n".into()
        }
        PagedRun::Pager(_) => String::new(),
        PagedRun::Kernel(run) => killed_in_group(run.counts.killed),
    }
}

fn nothing_came(run: &PagerRun) -> String {
    match run.stats.resident_max {
        0 => "note: no memory came to our pager; the program takes none, or starts another one that cannot be paged \
              by it (--by kernel)\n"
            .into(),
        _ => String::new(),
    }
}

/// What the disk wrote in the meantime, by its own counter.
fn disk(run: &PagerRun) -> String {
    let ours = run.device.bytes_written;
    let Some(bytes) = run.device.disk_bytes_written.filter(|_| ours > 0) else { return String::new() };
    let (mib, times) = (bytes as f64 / f64::from(1 << 20), bytes as f64 / ours as f64);
    format!("all writes to that disk meanwhile: {mib:.1} MiB, {times:.2} times the swap file's\n")
}

/// A run by our pager.
fn by_pager(run: &PagerRun) -> String {
    let (options, stats, seconds) = (&run.config, &run.stats, run.program.seconds);
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64);
    let (maximum, given) = (mib(stats.resident_max * PAGE as u64), mib(options.ram));
    let all = run.all_memory.map_or_else(String::new, |all| {
        let (most, beside) = (mib(all.most_bytes), mib(all.beside_bytes));
        format!("RAM in all {most} of {given}; code, stacks, files and tables took {beside} of it\n")
    });
    if stats.true_faults == 0 {
        let fits = "nothing was paged: the program could touch at most";
        let given = if all.is_empty() { format!(", and RAM is {given}") } else { String::new() };
        return format!("{fits} {maximum} at a time{given}\n{all}{seconds:.2} s, {} forks\n", stats.forks);
    }
    let of =
        if all.is_empty() { format!("RAM {maximum} of at most {given}") } else { format!("Pages in RAM {maximum}") };
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
        row(if options.slow.is_some() { "copied, to be written" } else { "page from the disk" }, stats.device_fault),
        row("page from RAM or zeros", stats.memory_fault),
        row("page that was still in RAM", stats.false_fault),
        row("first write", stats.write_fault),
        row("wait for the disk", stats.device_wait),
    ];
    format!(
        "{}\n{all}{of}; {} pages left it, {} of them written ({} found unchanged){}\n\
         {}: {} read, {} written in {} writes\n\
         {}{}{:.2} s, {} forks\n",
        styled(&["fault", "count", "mean us", "p50", "p99", "p99.9", "max"], rows, 1),
        human_count(stats.evictions),
        human_count(stats.dirty_evictions),
        human_count(stats.writes_saved),
        some(stats.forced_evictions, "forced")
            + &some(stats.promotions, "copied since they are used often")
            + &some(stats.in_place, "written in place"),
        if options.slow.is_some() { "slow memory" } else { "disk" },
        mib(stats.device_bytes_read),
        mib(stats.device_bytes_written),
        human_count(stats.device_writes),
        run.swap_area.as_ref().map_or_else(String::new, area),
        awake(run),
        seconds,
        stats.forks,
    )
}

/// The end of a list: a number that is seldom other than 0.
fn some(number: u64, what: &str) -> String {
    if number > 0 {
        format!(", {} {what}", human_count(number))
    } else {
        String::new()
    }
}

fn awake(run: &PagerRun) -> String {
    match run.awake_seconds {
        None => {
            "faults came fast, but this user may not keep the processors awake (`coldframe doctor --setup`)\n".into()
        }
        Some(0.0) => String::new(),
        Some(seconds) => format!("processors kept awake for {seconds:.1} s, while faults came fast\n"),
    }
}

/// The events of a swap area.
fn area(area: &SwapAreaRun) -> String {
    let outside = match area.without_room {
        0 => String::new(),
        pages => format!("; {} pages beside it, since it was full", human_count(pages)),
    };
    format!(
        "swap area, {}: {} programs, {} copies (write amplification {:.3}), {} erases in {} collections, a block {} \
         to {} times{outside}\n",
        area.collector.split(':').next().unwrap_or_default(),
        human_count(area.programs),
        human_count(area.copies),
        area.write_amplification,
        human_count(area.erases),
        human_count(area.collections),
        area.block_erases.min,
        area.block_erases.max,
    )
}

/// The limit follows compressed pages within some 20 ms: less than this part over `--ram` is not named.
const OVER: u64 = 8;

/// A run by the kernel.
fn by_kernel(run: &KernelRun) -> String {
    let (counts, memory, ram) = (&run.counts, &run.memory, run.config.ram);
    let most = memory.together_bytes.max(memory.peak_bytes.unwrap_or(0));
    let compressed = match memory.compressed_bytes {
        0 => String::new(),
        _ if most <= ram + ram / OVER => format!("; compressed pages took {}", human_size(memory.compressed_bytes)),
        bytes => format!("; compressed pages took {}, give --swap FILE, or more RAM", human_size(bytes)),
    };
    format!(
        "by the kernel: {} faults, {} of them from swap or files; {} pages came back\n\
         RAM in all {} of {}{compressed}\n\
         swap {}: {} out, {} in\n\
         {}\n{}{:.2} s\n",
        human_count(counts.faults),
        human_count(counts.major_faults),
        human_count(counts.refaults),
        human_size(most),
        human_size(ram),
        run.config.swap,
        human_size(counts.swap_out_bytes),
        human_size(counts.swap_in_bytes),
        waited(&run.stall),
        killed_in_group(counts.killed),
        run.program.seconds,
    )
}

fn killed_in_group(processes: u64) -> String {
    match processes {
        0 => String::new(),
        n => format!("the kernel has killed {n} of its processes: no memory; give more --ram, or more swap\n"),
    }
}

fn waited(stall: &Stall) -> String {
    match (stall.some_seconds, stall.full_seconds) {
        (Some(some), Some(full)) => format!("waited for memory: {some:.2} s some thread, {full:.2} s all of them"),
        _ if stall.device_seconds == 0.0 => {
            "waited for memory: not known (this kernel counts it with psi=1 on its command line)".into()
        }
        _ => format!("waited for swap or files: {:.2} s or more", stall.device_seconds),
    }
}
