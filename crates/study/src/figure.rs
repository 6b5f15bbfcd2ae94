//! A paper's figures: each printed value beside ours.

use std::path::Path;

use coldframe_experiment::ExperimentError;
use coldframe_show::plot::Plot;
use serde::Serialize;

/// A paper whose figures are reproduced. To add one: a folder like `swl/`, and a line in [`ALL`](crate::papers::ALL).
pub struct Paper {
    /// The name of its system.
    pub name: &'static str,
    /// All rows, from the folder with the shipped traces; the callback gets the name of what is simulated.
    pub rows: Rows,
    /// The curves that the paper draws, from the same folder.
    pub plots: fn(&Path) -> Result<Vec<Plot>, ExperimentError>,
    /// Its headlines.
    pub claims: &'static [Claim],
}

/// See [`Paper::rows`].
pub type Rows = fn(&Path, &mut dyn FnMut(&str)) -> Result<Vec<Row>, ExperimentError>;

/// A headline with its unit, in at most 46 characters; then item and row that answer it.
pub type Claim = (&'static str, &'static str, &'static str);

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

impl Reached {
    /// Reached, if this holds.
    pub fn yes_if(holds: bool) -> Reached {
        [Reached::No, Reached::Yes][usize::from(holds)]
    }

    /// The shape agrees, if this holds.
    pub fn shape_if(holds: bool) -> Reached {
        [Reached::No, Reached::Shape][usize::from(holds)]
    }

    /// Reached within this part of the printed value.
    pub fn within(printed: f64, ours: f64, part: f64) -> Reached {
        Reached::yes_if((ours / printed - 1.0).abs() <= part)
    }
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

impl Row {
    /// A row without a note.
    pub fn new(
        item: impl Into<String>,
        row: impl Into<String>,
        printed: impl Into<Option<f64>>,
        ours: f64,
        unit: &'static str,
        reached: Reached,
    ) -> Row {
        let paper_value = printed.into();
        let deviation = |paper: f64| (ours - paper) / paper.abs() * 100.0;
        Row {
            paper: "",
            item: item.into(),
            row: row.into(),
            paper_value,
            our_value: ours,
            unit,
            deviation_percent: paper_value.filter(|paper| *paper != 0.0).map(deviation),
            reached,
            note: String::new(),
            claim: None,
        }
    }

    /// The same with this note.
    pub fn noted(self, note: impl Into<String>) -> Row {
        Row { note: note.into(), ..self }
    }
}
