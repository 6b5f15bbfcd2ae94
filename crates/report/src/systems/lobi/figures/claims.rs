//! What the slides conclude, on the generated and on the recorded trace. The factor of two is a row that is not reached.

use super::*;

fn traces() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces")
}

/// Log-structured swap-out costs less than Linux on a device that hides its blocks.
#[test]
fn the_log_costs_less_than_linux_behind_a_translation_layer() {
    for input in inputs(&traces()).unwrap() {
        for collector in ["greedy", "cost-benefit-age:4"] {
            let [linux, log] = [1, 2].map(|i: usize| one(&input, AREA_BLOCKS[0], &METHODS[i], collector).unwrap());
            let times = linux.cost() as f64 / log.cost() as f64;
            assert!(times > 1.05, "{}, {collector}: {times} times", input.name);
        }
    }
}

/// Block-aligned swap-in: a window of 8 slots costs least, 16 and 32 more, in this order.
#[test]
fn larger_windows_cost_more() {
    for input in inputs(&traces()).unwrap() {
        let costs = [2, 3, 4].map(|i: usize| one(&input, AREA_BLOCKS[0], &METHODS[i], "greedy").unwrap().cost());
        assert!(costs.is_sorted(), "{}: {costs:?}", input.name);
    }
}

/// Wear is levelled: erases are spread more evenly than without the choice of the least erased block.
#[test]
fn the_log_levels_wear() {
    for input in inputs(&traces()).unwrap() {
        let deviation = |dynamic: bool| {
            let swap = Swap { dynamic_wear_levelling: Some(dynamic), keep: Some(input.keep.into()), ..Swap::default() };
            let plan = swaps(&Settings { swap, ..Settings::default() }).unwrap();
            outcome(&plan, &input.trace).unwrap().wear.deviation
        };
        let (with, without) = (deviation(true), deviation(false));
        assert!(with < without, "{}: {with} with levelling, {without} without", input.name);
    }
}
