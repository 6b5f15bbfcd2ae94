//! What a recording shows of the use of memory: heat, working set, who faults, how long pages are idle, and other load.

use coldframe_answer::{Answer, MemoryUse};
use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::text::{paragraph, width};

/// What a recording shows besides.
pub(crate) fn memory_use(answer: &Answer) -> Option<&MemoryUse> {
    answer.recorded()?.memory_use.as_ref()
}

/// A line of heat by address, and one of the working set by time.
pub(super) fn pictures(memory_use: &MemoryUse) -> String {
    let columns = width() - 8;
    let highest = |counts: &[f64]| counts.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let heat = squeezed(&memory_use.heat, columns);
    let full = (1.0 + highest(&heat)).ln();
    let digits: String = heat.iter().map(|n| format!("{:.0}", 9.0 * (1.0 + n).ln() / full)).collect();
    let used: Vec<f64> = memory_use.working_set_bytes.iter().map(|bytes| *bytes as f64).collect();
    let used = squeezed(&used, columns);
    let block = |n: &f64| BLOCKS[((n / highest(&used) * 7.0).round() as usize).min(7)];
    let spark: String = used.iter().map(block).collect();
    format!("  heat  {digits}\n  use   {spark}\n")
}

/// Eighths of a block.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// At most that many means of neighbours.
fn squeezed(values: &[f64], columns: usize) -> Vec<f64> {
    let columns = columns.min(values.len());
    let part = |i: usize| &values[i * values.len() / columns..(i + 1) * values.len() / columns];
    (0..columns).map(|i| part(i).iter().sum::<f64>() / part(i).len() as f64).collect()
}

/// The mappings that fault most, and who made them.
pub(crate) fn who(memory_use: &MemoryUse) -> Option<String> {
    // What would be 0 % says nothing.
    let named = memory_use.who.iter().enumerate().filter(|(i, mapping)| *i == 0 || mapping.faults_percent >= 0.5);
    let mut mappings = named.map(|(i, mapping)| {
        let relation = if i == 0 { "of its faults are in a mapping of" } else { "in" };
        let by = mapping.by.as_ref().map_or(String::new(), |by| format!(" made by {by}"));
        format!("{:.0} % {relation} {}{by}", mapping.faults_percent, human_size(mapping.bytes))
    });
    let first = mappings.next()?;
    Some(format!("Who: {}.", [first].into_iter().chain(mappings).collect::<Vec<_>>().join(", ")))
}

/// Who faults, what is idle, if there is room for it, and what else the machine did.
pub(super) fn remarks(memory_use: &MemoryUse, room: bool) -> String {
    let mut out = String::new();
    who(memory_use).iter().for_each(|who| out += &paragraph(who, 0));
    if let Some(idle) = memory_use.idle.as_ref().filter(|_| room) {
        let [half, quarter] = [idle.p50_seconds, idle.p75_seconds].map(human_seconds);
        let words = format!("Idle time: 50 % of pages are untouched for {half} or longer, 25 % for {quarter}.");
        out += &paragraph(&words, 0);
    }
    if let Some(noise) = &memory_use.noise {
        out += &paragraph(&load(noise.others, noise.processors), 0);
    }
    out
}

/// What other programs used of the processors meanwhile.
fn load(others: f64, processors: u32) -> String {
    let used = format!("{others:.1} of {processors} processors");
    match 100.0 * others / f64::from(processors.max(1)) {
        _ if others < UNSEEN => "Other load: none.".into(),
        percent if percent < QUIET => format!("Other load: {used}."),
        percent => format!("Other load: {used}; times may be up to {percent:.0} % too long."),
    }
}

/// Processors that are printed as 0.0.
const UNSEEN: f64 = 0.05;
/// Other programs' part of the processors that hardly changes a time, in percent. A guess.
const QUIET: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_load_is_none_or_a_number_and_a_large_one_says_what_it_does_to_times() {
        assert_eq!(load(0.04, 2), "Other load: none.");
        assert_eq!(load(0.06, 2), "Other load: 0.1 of 2 processors.");
        let large = "Other load: 0.5 of 2 processors; times may be up to 25 % too long.";
        assert_eq!(load(0.5, 2), large);
    }
}
