//! `coldframe-soak MINUTES`: runs random settings for this many minutes. Exits with 1 if a setting failed.
//!
//! - `SOAK_JOBS=n`: settings that run at a time; by default the number of processors.
//! - `SOAK_SEED=n`: runs this one setting, again and again.
//! - `SOAK_FIRST=n`: the first seed; the following settings have the next seeds.
//! - `SOAK_DISK=folder`: a folder on a disk, for swap files. Other swap files are in /dev/shm, in memory.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use coldframe_live::Snapshot;
use coldframe_soak::setting::Setting;
use coldframe_soak::{run, watch};

/// A setting runs for this many milliseconds: long enough to go through its regions several times.
const SETTING_MS: std::ops::Range<u64> = 500..6000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--child") => child(&arguments[1..]),
        Some(minutes) => match minutes.parse::<f64>() {
            Ok(minutes) if minutes > 0.0 => soak(Duration::from_secs_f64(60.0 * minutes)),
            _ => usage(),
        },
        None => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: coldframe-soak MINUTES");
    ExitCode::from(2)
}

fn child(arguments: &[String]) -> ExitCode {
    let [seed, millis, stats, memory, disk] = arguments else { return usage() };
    let (Ok(seed), Ok(millis), Ok(stats)) = (seed.parse(), millis.parse(), stats.parse()) else { return usage() };
    run::run(&Setting::of(seed), millis, memory.as_ref(), disk.as_ref(), Some(stats));
    ExitCode::SUCCESS
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn soak(time: Duration) -> ExitCode {
    let end = Instant::now() + time;
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let (jobs, only) = (variable("SOAK_JOBS").unwrap_or(processors), variable("SOAK_SEED"));
    let next = AtomicU64::new(only.or(variable("SOAK_FIRST")).unwrap_or_else(|| fastrand::u64(..1 << 48)));
    println!("{jobs} settings at a time, the first has seed {}", next.load(Ordering::Relaxed));
    let (began, tally) = (Instant::now(), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| job(end, only, &next, &tally));
        }
    });
    let Tally { settings, faults, failures } = tally.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    println!("{faults} live faults in {settings} settings in {:.0} s", began.elapsed().as_secs_f64());
    println!("{} settings failed", failures.len());
    failures.iter().for_each(|failure| println!("  {failure}"));
    ExitCode::from(u8::from(!failures.is_empty()))
}

#[derive(Default)]
struct Tally {
    settings: u64,
    /// Faults that went through the fault handler.
    faults: u64,
    failures: Vec<String>,
}

fn job(end: Instant, only: Option<u64>, next: &AtomicU64, tally: &Mutex<Tally>) {
    let program = std::env::current_exe().expect("the soak's own path");
    let disk = std::env::var_os("SOAK_DISK")
        .map_or_else(|| program.parent().map(PathBuf::from).unwrap_or_default(), PathBuf::from);
    let memory = PathBuf::from("/dev/shm");
    while Instant::now() < end {
        let seed = only.unwrap_or_else(|| next.fetch_add(1, Ordering::Relaxed));
        let setting = Setting::of(seed);
        let left = end.saturating_duration_since(Instant::now()).as_millis() as u64;
        let millis = fastrand::u64(SETTING_MS).min(left.max(SETTING_MS.start));
        let done = watch::watch(&program, &setting, millis, &memory, &disk);
        let Snapshot { true_faults, false_faults, write_faults, .. } = done.stats;
        let faults = true_faults + false_faults + write_faults;
        let word = if done.failure.is_some() { "FAILED" } else { "good" };
        println!("{word} {faults:>9} faults in {millis:>4} ms, {setting}");
        let mut tally = tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        (tally.settings, tally.faults) = (tally.settings + 1, tally.faults + faults);
        if let Some(why) = done.failure {
            println!("    {why}");
            // The stacks of a setting that hung have been printed already.
            tally.failures.push(format!("{setting}\n    {}", why.lines().next().unwrap_or_default()));
        }
    }
}
