//! The answer that was measured in a memory group: the sentence, its chart, every size that was run, lines to paste.

use coldframe_answer::{By, LimitAnswer, Runs, NO_SWAP};
use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::html::chart::{charts, Chart, Line, Mark, Point};
use crate::html::words::{note, table, Row, Unit};
use crate::limit_answer::{cells, counted, headline, HEADS};
use crate::paste::settings::blocks;
use crate::plot::escape;

/// The answer.
pub fn answer(answer: &LimitAnswer) -> String {
    let head = format!("<h1 id=\"answer\">{}</h1>", escape(&headline(answer)));
    let origin = format!("{}; {}; coldframe {}", answer.command, answer.origin, answer.version);
    let paste = answer.limit.recommended_bytes.map(|enough| blocks(enough, enough)).unwrap_or_default();
    let row = |runs: &&Runs| {
        let [limit, swap, time, times, remark] = cells(answer, runs);
        let warm = runs.is_limit() && runs.cold != answer.plain().cold;
        let remark = if warm && remark.is_empty() { "its files in RAM already".into() } else { remark };
        (String::new(), vec![limit, swap, time, times, "measured".into(), remark])
    };
    // The program without a limit, then the largest limit first.
    let mut runs: Vec<&Runs> = answer.runs.iter().collect();
    runs.sort_by_key(|runs| std::cmp::Reverse(runs.ram_bytes.unwrap_or(u64::MAX)));
    let rows: Vec<Row> = runs.iter().map(row).collect();
    let [limit, swap, time, times, _] = HEADS;
    let heads = [limit, swap, time, times, "how", "remark"];
    head + &note(&origin) + &charts(&[chart(answer)]) + &note(&counted(answer)) + &paste + &table(&heads, &rows)
}

fn chart(answer: &LimitAnswer) -> Chart<'static> {
    let cold = answer.plain().cold;
    let points = |wanted: &dyn Fn(&Runs) -> bool| {
        let runs = answer.runs.iter().filter(|runs| runs.failed.is_none() && wanted(runs));
        let mut points: Vec<Point> = runs.filter_map(|runs| point(answer, runs)).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    };
    let limited = |runs: &Runs| runs.by == By::Kernel && runs.swap.as_deref() == Some(NO_SWAP);
    let set = |runs: &Runs| runs.setting.is_some();
    let line = |name: &str, points| Line { name: name.into(), points, mark: Mark::Dots };
    let lines = [
        line("without swap", points(&|runs| runs.is_limit() && runs.cold == cold)),
        line("with a setting of its runtime", points(&set)),
        line("its files in RAM already", points(&|runs| runs.is_limit() && runs.cold != cold)),
        line("with swap", points(&|runs| runs.by == By::Kernel && !limited(runs))),
        line("by our pager", points(&|runs| runs.by == By::Pager)),
    ];
    let lines: Vec<Line> = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
    let advised = answer.limit.recommended_bytes.and_then(|ram| Some((ram, answer.at(ram)?)));
    Chart {
        title: "Run time by limit, measured on this machine",
        x: "limit of the memory group",
        y: "run time",
        unit: Unit::Seconds,
        log_y: Chart::wide(&lines),
        lines,
        zone: answer.limit.dies_bytes.map(|bytes| (bytes as f64, "killed")),
        advised: advised.map(|(ram, runs)| {
            let text = format!("recommended: {}, {}", human_size(ram), human_seconds(runs.seconds));
            (ram as f64, runs.seconds, text)
        }),
    }
}

fn point(answer: &LimitAnswer, runs: &Runs) -> Option<Point> {
    let ram = runs.ram_bytes?;
    let [limit, swap, time, times, _] = cells(answer, runs);
    let label = format!("{limit}, swap {swap}: {time}, {times} times its own");
    Some(Point { x: ram as f64, y: runs.seconds, span: runs.range(), path: String::new(), label })
}
