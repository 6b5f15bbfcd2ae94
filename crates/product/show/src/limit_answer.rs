//! The answer that was measured in a memory group, as text: at most 16 lines of 80 columns.

use std::path::Path;

use coldframe_answer::bench::limit_answer::ending;
use coldframe_answer::{LimitAnswer, Runs, UNNOTICED};
use coldframe_sheet::quantity::{how_often, human_seconds, human_size};

use crate::paste::page;
use crate::paste::run::in_less;
use crate::paste::settings::{mib, short, units};
use crate::text::paragraph;

/// Lines of the whole answer.
const LINES: usize = 16;
/// The most rows of the table.
const ROWS: usize = 7;

/// The whole answer. `report`: the page, if there is one; `more`: lines before the lines to paste.
pub fn words(answer: &LimitAnswer, report: Option<&Path>, more: &str) -> String {
    let mut text = String::new();
    for rows in (3..=ROWS).rev() {
        let paste = paste(answer, report);
        text = paragraph(&takes(answer), 0)
            + &paragraph(&runs_in(answer), 0)
            + &table(answer, rows)
            + &paragraph(&counted(answer), 0)
            + more
            + &paste;
        if text.lines().count() <= LINES {
            break;
        }
    }
    text
}

/// Both first sentences.
pub fn headline(answer: &LimitAnswer) -> String {
    format!("{} {}", takes(answer), runs_in(answer)).trim_end().into()
}

/// The time and the peak without a limit.
fn takes(answer: &LimitAnswer) -> String {
    let (program, time) = (&answer.program, human_seconds(answer.program_seconds));
    let peak = human_size(answer.limit.peak_bytes);
    let ended = if answer.exit == 0 { String::new() } else { format!(" It ended with exit code {}.", answer.exit) };
    format!("{program} takes {time}, with at most {peak}.{ended}")
}

/// The recommended limit, and the least in which it lives.
fn runs_in(answer: &LimitAnswer) -> String {
    let sizes = &answer.limit;
    let lives = match (sizes.lives_bytes, sizes.recommended_bytes) {
        (Some(lives), Some(fast)) if lives < fast => format!("; it lives from {}", human_size(lives)),
        _ => String::new(),
    };
    match (sizes.recommended_bytes, &sizes.cannot_tell) {
        (Some(ram), _) if ram >= sizes.peak_bytes => {
            let below = answer.runs[1..].iter().filter(|runs| runs.is_limit()).filter_map(|runs| runs.ram_bytes);
            let near = below.filter(|below| *below < ram).max().is_some_and(|below| below as f64 >= NEXT * ram as f64);
            let verb = if near { "needs" } else { "runs in" };
            format!("It {verb} all of it: {}{lives}.", human_size(ram))
        }
        (Some(ram), _) => {
            let slower = answer.at(ram).map_or(String::new(), |runs| slower(answer, runs));
            format!("It runs in {}, {slower}{lives}.", human_size(ram))
        }
        (None, Some(why)) => format!("A limit cannot be told: {why}."),
        (None, None) => String::new(),
    }
}

/// How much longer runs took, in words.
fn slower(answer: &LimitAnswer, runs: &Runs) -> String {
    let (times, longer) = (answer.times(runs), runs.seconds - answer.program_seconds);
    match 100.0 * (times - 1.0) {
        percent if percent > answer.slowdown_percent && longer > 0.0 && longer <= UNNOTICED => {
            format!("{} longer", human_seconds(longer))
        }
        percent if percent >= 0.5 => format!("{percent:.0} % slower"),
        _ => "as fast".into(),
    }
}

/// The rows to show, the largest limit first.
pub fn rows(answer: &LimitAnswer, count: usize) -> Vec<&Runs> {
    let sizes = &answer.limit;
    let limited = || {
        let cold = answer.plain().cold;
        answer.runs[1..].iter().filter(move |runs| runs.is_limit() && runs.cold == cold)
    };
    let below = |runs: &&Runs| sizes.fast_bytes.is_none_or(|fast| runs.ram_bytes < Some(fast));
    let slow = limited().filter(below).find(|runs| runs.failed.is_none());
    let dead = limited().filter(below).find(|runs| runs.failed.is_some());
    let given = sizes
        .given_bytes
        .into_iter()
        .flat_map(|given| answer.runs[1..].iter().filter(move |runs| runs.ram_bytes == Some(given)));
    let wanted = sizes.fast_bytes.and_then(|ram| answer.at(ram)).into_iter();
    let wanted = wanted.chain(given).chain(answer.others()).chain(dead).chain(slow);
    let wanted = wanted.chain(answer.runs[1..].iter().filter(|runs| !runs.is_limit())).chain(limited());
    let mut shown = vec![answer.plain()];
    for runs in wanted {
        if shown.len() < count && !shown.iter().any(|other| std::ptr::eq(*other, runs)) {
            shown.push(runs);
        }
    }
    shown[1..].sort_by_key(|runs| std::cmp::Reverse(runs.ram_bytes));
    shown
}

/// The cells of a row: limit, swap, run time, times, remark.
pub fn cells(answer: &LimitAnswer, runs: &Runs) -> [String; 5] {
    let ended = runs.runs.iter().filter(|run| run.alike && !run.too_long).count();
    let of = |ended: usize| match runs.runs.len() {
        1 => String::new(),
        all => format!(" ({ended} of {all})"),
    };
    let (time, times) = match ending(runs) {
        Some(word) if ended == 0 => (word.to_string(), String::new()),
        Some(word) => (format!("{word}{}", of(runs.runs.len() - ended)), String::new()),
        None => {
            let (times, more) = (answer.times(runs), if runs.more { "over " } else { "" });
            let time = format!("{more}{}{}", human_seconds(runs.seconds), of(ended));
            (time, format!("{times:.*}", if times < 10.0 { 2 } else { 0 }))
        }
    };
    let remark = match runs.ram_bytes {
        None => "without a limit",
        ram if ram == answer.limit.recommended_bytes && runs.is_limit() => "recommended",
        ram if ram == answer.limit.given_bytes => "as asked",
        _ => runs.setting.as_deref().unwrap_or_default(),
    };
    let limit = runs.ram_bytes.unwrap_or(answer.limit.peak_bytes);
    [human_size(limit), runs.swap_words().into(), time, times, remark.into()]
}

/// The names of the columns.
pub const HEADS: [&str; 5] = ["limit", "swap", "run time", "times", ""];

fn table(answer: &LimitAnswer, count: usize) -> String {
    let line = |mark: &str, [limit, swap, time, times, remark]: [String; 5]| {
        let line = format!("{mark} {limit:>8}  {swap:<14}  {time:>16}  {times:>5}  {remark}");
        line.trim_end().to_string() + "\n"
    };
    let mut out = line(" ", HEADS.map(String::from));
    for runs in rows(answer, count) {
        let recommended = runs.ram_bytes.is_some() && runs.ram_bytes == answer.limit.recommended_bytes;
        let mark = if recommended && runs.is_limit() { "*" } else { " " };
        out += &line(mark, cells(answer, runs));
    }
    out
}

/// What the program does with its limit, what is counted, and how often it ran.
pub fn counted(answer: &LimitAnswer) -> String {
    let sizes = &answer.limit;
    let mut out = String::new();
    let parts = sizes.at_recommended.filter(|_| sizes.recommended_bytes.is_some()).unwrap_or(sizes.parts);
    if let (Some(ram), true) = (sizes.recommended_bytes, sizes.sizes_itself) {
        let (with, without) = (human_size(parts.fixed_bytes), human_size(sizes.parts.fixed_bytes));
        out += &format!(
            "It sizes itself by its limit: with {} it had {with} beside files, without a limit {without}. ",
            human_size(ram)
        );
    }
    let warm = sizes
        .warm_bytes
        .map_or(String::new(), |warm| format!(" ({} do where these are in RAM already)", human_size(warm)));
    let kinds = [
        ("anonymous", parts.anonymous_bytes, String::new()),
        ("files", parts.files_bytes, warm),
        ("shared memory and tmpfs", parts.shared_bytes, String::new()),
        ("kernel", parts.kernel_bytes, String::new()),
    ];
    let seen = |bytes: u64| bytes >= SEEN;
    let named = kinds.iter().filter(|(_, bytes, _)| seen(*bytes));
    let named = named.map(|(name, bytes, more)| format!("{} {name}{more}", human_size(*bytes)));
    let named = named.collect::<Vec<_>>().join(", ");
    let none = if seen(parts.shared_bytes) { "" } else { "; no shared memory, no tmpfs" };
    // Looks at a short program miss its peak, which the kernel counts.
    let seen = parts.anonymous_bytes + parts.files_bytes + parts.shared_bytes + parts.kernel_bytes;
    if !named.is_empty() && seen as f64 >= SUM * parts.peak_bytes as f64 {
        out += &format!("Counted: {named}{none}. ");
    }
    if sizes.by_work {
        out += "Other programs had the processors: times are compared by processor time and waits. ";
    }
    let count = answer.run_count;
    out + &format!("It ran {}.", how_often(count as u64))
}

/// The part of the peak that the parts that were seen have, if they are named.
const SUM: f64 = 0.8;
/// The largest smaller limit that was run, as a part of all that a program takes, from which on it needs all of it.
const NEXT: f64 = 0.9;
/// Less of a kind is not named.
const SEEN: u64 = 512 << 10;

/// The lines to paste.
fn paste(answer: &LimitAnswer, report: Option<&Path>) -> String {
    let mut out = String::new();
    if let (Some(ram), Some(hard)) = (answer.limit.recommended_bytes, answer.limit.paste_bytes) {
        let (enough, hard, margin) = (mib(ram), mib(hard), answer.limit.margin_percent);
        out += &format!("With {margin:.0} % on top, as a hard limit; {enough} MiB are enough:\n");
        out += &short(&units(None, hard), Some(enough));
    }
    let paged = answer.others().filter(|runs| runs.setting.is_none());
    if let Some(less) = paged.min_by_key(|runs| runs.ram_bytes) {
        out += &in_less(answer, less);
    }
    out + &page(report)
}
