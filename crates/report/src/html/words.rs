//! Values of results as text, tables and sections.

use coldframe_core::{Bytes, Ps};
use coldframe_device::quantity::show_bytes;

use crate::advise::cost::Range;
use crate::plot::escape;
use crate::table::{human_count, human_time};

/// Under a heading.
pub fn section(title: &str, body: &str) -> String {
    format!("<section><h2>{}</h2>{body}</section>\n", escape(title))
}

/// A small line below a heading.
pub fn note(text: &str) -> String {
    format!("<p class=\"soft\">{}</p>", escape(text))
}

/// Text; where there is none, a dash.
pub fn text(of: &Option<String>) -> &str {
    of.as_deref().unwrap_or("-")
}

/// Picoseconds; where they are not known, a dash.
pub fn time(ps: impl Into<Option<u64>>) -> String {
    ps.into().map_or_else(|| "-".into(), |ps| human_time(Ps(ps)))
}

/// Bytes.
pub fn size(bytes: u64) -> String {
    show_bytes(Bytes(bytes))
}

/// A whole number; where it is not known, a dash.
pub fn count(n: impl Into<Option<u64>>) -> String {
    n.into().map_or_else(|| "-".into(), human_count)
}

/// A number as a script reads it.
pub fn plain(n: Option<u64>) -> String {
    n.map_or_else(|| "null".into(), |n| n.to_string())
}

/// Picojoules.
pub fn energy(pj: u64) -> String {
    match pj {
        0..=999_999_999 => format!("{:.3} uJ", pj as f64 / 1e6),
        1_000_000_000_000.. => format!("{:.3} J", pj as f64 / 1e12),
        _ => format!("{:.3} mJ", pj as f64 / 1e9),
    }
}

/// Both ends of a range; where it is not known, a dash.
pub fn range(range: Option<Range>, scale: f64, unit: &str) -> String {
    range.map_or_else(|| "-".into(), |r| format!("{:.3} to {:.3} {unit}", r.low * scale, r.high * scale))
}

/// A row of a table: attributes, and its cells; the first is text, the others numbers.
pub type Row = (String, Vec<String>);

/// A table that becomes a list of cards on a narrow screen.
pub fn table(headings: &[&str], rows: &[Row]) -> String {
    let heads: String = headings.iter().map(|h| format!("<th>{}</th>", escape(h))).collect();
    let cell = |(head, text): (&&str, &String)| format!("<td data-of=\"{}\">{}</td>", escape(head), escape(text));
    let row = |(attributes, cells): &Row| {
        format!("<tr{attributes}>{}</tr>", headings.iter().zip(cells).map(cell).collect::<String>())
    };
    let rows: String = rows.iter().map(row).collect();
    format!("<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")
}
