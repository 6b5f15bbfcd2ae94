//! Lines to paste: all that an answer prints are made here, so that tests find each, and check it as its reader does
//! (`crates/product/cli/tests/quiet_swap/pasted.rs`).

use coldframe_answer::Asker;

use crate::text::command;

pub(crate) mod run;
pub mod settings;

/// Who reads a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PasteReader {
    /// `docker run`, as options.
    Docker,
    /// A service in a compose file.
    Compose,
    /// A container's `resources`.
    Kubernetes,
    /// A unit's `[Service]`.
    Systemd,
    /// A file, or another place of settings.
    Place(String),
}

impl PasteReader {
    fn name(&self) -> &str {
        match self {
            PasteReader::Docker => "docker run",
            PasteReader::Compose => "compose",
            PasteReader::Kubernetes => "Kubernetes",
            PasteReader::Systemd => "systemd",
            PasteReader::Place(place) => place,
        }
    }
}

/// Lines for one reader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PasteLine {
    /// Who reads them.
    pub reader: PasteReader,
    /// They, one setting each.
    pub lines: Vec<String>,
}

/// The column of a setting whose place is shorter.
const SETTING: usize = 35;
/// The same for units and containers.
const UNIT: usize = 12;
/// Between settings that share a line on the terminal.
const BETWEEN: &str = " · ";

impl PasteLine {
    /// In a line of the terminal.
    fn line(&self) -> String {
        format!("  {:UNIT$}{}\n", self.reader.name(), self.lines.join(BETWEEN))
    }

    /// A setting in each line, with its place before the first. `before`: a word before it.
    fn block(&self, before: &str) -> String {
        let place = format!("{before}{}", self.reader.name());
        let first = match place.len() {
            // A sentence stands in a line of its own.
            _ if place.ends_with(':') => format!("  {place}\n  {:SETTING$}{}\n", "", self.lines[0]),
            short if short < SETTING => format!("  {place:SETTING$}{}\n", self.lines[0]),
            _ => format!("  {place}  {}\n", self.lines[0]),
        };
        let rest = self.lines[1..].iter().map(|line| format!("  {:SETTING$}{line}\n", ""));
        first + &rest.collect::<String>()
    }
}

/// What stands before a command of coldframe's, and before the program that it starts. `kernel`: it limits memory by a
/// group; `swap`: it makes swap. Both need rights, and the program stays the reader's.
fn rights(asker: Asker, kernel: bool, swap: bool) -> (&'static str, &'static str) {
    match asker {
        Asker::Root => ("", ""),
        Asker::Sudo => ("sudo ", ""),
        Asker::Groups if !swap => ("", ""),
        Asker::Groups | Asker::User if kernel || swap => ("sudo ", "sudo -u $USER "),
        _ => ("", ""),
    }
}

/// A word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.into(), |word| word.into_owned())
}

/// The words of a command line, each as a shell reads it: a blank between quotes is no place for a new line.
pub(crate) fn words(line: &str) -> Vec<String> {
    let split = || line.split_whitespace().map(String::from).collect();
    shlex::split(line).map_or_else(split, |words| words.iter().map(|word| quoted(word)).collect())
}

/// `sudo coldframe squeeze` of a name.
pub(crate) fn squeeze(asker: Asker, swap: Option<&str>, name: &str) -> String {
    let (sudo, _) = rights(asker, true, true);
    let swap = swap.map_or(String::new(), |swap| format!("--swap {} ", quoted(swap)));
    shell(&format!("{sudo}coldframe squeeze --yes {swap}"), &quoted(name))
}

/// `sudo coldframe park` of a process: only root sees those of others.
pub(crate) fn park(process: u32) -> String {
    format!("  sudo coldframe park {process}\n")
}

/// The page.
pub(crate) fn page(report: Option<&std::path::Path>) -> String {
    report.map_or(String::new(), |page| format!("xdg-open {}\n", quoted(&page.display().to_string())))
}

/// Both parts of a command, indented.
fn shell(first: &str, rest: &str) -> String {
    let whole: Vec<String> = first.split_whitespace().map(String::from).chain([rest.into()]).collect();
    command(whole.iter().map(String::as_str), 2, 4) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_sudo_where_its_reader_cannot_do_it_and_the_program_stays_the_readers() {
        let both = ("sudo ", "sudo -u $USER ");
        for (asker, pager, kernel, swap) in [
            (Asker::User, ("", ""), both, both),
            (Asker::Groups, ("", ""), ("", ""), both),
            (Asker::Sudo, ("sudo ", ""), ("sudo ", ""), ("sudo ", "")),
            (Asker::Root, ("", ""), ("", ""), ("", "")),
        ] {
            let all = [rights(asker, false, false), rights(asker, true, false), rights(asker, true, true)];
            assert_eq!(all, [pager, kernel, swap], "{asker:?}");
        }
    }

    #[test]
    fn names_and_words_are_quoted() {
        assert_eq!(squeeze(Asker::Root, Some("/a b"), "x y"), "  coldframe squeeze --yes --swap '/a b' 'x y'\n");
        assert_eq!(page(Some(std::path::Path::new("a b.html"))), "xdg-open 'a b.html'\n");
        assert_eq!(words("python3 -c 'a  b'"), ["python3", "-c", "'a  b'"]);
    }
}
