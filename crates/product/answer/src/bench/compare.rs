//! One program in less RAM, each way that this machine can give: our pager, the kernel's swap on a file, on zram,
//! behind zswap.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use coldframe_kernel::{SwapKind, Tree};
use coldframe_sheet::quantity::{self, ram_size};

use crate::bench::compared::{Arm, Compared, Plain, Size, Timed};
use crate::bench::runner::{self, Bench};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::by_kernel::ready;
use crate::run::child::Signals;
use crate::run::pager::Pager;
use crate::run::program::{binary, default_backing, pageable};
use crate::run::runs::Ran;
use crate::run::streams::{Output, Streams};
use crate::SCHEMA_VERSION;

/// More RAM than any program here needs, to measure how much it does.
const ALL: u64 = 1 << 40;

/// What to compare.
pub struct Comparison<'a> {
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// Sizes of RAM: of the program's memory, or absolute.
    pub ram: &'a [String],
    /// Runs of each kind.
    pub runs: u32,
    /// A run that takes longer is ended; `None`: 10 s and 10 times the plain run.
    pub max_time: Option<Duration>,
    /// The folder for swap files; `None`: as for `coldframe run`.
    pub backing: Option<&'a Path>,
}

/// A way of paging.
struct Way {
    name: &'static str,
    by: Pager,
    swap: Option<String>,
    /// Its options to paste: the swap file is where the user has its own.
    pasted: Vec<String>,
}

/// Runs the program plain and in each way, in turn.
///
/// # Errors
/// Nobody can page the program here; it cannot be started; a signal came.
pub fn compare(of: &Comparison, listener: &dyn Listener) -> Result<Compared, AnswerError> {
    binary(of.command)?;
    // Before the program runs for minutes: these would be refused for any memory.
    of.ram.iter().try_for_each(|text| size(text, ALL).map(drop))?;
    let backing = of.backing.map_or_else(default_backing, Path::to_owned);
    let folder = tempfile::Builder::new().prefix("coldframe-compare-").tempdir_in(&backing);
    let remedy = "give --backing a folder that you may write to";
    let folder = folder.map_err(|e| AnswerError::new(5, format!("no folder for swap files: {e}; {remedy}")))?;
    let (signals, streams) = (Signals::catch()?, Streams::new()?);
    let bench = Bench { program: of.command, folder: folder.path(), streams: &streams, signals: &signals };
    let (ways, left_out) = ways(of.command, folder.path(), &backing, of.backing.is_some());
    let Some(first_way) = ways.first() else { return Err(AnswerError::new(4, left_out.join("; "))) };
    // The plain runs, the run that shows how much memory there is, and all others.
    let all = of.runs as usize * (1 + of.ram.len() * ways.len()) + 1;
    let runs = Runs { bench, listener, all, begun: Cell::new(0) };
    let first = runs.plain()?;
    let expected = first.output;
    listener.note(&format!("coldframe: {all} runs take {:.0} s or more\n", all as f64 * first.seconds));
    let patience = of.max_time.unwrap_or(Duration::from_secs(10) + 10 * Duration::from_secs_f64(first.seconds));
    let memory_bytes = runs.memory(first_way, patience)?;
    let sizes = of.ram.iter().map(|text| size(text, memory_bytes)).collect::<Result<Vec<_>, _>>()?;
    let at = |ram_bytes: u64| {
        let arm = |way: &Way| Arm { by: way.name, command: way.command(ram_bytes, of.command), ..Arm::default() };
        Size { ram_bytes, arms: ways.iter().map(arm).collect() }
    };
    let mut all = Compared {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION"),
        program: of.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        memory_bytes,
        plain: Plain { runs: vec![Timed::of(&first, expected, None)], ..Plain::default() },
        sizes: sizes.into_iter().map(at).collect(),
        left_out,
        fastest: None,
    };
    for turn in 0..of.runs {
        if turn > 0 {
            all.plain.runs.push(Timed::of(&runs.plain()?, expected, None));
        }
        for size in &mut all.sizes {
            for (arm, way) in size.arms.iter_mut().zip(&ways).filter(|(arm, _)| arm.goes_on()) {
                match runs.paged(way, size.ram_bytes, patience) {
                    Ok(run) => arm.runs.push(Timed::of(&run, expected, Some(patience))),
                    Err(stopped) if signals.came() => return Err(stopped),
                    Err(why) => arm.failed = Some(why.to_string()),
                }
            }
        }
    }
    all.finish();
    Ok(all)
}

/// The ways of paging that this machine can give, and why it cannot give the others.
fn ways(program: &[OsString], folder: &Path, backing: &Path, given: bool) -> (Vec<Way>, Vec<String>) {
    let (mut ways, mut lacking) = (Vec::new(), Vec::new());
    let mut way = |name, by: Pager, swap: Option<String>, pasted: &[&str]| {
        let pasted = pasted.iter().map(ToString::to_string).collect();
        ways.push(Way { name, by, swap, pasted });
    };
    match pageable(program) {
        Ok(()) => {
            let place = backing.display().to_string();
            let own: &[&str] = &["--by", "pager", "--backing", &place];
            way("pager", Pager::Ours, None, &own[..if given { 4 } else { 2 }]);
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
            let there = kind.there(&Tree::machine()).map_err(AnswerError::from);
            match there.and_then(|()| ready(Some(kind.clone()))) {
                Ok(_) => {
                    let words = ["--by", "kernel", "--swap", &pasted.to_string()];
                    way(name, Pager::Kernel, Some(kind.to_string()), &words);
                }
                Err(why) => lacking.push(format!("{name}: {why}")),
            }
        }
    } else {
        match ready(None) {
            Ok(_) => {
                way("kernel", Pager::Kernel, None, &["--by", "kernel"]);
                lacking.push("the kernel's swap on a file, zram or zswap of its own: run it as root".into());
            }
            Err(_) => lacking.push("the kernel's swap: only root can make it here; run it as root".into()),
        }
    }
    (ways, lacking)
}

impl Way {
    fn paging(&self) -> runner::Way<'_> {
        runner::Way { by: self.by, swap: self.swap.as_deref(), in_all: false }
    }

    /// The command that runs the program so, as a shell reads it.
    fn command(&self, ram: u64, program: &[OsString]) -> String {
        let start = ["coldframe", "run", "--ram"].map(String::from).into_iter().chain([ram_size(ram)]);
        let words = start.chain(self.pasted.iter().cloned()).chain(["--".into()]);
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

/// The runs of a comparison.
struct Runs<'a> {
    bench: Bench<'a>,
    listener: &'a dyn Listener,
    /// The number of all runs, and of those that have begun.
    all: usize,
    begun: Cell<usize>,
}

impl Runs<'_> {
    fn note(&self, words: &str) {
        self.begun.set(self.begun.get() + 1);
        self.listener.note(&format!("coldframe: run {} of {}: {words}\n", self.begun.get(), self.all));
    }

    fn plain(&self) -> Result<Ran, AnswerError> {
        self.note("plain");
        self.bench.plain(None, &|_| {})
    }

    /// Bytes of memory that can leave: measured with a pager that lets all of it stay.
    fn memory(&self, way: &Way, patience: Duration) -> Result<u64, AnswerError> {
        self.note(&format!("{} with all of its memory", way.name));
        let (ran, run) = self.bench.paged(way.paging(), ALL, patience)?;
        if ran.too_long {
            let message = format!("{}: with all of its memory it took too long; give more --max-time", way.name);
            return Err(AnswerError::new(4, message));
        }
        match run.memory_bytes() {
            0 => {
                let message = format!("{} has no memory that can leave; give a larger program", way.name);
                Err(AnswerError::new(4, message))
            }
            bytes => Ok(bytes),
        }
    }

    fn paged(&self, way: &Way, ram: u64, patience: Duration) -> Result<Ran, AnswerError> {
        self.note(&format!("{} in {}", way.name, ram_size(ram)));
        Ok(self.bench.paged(way.paging(), ram, patience)?.0)
    }
}

impl Timed {
    fn of(ran: &Ran, expected: Option<Output>, patience: Option<Duration>) -> Timed {
        let Ran { seconds, status, too_long, killed, output, .. } = *ran;
        let limit = patience.filter(|_| too_long);
        Timed {
            seconds: limit.map_or(seconds, |limit| limit.as_secs_f64()),
            status: if too_long { 0 } else { status },
            equal: output == expected,
            too_long,
            killed,
        }
    }
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
