//! The results of `coldframe compare`: a table, the fastest way, the command to paste.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use coldframe_sheet::quantity::{human_seconds, human_size, ram_size};
use coldframe_show::table::styled;
use coldframe_show::text::wrap;
use serde_json::{json, Value};

use crate::output;

/// The most columns of a line.
const WIDTH: usize = 80;

/// One run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Wall time.
    pub seconds: f64,
    /// Exit code.
    pub status: u8,
    /// Its output is the first plain run's.
    pub equal: bool,
    /// It was ended because it took too long.
    pub too_long: bool,
    /// The kernel has killed a process for lack of memory.
    pub killed: bool,
}

/// A way of paging, and its runs.
#[derive(Debug, Clone)]
pub struct Arm {
    /// Its name.
    pub name: &'static str,
    /// Its options of `coldframe run`.
    pub words: Vec<String>,
    /// The options to paste: the swap file lies where the user has its own.
    pub pasted: Vec<String>,
    /// The folder of its swap file.
    pub backing: Option<PathBuf>,
    /// Its runs.
    pub runs: Vec<Run>,
    /// Why coldframe could not run it.
    pub failed: Option<String>,
}

impl Arm {
    /// Without runs.
    pub fn new(name: &'static str, words: &[&str], backing: Option<&Path>) -> Arm {
        let words: Vec<_> = words.iter().map(ToString::to_string).collect();
        Arm { name, pasted: words.clone(), words, backing: backing.map(Into::into), runs: Vec::new(), failed: None }
    }

    /// Whether more runs tell something: it has not failed, and none took too long.
    pub fn goes_on(&self) -> bool {
        self.failed.is_none() && !self.runs.iter().any(|run| run.too_long)
    }

    /// What became of the runs, beside a plain run that ends with this code: the worst first.
    fn output(&self, plain: &Plain) -> String {
        let (all, count) =
            (self.runs.len(), |is: &dyn Fn(&Run) -> bool| self.runs.iter().filter(|run| is(run)).count());
        let (killed, late) = (count(&|run| run.killed), count(&|run| run.too_long));
        match (killed, late, count(&|run| !plain.alike(run))) {
            _ if self.failed.is_some() => "failed".into(),
            (0, 0, 0) if plain.varies => "not compared".into(),
            (0, 0, 0) => "same".into(),
            (0, 0, n) => format!("{n} of {all} other"),
            (0, n, _) => format!("{n} of {all} late"),
            (n, ..) => format!("{n} of {all} killed"),
        }
    }

    /// The seconds of the runs that ended as the plain one did.
    fn well(&self, plain: &Plain) -> Vec<f64> {
        sorted(self.runs.iter().filter(|run| plain.alike(run)))
    }

    /// The median of the runs if all ended as the plain one did.
    fn time(&self, plain: &Plain) -> Option<f64> {
        let well = self.well(plain);
        (self.failed.is_none() && well.len() == self.runs.len()).then(|| median(&well)).flatten()
    }
}

/// What a run is held against.
struct Plain {
    seconds: f64,
    status: u8,
    /// Its output is another one each time.
    varies: bool,
}

impl Plain {
    fn alike(&self, run: &Run) -> bool {
        (run.equal || self.varies) && run.status == self.status && !run.too_long && !run.killed
    }
}

/// A size of RAM.
pub struct At {
    /// Bytes.
    pub ram: u64,
    /// The ways of paging.
    pub arms: Vec<Arm>,
}

/// All results.
pub struct Found {
    /// Bytes of the program's memory that can leave.
    pub memory: u64,
    /// The plain runs.
    pub plain: Vec<Run>,
    /// The sizes of RAM.
    pub sizes: Vec<At>,
    /// Why other ways were left out.
    pub lacking: Vec<String>,
}

fn sorted<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Vec<f64> {
    let mut seconds: Vec<f64> = runs.into_iter().map(|run| run.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

/// Of sorted seconds; `None`: there are none.
fn median(seconds: &[f64]) -> Option<f64> {
    let n = seconds.len();
    (n > 0).then(|| (seconds[(n - 1) / 2] + seconds[n / 2]) / 2.0)
}

fn range(seconds: &[f64]) -> String {
    match (seconds.first(), seconds.last()) {
        (Some(least), Some(most)) => format!("{least:.2} to {most:.2}"),
        _ => "-".into(),
    }
}

impl Found {
    fn plain(&self) -> Plain {
        Plain {
            seconds: median(&sorted(&self.plain)).unwrap_or(0.0).max(1e-9),
            status: self.plain.first().map_or(0, |run| run.status),
            varies: self.plain.iter().any(|run| !run.equal),
        }
    }

    /// The fastest way over all sizes, and its time as a multiple of the plain run's: the geometric mean over the sizes.
    /// Only ways whose runs all ended as the plain run did. `None`: there is no such way.
    pub fn best(&self) -> Option<(&Arm, f64)> {
        let plain = self.plain();
        let mean = |arm: &Arm| {
            let at = |at: &At| at.arms.iter().find(|other| other.name == arm.name)?.time(&plain);
            let times: Option<Vec<f64>> = self.sizes.iter().map(at).collect();
            times.map(|times| {
                (times.iter().map(|time| (time / plain.seconds).ln()).sum::<f64>() / times.len() as f64).exp()
            })
        };
        let means = self.sizes.first()?.arms.iter().filter_map(|arm| Some((arm, mean(arm)?)));
        means.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// As text.
    pub fn words(&self, program: &[OsString]) -> String {
        let plain = self.plain();
        let rows = self.sizes.iter().flat_map(|at| at.arms.iter().map(|arm| self.row(at.ram, arm, &plain))).collect();
        let headings = ["RAM", "paged by", "s", "range, s", "x plain", "output"];
        let head = format!(
            "plain: {} ({} s); {} of memory that can leave; {} runs of each kind, in turn",
            human_seconds(plain.seconds),
            range(&sorted(&self.plain)),
            human_size(self.memory),
            self.plain.len(),
        );
        // What became of the runs must be read, so it is the last that is dropped.
        let table = styled(&headings, rows, 2).least(&["x plain", "range, s"]);
        let mut text = said(0, &head) + &format!("\n{}\n", table.text(WIDTH.min(output::width())));
        for lacking in &self.lacking {
            text += &said(2, &format!("Left out: {lacking}."));
        }
        let arms = self.sizes.iter().flat_map(|at| &at.arms);
        for (arm, why) in arms.filter_map(|arm| Some((arm, arm.failed.as_ref()?))) {
            text += &said(2, &format!("Failed: {}: {why}.", arm.name));
        }
        text + &self.fastest(program, &plain)
    }

    fn fastest(&self, program: &[OsString], plain: &Plain) -> String {
        let Some((arm, times)) = self.best() else {
            return said(0, "No way ended as the plain run did, with its output, in each run at each size.");
        };
        let note = if plain.varies {
            " The plain run's output is another one each time, so outputs were not compared."
        } else {
            ""
        };
        let sentence = format!("Fastest with equal memory: {}, {times:.2} times the plain run's time.{note}", arm.name);
        let ram = self.sizes.first().map_or(0, |at| at.ram);
        format!("{}{}\n", said(0, &sentence), broken(&command(arm, ram, program)))
    }

    fn row(&self, ram: u64, arm: &Arm, plain: &Plain) -> Vec<String> {
        let percent = 100.0 * ram as f64 / self.memory.max(1) as f64;
        let (well, shown) = (arm.well(plain), |number: Option<f64>| number.map_or("-".into(), |n| format!("{n:.2}")));
        vec![
            format!("{} {percent:.0} %", human_size(ram)),
            arm.name.into(),
            shown(median(&well)),
            range(&well),
            shown(median(&well).map(|seconds| seconds / plain.seconds)),
            arm.output(plain),
        ]
    }

    /// As JSON.
    pub fn json(&self, program: &[OsString]) -> Value {
        let runs = |runs: &[Run]| -> Vec<Value> {
            let run = |run: &Run| {
                json!({ "seconds": run.seconds, "status": run.status, "equal": run.equal, "too_long": run.too_long,
                        "killed": run.killed })
            };
            runs.iter().map(run).collect()
        };
        let plain = self.plain();
        let arm = |ram: u64, arm: &Arm| {
            json!({ "by": arm.name, "median_seconds": median(&arm.well(&plain)), "failed": arm.failed,
                    "command": quoted(&command(arm, ram, program)).join(" "), "runs": runs(&arm.runs) })
        };
        let size = |at: &At| json!({ "ram_bytes": at.ram, "arms": at.arms.iter().map(|one| arm(at.ram, one)).collect::<Vec<_>>() });
        json!({
            "schema_version": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "program": program.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
            "memory_bytes": self.memory,
            "plain": { "median_seconds": plain.seconds, "varies": plain.varies, "runs": runs(&self.plain) },
            "sizes": self.sizes.iter().map(size).collect::<Vec<_>>(),
            "left_out": self.lacking,
            "fastest": self.best().map(|(arm, times)| json!({ "by": arm.name, "times_plain": times })),
        })
    }
}

/// The words of the command that runs the program so.
fn command(arm: &Arm, ram: u64, program: &[OsString]) -> Vec<String> {
    let program = program.iter().map(|word| word.to_string_lossy().into_owned());
    let start = ["coldframe", "run", "--ram"].map(String::from).into_iter().chain([ram_size(ram)]);
    start.chain(arm.pasted.iter().cloned()).chain(["--".into()]).chain(program).collect()
}

/// Words as a shell reads them.
fn quoted(words: &[String]) -> Vec<String> {
    words.iter().map(|word| shlex::try_quote(word).map_or_else(|_| word.clone(), |word| word.into_owned())).collect()
}

/// A command in lines that a shell reads as one.
fn broken(words: &[String]) -> String {
    let (width, mut text, mut column) = (WIDTH.min(output::width()), "  ".to_string(), 2);
    for (i, word) in quoted(words).iter().enumerate() {
        let long = word.chars().count();
        // A blank before the word, and a blank and a backslash behind it.
        if i > 0 && column + long + 3 > width {
            text += " \\\n     ";
            column = 5;
        }
        text += if i > 0 { " " } else { "" };
        text += word;
        column += long + usize::from(i > 0);
    }
    text
}

/// A paragraph.
fn said(indent: usize, text: &str) -> String {
    wrap("", text, indent, WIDTH.min(output::width())).join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(name: &'static str, seconds: &[f64], killed: bool) -> Arm {
        let run = |seconds: &f64| Run { seconds: *seconds, equal: true, killed, ..Run::default() };
        Arm { runs: seconds.iter().map(run).collect(), ..Arm::new(name, &["--swap", "/a/swap"], None) }
    }

    fn found() -> Found {
        let at = |ram, fast, killed| At {
            ram,
            arms: vec![arm("slow", &[3.0, 4.0, 5.0], false), arm("fast", &[fast], false), arm("dead", &[0.1], killed)],
        };
        let plain = arm("", &[1.0, 2.0, 9.0], false).runs;
        Found { memory: 4 << 20, plain, sizes: vec![at(2 << 20, 1.9, false), at(1 << 20, 7.0, true)], lacking: vec![] }
    }

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn the_fastest_is_the_one_whose_runs_all_ended_well() {
        let found = found();
        let (best, times) = found.best().unwrap();
        // slow: 4/2 and 4/2. fast: 1.9/2 and 7/2, mean 1.82. dead is faster, but was killed at the second size.
        assert!(best.name == "fast" && (times - (0.95f64 * 3.5).sqrt()).abs() < 1e-9, "{} {times}", best.name);
    }

    #[test]
    fn the_table_fits_80_columns_and_ends_with_the_command() {
        let mut found = found();
        let text = found.words(&["sort".into(), "a b".into()]);
        assert!(widest(&text) <= WIDTH, "{text}");
        assert!(text.contains("1 of 1 killed") && text.contains("3.00 to 5.00"), "{text}");
        assert_eq!(text.lines().last().unwrap().trim(), "coldframe run --ram 2MiB --swap /a/swap -- sort 'a b'");
        // The killed run has no time: it did not do the work.
        let dead = text.lines().filter(|line| line.contains("dead")).nth(1).unwrap();
        assert!(!dead.contains("0.10"), "{dead}");
        // Hours for a large program, in a way with a long name: what became of the runs is still there.
        found.memory = 999 << 30;
        found.sizes[0] = At { ram: 997 << 30, arms: vec![arm("kernel, zswap", &[98765.43, 99999.99], true)] };
        found.sizes[0].arms[0].runs[0].killed = false;
        let text = found.words(&["sort".into()]);
        assert!(widest(&text) <= WIDTH && text.contains("1 of 2 killed"), "{text}");
    }

    #[test]
    fn a_long_command_is_broken_so_that_a_shell_reads_it_whole() {
        let path = "/a/path/that/is/longer/than/any/line/of/a/terminal/because/somebody/likes/to/nest/folders/program"
            .to_string();
        let words: Vec<String> =
            ["coldframe", "run", "--", &path, "it's", "$HOME", "--an-option-of-some-length", "another one", "3"]
                .map(String::from)
                .into();
        let text = broken(&words);
        assert!(text.lines().count() > 2, "{text}");
        let shell = std::process::Command::new("sh").args(["-c", &format!("printf '%s\\n' {text}")]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&shell.stdout), words.join("\n") + "\n", "{text}");
    }

    #[test]
    fn runs_that_failed_or_print_another_output_each_time_are_told_apart() {
        let mut found = found();
        let differ = |run: &mut Run| run.equal = false;
        found.sizes.iter_mut().flat_map(|at| &mut at.arms).flat_map(|arm| &mut arm.runs).for_each(differ);
        found.sizes[1].arms[1].failed = Some("no space; give --backing".into());
        let text = found.words(&["sort".into()]);
        assert!(text.contains("3 of 3 other") && text.contains("Failed: fast: no space; give --backing."), "{text}");
        assert!(text.ends_with("at each size.\n") && found.best().is_none(), "{text}");
        found.plain[1].equal = false;
        let text = found.words(&["sort".into()]);
        assert!(found.best().is_some_and(|best| best.0.name == "slow") && text.contains("not compared"), "{text}");
    }
}
