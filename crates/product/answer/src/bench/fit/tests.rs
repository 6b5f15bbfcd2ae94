//! The search for the least fast limit on a machine with noise, beside one that halves an interval, as
//! `scripts/limit.py` does, on the same programs and in the same time.

use std::path::PathBuf;
use std::rc::Rc;

use super::InGroup;
use crate::bench::alone::Alone;
use crate::bench::fake::Fake;
use crate::bench::limit_answer::LimitAnswer;
use crate::bench::log::RunLog;
use crate::bench::plan::{carry_out, Runner};
use crate::bench::trial::{Outcome, Trial};
use crate::listener::Silent;
use crate::predict::question::Limits;
use crate::run::looks::group::GroupUse;
use crate::run::runs::{Run, Way};
use crate::run::streams::Output;

const MIB: u64 = 1 << 20;
/// The peak of each program, in MiB.
const PEAK: u64 = 100;
/// The seconds that an answer has.
const BUDGET: f64 = 28.5;
/// What a run takes beside the program, in seconds.
const START: f64 = 0.12;

/// The time of a program in times of that alone, in a limit that is such a part of its peak; `None`: it is killed.
type Curve = fn(f64) -> Option<f64>;

/// Cliffs, slopes, and slopes that begin at a size.
const CURVES: [Curve; 7] = [
    |part| (part >= 0.88).then_some(if part < 0.9 { 3.0 } else { 1.0 }),
    |part| (part >= 0.55).then_some(if part < 0.6 { 3.0 } else { 1.0 }),
    |part| (part >= 0.5).then_some(1.0 + (1.0 - part).max(0.0)),
    |part| (part >= 0.3).then_some(1.0 + 0.4 * (1.0 - part).max(0.0)),
    |part| (part >= 0.3).then_some(1.0 + 0.25 * (1.0 - part).max(0.0)),
    |part| (part >= 0.3).then_some(1.0 + 1.6 * (0.7625 - part).max(0.0)),
    |part| (part >= 0.3).then_some(1.0 + 2.0 * (0.45 - part).max(0.0)),
];

/// How a machine varies from run to run: by a standard deviation of the logarithm, of which four fifths stay until the
/// next run; and how likely other programs make a run up to a half longer.
const MACHINES: [(f64, f64); 5] = [(0.01, 0.05), (0.01, 0.35), (0.03, 0.2), (0.06, 0.1), (0.12, 0.15)];

/// A program on such a machine.
struct NoisyMachine {
    fake: Fake,
    curve: Curve,
    machine: (f64, f64),
    /// The logarithm of what the machine makes of a run's time.
    slow: f64,
    bits: u64,
}

impl NoisyMachine {
    fn new(curve: Curve, seconds: f64, machine: (f64, f64), seed: u64) -> NoisyMachine {
        let group = GroupUse { peak_bytes: PEAK * MIB, fixed_bytes: 40 * MIB, ..GroupUse::default() };
        let fake = Fake { group: Some(group), ..Fake::new(seconds) };
        let mut one = NoisyMachine { fake, curve, machine, slow: 0.0, bits: seed };
        (0..20).for_each(|_| one.drift());
        one
    }

    /// A number from 0 to 1 (splitmix64).
    fn chance(&mut self) -> f64 {
        self.bits = self.bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.bits;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as f64 / u64::MAX as f64
    }

    fn drift(&mut self) {
        let normal = (0..12).map(|_| self.chance()).sum::<f64>() - 6.0;
        self.slow = 0.8 * self.slow + 0.6 * self.machine.0 * normal;
    }

    /// The least limit in which it is at most a tenth slower, as a part of its peak.
    fn truth(&self) -> f64 {
        let fast = |part: &f64| (self.curve)(*part).is_some_and(|times| times <= 1.1 + 1e-9);
        (1..=1000).map(|part| f64::from(part) / 1000.0).find(fast).expect("its peak is enough")
    }

    /// What an answer recommends.
    fn answered(mut self) -> Option<u64> {
        let seconds = self.fake.seconds;
        let mut runs = RunLog::after(Run { seconds, output: Some(Output::digest("done")), ..Run::default() });
        let cold: Rc<[PathBuf]> = Rc::new(["/lib/libc.so".into()]);
        self.fake.clock = 2.0 * seconds;
        let alone = Alone { first_seconds: seconds, cold: Rc::clone(&cold) };
        let until = carry_out(&alone, &mut runs, &mut self, &Silent).until;
        let (limits, others) = (Limits::default(), vec![Way::kernel(Some("zram".into())), Way::pager()]);
        let plan = InGroup { guess: Some(70 * MIB), given: None, others, runtime: None, cold, limits, until };
        let fit = carry_out(&plan, &mut runs, &mut self, &Silent);
        LimitAnswer::new("program", &runs, fit, &limits, Vec::new()).limit.recommended_bytes
    }

    /// What a search finds that halves an interval, and runs what is somewhat too slow three times, in turns with runs
    /// alone.
    fn halved(mut self) -> Option<u64> {
        let alone = (0..3).map(|_| self.timed(None)).collect::<Option<_>>()?;
        let plain = middle(alone);
        let (mut low, mut high) = (0, PEAK * MIB);
        while high - low > (high / 16).max(MIB) && self.fake.clock < BUDGET {
            let half = (low + high) / 2;
            let (mut alone, mut limited) = (vec![plain], vec![self.timed(Some(half))]);
            if limited[0].is_some_and(|seconds| (1.1..2.2).contains(&(seconds / plain))) {
                for _ in 0..2 {
                    alone.extend(self.timed(None));
                    limited.push(self.timed(Some(half)));
                }
            }
            let limited: Option<Vec<f64>> = limited.into_iter().collect();
            match limited.is_some_and(|limited| middle(limited) <= 1.1 * middle(alone)) {
                true => high = half,
                false => low = half,
            }
        }
        Some(high)
    }

    /// The time of a run; `None`: it is killed.
    fn timed(&mut self, ram: Option<u64>) -> Option<f64> {
        let trial = ram.map_or(Trial::plain(None), |ram| Trial::paged(&Way::limit(), ram, 1000.0));
        let outcome = self.run(&trial);
        outcome.ran().filter(|run| !run.killed).map(|run| run.seconds)
    }
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

impl Runner for NoisyMachine {
    fn now(&self) -> f64 {
        self.fake.clock
    }

    fn run(&mut self, trial: &Trial) -> Outcome {
        self.drift();
        let delay = if self.chance() < self.machine.1 { 0.5 * self.chance() } else { 0.0 };
        let (alone, times) = (self.fake.seconds, self.slow.exp() * (1.0 + delay));
        let limited = trial.ram_bytes.map_or(Some(1.0), |ram| (self.curve)(ram as f64 / (PEAK * MIB) as f64));
        self.fake.limit.table = vec![(u64::MAX >> 20, alone * times * limited.unwrap_or(1.0), 0)];
        self.fake.limit.killed_below = if limited.is_none() { PEAK } else { 0 };
        self.fake.seconds = alone * times;
        let outcome = self.fake.run(trial);
        self.fake.seconds = alone;
        self.fake.clock += START;
        outcome
    }
}

/// Of all programs and machines: how often a limit is too small, within 0.95 to 1.15 of the true one, and else.
fn counted(found: fn(NoisyMachine) -> Option<u64>) -> [usize; 3] {
    let mut counts = [0; 3];
    for (seed, machine) in (0..4).flat_map(|seed| MACHINES.map(|machine| (seed, machine))) {
        for (curve, seconds) in CURVES.iter().flat_map(|curve| [0.3, 0.8, 1.5, 3.0].map(|seconds| (*curve, seconds))) {
            let one = NoisyMachine::new(curve, seconds, machine, seed);
            let truth = one.truth() * (PEAK * MIB) as f64;
            let place = found(one).map_or(2, |ram| match ram as f64 / truth {
                distance if distance < 0.95 => 0,
                distance if distance <= 1.15 => 1,
                _ => 2,
            });
            counts[place] += 1;
        }
    }
    counts
}

#[test]
fn on_machines_with_noise_limits_are_nearer_to_the_truth_than_by_halving_in_the_same_time() {
    let ([small, within, _], [halved_small, halved_within, _]) =
        (counted(NoisyMachine::answered), counted(NoisyMachine::halved));
    println!("within: {within}, by halving {halved_within}; too small: {small}, by halving {halved_small}");
    assert!(within > halved_within, "{within} within, and {halved_within} by halving");
    assert!(2 * small < halved_small, "{small} too small, and {halved_small} by halving");
}
