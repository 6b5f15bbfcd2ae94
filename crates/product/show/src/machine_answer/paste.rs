//! The commands to paste.

use std::path::Path;

use coldframe_answer::{Answer, By, Method};
use coldframe_sheet::quantity::ram_size;

use super::recommendation::kernel_options;
use crate::text::{command, width};

/// Lines for the command.
const COMMAND: usize = 2;

/// How the recommended size is run.
pub(crate) struct Paste {
    /// `--ram 24MiB`, with who pages it and the swap that is made.
    pub(crate) options: String,
    /// Before the line: `sudo`, if it makes swap and another user than root has the answer.
    pub(crate) sudo: &'static str,
    /// Before its program, which stays that user's.
    pub(crate) user: &'static str,
}

impl Paste {
    /// `None`: no size is recommended, it is not paged, or the process runs already.
    pub(crate) fn new(answer: &Answer) -> Option<Paste> {
        let again = answer.watched().is_none_or(|watched| watched.process.is_none()) && answer.by != Some(By::Plain);
        let ram = answer.ram_bytes.filter(|_| again)?;
        let swap = match answer.run(By::Kernel, ram).filter(|_| answer.by == Some(By::Kernel)) {
            Some(run) => Some(run.swap.as_deref()),
            None if answer.method() == Method::ReferencedBits => Some(answer.watched().and_then(|w| w.swap.as_deref())),
            None => None,
        };
        let kernel = swap.map_or(String::new(), |swap| format!(" {}", kernel_options(swap)));
        let (sudo, user) = match swap.flatten().is_some() && !answer.as_root {
            true => ("sudo ", "sudo -u $USER "),
            false => ("", ""),
        };
        Some(Paste { options: format!("--ram {}{kernel}", ram_size(ram)), sudo, user })
    }
}

/// The commands to paste: a run with the advised RAM, and the page.
pub(super) fn commands(answer: &Answer, report: Option<&Path>) -> String {
    let mut out = String::new();
    if let Some(Paste { options, sudo, user }) = Paste::new(answer) {
        let how = format!("{sudo}coldframe run {options} -- {user}");
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
        let mib = ram.div_ceil(1 << 20);
        out += &format!("systemd: MemoryHigh={mib}M; compose: mem_limit: {mib}m; Kubernetes: memory: {mib}Mi\n");
    }
    out + &report.map_or(String::new(), |page| format!("xdg-open {}\n", page.display()))
}

#[cfg(test)]
mod tests {
    use coldframe_answer::{Common, Watched};

    use super::*;

    #[test]
    fn a_line_that_makes_swap_has_sudo_unless_root_has_the_answer() {
        let paste = |as_root, swap: Option<&str>| {
            let common = Common { ram_bytes: Some(8 << 20), as_root, ..Common::default() };
            let answer = Answer::ReferencedBits(Watched { common, swap: swap.map(String::from), ..Watched::default() });
            let Paste { options, sudo, user } = Paste::new(&answer).unwrap();
            (options, sudo, user)
        };
        let line = "--ram 8MiB --by kernel --swap zram".to_string();
        assert_eq!(paste(false, Some("zram")), (line.clone(), "sudo ", "sudo -u $USER "));
        assert_eq!(paste(true, Some("zram")), (line, "", ""));
        assert_eq!(paste(false, None), ("--ram 8MiB --by kernel".into(), "", ""));
    }
}
