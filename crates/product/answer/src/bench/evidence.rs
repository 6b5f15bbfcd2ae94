//! The one judgement on measured runs: whether they are enough evidence for a *yes*, a *no*, a recommendation or a line
//! to paste; and by which clock they are compared.

use std::fmt;

use super::rules::{DELAYED, NEAR, REPEATS};
use crate::predict::question::Limits;
use crate::run::looks::group::GroupUse;
use crate::run::runs::{median, By, Run, Runs};

/// Other programs that use so many processors may have delayed a run: without a limit, and in one, where the kernel's
/// own threads work for it. Guesses, above what this machine's own services use.
const OTHERS: (f64, f64) = (0.2, 0.5);
/// The part of the allowed slowdown that a wait for processors may be, before the clock decides nothing.
const WAITED: f64 = 0.25;

/// A program of whose memory less than this part, by so many bytes, cannot leave in a limit without swap has taken less
/// itself.
const SMALLER_HEAP: (f64, u64) = (0.8, 8 << 20);

/// How likely a size is too small after one run that ended otherwise than alone.
const DIED: f64 = 0.999;
/// After one that took too long by far.
const LATE: f64 = 0.97;
/// At least, after any other run, and at most: chance makes a run slow more often than fast. Fitted on a fake machine
/// with noise (`bench/fit/tests.rs`).
const DOUBT: (f64, f64) = (0.05, 0.75);
/// A run that is nearer than this part to the longest time that is fast enough says little.
const UNCLEAR: f64 = 0.04;

/// Whether a program takes less by itself in a limit: by the most that could not leave at one time. What it had at its
/// peak says less: in a limit that moment comes while files fill it.
pub fn takes_less(alone: &GroupUse, limited: &GroupUse) -> bool {
    let less = alone.fixed_bytes.saturating_sub(limited.fixed_bytes);
    less >= SMALLER_HEAP.1 && (limited.fixed_bytes as f64) < SMALLER_HEAP.0 * alone.fixed_bytes as f64
}

/// By what runs are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// The run time.
    Time,
    /// Processor time of the group and its waits for memory: other programs had the processors.
    Work,
}

impl Clock {
    /// By which clock runs are compared whose slowdown may be so large a part.
    pub fn choose(plain: &Runs, runs: &Runs, slowdown: f64) -> Clock {
        let delayed = |run: &Run, others: f64| {
            run.group.is_some_and(|group| {
                group.others > others && group.waited_seconds.unwrap_or(0.0) > WAITED * slowdown * run.seconds
            })
        };
        let counted = |run: &Run| run.group.and_then(|group: GroupUse| group.worked_seconds).is_some();
        let busy =
            plain.runs.iter().any(|run| delayed(run, OTHERS.0)) || runs.runs.iter().any(|run| delayed(run, OTHERS.1));
        if busy && plain.runs.iter().chain(&runs.runs).all(counted) {
            Clock::Work
        } else {
            Clock::Time
        }
    }

    /// Of a run, in seconds.
    fn read(self, run: &Run) -> f64 {
        match (self, run.group.and_then(|group| group.worked_seconds)) {
            (Clock::Work, Some(worked)) => worked,
            _ => run.seconds,
        }
    }

    /// Of runs, the shortest first.
    fn sorted(self, runs: &Runs) -> Vec<f64> {
        let mut times: Vec<f64> = runs.runs.iter().map(|run| self.read(run)).collect();
        times.sort_by(f64::total_cmp);
        times
    }
}

/// What runs say.
#[derive(Clone, PartialEq, Debug)]
pub enum Judgement {
    /// The program ends as alone, and is fast enough.
    Yes,
    /// It does not.
    No,
    /// Not enough was seen.
    CannotTell(Lack),
}

/// What is missing for a yes or a no.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Lack {
    /// There is no run.
    Runs,
    /// There is one run alone and one in the limit, and they are too near to the limit.
    Repeats,
    /// The program sizes itself by its limit, and no limit that was tried was large enough.
    Larger,
    /// The program's own time varies by more than the slowdown that is asked for: by so large a part.
    Noise(f64),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Larger => f.write_str("it sizes itself by its limit, and is slower in all that were tried"),
            Lack::Runs => f.write_str("no run in less RAM has ended"),
            Lack::Repeats => f.write_str("single runs are too near to the limit, and no time was left for more"),
            Lack::Noise(part) => write!(f, "its own time varies by {:.0} % from run to run", 100.0 * part),
        }
    }
}

/// Runs in less RAM beside runs alone.
#[derive(Clone, PartialEq, Debug)]
pub struct Evidence {
    /// The median, in times of that of the runs alone.
    pub times: f64,
    /// By which clock.
    pub clock: Clock,
    /// What they say.
    pub judgement: Judgement,
    /// Whether the runs ended as alone and their median is within the limit, enough evidence or not.
    pub within: bool,
    /// Whether the median is so near to the limit that more runs may say otherwise.
    pub near: bool,
    /// Whether the program has taken less by itself.
    pub takes_less: bool,
    /// How likely the size is too small, if this is one run, and nothing else is known.
    pub too_small: f64,
}

impl Evidence {
    /// Judges runs. `slowdown`: the longest extra time, as a part of the time alone. A limit above the group's peak
    /// delays nothing, whatever the clock says, but a program that sizes itself by its limit.
    pub fn judge(plain: &Runs, runs: &Runs, slowdown: f64) -> Evidence {
        let clock = Clock::choose(plain, runs, slowdown);
        let (alone, less) = (clock.sorted(plain), clock.sorted(runs));
        let (Some(plain_seconds), Some(median)) = (median(&alone), median(&less)) else {
            let judgement = Judgement::CannotTell(Lack::Runs);
            return Evidence {
                times: 0.0,
                clock,
                judgement,
                within: false,
                near: false,
                takes_less: false,
                too_small: 0.5,
            };
        };
        let longest = |seconds: f64| Limits::slower(Some(slowdown)).longest(seconds);
        let limit = longest(plain_seconds);
        let near = (median / limit - 1.0).abs() < NEAR / 2.0;
        let noise = (alone[alone.len() - 1] - alone[0]) / plain_seconds;
        let ended = runs.failed.is_none() && !runs.more;
        let takes_less = plain.group().zip(runs.group()).is_some_and(|(alone, less)| takes_less(&alone, &less));
        let above = ended && runs.by == By::Kernel && !takes_less;
        let above = above && plain.group_peak().is_some_and(|peak| runs.ram_bytes > Some(peak));
        let within = ended && median <= limit || above;
        let near = near && !above;
        // Other programs only make runs longer, so the shortest ones are the least disturbed.
        let shortest = less[0] <= longest(alone[0]);
        let judgement = match within {
            _ if !ended => Judgement::No,
            _ if near && less.len() == 1 && alone.len() == 1 => Judgement::CannotTell(Lack::Repeats),
            _ if near && noise > slowdown && (less.len() < REPEATS || shortest != within) => {
                Judgement::CannotTell(Lack::Noise(noise))
            }
            true => Judgement::Yes,
            false => Judgement::No,
        };
        let times = median / plain_seconds.max(f64::MIN_POSITIVE);
        let too_small = match median / limit {
            _ if runs.failed.is_some() => DIED,
            _ if above => DOUBT.0,
            _ if runs.more || times > DELAYED => LATE,
            part => (0.5 + part.ln() / (2.0 * UNCLEAR)).clamp(DOUBT.0, DOUBT.1),
        };
        Evidence { times, clock, judgement, within, near, takes_less, too_small }
    }
}
