//! `coldframe -- PROGRAM ARGUMENTS`: records, advises and reports in one go. `coldframe --verify -- ...` runs the program with less RAM, too.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_answer::measure::{measure, Measured};
use coldframe_answer::verify::verify;
use coldframe_answer::{Answer, AnswerError, Recorded};
use coldframe_show::export::{self, Exported};
use coldframe_show::html::{Html, Page};
use coldframe_show::machine_answer::words;
use coldframe_show::text::paragraph;
use coldframe_show::{group, verified};

use crate::failure::Failure;
use crate::output;
use coldframe_terminal::listener::Terminal;

/// The user's request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asked {
    quiet: bool,
    verify: bool,
    open: bool,
    export: Vec<PathBuf>,
    program: Vec<OsString>,
}

impl Asked {
    /// Reads options, then `--` and a program; `None`: it is not such a command line.
    pub fn read(words: &[OsString]) -> Option<Asked> {
        let mut asked = Asked::default();
        let mut rest = words.iter().enumerate();
        while let Some((i, word)) = rest.next() {
            match word.to_str()? {
                "--" => {
                    asked.program = words[i + 1..].to_vec();
                    return Some(asked);
                }
                "--verify" => asked.verify = true,
                "--open" => asked.open = true,
                "--export" => asked.export.push(rest.next()?.1.into()),
                "-q" | "--quiet" => asked.quiet = true,
                _ => return None,
            }
        }
        // Without `--`, it is no other verb either.
        (asked.verify || asked.open).then_some(asked)
    }
}

/// Does all of it, into the folder `PROGRAM.coldframe`.
pub fn run(asked: &Asked) -> Result<ExitCode, Failure> {
    let program = &asked.program;
    let Some(name) = program.first().and_then(|path| Path::new(path).file_name()) else {
        return Err(Failure::usage("`coldframe --` needs a program: coldframe -- PROGRAM ARGUMENTS"));
    };
    export::known(&asked.export)?;
    // A program that is not there has no answer of any kind.
    coldframe_answer::program::binary(program)?;
    let mut folder = name.to_os_string();
    folder.push(".coldframe");
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder).map_err(|e| {
        AnswerError::new(5, format!("{}: cannot be made: {e}; go to a folder that you may write to", folder.display()))
    })?;
    let done = into(asked, &folder);
    if asked.open && done.is_ok() {
        open(&folder.join(REPORT));
    }
    if done.is_err() {
        // Only if the folder is empty.
        let _ = std::fs::remove_dir(&folder);
    }
    done
}

/// The page with the answer.
const REPORT: &str = "report.html";

/// Shows the page, or says where it is.
fn open(page: &Path) {
    if !coldframe_answer::program::show(page) {
        let page = std::path::absolute(page).unwrap_or(page.to_owned());
        eprintln!("coldframe: xdg-open cannot show the report; open {} in a browser", page.display());
    }
}

/// The answer, and its files.
fn into(asked: &Asked, folder: &Path) -> Result<ExitCode, Failure> {
    let terminal = Terminal::new(asked.quiet);
    let paged = asked.verify.then_some("--verify runs the program with less RAM");
    let mut found = measure(&asked.program, folder, paged, &terminal)?;
    write(folder, &found, &asked.export)?;
    let config = found.answer.recorded().and_then(Recorded::config);
    let config = config.map(|_| folder.join("config.toml").display().to_string());
    let remarks: String = found.remarks.iter().map(|remark| paragraph(&format!("Note: {remark}."), 0)).collect();
    let (more, report) = (group::words(&found.group) + &remarks, folder.join(REPORT));
    let text = words(&found.answer, config.as_deref(), (!asked.quiet).then_some(report.as_path()), &more);
    output::text(&text)?;
    if let (true, Answer::Recorder(answer)) = (asked.verify, &mut found.answer) {
        let runs = verify(answer, &asked.program, &terminal)?;
        output::text(&verified::words(&runs))?;
        answer.verified = runs.iter().filter_map(|run| run.verified()).collect();
        write(folder, &found, &asked.export)?;
    }
    Ok(ExitCode::from(u8::from(found.answer.ram_bytes.is_none())))
}

/// Writes the files to keep.
fn write(folder: &Path, found: &Measured, exports: &[PathBuf]) -> Result<(), Failure> {
    output::file(&folder.join("advice.json"), &output::json(&found.answer))?;
    if let Some(config) = found.answer.recorded().and_then(Recorded::config) {
        output::file(&folder.join("config.toml"), &config)?;
    }
    let mut page = Page::of(&found.answer);
    found.heat.iter().for_each(|heat| page.add_map(heat.clone()));
    page.add_group(&found.group);
    output::file(&folder.join(REPORT), &page.html()?)?;
    Ok(Exported::here(&found.answer, None).write(exports, &page)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Option<Asked> {
        Asked::read(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_come_before_the_program_and_not_after() {
        let program = vec![OsString::from("ls"), OsString::from("--verify")];
        assert_eq!(read(&["--", "ls", "--verify"]), Some(Asked { program: program.clone(), ..Asked::default() }));
        let asked = Asked { quiet: true, verify: true, open: true, export: Vec::new(), program };
        assert_eq!(read(&["--verify", "-q", "--open", "--", "ls", "--verify"]), Some(asked));
        assert_eq!([read(&["run", "--", "ls"]), read(&[]), read(&["-q"])], [None, None, None]);
        let export = read(&["--export", "a.md", "--export", "b.csv", "--", "ls"]).map(|asked| asked.export);
        assert_eq!(export, Some(vec!["a.md".into(), "b.csv".into()]));
        assert!(read(&["--verify"]).is_some_and(|asked| asked.program.is_empty()));
    }
}
