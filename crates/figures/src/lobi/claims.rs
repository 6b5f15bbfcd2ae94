//! The conclusions of the slides, on the generated and on the recorded traces.

use super::*;

fn traces() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces")
}

/// "About 200 % better": Linux costs at least twice as much as LOBI (8) if a window's slots are freed at once.
#[test]
fn lobi_costs_half_of_linux_on_the_generated_and_on_the_recorded_traces() {
    for input in inputs(&traces()).unwrap().iter().take(3) {
        for collector in ["greedy", "cost-benefit-age:4"] {
            let [linux, log] = [0, 1].map(|i: usize| one(input, BLOCKS, &input.methods[i], collector).unwrap());
            let times = linux.found.cost as f64 / log.found.cost as f64;
            assert!(times > 2.0, "{}, {collector}: {times} times", input.name);
        }
    }
}

/// A user's result, with pages read ahead in the swap cache: a log costs less than Linux on a device that hides its
/// blocks.
#[test]
fn the_log_costs_less_than_linux_behind_a_translation_layer() {
    for (input, linux, log) in [(3, 0, 1), (4, 1, 2)] {
        let input = &inputs(&traces()).unwrap()[input];
        for collector in ["greedy", "cost-benefit-age:4"] {
            let [linux, log] = [linux, log].map(|i: usize| one(input, BLOCKS, &input.methods[i], collector).unwrap());
            let times = linux.found.cost as f64 / log.found.cost as f64;
            assert!(times > 1.05, "{}, {collector}: {times} times", input.name);
        }
    }
}

/// Block-aligned swap-in: a window of 8 slots costs least, then 16, then 32.
#[test]
fn larger_windows_cost_more() {
    for input in inputs(&traces()).unwrap() {
        let windows = input.methods.iter().filter(|method| method.layout == "log" && method.logs == 1);
        let costs: Vec<u64> = windows.map(|method| one(&input, BLOCKS, method, "greedy").unwrap().found.cost).collect();
        assert!(costs.is_sorted(), "{}: {costs:?}", input.name);
    }
}

/// LOBI has one printed cost and Linux a range: if a window's slots are freed at once, whole blocks are freed, and
/// collectors have no choice.
#[test]
fn lobi_costs_the_same_under_every_collector() {
    let input = slides();
    let (least, most) = least_and_most(&under_all(&input, &input.methods[1]).unwrap());
    assert!(most < 1.01 * least, "{least} to {most}");
}

/// "Store each process separately": what a process leaves behind at its end is then whole blocks.
#[test]
fn logs_by_process_halve_the_cost_where_processes_end() {
    let input = &inputs(&traces()).unwrap()[4];
    let cost = |method: &Method| one(input, BLOCKS, method, "greedy").unwrap().found.cost;
    let [one_log, logs] = [2, 5].map(|i: usize| cost(&input.methods[i]));
    assert!(2 * logs < one_log + one_log / 5, "{logs} with logs by process, {one_log} with one");
}

/// Wear levelling: if cold blocks are moved, erases are spread more evenly and no block is far ahead. Choosing the
/// least erased free block alone levels the generated trace and not the recorded one (deviations 1.455 with it, 1.432
/// without).
#[test]
fn the_log_levels_wear() {
    for input in inputs(&traces()).unwrap().into_iter().skip(3) {
        let wear = |spread_max: Option<u32>| {
            let (blocks, keep) = (Some(BLOCKS.to_string()), Some(input.methods[0].keep.into()));
            let swap = Swap { blocks, keep, ..Swap::default() };
            let mut plan = swaps(&Settings { swap, ..Settings::default() }).unwrap();
            plan.config.areas[0].spread_max = spread_max;
            outcome(&plan, &input.trace, None).unwrap().found.wear
        };
        let (with, without) = (wear(Some(2)), wear(None));
        let name = input.name;
        assert!(
            with.standard_deviation < without.standard_deviation,
            "{name}: {with:?} with levelling, {without:?} without"
        );
        assert!(with.max - with.min < without.max - without.min, "{name}: {with:?}, {without:?}");
    }
}
