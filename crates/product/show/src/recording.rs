//! A recording in words.

use coldframe_answer::predict::record::Recording;
use coldframe_sheet::quantity::human_count;

/// What was recorded, how much slower that was, and what is missing.
pub fn words(of: &Recording) -> String {
    let mut text = format!(
        "coldframe: {}: {} rows in {:.2} s, {} bytes\ncoldframe: {} faults took {:.2} s in handlers ({:.1} us each); the program alone takes about {:.2} s\n",
        of.trace.display(),
        human_count(of.rows),
        of.seconds,
        human_count(of.bytes_written),
        human_count(of.faults),
        of.handling_seconds,
        of.handling_seconds * 1e6 / of.faults.max(1) as f64,
        of.program_seconds,
    );
    if let Some(native) = of.native_seconds {
        text += &format!("coldframe: {:.1} times slower than the program alone\n", of.seconds / native.max(1e-6));
    }
    if of.processes > 1 {
        text += &format!("coldframe: {} programs and forked children\n", of.processes);
    }
    if let Some(code) = of.status.filter(|code| *code != 0) {
        text += &format!("coldframe: the program ended with exit code {code}\n");
    }
    for remark in of.remarks() {
        text += &format!("coldframe: {remark}\n");
    }
    text
}
