//! Sizes of RAM and their times: the table, the size that was given, and the one below which it thrashes.

use coldframe_answer::{Answer, By, Known};
use coldframe_sheet::quantity::{human_count, human_seconds, human_size};

use crate::text::width;

/// The sizes to show, the most important first: what it needs, the advised one, the given one, the largest one that was
/// run in less, a half, a quarter, the one above which it does not thrash, the others that were run, the least.
pub(crate) fn shown(answer: &Answer, rows: usize) -> Vec<Known> {
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

/// The columns of the table, the least important last, and their widths.
const COLUMNS: [(&str, usize); 5] = [("limit", 10), ("run time", 24), ("", 9), ("times", 5), ("page reads", 10)];

/// A line for each size; on a narrow page without the last columns.
pub(super) fn table(answer: &Answer, sizes: &[Known]) -> String {
    let room = |count: usize| COLUMNS[..count].iter().map(|(_, width)| width + 2).sum::<usize>() + 2;
    let count = (1..=COLUMNS.len()).rev().find(|count| room(*count) <= width()).unwrap_or(1);
    let line = |mark: &str, cells: [String; 5]| {
        let cells = cells.iter().zip(COLUMNS).take(count);
        mark.to_string() + &cells.map(|(cell, (_, width))| format!("  {cell:>width$}")).collect::<String>() + "\n"
    };
    let mut out = line(" ", COLUMNS.map(|(name, _)| name.into()));
    for known in sizes {
        let times = known.seconds / answer.program_seconds.max(1e-9);
        let mark = if Some(known.ram_bytes) == answer.ram_bytes { "*" } else { " " };
        let more = if known.more { "over " } else { "" };
        let cells = [
            human_size(known.ram_bytes),
            format!("{more}{} ({})", human_seconds(known.seconds), range(known)),
            how(known, answer.by == Some(By::Kernel)).into(),
            format!("{times:.*}", if times < 10.0 { 2 } else { 0 }),
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

/// What the RAM costs that was given as `--ram`.
pub(super) fn with_given_ram(answer: &Answer) -> String {
    let Some(known) = answer.given_ram_bytes.and_then(|ram| answer.known(ram)) else { return String::new() };
    let (ram, times) = (human_size(known.ram_bytes), known.seconds / answer.program_seconds.max(1e-9));
    let time = match known.more {
        false => format!("{} ({})", human_seconds(known.seconds), range(&known)),
        true => format!("over {}", human_seconds(known.seconds)),
    };
    format!(" With {ram} it takes {time}, {times:.*} times as long.", if times < 10.0 { 2 } else { 0 })
}

/// Times the least time from which on the most of a range says all.
const WIDE: f64 = 20.0;

/// `0.95 to 1.1 s`: both ends, with one unit if it is the same; or that there is only one run, or nothing to predict.
pub(crate) fn range(known: &Known) -> String {
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

/// Below which size it thrashes, and what the recording does not show.
pub(super) fn thrashes(answer: &Answer) -> String {
    let unknown = match answer.curve.iter().find(|point| point.seconds_high.is_none()) {
        Some(_) => format!(" The recording says nothing of sizes below {}.", human_size(answer.covered_bytes)),
        None => String::new(),
    };
    let lowest = answer.curve.iter().rfind(|point| point.seconds_high.is_some());
    let sentence = match (answer.thrash_bytes, lowest) {
        (Some(bytes), _) if bytes > answer.covered_bytes => {
            format!("Thrashes below {}: takes more than twice as long.", human_size(bytes))
        }
        (None, Some(lowest)) => format!("Does not thrash with {} or more.", human_size(lowest.ram_bytes)),
        _ => String::new(),
    };
    (sentence + &unknown).trim_start().into()
}
