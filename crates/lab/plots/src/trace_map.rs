//! A map of touched memory for a terminal: address by time.

use coldframe_sheet::quantity::human_count;
use coldframe_store::heat::{Heat, PAGE};

/// Its size in one line.
pub fn summary(heat: &Heat) -> String {
    let largest = heat.working_set.iter().max().copied().unwrap_or(0);
    format!(
        "{} pages of {PAGE} bytes touched, at most {} in one column, {} phases",
        human_count(heat.pages),
        human_count(largest),
        heat.phases.len()
    )
}

/// 0 to 255 by the logarithm of the count, since a few pages have nearly all references.
fn bright(count: u64, most: u64) -> u8 {
    let part = ((count + 1) as f64).ln() / ((most + 1) as f64).ln().max(f64::MIN_POSITIVE);
    match count {
        0 => 0,
        _ => 60 + (195.0 * part) as u8,
    }
}

/// The map, drawn with characters.
pub fn terminal(heat: &Heat) -> String {
    const SHADES: [char; 5] = [' ', '.', ':', '+', '#'];
    let totals: Vec<u64> = heat.reads.iter().zip(&heat.writes).map(|(reads, writes)| reads + writes).collect();
    let most = totals.iter().max().copied().unwrap_or(0);
    let mut text = String::new();
    for row in (0..heat.rows).rev() {
        let cells = &totals[row * heat.columns..][..heat.columns];
        let shade = |count: &u64| SHADES[usize::from(bright(*count, most)).div_ceil(64).min(4)];
        text += &format!("{:>16x} {}\n", heat.addresses[row], cells.iter().map(shade).collect::<String>());
    }
    let mark = |column| if heat.phases.contains(&column) { '|' } else { '-' };
    text += &format!("{:>16} {}\n", "phases", (0..heat.columns).map(mark).collect::<String>());
    text + &format!("{}\n", summary(heat))
}
