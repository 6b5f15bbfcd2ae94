//! The papers' printed figures beside ours.

use std::path::Path;

use serde::Serialize;

use crate::error::ReportError;
use crate::plot::bars::Bars;
use crate::plot::Plot;
use crate::systems::{self, Figures};

/// Whether a printed figure is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// Within the stated tolerance.
    Yes,
    /// Not reached; the note gives the reason.
    No,
    /// The input differs from the paper's, so only the shape is compared: it agrees.
    Shape,
    /// The paper makes no claim here, or none about an input like ours. The row is for information.
    NoClaim,
}

impl Serialize for Reached {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Reached::Yes => s.serialize_bool(true),
            Reached::No => s.serialize_bool(false),
            Reached::Shape => s.serialize_str("shape"),
            Reached::NoClaim => s.serialize_str("no claim"),
        }
    }
}

/// A headline claim of a paper, with the row that answers it.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// At most 46 characters, with its unit, so that a page fits a terminal.
    pub text: &'static str,
    /// The row's item.
    pub item: &'static str,
    /// The row.
    pub row: &'static str,
}

/// One printed figure and ours.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The paper's name.
    pub paper: &'static str,
    /// `table 4`, `figure 7`, ...
    pub item: String,
    /// The value.
    pub row: String,
    /// As printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper_value: Option<f64>,
    /// Ours.
    pub our_value: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// Ours less the paper's, in percent of the paper's; absent if the paper prints no value, or a percentage near
    /// zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation_percent: Option<f64>,
    /// Whether it is reached.
    pub reached: Reached,
    /// How it was found, and why it differs.
    pub note: String,
    /// The headline that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<&'static str>,
}

/// The curves that a paper draws, for the papers in `rows`.
///
/// # Errors
/// A trace cannot be read.
pub fn plots(paper: &str, traces: &Path) -> Result<Vec<Plot>, ReportError> {
    let mut plots = Vec::new();
    for figures in of(paper)? {
        plots.extend((figures.plots)(traces)?);
    }
    Ok(plots)
}

/// The bars that a paper draws; empty for the others.
///
/// # Errors
/// A trace cannot be read.
pub fn bars(paper: &str, traces: &Path) -> Result<Vec<Bars>, ReportError> {
    let mut bars = Vec::new();
    for figures in of(paper)? {
        bars.extend((figures.bars)(traces)?);
    }
    Ok(bars)
}

/// All rows of a paper. `traces` is the folder with the shipped traces.
///
/// # Errors
/// No such paper, or a trace cannot be read.
pub fn rows(paper: &str, traces: &Path, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ReportError> {
    let mut rows = Vec::new();
    for figures in of(paper)? {
        rows.extend(claimed(figures, (figures.rows)(traces, progress)?));
    }
    Ok(rows)
}

/// The rows; those that answer a headline are marked.
fn claimed(figures: &Figures, mut rows: Vec<Row>) -> Vec<Row> {
    for row in &mut rows {
        let claim = figures.claims.iter().find(|claim| claim.item == row.item && claim.row == row.row);
        row.claim = claim.map(|claim| claim.text);
    }
    rows
}

/// The number of a paper's headlines.
///
/// # Errors
/// No such paper.
pub fn claims(paper: &str) -> Result<usize, ReportError> {
    Ok(of(paper)?.iter().map(|figures| figures.claims.len()).sum())
}

/// Names of the systems whose papers print figures.
pub fn names() -> Vec<&'static str> {
    systems::ALL.iter().filter(|system| system.figures.is_some()).map(|system| system.name).collect()
}

/// The figures of one paper, or of all.
fn of(paper: &str) -> Result<Vec<&'static Figures>, ReportError> {
    let asked = systems::ALL.iter().filter(|system| paper == "all" || paper == system.name);
    let found: Vec<_> = asked.filter_map(|system| system.figures.as_ref()).collect();
    if found.is_empty() {
        let reason = format!("there is no paper `{paper}`; there are {}, all", names().join(", "));
        return Err(ReportError::setting("paper", reason));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headlines_fit_a_terminal_and_stand_once() {
        for figures in of("all").unwrap() {
            let texts: Vec<&str> = figures.claims.iter().map(|claim| claim.text).collect();
            assert!(!texts.is_empty() && texts.len() <= 8, "{texts:?}");
            assert!(texts.iter().all(|text| text.len() <= 46), "{texts:?}");
            assert!((1..texts.len()).all(|i| !texts[..i].contains(&texts[i])), "{texts:?}");
        }
    }
}
