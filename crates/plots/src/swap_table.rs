//! Outcomes of swap areas as a table and as bars.

use coldframe_boards::flash::write_amplification;
use coldframe_core::Ps;
use coldframe_sheet::quantity::{human_count, human_time};

use coldframe_experiment::swap::{size_text, SwapOutcome};
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
        vec![
            o.names.layout.to_string(),
            o.names.read_ahead.clone(),
            o.names.collector.clone(),
            o.blocks.to_string(),
            human_count(o.result.refused),
            human_count(o.result.demand_reads),
            human_count(o.operations.reads),
            human_count(o.result.cache.wasted),
            human_count(o.operations.copies),
            human_count(o.operations.erases),
            format!("{:.2}", o.wear.deviation),
            (o.wear.max - o.wear.min).to_string(),
            human_count(o.cost()),
            write_amplification(o.operations).map_or_else(dash, |a| format!("{a:.3}")),
            o.time.map_or_else(dash, |t| human_time(t.total())),
            o.life_years.map_or_else(dash, years),
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
    let r = &first.result;
    let seconds = human_time(Ps(r.duration_ns.saturating_mul(1000)));
    let mut out = format!(
        "{} touches of pages swapped out, {} swap-outs in {seconds}; areas from {}; most copies at a time {} slots.\n\
         cost = reads + 10 * copies + 75 * erases (the slides'). waits: touches that had to wait for a read; wasted: slots read ahead and never used.\n\
         life: the same load without a pause, until the most worn block has had the erases that {} is rated for.\n",
        human_count(r.touches),
        human_count(r.swap_outs),
        size_text(first),
        human_count(outcomes.iter().map(|o| o.result.copies_max).max().unwrap_or(0)),
        first.names.device,
    );
    if outcomes.iter().any(|o| o.result.refused > 0) {
        out += "refused: the area was full and the page stayed in RAM, so that costs of such rows are too low.\n";
    }
    for o in outcomes.iter().filter(|o| o.result.flash.bad_blocks > 0) {
        let (bad, blocks) = (human_count(o.result.flash.bad_blocks), o.blocks);
        let (layout, collector) = (o.names.layout, &o.names.collector);
        out += &format!(
            "The device failed: {layout}, {collector}, gave up {bad} of its {blocks} erase blocks; nothing was lost.\n"
        );
    }
    out
}

/// Bars of one measure, the longest `width` characters.
pub fn bars(title: &str, outcomes: &[SwapOutcome], width: usize, of: impl Fn(&SwapOutcome) -> f64) -> String {
    let name =
        |o: &SwapOutcome| format!("{} {} {} {}", o.blocks, o.names.layout, o.names.read_ahead, o.names.collector);
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
        of("Read count", |o| o.operations.reads as f64),
        of("Erase count", |o| o.operations.erases as f64),
        of("Erase copy count", |o| o.operations.copies as f64),
        of("Wear-levelling degree (standard deviation of erase counts)", |o| o.wear.deviation),
        of("Garbage collection cost", |o| o.cost() as f64),
    ]
    .join("\n")
}
