//! One program in less RAM, each way that this machine can give: our pager, the kernel's swap on a file, on zram,
//! behind zswap.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use coldframe_kernel::{SwapKind, Tree};
use coldframe_live::Options;
use coldframe_sheet::quantity::{self, ram_size};

use crate::child::{Care, Child, Signals, Why};
use crate::compared::{Arm, Compared, Plain, Size, Timed};
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::order::{Order, Program};
use crate::pager::Pager;
use crate::program::{binary, default_backing, pageable, plain};
use crate::run::{run, Run};
use crate::run_kernel::ready;
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
    let bench = Bench { program: of.command, folder: folder.path(), signals: Signals::catch()?, listener };
    let (ways, left_out) = ways(of.command, folder.path(), &backing, of.backing.is_some());
    let Some(first_way) = ways.first() else { return Err(AnswerError::new(4, left_out.join("; "))) };
    let first = bench.plain(None)?;
    let patience = of.max_time.unwrap_or(Duration::from_secs(10) + 10 * Duration::from_secs_f64(first.seconds));
    let memory_bytes = bench.memory(first_way, patience)?;
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
        plain: Plain { runs: vec![first], ..Plain::default() },
        sizes: sizes.into_iter().map(at).collect(),
        left_out,
        fastest: None,
    };
    let expected = bench.output("plain")?;
    for turn in 0..of.runs {
        if turn > 0 {
            all.plain.runs.push(bench.plain(Some(&expected))?);
        }
        for size in &mut all.sizes {
            for (arm, way) in size.arms.iter_mut().zip(&ways).filter(|(arm, _)| arm.goes_on()) {
                let run = bench.paged(way, size.ram_bytes, patience, &expected);
                bench.stopped()?;
                match run {
                    Ok(run) => arm.runs.push(run),
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

/// Runs one program again and again, in a folder for its outputs and swap files.
struct Bench<'a> {
    program: &'a [OsString],
    folder: &'a Path,
    signals: Signals,
    listener: &'a dyn Listener,
}

impl Bench<'_> {
    fn plain(&self, expected: Option<&[u8]>) -> Result<Timed, AnswerError> {
        self.listener.note("coldframe: plain\n");
        let [input, output, errors] = self.streams("plain")?;
        let mut command = plain(self.program);
        command.stdin(input).stdout(output).stderr(errors);
        let began = Instant::now();
        let ended = Child::start(command, &self.program[0])?.wait(&Care::that_ends(&self.signals))?;
        let program = Program::of(ended, began.elapsed().as_secs_f64());
        self.stopped()?;
        let equal = expected.is_none_or(|expected| self.output("plain").is_ok_and(|bytes| bytes == expected));
        Ok(Timed { seconds: program.seconds, status: program.status, equal, ..Timed::default() })
    }

    /// Bytes of memory that can leave: measured with a pager that lets all of it stay.
    fn memory(&self, way: &Way, patience: Duration) -> Result<u64, AnswerError> {
        let run = self.run(way, ALL, patience)?;
        self.stopped()?;
        if run.program().why.is_some() {
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

    fn paged(&self, way: &Way, ram: u64, patience: Duration, expected: &[u8]) -> Result<Timed, AnswerError> {
        let run = self.run(way, ram, patience)?;
        let program = run.program();
        let too_long = program.why == Some(Why::Deadline);
        Ok(Timed {
            seconds: if too_long { patience.as_secs_f64() } else { program.seconds },
            status: if too_long { 0 } else { program.status },
            equal: self.output("paged").is_ok_and(|bytes| bytes == expected),
            too_long,
            killed: run.killed(),
        })
    }

    fn run(&self, way: &Way, ram: u64, patience: Duration) -> Result<Run, AnswerError> {
        self.listener.note(&format!("coldframe: {} in {}\n", way.name, ram_size(ram)));
        let max_memory = Options::MAX_MEMORY;
        let options = Options { backing: self.folder.to_owned(), max_memory, ..Options::new(ram) };
        let streams = || self.streams("paged");
        let order = Order {
            by: way.by,
            swap: way.swap.as_deref(),
            pass_on: false,
            patience: Some(patience),
            streams: Some(&streams),
            ..Order::new(self.program, options, &self.signals)
        };
        run(&order, &crate::Silent)
    }

    /// A file is read by each run from its start. Anything else can be read only once, so it is not read at all.
    fn streams(&self, output: &str) -> Result<[Stdio; 3], AnswerError> {
        let create = |name: &str| File::create(self.folder.join(name)).map(Stdio::from).map_err(failed);
        let own = File::open("/proc/self/fd/0").ok();
        let file = own.filter(|file| file.metadata().is_ok_and(|data| data.is_file()));
        Ok([file.map_or_else(Stdio::null, Stdio::from), create(output)?, create("errors")?])
    }

    fn output(&self, name: &str) -> Result<Vec<u8>, AnswerError> {
        std::fs::read(self.folder.join(name)).map_err(failed)
    }

    fn stopped(&self) -> Result<(), AnswerError> {
        match self.signals.came() {
            true => Err(AnswerError::new(130, "stopped; nothing is left behind")),
            false => Ok(()),
        }
    }
}

fn failed(error: std::io::Error) -> AnswerError {
    AnswerError::new(5, format!("compare: {error}; is the disk full?"))
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
