//! The stand-alone time of a recorded program: the time of its recording without what recording took from it.

use coldframe_recording::entries::{delayed, own, Word};
use coldframe_store::window::Recorded as Process;

/// The program's own time, if its recording took `seconds`: without the time that the recorder took from each
/// process, and without the time that its threads waited for a processor.
pub fn stand_alone(processes: &[Process], seconds: f64) -> f64 {
    let of = |process: &Process| {
        let word = |word| process.word(word) as f64;
        let taken = word(Word::Ended) - word(Word::Started) - own(|word| process.word(word));
        Took {
            start: word(Word::Started) - word(Word::Starting),
            end: word(Word::Ended),
            taken: taken + word(Word::Starting),
            idle: (word(Word::Idle) - delayed(|word| process.word(word))).max(0.0),
        }
    };
    let taken = together(&processes.iter().map(of).collect::<Vec<_>>()) / 1e9;
    (seconds - taken).max(seconds / LEAST)
}

/// The start and end of a process, the time that was taken from it, evenly spread, and the time that it waited, in
/// nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Took {
    start: f64,
    end: f64,
    taken: f64,
    idle: f64,
}

/// The time that recording took from several processes together. Processes that run at the same time wait for the one
/// from which most was taken. In its idle time, that process has also waited for the time taken from the others.
fn together(processes: &[Took]) -> f64 {
    let mut marks: Vec<f64> = processes.iter().flat_map(|process| [process.start, process.end]).collect();
    marks.sort_by(f64::total_cmp);
    let share = |from: f64, to: f64| {
        let parallel = processes.iter().filter(|one| one.start <= from && to <= one.end && one.start < one.end);
        let rates = parallel.map(|one| (one.taken / (one.end - one.start), one.idle / (one.end - one.start)));
        let (mut most, mut idle, mut all) = (0.0, 0.0, 0.0);
        for (taken, waited) in rates {
            all += taken;
            if taken > most {
                (most, idle) = (taken, waited);
            }
        }
        most + idle.min(all - most)
    };
    marks.windows(2).map(|mark| (mark[1] - mark[0]) * share(mark[0], mark[1])).sum()
}

/// The program's own time is at least the recording's time divided by this: a smaller estimate would be noise.
const LEAST: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_processes_are_added_up_and_parallel_ones_are_not() {
        let took = |start, end, taken| Took { start, end, taken, idle: 0.0 };
        let after = together(&[took(0.0, 4.0, 2.0), took(4.0, 8.0, 1.0)]);
        let parallel = together(&[took(0.0, 4.0, 2.0), took(0.0, 4.0, 1.0)]);
        let waits = together(&[took(0.0, 8.0, 0.0), took(2.0, 4.0, 1.0)]);
        assert_eq!(
            [after, parallel, waits, together(&[took(3.0, 3.0, 0.0)]), together(&[])],
            [3.0, 2.0, 1.0, 0.0, 0.0]
        );
    }

    #[test]
    fn processes_that_wait_for_each_other_are_added_up_as_far_as_they_wait() {
        // A server that lost 2 s and waited for 3 s, and its client, which lost 1.5 s in the meantime.
        let server = Took { start: 0.0, end: 8.0, taken: 2.0, idle: 3.0 };
        let client = Took { taken: 1.5, idle: 2.5, ..server };
        assert_eq!(together(&[server, client]), 3.5);
        assert_eq!(together(&[Took { idle: 0.5, ..server }, client]), 2.5);
    }
}
