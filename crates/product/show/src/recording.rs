//! A recording in words.

use coldframe_answer::predict::record::Recording;
use coldframe_sheet::quantity::{human_count, things};

/// What was recorded, how much slower that was, and what is missing.
pub fn words(recording: &Recording) -> String {
    let mut text = format!(
        "coldframe: {}: {} rows in {:.2} s, {} bytes\ncoldframe: {} faults took {:.2} s in handlers ({:.1} us each); \
         the program alone takes about {:.2} s\n",
        recording.trace.display(),
        human_count(recording.rows),
        recording.seconds,
        human_count(recording.bytes_written),
        human_count(recording.faults),
        recording.handling_seconds,
        recording.handling_seconds * 1e6 / recording.faults.max(1) as f64,
        recording.program_seconds,
    );
    if let Some(native) = recording.native_seconds {
        text +=
            &format!("coldframe: {:.1} times slower than the program alone\n", recording.seconds / native.max(1e-6));
    }
    if recording.processes > 1 {
        text += &format!("coldframe: {} and forked children\n", things(recording.processes as u64, "program"));
    }
    if let Some(code) = recording.status.filter(|code| *code != 0) {
        text += &format!("coldframe: the program ended with exit code {code}\n");
    }
    for remark in recording.remarks() {
        text += &format!("coldframe: {remark}\n");
    }
    text
}
