//! One program in less RAM, each way that this machine can give: a limit without swap, with swap in zram, on a file,
//! behind zswap, and our pager. The plan runs it plain and in each way, in turn.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use coldframe_kernel::{SwapKind, Tree};
use coldframe_sheet::quantity::{self, ram_size, things};

use super::compared::{fastest, Compared, Contender, SizeRuns};
use super::log::RunLog;
use super::plan::{carry_out, Course, Plan, Runner};
use super::runner::Bench;
use super::trial::{Outcome, Refusal, Trial};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::predict::curve::round_limit;
use crate::run::by_kernel::ready;
use crate::run::program::{default_backing, pageable, Executable};
use crate::run::runs::{Run, Runs, Way, NO_SWAP};
use crate::run::signals::Signals;
use crate::run::streams::Streams;
use crate::SCHEMA_VERSION;

/// The words of the ways that one can ask for.
pub const WAYS: [&str; 5] = {
    let [none, zram, file, behind] = SwapKind::WORDS;
    [none, zram, file, behind, PAGER]
};
const PAGER: &str = "pager";
const OUR_PAGER: &str = "our pager";
/// More than any program here takes, to try words of sizes.
const WHOLE: u64 = 1 << 40;
/// A run that takes longer than so many seconds and times the plain run is ended, if the user has not said when.
const PATIENCE: f64 = 10.0;

/// What to compare.
pub struct Comparison<'a> {
    /// The program and its arguments.
    pub command: &'a Executable,
    /// Limits: of the most that its memory group is charged, or absolute.
    pub ram: &'a [String],
    /// Only these of [`WAYS`]; empty: all that this machine can give.
    pub ways: &'a [String],
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
    /// Limits: of the peak, or absolute.
    pub ram: &'a [String],
    /// Runs of each kind.
    pub runs: u32,
    /// A run that takes longer is ended.
    pub max_time: Option<Duration>,
    /// The ways, at least one.
    pub ways: Vec<Named>,
    /// The files that leave the cache first.
    pub cold: Rc<[PathBuf]>,
    /// The most that was seen of it, if it does not run in a group.
    pub seen_bytes: u64,
}

/// The peak without a limit, and the limits, in bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct MemorySizes {
    /// The most that its group was charged; without a group, that its processes had in RAM.
    pub peak: u64,
    /// The limits.
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
    let (mut ways, mut left_out) = ways(program, folder.path(), &backing, comparison.backing.is_some());
    let unasked = |word: &&&str| !comparison.ways.is_empty() && !comparison.ways.iter().any(|way| way == **word);
    for word in WAYS.iter().filter(unasked) {
        let name = if *word == PAGER { OUR_PAGER } else { word };
        ways.retain(|named| named.name != name);
        left_out.retain(|why| !why.starts_with(&format!("{name}:")));
    }
    if ways.is_empty() {
        return Err(AnswerError::new(4, left_out.join("; ")));
    }
    let in_group = ready(Some(SwapKind::None)).is_ok();
    let mut bench = Bench::new(program, folder.path(), &streams, &signals, in_group);
    listener.note("coldframe: running it once, to see what it takes\n");
    let first = match in_group {
        true => bench.run(&Trial::plain(None)),
        false => bench.seen(false).map_or_else(|error| Outcome::Refused(error.into()), Outcome::Ran),
    };
    let first = ran(&first).map_err(Refusal::into_error)?.clone();
    let (runs, max_time, cold) = (comparison.runs, comparison.max_time, bench.mapped_files());
    let plan = InTurn { ram, runs, max_time, ways, cold, seen_bytes: first.peak_bytes };
    let mut runs = RunLog::after(first);
    let memory = carry_out(&plan, &mut runs, &mut bench, listener).map_err(Refusal::into_error)?;
    Ok(plan.compared(&runs, memory, program, left_out))
}

impl Plan for InTurn<'_> {
    type Result = Result<MemorySizes, Refusal>;

    fn decide(&self, course: &mut Course) -> Result<Self::Result, Trial> {
        let first = match ran(course.run(self.cold(Trial::plain(None)))?) {
            Ok(run) => run.clone(),
            Err(why) => return Ok(Err(why)),
        };
        let patience = self.max_time.map_or(PATIENCE + PATIENCE * first.seconds, |time| time.as_secs_f64());
        let peak = first.group.map_or(self.seen_bytes, |group| group.peak_bytes);
        let sizes = self.ram.iter().map(|text| size(text, peak)).collect::<Result<Vec<_>, _>>();
        let memory = match sizes {
            Ok(sizes) => MemorySizes { peak, sizes },
            Err(why) => return Ok(Err(why.into())),
        };
        for turn in 0..self.runs {
            if turn > 0 {
                if let Err(why) = ran(course.run(self.cold(Trial::plain(None)))?) {
                    return Ok(Err(why));
                }
            }
            for (ram, named) in memory.sizes.iter().flat_map(|ram| self.ways.iter().map(move |named| (*ram, named))) {
                let runs = course.runs();
                let late = |runs: Runs| runs.runs.iter().any(|run| run.too_long);
                let late = |size: &u64| *size >= ram && runs.paged(&named.way, *size).is_some_and(late);
                // What takes too long in a limit takes no less time in a smaller one.
                if memory.sizes.iter().any(late) || runs.refusal(&named.way, ram).is_some() {
                    continue;
                }
                if *course.run(self.cold(Trial::paged(&named.way, ram, patience)))? == Outcome::Signal {
                    return Ok(Err(Refusal::stopped()));
                }
            }
        }
        Ok(Ok(memory))
    }

    fn announce(&self, runs: &RunLog, trial: &Trial, listener: &dyn Listener) {
        let count = self.runs as usize * (1 + self.ram.len() * self.ways.len());
        let done = runs.entries().len();
        if done == 1 {
            let seconds = count as f64 * runs.plain().seconds;
            listener.note(&format!("coldframe: {}, {seconds:.0} s or more\n", things(count as u64, "run")));
        }
        let name = self.ways.iter().find(|named| named.way == trial.way).map_or("plain", |named| named.name);
        let words = match trial.ram_bytes {
            None => name.into(),
            Some(ram) => format!("{name} in {}", ram_size(ram)),
        };
        listener.note(&format!("coldframe: run {} of {count}: {words}\n", done + 1));
    }
}

impl InTurn<'_> {
    /// Its files leave the cache first.
    fn cold(&self, trial: Trial) -> Trial {
        Trial { cold: Rc::clone(&self.cold), ..trial }
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
            peak_bytes: memory.peak,
            in_group: runs.plain().group_peak().is_some(),
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
    let made = |file: PathBuf| {
        [SwapKind::None, SwapKind::Zram, SwapKind::File(file.clone()), SwapKind::Zswap(file)].into_iter()
    };
    if rustix::process::geteuid().is_root() {
        let pasted = made(backing.join("coldframe.swap"));
        for (kind, pasted) in made(folder.join("swap")).zip(pasted) {
            let name = kind.word();
            let possible = kind.check(&Tree::machine()).map_err(AnswerError::from);
            match possible.and_then(|()| ready(Some(kind.clone()))) {
                Ok(_) => add(name, Way::kernel(Some(kind.to_string())), &["--swap", &pasted.to_string()]),
                Err(why) => lacking.push(format!("{name}: {why}")),
            }
        }
    } else {
        if ready(Some(SwapKind::None)).is_ok() {
            add(NO_SWAP, Way::limit(), &["--swap", NO_SWAP]);
        }
        match ready(None) {
            Ok(_) => {
                add("this machine's", Way::kernel(None), &["--by", "kernel"]);
                lacking.push("swap on a file, zram or zswap of its own: run it as root".into());
            }
            Err(_) => lacking.push("swap: only root can make it here; run it as root".into()),
        }
    }
    match pageable(program) {
        Ok(()) => {
            let place = backing.display().to_string();
            let options: &[&str] = &["--by", "pager", "--backing", &place];
            add(OUR_PAGER, Way::pager(), &options[..if given { 4 } else { 2 }]);
        }
        Err(why) => lacking.push(format!("{OUR_PAGER}: {why}")),
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

/// A limit in bytes; a percentage is of the peak.
fn size(text: &str, peak: u64) -> Result<u64, AnswerError> {
    let bytes = match text.strip_suffix('%') {
        Some(percent) => percent
            .parse::<f64>()
            .ok()
            .filter(|percent| *percent > 0.0 && *percent <= 100.0)
            .map(|percent| round_limit((peak as f64 * percent / 100.0) as u64)),
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
    fn a_size_is_a_share_of_the_peak_that_people_can_write_down_or_bytes() {
        assert_eq!(size("75%", 85 << 20).unwrap(), 64 << 20);
        assert_eq!(size("50%", 10 << 20).unwrap(), 5 << 20);
        assert_eq!(size("3MiB", 10 << 20).unwrap(), 3 << 20);
        assert_eq!(size("1%", 1 << 20).unwrap(), 256 << 10);
        assert_eq!(size("4KiB", 1 << 20).unwrap(), 64 << 10, "the least that a run takes");
        for wrong in ["0%", "101%", "x%", "many"] {
            assert!(size(wrong, 1 << 20).unwrap_err().to_string().starts_with("--ram"), "{wrong}");
        }
    }
}
