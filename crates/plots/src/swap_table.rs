//! Outcomes of swap areas as a table and as bars.

use coldframe_core::Ps;
use coldframe_sheet::quantity::{human_count, human_size, human_time};
use coldframe_show::html::words::text;

use coldframe_experiment::swap::SwapOutcome;
use coldframe_show::table::styled;

/// Columns that a narrow page drops first.
const LEAST: [&str; 9] =
    ["device time", "wear dev.", "max - min", "writes x", "wasted", "waits", "refused", "read-ahead", "life"];

/// One row for each outcome, then the values that all have in common.
pub fn table(outcomes: &[SwapOutcome]) -> String {
    let headings = [
        "layout",
        "read-ahead",
        "collector",
        "blocks",
        "refused",
        "waits",
        "reads",
        "wasted",
        "copies",
        "erases",
        "wear dev.",
        "max - min",
        "cost",
        "writes x",
        "device time",
        "life",
    ];
    let rows = outcomes.iter().map(|o| {
        let dash = || "-".to_string();
        let (found, counts, log) = (&o.found, &o.found.counts, &o.config.swap.log);
        vec![
            text(&log.layout).into(),
            text(&log.read_ahead).into(),
            text(&log.collector).into(),
            found.wear.blocks.to_string(),
            human_count(counts.refused),
            human_count(counts.demand_reads),
            human_count(counts.reads),
            human_count(counts.read_ahead_wasted),
            human_count(counts.copies),
            human_count(counts.erases),
            format!("{:.2}", found.wear.standard_deviation),
            (found.wear.max - found.wear.min).to_string(),
            human_count(found.cost),
            found.write_amplification.map_or_else(dash, |a| format!("{a:.3}")),
            found.time_ps.map_or_else(dash, |t| human_time(Ps(t.reading + t.programming + t.collecting))),
            found.life_years.map_or_else(dash, years),
        ]
    });
    format!("{}\n{}", styled(&headings, rows.collect(), 3).least(&LEAST), legend(outcomes))
}

fn years(years: f64) -> String {
    match years {
        y if y >= 10.0 => format!("{y:.0} years"),
        y => format!("{y:.2} years"),
    }
}

fn legend(outcomes: &[SwapOutcome]) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    let counts = &first.found.counts;
    let seconds = human_time(Ps(first.found.duration_ns.saturating_mul(1000)));
    let mut out = format!(
        "{} touches of pages swapped out, {} swap-outs in {seconds}; areas from {}; most copies at a time {} slots.\n\
         cost = reads + 10 * copies + 75 * erases (the slides'). waits: touches that had to wait for a read; wasted: slots read ahead and never used.\n\
         life: the same load without a pause, until the most worn block has had the erases that {} is rated for.\n",
        human_count(counts.touches),
        human_count(counts.swap_outs),
        human_size(first.bytes()),
        human_count(outcomes.iter().map(|o| o.found.counts.valid_slots_max).max().unwrap_or(0)),
        text(&first.config.settings.device),
    );
    if outcomes.iter().any(|o| o.found.counts.refused > 0) {
        out += "refused: the area was full and the page stayed in RAM, so that costs of such rows are too low.\n";
    }
    for (o, bad) in outcomes.iter().filter_map(|o| Some((o, o.found.counts.bad_blocks?))) {
        let (bad, blocks) = (human_count(bad), o.found.wear.blocks);
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
        format!("{} {}", o.found.wear.blocks, words.join(" "))
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
        of("Read count", |o| o.found.counts.reads as f64),
        of("Erase count", |o| o.found.counts.erases as f64),
        of("Erase copy count", |o| o.found.counts.copies as f64),
        of("Wear-levelling degree (standard deviation of erase counts)", |o| o.found.wear.standard_deviation),
        of("Garbage collection cost", |o| o.found.cost as f64),
    ]
    .join("\n")
}
