//! The processes of a recorded command.

use coldframe_sheet::quantity::{human_seconds, human_size};
use coldframe_store::ProcessFacts;

use crate::html::words::{note, table, Row};

/// Processes shown; the largest ones.
const SHOWN: usize = 12;

/// The table; empty for a single process.
pub fn processes(group: &[ProcessFacts]) -> String {
    let mut matter: Vec<&ProcessFacts> = group.iter().filter(|process| !process.left_out).collect();
    if matter.len() < 2 {
        return String::new();
    }
    matter.sort_by_key(|process| std::cmp::Reverse(process.managed_bytes));
    let row = |process: &&ProcessFacts| -> Row {
        let sizes = [process.managed_bytes, process.not_paged_bytes].map(human_size);
        let cells = [process.command.clone()].into_iter().chain(sizes);
        (String::new(), cells.chain([human_seconds(process.seconds), process.process.to_string()]).collect())
    };
    let rows: Vec<Row> = matter.iter().take(SHOWN).map(row).collect();
    let more = match (matter.len() - rows.len(), group.len() - matter.len()) {
        (0, 0) => String::new(),
        (smaller, left) => note(&format!("Not shown: {smaller} smaller ones, and {left} too small to matter.")),
    };
    let caption = note(&format!("{} processes, which share --ram.", matter.len()));
    caption + &table(&["process", "heap", "the rest", "time", "pid"], &rows) + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_a_table_and_a_single_process_is_none() {
        let process = |command: &str, mib: u64| ProcessFacts {
            command: command.into(),
            managed_bytes: mib << 20,
            ..ProcessFacts::default()
        };
        let shell = ProcessFacts { left_out: true, ..process("sh", 1) };
        assert_eq!(processes(&[shell.clone(), process("cc1 a.c", 80)]), "");
        let text = processes(&[shell, process("cc1 a.c", 20), process("cc1 <b>", 80)]);
        assert!(text.find("cc1 &lt;b&gt;").unwrap() < text.find("cc1 a.c").unwrap(), "{text}");
        assert!(text.contains("2 processes") && text.contains("1 too small"), "{text}");
    }
}
