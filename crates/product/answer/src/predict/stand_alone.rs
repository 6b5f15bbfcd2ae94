//! The stand-alone time of a recorded program that cannot be run again: the time of its recording without what
//! recording took from it. It is a rough number, with a wide range (`TAKEN` in `curve.rs`).

use coldframe_recording::entries::{own, Word};
use coldframe_store::window::Recorded as Process;

/// The program's own time, if its recording took `seconds`: processes that run at the same time wait for the one from
/// which most was taken.
pub fn stand_alone(processes: &[Process], seconds: f64) -> f64 {
    let taken = |process: &Process| {
        let word = |word| process.word(word) as f64;
        word(Word::Ended) - word(Word::Started) - own(|word| process.word(word)) + word(Word::Starting)
    };
    let taken = processes.iter().map(taken).fold(0.0, f64::max) / 1e9;
    (seconds - taken).max(seconds / LEAST)
}

/// The program's own time is at least the recording's time divided by this: a smaller estimate would be noise.
const LEAST: f64 = 100.0;
