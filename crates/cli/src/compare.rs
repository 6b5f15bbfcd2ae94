//! `coldframe compare`: one program in less RAM, each way that this machine can give: our pager, the
//! kernel's swap on a file, on zram, behind zswap.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use coldframe_kernel::{SwapKind, Tree};
use coldframe_sheet::quantity::{self, ram_size};
use serde_json::Value;

use crate::compare_table::{Arm, At, Found, Run};
use crate::failure::Failure;
use crate::output;
use crate::pick_recorder::pageable;
use crate::recording_end::Signals;
use crate::run::default_backing;
use crate::run_kernel::ready;

/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(2);
/// More RAM than any program here needs, to measure how much it does.
const ALL: &str = "1TiB";

/// Run a program in less RAM with our pager and with the kernel's swap, and say which is fastest.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe compare --ram 50%,33% -- sort -o sorted numbers.txt
  coldframe compare --ram 64MiB --runs 5 --format json -- python3 script.py

The program runs once with all of its memory under a pager, which measures how much that is, and then --runs times \
plain and --runs times for each size and each way of paging, in turn. All that it does happens each time. --ram means the \
same everywhere (see `coldframe run --help`), so the memory is equal; compressed pages are inside it. Ways that this \
machine cannot give are left out, and the reason is printed: the kernel's swap needs root, or swap that is on. If the \
standard input is a file, each run reads it from its start; otherwise it is empty. The standard output of each run is \
compared with that of the first plain run, unless the plain runs differ themselves.

Exit codes: 0 a way was fastest; 1 no way gave the plain run's output; 2 usage; 4 nobody can page the program here; 126 and \
127 as in shells.")]
pub struct Args {
    /// Sizes of RAM: of the program's memory, or absolute.
    #[arg(long, value_delimiter = ',', default_value = "50%,33%")]
    ram: Vec<String>,
    /// Runs of each kind.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// A run that takes longer is ended, and that way is not tried again at that size [default: 10 s and 10 times the plain run].
    #[arg(long)]
    patience: Option<String>,
    /// Folder for swap files, on the disk to measure [default: as for `coldframe run`].
    #[arg(long)]
    backing: Option<PathBuf>,
    /// How to print the results.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    crate::run::program(&args.command)?;
    // Before the program runs for minutes: these would be refused for any memory.
    args.ram.iter().try_for_each(|text| size(text, 1 << 40).map(drop))?;
    let folder = tempfile::Builder::new()
        .prefix("coldframe-compare-")
        .tempdir_in(args.backing.clone().unwrap_or_else(default_backing));
    let folder = folder.map_err(|e| Failure::Other {
        message: format!("no folder for swap files: {e}; give --backing a folder that you may write to"),
        code: 5,
    })?;
    let bench = Bench { program: &args.command, folder: folder.path(), signals: Signals::catch()?, quiet };
    let (mut arms, lacking) = arms(&args.command, folder.path());
    if arms.is_empty() {
        return Err(Failure::Other { message: lacking.join("; "), code: 4 });
    }
    let backing = args.backing.clone().unwrap_or_else(default_backing);
    arms.iter_mut().for_each(|arm| paste(arm, &backing, args.backing.is_some()));
    let first = bench.plain(None)?;
    let patience = match &args.patience {
        Some(text) => Duration::from_nanos(time(text)?),
        None => Duration::from_secs(10) + 10 * Duration::from_secs_f64(first.seconds),
    };
    let memory = bench.memory(&arms[0], patience)?;
    let sizes = args.ram.iter().map(|text| size(text, memory)).collect::<Result<Vec<_>, _>>()?;
    let mut found = Found { memory, plain: vec![first], sizes: Vec::new(), lacking };
    found.sizes = sizes.iter().map(|ram| At { ram: *ram, arms: arms.clone() }).collect();
    let expected = bench.output("plain")?;
    for turn in 0..args.runs {
        if turn > 0 {
            found.plain.push(bench.plain(Some(&expected))?);
        }
        for at in &mut found.sizes {
            for arm in at.arms.iter_mut().filter(|arm| arm.goes_on()) {
                let run = bench.paged(arm, at.ram, patience, &expected);
                if bench.signals.came() {
                    return Err(Failure::Other { message: "stopped; nothing is left behind".into(), code: 130 });
                }
                match run {
                    Ok(run) => arm.runs.push(run),
                    Err(why) => arm.failed = Some(why.to_string()),
                }
            }
        }
    }
    let said = match args.format.as_str() {
        "json" => output::json(&found.json(&args.command)),
        _ => found.words(&args.command),
    };
    // Its lines fit already, and the command must not be broken inside a word.
    output::exact(None, &said)?;
    Ok(ExitCode::from(u8::from(found.best().is_none())))
}

/// The ways of paging that this machine can give, and why it cannot give the others.
fn arms(program: &[OsString], folder: &Path) -> (Vec<Arm>, Vec<String>) {
    let (mut arms, mut lacking) = (Vec::new(), Vec::new());
    match pageable(program) {
        Ok(()) => arms.push(Arm::new("pager", &["--by", "pager"], Some(folder))),
        Err(why) => lacking.push(format!("our pager: {why}")),
    }
    let file = folder.join("swap");
    let made = [
        ("kernel, file", SwapKind::File(file.clone())),
        ("kernel, zram", SwapKind::Zram),
        ("kernel, zswap", SwapKind::Zswap(file)),
    ];
    if rustix::process::geteuid().is_root() {
        for (name, kind) in made {
            let there = kind.there(&Tree::machine()).map_err(Failure::from);
            match there.and_then(|()| ready(Some(kind.clone()))) {
                Ok(_) => arms.push(Arm::new(name, &["--by", "kernel", "--swap", &kind.to_string()], None)),
                Err(why) => lacking.push(format!("{name}: {why}")),
            }
        }
    } else {
        match ready(None) {
            Ok(_) => {
                arms.push(Arm::new("kernel", &["--by", "kernel"], None));
                lacking.push("the kernel's swap on a file, zram or zswap of its own: run it as root".into());
            }
            Err(_) => lacking.push("the kernel's swap: only root can make it here; run it as root".into()),
        }
    }
    (arms, lacking)
}

/// The options to paste: a swap file in the user's own folder.
fn paste(arm: &mut Arm, backing: &Path, given: bool) {
    let file = backing.join("coldframe.swap").display().to_string();
    for word in arm.pasted.iter_mut().filter(|word| word.contains('/')) {
        *word = if word.starts_with("zswap:") { format!("zswap:{file}") } else { file.clone() };
    }
    if given && arm.backing.is_some() {
        arm.pasted.extend(["--backing".into(), backing.display().to_string()]);
    }
}

fn time(text: &str) -> Result<u64, Failure> {
    quantity::time(text).map(|time| time.0 / 1000).map_err(|e| Failure::usage(format!("--patience: {e}")))
}

/// A size of RAM in bytes; a percentage is of the program's memory.
fn size(text: &str, memory: u64) -> Result<u64, Failure> {
    let bytes = match text.strip_suffix('%') {
        Some(percent) => percent
            .parse::<f64>()
            .ok()
            .filter(|percent| *percent > 0.0 && *percent <= 100.0)
            .map(|percent| (memory as f64 * percent / 100.0) as u64),
        None => Some(quantity::bytes(text).map_err(|e| Failure::usage(format!("--ram: {e}")))?.0),
    };
    let bytes = bytes.ok_or_else(|| Failure::usage(format!("--ram: {text}: give a size, or more than 0% to 100%")))?;
    // What `coldframe run` is told is a whole number of KiB, at least its least.
    Ok((bytes / 1024 * 1024).max(64 << 10))
}

struct Bench<'a> {
    program: &'a [OsString],
    folder: &'a Path,
    signals: Signals,
    quiet: bool,
}

impl Bench<'_> {
    fn plain(&self, expected: Option<&[u8]>) -> Result<Run, Failure> {
        self.tell("plain");
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]);
        let began = Instant::now();
        let mut child = self.start(&mut command, "plain")?;
        let status = child.wait().map_err(failed)?;
        let seconds = began.elapsed().as_secs_f64();
        let equal = expected.is_none_or(|expected| self.output("plain").is_ok_and(|bytes| bytes == expected));
        Ok(Run { seconds, status: crate::running::code(status), equal, ..Run::default() })
    }

    /// Bytes of memory that can leave: measured with a pager that lets all of it stay.
    fn memory(&self, arm: &Arm, patience: Duration) -> Result<u64, Failure> {
        let mut all = Arm { runs: Vec::new(), ..arm.clone() };
        all.words.retain(|word| word != "lz4");
        let stats = self.stats(&all, ALL, patience)?;
        if stats.is_null() {
            let message = format!("{}: with all of its memory it took too long; give more --patience", arm.name);
            return Err(Failure::Other { message, code: 4 });
        }
        let pages = stats.pointer("/counts/resident_max").and_then(Value::as_u64).map(|pages| pages * 4096);
        // Files stay in the cache when the program has ended, so what else was charged at most was its data.
        let bytes = |name: &str| stats.pointer(&format!("/memory/{name}")).and_then(Value::as_u64).unwrap_or(0);
        let data = bytes("peak_bytes").saturating_sub(bytes("files_bytes") + bytes("beside_bytes"));
        let memory = pages.unwrap_or(data);
        match memory {
            0 => Err(Failure::Other {
                message: format!("{} has no memory that can leave; give a larger program", arm.name),
                code: 4,
            }),
            bytes => Ok(bytes),
        }
    }

    fn paged(&self, arm: &Arm, ram: u64, patience: Duration, expected: &[u8]) -> Result<Run, Failure> {
        let stats = self.stats(arm, &ram_size(ram), patience)?;
        let number = |pointer: &str| stats.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let seconds = stats.pointer("/program/seconds").and_then(Value::as_f64);
        Ok(Run {
            seconds: seconds.unwrap_or(patience.as_secs_f64()),
            status: number("/program/status") as u8,
            equal: self.output("paged").is_ok_and(|bytes| bytes == expected),
            too_long: seconds.is_none(),
            killed: number("/counts/killed") > 0,
        })
    }

    /// The statistics of a run; null if it took too long.
    fn stats(&self, arm: &Arm, ram: &str, patience: Duration) -> Result<Value, Failure> {
        self.tell(&format!("{} in {ram}", arm.name));
        let path = self.folder.join("stats.json");
        let _ = std::fs::remove_file(&path);
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["-q", "run", "--ram", ram, "--stats"]).arg(&path).args(&arm.words);
        if let Some(folder) = &arm.backing {
            command.arg("--backing").arg(folder);
        }
        let mut child = self.start(command.arg("--").args(self.program), "paged")?;
        let until = Instant::now() + patience;
        while child.try_wait().map_err(failed)?.is_none() {
            if Instant::now() > until || self.signals.came() {
                end(&mut child).map_err(failed)?;
                return Ok(Value::Null);
            }
            std::thread::sleep(LOOK);
        }
        let said = std::fs::read_to_string(self.folder.join("errors")).unwrap_or_default();
        let text = std::fs::read_to_string(&path).map_err(|_| Failure::Other {
            message: format!(
                "{}: {}",
                arm.name,
                match said.lines().last() {
                    Some(line) => line.trim_start_matches("error: "),
                    None => "it ended without statistics",
                }
            ),
            code: 4,
        })?;
        serde_json::from_str(&text).map_err(|e| Failure::Other { message: format!("a run's statistics: {e}"), code: 5 })
    }

    fn start(&self, command: &mut Command, output: &str) -> Result<Child, Failure> {
        let create = |name: &str| File::create(self.folder.join(name)).map_err(failed);
        command.stdin(input()).stdout(create(output)?).stderr(create("errors")?);
        command.spawn().map_err(|e| Failure::Other {
            message: format!("{} cannot be started: {e}", self.program[0].display()),
            code: 126,
        })
    }

    fn output(&self, name: &str) -> Result<Vec<u8>, Failure> {
        std::fs::read(self.folder.join(name)).map_err(failed)
    }

    fn tell(&self, what: &str) {
        if !self.quiet {
            output::tell(&format!("coldframe: {what}\n"));
        }
    }
}

/// Ends a run: coldframe passes the signal on. What ignores it is killed after a while; what was made for it goes
/// when its processes have ended.
fn end(child: &mut Child) -> std::io::Result<()> {
    let pid = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    let until = Instant::now() + Duration::from_secs(10);
    while child.try_wait()?.is_none() && Instant::now() < until {
        std::thread::sleep(LOOK);
    }
    let _ = child.kill();
    child.wait().map(drop)
}

/// A file is read by each run from its start. Anything else can be read only once, so it is not read at all.
fn input() -> Stdio {
    let own = File::open("/proc/self/fd/0").ok();
    own.filter(|file| file.metadata().is_ok_and(|data| data.is_file())).map_or_else(Stdio::null, Stdio::from)
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Other { message: format!("compare: {error}; is the disk full?"), code: 5 }
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
