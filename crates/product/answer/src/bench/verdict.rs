//! Yes or no: whether what a program needs is within a limit, by how much, and what grew since a baseline.

use crate::SCHEMA_VERSION;
use schemars::JsonSchema;
use serde::Serialize;

use crate::bench::need::{Grown, Need, NOISE};
use crate::bench::rules::longest;
use crate::predict::kinds::Method;
use crate::run::runs::Runs;

/// The most recordings: one that is within the limit is enough, and one that is not is repeated, so that luck decides
/// nothing.
pub const RECORDINGS: usize = 3;

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
    /// The time alone.
    pub program_seconds: f64,
    /// Whether it is within the limit, or there is none: as measured, else by its need.
    pub within: bool,
    /// Whether that is known: otherwise answers from referenced bits are on both sides of the limit.
    pub certain: bool,
    /// Runs of the program alone; `None`: no `--max-ram`, or it could not be run so.
    pub plain: Option<Runs>,
    /// Runs in the RAM that it may have, of all processes together.
    pub paged: Option<Runs>,
    /// The limit; `None`: none was given.
    pub max_ram_bytes: Option<u64>,
    /// The limit without the need; negative: over the limit.
    pub distance_bytes: Option<i64>,
    /// Growth by less than this is taken to be noise, in percent.
    pub noise_percent: f64,
    /// The need of each recording, in order; the verdict is that of the median.
    pub recordings: Vec<u64>,
    /// The need: the median recording's; `None`: there is no recording.
    pub need: Option<Need>,
    /// The baseline's file.
    pub baseline: Option<String>,
    /// The need in the baseline.
    pub baseline_bytes: Option<u64>,
    /// What grew since then by more than noise.
    pub grown: Vec<Grown>,
}

impl Verdict {
    /// Of one recording or more, given in order, and the place of the one that counts.
    pub fn by_needs(needs: &[Need], limit: Option<u64>, baseline: Option<(&str, &Need)>) -> Verdict {
        let need = Need { sheet: None, ..needs[median(needs)].clone() };
        let noise = noise(needs).max(baseline.map_or(0.0, |(_, before)| before.noise)).max(NOISE);
        let limit = match baseline {
            Some((_, before)) if limit == Some(growth(before.need_bytes, NOISE)) => {
                Some(growth(before.need_bytes, noise))
            }
            _ => limit,
        };
        let distance_bytes = limit.map(|limit| limit as i64 - need.need_bytes as i64);
        let bits = need.method == Method::ReferencedBits && baseline.is_none();
        let known = |limit: u64| needs.iter().all(|other| (other.need_bytes > limit) == (need.need_bytes > limit));
        Verdict {
            schema_version: SCHEMA_VERSION,
            kind: "verdict".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            program: need.program.clone(),
            slowdown_percent: need.slowdown_percent,
            program_seconds: need.program_seconds,
            certain: !bits || limit.is_none_or(known),
            plain: None,
            paged: None,
            within: distance_bytes.is_none_or(|distance| distance >= 0),
            max_ram_bytes: limit,
            distance_bytes,
            noise_percent: 100.0 * noise,
            recordings: needs.iter().map(|need| need.need_bytes).collect(),
            baseline: baseline.map(|(file, _)| file.into()),
            baseline_bytes: baseline.map(|(_, before)| before.need_bytes),
            grown: baseline.map_or_else(Vec::new, |(_, before)| need.grown_since(before, noise)),
            need: Some(need),
        }
    }

    /// Of measured runs alone.
    pub fn by_runs(program: String, slowdown: f64, max_ram: Option<u64>, plain: Runs, paged: Runs) -> Verdict {
        let verdict = Verdict {
            schema_version: SCHEMA_VERSION,
            kind: "verdict".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            program,
            slowdown_percent: 100.0 * slowdown,
            max_ram_bytes: max_ram,
            ..Verdict::default()
        };
        verdict.decided_by(plain, paged, slowdown)
    }

    /// The verdict of these runs, with what else is known.
    pub(crate) fn decided_by(self, plain: Runs, paged: Runs, slowdown: f64) -> Verdict {
        let within = paged.within(longest(plain.seconds, slowdown));
        let program_seconds = plain.seconds;
        Verdict { within, certain: true, program_seconds, plain: Some(plain), paged: Some(paged), ..self }
    }

    /// Whether another recording may change the answer: it is no, or the noise of referenced bits is not known, and
    /// there are few.
    pub fn is_open(&self) -> bool {
        let bits = self.need.as_ref().is_some_and(|need| need.method == Method::ReferencedBits);
        (!self.within || bits) && self.recordings.len() < RECORDINGS
    }
}

/// So much more than this.
pub(crate) fn growth(bytes: u64, noise: f64) -> u64 {
    (bytes as f64 * (1.0 + noise)) as u64
}

/// How far needs of the same program are apart, as a part of the median.
pub(crate) fn noise(needs: &[Need]) -> f64 {
    let bytes = || needs.iter().map(|need| need.need_bytes);
    let (low, high) = (bytes().min().unwrap_or(0), bytes().max().unwrap_or(0));
    (high - low) as f64 / needs[median(needs)].need_bytes.max(1) as f64
}

/// The place of the recording with the median need, the smaller of two.
pub fn median(needs: &[Need]) -> usize {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|i| needs[*i].need_bytes);
    order[(order.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(bytes: u64) -> Need {
        Need {
            schema_version: SCHEMA_VERSION,
            kind: "need".into(),
            version: "0".into(),
            method: crate::Method::Recorder,
            program: "p".into(),
            command: None,
            need_bytes: bytes,
            at_most: false,
            slowdown_percent: 10.0,
            managed_bytes: bytes,
            together_bytes: bytes,
            not_paged_bytes: 0,
            touched_bytes: bytes,
            program_seconds: 1.0,
            noise: 0.0,
            processes: Vec::new(),
            sheet: None,
        }
    }

    #[test]
    fn a_yes_is_final_and_a_no_is_repeated_until_the_median_is_known() {
        let of =
            |bytes: &[u64]| Verdict::by_needs(&bytes.iter().map(|b| need(*b)).collect::<Vec<_>>(), Some(100), None);
        let outcome = |verdict: Verdict| (verdict.within, verdict.is_open(), verdict.need.unwrap().need_bytes);
        assert_eq!(outcome(of(&[100])), (true, false, 100));
        assert_eq!(outcome(of(&[101])), (false, true, 101));
        // Two unlucky ones do not outvote: of two, the smaller one counts.
        assert_eq!(outcome(of(&[130, 90])), (true, false, 90));
        assert_eq!(outcome(of(&[130, 120, 90])), (false, false, 120));
        assert_eq!(of(&[130, 120, 90]).distance_bytes, Some(-20));
    }

    #[test]
    fn without_a_limit_the_answer_is_yes() {
        assert!(Verdict::by_needs(&[need(5)], None, None).within);
    }
}
