//! Values of the JSON as text, tables and sections.

use coldframe_core::{Bytes, Ps};
use coldframe_device::quantity::show_bytes;
use serde_json::Value;

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

/// Text as it is, anything else as JSON.
pub fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

/// Picoseconds.
pub fn time(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".into(), |ps| human_time(Ps(ps)))
}

/// Bytes.
pub fn size(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".into(), |n| show_bytes(Bytes(n)))
}

/// A whole number.
pub fn count(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".into(), human_count)
}

/// Picojoules.
pub fn energy(pj: u64) -> String {
    match pj {
        0..=999_999_999 => format!("{:.3} uJ", pj as f64 / 1e6),
        1_000_000_000_000.. => format!("{:.3} J", pj as f64 / 1e12),
        _ => format!("{:.3} mJ", pj as f64 / 1e9),
    }
}

/// Both ends of a range.
pub fn range(value: &Value, scale: f64, unit: &str) -> String {
    let (Some(low), Some(high)) = (value["low"].as_f64(), value["high"].as_f64()) else { return "-".into() };
    format!("{:.3} to {:.3} {unit}", low * scale, high * scale)
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
