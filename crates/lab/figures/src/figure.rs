//! A paper's figures: each printed value and ours.

use std::ops::RangeInclusive;
use std::path::Path;

use coldframe_experiment::ExperimentError;
use coldframe_show::plot::Plot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A paper whose figures are reproduced. To add one: a folder like `swl/`, and a line in [`ALL`](crate::papers::ALL).
pub struct Paper {
    /// The name of its system.
    pub name: &'static str,
    /// The rows that are wanted, and others beside them, from the folder with the shipped traces; the callback gets the
    /// name of what is simulated.
    pub rows: Rows,
    /// The curves that the paper draws, from the same folder.
    pub plots: fn(&Path) -> Result<Vec<Plot>, ExperimentError>,
    /// Its headlines; the first four stand in the book's table.
    pub claims: &'static [Claim],
    /// Title, source and idea, as in the book's table.
    pub readme: [&'static str; 3],
    /// The rows as they stood last.
    pub snapshot: &'static str,
}

pub type Rows = fn(&Path, Wanted, &mut dyn FnMut(&str)) -> Result<Vec<Row>, ExperimentError>;

/// Which rows of a paper are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Every row.
    All,
    /// Those that answer these headlines.
    Headlines(&'static [Claim]),
}

impl Wanted {
    /// Whether a row is wanted whose name is like this.
    pub fn has(self, like: impl Fn(&str) -> bool) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Headlines(claims) => claims.iter().any(|claim| like(claim.2)),
        }
    }
}

/// A headline for a stranger, in at most 54 characters; then item and row that answer it.
pub type Claim = (&'static str, &'static str, &'static str);

/// How our number came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// We put it in.
    PrintedInput,
    /// It follows from other printed numbers.
    Identity,
    /// These free numbers were chosen so that this many printed figures come out, this one among them.
    Fitted(&'static str, u32),
    /// These numbers were fitted to other rows, on another machine.
    CarriedOver(&'static str),
    /// Other printed figures were put in.
    Input,
    /// What the paper leaves open was chosen as the row names it, and nothing was fitted.
    Reading,
    /// Nothing of this row was used to get it.
    Predicted,
    NotPrinted,
}

impl Origin {
    pub fn word(self) -> &'static str {
        match self {
            Origin::PrintedInput => "printed input",
            Origin::Identity => "identity",
            Origin::Fitted(..) => "fitted",
            Origin::CarriedOver(..) => "carried over",
            Origin::Input => "input",
            Origin::Reading => "reading",
            Origin::Predicted => "predicted",
            Origin::NotPrinted => "not printed",
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let word = <&str>::deserialize(d)?;
        let known = ORIGINS.into_iter().find(|origin| origin.word() == word);
        known.ok_or_else(|| serde::de::Error::custom("an unknown origin"))
    }
}

/// Every origin once.
const ORIGINS: [Origin; 8] = [
    Origin::PrintedInput,
    Origin::Identity,
    Origin::Fitted("", 0),
    Origin::CarriedOver(""),
    Origin::Input,
    Origin::Reading,
    Origin::Predicted,
    Origin::NotPrinted,
];

/// A rule without any model that comes at least as near to the printed value as we do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Trivial {
    /// The rule.
    pub rule: &'static str,
    /// What it gives.
    pub value: f64,
    /// Its distance, as [`Row::distance_percent`].
    pub distance_percent: f64,
}

/// One printed figure and ours.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// How ours came about.
    #[schemars(with = "String", extend("enum" = ORIGINS.map(Origin::word)))]
    pub origin: Origin,
    /// For a fitted row, the free numbers and how many figures they were fitted to; for one that is carried over, where
    /// they were fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fitted: Option<String>,
    /// Ours less the paper's, in percent of the paper's; none if the paper prints no value, or zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance_percent: Option<f64>,
    /// The distance, up and down, that rounding of the printed digits alone allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounding_percent: Option<f64>,
    /// For a prediction or an identity: whether it is within rounding, or in the band that the paper states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<bool>,
    /// A trivial rule that does as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trivial: Option<Trivial>,
    /// How it was found, and why it differs.
    pub note: String,
    /// The headline that it answers.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    pub claim: Option<&'static str>,
}

impl Row {
    /// A row without a note. The printed value has the digits of its shortest form.
    pub fn new(
        item: impl Into<String>,
        row: impl Into<String>,
        printed: impl Into<Option<f64>>,
        ours: f64,
        unit: &'static str,
        origin: Origin,
    ) -> Row {
        let paper_value = printed.into();
        let fitted = match origin {
            Origin::Fitted(free, figures) => Some(format!("{free}, to {figures} figures")),
            Origin::CarriedOver(free) => Some(free.into()),
            _ => None,
        };
        let row = Row {
            paper: "",
            item: item.into(),
            row: row.into(),
            paper_value,
            our_value: ours,
            unit,
            origin,
            fitted,
            distance_percent: paper_value.and_then(|paper| distance(paper, ours)),
            rounding_percent: None,
            reached: None,
            trivial: None,
            note: String::new(),
            claim: None,
        };
        row.to(paper_value.map_or(1.0, digit))
    }

    /// The same with this unit of the last printed digit, where the shortest form has lost it.
    pub fn to(self, digit: f64) -> Row {
        let Some(paper) = self.paper_value else { return self };
        let half = digit / 2.0 * (1.0 + 1e-9);
        let rounding_percent = (paper != 0.0).then(|| half / paper.abs() * 100.0);
        Row { rounding_percent, ..self }.stated(paper - half..=paper + half)
    }

    /// The same with the band that the paper states.
    pub fn stated(self, band: RangeInclusive<f64>) -> Row {
        let judged = matches!(self.origin, Origin::Predicted | Origin::Identity) && self.paper_value.is_some();
        Row { reached: judged.then(|| band.contains(&self.our_value)), ..self }
    }

    /// The same with the value of a trivial rule, if that is as near to the printed value as ours.
    pub fn compared_with(self, rule: &'static str, value: f64) -> Row {
        let rival = self.paper_value.and_then(|paper| distance(paper, value));
        let near = rival.zip(self.distance_percent).filter(|(rival, ours)| rival.abs() <= ours.abs());
        Row { trivial: near.map(|(distance_percent, _)| Trivial { rule, value, distance_percent }), ..self }
    }

    pub fn note(self, note: impl Into<String>) -> Row {
        Row { note: note.into(), ..self }
    }

    /// The row in one line, as it stands in a snapshot.
    pub fn snapshot_line(&self) -> String {
        let paper = self.paper_value.map_or_else(|| "-".into(), |value| value.to_string());
        let reached = self.reached.map_or("-", |reached| if reached { "yes" } else { "no" });
        let (item, row, ours, origin) = (&self.item, &self.row, self.our_value, self.origin.word());
        format!("{item} | {row:?} | {paper} | {ours:.6} | {origin} | {} | {reached}", self.distance())
    }

    pub fn distance(&self) -> String {
        self.distance_percent.map_or_else(|| "-".into(), percent)
    }
}

/// A value with as many digits as a reader needs.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v != 0.0 && v < 0.1 => format!("{value:.6}"),
        v if v < 1.0 => format!("{value:.4}"),
        v if v < 1000.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// A signed percentage, with as many digits as it needs.
pub fn percent(value: f64) -> String {
    if value.abs() < 99.95 {
        format!("{value:+.1} %")
    } else {
        format!("{value:+.0} %")
    }
}

fn distance(paper: f64, value: f64) -> Option<f64> {
    (paper != 0.0).then(|| (value - paper) / paper.abs() * 100.0)
}

/// The unit of the last digit of a number's shortest form.
fn digit(value: f64) -> f64 {
    let decimals = value.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.1f64.powi(decimals as i32)
}

/// How many rows are of which origin, and how near the predictions are.
pub fn tally(rows: &[Row]) -> String {
    let count = |origin: Origin| rows.iter().filter(|row| row.origin.word() == origin.word()).count();
    let kinds = ORIGINS.map(|origin| (count(origin), origin.word()));
    let some: Vec<_> = kinds.iter().filter(|kind| kind.0 > 0).map(|(n, word)| format!("{n} {word}")).collect();
    format!("{} rows: {}; {}", rows.len(), some.join(", "), near(rows))
}

/// How many predictions are within 1, 5, 10 and 25 %.
pub fn near(rows: &[Row]) -> String {
    let predicted: Vec<_> =
        rows.iter().filter(|row| row.origin == Origin::Predicted).filter_map(|row| row.distance_percent).collect();
    let within = [1.0, 5.0, 10.0, 25.0]
        .map(|band| predicted.iter().filter(|distance| distance.abs() <= band).count().to_string());
    match predicted.len() {
        0 => "no predictions".into(),
        n => format!("of {n} predictions {} are within 1, 5, 10, 25 %", within.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_prediction_or_an_identity_within_the_printed_digits_is_reached() {
        let row = |paper: f64, ours, origin| Row::new("", "", paper, ours, "", origin);
        assert_eq!(row(77.5, 77.54, Origin::Predicted).reached, Some(true));
        assert_eq!(row(77.5, 77.56, Origin::Identity).reached, Some(false));
        assert_eq!(row(9.0, 9.3, Origin::Identity).to(0.01).reached, Some(false));
        assert_eq!(row(55.0, 58.8, Origin::Predicted).stated(55.0..=100.0).reached, Some(true));
        let fitted = [Origin::Fitted("one number", 1), Origin::CarriedOver("one number")];
        for origin in [Origin::PrintedInput, Origin::Input, Origin::Reading].into_iter().chain(fitted) {
            assert_eq!(row(77.5, 77.5, origin).reached, None);
        }
        assert_eq!(Row::new("", "", None, 1.0, "", Origin::Predicted).reached, None);
        let trivial = |value| row(10.0, 12.0, Origin::Predicted).compared_with("a constant", value).trivial.is_some();
        assert!(trivial(9.0) && !trivial(13.0));
    }
}
