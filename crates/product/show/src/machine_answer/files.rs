//! The files that a program maps, in words.

use coldframe_answer::{Answer, File, Runs};
use coldframe_sheet::quantity::{human_size, ram_size};

use super::recommendation::time_of;

/// The files that it maps, if they matter, and what less page cache costs.
pub(crate) fn files(answer: &Answer) -> Option<String> {
    let not_paged =
        answer.not_paged.as_ref().filter(|not_paged| not_paged.matter(answer.in_all(answer.needed_bytes)))?;
    let file = |file: &File| {
        let name = file.path.rsplit('/').next().unwrap_or(&file.path);
        format!("{name} {} of {}", human_size(file.referenced_bytes), human_size(file.mapped_bytes))
    };
    let named = not_paged
        .files
        .iter()
        .filter(|file| SMALL * file.bytes >= not_paged.code_bytes + not_paged.files_bytes)
        .map(file);
    let (named, referenced) = (named.collect::<Vec<_>>().join(", "), human_size(not_paged.referenced_bytes));
    let run = |run: &Runs| format!("{} {}", ram_size(run.ram_bytes.unwrap_or(0)), time_of(run));
    let runs = not_paged.runs.iter().map(run).collect::<Vec<_>>().join(", ");
    let runs = if runs.is_empty() { runs } else { format!(" RAM for all by the kernel, files read first: {runs}.") };
    let why = not_paged.no_runs.as_ref().map_or(String::new(), |why| format!(" Less page cache was not tried: {why}."));
    Some(format!("Mapped files: {referenced} referenced: {named}.{runs}{why}"))
}

/// The least part of all files that is worth its name.
const SMALL: u64 = 5;
