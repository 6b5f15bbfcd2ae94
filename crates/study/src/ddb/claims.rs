//! The claims of the abstract, on three recorded programs.

use super::*;

/// "On average, it achieves 28.5% reduction in execution time and 4.4% reduction in paging system energy consumption":
/// the means of range A of table 7, 0.3 to 0.7 of the working set.
#[test]
fn execution_time_falls_by_28_percent_and_energy_a_little() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces");
    let (mut time, mut energy, mut n) = (0.0, 0.0, 0.0);
    for (name, file) in PROGRAMS {
        let program = Program::measure(name, &traces.join(file), experiments::ACCESSES).unwrap();
        for tenths in 3..=7 {
            let pair = program.at(tenths);
            (time, energy, n) = (time + pair.time(), energy + pair.energy(), n + 1.0);
        }
    }
    let (time, energy) = (100.0 - time / n, 100.0 - energy / n);
    assert!((time - 28.5).abs() < 3.0, "{time} % less time");
    assert!(energy > 0.0 && (energy - 4.4).abs() < 3.0, "{energy} % less energy");
}
