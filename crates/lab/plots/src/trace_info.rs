//! What a trace holds, in words.

use coldframe_experiment::info::Info;
use coldframe_sheet::quantity::human_count;
use coldframe_show::text::{page, wrap};
use coldframe_store::heat::Heat;

/// What `trace info` says of a trace of references.
pub fn words(info: &Info) -> String {
    let Info { provenance: trace, rows, bytes, sha256, heat, hottest, .. } = info;
    let mut text = String::new();
    let columns = page().unwrap_or(usize::MAX);
    let mut line = |key: &str, value: &str| text += &lines(key, value, columns);
    line("trace", &info.path.display().to_string());
    line("command", trace.command.as_deref().unwrap_or("not known"));
    line("recorder", &trace.recorder);
    line("fidelity", trace.fidelity.name());
    if let Some(page) = trace.page_size {
        line("reduced to", &format!("pages of {page} bytes"));
    }
    line("references", &human_count(trace.references));
    let split = [("  fetches", trace.instructions), ("  reads", trace.reads), ("  writes", trace.writes)];
    split.iter().for_each(|(key, count)| line(key, &human_count(*count)));
    line("footprint", &format!("{} KiB in pages of 1 KiB", human_count(trace.pages_1KiB)));
    let most = heat.working_set.iter().max().copied().unwrap_or(0);
    let drawn = spark(&heat.working_set);
    line("working set", &drawn);
    line("", &format!("up to {} pages of 4 KiB in 1/{} of the trace", human_count(most), heat.columns));
    line("phases", &phases(heat));
    line("", &format!("{} begin, each where most pages are new", heat.phases.len()));
    // An access that crosses pages counts as a reference to each of them.
    let all: u64 = heat.counts.iter().map(|(_, references)| references).sum();
    for h in hottest {
        let share = 100.0 * h.references as f64 / all.max(1) as f64;
        let name = if h.name.is_empty() { "no named mapping" } else { &h.name };
        let pages = human_count(h.pages);
        line("hottest", &format!("{share:>5.1} % in {name}, {pages} pages of 4 KiB, most at {:#x}", h.address));
    }
    line("rows", &human_count(*rows));
    let each = *bytes as f64 / trace.references.max(1) as f64;
    line("size", &format!("{} bytes, {each:.2} a reference", human_count(*bytes)));
    for task in &trace.tasks {
        line("task", &format!("{}: {}", task.id, task.name));
    }
    for mapping in &trace.mappings {
        line("mapping", &format!("{:#x}-{:#x} {} {}", mapping.start, mapping.end, mapping.protection, mapping.name));
    }
    for note in &trace.notes {
        line("note", note);
    }
    line("sha256", sha256);
    text
}

/// Columns of a key.
const KEY: usize = 14;

/// A key and its value. On a narrow page the value continues on the next line.
fn lines(key: &str, value: &str, width: usize) -> String {
    wrap(&format!("{key:<KEY$}"), value, KEY, width).join("\n") + "\n"
}

/// The notes of a trace, a line for each.
pub fn notes(notes: &[String]) -> String {
    let columns = page().unwrap_or(usize::MAX);
    notes.iter().map(|note| lines("note", note, columns)).collect()
}

/// Marks the beginnings of phases below the bars of the working set.
fn phases(heat: &Heat) -> String {
    (0..heat.columns).map(|column| if heat.phases.contains(&column) { '|' } else { '-' }).collect()
}

/// Counts as bars of eight heights.
fn spark(counts: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().max().copied().unwrap_or(0).max(1);
    counts.iter().map(|count| BARS[(count * 7).div_ceil(most) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_goes_on_below_itself_and_keeps_its_blanks() {
        assert_eq!(lines("rows", "  1.5 % of all", 80), "rows            1.5 % of all\n");
        let text = lines("hottest", "92.2 % in /usr/lib/libbz2.so, 6 pages of 4 KiB", 40);
        assert_eq!(
            text,
            "hottest       92.2 % in\n              /usr/lib/libbz2.so, 6\n              pages of 4 KiB\n"
        );
    }
}
