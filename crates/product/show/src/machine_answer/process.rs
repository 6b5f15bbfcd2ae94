//! The answer about a process that runs: what it has and has had, what a smaller limit adds to its work, and lines to
//! paste. A service has no run time, so times are those that paging adds to a second of work. All sizes are limits: of
//! all its memory.

use std::path::Path;

use coldframe_answer::{Answer, Point, SinceStart, Watched};
use coldframe_sheet::quantity::{human_count, human_seconds, human_size};

use super::files::files;
use super::need::kinds;
use crate::limits::limits;
use crate::text::paragraph;

/// Sizes in the table.
const ROWS: usize = 5;

/// All of it. `report`: the page, if there is one.
pub(super) fn words(answer: &Answer, watched: &Watched, since_start: &SinceStart, report: Option<&Path>) -> String {
    let mut out = has(answer, watched, since_start);
    if watched.works() {
        out += &table(answer, watched);
        out += &paragraph(&recommended(answer, watched), 0);
        out += &files(answer).map_or(String::new(), |files| paragraph(&files, 0));
        out += &lines(answer, since_start);
    }
    let name = &since_start.name;
    let sure = answer.how_sure.first().map_or(String::new(), |sure| format!("{sure}. "));
    out += &paragraph(&format!("{sure}What less costs is measured by: sudo coldframe squeeze {name}"), 0);
    out + &report.map_or(String::new(), |page| format!("xdg-open {}\n", page.display()))
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
    let group = if by_group {
        format!(", files that it read included (memory group {})", since_start.name)
    } else {
        String::new()
    };
    let what = format!(
        "{} (process {}), watched for {time}, has about {size}: heap {heap}, the rest {}{kinds}; at most {peak} since \
         its start{group}.",
        answer.program,
        watched.process.unwrap_or_default(),
        human_size(rest),
    );
    let work = match watched.works() {
        true => format!(" It worked for {worked} meanwhile."),
        false => format!(
            " It hardly worked: {} pages touched in {time}; no limit is recommended, since its next work may need \
             more. Watch it when it has work to do.",
            human_count(watched.touched_pages)
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
    let line =
        |mark: &str, limit: &str, adds: &str, pages: &str| format!("{mark} {limit:>9}  {adds:>32}  {pages:>10}\n");
    let sizes = shown(answer);
    if sizes.len() < 2 {
        return String::new();
    }
    let mut out = line(" ", "limit", "adds to a second of work", "pages back");
    for point in sizes {
        let mark = if Some(point.ram_bytes) == answer.ram_bytes { "*" } else { " " };
        let limit = human_size(point.ram_bytes);
        out += &line(mark, &limit, &adds(answer, watched, point), &human_count(point.device_reads));
    }
    out
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
fn lines(answer: &Answer, since_start: &SinceStart) -> String {
    let full = answer.needed_bytes;
    let peak = since_start.peak_bytes().max(full);
    let enough = answer.ram_bytes.unwrap_or(answer.needed_bytes);
    let why = "and a tenth more; it starts with that again";
    paragraph(&format!("Hard limits hold the {} that it has had, {why}.", human_size(peak)), 0) + &limits(enough, peak)
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
        let since_start = SinceStart { processes_bytes: peak * MIB, group_bytes: None, name: "7".into() };
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
        assert!(text.contains("limits: {memory: 176Mi}, requests: {memory: 18Mi}"), "{text}");
        assert!(text.contains("mem_limit: 176m") && text.contains("MemoryMax=176M MemoryHigh=18M"), "{text}");
        assert!(text.contains("sudo coldframe squeeze 7"), "{text}");
        assert!(lines.lines().count() <= 16 && lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
        // The peak of a process is at least what it has.
        assert!(super::tests::text(2.0, 0).contains("limits: {memory: 27Mi}"));
    }

    #[test]
    fn sizes_are_limits_and_times_are_added_to_a_second_of_work() {
        let text = flat(&text(2.0, 30));
        assert!(text.contains("* 18 MiB 70.0 ms (70.0 ms to 100 ms) 500"), "{text}");
        assert!(text.contains("pages back 24 MiB nothing 0"), "{text}");
        assert!(text.contains("Recommended: a limit of 18 MiB adds 70.0 ms"), "{text}");
        for word in ["--ram", "in all", "not paged", "run time"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn a_process_that_hardly_worked_has_no_line_to_paste_and_one_sentence_why() {
        let text = flat(&text(0.05, 160));
        assert!(text.contains("It hardly worked: 17 pages touched in 10.0 s; no limit is recommended"), "{text}");
        for word in ["mem_limit", "MemoryHigh", "Recommended", "adds to"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        assert!(text.contains("at most 160 MiB since its start") && text.contains("coldframe squeeze 7"), "{text}");
    }
}
