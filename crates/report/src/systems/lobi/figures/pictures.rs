//! The slides' pictures, which print no numbers: reads, erases, copies and wear at four sizes of the area, under all
//! collectors.

use rayon::prelude::*;

use super::{row, under_all, Input, AREA_BLOCKS, COLLECTORS};
use crate::error::ReportError;
use crate::papers::{Reached, Row};
use crate::plot::bars::Bars;
use crate::swap::SwapOutcome;

/// A measure of the slides.
type Measure = (&'static str, fn(&SwapOutcome) -> f64);

const MEASURES: [Measure; 4] = [
    ("read count", |o| o.operations.reads as f64),
    ("erase count", |o| o.operations.erases as f64),
    ("erase copy count", |o| o.operations.copies as f64),
    ("wear-levelling degree (standard deviation of erase counts)", |o| o.wear.deviation),
];

/// Outcomes by size, method and collector.
fn outcomes(input: &Input) -> Result<Vec<Vec<Vec<SwapOutcome>>>, ReportError> {
    let of_size = |blocks: &u32| input.methods.iter().map(|method| under_all(input, *blocks, method)).collect();
    AREA_BLOCKS.par_iter().map(of_size).collect()
}

/// A row for each bar under the greedy collector.
pub(super) fn rows(input: &Input, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    for (blocks, methods) in AREA_BLOCKS.iter().zip(outcomes(input)?) {
        for (method, outcomes) in input.methods.iter().zip(methods) {
            for (what, of) in MEASURES {
                let name = format!("{}, {}: {what}", input.name, method.name());
                let mut row = row(&format!("{blocks} blocks"), name, None, of(&outcomes[0]), "", Reached::NoClaim);
                row.note = "drawn without numbers in the slides; greedy collector".into();
                rows.push(row);
            }
        }
    }
    Ok(())
}

/// A chart for each size and measure: a group for each collector, a bar for each method.
pub(super) fn bars(input: &Input) -> Result<Vec<Bars>, ReportError> {
    let mut charts = Vec::new();
    for (blocks, methods) in AREA_BLOCKS.iter().zip(outcomes(input)?) {
        for (what, of) in MEASURES {
            let group = |c: usize| (short(COLLECTORS[c]), methods.iter().map(|outcomes| of(&outcomes[c])).collect());
            charts.push(Bars {
                title: format!("LOBI, {blocks} blocks"),
                measure: what.into(),
                names: input.methods.iter().map(|method| method.printed.replace('_', " ")).collect(),
                groups: (0..COLLECTORS.len()).map(group).collect(),
            });
        }
    }
    Ok(charts)
}

/// The slides' name of a collector.
fn short(collector: &str) -> String {
    let (name, victims) = collector.split_once(':').unwrap_or((collector, ""));
    let printed = match name {
        "greedy" => "GR",
        "cost-benefit" => "CB",
        "cost-age-times" => "CATA",
        _ => "CBA",
    };
    format!("{printed}{victims}")
}
