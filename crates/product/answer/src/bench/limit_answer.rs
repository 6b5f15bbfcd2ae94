//! The answer that was measured in a memory group: which limit a program can be given, as a container's `memory` or a
//! unit's `MemoryMax`. The limit counts all that the kernel charges to the group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::{Clock, Evidence, Judgement, Lack};
use super::fit::Fit;
use super::log::RunLog;
use crate::machine::asker::Asker;
use crate::predict::common::{origin, program};
use crate::predict::curve::round_limit;
use crate::predict::kinds::Answer;
use crate::predict::question::Limits;
use crate::run::looks::group::GroupUse;
use crate::run::runs::{By, Runs, Unlike, Way, NO_SWAP};
use crate::SCHEMA_VERSION;

/// The part by which a limit to paste is larger than the recommended one: a guess.
const MARGIN: f64 = 0.1;
/// Both limits are said where files in RAM make so large a part of a difference.
const WARM: f64 = 0.9;

/// What limit a program can be given.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LimitAnswer {
    /// Version of this object's form.
    pub schema_version: u32,
    /// `limit`.
    pub kind: String,
    /// Version of coldframe.
    pub version: String,
    /// When, on which host and kernel it was measured.
    pub origin: String,
    /// The program's name.
    pub program: String,
    /// Its command line.
    pub command: String,
    /// Its exit code without a limit.
    pub exit: u8,
    /// Its time without a limit.
    pub program_seconds: f64,
    /// The longest extra time of a recommended limit, in percent.
    pub slowdown_percent: f64,
    /// Who has the answer: a line to paste may need `sudo`.
    #[serde(default)]
    pub asker: Asker,
    /// The sizes.
    pub limit: LimitSizes,
    /// The program without a limit, then in limits, the largest first.
    pub runs: Vec<Runs>,
    /// How often the program ran.
    pub run_count: usize,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// What a recording predicts: run time by RAM with our pager, where and when memory is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Answer>,
}

/// The sizes of an answer, in bytes. All count what a memory group is charged.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LimitSizes {
    /// The most without a limit.
    pub peak_bytes: u64,
    /// Its parts.
    pub parts: GroupUse,
    /// The least limit without swap with which it is fast enough; null: it cannot be told.
    pub recommended_bytes: Option<u64>,
    /// The same: the least limit in which runs were fast enough, whether they are enough evidence or not.
    pub fast_bytes: Option<u64>,
    /// The least in which it ended as without a limit.
    pub lives_bytes: Option<u64>,
    /// The largest in which it did not.
    pub dies_bytes: Option<u64>,
    /// The least fast one where its files are in RAM already, if that is over a tenth less.
    pub warm_bytes: Option<u64>,
    /// The hard limit to write down: the recommended one and a margin.
    pub paste_bytes: Option<u64>,
    /// That margin, in percent.
    pub margin_percent: f64,
    /// The most that was charged in the recommended limit.
    pub at_recommended: Option<GroupUse>,
    /// Whether the program takes less by itself in the recommended limit: by so many bytes of anonymous memory.
    pub sizes_itself: bool,
    /// Whether times were compared by processor time and waits, since other programs had the processors.
    pub by_work: bool,
    /// A size whose cost was wanted.
    pub given_bytes: Option<u64>,
    /// Why there is no recommended limit.
    pub cannot_tell: Option<String>,
}

impl LimitAnswer {
    /// From runs and from what a search has found. `command`: the command line.
    pub fn new(command: &str, runs: &RunLog, fit: Fit, limits: &Limits, remarks: Vec<String>) -> LimitAnswer {
        let plain = runs.plain();
        let parts = plain.group().unwrap_or_default();
        let kinds: Vec<(Way, Runs)> = runs.kinds();
        let cold = plain.cold || kinds.iter().any(|(_, runs)| runs.cold);
        let none = |(way, runs): &&(Way, Runs)| *way == Way::limit() && runs.cold == cold;
        let limited =
            |ram: u64| kinds.iter().filter(none).find(|(_, runs)| runs.ram_bytes == Some(ram)).map(|kind| &kind.1);
        let fast = fit.fast.and_then(limited);
        let evidence = fast.map(|fast| Evidence::judge(&plain, fast, limits.slowdown));
        let sizes_itself = evidence.as_ref().is_some_and(|evidence| evidence.takes_less);
        let lack = match evidence.as_ref().map(|evidence| &evidence.judgement) {
            // It sizes itself by its limit, and what it takes without one is not enough.
            Some(Judgement::No) if sizes_itself => Some(Lack::Larger),
            // All that it takes without a limit was counted.
            _ if fit.fast.is_some_and(|ram| ram >= parts.peak_bytes) => None,
            Some(Judgement::CannotTell(lack)) if !fit.sure => Some(*lack),
            Some(_) => None,
            None => Some(Lack::Runs),
        };
        let recommended = fit.fast.filter(|_| lack.is_none());
        let died = |runs: &Runs| runs.failed.is_some() && runs.cold == cold;
        let dies = kinds.iter().filter(none).filter(|(_, runs)| died(runs)).filter_map(|(_, runs)| runs.ram_bytes);
        let mut kinds_of_runs = vec![plain.clone()];
        kinds_of_runs.extend(kinds.iter().map(|(_, runs)| runs.clone()));
        kinds_of_runs[1..].sort_by_key(|runs| std::cmp::Reverse(runs.ram_bytes));
        let lives = fit.lives.or(fit.fast);
        LimitAnswer {
            schema_version: SCHEMA_VERSION,
            kind: "limit".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            origin: origin(),
            program: program(Some(command)),
            command: command.into(),
            exit: runs.status(),
            program_seconds: plain.seconds,
            slowdown_percent: 100.0 * limits.slowdown,
            asker: Asker::now(),
            limit: LimitSizes {
                peak_bytes: parts.peak_bytes,
                parts,
                recommended_bytes: recommended,
                fast_bytes: fit.fast,
                lives_bytes: lives,
                dies_bytes: dies.filter(|ram| lives.is_none_or(|lives| *ram < lives)).max(),
                warm_bytes: fit.warm.filter(|warm| recommended.is_some_and(|ram| (*warm as f64) < WARM * ram as f64)),
                paste_bytes: recommended.map(|ram| round_limit((ram as f64 * (1.0 + MARGIN)) as u64)),
                margin_percent: 100.0 * MARGIN,
                at_recommended: fast.and_then(Runs::group),
                sizes_itself,
                by_work: evidence.is_some_and(|evidence| evidence.clock == Clock::Work),
                given_bytes: limits.ram,
                cannot_tell: lack.map(|lack| lack.to_string()),
            },
            runs: kinds_of_runs,
            run_count: runs.count(),
            notes: [remarks, fit.remarks].concat(),
            prediction: None,
        }
    }

    /// The program without a limit.
    pub fn plain(&self) -> &Runs {
        &self.runs[0]
    }

    /// Runs in this limit without swap that read their files from the disk.
    pub fn at(&self, ram: u64) -> Option<&Runs> {
        let cold = self.plain().cold;
        self.runs[1..].iter().find(|runs| runs.ram_bytes == Some(ram) && runs.is_limit() && runs.cold == cold)
    }

    /// Times the program's own time that runs took.
    pub fn times(&self, runs: &Runs) -> f64 {
        Evidence::judge(self.plain(), runs, self.slowdown_percent / 100.0).times
    }

    /// The least fast runs by another way than a limit without swap.
    pub fn others(&self) -> impl Iterator<Item = &Runs> {
        let slowdown = self.slowdown_percent / 100.0;
        let largest = self.limit.fast_bytes.unwrap_or(self.limit.peak_bytes);
        let good = move |runs: &&Runs| {
            runs.ram_bytes.is_some_and(|ram| ram < largest) && Evidence::judge(self.plain(), runs, slowdown).within
        };
        let with_swap = |runs: &Runs| runs.by == By::Kernel && runs.swap.as_deref() != Some(NO_SWAP);
        let with_setting = |runs: &Runs| runs.setting.is_some();
        let best = move |wanted: &dyn Fn(&Runs) -> bool| {
            self.runs[1..].iter().filter(|runs| wanted(runs)).filter(good).min_by_key(|runs| runs.ram_bytes)
        };
        [best(&with_setting), best(&with_swap), best(&|runs: &Runs| runs.by == By::Pager)].into_iter().flatten()
    }
}

/// The word for runs that the kernel killed.
pub const KILLED: &str = "killed";

/// How runs ended that did not end as the program alone, in a word.
pub fn ending(runs: &Runs) -> Option<&'static str> {
    let word = |why: &String| match why {
        _ if *why == Unlike::Killed.to_string() => KILLED,
        _ if *why == Unlike::OverLimit.to_string() => "over it",
        _ => "failed",
    };
    runs.failed.as_ref().map(word)
}
