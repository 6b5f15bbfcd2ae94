//! The answer as text: with the line that names its files, at most 20 lines of 80 columns.

use coldframe_advise::machine::{Answer, Point, Rung};
use coldframe_device::quantity::{human_count, human_seconds, human_size, ram_size};

use crate::table::wrap;

/// Columns of a line.
const WIDTH: usize = 80;
/// The most sizes in the table, and those that it has at least if there are as many.
const ROWS: usize = 6;
const ROWS_MIN: usize = 3;
/// Lines of the whole answer. One more names its files.
const LINES: usize = 19;
/// The most lines for how sure it is.
const SURE: usize = 3;
/// The gain of a tier is mentioned if it makes a run this many times as fast.
const GAIN: f64 = 1.1;
/// Lines for the command.
const COMMAND: usize = 2;

/// The whole answer; `config`: the file with the advised settings, if there is one. If other lines are long, the table
/// has fewer sizes; then the kernel's counterpart of the tier is left out.
pub fn words(answer: &Answer, config: Option<&str>) -> String {
    let forms = [true, false].into_iter().flat_map(|kernel| (ROWS_MIN..=ROWS).rev().map(move |rows| (rows, kernel)));
    let mut text = String::new();
    for (rows, kernel) in forms {
        text = with(answer, config, rows, kernel);
        if text.lines().count() <= LINES {
            break;
        }
    }
    text
}

/// The answer with at most this many sizes, with or without the kernel's counterpart of the tier.
fn with(answer: &Answer, config: Option<&str>, rows: usize, kernel: bool) -> String {
    let points = shown(answer, rows);
    let mut out = filled("", &needs(answer));
    out += &table(answer, &points);
    out += &filled("", &thrashes(answer));
    out += &filled("", &recommended(answer));
    out += &tier(answer, &points, kernel);
    let (sure, command) = (answer.how_sure.join("; "), command(answer, config));
    if !sure.is_empty() {
        let left = LINES.saturating_sub(out.lines().count() + command.lines().count());
        out += &lines("How sure: ", &sure, left.clamp(1, SURE));
    }
    out + &command
}

fn needs(answer: &Answer) -> String {
    let (heap, rest) = (answer.managed_bytes, answer.not_paged_bytes);
    let parts = match rest {
        0 => "of heap; what is not paged comes on top".into(),
        rest => {
            format!("{} of heap, {} that is not paged (code, stacks, libraries)", human_size(heap), human_size(rest))
        }
    };
    let joint = if rest == 0 { " " } else { ": " };
    let ended = match answer.exit {
        Some(0) => String::new(),
        Some(code) => format!(" It ended with exit code {code}."),
        None => " A signal ended it.".into(),
    };
    let (time, size) = (human_seconds(answer.program_seconds), human_size(heap + rest));
    let about = if answer.rung == Rung::ReferencedBits { "about " } else { "" };
    match answer.process {
        Some(process) => {
            format!("{} (process {process}), watched for {time}, has {about}{size}{joint}{parts}.", answer.program)
        }
        None => format!("{} takes {time} and needs {about}{size}{joint}{parts}.{ended}", answer.program),
    }
}

/// The sizes to show: what it needs, the advised one, the one above which it does not thrash, a half, a quarter, the
/// least.
fn shown(answer: &Answer, rows: usize) -> Vec<&Point> {
    let near = |ram: u64| answer.curve.iter().min_by_key(|point| point.ram_bytes.abs_diff(ram));
    let full = answer.needed_bytes;
    let wanted = [Some(full), answer.ram_bytes, Some(full / 2), Some(full / 4), answer.thrash_bytes, Some(full / 16)];
    let mut points: Vec<&Point> = wanted.into_iter().flatten().filter_map(near).collect();
    points.sort_by_key(|point| std::cmp::Reverse(point.ram_bytes));
    points.dedup_by_key(|point| point.ram_bytes);
    points.truncate(rows);
    points
}

fn table(answer: &Answer, points: &[&Point]) -> String {
    let mut out = format!(
        "\n  {:>10}  {:>8}  {:>26}  {:>7}  {:>15}\n",
        "--ram", "in all", "run time", "times", "pages from disk"
    );
    for point in points {
        let times = point.seconds / answer.program_seconds.max(1e-9);
        let time = human_seconds(point.seconds);
        let span = match point.seconds_high {
            Some(_) => format!("{time} ({})", range(point)),
            None => format!("{time} or more"),
        };
        let mark = if Some(point.ram_bytes) == answer.ram_bytes { "*" } else { " " };
        out += &format!(
            "{mark} {:>10}  {:>8}  {span:>26}  {:>7}  {:>15}\n",
            ram_size(point.ram_bytes),
            human_size(point.ram_bytes + answer.not_paged_bytes),
            format!("{times:.*}", if times < 10.0 { 2 } else { 0 }),
            human_count(point.device_reads),
        );
    }
    out + "\n"
}

/// `0.95 to 1.1 s`: both ends, with one unit if it is the same.
pub fn range(point: &Point) -> String {
    let (low, high) = (human_seconds(point.seconds_low.max(0.0)), human_seconds(point.worst()));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, one)), Some((_, other))) if one == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

fn thrashes(answer: &Answer) -> String {
    match answer.thrash_bytes {
        Some(bytes) => format!(
            "Thrashes below --ram {}: with less it takes more than twice as long as with all its RAM.",
            ram_size(bytes)
        ),
        None => {
            let least = answer.curve.last().map_or(0, |point| point.ram_bytes);
            format!("Does not thrash with --ram {} or more.", ram_size(least))
        }
    }
}

fn recommended(answer: &Answer) -> String {
    let percent = answer.slowdown_percent;
    let Some(point) = answer.ram_bytes.and_then(|ram| answer.at(ram)) else {
        return format!("Recommended: none; no size keeps it within {percent:.0} % of its own time.");
    };
    let (ram, time, range) = (ram_size(point.ram_bytes), human_seconds(point.seconds), range(point));
    let of = match answer.within_slowdown {
        true => format!("at most {percent:.0} % slower"),
        false => format!(
            "at most {percent:.0} % slower than with all its RAM; the pager itself takes more than that of so short a time"
        ),
    };
    format!("Recommended: --ram {ram}: {time} ({range}), {of}.")
}

/// The gain of a compressed tier at the size of the table for which it is largest, and the kernel's counterpart.
fn tier(answer: &Answer, points: &[&Point], kernel: bool) -> String {
    let Some(tier) = &answer.tier else { return String::new() };
    let percent = 100.0 * tier.kept_share;
    let smaller = format!("{percent:.0} % of its pages become {:.1} times smaller with lz4", tier.ratio);
    let gains = points.iter().filter_map(|point| {
        let at = tier.at(point.ram_bytes)?;
        Some((point.seconds / at.seconds, at))
    });
    let best = gains.filter(|(gain, _)| *gain > GAIN).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, at)) = best else {
        return filled("", &format!("Compressed RAM (--tier lz4) would gain less than 10 %, though {smaller}."));
    };
    let (ram, time) = (ram_size(at.ram_bytes), human_seconds(at.seconds));
    let time = if at.told { format!("about {time}") } else { format!("{time} or more") };
    let without = human_size(at.bytes_written_without);
    let with = if at.bytes_written == 0 { "nothing".into() } else { human_size(at.bytes_written) };
    let disk = match at.bytes_written_without {
        0 => String::new(),
        _ => format!(" and writes {with} to the disk instead of {without}"),
    };
    let own = if kernel { format!(" The kernel's own: {}.", at.kernel()) } else { String::new() };
    filled("", &format!("With --tier lz4, --ram {ram} takes {time}{disk}: {smaller}.{own}"))
}

/// The command for a run with the advised RAM. A long command continues on the next line as a shell reads it; a very
/// long one is left out.
fn command(answer: &Answer, config: Option<&str>) -> String {
    // A process that runs is not started again.
    let Some(ram) = answer.ram_bytes.filter(|_| answer.process.is_none()) else { return String::new() };
    let how = config.map_or_else(|| format!("--ram {}", ram_size(ram)), |path| format!("-c {path}"));
    let of = |command: &str| format!("coldframe run {how} -- {command}");
    let whole = broken("Run it so: ", &of(answer.command.as_deref().unwrap_or(&answer.program)));
    match whole.lines().count() > COMMAND || whole.lines().any(|line| line.chars().count() > WIDTH) {
        true => broken("Run it so: ", &of(&format!("{} ...", answer.program))),
        false => whole,
    }
}

/// A command in lines that a shell reads as one.
fn broken(title: &str, command: &str) -> String {
    let lines = wrap(title, command, title.len(), WIDTH - 2);
    lines.join(" \\\n") + "\n"
}

fn filled(title: &str, text: &str) -> String {
    lines(title, text, usize::MAX)
}

/// Text in lines, with an upper limit.
fn lines(title: &str, text: &str, most: usize) -> String {
    let mut all = wrap(title, text, title.len(), WIDTH);
    if all.len() > most {
        all.truncate(most);
        let last = all.pop().unwrap_or_default();
        let kept: String = last.chars().take(WIDTH - 4).collect();
        all.push(format!("{} ...", kept.trim_end_matches([' ', ';', ','])));
    }
    all.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_goes_on_as_a_shell_reads_it() {
        let words = vec!["word"; 30].join(" ");
        let text = broken("Run: ", &words);
        assert!(text.lines().all(|line| line.len() <= WIDTH));
        assert_eq!(text.replace(" \\\n", " ").split_whitespace().skip(1).collect::<Vec<_>>().join(" "), words);
    }
}
