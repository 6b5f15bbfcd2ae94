//! Runs numbers of jobs in a memory group. The decisions are in [`super::plan`].

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use coldframe_kernel::{SwapKind, Tree};
use coldframe_sheet::quantity::human_size;

use super::super::log::RunLog;
use super::super::plan::{carry_out, Runner};
use super::super::runner::{swap_folder, Bench};
use super::super::trial::{Outcome, Refusal, Trial};
use super::counted::{HowManyFit, NUMBER};
use super::plan::HowMany;
use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::by_kernel::ready;
use crate::run::program::{plain, Executable};
use crate::run::runs::Way;
use crate::run::signals::Signals;
use crate::run::streams::Streams;

/// Starts copies, and ends with the exit code of the last one that failed. Its numbers are its own, so that a copy can
/// have a port of its own.
const COPIES: &str = "n=$1; shift; i=0; p=
while [ $i -lt $n ]; do i=$((i+1)); COLDFRAME_COPY=$i \"$@\" & p=\"$p $!\"; done
s=0; for i in $p; do wait $i || s=$?; done; exit $s";
/// Numbers that are run if the user has not said how many: for each processor, and of a server.
const UP_TO: (u32, u32) = (4, 64);
/// The longest time that a server can be asked for.
const SERVED_MIN: Duration = Duration::from_millis(100);

/// What to fit.
pub struct FitOrder<'a> {
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// The RAM.
    pub ram_bytes: u64,
    /// The swap beside it, in the words of `run --swap`; `None`: none.
    pub swap: Option<&'a str>,
    /// It is a server, and lives if it runs for so long.
    pub served: Option<Duration>,
    /// What runs before each run, in a shell.
    pub prepare: Option<&'a str>,
    /// The largest number.
    pub up_to: Option<u32>,
}

/// Runs it again and again.
///
/// # Errors
/// There can be no such group; the program or `prepare` fails; a signal came; it does not do the same work each time.
pub fn fit(order: &FitOrder, listener: &dyn Listener) -> Result<HowManyFit, AnswerError> {
    order.check(Tree::machine().meminfo("MemTotal"))?;
    Executable::find(&numbered(order.command, 1))?;
    let swap = order.swap.map_or(SwapKind::None, SwapKind::parse);
    ready(Some(swap.clone()))?;
    let (folder, streams, signals) = (swap_folder()?, Streams::new()?, Signals::catch()?);
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let usual = if order.served.is_some() { UP_TO.1 } else { UP_TO.0 * processors };
    let plan = HowMany {
        program: order.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        way: Way::kernel(Some(swap.to_string())),
        ram_bytes: order.ram_bytes,
        served: order.served.map(|time| time.as_secs_f64()),
        prepare: order.prepare.map(Into::into),
        up_to: order.up_to.unwrap_or(usual),
    };
    let (mut runs, began) = (RunLog::default(), Instant::now());
    let mut bench = JobsBench { order, folder: folder.path(), streams: &streams, signals: &signals, began };
    let done = carry_out(&plan, &mut runs, &mut bench, listener);
    listener.finish();
    done.map_err(Refusal::into_error)?;
    Ok(plan.counted(&runs))
}

impl FitOrder<'_> {
    /// What cannot be fitted. `machine`: all of its RAM.
    fn check(&self, machine: u64) -> Result<(), AnswerError> {
        let (ram, words) = (human_size(self.ram_bytes), || self.command.iter().map(|word| word.to_string_lossy()));
        if self.ram_bytes > machine {
            let message = format!("--ram {ram} is more than the {} of this machine; give less", human_size(machine));
            return Err(AnswerError::usage(message));
        }
        if self.served.is_some_and(|time| time < SERVED_MIN) {
            return Err(AnswerError::usage(format!("--for: give at least {SERVED_MIN:?}")));
        }
        let other = ["{N}", "{}", "{j}", "{jobs}", "{i}"];
        let odd = words().find(|word| other.iter().any(|other| word.ends_with(other)));
        match odd.filter(|_| !words().any(|word| word.contains(NUMBER))) {
            Some(word) => Err(AnswerError::usage(format!("{word}: write {NUMBER} where the number stands"))),
            None => Ok(()),
        }
    }
}

/// The command with that number.
fn numbered(command: &[OsString], jobs: u32) -> Vec<OsString> {
    let with = |word: &OsString| match word.to_str() {
        Some(text) => text.replace(NUMBER, &jobs.to_string()).into(),
        None => word.clone(),
    };
    command.iter().map(with).collect()
}

/// The command that runs so many: with the number in it, or as copies.
fn command_for(command: &[OsString], jobs: u32) -> Vec<OsString> {
    let copies = !command.iter().any(|word| word.to_string_lossy().contains(NUMBER));
    let shell = ["/bin/sh", "-c", COPIES, "sh"].map(OsString::from).into_iter().chain([jobs.to_string().into()]);
    shell.filter(|_| copies).chain(numbered(command, jobs)).collect()
}

struct JobsBench<'a> {
    order: &'a FitOrder<'a>,
    folder: &'a Path,
    streams: &'a Streams,
    signals: &'a Signals,
    began: Instant,
}

impl Runner for JobsBench<'_> {
    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn run(&mut self, trial: &Trial) -> Outcome {
        let program =
            self.prepared().and_then(|()| Executable::find(&command_for(self.order.command, trial.jobs.unwrap_or(1))));
        match program {
            Err(_) if self.signals.came() => Outcome::Signal,
            Err(why) => Outcome::Refused(why.into()),
            Ok(program) => Bench {
                program: &program,
                folder: self.folder,
                streams: self.streams,
                signals: self.signals,
                began: self.began,
                in_group: true,
                mapped: Mutex::default(),
            }
            .run(trial),
        }
    }
}

impl JobsBench<'_> {
    /// Runs what comes before a run.
    fn prepared(&self) -> Result<(), AnswerError> {
        let Some(prepare) = self.order.prepare else { return Ok(()) };
        let words = ["/bin/sh", "-c", prepare].map(OsString::from);
        let done = plain(&words).stdin(Stdio::null()).stdout(Stdio::null()).status();
        let why = match done {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Err(AnswerError::new(3, format!("--prepare '{prepare}' failed ({why}); mend it, or leave it out")))
    }
}
