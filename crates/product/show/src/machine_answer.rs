//! The answer as text: at most 18 lines of 80 columns, of which the last two are commands to paste.

use std::path::Path;

use coldframe_answer::Answer;

use crate::paste::page;
use crate::paste::run::recommended as recommended_run;
use crate::paste::settings::hard;
use crate::text::paragraph;

pub(crate) mod files;
pub(crate) mod memory_use;
mod need;
mod process;
mod recommendation;
pub(crate) mod sizes;

use files::files;
use memory_use::{memory_use, pictures, remarks};
use need::needs;
use recommendation::{otherwise, recommended};
use sizes::{shown, table, thrashes, with_given_ram};

/// The most sizes in the table, and those that it has at least if there are as many: all, the advised one, a half, a
/// quarter.
const ROWS: usize = 6;
const ROWS_MIN: usize = 4;
/// Lines of the whole answer.
const LINES: usize = 18;

/// The whole answer. `report`: the page, if there is one; `more`: lines between the answer and its commands. If other
/// lines are long, the table has fewer sizes; then what the answer rests on, and how long memory rests are left out:
/// the page has them.
pub fn words(answer: &Answer, report: Option<&Path>, more: &str) -> String {
    let running = answer.watched().and_then(|watched| Some((watched, watched.since_start.as_ref()?)));
    if let Some((watched, since_start)) = running {
        return process::words(answer, watched, since_start, report) + more;
    }
    let forms = (0..=SPARE).rev().flat_map(|spare| (ROWS_MIN..=ROWS).rev().map(move |rows| (rows, spare)));
    let forms = forms.chain((2..ROWS_MIN).rev().map(|rows| (rows, 0)));
    let (mut text, commands) = (String::new(), commands(answer, report));
    for (rows, spare) in forms {
        text = with(answer, rows, spare);
        if text.lines().count() + more.lines().count() + commands.lines().count() <= LINES {
            break;
        }
    }
    text + more + &commands
}

/// The lines to paste: a run with the recommended RAM, or limits where it is not paged, and the page.
fn commands(answer: &Answer, report: Option<&Path>) -> String {
    let run = recommended_run(answer);
    let limits = answer.ram_bytes.filter(|_| run.is_empty()).map_or(String::new(), hard);
    run + &limits + &page(report)
}

/// Sentences that can be left out.
const SPARE: usize = 2;

/// The answer with at most this many sizes, and this many of the sentences that can be left out.
fn with(answer: &Answer, rows: usize, spare: usize) -> String {
    let sizes = shown(answer, rows);
    let mut out = filled(&(needs(answer) + &with_given_ram(answer)));
    out += &memory_use(answer).map_or(String::new(), pictures);
    out += &table(answer, &sizes);
    out += &filled(&thrashes(answer));
    out += &filled(&recommended(answer));
    out += &otherwise(answer);
    out += &files(answer).map_or(String::new(), |files| filled(&files));
    out += &memory_use(answer).map_or(String::new(), |memory_use| remarks(memory_use, spare >= 1));
    if spare >= SPARE && !answer.how_sure.is_empty() {
        // The most important ones; the page has all.
        out +=
            &filled(&format!("How sure: {}.", answer.how_sure.iter().take(3).cloned().collect::<Vec<_>>().join(". ")));
    }
    out
}

fn filled(text: &str) -> String {
    paragraph(text, 0)
}

#[cfg(test)]
mod tests {
    use coldframe_answer::{Common, NotPaged, Watched};

    use super::*;

    #[test]
    fn what_is_not_paged_is_named_by_its_large_kinds() {
        let mib = 1 << 20;
        let all: NotPaged = serde_json::from_value(serde_json::json!({ "code_bytes": 2 * mib, "files_bytes": 30 * mib,
            "files": [{ "path": "/data/model.bin", "bytes": 29 * mib, "mapped_bytes": 64 * mib,
                "referenced_bytes": 28 * mib }],
            "referenced_bytes": 29 * mib, "shared_bytes": 8 * mib, "stacks_bytes": 4096,
            "other_bytes": 0 }))
        .unwrap();
        assert_eq!(need::kinds(&all), " (mapped files 30 MiB; shared memory 8 MiB)");
        let common = Common { not_paged: Some(all), ..Common::default() };
        let answer = Answer::ReferencedBits(Watched { common, ..Watched::default() });
        let files = files(&answer).unwrap();
        assert_eq!(files, "Mapped files: 29 MiB referenced: model.bin 28 MiB of 64 MiB.");
    }
}
