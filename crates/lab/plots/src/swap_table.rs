//! Outcomes of swap areas as a table and as bars.

use coldframe_core::Ps;
use coldframe_sheet::quantity::{human_count, human_size, human_time};
use coldframe_show::html::words::text;

use crate::columns::{columns, Column};
use coldframe_experiment::swap::SwapOutcome;

const COLUMNS: [Column<SwapOutcome>; 16] = [
    ("layout", |o| text(&o.config.swap.log.layout).into()),
    ("read-ahead", |o| text(&o.config.swap.log.read_ahead).into()),
    ("collector", |o| text(&o.config.swap.log.collector).into()),
    ("blocks", |o| o.result.wear.blocks.to_string()),
    ("refused", |o| human_count(o.result.counts.refused)),
    ("waits", |o| human_count(o.result.counts.demand_reads)),
    ("reads", |o| human_count(o.result.counts.reads)),
    ("wasted", |o| human_count(o.result.counts.read_ahead_wasted)),
    ("copies", |o| human_count(o.result.counts.copies)),
    ("erases", |o| human_count(o.result.counts.erases)),
    ("wear dev.", |o| format!("{:.2}", o.result.wear.standard_deviation)),
    ("max - min", |o| (o.result.wear.max - o.result.wear.min).to_string()),
    ("cost", |o| human_count(o.result.cost)),
    ("writes x", |o| or_dash(o.result.write_amplification, |a| format!("{a:.3}"))),
    ("device time", |o| or_dash(o.result.time_ps, |t| human_time(Ps(t.reading + t.programming + t.collecting)))),
    ("life", |o| or_dash(o.result.life_years, years)),
];

/// One row for each outcome, then the values that all have in common.
pub fn table(outcomes: &[SwapOutcome]) -> String {
    format!("{}\n{}", columns(&COLUMNS, 3, outcomes).keys(4), legend(outcomes))
}

fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

fn years(years: f64) -> String {
    match years {
        y if y >= 10.0 => format!("{y:.0} years"),
        y => format!("{y:.2} years"),
    }
}

fn legend(outcomes: &[SwapOutcome]) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    let counts = &first.result.counts;
    let seconds = human_time(Ps(first.result.duration_ns.saturating_mul(1000)));
    let mut out = format!(
        "{} touches of pages swapped out, {} swap-outs in {seconds}; areas from {}; most copies at a time {} slots.\n\
         cost = reads + 10 * copies + 75 * erases (the slides'). waits: touches that had to wait for a read; wasted: \
         slots read ahead and never used.\n\
         life: the same load without a pause, until the most worn block has had the erases that {} is rated for.\n",
        human_count(counts.touches),
        human_count(counts.swap_outs),
        human_size(first.bytes()),
        human_count(outcomes.iter().map(|o| o.result.counts.valid_slots_max).max().unwrap_or(0)),
        text(&first.config.settings.device),
    );
    if outcomes.iter().any(|o| o.result.counts.refused > 0) {
        out += "refused: the area was full and the page stayed in RAM, so that costs of such rows are too low.\n";
    }
    for (o, bad) in outcomes.iter().filter_map(|o| Some((o, o.result.counts.bad_blocks?))) {
        let (bad, blocks) = (human_count(bad), o.result.wear.blocks);
        let (layout, collector) = (text(&o.config.swap.log.layout), text(&o.config.swap.log.collector));
        out += &format!(
            "The device failed: {layout}, {collector}, gave up {bad} of its {blocks} erase blocks; nothing was lost.\n"
        );
    }
    out
}

/// Bars of one measure, the longest `width` characters.
pub fn bars(title: &str, outcomes: &[SwapOutcome], width: usize, of: impl Fn(&SwapOutcome) -> f64) -> String {
    let name = |o: &SwapOutcome| {
        let log = &o.config.swap.log;
        let words = [&log.layout, &log.read_ahead, &log.collector].map(text);
        format!("{} {}", o.result.wear.blocks, words.join(" "))
    };
    let longest = outcomes.iter().map(|o| name(o).len()).max().unwrap_or(0);
    let most = outcomes.iter().map(&of).fold(0.0, f64::max);
    let mut out = format!("{title}\n");
    for o in outcomes {
        let value = of(o);
        let length = if most > 0.0 { (value / most * width as f64).round() as usize } else { 0 };
        let shown = if value.fract() == 0.0 { human_count(value as u64) } else { format!("{value:.2}") };
        out += &format!("{:<longest$} {} {shown}\n", name(o), "█".repeat(length));
    }
    out
}

/// The slides' four pictures: reads, erases, copies, wear; and the cost.
pub fn pictures(outcomes: &[SwapOutcome]) -> String {
    let of = |title, of: fn(&SwapOutcome) -> f64| bars(title, outcomes, 40, of);
    [
        of("Read count", |o| o.result.counts.reads as f64),
        of("Erase count", |o| o.result.counts.erases as f64),
        of("Erase copy count", |o| o.result.counts.copies as f64),
        of("Wear-levelling degree (standard deviation of erase counts)", |o| o.result.wear.standard_deviation),
        of("Garbage collection cost", |o| o.result.cost as f64),
    ]
    .join("\n")
}
