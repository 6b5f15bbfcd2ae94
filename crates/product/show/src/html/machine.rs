//! The answer about this machine: run time by RAM.

use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::html::chart::{charts, Chart, Line, Mark, Point};
use crate::html::words::{count, list, note, table, Row, Unit};
use crate::machine_answer::files::files;
use crate::machine_answer::memory_use::{memory_use, who};
use crate::machine_answer::sizes::{range, shown};
use crate::paste::run::PasteRun;
use crate::paste::settings::blocks;
use crate::plot::escape;
use coldframe_answer::{Answer, By, Known, Point as Size, Runs};

/// The answer in a sentence, how to run it so, and the chart.
pub fn answer(answer: &Answer) -> String {
    let chart = chart(answer);
    let mut label = String::from("Band: how sure the prediction is.");
    if chart.zone.is_some() {
        label += " Shaded: it thrashes and takes more than twice as long as with all its RAM.";
    }
    let drawn = match chart.says_something() {
        true => charts(&[chart]) + &note(&label),
        false => charts(&[chart]),
    };
    let notes: String =
        memory_use(answer).and_then(who).into_iter().chain(files(answer)).map(|line| note(&line)).collect();
    headline(answer) + &note(&origin(answer)) + &command(answer) + &drawn + &notes + &sizes(answer)
}

/// Who uses memory, as a recording shows it. What it predicts is measured beside it.
pub fn recorded_beside(answer: &Answer) -> String {
    memory_use(answer).and_then(who).map(|line| note(&line)).unwrap_or_default()
}

/// What was measured, when and where.
fn origin(answer: &Answer) -> String {
    let words = answer.command.as_deref().unwrap_or(&answer.program);
    let origin = if answer.origin.is_empty() { String::new() } else { format!("; {}", answer.origin) };
    format!("{words}{origin}; coldframe {}", answer.version)
}

/// What the fold holds: the source of the numbers, and the configuration.
pub fn provenance(answer: &Answer) -> Vec<String> {
    let pager = answer
        .recorded()
        .map(|recorded| format!("our pager: policy {}, read-ahead {} pages", recorded.policy, recorded.read_ahead));
    [origin(answer), answer.measured.clone()].into_iter().chain(pager).filter(|text| !text.is_empty()).collect()
}

/// The basis of the answer.
pub fn sure(answer: &Answer) -> String {
    list(answer.how_sure.iter().chain(&answer.notes))
}

/// Sizes that are shown at once; the others when the reader asks for them.
const SHOWN: usize = 9;

/// Every size in one table, the largest first: measured and predicted.
fn sizes(answer: &Answer) -> String {
    let mut sizes: Vec<(u64, bool, Vec<String>)> =
        answer.curve.iter().map(|size| predicted_row(answer, size)).collect();
    sizes.extend(answer.runs.iter().filter_map(|runs| measured_row(answer, runs)));
    // Of one size, what was measured comes first.
    sizes.sort_by_key(|(ram, measured, _)| (std::cmp::Reverse(*ram), !measured));
    let few: Vec<u64> = shown(answer, SHOWN).iter().map(|known| known.ram_bytes).collect();
    let row = |(ram, measured, cells): &(u64, bool, Vec<String>)| {
        let attributes = match *measured || few.contains(ram) {
            true => String::new(),
            false => " class=\"more\"".into(),
        };
        (attributes, cells.clone())
    };
    let rows: Vec<Row> = sizes.iter().map(row).collect();
    let heads = ["limit", "run time", "from", "to", "times", "how", "pages from disk"];
    let all = match rows.iter().any(|(attributes, _)| !attributes.is_empty()) {
        true => format!("<label><input type=\"checkbox\" id=\"all\"> all {} rows</label>", rows.len()),
        false => String::new(),
    };
    format!("<div id=\"sizes\">{all}{}</div>", table(&heads, &rows))
}

fn times(answer: &Answer, seconds: f64) -> String {
    format!("{:.2}", seconds / answer.program_seconds.max(1e-9))
}

fn predicted_row(answer: &Answer, size: &Size) -> (u64, bool, Vec<String>) {
    let cells = vec![
        human_size(size.ram_bytes),
        human_seconds(size.seconds),
        human_seconds(size.seconds_low),
        size.seconds_high.map_or("not known".into(), human_seconds),
        times(answer, size.seconds),
        "predicted".into(),
        count(size.device_reads),
    ];
    (size.ram_bytes, false, cells)
}

/// `None`: the program alone, or a run that failed.
fn measured_row(answer: &Answer, runs: &Runs) -> Option<(u64, bool, Vec<String>)> {
    let ram = runs.ram_bytes.filter(|_| runs.failed.is_none())?;
    let more = if runs.more { "over " } else { "" };
    let range = runs.range();
    let by = if runs.by == By::Kernel { "measured, by the kernel" } else { "measured, by our pager" };
    let cells = vec![
        human_size(ram),
        format!("{more}{}", human_seconds(runs.seconds)),
        range.map_or("-".into(), |(low, _)| human_seconds(low)),
        range.map_or("-".into(), |(_, high)| human_seconds(high)),
        times(answer, runs.seconds),
        by.into(),
        count(Some(runs.page_reads)),
    ];
    Some((ram, true, cells))
}

fn headline(answer: &Answer) -> String {
    let (alone, all) = (human_seconds(answer.program_seconds), human_size(answer.needed_bytes));
    let program = escape(&answer.program);
    if let (Some(bytes), Some(By::Plain)) = (answer.ram_bytes, answer.by) {
        let (ram, percent) = (human_size(bytes), answer.slowdown_percent);
        let text =
            format!("{program} needs all of its {ram}: paged, it is over {percent:.0} % slower than its {alone}.");
        return format!("<h1 id=\"answer\" data-ram=\"{bytes}\">{text}</h1>");
    }
    match answer.ram_bytes.and_then(|ram| answer.known(ram)) {
        Some(size) => {
            let (ram, time) = (human_size(size.ram_bytes), human_seconds(size.seconds));
            let text = match size.ram_bytes < answer.needed_bytes {
                true => format!("With {ram} of RAM instead of {all}, {program} takes {time} instead of {alone}."),
                false => format!("{program} needs {ram} of RAM."),
            };
            format!("<h1 id=\"answer\" data-ram=\"{}\">{text}</h1>", size.ram_bytes)
        }
        None => {
            let percent = answer.slowdown_percent;
            format!("<h1 id=\"answer\">No size of RAM keeps {program} within {percent:.0} % of its own {alone}.</h1>")
        }
    }
}

/// How to run it so, and what comes on top.
fn command(answer: &Answer) -> String {
    let words = escape(answer.command.as_deref().unwrap_or(&answer.program));
    let run = match (PasteRun::new(answer), answer.ram_bytes) {
        (Some(run), Some(ram)) => format!(
            "<p><code class=\"copy\">{}</code></p><details><summary>For docker, compose, Kubernetes and \
             systemd</summary>{}</details>",
            escape(&run.whole()),
            blocks(ram, answer.needed_bytes)
        ),
        _ => format!("<p><code class=\"copy\">{words}</code></p>"),
    };
    run
}

fn chart(answer: &Answer) -> Chart<'static> {
    let sizes = || answer.curve.iter().rev();
    let known = sizes().filter(|size| size.seconds_high.is_some()).map(|size| predicted(answer, size)).collect();
    let mut bounds: Vec<Point> =
        sizes().filter(|size| size.seconds_high.is_none()).map(|size| predicted(answer, size)).collect();
    // The line continues to the first size for which more is known.
    let joint = sizes().find(|size| size.seconds_high.is_some()).filter(|_| !bounds.is_empty());
    bounds.extend(joint.map(|size| Point { label: String::new(), span: None, ..predicted(answer, size) }));
    let measured = |by| {
        let runs = answer.runs.iter().filter(|run| run.by == by && run.failed.is_none());
        let mut points: Vec<Point> = runs.filter_map(measured).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    };
    let line = |name: &str, points, mark| Line { name: name.into(), points, mark };
    let lines = [
        line("predicted", known, Mark::Line),
        line("predicted, at least", bounds, Mark::Bound),
        line("measured", measured(By::Pager), Mark::Dots),
        line("measured, by the kernel", measured(By::Kernel), Mark::Dots),
    ];
    let lines: Vec<Line> = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
    let advised = answer.ram_bytes.and_then(|ram| answer.known(ram));
    Chart {
        title: "Run time by RAM on this machine",
        x: "limit of RAM",
        y: "run time",
        unit: Unit::Seconds,
        log_y: Chart::wide(&lines),
        lines,
        zone: answer.thrash_bytes.map(|bytes| (bytes as f64, "thrashes")),
        advised: advised.map(|size| {
            let text = format!("advised: {}, {}", human_size(size.ram_bytes), human_seconds(size.seconds));
            (size.ram_bytes as f64, size.seconds, text)
        }),
    }
}

fn measured(runs: &Runs) -> Option<Point> {
    let (ram, more) = (runs.ram_bytes?, if runs.more { "over " } else { "" });
    let label = format!("{}: measured {more}{}", human_size(ram), human_seconds(runs.seconds));
    Some(Point { x: ram as f64, y: runs.seconds, span: runs.range(), path: String::new(), label })
}

fn predicted(answer: &Answer, size: &Size) -> Point {
    let (ram, time) = (human_size(size.ram_bytes), human_seconds(size.seconds));
    let (times, pages) = (size.seconds / answer.program_seconds.max(1e-9), count(size.device_reads));
    let sure = match size.seconds_high {
        Some(_) => range(&Known::predicted(size)),
        None => "a lower bound".into(),
    };
    let label = format!("{ram}: {time} ({sure}), {times:.2} times its own; {pages} pages from disk");
    let span = size.seconds_high.map(|high| (size.seconds_low.max(0.0), high));
    Point { x: size.ram_bytes as f64, y: size.seconds, span, path: String::new(), label }
}
