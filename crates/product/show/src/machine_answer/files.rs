//! The files that a program maps, in words.

use coldframe_answer::{Answer, File};
use coldframe_sheet::quantity::human_size;

/// The files that it maps, if they matter.
pub(crate) fn files(answer: &Answer) -> Option<String> {
    let not_paged = answer.not_paged.as_ref().filter(|not_paged| not_paged.matter(answer.needed_bytes))?;
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
    Some(format!("Mapped files: {referenced} referenced: {named}."))
}

/// The least part of all files that is worth its name.
const SMALL: u64 = 5;
