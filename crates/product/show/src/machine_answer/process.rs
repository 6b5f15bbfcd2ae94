//! The answer about a process that runs: what it has and has had, what a smaller limit adds to its work, and lines to
//! paste. A service has no run time, so times are those that paging adds to a second of work. All sizes are limits: of
//! all its memory.

use std::path::Path;

use coldframe_answer::predict::watched::SQUEEZE_PERCENT;
use coldframe_answer::service::squeeze::{steps, WATCH};
use coldframe_answer::{Answer, Point, SinceStart, SqueezeRange, Watched};
use coldframe_sheet::quantity::{how_often, human_count, human_seconds, human_size, things};

use super::files::files;
use super::need::kinds;
use crate::paste::settings::{hard, limits};
use crate::paste::{self, page};
use crate::text::paragraph;

/// Sizes in the table.
const ROWS: usize = 5;

/// All of it. `report`: the page, if there is one.
pub(super) fn words(answer: &Answer, watched: &Watched, since_start: &SinceStart, report: Option<&Path>) -> String {
    let mut out = has(answer, watched, since_start);
    let range = watched.squeezed.filter(|_| watched.works());
    if watched.works() {
        out += &table(answer, watched);
        out += &paragraph(&recommended(answer, watched), 0);
        out += &files(answer).map_or(String::new(), |files| paragraph(&files, 0));
        out += &lines(answer, watched, since_start);
    }
    out += &squeeze(answer, watched, range, since_start);
    out + &page(report)
}

/// What measures it: the command, what it does there, and how long that takes.
fn squeeze(answer: &Answer, watched: &Watched, range: Option<SqueezeRange>, since_start: &SinceStart) -> String {
    let sure = answer.how_sure.first().map_or(String::new(), |sure| format!("{sure}. "));
    if !since_start.in_group {
        let remedy = "start it in one of its own: systemd-run --scope -- PROGRAM";
        let why = "It is in the root of all memory groups, so `squeeze` cannot measure what less costs";
        return paragraph(&format!("{sure}{why}; {remedy}"), 0);
    }
    let has = (answer.managed_bytes + answer.not_paged_bytes).max(1) as f64;
    let each = human_seconds(WATCH);
    let about = range.map_or(String::new(), |range| {
        let steps = steps((range.low_bytes as f64 / has).min(1.0)) + 1;
        format!(", about {}, {}", how_often(steps), human_seconds(steps as f64 * WATCH))
    });
    let others = match since_start.others {
        0 => String::new(),
        1 => " (with the other process in it)".into(),
        others => format!(" (with the {others} other processes in it)"),
    };
    let what = format!(
        "{sure}`squeeze` measures it: it lowers the limit of this group{others} by a sixteenth every {each}{about}, \
         until it waits for {SQUEEZE_PERCENT} % of the time, and puts the old limit back:"
    );
    paragraph(&what, 0) + &paste::squeeze(answer.asker, watched.swap.as_deref(), &since_start.name)
}

/// What it has, what it has had, and what it did while it was watched.
fn has(answer: &Answer, watched: &Watched, since_start: &SinceStart) -> String {
    let (heap, rest) = (answer.managed_bytes, answer.not_paged_bytes);
    let [size, heap, peak, time, worked] = [
        human_size(heap + rest),
        human_size(heap),
        human_size(since_start.peak_bytes()),
        human_seconds(answer.program_seconds),
        human_seconds(watched.worked_seconds),
    ];
    let kinds = answer.not_paged.as_ref().map_or(String::new(), kinds);
    let by_group = since_start.group_bytes == Some(since_start.peak_bytes());
    let group = if by_group { ", files that it read included" } else { "" };
    let place = match (since_start.in_group, since_start.others) {
        (false, _) => String::new(),
        (true, 0) => format!(" of {}", since_start.name),
        (true, others) => format!(" of {} (where {others} more are)", since_start.name),
    };
    let what = format!(
        "{} (process {}{place}), watched for {time}, has about {size}: heap {heap}, the rest {}{kinds}; at most {peak} \
         since its start{group}.",
        answer.program,
        watched.process.unwrap_or_default(),
        human_size(rest),
    );
    let work = match watched.works() {
        true => format!(" It worked for {worked} meanwhile."),
        false => format!(
            " It hardly worked: {} touched in {time}; no limit is recommended, since its next work may need \
             more. Watch it when it has work to do.",
            things(watched.touched_pages, "page")
        ),
    };
    paragraph(&(what + &work), 0)
}

/// The sizes to show, the largest first: all, the recommended one, the one that was asked for, a half, a quarter, the
/// least that is known.
fn shown(answer: &Answer) -> Vec<&Point> {
    let known = || answer.curve.iter().filter(|point| point.seconds_high.is_some());
    let full = answer.needed_bytes;
    let wanted = [Some(full), answer.ram_bytes, answer.given_ram_bytes, Some(full / 2), Some(full / 4), Some(0)];
    let near = |ram: u64| known().min_by_key(|point| point.ram_bytes.abs_diff(ram));
    let size = |point: &Point| human_size(point.ram_bytes);
    let mut points: Vec<&Point> = Vec::new();
    for point in wanted.into_iter().flatten().filter_map(near) {
        if points.len() < ROWS && points.iter().all(|other| size(other) != size(point)) {
            points.push(point);
        }
    }
    points.sort_by_key(|point| std::cmp::Reverse(point.ram_bytes));
    points
}

/// A line for each size.
fn table(answer: &Answer, watched: &Watched) -> String {
    let line = |mark: &str, cells: [&str; 4]| {
        let [limit, waits, adds, pages] = cells;
        format!("{mark} {limit:>9}  {waits:>23}  {adds:>30}  {pages:>10}\n")
    };
    let sizes = shown(answer);
    if sizes.len() < 2 {
        return String::new();
    }
    let mut out = line(" ", ["limit", "waits, of the time", "adds to a second of work", "pages back"]);
    for point in sizes {
        let recommended = Some(point.ram_bytes) == answer.ram_bytes && wide(watched).is_none();
        let (limit, pages) = (human_size(point.ram_bytes), human_count(point.device_reads));
        let cells = [&limit, &waits(answer, point), &adds(answer, watched, point), &pages];
        out += &line(if recommended { "*" } else { " " }, cells.map(String::as_str));
    }
    out
}

/// The range in which a squeeze is expected to end, if it is too wide to recommend one of its ends.
fn wide(watched: &Watched) -> Option<SqueezeRange> {
    watched.squeezed.filter(SqueezeRange::is_wide)
}

/// The part of the time that it waits for memory, as `squeeze` counts it.
fn waits(answer: &Answer, point: &Point) -> String {
    let part = |seconds: f64| {
        let percent = 100.0 * (seconds - answer.program_seconds).max(0.0) / answer.program_seconds.max(1e-9);
        if percent > 100.0 {
            "100+".into()
        } else {
            format!("{percent:.1}")
        }
    };
    match (point.device_reads, point.seconds_high) {
        (0, _) => "nothing".into(),
        (_, Some(high)) => {
            format!("{} % ({} to {} %)", part(point.seconds), part(point.seconds_low), part(high))
        }
        (_, None) => format!("over {} %", part(point.seconds)),
    }
}

/// What paging adds to a second of work, and its range.
fn adds(answer: &Answer, watched: &Watched, point: &Point) -> String {
    let added = |seconds: f64| human_seconds(((seconds - answer.program_seconds) / watched.worked_seconds).max(0.0));
    match (point.device_reads, point.seconds_high) {
        (0, _) => "nothing".into(),
        (_, Some(high)) => {
            format!("{} ({} to {})", added(point.seconds), added(point.seconds_low), added(high))
        }
        (_, None) => format!("over {}", added(point.seconds)),
    }
}

/// The recommended limit, and below which one it stands more than it works, or nothing is known.
fn recommended(answer: &Answer, watched: &Watched) -> String {
    let (percent, limit) = (answer.slowdown_percent, |ram| human_size(ram));
    let found = |ram| answer.curve.iter().find(|point| point.ram_bytes == ram);
    if let Some(SqueezeRange { percent, low_bytes, about_bytes, high_bytes }) = wide(watched) {
        let known = answer.curve.iter().filter(|point| point.seconds_high.is_some());
        let or_less = if known.map(|point| point.ram_bytes).min() >= Some(low_bytes) { " or less" } else { "" };
        let (low, about, high) = (limit(low_bytes), limit(about_bytes), limit(high_bytes));
        return format!(
            "By this estimate it waits for {percent} % of the time with a limit between {low}{or_less} and {high}, \
             perhaps {about}: too wide to recommend one."
        );
    }
    let mut text = match answer.ram_bytes.filter(|ram| *ram < answer.needed_bytes).and_then(found) {
        Some(point) => {
            let (size, adds) = (limit(point.ram_bytes), adds(answer, watched, point));
            format!("Recommended: a limit of {size} adds {adds} to a second of work.")
        }
        None if shown(answer).len() < 2 => "Recommended: what it has.".into(),
        None => format!("Recommended: what it has; less adds over {percent:.0} % to its work."),
    };
    if let Some(given) = answer.given_ram_bytes.and_then(found) {
        text += &format!(" {} adds {}.", limit(given.ram_bytes), adds(answer, watched, given));
    }
    match answer.thrash_bytes {
        Some(bytes) if bytes > answer.covered_bytes => {
            text + &format!(" With less than {} it waits longer than it works.", limit(bytes))
        }
        _ => text + &format!(" Nothing is known of less than {}.", limit(answer.covered_bytes)),
    }
}

/// Limits to paste: hard ones that hold the peak, and what was enough while it was watched.
fn lines(answer: &Answer, watched: &Watched, since_start: &SinceStart) -> String {
    let full = answer.needed_bytes;
    let peak = since_start.peak_bytes().max(full);
    let enough = answer.ram_bytes.unwrap_or(answer.needed_bytes);
    let why = "and a tenth more; it starts with that again";
    paragraph(&format!("Hard limits hold the {} that it has had, {why}.", human_size(peak)), 0)
        + &if wide(watched).is_some() { hard(peak) } else { limits(enough, peak) }
}

#[cfg(test)]
mod tests {
    use coldframe_answer::Common;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A process with 20 MiB of heap and 4 MiB of code that worked for 2 of 10 seconds; 14 MiB of heap are enough.
    fn watched(worked_seconds: f64, peak: u64) -> (Watched, SinceStart) {
        let point = |mib: u64, seconds, high| Point {
            ram_bytes: mib * MIB,
            together_bytes: mib * MIB,
            seconds,
            seconds_low: seconds,
            seconds_high: Some(high),
            device_reads: if seconds > 10.0 { 500 } else { 0 },
            ..Point::default()
        };
        let common = Common {
            program: "p".into(),
            program_seconds: 10.0,
            managed_bytes: 20 * MIB,
            not_paged_bytes: 4 * MIB,
            needed_bytes: 24 * MIB,
            ram_bytes: (worked_seconds > 0.1).then_some(18 * MIB),
            slowdown_percent: 10.0,
            curve: vec![point(24, 10.0, 10.0), point(18, 10.14, 10.2), point(14, 13.0, 14.0)],
            how_sure: vec!["An estimate from its pages' referenced bits".into()],
            ..Common::default()
        };
        let since_start = SinceStart {
            processes_bytes: peak * MIB,
            group_bytes: None,
            name: "a.service".into(),
            in_group: true,
            others: 0,
        };
        let watched = Watched { common, process: Some(7), worked_seconds, touched_pages: 17, ..Watched::default() };
        (watched, since_start)
    }

    fn text(worked_seconds: f64, peak: u64) -> String {
        let (watched, since_start) = watched(worked_seconds, peak);
        words(&Answer::ReferencedBits(watched.clone()), &watched, &since_start, None)
    }

    /// In one line, with single blanks.
    fn flat(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_hard_limit_holds_the_peak_and_a_tenth_more_and_what_was_watched_is_the_request() {
        let lines = text(2.0, 160);
        let text = flat(&lines);
        assert!(
            text.contains("has about 24 MiB: heap 20 MiB, the rest 4 MiB; at most 160 MiB since its start."),
            "{text}"
        );
        assert!(text.contains("limits: {memory: 176Mi} · requests: {memory: 18Mi}"), "{text}");
        assert!(text.contains("mem_limit: 176m") && text.contains("MemoryMax=176M · MemoryHigh=18M"), "{text}");
        assert!(text.contains("sudo coldframe squeeze --yes a.service"), "{text}");
        assert!(lines.lines().count() <= 20 && lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
        // The peak of a process is at least what it has.
        assert!(super::tests::text(2.0, 0).contains("limits: {memory: 27Mi}"));
    }

    #[test]
    fn sizes_are_limits_and_times_are_added_to_a_second_of_work() {
        let text = flat(&text(2.0, 30));
        assert!(text.contains("* 18 MiB 1.4 % (1.4 to 2.0 %) 70.0 ms (70.0 ms to 100 ms) 500"), "{text}");
        assert!(text.contains("pages back 24 MiB nothing nothing 0"), "{text}");
        assert!(text.contains("Recommended: a limit of 18 MiB adds 70.0 ms"), "{text}");
        for word in ["--ram", "in all", "not paged", "run time"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn a_wide_range_is_no_recommendation_and_the_squeeze_that_measures_it_is_named() {
        let (mut process, mut since_start) = watched(2.0, 30);
        let squeezed = SqueezeRange { percent: 5.0, low_bytes: 14 * MIB, about_bytes: 18 * MIB, high_bytes: 30 * MIB };
        (process.squeezed, process.swap, since_start.others) = (Some(squeezed), Some("zram".into()), 2);
        // A slow swap: long times, and the table fits all the same.
        let least = process.common.curve.last_mut().unwrap();
        (least.seconds, least.seconds_high, least.device_reads) = (4000.0, Some(90_000.0), 1_234_567);
        let lines = words(&Answer::ReferencedBits(process.clone()), &process, &since_start, None);
        let text = flat(&lines);
        for words in [
            "p (process 7 of a.service (where 2 more are)), watched",
            "it waits for 5 % of the time with a limit between 14 MiB or less and 30 MiB, perhaps 18 MiB: too wide",
            "of this group (with the 2 other processes in it) by a sixteenth every 10.0 s, about 10 times, 100 s",
            "sudo coldframe squeeze --yes --swap zram a.service",
            "MemoryMax=33M",
            "100+ % (30.0 to 100+ %)",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        for word in ["* ", "MemoryHigh", "requests", "Recommended"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        assert!(lines.lines().count() <= 20 && lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
        since_start.in_group = false;
        let text = flat(&words(&Answer::ReferencedBits(process.clone()), &process, &since_start, None));
        assert!(text.contains("in the root of all memory groups") && !text.contains("squeeze --yes"), "{text}");
    }

    #[test]
    fn a_process_that_hardly_worked_has_no_line_to_paste_and_one_sentence_why() {
        let text = flat(&text(0.05, 160));
        assert!(text.contains("It hardly worked: 17 pages touched in 10.0 s; no limit is recommended"), "{text}");
        for word in ["mem_limit", "MemoryHigh", "Recommended", "adds to"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        assert!(text.contains("at most 160 MiB since its start") && text.contains("squeeze --yes a.service"), "{text}");
    }
}
