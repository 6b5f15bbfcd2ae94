//! The claim of the abstract about programs. Those about a fault are rows of figures 7 and 8.

use super::*;

/// "The modified page cache replacement policies improve both the average and worst instruction fetch time".
#[test]
fn a_recorded_program_fetches_faster_on_average_and_at_worst() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/traces/render.parquet");
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
