//! The papers' printed figures beside ours.

use std::path::Path;

use serde::Serialize;

use crate::error::ReportError;
use crate::plot::Plot;

pub mod ddb;
pub mod drswap;
pub mod lobi;
pub mod sap;
pub mod swl;

/// Whether a printed figure is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// Within the stated tolerance.
    Yes,
    /// Not; the note says why.
    No,
    /// The input is not the paper's, so that the shape is compared: it holds.
    Shape,
}

impl Serialize for Reached {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Reached::Yes => s.serialize_bool(true),
            Reached::No => s.serialize_bool(false),
            Reached::Shape => s.serialize_str("shape"),
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
    if matches!(paper, "swl" | "all") {
        plots.push(swl::walk_plot());
    }
    if matches!(paper, "ddb" | "all") {
        plots.extend(ddb::plots(traces)?);
    }
    Ok(plots)
}

/// Bars, for the papers that draw some; empty for the others.
///
/// # Errors
/// A trace cannot be read.
pub fn bars(paper: &str, traces: &Path) -> Result<String, ReportError> {
    match paper {
        "lobi" | "all" => lobi::bars(traces),
        _ => Ok(String::new()),
    }
}

/// All rows of a paper. `traces` is the folder with the shipped traces.
///
/// # Errors
/// No such paper, or a trace cannot be read.
pub fn rows(paper: &str, traces: &Path, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ReportError> {
    match paper {
        "swl" => swl::rows(traces, progress),
        "ddb" => ddb::rows(traces, progress),
        "lobi" => lobi::rows(traces, progress),
        "drswap" => drswap::rows(traces, progress),
        "sap" => sap::rows(traces, progress),
        "all" => {
            let mut rows = swl::rows(traces, progress)?;
            rows.extend(ddb::rows(traces, progress)?);
            rows.extend(lobi::rows(traces, progress)?);
            rows.extend(drswap::rows(traces, progress)?);
            rows.extend(sap::rows(traces, progress)?);
            Ok(rows)
        }
        other => {
            let reason = format!("there is no paper `{other}`; there are swl, ddb, lobi, drswap, sap, all");
            Err(ReportError::setting("paper", reason))
        }
    }
}
