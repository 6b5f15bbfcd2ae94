//! `coldframe -- PROGRAM ARGUMENTS`: records, advises and reports in one go. `coldframe --verify -- ...` runs the program with less RAM, too.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use coldframe_answer::Answer;
use coldframe_sheet::quantity::human_size;
use coldframe_show::export::Exported;
use coldframe_show::html::{Html, Page, MAP_COLUMNS, MAP_ROWS};
use coldframe_show::machine_answer::words;
use coldframe_show::text::wrap;
use coldframe_store::heat::heat;
use coldframe_store::Reader;

use crate::advise_here::Machine;
use crate::failure::Failure;
use crate::pick_recorder::pageable;
use crate::{export, group, output, verify, watched, window};

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
    crate::run::program(program)?;
    let pageable = pageable(program);
    let mut folder = name.to_os_string();
    folder.push(".coldframe");
    let folder = PathBuf::from(folder);
    let failed = |e: std::io::Error| Failure::Other {
        message: format!("{}: cannot be made: {e}; go to a folder that you may write to", folder.display()),
        code: 5,
    };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let done = match pageable {
        Ok(()) => here(asked, &folder),
        Err(why) if asked.verify => Err(Failure::Other {
            message: format!("--verify runs the program with less RAM, which is not possible: {why}"),
            code: 4,
        }),
        Err(why) => watched::run(program, &folder, &why.to_string(), &asked.export, asked.quiet),
    };
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
    let shown = std::process::Command::new("xdg-open").arg(page).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !shown.is_ok_and(|status| status.success()) {
        let page = std::path::absolute(page).unwrap_or(page.to_owned());
        eprintln!("coldframe: xdg-open cannot show the report; open {} in a browser", page.display());
    }
}

/// For this machine, with its pager.
fn here(asked: &Asked, folder: &Path) -> Result<ExitCode, Failure> {
    let (program, trace) = (&asked.program, folder.join("trace.parquet"));
    // Reports what this machine lacks before the program runs.
    let machine = Machine::known()?;
    let order = window::Order { command: program, patience: window::PATIENCE, ..window::Order::default() };
    let recorded = window::record(&order, &trace)?;
    if let Some(why) = elsewhere(&trace)? {
        if !asked.verify {
            output::tell(&format!("coldframe: {why}; running it again, to watch all of it\n"));
            let _ = std::fs::remove_file(&trace);
            return watched::run(program, folder, &why, &asked.export, asked.quiet);
        }
    }
    let mut answer = machine.about(&trace, None, None)?;
    write(folder, &trace, &answer, &asked.export)?;
    let config = folder.join("config.toml");
    let config = answer.config().map(|_| config.display().to_string());
    let mut more = group::of(&trace);
    for remark in recorded.remarks() {
        more += &(wrap("", &format!("Note: {remark}."), 0, WIDTH).join("\n") + "\n");
    }
    let report = folder.join(REPORT);
    output::write(None, &words(&answer, config.as_deref(), (!asked.quiet).then_some(report.as_path()), &more))?;
    if asked.verify {
        answer.verified = verify::run(&answer, program)?;
        write(folder, &trace, &answer, &asked.export)?;
    }
    Ok(ExitCode::from(u8::from(config.is_none())))
}

/// A program whose memory is [`ELSEWHERE`] times what the pager has seen: a virtual machine with a heap of its own, or a
/// shell with static children.
fn elsewhere(trace: &Path) -> Result<Option<String>, Failure> {
    let Some(facts) = Reader::open(trace)?.provenance().program else { return Ok(None) };
    let (seen, rest) = (facts.managed_bytes, facts.not_paged_bytes);
    let why = || format!("our pager serves {} of its {}", human_size(seen), human_size(seen + rest));
    Ok((rest > ELSEWHERE * seen).then(why))
}

/// Code and libraries of a program that the pager serves take less than this times its heap, if the heap is worth a
/// question.
const ELSEWHERE: u64 = 4;

/// Columns of a line.
const WIDTH: usize = 80;

/// Writes the files to keep.
fn write(folder: &Path, trace: &Path, answer: &Answer, exports: &[PathBuf]) -> Result<(), Failure> {
    let json = output::json(&answer.json());
    output::write(Some(&folder.join("advice.json")), &json)?;
    if let Some(config) = answer.config() {
        output::write(Some(&folder.join("config.toml")), &config)?;
    }
    let mut page = Page::of(answer);
    page.add_map(heat(trace, MAP_ROWS, MAP_COLUMNS)?);
    page.add_group(&Reader::open(trace)?.provenance().group);
    output::write(Some(&folder.join(REPORT)), &page.html()?)?;
    export::all(exports, &Exported::here(answer, None), &page)
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
