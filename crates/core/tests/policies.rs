//! The policies against their definitions: the micro vectors, the naive twins, the equivalences.

mod support;

use coldframe_core::naive::Outcome;
use coldframe_core::policy::{self, ParamKind, PolicyChoice};
use proptest::prelude::*;
use support::{Rig, HARDWARE};

/// (misses, false faults) of a string under a policy.
fn faults(policy: &str, frames: usize, string: &[u32]) -> (u64, u64) {
    let mut rig = Rig::new(policy, "parallel", frames, 16, HARDWARE);
    string.iter().for_each(|&page| {
        rig.reference(page);
    });
    (rig.engine.counts().true_faults, rig.engine.counts().false_faults)
}

const BELADY: &[u32] = &[1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5];
const LOOP: &[u32] = &[1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5];
const HOT: &[u32] = &[1, 2, 1, 3, 1, 4, 1, 5, 1, 6, 2, 1, 3, 1, 4, 2];

/// The table of expected misses (and false faults) was computed by two independent models, one with arrays and one with queues.
#[test]
fn micro_vectors_come_out_to_the_last_miss() {
    let columns = [
        "fifo",
        "clock:insert-bit=clear",
        "clock",
        "pa-clock:budget=1",
        "pa-clock:budget=2",
        "two-handed-clock:spread=1",
        "two-handed-clock:spread=2",
        "fifo-sc:valid=1",
        "fifo-sc:valid=2",
        "pa-fifo-sc:valid=1",
        "pa-fifo-sc:valid=2",
    ];
    type Row = (&'static [u32], usize, [(u64, u64); 11]);
    let rows: [Row; 6] = [
        (BELADY, 3, [(9, 0), (10, 0), (9, 0), (10, 0), (8, 0), (10, 0), (8, 0), (10, 2), (10, 2), (10, 2), (10, 1)]),
        (BELADY, 4, [(10, 0), (8, 0), (10, 0), (8, 0), (6, 0), (8, 0), (7, 0), (8, 4), (8, 4), (8, 4), (7, 4)]),
        (LOOP, 3, [(20, 0), (20, 0), (20, 0), (20, 0), (20, 0), (19, 0), (20, 0), (20, 0), (20, 0), (20, 0), (20, 0)]),
        (LOOP, 4, [(20, 0), (20, 0), (20, 0), (14, 0), (10, 0), (18, 0), (14, 0), (20, 0), (20, 0), (20, 0), (20, 0)]),
        (HOT, 3, [(12, 0), (10, 0), (12, 0), (12, 0), (10, 0), (10, 0), (10, 0), (10, 6), (10, 3), (10, 6), (10, 3)]),
        (HOT, 4, [(10, 0), (9, 0), (10, 0), (8, 0), (9, 0), (9, 0), (8, 0), (9, 7), (9, 4), (9, 7), (9, 4)]),
    ];
    for (string, frames, expected) in rows {
        for (policy, expected) in columns.iter().zip(expected) {
            assert_eq!(faults(policy, frames, string), expected, "{policy}, {frames} frames, {string:?}");
        }
    }
}

#[test]
fn beladys_anomaly_shows_under_fifo() {
    assert!(faults("fifo", 4, BELADY).0 > faults("fifo", 3, BELADY).0);
}

/// Some fitting values for every parameter of every policy in the table, so that a new policy is tested from its one line on.
fn choices(frames: usize) -> Vec<String> {
    policy::ALL
        .iter()
        .flat_map(|spec| {
            let mut texts = vec![String::new()];
            for param in spec.params {
                let values: &[&str] = match param.kind {
                    ParamKind::Count { .. } => &["1", "2", "5"],
                    ParamKind::Frames { .. } => &["1", "2", "40%", "100%"],
                    ParamKind::Limit => &["0", "1", "unlimited"],
                    ParamKind::Bit { .. } => &["set", "clear"],
                };
                let more = |text: &String, v: &&str| format!("{text},{}={v}", param.name);
                texts = texts.iter().flat_map(|t| values.iter().map(move |v| more(t, v))).collect();
            }
            texts.into_iter().map(|t| match t.strip_prefix(',') {
                Some(rest) => format!("{}:{rest}", spec.name),
                None => spec.name.to_string(),
            })
        })
        .filter(|text| PolicyChoice::parse(text).unwrap().build(frames, 16).is_ok())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_does_what_its_naive_twin_does(
        frames in 1usize..9,
        string in prop::collection::vec(0u32..14, 1..300),
        handler in prop::sample::select(vec!["sequential", "parallel"]),
    ) {
        for text in choices(frames) {
            let choice = PolicyChoice::parse(&text).unwrap();
            let mut twin = (choice.spec.naive)(&choice.arguments, frames);
            let mut rig = Rig::new(&text, handler, frames, 14, HARDWARE);
            for (i, &page) in string.iter().enumerate() {
                let expected = twin.reference(u64::from(page));
                prop_assert_eq!(rig.reference(page), expected, "{} frames={} reference {}", text, frames, i);
            }
        }
    }

    #[test]
    fn pa_clock_with_an_ample_budget_is_clock(frames in 1usize..8, string in prop::collection::vec(0u32..12, 1..200)) {
        let budget = format!("pa-clock:budget={}", frames + 1);
        prop_assert_eq!(faults(&budget, frames, &string), faults("clock", frames, &string));
    }

    #[test]
    fn fifo_sc_whose_valid_list_is_all_of_ram_is_fifo(frames in 1usize..8, string in prop::collection::vec(0u32..12, 1..200)) {
        prop_assert_eq!(faults("fifo-sc:valid=100%", frames, &string), faults("fifo", frames, &string));
    }

    #[test]
    fn pa_clock_never_walks_further_than_its_budget(
        frames in 1usize..16, budget in 1u64..6, string in prop::collection::vec(0u32..16, 1..300),
    ) {
        let mut rig = Rig::new(&format!("pa-clock:budget={budget}"), "parallel", frames, 16, HARDWARE);
        for &page in &string {
            if let Outcome::TrueFault { walk, forced, .. } = rig.reference(page) {
                prop_assert!(walk <= budget);
                prop_assert!(!forced || walk == budget);
            }
        }
    }
}

#[test]
fn the_two_insertion_bits_of_clock_differ_only_until_every_page_is_touched_again() {
    // Every page is touched twice before the hand comes back, so that the bit is set either way.
    let string: Vec<u32> = (0..40u32).flat_map(|i| [i % 7, i % 7]).collect();
    assert_eq!(faults("clock", 4, &string), faults("clock:insert-bit=clear", 4, &string));
}
