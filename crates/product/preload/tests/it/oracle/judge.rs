//! Runs the oracle's programs plain and paged, and reports the first difference.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use coldframe_live::{Options, StatsFile};

use crate::common::{self, fuse};

/// Classes that differ by the nature of the pager, as the book says: a debugger sees no bytes of a page that is not in
/// RAM; and the pager's own process is a child of the program for who is a subreaper.
pub const LIMITS: [&str; 2] = ["proc-mem", "pager-process"];
/// A program that takes longer hangs; plain, the programs take seconds. Paged on a busy machine, storms take a minute.
const PATIENCE: Duration = Duration::from_secs(180);

/// The time of a read of the file that is served.
const SERVED_SLOWLY: Duration = Duration::from_millis(3);

/// How a program is paged.
pub struct Setting {
    pub name: &'static str,
    /// RAM in KiB.
    pub ram: u64,
    pub handlers: usize,
    pub change: fn(&mut Options),
    /// Changes to the machine, also for the plain run.
    pub around: fn(&mut Command),
    /// Classes of operations that it refuses.
    pub without: &'static [&'static str],
}

/// The default setting; the others change parts of it.
pub const USUAL: Setting =
    Setting { name: "usual", ram: 2048, handlers: 2, change: |_| {}, around: |_| {}, without: &[] };

/// A program of the oracle.
#[derive(Clone)]
pub struct Case {
    pub seed: u64,
    pub steps: u32,
    pub without: Vec<String>,
}

/// The output and the end of a program.
struct Run {
    lines: Vec<String>,
    end: String,
    stderr: String,
}

/// The first line that differs.
struct Difference {
    line: usize,
    operation: String,
    /// Both lines, and the stderr.
    text: String,
}

pub struct Oracle {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Oracle {
    pub fn build() -> Oracle {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let program = folder.path().join("oracle");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/oracle");
        let mut files: Vec<_> = std::fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|end| end == "c"));
        files.sort();
        let built = Command::new("gcc")
            .args(["-O1", "-fno-builtin", "-pthread", "-w", "-Wl,-z,now", "-o"])
            .arg(&program)
            .args(files)
            .arg("-ldl")
            .status()
            .unwrap();
        assert!(built.success(), "the oracle does not compile");
        // For the programs that this thread starts; they do without where it cannot be mounted.
        fuse::serve(&folder.path().join("oracle.served"), true, SERVED_SLOWLY);
        Oracle { folder, program }
    }

    pub fn classes(&self) -> Vec<String> {
        let output = Command::new(&self.program).arg("classes").output().unwrap();
        let mut all: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect();
        all.retain(|class| !class.is_empty());
        all.sort();
        all.dedup();
        all
    }

    fn run(&self, case: &Case, setting: &Setting, paged: bool) -> Run {
        let out = self.folder.path().join("out");
        let err = self.folder.path().join("err");
        let mut command = Command::new(&self.program);
        command.args([case.seed.to_string(), case.steps.to_string(), case.without.join(",")]);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).process_group(0);
        command.stdout(std::fs::File::create(&out).unwrap()).stderr(std::fs::File::create(&err).unwrap());
        command.env_remove("LD_PRELOAD").env_remove("COLDFRAME_OPTIONS");
        (setting.around)(&mut command);
        // As `coldframe run` has it: a later program that cannot page runs without.
        let stats = paged.then(|| StatsFile::create().unwrap());
        if let Some(stats) = &stats {
            let mut options = Options::new(setting.ram << 10);
            options.stats_fd = Some(stats.fd());
            options.handlers = setting.handlers;
            options.backing = self.folder.path().to_path_buf();
            (setting.change)(&mut options);
            command.env("LD_PRELOAD", common::library()).env("COLDFRAME_OPTIONS", options.encode());
        }
        let end = patiently(command);
        let text = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        // What the pager printed when the program had no stderr.
        let (mut stderr, mut mail) = (text(&err), 0);
        while let Some(line) = stats.as_ref().and_then(|stats| stats.mail().next(&mut mail)) {
            stderr += &line;
        }
        Run { lines: text(&out).lines().map(str::to_string).collect(), end, stderr }
    }

    /// The first difference between the two runs.
    fn difference(&self, case: &Case, setting: &Setting) -> Option<Difference> {
        let (plain, paged) = (self.run(case, setting, false), self.run(case, setting, true));
        if plain.lines == paged.lines && plain.end == paged.end {
            return None;
        }
        let at = plain.lines.iter().zip(&paged.lines).take_while(|(a, b)| a == b).count();
        let line = |run: &Run| run.lines.get(at).cloned().unwrap_or_else(|| format!("(ended: {})", run.end));
        let (one, other) = (line(&plain), line(&paged));
        let operation = one.split(' ').nth(1).unwrap_or_default().to_string();
        let again = self.run(case, setting, false);
        let alike =
            if (&again.lines, &again.end) == (&plain.lines, &plain.end) { "" } else { ", and so do two plain runs" };
        // The last line says why the pager stopped it.
        let lines: Vec<_> = paged.stderr.lines().collect();
        let stderr: Vec<_> = lines.iter().rev().take(6).rev().map(|line| format!("    {line}\n")).collect();
        let text = format!(
            "  plain: {}\n  paged: {}{alike}\n  ended: {}\n{}",
            around_the_difference(&one, &other),
            around_the_difference(&other, &one),
            paged.end,
            stderr.concat()
        );
        Some(Difference { line: at + 1, operation, text })
    }

    /// Looks for a failure of the same operation with fewer classes of operations, for up to a minute.
    fn smaller(&self, case: &Case, setting: &Setting, failed: &str) -> (Case, String) {
        let start = Instant::now();
        let (mut case, mut text) = (case.clone(), String::new());
        for class in self.classes() {
            if start.elapsed() > Duration::from_secs(60) {
                break;
            }
            let mut fewer = case.clone();
            fewer.without.push(class);
            match self.difference(&fewer, setting) {
                Some(found) if found.operation == failed => (case, text) = (fewer, found.text),
                _ => (),
            }
        }
        (case, text)
    }

    /// `None` if the two runs are equal; otherwise all that is needed to repeat the difference.
    pub fn judge(&self, case: &Case, setting: &Setting) -> Option<String> {
        let Difference { line, operation, text } = self.difference(case, setting)?;
        let again = |case: &Case| {
            let Case { seed, steps, without } = case;
            let without = without.join(",");
            format!("ORACLE_SEED={seed} ORACLE_STEPS={steps} ORACLE_SETTING={} ORACLE_WITHOUT={without}", setting.name)
        };
        let mut all = format!("line {line} differs, again with {}\n{text}", again(case));
        if std::env::var_os("ORACLE_SEED").is_none() {
            let (smaller, text) = self.smaller(case, setting, &operation);
            all += &format!("  and with fewer classes: {}\n{text}", again(&smaller));
        }
        Some(all)
    }
}

/// The start of a line, and the part of it where it begins to differ from another one.
fn around_the_difference(line: &str, other: &str) -> String {
    let (line, other): (Vec<char>, Vec<char>) = (line.chars().collect(), other.chars().collect());
    let same = line.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let part = |from: usize, to: usize| line[from.min(line.len())..to.min(line.len())].iter().collect::<String>();
    match same {
        0..150 => part(0, 300),
        _ => format!("{} ... {}", part(0, 60), part(same - 80, same + 160)),
    }
}

/// Runs to the end, or kills the program and its children. Returns how it ended.
fn patiently(mut command: Command) -> String {
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if start.elapsed() > PATIENCE => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    // SAFETY: a signal to the group that this test has made.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
    let _ = child.wait();
    status.map_or_else(|| format!("hung for {PATIENCE:?}"), how)
}

fn how(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit {}", status.code().unwrap_or(-1)),
    }
}
