//! Interleaves threads. A recorder writes a thread's references in stretches: one thread pauses for thousands of
//! references while another runs. Here all threads of a process advance at the same speed, one row of each in turn;
//! the order within a thread stays. This is a guess, since no recording has the threads' speeds.

use std::collections::{BTreeMap, VecDeque};

use coldframe_store::Reference;

/// Words of a recorder's stretch (`qemu-plugin/src/wire.rs`): the most rows of one thread in a row.
const STRETCH: usize = 8184;

/// Rows of the threads of one process, on their way.
#[derive(Debug, Default)]
pub struct Interleave {
    queues: BTreeMap<u32, VecDeque<Reference>>,
    queued: usize,
    /// Rows that are held back, so that each running thread has some; 0 if there is only one thread.
    window: usize,
}

impl Interleave {
    /// For this many threads.
    pub fn new(threads: usize) -> Interleave {
        let window = if threads > 1 { 2 * STRETCH * threads } else { 0 };
        Interleave { window, ..Interleave::default() }
    }

    /// Takes a row, and hands out rows in turn.
    pub fn push(&mut self, row: Reference, out: &mut impl FnMut(&Reference)) {
        self.queues.entry(row.task).or_default().push_back(row);
        self.queued += 1;
        if self.queued > self.window {
            self.turn(out);
        }
    }

    /// Hands out the remaining rows.
    pub fn finish(&mut self, out: &mut impl FnMut(&Reference)) {
        while self.queued > 0 {
            self.turn(out);
        }
    }

    fn turn(&mut self, out: &mut impl FnMut(&Reference)) {
        for row in self.queues.values_mut().filter_map(VecDeque::pop_front) {
            self.queued -= 1;
            out(&row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_store::Kind;

    fn order(threads: usize, tasks: &[u32]) -> Vec<(u32, u64)> {
        let (mut interleave, mut got) = (Interleave::new(threads), Vec::new());
        let mut out = |row: &Reference| got.push((row.task, row.address));
        for (i, task) in tasks.iter().enumerate() {
            interleave.push(Reference { task: *task, ..Reference::new(i as u64, 1, Kind::Read) }, &mut out);
        }
        interleave.finish(&mut out);
        got
    }

    #[test]
    fn stretches_of_two_threads_become_steps_in_turn() {
        assert_eq!(order(2, &[1, 1, 1, 2, 2, 1]), [(1, 0), (2, 3), (1, 1), (2, 4), (1, 2), (1, 5)]);
    }

    #[test]
    fn one_thread_goes_straight_through() {
        assert_eq!(order(1, &[4, 4, 4]), [(4, 0), (4, 1), (4, 2)]);
    }

    #[test]
    fn no_more_rows_are_held_back_than_the_window_has() {
        let mut interleave = Interleave::new(2);
        let mut given = 0;
        for i in 0..10 * STRETCH as u64 {
            interleave.push(Reference::new(i, 1, Kind::Read), &mut |_| given += 1);
        }
        assert_eq!(given, 6 * STRETCH);
    }
}
