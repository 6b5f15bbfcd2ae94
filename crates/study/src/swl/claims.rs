//! The claims of the abstract, each on the engine.

use super::*;

const WALKS: std::ops::RangeInclusive<u32> = 1..=60;

/// "Improves the worst case latency of page faults significantly, by up to roughly 20%".
#[test]
fn a_fault_takes_up_to_a_fifth_less_with_the_search_beside_the_load() {
    let gain = |walk| 100.0 * (1.0 - clock_fault(CLOCK, "parallel", walk) / clock_fault(CLOCK, "sequential", walk));
    let gains: Vec<f64> = WALKS.map(gain).collect();
    assert!(gains.iter().all(|gain| *gain > 0.0), "{gains:?}");
    let most = gains.iter().copied().fold(0.0, f64::max);
    assert!((18.0..=22.0).contains(&most), "{most} %");
}

/// Section 3.2: PA-Clock's search never takes longer than the load, so a fault takes the same time with any bits.
#[test]
fn pa_clock_bounds_the_longest_fault_and_clock_does_not() {
    let pa: Vec<f64> = WALKS.map(|walk| clock_fault(PA_CLOCK, "parallel", walk)).collect();
    assert!(pa.iter().all(|latency| (latency - pa[0]).abs() < 1e-6), "{pa:?}");
    assert!(clock_fault(CLOCK, "parallel", *WALKS.end()) > 1.4 * pa[0]);
}

/// "The modified page cache replacement policies improve both the average and worst instruction fetch time".
#[test]
fn a_recorded_program_fetches_faster_on_average_and_at_worst() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces/render.parquet");
    let of = |policy: &str, handler: &str| Settings {
        policy: Some(policy.into()),
        handler: Some(handler.into()),
        ram: Some("64KiB".into()),
        ..swl_settings()
    };
    let all = [
        of("clock", "sequential"),
        of("pa-clock:budget=13", "parallel"),
        of("fifo-sc:valid=25%", "sequential"),
        of("pa-fifo-sc:valid=25%,max-downgrades=4", "parallel"),
    ];
    let results = string::run(&trace, &all, &mut |_| {}).unwrap();
    for pair in results.chunks(2) {
        let [mean_before, mean_after] = [0, 1].map(|i: usize| pair[i].time_per_instruction().unwrap());
        let [worst_before, worst_after] = [0, 1].map(|i: usize| pair[i].lane().unwrap().true_latency.max());
        let name = &pair[1].policy;
        assert!(mean_after < mean_before, "{name}: {mean_after} ps an instruction, {mean_before} before");
        assert!(worst_after < worst_before, "{name}: at worst {worst_after:?}, {worst_before:?} before");
    }
}
