//! One program in less RAM, each way that this machine can give: our pager, the kernel's swap on a file, on zram,
//! behind zswap. The plan runs it plain and in each way, in turn.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use coldframe_kernel::{SwapKind, Tree};
use coldframe_sheet::quantity::{self, ram_size};

use super::compared::{fastest, Compared, Contender, SizeRuns};
use super::log::RunLog;
use super::plan::{carry_out, Course, Plan};
use super::runner::Bench;
use super::trial::{Outcome, Refusal, Trial};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::by_kernel::ready;
use crate::run::child::Signals;
use crate::run::program::{default_backing, pageable, Executable};
use crate::run::runs::{Run, Runs, Way};
use crate::run::streams::Streams;
use crate::SCHEMA_VERSION;

/// More RAM than any program here needs, to measure how much it does.
const WHOLE: u64 = 1 << 40;
/// A run that takes longer than so many seconds and times the plain run is ended, if the user has not said when.
const PATIENCE: f64 = 10.0;

/// What to compare.
pub struct Comparison<'a> {
    /// The program and its arguments.
    pub command: &'a Executable,
    /// Sizes of RAM: of the program's memory, or absolute.
    pub ram: &'a [String],
    /// Runs of each kind.
    pub runs: u32,
    /// A run that takes longer is ended; `None`: 10 s and 10 times the plain run.
    pub max_time: Option<Duration>,
    /// The folder for swap files; `None`: as for `coldframe run`.
    pub backing: Option<&'a Path>,
}

/// A way of paging, its name, and its options to paste: the swap file is where the user has its own.
pub struct Named {
    /// For people.
    pub name: &'static str,
    /// The way.
    pub way: Way,
    /// `--by kernel --swap zram`.
    pub options: Vec<String>,
}

/// Runs the program plain and in each way, in turn.
pub struct InTurn<'a> {
    /// Sizes of RAM: of the program's memory, or absolute.
    pub ram: &'a [String],
    /// Runs of each kind.
    pub runs: u32,
    /// A run that takes longer is ended.
    pub max_time: Option<Duration>,
    /// The ways, at least one.
    pub ways: Vec<Named>,
}

/// How much memory can leave, and the sizes of RAM, in bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct MemorySizes {
    /// Bytes of the program's memory that can leave.
    pub bytes: u64,
    /// The sizes of RAM.
    pub sizes: Vec<u64>,
}

/// Runs the program plain and in each way, in turn.
///
/// # Errors
/// Nobody can page the program here; it cannot be started; a signal came.
pub fn compare(comparison: &Comparison, listener: &dyn Listener) -> Result<Compared, AnswerError> {
    let (program, ram) = (comparison.command, comparison.ram);
    // Before the program runs for minutes: these would be refused for any memory.
    ram.iter().try_for_each(|text| size(text, WHOLE).map(drop))?;
    let backing = comparison.backing.map_or_else(default_backing, Path::to_owned);
    let folder = tempfile::Builder::new().prefix("coldframe-compare-").tempdir_in(&backing);
    let remedy = "give --backing a folder that you may write to";
    let folder = folder.map_err(|e| AnswerError::new(5, format!("no folder for swap files: {e}; {remedy}")))?;
    let (signals, streams) = (Signals::catch()?, Streams::new()?);
    let (ways, left_out) = ways(program, folder.path(), &backing, comparison.backing.is_some());
    if ways.is_empty() {
        return Err(AnswerError::new(4, left_out.join("; ")));
    }
    let (began, folder) = (Instant::now(), folder.path());
    let mut bench = Bench {
        program,
        folder,
        streams: &streams,
        signals: &signals,
        began,
        in_group: false,
        mapped: Mutex::default(),
    };
    let plan = InTurn { ram, runs: comparison.runs, max_time: comparison.max_time, ways };
    let mut runs = RunLog::default();
    let memory = carry_out(&plan, &mut runs, &mut bench, listener).map_err(Refusal::into_error)?;
    Ok(plan.compared(&runs, memory, program, left_out))
}

impl Plan for InTurn<'_> {
    type Result = Result<MemorySizes, Refusal>;

    fn decide(&self, course: &mut Course) -> Result<Self::Result, Trial> {
        let first = match ran(course.run(Trial::plain(None))?) {
            Ok(run) => run.clone(),
            Err(why) => return Ok(Err(why)),
        };
        let patience = self.max_time.map_or(PATIENCE + PATIENCE * first.seconds, |time| time.as_secs_f64());
        let memory = match ran(course.run(Trial::paged(&self.ways[0].way, WHOLE, patience))?) {
            Ok(run) => self.memory(run),
            Err(why) => Err(why),
        };
        let memory = match memory {
            Ok(memory) => memory,
            Err(why) => return Ok(Err(why)),
        };
        for turn in 0..self.runs {
            if turn > 0 {
                if let Err(why) = ran(course.run(Trial::plain(None))?) {
                    return Ok(Err(why));
                }
            }
            for (ram, named) in memory.sizes.iter().flat_map(|ram| self.ways.iter().map(move |named| (*ram, named))) {
                let runs = course.runs();
                let late = runs.paged(&named.way, ram).is_some_and(|runs| runs.runs.iter().any(|run| run.too_long));
                if late || runs.refusal(&named.way, ram).is_some() {
                    continue;
                }
                if *course.run(Trial::paged(&named.way, ram, patience))? == Outcome::Signal {
                    return Ok(Err(Refusal::stopped()));
                }
            }
        }
        Ok(Ok(memory))
    }

    fn announce(&self, runs: &RunLog, trial: &Trial, listener: &dyn Listener) {
        // The plain runs, the run that shows how much memory there is, and all others.
        let count = self.runs as usize * (1 + self.ram.len() * self.ways.len()) + 1;
        let done = runs.entries().len();
        if done == 1 {
            let seconds = count as f64 * runs.plain().seconds;
            listener.note(&format!("coldframe: {count} runs take {seconds:.0} s or more\n"));
        }
        let name = self.ways.iter().find(|named| named.way == trial.way).map_or("plain", |named| named.name);
        let words = match trial.ram_bytes {
            None => name.into(),
            Some(WHOLE) => format!("{name} with all of its memory"),
            Some(ram) => format!("{name} in {}", ram_size(ram)),
        };
        listener.note(&format!("coldframe: run {} of {count}: {words}\n", done + 1));
    }
}

impl InTurn<'_> {
    /// What a run with all of its memory shows.
    fn memory(&self, run: &Run) -> Result<MemorySizes, Refusal> {
        let name = self.ways[0].name;
        if run.too_long {
            let message = format!("{name}: with all of its memory it took too long; give more --max-time");
            return Err(Refusal::new(4, message));
        }
        if run.managed_bytes == 0 {
            let message = format!("{name} has no memory that can leave; give a larger program");
            return Err(Refusal::new(4, message));
        }
        let sizes = self.ram.iter().map(|text| size(text, run.managed_bytes)).collect::<Result<_, _>>()?;
        Ok(MemorySizes { bytes: run.managed_bytes, sizes })
    }

    /// The results of these runs.
    pub fn compared(
        &self,
        runs: &RunLog,
        memory: MemorySizes,
        program: &[OsString],
        left_out: Vec<String>,
    ) -> Compared {
        let contender = |named: &Named, ram: u64| Contender {
            name: named.name.into(),
            command: named.command(ram, program),
            refused: runs.refusal(&named.way, ram),
            // A swap file of these runs is gone; the user makes another one.
            runs: Runs {
                swap: named.way.swap.as_ref().and(named.options.last().cloned()),
                ..runs.paged(&named.way, ram).unwrap_or_else(|| Runs::new(&named.way, Some(ram)))
            },
        };
        let size = |ram: &u64| SizeRuns {
            ram_bytes: *ram,
            ways: self.ways.iter().map(|named| contender(named, *ram)).collect(),
        };
        let (plain, sizes) = (runs.plain(), Vec::from_iter(memory.sizes.iter().map(size)));
        Compared {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            program: program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            memory_bytes: memory.bytes,
            fastest: fastest(&plain, &sizes),
            plain,
            varies: runs.varies(),
            sizes,
            left_out,
        }
    }
}

fn ran(outcome: &Outcome) -> Result<&Run, Refusal> {
    match outcome {
        Outcome::Ran(run) => Ok(run),
        Outcome::Refused(why) => Err(why.clone()),
        Outcome::Signal => Err(Refusal::stopped()),
    }
}

/// The ways of paging that this machine can give, and why it cannot give the others.
fn ways(program: &Executable, folder: &Path, backing: &Path, given: bool) -> (Vec<Named>, Vec<String>) {
    let (mut ways, mut lacking) = (Vec::new(), Vec::new());
    let mut add = |name, way: Way, options: &[&str]| {
        ways.push(Named { name, way, options: options.iter().map(ToString::to_string).collect() });
    };
    match pageable(program) {
        Ok(()) => {
            let place = backing.display().to_string();
            let options: &[&str] = &["--by", "pager", "--backing", &place];
            add("pager", Way::pager(), &options[..if given { 4 } else { 2 }]);
        }
        Err(why) => lacking.push(format!("our pager: {why}")),
    }
    let made = |file: PathBuf| {
        let kinds = [SwapKind::File(file.clone()), SwapKind::Zram, SwapKind::Zswap(file)];
        ["kernel, file", "kernel, zram", "kernel, zswap"].into_iter().zip(kinds)
    };
    if rustix::process::geteuid().is_root() {
        let pasted = made(backing.join("coldframe.swap"));
        for ((name, kind), (_, pasted)) in made(folder.join("swap")).zip(pasted) {
            let possible = kind.check(&Tree::machine()).map_err(AnswerError::from);
            match possible.and_then(|()| ready(Some(kind.clone()))) {
                Ok(_) => {
                    let words = ["--by", "kernel", "--swap", &pasted.to_string()];
                    add(name, Way::kernel(Some(kind.to_string())), &words);
                }
                Err(why) => lacking.push(format!("{name}: {why}")),
            }
        }
    } else {
        match ready(None) {
            Ok(_) => {
                add("kernel", Way::kernel(None), &["--by", "kernel"]);
                lacking.push("the kernel's swap on a file, zram or zswap of its own: run it as root".into());
            }
            Err(_) => lacking.push("the kernel's swap: only root can make it here; run it as root".into()),
        }
    }
    (ways, lacking)
}

impl Named {
    /// The command that runs the program so, as a shell reads it.
    fn command(&self, ram: u64, program: &[OsString]) -> String {
        let start = ["coldframe", "run", "--ram"].map(String::from).into_iter().chain([ram_size(ram)]);
        let words = start.chain(self.options.iter().cloned()).chain(["--".into()]);
        let words: Vec<_> = words.chain(program.iter().map(|word| word.to_string_lossy().into_owned())).collect();
        let quoted = |word: &String| shlex::try_quote(word).map_or_else(|_| word.clone(), |word| word.into_owned());
        words.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}

/// A size of RAM in bytes; a percentage is of the program's memory.
fn size(text: &str, memory: u64) -> Result<u64, AnswerError> {
    let bytes = match text.strip_suffix('%') {
        Some(percent) => percent
            .parse::<f64>()
            .ok()
            .filter(|percent| *percent > 0.0 && *percent <= 100.0)
            .map(|percent| (memory as f64 * percent / 100.0) as u64),
        None => Some(quantity::bytes(text).map_err(|e| AnswerError::usage(format!("--ram: {e}")))?.0),
    };
    let bytes =
        bytes.ok_or_else(|| AnswerError::usage(format!("--ram: {text}: give a size, or more than 0% to 100%")))?;
    // What `coldframe run` takes is a whole number of KiB, at least its least.
    Ok((bytes / 1024 * 1024).max(64 << 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_share_of_the_memory_or_bytes() {
        assert_eq!(size("50%", 10 << 20).unwrap(), 5 << 20);
        assert_eq!(size("3MiB", 10 << 20).unwrap(), 3 << 20);
        assert_eq!(size("1%", 1 << 20).unwrap(), 64 << 10, "the least that a run takes");
        for wrong in ["0%", "101%", "x%", "many"] {
            assert!(size(wrong, 1 << 20).unwrap_err().to_string().starts_with("--ram"), "{wrong}");
        }
    }
}
