//! The answer as text: with the line that names its files, at most 20 lines of 80 columns.

use super::curve::Point;
use super::json::Answer;
use crate::table::human_count;

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

/// A size with two or three digits: `84 MiB`, `13.7 MiB`, `640 KiB`.
pub fn human_size(bytes: u64) -> String {
    let (value, unit) = match bytes {
        0..=1_048_575 => (bytes as f64 / 1024.0, "KiB"),
        1_048_576..=1_073_741_823 => (bytes as f64 / 1_048_576.0, "MiB"),
        _ => (bytes as f64 / 1_073_741_824.0, "GiB"),
    };
    // A tenth of zero is not printed.
    match (unit, value < 99.95) {
        ("KiB", _) | (_, false) => format!("{value:.0} {unit}"),
        _ => format!("{} {unit}", (value * 10.0).round() / 10.0),
    }
}

/// Seconds with two or three digits: `0.92 s`, `12.3 s`, `5.2 min`.
pub fn human_seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.0095 => format!("{:.1} ms", s * 1e3),
        s if s < 0.1 => format!("{:.0} ms", s * 1e3),
        s if s < 10.0 => format!("{s:.2} s"),
        s if s < 100.0 => format!("{s:.1} s"),
        s if s < 600.0 => format!("{s:.0} s"),
        s if s < 36_000.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A size in the form of `--ram`: exact, in MiB if quarters of one are enough.
pub fn exact(bytes: u64) -> String {
    match bytes {
        b if b % (1 << 30) == 0 => format!("{}GiB", b >> 30),
        b if b % (1 << 18) == 0 => format!("{}MiB", b as f64 / 1_048_576.0),
        b => format!("{}KiB", b >> 10),
    }
}

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
    format!(
        "{} takes {} and needs {}{joint}{parts}.{ended}",
        answer.program,
        human_seconds(answer.program_seconds),
        human_size(heap + rest)
    )
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
            exact(point.ram_bytes),
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
            exact(bytes)
        ),
        None => {
            let least = answer.curve.last().map_or(0, |point| point.ram_bytes);
            format!("Does not thrash with --ram {} or more.", exact(least))
        }
    }
}

fn recommended(answer: &Answer) -> String {
    let percent = answer.slowdown_percent;
    let Some(point) = answer.ram_bytes.and_then(|ram| answer.at(ram)) else {
        return format!("Recommended: none; no size keeps it within {percent:.0} % of its own time.");
    };
    let (ram, time, range) = (exact(point.ram_bytes), human_seconds(point.seconds), range(point));
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
    let (ram, time) = (exact(at.ram_bytes), human_seconds(at.seconds));
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
    let Some(ram) = answer.ram_bytes else { return String::new() };
    let how = config.map_or_else(|| format!("--ram {}", exact(ram)), |path| format!("-c {path}"));
    let of = |command: &str| format!("coldframe run {how} -- {command}");
    let whole = broken("Run it so: ", &of(answer.command.as_deref().unwrap_or(&answer.program)));
    match whole.lines().count() > COMMAND || whole.lines().any(|line| line.chars().count() > WIDTH) {
        true => broken("Run it so: ", &of(&format!("{} ...", answer.program))),
        false => whole,
    }
}

/// A command in lines that a shell reads as one.
fn broken(title: &str, command: &str) -> String {
    let lines = wrap(title, command, WIDTH - 2);
    lines.join(" \\\n") + "\n"
}

fn filled(title: &str, text: &str) -> String {
    lines(title, text, usize::MAX)
}

/// Text in lines, with an upper limit.
fn lines(title: &str, text: &str, most: usize) -> String {
    let mut all = wrap(title, text, WIDTH);
    if all.len() > most {
        all.truncate(most);
        let last = all.pop().unwrap_or_default();
        let kept: String = last.chars().take(WIDTH - 4).collect();
        all.push(format!("{} ...", kept.trim_end_matches([' ', ';', ','])));
    }
    all.join("\n") + "\n"
}

/// Wraps words to at most `width` columns. All lines but the first are indented by the title's width.
fn wrap(title: &str, text: &str, width: usize) -> Vec<String> {
    let (mut all, mut line) = (Vec::new(), title.to_string());
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            all.push(std::mem::replace(&mut line, " ".repeat(title.chars().count())));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    all.push(line);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_two_or_three_digits() {
        let mib = 1 << 20;
        assert_eq!(
            [84 * mib, 8 * mib + mib / 2, 640 << 10, 3 << 30].map(human_size),
            ["84 MiB", "8.5 MiB", "640 KiB", "3 GiB"]
        );
        assert_eq!(
            [0.0012, 0.056, 0.924, 12.34, 123.4, 3000.0].map(human_seconds),
            ["1.2 ms", "56 ms", "0.92 s", "12.3 s", "123 s", "50.0 min"]
        );
        assert_eq!([14_004 << 10, 999 * mib + mib / 2].map(human_size), ["13.7 MiB", "1000 MiB"]);
        assert_eq!([68 * mib, 2 << 30, 300 << 10].map(exact), ["68MiB", "2GiB", "300KiB"]);
        assert_eq!([38_400 << 10, 14_080 << 10, 14_004 << 10].map(exact), ["37.5MiB", "13.75MiB", "14004KiB"]);
        for size in [68 * mib, 38_400 << 10, 14_080 << 10, 14_004 << 10] {
            assert_eq!(
                coldframe_device::quantity::bytes(&exact(size)).map(|bytes| bytes.0),
                Ok(size),
                "as it is typed"
            );
        }
    }

    #[test]
    fn a_command_goes_on_as_a_shell_reads_it() {
        let words = vec!["word"; 30].join(" ");
        let text = broken("Run: ", &words);
        assert!(text.lines().all(|line| line.len() <= WIDTH));
        assert_eq!(text.replace(" \\\n", " ").split_whitespace().skip(1).collect::<Vec<_>>().join(" "), words);
    }
}
