//! The first plan of an answer: the program alone, three times if it takes less than a second, else once.

use std::path::PathBuf;
use std::rc::Rc;

use super::log::RunLog;
use super::plan::{Course, Plan};
use super::rules::is_short;
use super::trial::{Outcome, Trial};

/// The time that the whole answer may take: at least so many seconds, or so many times the program's own time.
const BUDGET: (f64, f64) = (30.0, 8.0);
/// Seconds of it for the last run's end, and for the page.
const PAGE_SECONDS: f64 = 1.5;
/// A program that takes longer is not run again, in seconds.
const LONGEST: f64 = 600.0;

/// Runs the program alone.
pub struct Alone {
    /// How long the first run took.
    pub first_seconds: f64,
    /// Files that leave the cache first.
    pub cold: Rc<[PathBuf]>,
}

/// What further runs are held against.
#[derive(Clone, PartialEq, Debug)]
pub struct Yardstick {
    /// The time of the program alone; `None`: it is not known, and there are no more runs.
    pub seconds: Option<f64>,
    /// All runs end by then, in seconds since the question was asked.
    pub until: f64,
    /// What to know of it, one sentence each.
    pub remarks: Vec<String>,
}

/// Seconds since the question was asked at which all runs end, if the program alone takes so many.
fn end(plain: f64) -> f64 {
    BUDGET.0.max(BUDGET.1 * plain) - PAGE_SECONDS
}

/// Why a program is not run again, if that is known from its recorded run. `seconds`: how long it took.
pub fn only_once(seconds: f64, input_lost: Option<&str>) -> Option<String> {
    if let Some(why) = input_lost {
        return Some(format!("{why}, so it was not run again"));
    }
    let long = format!("it took over {:.0} minutes, so it was not run again", LONGEST / 60.0);
    (seconds > LONGEST).then_some(long)
}

impl Plan for Alone {
    type Result = Yardstick;

    fn decide(&self, course: &mut Course) -> Result<Yardstick, Trial> {
        let until = end(self.first_seconds);
        let ended = |remark: String| Ok(Yardstick { seconds: None, until, remarks: vec![remark] });
        loop {
            let at_most = (until - course.now()).max(0.0);
            let run = match course.run(Trial { cold: Rc::clone(&self.cold), ..Trial::plain(Some(at_most)) })? {
                Outcome::Ran(run) => run,
                Outcome::Signal => {
                    return ended("stopped by a signal: further runs are missing".into());
                }
                Outcome::Refused(why) => {
                    return ended(format!("it could not be run again: {}", why.message));
                }
            };
            let runs = course.runs();
            let late = run.too_long.then(|| format!("it took over {:.0} s", run.seconds));
            if let Some(why) = late.or_else(|| unlike(&runs)) {
                let remark = format!("when it ran again, {why}: it was not run any more");
                return ended(remark);
            }
            let plain = runs.plain();
            if !is_short(&plain) {
                let (seconds, until) = (Some(plain.seconds), end(plain.seconds));
                return Ok(Yardstick { seconds, until, remarks: Vec::new() });
            }
        }
    }
}

/// How the last run ended otherwise than the one before. Runs alone whose outputs differ in words make no yardstick.
fn unlike(runs: &RunLog) -> Option<String> {
    let Some(Outcome::Ran(run)) = runs.entries().last().map(|entry| &entry.outcome) else { return None };
    let other = runs.varies().then(|| "its output was another one".to_owned());
    runs.unlike(run).map(|unlike| unlike.to_string()).or(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_cannot_be_run_again_is_known_by_its_input_and_its_time() {
        assert!(only_once(1.0, Some("it reads from the terminal")).unwrap().contains("terminal"));
        assert!(only_once(601.0, None).unwrap().contains("10 minutes") && only_once(599.0, None).is_none());
    }
}
