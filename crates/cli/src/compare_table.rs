//! The results of `coldframe compare`: a table, the fastest way, the command to paste.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use coldframe_device::quantity::{human_seconds, human_size, ram_size};
use coldframe_show::table::{styled, wrap};
use serde_json::{json, Value};

/// Columns of a line.
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
    /// The folder of its swap file.
    pub backing: Option<PathBuf>,
    /// Its runs.
    pub runs: Vec<Run>,
}

impl Arm {
    /// Without runs.
    pub fn new(name: &'static str, words: &[&str], backing: Option<&Path>) -> Arm {
        let words = words.iter().map(ToString::to_string).collect();
        Arm { name, words, backing: backing.map(Into::into), runs: Vec::new() }
    }

    /// What became of the runs' output, beside a plain run that ends with this code: the worst first.
    fn output(&self, plain: u8) -> String {
        let count = |is: &dyn Fn(&Run) -> bool| self.runs.iter().filter(|run| is(run)).count();
        let (killed, late) = (count(&|run| run.killed), count(&|run| run.too_long));
        let other = count(&|run| !run.equal || run.status != plain);
        match (killed, late, other) {
            (0, 0, 0) => "same".into(),
            (0, 0, n) => format!("{n} of {} other", self.runs.len()),
            (0, n, _) => format!("{n} of {} late", self.runs.len()),
            (n, ..) => format!("{n} of {} killed", self.runs.len()),
        }
    }

    /// The median of the runs that ended as the plain one did; `None` if one did not.
    fn time(&self, plain: u8) -> Option<f64> {
        let well = |run: &Run| run.equal && run.status == plain && !run.too_long && !run.killed;
        (self.runs.iter().all(well)).then(|| median(&self.runs))
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

fn sorted(runs: &[Run]) -> Vec<f64> {
    let mut seconds: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

fn median(runs: &[Run]) -> f64 {
    let seconds = sorted(runs);
    match seconds.len() {
        0 => 0.0,
        n => (seconds[(n - 1) / 2] + seconds[n / 2]) / 2.0,
    }
}

fn range(runs: &[Run]) -> String {
    let seconds = sorted(runs);
    match (seconds.first(), seconds.last()) {
        (Some(least), Some(most)) => format!("{least:.2} to {most:.2}"),
        _ => "-".into(),
    }
}

impl Found {
    /// The fastest way over all sizes, and its time as a multiple of the plain run's: the geometric mean over the sizes.
    /// Only ways whose runs all ended as the plain run did. `None`: there is no such way.
    pub fn best(&self) -> Option<(&Arm, f64)> {
        let (plain, status) = (median(&self.plain).max(1e-9), self.plain.first()?.status);
        let arms = &self.sizes.first()?.arms;
        let mean = |arm: &Arm| {
            let at = |at: &At| at.arms.iter().find(|other| other.name == arm.name)?.time(status);
            let times: Option<Vec<f64>> = self.sizes.iter().map(at).collect();
            times.map(|times| (times.iter().map(|time| (time / plain).ln()).sum::<f64>() / times.len() as f64).exp())
        };
        let means = arms.iter().filter_map(|arm| Some((arm, mean(arm)?)));
        means.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// As text.
    pub fn words(&self, program: &[OsString]) -> String {
        let plain = median(&self.plain);
        let rows =
            self.sizes.iter().flat_map(|at| at.arms.iter().map(move |arm| self.row(at.ram, arm, plain))).collect();
        let headings = ["RAM", "paged by", "s", "range, s", "x plain", "output"];
        let head = format!(
            "plain: {} ({} s); {} of memory that can leave; {} runs of each kind, in turn",
            human_seconds(plain),
            range(&self.plain),
            human_size(self.memory),
            self.plain.len(),
        );
        let table = styled(&headings, rows, 2).within(WIDTH).0;
        let mut text = format!("{}\n\n{table}\n", wrap("", &head, 0, WIDTH).join("\n"));
        for lacking in &self.lacking {
            text += &(wrap("", &format!("Left out: {lacking}."), 2, WIDTH).join("\n") + "\n");
        }
        text + &self.fastest(program)
    }

    fn fastest(&self, program: &[OsString]) -> String {
        let Some((arm, times)) = self.best() else {
            return "No way gave the plain run's output in each run.\n".into();
        };
        let said = format!("Fastest with equal memory: {}, {times:.2} times the plain run's time.", arm.name);
        let ram = self.sizes.first().map_or(0, |at| at.ram);
        format!("{}\n  {}\n", wrap("", &said, 0, WIDTH).join("\n"), command(arm, ram, program))
    }

    fn row(&self, ram: u64, arm: &Arm, plain: f64) -> Vec<String> {
        let status = self.plain.first().map_or(0, |run| run.status);
        let percent = 100.0 * ram as f64 / self.memory.max(1) as f64;
        vec![
            format!("{} {percent:.0} %", human_size(ram)),
            arm.name.into(),
            format!("{:.2}", median(&arm.runs)),
            range(&arm.runs),
            format!("{:.2}", median(&arm.runs) / plain.max(1e-9)),
            arm.output(status),
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
        let arm = |ram: u64, arm: &Arm| {
            json!({ "by": arm.name, "median_seconds": median(&arm.runs), "command": command(arm, ram, program),
                    "runs": runs(&arm.runs) })
        };
        let size = |at: &At| json!({ "ram_bytes": at.ram, "arms": at.arms.iter().map(|one| arm(at.ram, one)).collect::<Vec<_>>() });
        json!({
            "schema_version": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "program": program.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
            "memory_bytes": self.memory,
            "plain": { "median_seconds": median(&self.plain), "runs": runs(&self.plain) },
            "sizes": self.sizes.iter().map(size).collect::<Vec<_>>(),
            "left_out": self.lacking,
            "fastest": self.best().map(|(arm, times)| json!({ "by": arm.name, "times_plain": times })),
        })
    }
}

/// The command that runs the program so. A swap file lies where the user wants it.
fn command(arm: &Arm, ram: u64, program: &[OsString]) -> String {
    let words = arm.words.iter().map(|word| match word.split_once("/") {
        Some((kind, _)) => format!("{kind}SWAPFILE"),
        None => word.clone(),
    });
    let program = program.iter().map(|word| word.to_string_lossy().into_owned());
    let start = ["coldframe", "run", "--ram"].map(String::from).into_iter().chain([ram_size(ram)]);
    let all: Vec<String> = start.chain(words).chain(["--".into()]).chain(program).collect();
    shlex::try_join(all.iter().map(String::as_str)).unwrap_or_else(|_| all.join(" "))
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
        Found { memory: 4 << 20, plain, sizes: vec![at(2 << 20, 2.0, false), at(1 << 20, 8.0, true)], lacking: vec![] }
    }

    #[test]
    fn the_fastest_is_the_one_whose_runs_all_ended_well() {
        let found = found();
        let (best, times) = found.best().unwrap();
        // slow: 4/2 and 4/2. fast: 2/2 and 8/2, mean 2. dead is faster, but was killed at the second size.
        assert!(["slow", "fast"].contains(&best.name) && (times - 2.0).abs() < 1e-9, "{} {times}", best.name);
    }

    #[test]
    fn the_table_fits_80_columns_and_ends_with_the_command() {
        let text = found().words(&["sort".into(), "a b".into()]);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("1 of 1 killed") && text.contains("3.00 to 5.00"), "{text}");
        let last = text.lines().last().unwrap().trim();
        assert_eq!(last, "coldframe run --ram 2MiB --swap SWAPFILE -- sort 'a b'");
    }
}
