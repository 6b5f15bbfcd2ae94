//! The answer as text: at most 18 lines of 80 columns, of which the last two are commands to paste.

use std::path::Path;

use coldframe_answer::run::program::is_root;
use coldframe_answer::{Answer, By, File, Known, MemoryUse, Method, NotPaged, Runs, Watched, UNNOTICED};
use coldframe_sheet::quantity::{human_count, human_seconds, human_size, ram_size};

use crate::text::{command, paragraph, width};

/// The most sizes in the table, and those that it has at least if there are as many: all, the advised one, a half, a
/// quarter.
const ROWS: usize = 6;
const ROWS_MIN: usize = 4;
/// Lines of the whole answer.
const LINES: usize = 18;
/// Lines for the command.
const COMMAND: usize = 2;

/// The whole answer. `report`: the page, if there is one; `more`: lines between the answer and its commands. If other
/// lines are long, the table has fewer sizes; then what the answer rests on, and how long memory rests are left out: the
/// page has them.
pub fn words(answer: &Answer, report: Option<&Path>, more: &str) -> String {
    let forms = (0..=SPARE).rev().flat_map(|spare| (ROWS_MIN..=ROWS).rev().map(move |rows| (rows, spare)));
    let forms = forms.chain((2..ROWS_MIN).rev().map(|rows| (rows, 0)));
    let (mut text, commands) = (String::new(), commands(answer, report));
    for (rows, spare) in forms {
        text = with(answer, rows, spare);
        if text.lines().count() + commands.lines().count() <= LINES {
            break;
        }
    }
    text + more + &commands
}

/// Sentences that can be left out.
const SPARE: usize = 2;

/// The answer with at most this many sizes, and this many of the sentences that can be left out.
fn with(answer: &Answer, rows: usize, spare: usize) -> String {
    let sizes = shown(answer, rows);
    let mut out = filled(&(needs(answer) + &with_given_ram(answer)));
    out += &memory_use(answer).map_or(String::new(), pictures);
    out += &table(answer, &sizes);
    out += &filled(&thrashes(answer));
    out += &filled(&recommended(answer));
    out += &otherwise(answer);
    out += &files(answer).map_or(String::new(), |files| filled(&files));
    out += &memory_use(answer).map_or(String::new(), |memory_use| remarks(memory_use, spare >= 1));
    if spare >= SPARE && !answer.how_sure.is_empty() {
        // The most important ones; the page has all.
        out +=
            &filled(&format!("How sure: {}.", answer.how_sure.iter().take(3).cloned().collect::<Vec<_>>().join(". ")));
    }
    out
}

/// A line of heat by address, and one of the working set by time.
fn pictures(memory_use: &MemoryUse) -> String {
    let columns = width() - 8;
    let highest = |counts: &[f64]| counts.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let heat = squeezed(&memory_use.heat, columns);
    let full = (1.0 + highest(&heat)).ln();
    let digits: String = heat.iter().map(|n| format!("{:.0}", 9.0 * (1.0 + n).ln() / full)).collect();
    let used: Vec<f64> = memory_use.working_set_bytes.iter().map(|bytes| *bytes as f64).collect();
    let used = squeezed(&used, columns);
    let block = |n: &f64| BLOCKS[((n / highest(&used) * 7.0).round() as usize).min(7)];
    let spark: String = used.iter().map(block).collect();
    format!("  heat  {digits}\n  use   {spark}\n")
}

/// Eighths of a block.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// At most that many means of neighbours.
fn squeezed(values: &[f64], columns: usize) -> Vec<f64> {
    let columns = columns.min(values.len());
    let part = |i: usize| &values[i * values.len() / columns..(i + 1) * values.len() / columns];
    (0..columns).map(|i| part(i).iter().sum::<f64>() / part(i).len() as f64).collect()
}

/// The mappings that fault most, and who made them.
pub fn who(memory_use: &MemoryUse) -> Option<String> {
    let mut mappings = memory_use.who.iter().enumerate().map(|(i, mapping)| {
        let relation = if i == 0 { "of its faults are in a mapping of" } else { "in" };
        let by = mapping.by.as_ref().map_or(String::new(), |by| format!(" made by {by}"));
        format!("{:.0} % {relation} {}{by}", mapping.faults_percent, human_size(mapping.bytes))
    });
    let first = mappings.next()?;
    Some(format!("Who: {}.", [first].into_iter().chain(mappings).collect::<Vec<_>>().join(", ")))
}

/// Who faults, what is idle, if there is room for it, and what else the machine did.
fn remarks(memory_use: &MemoryUse, room: bool) -> String {
    let mut out = String::new();
    who(memory_use).iter().for_each(|who| out += &filled(who));
    if let Some(idle) = memory_use.idle.as_ref().filter(|_| room) {
        let [half, quarter, last] = [idle.p50_seconds, idle.p75_seconds, idle.p99_seconds].map(human_seconds);
        out += &filled(&format!("Idle: half of it rests for {half} or more, a quarter {quarter}, 1 % {last}."));
    }
    if let Some(noise) = &memory_use.noise {
        let (others, processors) = (noise.others, noise.processors);
        let percent = 100.0 * others / f64::from(processors.max(1));
        out += &filled(&match percent < QUIET {
            true => format!("Noise: little; other programs used {others:.1} of {processors} processors meanwhile."),
            false => {
                format!("Noise: other programs used {others:.1} of {processors} processors; times may be up to {percent:.0} % too long.")
            }
        });
    }
    out
}

/// Other programs' part of the processors that hardly changes a time, in percent. A guess.
const QUIET: f64 = 5.0;

fn needs(answer: &Answer) -> String {
    let (heap, rest) = (answer.managed_bytes.max(answer.together_bytes), answer.not_paged_bytes);
    let of_heap = match (answer.processes, answer.recorded()) {
        (2.., Some(_)) => format!("of heap at one time (the largest process {})", human_size(answer.managed_bytes)),
        _ => "of heap".into(),
    };
    let parts = match rest {
        0 => format!("{of_heap}; memory that is not paged comes on top"),
        rest => {
            let kinds = answer.not_paged.as_ref().filter(|_| 10 * rest > heap + rest).map_or(String::new(), kinds);
            format!("{} {of_heap}, {} not paged{kinds}", human_size(heap), human_size(rest))
        }
    };
    let joint = if rest == 0 { " " } else { ": " };
    let ended = match answer.exit {
        Some(0) => String::new(),
        Some(code) => format!(" It ended with exit code {code}."),
        None => " A signal ended it.".into(),
    };
    let (time, size) = (alone(answer), human_size(heap + rest));
    let about = if answer.method() == Method::ReferencedBits { "about " } else { "" };
    match answer.watched().and_then(|watched| watched.process) {
        Some(process) => {
            let (time, idle) =
                (human_seconds(answer.program_seconds), answer.watched().map_or(String::new(), hardly_works));
            format!(
                "{} (process {process}), watched for {time}, has {about}{size}{joint}{parts}.{idle}",
                answer.program
            )
        }
        None => format!("{} takes {time} and needs {about}{size}{joint}{parts}.{ended}", answer.program),
    }
}

/// The program's own time.
fn alone(answer: &Answer) -> String {
    let time = human_seconds(answer.program_seconds);
    if answer.plain().is_some() {
        time
    } else {
        format!("about {time}")
    }
}

/// The kinds of what is not paged that are a tenth of all of it or more.
fn kinds(not_paged: &NotPaged) -> String {
    let named = [
        ("mapped files {}", not_paged.files_bytes),
        ("shared memory {}", not_paged.shared_bytes),
        ("code {}", not_paged.code_bytes),
        ("stacks {}", not_paged.stacks_bytes),
        ("other {}", not_paged.other_bytes),
    ];
    let sum: u64 = named.iter().map(|(_, bytes)| bytes).sum();
    let named = named.iter().filter(|(_, bytes)| 10 * bytes >= sum.max(1));
    let words: Vec<String> = named.map(|(words, bytes)| words.replace("{}", &human_size(*bytes))).collect();
    format!(" ({})", words.join("; "))
}

/// What a process did that used the processor for less than a hundredth of the time.
fn hardly_works(watched: &Watched) -> String {
    if watched.worked_seconds > watched.common.program_seconds / 100.0 {
        return String::new();
    }
    let (pages, time) = (human_count(watched.touched_pages), human_seconds(watched.common.program_seconds));
    format!(" It hardly worked: {pages} pages touched in {time}; watch it when it has work to do.")
}

/// What the RAM costs that was given as `--ram`.
fn with_given_ram(answer: &Answer) -> String {
    let Some(known) = answer.given_ram_bytes.and_then(|ram| answer.known(ram)) else { return String::new() };
    let (ram, times) = (ram_size(known.ram_bytes), known.seconds / answer.program_seconds.max(1e-9));
    let time = match known.more {
        false => format!("{} ({})", human_seconds(known.seconds), range(&known)),
        true => format!("over {}", human_seconds(known.seconds)),
    };
    format!(" With --ram {ram} it takes {time}, {times:.*} times as long.", if times < 10.0 { 2 } else { 0 })
}

/// The sizes to show, the most important first: what it needs, the advised one, the given one, the largest one that was
/// run in less, a half, a quarter, the one above which it does not thrash, the others that were run, the least.
fn shown(answer: &Answer, rows: usize) -> Vec<Known> {
    let predicted = answer.curve.iter().filter(|point| point.seconds_high.is_some()).map(|point| point.ram_bytes);
    let measured = answer.runs.iter().filter(|run| run.failed.is_none()).filter_map(|run| run.ram_bytes);
    let unpaged = answer.ram_bytes.filter(|_| answer.by == Some(By::Plain));
    let sizes: Vec<u64> = predicted.chain(measured).chain(unpaged).collect();
    let near = |ram: u64| sizes.iter().copied().min_by_key(|size| size.abs_diff(ram));
    let full = answer.needed_bytes;
    let measured = answer.runs.iter().filter_map(|run| run.ram_bytes);
    let largest = measured.clone().filter(|ram| *ram < full).max();
    let wanted = [Some(full), answer.ram_bytes, answer.given_ram_bytes, largest, Some(full / 2), Some(full / 4)];
    let wanted = wanted.into_iter().flatten().chain(answer.thrash_bytes).chain(measured).chain([full / 16]);
    let mut selection: Vec<Known> = Vec::new();
    for known in wanted.filter_map(near).filter_map(|ram| answer.known(ram)) {
        if selection.len() < rows && selection.iter().all(|other| other.ram_bytes != known.ram_bytes) {
            selection.push(known);
        }
    }
    selection.sort_by_key(|known| std::cmp::Reverse(known.ram_bytes));
    selection
}

/// What a recording shows besides.
pub fn memory_use(answer: &Answer) -> Option<&MemoryUse> {
    answer.recorded()?.memory_use.as_ref()
}

/// The columns of the table, the least important last, and their widths.
const COLUMNS: [(&str, usize); 6] =
    [("--ram", 10), ("run time", 24), ("", 9), ("times", 5), ("in all", 8), ("page reads", 10)];

fn table(answer: &Answer, sizes: &[Known]) -> String {
    let room = |count: usize| COLUMNS[..count].iter().map(|(_, width)| width + 2).sum::<usize>() + 2;
    let count = (1..=COLUMNS.len()).rev().find(|count| room(*count) <= width()).unwrap_or(1);
    let line = |mark: &str, cells: [String; 6]| {
        let cells = cells.iter().zip(COLUMNS).take(count);
        mark.to_string() + &cells.map(|(cell, (_, width))| format!("  {cell:>width$}")).collect::<String>() + "\n"
    };
    let mut out = line(" ", COLUMNS.map(|(name, _)| name.into()));
    for known in sizes {
        let times = known.seconds / answer.program_seconds.max(1e-9);
        let mark = if Some(known.ram_bytes) == answer.ram_bytes { "*" } else { " " };
        let more = if known.more { "over " } else { "" };
        let cells = [
            ram_size(known.ram_bytes),
            format!("{more}{} ({})", human_seconds(known.seconds), range(known)),
            how(known, answer.by == Some(By::Kernel)).into(),
            format!("{times:.*}", if times < 10.0 { 2 } else { 0 }),
            human_size(known.together_bytes.max(known.ram_bytes) + answer.not_paged_bytes),
            human_count(known.page_reads),
        ];
        out += &line(mark, cells);
    }
    out
}

/// In one word: measured, by whom if that is not the recommended pager, or predicted.
fn how(known: &Known, by_kernel: bool) -> &'static str {
    match (known.runs, known.by_kernel) {
        (0, _) => "predicted",
        (_, kernel) if kernel == by_kernel => "measured",
        (_, true) => "by kernel",
        (_, false) => "by pager",
    }
}

/// Times the least time from which on the most of a range says all.
const WIDE: f64 = 20.0;

/// `0.95 to 1.1 s`: both ends, with one unit if it is the same; or that there is only one run, or nothing to predict.
pub fn range(known: &Known) -> String {
    let Some((low, high)) = known.range else { return "one run".into() };
    if high.is_some_and(|high| high > WIDE * low) {
        return format!("up to {}", human_seconds(high.unwrap_or(f64::INFINITY)));
    }
    let (low, high) = (human_seconds(low), human_seconds(high.unwrap_or(f64::INFINITY)));
    if known.runs == 0 && low == high {
        return "no paging".into();
    }
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

fn thrashes(answer: &Answer) -> String {
    let unknown = match answer.curve.iter().find(|point| point.seconds_high.is_none()) {
        Some(_) => format!(" The recording says nothing of sizes below {}.", human_size(answer.covered_bytes)),
        None => String::new(),
    };
    let lowest = answer.curve.iter().rfind(|point| point.seconds_high.is_some());
    let sentence = match (answer.thrash_bytes, lowest) {
        (Some(bytes), _) if bytes > answer.covered_bytes => {
            format!("Thrashes below --ram {}: takes more than twice as long.", ram_size(bytes))
        }
        (None, Some(lowest)) => format!("Does not thrash with --ram {} or more.", ram_size(lowest.ram_bytes)),
        _ => String::new(),
    };
    (sentence + &unknown).trim_start().into()
}

fn recommended(answer: &Answer) -> String {
    let (percent, alone) = (answer.slowdown_percent, answer.program_seconds.max(1e-9));
    let slower = |seconds: f64| match 100.0 * (seconds / alone - 1.0) {
        more if more > percent && seconds - alone <= UNNOTICED => {
            format!("{} longer than alone", human_seconds(seconds - alone))
        }
        more if more >= 0.5 => format!("{more:.0} % slower than alone"),
        _ => "as fast as alone".into(),
    };
    let unpaged = answer.ram_bytes.filter(|_| answer.by == Some(By::Plain));
    let known = answer.ram_bytes.filter(|_| unpaged.is_none()).and_then(|ram| answer.known(ram));
    let Some(known) = known else {
        let largest = answer.runs.iter().filter(|run| run.failed.is_none() && run.ram_bytes.is_some());
        let largest = largest.max_by_key(|run| run.ram_bytes).map(|run| {
            let over = if run.more { "over " } else { "" };
            let (ram, time) = (ram_size(run.ram_bytes.unwrap_or(0)), human_seconds(run.seconds));
            format!(": --ram {ram} takes {over}{time}, {}", slower(run.seconds))
        });
        let why = largest.unwrap_or_default();
        return match unpaged.map(|ram| human_size(answer.in_all(ram))) {
            Some(whole) if why.is_empty() => {
                format!("Recommended: all of its {whole}, unpaged; no run in less was possible.")
            }
            Some(whole) => {
                format!("Recommended: all of its {whole}, unpaged; paged, it is over {percent:.0} % slower{why}.")
            }
            None => format!("Recommended: none; no size keeps it within {percent:.0} % of its own time{why}."),
        };
    };
    let (time, range) = (human_seconds(known.seconds), range(&known));
    let kernel = answer.run(By::Kernel, known.ram_bytes).filter(|_| known.by_kernel).map(kernel_options);
    let ram = ram_size(known.ram_bytes) + &kernel.map_or(String::new(), |options| format!(" {options}"));
    match known.runs {
        0 if known.seconds > (1.0 + percent / 100.0) * alone => {
            format!("Recommended: --ram {ram}: {time} ({range}), predicted, {}.", slower(known.seconds))
        }
        0 => {
            format!("Recommended: --ram {ram}: {time} ({range}), predicted, at most {percent:.0} % slower than alone.")
        }
        1 => format!("Recommended: --ram {ram}: {time} (one run), {}.", slower(known.seconds)),
        runs => format!("Recommended: --ram {ram}: {time} ({range} in {runs} runs), {}.", slower(known.seconds)),
    }
}

/// The other pager next to the recommended size: measured, or the kernel's swap as predicted, zram with its options.
fn otherwise(answer: &Answer) -> String {
    let ram = answer.ram_bytes.unwrap_or(answer.needed_bytes / 2);
    let other = if answer.by == Some(By::Kernel) { By::Pager } else { By::Kernel };
    let runs = answer.runs.iter().filter(|run| run.by == other);
    if let Some(run) = runs.min_by_key(|run| run.ram_bytes.map(|size| size.abs_diff(ram))) {
        return filled(&by_other(run));
    }
    let Some((swap, point)) =
        answer.recorded().and_then(|recorded| recorded.kernel.as_ref()).and_then(|swap| Some((swap, swap.at(ram)?)))
    else {
        return String::new();
    };
    let (low, size) = (human_seconds(point.seconds_low), ram_size(point.ram_bytes));
    let time = match point.seconds_high {
        Some(high) => format!("about {low} to {}", human_seconds(high)),
        None => format!("at least {low}"),
    };
    let how = if swap.share > 0.0 { " (--by kernel --swap zram)" } else { "" };
    filled(&format!("By the kernel, with swap on {}{how}: --ram {size} takes {time}.", swap.kind))
}

/// The files that it maps, if they matter, and what less page cache costs.
pub(crate) fn files(answer: &Answer) -> Option<String> {
    let not_paged =
        answer.not_paged.as_ref().filter(|not_paged| not_paged.matter(answer.in_all(answer.needed_bytes)))?;
    let file = |file: &File| {
        let name = file.path.rsplit('/').next().unwrap_or(&file.path);
        format!("{name} {} of {}", human_size(file.referenced_bytes), human_size(file.mapped_bytes))
    };
    let named = not_paged.files.iter().filter(|file| SMALL * file.bytes >= not_paged.code_bytes + not_paged.files_bytes).map(file);
    let (named, referenced) = (named.collect::<Vec<_>>().join(", "), human_size(not_paged.referenced_bytes));
    let run = |run: &Runs| format!("{} {}", ram_size(run.ram_bytes.unwrap_or(0)), time_of(run));
    let runs = not_paged.runs.iter().map(run).collect::<Vec<_>>().join(", ");
    let runs = if runs.is_empty() { runs } else { format!(" RAM for all by the kernel, files read first: {runs}.") };
    let why = not_paged.no_runs.as_ref().map_or(String::new(), |why| format!(" Less page cache was not tried: {why}."));
    Some(format!("Mapped files: {referenced} referenced: {named}.{runs}{why}"))
}

/// The least part of all files that is worth its name.
const SMALL: u64 = 5;

/// A run by the pager that is not the recommended one.
fn by_other(run: &Runs) -> String {
    let who = match run.by {
        By::Kernel => format!("the kernel ({})", kernel_options(run)),
        _ => "our pager".into(),
    };
    let measured = if run.failed.is_none() { ", measured" } else { "" };
    format!("By {who}: --ram {} {}{measured}.", ram_size(run.ram_bytes.unwrap_or(0)), time_of(run))
}

/// `takes 2.3 s`.
fn time_of(run: &Runs) -> String {
    match (&run.failed, human_seconds(run.seconds)) {
        (Some(why), _) => format!("fails: {why}"),
        (None, time) => format!("takes {}{time}", if run.more { "over " } else { "" }),
    }
}

/// `--by kernel`, and the swap that is made.
fn kernel_options(run: &Runs) -> String {
    run.swap.as_ref().map_or("--by kernel".into(), |swap| format!("--by kernel --swap {swap}"))
}

/// The options of a run with the recommended size; `None`: there is none, it is not paged, or the process runs already.
pub(crate) fn how_to_run(answer: &Answer) -> Option<String> {
    let again = answer.watched().is_none_or(|watched| watched.process.is_none()) && answer.by != Some(By::Plain);
    let ram = answer.ram_bytes.filter(|_| again)?;
    Some(format!("--ram {}{}", ram_size(ram), pager_options(answer, ram)))
}

/// What stands before a line and before its program, so that the user who reads it can paste it: only root makes swap, and
/// the program stays the user's.
pub(crate) fn as_root(how: &str) -> (&'static str, &'static str) {
    match how.contains("--swap") && !is_root() {
        true => ("sudo ", "sudo -u $USER "),
        false => ("", ""),
    }
}

/// `--by kernel` with its swap, if the kernel pages the recommended run.
fn pager_options(answer: &Answer, ram: u64) -> String {
    let swap = answer.watched().and_then(|watched| watched.swap.as_ref());
    let swap = swap.map_or(String::new(), |swap| format!(" --swap {swap}"));
    match answer.run(By::Kernel, ram).filter(|_| answer.by == Some(By::Kernel)) {
        Some(run) => format!(" {}", kernel_options(run)),
        None if answer.method() == Method::ReferencedBits => format!(" --by kernel{swap}"),
        None => String::new(),
    }
}

/// The commands to paste: a run with the advised RAM, and the page.
fn commands(answer: &Answer, report: Option<&Path>) -> String {
    let mut out = String::new();
    if let Some(how) = how_to_run(answer) {
        let (sudo, user) = as_root(&how);
        let how = format!("{sudo}coldframe run {how} -- {user}");
        let line = |program: &str| command(format!("{how}{program}").split_whitespace(), 0, 2) + "\n";
        let whole = line(answer.command.as_deref().unwrap_or(&answer.program));
        let fits = |line: &str| line.chars().count() <= width();
        out += &match whole.lines().count() <= COMMAND && whole.lines().all(fits) {
            true => whole,
            false => format!("Run it so: put `{}` before it.\n", how.trim_end()),
        };
    }
    if let (Some(ram), true) = (answer.ram_bytes, out.is_empty()) {
        // Of a process that runs: for its unit or container.
        let mib = answer.in_all(ram).div_ceil(1 << 20);
        out += &format!("systemd: MemoryHigh={mib}M; compose: mem_limit: {mib}m; Kubernetes: memory: {mib}Mi\n");
    }
    out + &report.map_or(String::new(), |page| format!("xdg-open {}\n", page.display()))
}

fn filled(text: &str) -> String {
    paragraph(text, 0)
}

#[cfg(test)]
mod tests {
    use coldframe_answer::Common;

    use super::*;

    #[test]
    fn what_is_not_paged_is_named_by_its_large_kinds() {
        let mib = 1 << 20;
        let run = serde_json::json!({ "by": "kernel", "swap": null, "ram_bytes": 20 * mib, "seconds": 2.5, "more": true,
            "runs": [], "page_reads": 0, "failed": null });
        let all: NotPaged = serde_json::from_value(serde_json::json!({ "code_bytes": 2 * mib, "files_bytes": 30 * mib,
            "files": [{ "path": "/data/model.bin", "bytes": 29 * mib, "mapped_bytes": 64 * mib, "referenced_bytes": 28 * mib }],
            "referenced_bytes": 29 * mib, "runs": [run], "shared_bytes": 8 * mib, "stacks_bytes": 4096, "other_bytes": 0 }))
        .unwrap();
        assert_eq!(kinds(&all), " (mapped files 30 MiB; shared memory 8 MiB)");
        let common = Common { not_paged: Some(all), ..Common::default() };
        let answer = Answer::ReferencedBits(Watched { common, ..Watched::default() });
        let files = files(&answer).unwrap();
        assert!(files.starts_with("Mapped files: 29 MiB referenced: model.bin 28 MiB of 64 MiB. RAM"), "{files}");
        assert!(files.ends_with(": 20MiB takes over 2.50 s."), "{files}");
    }

    #[test]
    fn a_process_that_used_the_processor_for_a_hundredth_of_the_time_hardly_worked() {
        let watched = |worked_seconds| Watched {
            common: Common { program_seconds: 6.0, ..Common::default() },
            process: Some(7),
            worked_seconds,
            touched_pages: 17,
            swap: None,
        };
        assert_eq!(hardly_works(&watched(0.07)), "");
        assert!(hardly_works(&watched(0.01)).starts_with(" It hardly worked: 17 pages touched in 6.00 s"));
    }
}
