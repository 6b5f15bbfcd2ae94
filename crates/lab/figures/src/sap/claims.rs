//! The claim of the abstract about faults, on the experiment of table 1.

use coldframe_drivers::tasks::TasksResult;

use super::*;

/// "The number of the major page faults [...] decreased by 30%"; and section 5.3: an earlier start spares more of them,
/// and "just after a context switch would give maximum effect".
#[test]
fn major_faults_fall_by_about_a_third_and_more_with_an_earlier_start() {
    let [vanilla, late, half_slice, at_once] = KERNELS.map(|kernel| stress(32, kernel, &TURNS).unwrap());
    let fewer = |with: &TasksResult| -change(vanilla.major(), with.major());
    assert!((fewer(&late) - 30.0).abs() < 6.0, "{} % fewer major faults", fewer(&late));
    assert!(fewer(&half_slice) > fewer(&late), "{} % from half of the slice on", fewer(&half_slice));
    assert!(fewer(&at_once) > fewer(&half_slice), "{} % from a switch on", fewer(&at_once));
    assert!(late.faults() < vanilla.faults() && half_slice.faults() < vanilla.faults(), "and fewer faults in all");
    let pages = late.prefetched();
    assert!(10 * pages.useless < pages.loads, "{} of {} pages for nothing", pages.useless, pages.loads);
}
