//! Values of results as text, tables and sections.

use coldframe_core::Ps;
use coldframe_sheet::quantity::{human_count, human_seconds, human_size, human_time};

use crate::plot::escape;

/// Under a heading.
pub fn section(title: &str, body: &str) -> String {
    format!("<section><h2>{}</h2>{body}</section>\n", escape(title))
}

/// A section under a heading, folded until the reader opens it.
pub fn folded(title: &str, body: &str) -> String {
    format!("<details><summary><h2>{}</h2></summary>{body}</details>\n", escape(title))
}

/// A sentence of an answer: what stands between backticks is code.
pub fn prose(text: &str) -> String {
    let parts: Vec<String> = text.split('`').map(escape).collect();
    match parts.len() % 2 {
        0 => parts.concat(),
        _ => parts
            .iter()
            .enumerate()
            .map(|(i, part)| if i % 2 == 1 { format!("<code>{part}</code>") } else { part.clone() })
            .collect(),
    }
}

/// Sentences as a list; empty without any.
pub fn list<'a>(sentences: impl Iterator<Item = &'a String>) -> String {
    let items: String = sentences.map(|line| format!("<li>{}</li>", prose(line))).collect();
    if items.is_empty() {
        items
    } else {
        format!("<ul>{items}</ul>")
    }
}

/// The unit of the y axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// A plain number.
    Number,
}

impl Unit {
    /// The sign of the unit.
    pub fn sign(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Number => "",
        }
    }

    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Seconds => human_seconds(value),
            Unit::Number => short(digits(value)),
        }
    }
}

/// Rounded to three digits.
fn digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let unit = 10f64.powf(value.abs().log10().floor() - 2.0);
    (value / unit).round() * unit
}

/// A round number without needless digits.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if (1e-3..1e7).contains(&v) => format!("{}", (value * 1e6).round() / 1e6),
        _ => format!("{value:.0e}"),
    }
}

/// A number with three digits.
pub fn figure(value: f64) -> String {
    Unit::Number.show(value)
}

/// A small line below a heading.
pub fn note(text: &str) -> String {
    format!("<p class=\"soft\">{}</p>", prose(text))
}

/// Text; where there is none, a dash.
pub fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("-")
}

/// Picoseconds; where they are not known, a dash.
pub fn time(ps: impl Into<Option<u64>>) -> String {
    ps.into().map_or_else(|| "-".into(), |ps| human_time(Ps(ps)))
}

/// Bytes.
pub fn size(bytes: u64) -> String {
    human_size(bytes)
}

/// A whole number; where it is not known, a dash.
pub fn count(n: impl Into<Option<u64>>) -> String {
    n.into().map_or_else(|| "-".into(), human_count)
}

/// A row of a table: attributes, and its cells; the first is text, the others numbers.
pub type Row = (String, Vec<String>);

/// A table that becomes a list of cards on a narrow screen. A column of dashes says nothing, and is left out.
pub fn table(headings: &[&str], rows: &[Row]) -> String {
    let says = |i: &usize| *i == 0 || rows.iter().any(|(_, cells)| cells.get(*i).is_some_and(|cell| cell != "-"));
    let shown: Vec<usize> = (0..headings.len()).filter(says).collect();
    let headings: Vec<&str> = shown.iter().map(|i| headings[*i]).collect();
    let heads: String = headings.iter().map(|h| format!("<th>{}</th>", escape(h))).collect();
    let cell = |(head, text): (&&str, &String)| format!("<td data-of=\"{}\">{}</td>", escape(head), escape(text));
    let row = |(attributes, cells): &Row| {
        let cells = shown.iter().filter_map(|i| cells.get(*i));
        format!("<tr{attributes}>{}</tr>", headings.iter().zip(cells).map(cell).collect::<String>())
    };
    let rows: String = rows.iter().map(row).collect();
    format!("<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")
}
