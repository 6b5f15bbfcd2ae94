//! The processes of a recorded command: a table of the processes that matter, and one line for the shells that only
//! start them.

use std::collections::BTreeMap;
use std::path::Path;

use coldframe_sheet::quantity::{human_count, human_size};
use coldframe_store::ProcessFacts;

use crate::text::width;

/// Rows of the table; the largest ones are shown.
const ROWS: usize = 6;

/// The processes of a recorded command in words; empty if there is nothing to report.
pub fn words(group: &[ProcessFacts]) -> String {
    let (left, mut matter): (Vec<_>, Vec<_>) = group.iter().partition(|process| process.left_out);
    matter.sort_by_key(|process| std::cmp::Reverse(process.managed_bytes));
    let mut out = String::new();
    if matter.len() > 1 {
        out += &format!("{} processes, which share --ram:\n\n{}\n", matter.len(), table(&matter));
    }
    if !left.is_empty() {
        out += &left_out(&left);
    }
    out
}

fn table(matter: &[&ProcessFacts]) -> String {
    let mut out = format!("  {:>8}  {:>9}  {:>8}  {:>7}  process\n", "heap", "the rest", "time", "pid");
    for process in matter.iter().take(ROWS) {
        let row = format!(
            "  {:>8}  {:>9}  {:>8}  {:>7}  {}",
            human_size(process.managed_bytes),
            human_size(process.not_paged_bytes),
            format!("{:.2} s", process.seconds),
            process.process,
            process.command,
        );
        out += &(cut(&row, width()) + "\n");
    }
    if matter.len() > ROWS {
        out += &format!("  and {} smaller ones\n", human_count((matter.len() - ROWS) as u64));
    }
    out
}

/// Small processes by their program's name: their number, and the largest memory of one of them; the largest first.
fn left_out(left: &[&ProcessFacts]) -> String {
    let mut names: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for process in left {
        let (count, largest) = names.entry(name(&process.command)).or_default();
        (*count, *largest) = (*count + 1, (*largest).max(process.managed_bytes));
    }
    let words = |(name, (count, largest)): (&String, &(u64, u64))| match count {
        1 => format!("{name} ({})", human_size(*largest)),
        count => format!("{} {name} ({} at most)", human_count(*count), human_size(*largest)),
    };
    let mut names: Vec<_> = names.iter().collect();
    names.sort_by_key(|(_, (_, largest))| std::cmp::Reverse(*largest));
    let programs: Vec<String> = names.into_iter().map(words).collect();
    cut(&format!("Left out, too small to matter: {}.", programs.join(", ")), width()) + "\n"
}

/// The program's name in a command line.
fn name(command: &str) -> String {
    let program = command.split(' ').next().unwrap_or_default();
    let name = Path::new(program).file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "a process without a name".into())
}

fn cut(line: &str, width: usize) -> String {
    match line.chars().count() > width {
        true => line.chars().take(width - 3).collect::<String>() + "...",
        false => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(command: &str, mib: u64, left_out: bool) -> ProcessFacts {
        ProcessFacts { command: command.into(), managed_bytes: mib << 20, left_out, ..ProcessFacts::default() }
    }

    #[test]
    fn one_process_that_matters_needs_no_table_and_its_shell_is_named() {
        assert_eq!(words(&[process("python3 m.py", 80, false)]), "");
        let shell = process("/bin/bash /usr/bin/python3 m.py", 1, true);
        let text = words(&[shell.clone(), process("python3 m.py", 80, false)]);
        assert_eq!(text, "Left out, too small to matter: bash (1 MiB).\n");
        let text = words(&[shell.clone(), shell, process("python3 m.py", 80, false)]);
        assert_eq!(text, "Left out, too small to matter: 2 bash (1 MiB at most).\n");
    }

    #[test]
    fn a_group_is_a_table_with_the_largest_first_in_80_columns() {
        let long = format!("sort {}", "x".repeat(200));
        let mut group = vec![process("sort a", 9, false), process(&long, 20, false)];
        let text = words(&group);
        assert!(text.starts_with("2 processes, which share --ram:\n\n"), "{text}");
        assert!(text.find("20 MiB") < text.find("9 MiB"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        group.extend((0..10).map(|_| process("cc1", 5, false)));
        assert!(words(&group).contains("and 6 smaller ones"));
    }
}
