//! The abstract's claim about faults, on recorded workers.

use coldframe_core::Bytes;
use coldframe_experiment::systems::sap;
use coldframe_sim::tasks::Program;
use coldframe_trace::{Reader, Wanted};

use super::*;

/// "The number of the major page faults [...] decreased by 30%".
#[test]
fn major_faults_fall_by_about_a_third_and_no_page_is_loaded_for_nothing_more_than_once_in_ten() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces/worker.parquet");
    let mut reader = Reader::open(path).unwrap();
    let wanted = Wanted { task: false, count: reader.columns().count, time: false, ..Wanted::ACCESS };
    let shift = sap::PAGE.0.trailing_zeros();
    let program = Program::read(shift, |block| reader.read(block, wanted).map(|rows| rows > 0)).unwrap();
    let run = |kernel| experiments::run(kernel, Bytes(32 << 20), (sap::REFERENCE, None), &program, (1, false)).unwrap();
    let (vanilla, prefetching) = (run(KERNELS[0]), run(KERNELS[1]));
    let fewer = -change(vanilla.major(), prefetching.major());
    assert!((fewer - 30.0).abs() < 6.0, "{fewer} % fewer major faults");
    assert!(prefetching.faults() < vanilla.faults(), "and fewer faults in all");
    let p = prefetching.prefetched();
    assert!(10 * p.useless < p.loads, "{} of {} pages for nothing", p.useless, p.loads);
}
