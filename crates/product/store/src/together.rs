//! What the processes of a command have in RAM at one time, from their recordings: the sum that a limit on all of them
//! sees.
//!
//! ```text
//!   parent  ──┬── writes a page ──────► there twice: the child keeps the old bytes
//!            fork: all pages are there once
//!   child   ──┴── reads: still once ─── writes: twice ─── releases, or ends: once
//! ```
//! A record has no time of its own. The recorder notes the clock now and then, and a fork is a moment that both files
//! know; records in between are evenly spread. A write to a page that is in the recorder's window at the fork shows
//! only when the page enters the next time, so up to a window of copies is not counted.

use std::collections::BTreeMap;

use coldframe_recording::entries::{is_sampled, Record, Word};
use coldframe_recording::span::PAGE;
use rustc_hash::FxHashSet;

use crate::provenance::Moment;
use crate::recorded::Recorded;

/// Parts of the run; of each the moment with the largest sum is noted.
const PARTS: u64 = 64;
/// Numbers of events: the start of a process, and its end. Between them is each record's.
const START: usize = 0;
const END: usize = usize::MAX;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Together {
    /// For each process, the sampled pages that it has from its parent.
    pub inherited: Vec<FxHashSet<u32>>,
    moments: BTreeMap<u64, Moment>,
}

/// A process at a moment.
#[derive(Debug, Default)]
struct Life {
    parent: Option<usize>,
    children: Vec<usize>,
    alive: bool,
    /// Its pages.
    live: FxHashSet<u32>,
    /// Of those, pages that are its parent's, too.
    shared: FxHashSet<u32>,
    /// Pages that entered the window since the last fork.
    entered: FxHashSet<u32>,
}

/// The processes at a moment.
struct Now {
    all: Vec<Life>,
    /// Pages of all: each once.
    sum: usize,
}

impl Together {
    /// Of processes in the order of their starts; of one alone there is nothing to say. Only pages in this sample
    /// count.
    pub fn of(processes: &[Recorded], shift: u32) -> Together {
        let mut together = Together { inherited: vec![FxHashSet::default(); processes.len()], ..Together::default() };
        if processes.len() < 2 {
            return together;
        }
        let parents: Vec<Option<usize>> = (0..processes.len()).map(|i| parent(processes, i)).collect();
        let mut events = Vec::new();
        for (i, process) in processes.iter().enumerate() {
            let forks = (0..processes.len()).filter(|child| parents[*child] == Some(i));
            let forks = forks.map(|child| {
                let child = &processes[child];
                (child.word(Word::Inherited) as usize, child.word(Word::Started))
            });
            let forks: Vec<(usize, u64)> = forks.collect();
            let end = forks.iter().map(|(_, time)| *time).fold(process.end(), u64::max);
            let times = times(process, forks);
            events.extend(times.into_iter().enumerate().map(|(number, time)| (time, i, number + 1)));
            events.extend([(process.word(Word::Started), i, START), (end, i, END)]);
        }
        // What a process does at its very end comes before its end.
        events.sort_unstable_by_key(|(time, i, number)| (*time, *number == END, *i, *number));
        let (first, last) = (events[0].0, events[events.len() - 1].0);
        let part = |time: u64| (time - first) * PARTS / (last - first + 1);
        let lives = parents.iter().map(|parent| Life { parent: *parent, ..Life::default() });
        let mut now = Now { all: lives.collect(), sum: 0 };
        let mut best = (0, 0);
        for (time, i, number) in events {
            let before = now.sum;
            let less = match number {
                START => {
                    now.start(i);
                    together.inherited[i] = now.all[i].live.clone();
                    false
                }
                END => true,
                number => matches!(processes[i].records[number - 1], Record::Released { .. }),
            };
            if best.0 != part(time) {
                best = (part(time), 0);
            }
            if less && before > best.1 {
                best.1 = before;
                together.moments.insert(best.0, now.moment());
            }
            match number {
                START => {}
                END => now.end(i),
                number => now.record(i, &processes[i].records[number - 1], shift),
            }
        }
        together
    }

    /// The moments with the most pages, without those of which another one has more of each process. `sample`: the
    /// share of pages that was recorded.
    pub fn moments(self, sample: f64) -> Vec<Moment> {
        let bytes = |bytes: u64| ((bytes / PAGE) as f64 / sample).round() as u64 * PAGE;
        let scaled = self.moments.into_values().map(|moment| Moment {
            bytes: moment.bytes.into_iter().map(bytes).collect(),
            shared_bytes: bytes(moment.shared_bytes),
        });
        let mut all: Vec<Moment> = scaled.collect();
        all.sort_by_key(|moment| std::cmp::Reverse(moment.sum()));
        let mut largest: Vec<Moment> = Vec::new();
        for moment in all {
            let more = |other: &Moment| {
                let pairs = moment.bytes.iter().zip(&other.bytes);
                moment.bytes.len() <= other.bytes.len() && pairs.into_iter().all(|(own, other)| own <= other)
            };
            if !largest.iter().any(more) {
                largest.push(moment);
            }
        }
        largest
    }
}

/// The process that forked this one, by its place: the last program that ran under the parent's number.
fn parent(processes: &[Recorded], child: usize) -> Option<usize> {
    let (number, started) = (processes[child].word(Word::Parent), processes[child].word(Word::Started));
    let is = |other: &usize| {
        let other = &processes[*other];
        other.word(Word::Process) == number && other.word(Word::Started) <= started
    };
    (0..child).rfind(is).filter(|_| number != 0)
}

/// The time of each record. `forks`: how many records there were, and when.
fn times(process: &Recorded, mut marks: Vec<(usize, u64)>) -> Vec<u64> {
    let clocks = process.records.iter().enumerate();
    marks.extend(clocks.filter_map(|(i, record)| match record {
        Record::Clock { time } => Some((i, *time)),
        _ => None,
    }));
    let (started, ended) = (process.word(Word::Started), process.word(Word::Ended));
    marks.extend([(0, started), (process.records.len(), ended)]);
    marks.sort_unstable();
    let mut all = Vec::with_capacity(process.records.len());
    for pair in marks.windows(2) {
        let ((from, start), (to, end)) = (pair[0], pair[1]);
        let start = start.max(all.last().copied().unwrap_or(started));
        let step = end.saturating_sub(start) as f64 / (to - from).max(1) as f64;
        all.extend((all.len()..to.min(process.records.len())).map(|i| start + ((i - from) as f64 * step) as u64));
    }
    all
}

impl Now {
    fn start(&mut self, i: usize) {
        self.all[i].alive = true;
        let Some(parent) = self.all[i].parent.filter(|parent| self.all[*parent].alive) else { return };
        let live = self.all[parent].live.clone();
        self.all[parent].entered.clear();
        self.all[parent].children.push(i);
        (self.all[i].live, self.all[i].shared) = (live.clone(), live);
    }

    fn end(&mut self, i: usize) {
        let Life { live, shared, children, parent, .. } = std::mem::take(&mut self.all[i]);
        self.sum -= live.len() - shared.len();
        // What was shared with it is its child's alone.
        for child in children {
            self.sum += std::mem::take(&mut self.all[child].shared).len();
        }
        parent.into_iter().for_each(|parent| self.all[parent].children.retain(|child| *child != i));
    }

    fn record(&mut self, i: usize, record: &Record, shift: u32) {
        match *record {
            Record::Entry { page, write, .. } if is_sampled(page, shift) => {
                self.sum += usize::from(self.all[i].live.insert(page));
                self.all[i].entered.insert(page);
                if write {
                    self.divide(i, page);
                }
            }
            Record::Changed { page } if self.all[i].entered.contains(&page) => self.divide(i, page),
            Record::Released { page, pages } => {
                for page in (page..page + pages as u32).filter(|page| is_sampled(*page, shift)) {
                    self.divide(i, page);
                    self.sum -= usize::from(self.all[i].live.remove(&page));
                }
            }
            _ => {}
        }
    }

    /// From now on no other process has this page of the process.
    fn divide(&mut self, i: usize, page: u32) {
        self.sum += usize::from(self.all[i].shared.remove(&page));
        for at in 0..self.all[i].children.len() {
            let child = self.all[i].children[at];
            self.sum += usize::from(self.all[child].shared.remove(&page));
        }
    }

    fn moment(&self) -> Moment {
        let pages = self.all.iter().map(|life| life.live.len() as u64).filter(|pages| *pages > 0);
        let mut bytes: Vec<u64> = pages.map(|pages| pages * PAGE).collect();
        bytes.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
        Moment { shared_bytes: bytes.iter().sum::<u64>() - self.sum as u64 * PAGE, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn process(number: u64, words: &[(Word, u64)], records: Vec<Record>) -> Recorded {
        Recorded::of(&[&[(Word::Process, number), (Word::Whole, 1)], words].concat(), records)
    }

    fn entries(pages: std::ops::Range<u32>, write: bool) -> impl Iterator<Item = Record> {
        pages.map(move |page| Record::Entry { page, write, thread: 1, time: 0 })
    }

    fn sums(processes: &[Recorded]) -> Vec<(Vec<u64>, u64)> {
        let moments = Together::of(processes, 0).moments(1.0).into_iter();
        moments.map(|one| (one.bytes.iter().map(|bytes| bytes / PAGE).collect(), one.sum() / PAGE)).collect()
    }

    /// A parent with 100 pages forks when it has had them for a second, and waits for its child.
    fn with_child(child: Vec<Record>) -> Vec<Recorded> {
        let parent = process(7, &[(Word::Started, 0), (Word::Ended, 4 * S)], entries(0..100, true).collect());
        let words = [(Word::Parent, 7), (Word::Inherited, 100), (Word::Started, S), (Word::Ended, 3 * S)];
        vec![parent, process(8, &words, child)]
    }

    #[test]
    fn what_a_forked_child_reads_is_there_once_and_what_it_writes_twice() {
        assert_eq!(sums(&with_child(entries(0..100, false).collect())), [(vec![100, 100], 100)]);
        let some = entries(0..30, false).chain(entries(30..70, true)).chain(entries(100..105, true));
        assert_eq!(sums(&with_child(some.collect())), [(vec![105, 100], 145)]);
        // A page that has come in again and left with other bytes was written.
        let changed = entries(0..2, false).chain([Record::Changed { page: 1 }, Record::Changed { page: 9 }]);
        assert_eq!(sums(&with_child(changed.collect())), [(vec![100, 100], 101)]);
    }

    #[test]
    fn what_a_parent_writes_after_the_fork_is_there_twice_until_the_child_releases_it() {
        let mut both = with_child(vec![Record::Clock { time: 5 * S / 2 }, Record::Released { page: 0, pages: 100 }]);
        both[0].records.extend([Record::Clock { time: 2 * S }].into_iter().chain(entries(0..40, true)));
        both[0].records.push(Record::Clock { time: 9 * S / 4 });
        assert_eq!(sums(&both), [(vec![100, 100], 140)]);
    }

    #[test]
    fn what_lives_one_after_the_other_is_not_added_up() {
        let at = |number, from, to, pages| {
            let records = entries(0..pages, true).chain([Record::Clock { time: from * S + S / 2 }]);
            process(number, &[(Word::Started, from * S), (Word::Ended, to * S)], records.collect())
        };
        assert_eq!(sums(&[at(1, 0, 2, 50), at(2, 3, 5, 60)]), [(vec![60], 60)]);
        assert_eq!(sums(&[at(1, 0, 4, 50), at(2, 1, 5, 60)]), [(vec![60, 50], 110)]);
        // It was killed, and its end is known from outside.
        let mut killed = at(1, 0, 2, 50);
        killed = Recorded::of(&[(Word::Process, 1), (Word::Ended, 2 * S), (Word::Gone, 9 * S)], killed.records);
        assert_eq!(sums(&[killed, at(2, 3, 5, 60)]), [(vec![60, 50], 110)]);
    }

    #[test]
    fn with_less_ram_each_process_has_at_most_that_much() {
        let moment = Moment { bytes: vec![100, 60, 10], shared_bytes: 50 };
        assert_eq!([200, 100, 70, 20, 5].map(|ram| moment.within(ram, 0)), [120, 120, 140, 50, 15]);
        assert_eq!([200, 105, 104, 20].map(|ram| moment.within(ram, 5)), [135, 135, 184, 55]);
    }
}
