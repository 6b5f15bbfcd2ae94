//! The papers' printed figures beside ours.

use std::path::Path;

use serde::Serialize;

use crate::error::ReportError;
use crate::plot::Plot;
use crate::systems::{self, Figures};

/// Whether a printed figure is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// Within the stated tolerance.
    Yes,
    /// Not; the note says why.
    No,
    /// The input is not the paper's, so that the shape is compared: it holds.
    Shape,
    /// The paper claims nothing of it, or of an input like ours; the row is there to be looked at.
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

/// One printed figure and ours.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The paper's name.
    pub paper: &'static str,
    /// `table 4`, `figure 7`, ...
    pub item: String,
    /// Which value of it.
    pub row: String,
    /// As printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper_value: Option<f64>,
    /// Ours.
    pub our_value: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// Ours less the paper's, in percent of the paper's; absent where the paper prints none, or a percentage near zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation_percent: Option<f64>,
    /// Whether it is reached.
    pub reached: Reached,
    /// How it was found, and why it differs.
    pub note: String,
}

/// Curves that are better looked at than read, for the papers that `rows` answers.
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

/// Bars, for the papers that draw some; empty for the others.
///
/// # Errors
/// A trace cannot be read.
pub fn bars(paper: &str, traces: &Path) -> Result<String, ReportError> {
    of(paper)?.iter().map(|figures| (figures.bars)(traces)).collect()
}

/// All rows of a paper. `traces` is the folder with the shipped traces.
///
/// # Errors
/// No such paper, or a trace cannot be read.
pub fn rows(paper: &str, traces: &Path, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ReportError> {
    let mut rows = Vec::new();
    for figures in of(paper)? {
        rows.extend((figures.rows)(traces, progress)?);
    }
    Ok(rows)
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
