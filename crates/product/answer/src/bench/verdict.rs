//! Yes or no: whether a program lives in a limit, and whether it grew since a baseline.

use schemars::JsonSchema;
use serde::Serialize;

use super::evidence::{Clock, Evidence, Judgement};
use super::log::RunLog;
use super::need::{Grown, Need};
use crate::predict::common::program;
use crate::run::runs::{Runs, Way};
use crate::SCHEMA_VERSION;

/// Where nothing was measured in a limit, it is enough if the program had at most this part of it in RAM.
const CLEARLY: f64 = 0.5;

/// The answer of `check -- PROGRAM`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Verdict {
    /// Version of this object's form.
    pub schema_version: u32,
    /// `verdict`.
    pub kind: String,
    /// Version of coldframe.
    pub version: String,
    /// The program's name.
    pub program: String,
    /// The longest extra time, in percent of the time alone.
    pub slowdown_percent: f64,
    /// The time without a limit.
    pub program_seconds: f64,
    /// Whether it lives in its limit, and did not grow since the baseline.
    pub within: bool,
    /// Whether that is known: otherwise it cannot be told.
    pub certain: bool,
    /// The limit of all that its memory group is charged; null: none was given.
    pub max_ram_bytes: Option<u64>,
    /// Whether it lives in the limit, fast enough; null: there is none, or it cannot be told.
    pub lives: Option<bool>,
    /// Why it cannot be told, or was not measured.
    pub why: Option<String>,
    /// Whether the program did not run in the limit: what was seen of it alone decides.
    pub estimated: bool,
    /// The most that its memory group was charged without a limit; if that is estimated, that its processes had in
    /// RAM. null: not known.
    pub peak_bytes: Option<u64>,
    /// The time in the limit, in times of that without one; null: it did not end, or did not run in it.
    pub times: Option<f64>,
    /// Whether times were compared by processor time and waits, since other programs had the processors.
    pub by_work: bool,
    /// Runs without a limit.
    pub plain: Option<Runs>,
    /// Runs in the limit.
    pub limited: Option<Runs>,
    /// How often the program ran.
    pub run_count: usize,
    /// What it takes now, if there is a baseline, or one is written.
    pub need: Option<Need>,
    /// The baseline's file.
    pub baseline: Option<String>,
    /// What the program took then.
    pub before: Option<Need>,
    /// What grew since then.
    pub grown: Vec<Grown>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Verdict {
    /// Yes, as nothing is asked yet. `command`: the command line; `slowdown`: the longest extra time, as a part.
    pub fn new(command: &str, slowdown: f64, seconds: f64) -> Verdict {
        Verdict {
            schema_version: SCHEMA_VERSION,
            kind: "verdict".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            program: program(Some(command)),
            slowdown_percent: 100.0 * slowdown,
            program_seconds: seconds,
            within: true,
            certain: true,
            ..Verdict::default()
        }
    }

    /// By runs without and in a limit of so many bytes.
    #[must_use]
    pub fn in_limit(self, runs: &RunLog, way: &Way, ram: u64) -> Verdict {
        let (plain, limited) = (runs.plain(), runs.paged(way, ram).unwrap_or_default());
        let evidence = Evidence::judge(&plain, &limited, self.slowdown_percent / 100.0);
        let (lives, why) = match evidence.judgement {
            Judgement::Yes => (Some(true), None),
            Judgement::No => (Some(false), None),
            Judgement::CannotTell(lack) => (None, Some(lack.to_string())),
        };
        let ended = limited.failed.is_none() && !limited.more && !limited.runs.is_empty();
        let verdict = Verdict {
            program_seconds: plain.seconds,
            max_ram_bytes: Some(ram),
            why,
            peak_bytes: plain.group_peak(),
            times: ended.then_some(evidence.times),
            by_work: ended && evidence.clock == Clock::Work,
            plain: Some(plain),
            limited: Some(limited),
            ..self
        };
        verdict.decided(lives)
    }

    /// By what was seen of it without a limit. `why`: why it did not run in one.
    #[must_use]
    pub fn estimated(self, ram: u64, peak: u64, why: String) -> Verdict {
        let (max_ram_bytes, peak_bytes) = (Some(ram), (peak > 0).then_some(peak));
        let enough = peak_bytes.is_some_and(|peak| peak as f64 <= CLEARLY * ram as f64);
        Verdict { max_ram_bytes, peak_bytes, why: Some(why), estimated: true, ..self }.decided(enough.then_some(true))
    }

    /// By what it takes beside its baseline, if there is one: a file, and its contents.
    #[must_use]
    pub fn since(self, need: Need, baseline: Option<(&str, &Need)>) -> Verdict {
        let lives = self.lives;
        let grown = baseline.map_or_else(Vec::new, |(_, before)| need.grown_since(before));
        let (baseline, before) = baseline.map(|(file, before)| (file.to_owned(), before.clone())).unzip();
        let peak_bytes = self.peak_bytes.filter(|_| !self.estimated).or(need.peak_bytes);
        Verdict { baseline, before, grown, peak_bytes, need: Some(need), ..self }.decided(lives)
    }

    fn decided(self, lives: Option<bool>) -> Verdict {
        let told = lives.is_some() || self.max_ram_bytes.is_none();
        let no = lives == Some(false) || !self.grown.is_empty();
        Verdict { lives, within: told && !no, certain: told || no, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::looks::group::GroupUse;
    use crate::run::runs::{Run, Unlike};

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_no_of_limit_or_baseline_is_a_no_and_a_doubt_is_none() {
        let need =
            |mib: u64| Need::new("app", &[GroupUse { peak_bytes: mib * MIB, ..GroupUse::default() }], &[], false);
        let new = || Verdict::new("app", 0.1, 1.0);
        let outcome = |verdict: Verdict| (verdict.certain, verdict.within);
        let (yes, no, doubt) = ((true, true), (true, false), (false, false));
        assert_eq!(outcome(new()), yes, "nothing was asked");
        // The most that was seen, of a limit of 64 MiB.
        let seen = |mib: u64| new().estimated(64 * MIB, mib * MIB, "no group".into());
        assert_eq!([seen(20), seen(40), seen(100), seen(0)].map(outcome), [yes, doubt, doubt, doubt]);
        let before = need(60);
        let since = |verdict: Verdict, mib: u64| outcome(verdict.since(need(mib), Some(("need.json", &before))));
        assert_eq!((since(new(), 60), since(new(), 70)), (yes, no));
        assert_eq!((since(seen(40), 60), since(seen(40), 70), since(seen(20), 70)), (doubt, no, no));
    }

    #[test]
    fn a_run_that_was_killed_has_no_time() {
        use crate::bench::trial::{Outcome, Trial};
        let mut runs = RunLog::default();
        runs.add(Trial::plain(None), 0.0, Outcome::Ran(Run { seconds: 1.0, ..Run::default() }));
        let trial = Trial::paged(&Way::limit(), 64 * MIB, 9.0);
        runs.add(trial, 1.0, Outcome::Ran(Run { seconds: 0.5, killed: true, ..Run::default() }));
        let verdict = Verdict::new("app", 0.1, 1.0).in_limit(&runs, &Way::limit(), 64 * MIB);
        assert_eq!((verdict.lives, verdict.times, verdict.certain), (Some(false), None, true));
        assert_eq!(verdict.limited.unwrap().failed, Some(Unlike::Killed.to_string()));
    }
}
