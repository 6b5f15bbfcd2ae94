//! How a program is run in the size of an answer.

use coldframe_answer::{Answer, By, LimitAnswer, Method, Runs};
use coldframe_sheet::quantity::ram_size;

use super::{quoted, rights, words};
use crate::text::{command, width};

/// Lines for the command.
const COMMAND: usize = 2;

/// A run in so much RAM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PasteRun {
    /// `sudo coldframe run --ram 24MiB --by kernel -- sudo -u $USER`: what stands before the program.
    pub(crate) before: String,
    /// The program's words, as a shell reads them.
    words: Vec<String>,
}

impl PasteRun {
    /// The recommended size. `None`: there is none, it is not paged, or the process runs already.
    pub(crate) fn new(answer: &Answer) -> Option<PasteRun> {
        let again = answer.watched().is_none_or(|watched| watched.process.is_none()) && answer.by != Some(By::Plain);
        let ram = answer.ram_bytes.filter(|_| again)?;
        let swap = match answer.run(By::Kernel, ram).filter(|_| answer.by == Some(By::Kernel)) {
            Some(run) => Some(run.swap.as_deref()),
            None if answer.method() == Method::ReferencedBits => Some(answer.watched().and_then(|w| w.swap.as_deref())),
            None => None,
        };
        let kernel = swap.map_or(String::new(), |swap| format!(" {}", kernel_options(swap)));
        let (sudo, user) = rights(answer.asker, swap.is_some(), swap.flatten().is_some());
        let before = format!("{sudo}coldframe run --ram {}{kernel} -- {user}", ram_size(ram)).trim_end().into();
        Some(PasteRun { before, words: words(answer.command.as_deref().unwrap_or(&answer.program)) })
    }

    /// In less than the recommended limit.
    pub(crate) fn less(answer: &LimitAnswer, less: &Runs) -> PasteRun {
        let (sudo, user) = rights(answer.asker, less.by == By::Kernel, less.by == By::Kernel && less.swap.is_some());
        let before = format!("{sudo}coldframe run {} -- {user}", run_options(less)).trim_end().into();
        PasteRun { before, words: words(&answer.command) }
    }

    /// All of it, for the page.
    pub(crate) fn whole(&self) -> String {
        format!("{} {}", self.before, self.words.join(" "))
    }

    /// Both in lines that a shell reads as one; `None`: they are longer than so many, or wider than the page.
    pub(crate) fn lines(&self, most: usize) -> Option<String> {
        let all = self.before.split(' ').chain(self.words.iter().map(String::as_str));
        let text = command(all, 0, 2) + "\n";
        let fits = |line: &str| line.chars().count() <= width();
        (text.lines().count() <= most && text.lines().all(fits)).then_some(text)
    }
}

/// The recommended run.
pub(crate) fn recommended(answer: &Answer) -> String {
    let Some(run) = PasteRun::new(answer) else { return String::new() };
    run.lines(COMMAND).unwrap_or_else(|| format!("Run it so: put `{}` before it.\n", run.before))
}

/// The run in less than the recommended limit.
pub(crate) fn in_less(answer: &LimitAnswer, less: &Runs) -> String {
    let run = PasteRun::less(answer, less);
    run.lines(1).unwrap_or_else(|| format!("In less, put this before it: {}\n", run.before))
}

/// `--by kernel`, and the swap that is made.
pub(crate) fn kernel_options(swap: Option<&str>) -> String {
    swap.map_or("--by kernel".into(), |swap| format!("--by kernel --swap {}", quoted(swap)))
}

/// The options of `coldframe run` for runs in this limit.
fn run_options(runs: &Runs) -> String {
    let ram = ram_size(runs.ram_bytes.unwrap_or(0));
    match (runs.by, runs.swap.as_deref()) {
        (By::Kernel, None) => format!("--ram {ram} --by kernel"),
        (By::Kernel, Some(swap)) => format!("--ram {ram} --swap {}", quoted(swap)),
        _ => format!("--ram {ram}"),
    }
}

#[cfg(test)]
mod tests {
    use coldframe_answer::{Asker, Common, Watched};

    use super::*;

    fn paste(asker: Asker, swap: Option<&str>) -> PasteRun {
        let command = Some("./p 'a  b'".into());
        let common = Common { ram_bytes: Some(8 << 20), asker, command, ..Common::default() };
        PasteRun::new(&Answer::ReferencedBits(Watched { common, swap: swap.map(String::from), ..Watched::default() }))
            .unwrap()
    }

    #[test]
    fn the_kernel_limits_for_root_for_sudo_and_for_who_may_make_groups_and_others_need_sudo() {
        let line = |asker, swap| paste(asker, swap).whole();
        let run = "coldframe run --ram 8MiB --by kernel";
        assert_eq!(line(Asker::User, None), format!("sudo {run} -- sudo -u $USER ./p 'a  b'"));
        assert_eq!(line(Asker::User, Some("zram")), format!("sudo {run} --swap zram -- sudo -u $USER ./p 'a  b'"));
        assert_eq!(line(Asker::Groups, None), format!("{run} -- ./p 'a  b'"));
        assert_eq!(line(Asker::Sudo, Some("/a b")), format!("sudo {run} --swap '/a b' -- ./p 'a  b'"));
        assert_eq!(line(Asker::Root, Some("zram")), format!("{run} --swap zram -- ./p 'a  b'"));
    }

    #[test]
    fn a_long_line_is_broken_between_words_and_never_between_quotes() {
        let run = PasteRun {
            before: "coldframe run --ram 8MiB --".into(),
            words: words(&format!("p '{}'", "a ".repeat(30))),
        };
        assert_eq!(run.lines(2).unwrap(), format!("coldframe run --ram 8MiB -- p \\\n  '{}'\n", "a ".repeat(30)));
        assert_eq!(run.lines(1), None);
    }
}
