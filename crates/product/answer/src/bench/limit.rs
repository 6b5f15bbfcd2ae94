//! The plan of `check --max-ram`: the program alone, and in the RAM that it may have; both again where the times are
//! near the limit.
//!
//! ```text
//!   alone, seen by the user ─► (alone twice more if it is short) ─► in --max-ram ─┬─ clearly within, or not ─► verdict
//!                                 a turn of both again, at most REPEATS_NEAR ◄────┴─ near the limit
//! ```
//! If our pager is too slow, or the program ends otherwise under it, the kernel's swap is tried, where it can be. All
//! processes have that RAM together.

use coldframe_sheet::quantity::human_size;

use super::log::RunLog;
use super::plan::{Course, Plan};
use super::rules::{is_near, is_short, longest, NEAR, REPEATS_NEAR};
use super::runner::Ways;
use super::trial::{Outcome, Refusal, Trial};
use crate::listener::Listener;
use crate::predict::record::ELSEWHERE;
use crate::run::runs::{By, Run, Runs, Way};

/// Seconds after which nothing is measured again.
const LONG: f64 = 120.0;
/// A run in less RAM is ended after this many times the limit, and a second.
const PATIENCE: f64 = 2.0;

/// Runs the program alone and in its RAM.
pub struct InLimit {
    /// Who can page the program.
    pub ways: Ways,
    /// The most RAM.
    pub ram_bytes: u64,
    /// The longest extra time, as a part of the time alone.
    pub slowdown: f64,
}

/// Whether single runs are on both sides of the limit.
pub fn is_open(plain: &Runs, paged: &Runs, slowdown: f64) -> bool {
    let ends = |runs: &Runs| runs.range().unwrap_or((runs.seconds, runs.seconds));
    let ((low, high), (least, most)) = (ends(plain), ends(paged));
    paged.failed.is_none() && !paged.more && least <= longest(high, slowdown) && most > longest(low, slowdown)
}

/// Whether more runs are needed. Less RAM makes no program faster: then other work has disturbed the runs alone.
fn needs_more(plain: &Runs, paged: &Runs, slowdown: f64) -> bool {
    let ended = paged.failed.is_none() && !paged.more;
    let disturbed = paged.seconds < (1.0 - NEAR) * plain.seconds;
    is_open(plain, paged, slowdown) || ended && (disturbed || is_near(paged, longest(plain.seconds, slowdown)))
}

/// The runs alone, and those in the limit; `None`: the program cannot be run again, or nobody can page it here.
type Both = Option<(Runs, Runs)>;
/// What a step has, or why there is no verdict.
type Attempt<T> = Result<Result<T, Refusal>, Trial>;

impl Plan for InLimit {
    type Result = Result<Both, Refusal>;

    fn decide(&self, course: &mut Course) -> Attempt<Both> {
        let first = match alone(course, Trial { shown: true, ..Trial::plain(None) })? {
            Ok(run) => run,
            Err(why) => return Ok(Err(why)),
        };
        let (pager, kernel) = (self.ways.pager.as_ref().ok(), self.ways.kernel.as_ref().ok());
        let Some(way) = pager.or(kernel).filter(|_| first.input_lost.is_none()) else { return Ok(Ok(None)) };
        while is_short(&course.runs().plain()) {
            if let Err(why) = alone(course, Trial::plain(None))? {
                return Ok(Err(why));
            }
        }
        let both = match self.by(course, way, &first)? {
            Ok(both) => both,
            Err(why) => return Ok(Err(why)),
        };
        let is_within = |both: &(Runs, Runs)| both.1.within(longest(both.0.seconds, self.slowdown));
        // The kernel takes no time to start, and serves memory that our pager does not.
        let Some(kernel) = kernel.filter(|_| way.by == By::Pager && !both.as_ref().is_some_and(is_within)) else {
            return Ok(Ok(both));
        };
        let other = match self.by(course, kernel, &first)? {
            Err(why) if both.is_none() || course.runs().signal() => return Ok(Err(why)),
            other => other.ok().flatten(),
        };
        Ok(Ok(other.filter(|other| is_within(other) || both.is_none()).or(both)))
    }

    fn announce(&self, _: &RunLog, trial: &Trial, listener: &dyn Listener) {
        if let (Some(ram), false) = (trial.ram_bytes, trial.shown) {
            let by = if trial.way.by == By::Pager { "our pager" } else { "the kernel" };
            listener.progress(0, None, &format!("running it in {} by {by}", human_size(ram)));
        }
    }
}

impl InLimit {
    /// Runs by one pager, and more runs alone. `None`: our pager does not serve its memory.
    fn by(&self, course: &mut Course, way: &Way, first: &Run) -> Attempt<Both> {
        let (ram, slowdown) = (self.ram_bytes, self.slowdown);
        loop {
            let patience = 1.0 + PATIENCE * longest(course.runs().plain().seconds, slowdown);
            let run = match course.run(Trial::paged(way, ram, patience))? {
                Outcome::Ran(run) => run,
                Outcome::Refused(why) => return Ok(Err(why.clone())),
                Outcome::Signal => return Ok(Err(Refusal::stopped())),
            };
            let elsewhere = first.peak_bytes > (1 + ELSEWHERE) * run.managed_bytes;
            let (plain, paged) = both(course, way, ram);
            if run.evicted_nothing && paged.runs.len() == 1 && first.peak_bytes > ram && elsewhere {
                return Ok(Ok(None));
            }
            let late = paged.runs.len() >= REPEATS_NEAR || course.now() > LONG;
            // Whether the program or its pager changes the output, a second run alone tells.
            let one_output =
                paged.failed.is_some() && plain.runs.len() == 1 && run.status == first.status && !run.killed;
            if !one_output && (late || !needs_more(&plain, &paged, slowdown)) {
                return Ok(Ok(Some((plain, paged))));
            }
            if one_output || plain.runs.len() <= paged.runs.len() {
                if let Err(why) = alone(course, Trial::plain(None))? {
                    return Ok(Err(why));
                }
            }
            let (plain, paged) = both(course, way, ram);
            if one_output && !needs_more(&plain, &paged, slowdown) {
                return Ok(Ok(Some((plain, paged))));
            }
        }
    }
}

fn both(course: &Course, way: &Way, ram: u64) -> (Runs, Runs) {
    let runs = course.runs();
    (runs.plain(), runs.paged(way, ram).unwrap_or_default())
}

/// A run alone, which must succeed.
fn alone(course: &mut Course, trial: Trial) -> Attempt<Run> {
    Ok(match course.run(trial)? {
        Outcome::Signal => Err(Refusal::stopped()),
        Outcome::Refused(why) => Err(why.clone()),
        Outcome::Ran(run) if run.status == 0 => Ok(run.clone()),
        Outcome::Ran(run) => {
            let code = run.status;
            let message =
                format!("the program ended with exit code {code}, so there is no verdict: mend it, and check again");
            Err(Refusal::new(3, message))
        }
    })
}
