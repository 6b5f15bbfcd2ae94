//! The commands to paste.

use std::path::Path;

use coldframe_answer::run::program::is_root;
use coldframe_answer::{Answer, By, Method};
use coldframe_sheet::quantity::ram_size;

use super::recommendation::kernel_options;
use crate::text::{command, width};

/// Lines for the command.
const COMMAND: usize = 2;

/// The options of a run with the recommended size; `None`: there is none, it is not paged, or the process runs already.
pub(crate) fn how_to_run(answer: &Answer) -> Option<String> {
    let again = answer.watched().is_none_or(|watched| watched.process.is_none()) && answer.by != Some(By::Plain);
    let ram = answer.ram_bytes.filter(|_| again)?;
    Some(format!("--ram {}{}", ram_size(ram), pager_options(answer, ram)))
}

/// What stands before a line and before its program, so that the user who reads it can paste it: only root makes swap, and
/// the program stays the user's.
pub(crate) fn as_root(how: &str) -> (&'static str, &'static str) {
    match how.contains("--swap") && !is_root() {
        true => ("sudo ", "sudo -u $USER "),
        false => ("", ""),
    }
}

/// `--by kernel` with its swap, if the kernel pages the recommended run.
fn pager_options(answer: &Answer, ram: u64) -> String {
    let swap = answer.watched().and_then(|watched| watched.swap.as_ref());
    let swap = swap.map_or(String::new(), |swap| format!(" --swap {swap}"));
    match answer.run(By::Kernel, ram).filter(|_| answer.by == Some(By::Kernel)) {
        Some(run) => format!(" {}", kernel_options(run)),
        None if answer.method() == Method::ReferencedBits => format!(" --by kernel{swap}"),
        None => String::new(),
    }
}

/// The commands to paste: a run with the advised RAM, and the page.
pub(super) fn commands(answer: &Answer, report: Option<&Path>) -> String {
    let mut out = String::new();
    if let Some(how) = how_to_run(answer) {
        let (sudo, user) = as_root(&how);
        let how = format!("{sudo}coldframe run {how} -- {user}");
        let line = |program: &str| command(format!("{how}{program}").split_whitespace(), 0, 2) + "\n";
        let whole = line(answer.command.as_deref().unwrap_or(&answer.program));
        let fits = |line: &str| line.chars().count() <= width();
        out += &match whole.lines().count() <= COMMAND && whole.lines().all(fits) {
            true => whole,
            false => format!("Run it so: put `{}` before it.\n", how.trim_end()),
        };
    }
    if let (Some(ram), true) = (answer.ram_bytes, out.is_empty()) {
        // Of a process that runs: for its unit or container.
        let mib = answer.in_all(ram).div_ceil(1 << 20);
        out += &format!("systemd: MemoryHigh={mib}M; compose: mem_limit: {mib}m; Kubernetes: memory: {mib}Mi\n");
    }
    out + &report.map_or(String::new(), |page| format!("xdg-open {}\n", page.display()))
}
