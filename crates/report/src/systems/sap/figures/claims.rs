//! The abstract's claim about faults, on recorded workers. Its claim about latency is a row that is not reached (table
//! 2).

use super::*;

/// "The number of the major page faults [...] decreased by 30%".
#[test]
fn major_faults_fall_by_about_a_third_and_no_page_is_loaded_for_nothing_more_than_once_in_ten() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces");
    let stress = Stress::read(&traces).unwrap();
    let [vanilla, prefetching] = [0, 1].map(|i: usize| stress.run(32, &KERNELS[i]).unwrap());
    let fewer = -change(vanilla.major(), prefetching.major());
    assert!((fewer - 30.0).abs() < 6.0, "{fewer} % fewer major faults");
    assert!(prefetching.faults() < vanilla.faults(), "and fewer faults in all");
    let p = prefetching.prefetched();
    assert!(10 * p.useless < p.loads, "{} of {} pages for nothing", p.useless, p.loads);
}
