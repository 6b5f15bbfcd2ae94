//! The plan of `check`: the program alone, and in its limit; both in turn until enough was seen.
//!
//! ```text
//!   (alone, seen by the user) ─► alone ─► in the limit ─┬─ killed, clearly within, or clearly not ─► verdict
//!                                  ▲                    │
//!                                  └────────────────────┴─ near the limit, at most REPEATS_NEAR times
//! ```
//! All runs are in memory groups, and files that the program maps leave the page cache before each of them, as in a
//! fresh container.

use std::path::PathBuf;
use std::rc::Rc;

use coldframe_sheet::quantity::human_size;

use super::evidence::{Evidence, Judgement};
use super::limit_answer::{ending, KILLED};
use super::log::RunLog;
use super::plan::{Course, Plan};
use super::rules::{DELAYED, REPEATS_NEAR};
use super::trial::{Outcome, Refusal, Trial};
use crate::listener::Listener;
use crate::predict::question::Limits;
use crate::run::runs::{Run, Way};

/// Seconds after which nothing is measured again.
const LONG: f64 = 120.0;
/// A run in a limit is ended after this many times the longest good run, and a second.
const PATIENCE: f64 = 2.0;

/// Runs the program alone and in its limit.
pub struct InLimit {
    /// The limit, and the swap that there is; `None`: the program runs alone, once.
    pub limit: Option<(Way, u64)>,
    /// The longest extra time, as a part of the time alone.
    pub slowdown: f64,
    /// The files that leave the cache first.
    pub cold: Rc<[PathBuf]>,
}

/// Nothing, or why there is no verdict.
type LimitEnd = Result<(), Refusal>;

impl Plan for InLimit {
    type Result = LimitEnd;

    fn decide(&self, course: &mut Course) -> Result<LimitEnd, Trial> {
        loop {
            let alone = course.run(Trial { cold: Rc::clone(&self.cold), ..Trial::plain(None) })?;
            if let Err(why) = succeeded(alone) {
                return Ok(Err(why));
            }
            let Some((way, ram)) = &self.limit else { return Ok(Ok(())) };
            let longest = Limits::slower(Some(self.slowdown)).longest(course.runs().plain().seconds);
            let trial = Trial::paged(way, *ram, 1.0 + PATIENCE * longest);
            let trial = Trial { cold: Rc::clone(&self.cold), ..trial };
            match course.run(trial.clone())? {
                Outcome::Refused(why) => return Ok(Err(why.clone())),
                Outcome::Signal => return Ok(Err(Refusal::stopped())),
                Outcome::Ran(_) if course.now() < LONG && self.is_open(&course.runs(), &trial) => {}
                Outcome::Ran(_) => return Ok(Ok(())),
            }
        }
    }

    fn announce(&self, _: &RunLog, trial: &Trial, listener: &dyn Listener) {
        let limit = trial.ram_bytes.map_or("without a limit".into(), |ram| format!("in {}", human_size(ram)));
        listener.progress(0, None, &format!("running it {limit}"));
    }
}

impl InLimit {
    /// Whether another turn may say otherwise.
    fn is_open(&self, runs: &RunLog, trial: &Trial) -> bool {
        let limited = runs.like(trial).unwrap_or_default();
        let evidence = Evidence::judge(&runs.plain(), &limited, self.slowdown);
        let unclear = matches!(evidence.judgement, Judgement::CannotTell(_));
        // A slow run may have been delayed by other programs, and whether the program or its limit changes what it
        // does, a second run alone tells.
        let open = match ending(&limited) {
            Some(word) => word != KILLED && limited.runs.len() < 2,
            None => {
                let slow = limited.runs.len() < 2 || !limited.more && evidence.times < DELAYED;
                evidence.near || unclear || !evidence.within && slow
            }
        };
        open && limited.runs.len() < REPEATS_NEAR
    }
}

/// A run alone, which must succeed.
pub fn succeeded(outcome: &Outcome) -> Result<Run, Refusal> {
    match outcome {
        Outcome::Signal => Err(Refusal::stopped()),
        Outcome::Refused(why) => Err(why.clone()),
        Outcome::Ran(run) if run.status == 0 => Ok(run.clone()),
        Outcome::Ran(run) => {
            let code = run.status;
            let message =
                format!("the program ended with exit code {code}, so there is no verdict: mend it, and check again");
            Err(Refusal::new(3, message))
        }
    }
}
