//! Clears and counts the referenced bits of processes in stretches, as often as its budget allows.
//!
//! Within a stretch, looks come at growing times. A stretch of a program ends when nearly all of its heap was
//! referenced again, or after a part of the time so far: so there are many stretches for working sets of short times,
//! and some for long ones. One of a machine ends at a given time. What a clearing and a look cost is measured, and they
//! wait until this is a small part of the time again.

use std::collections::HashMap;
use std::time::Duration;

use coldframe_proc::{mappings, Area, Mapping};

use crate::predict::bits::budget::Budget;
use crate::predict::bits::look::{Look, Stretch};
use crate::predict::bits::reader::Reader;

/// Each look of a stretch comes at this many times the time of the one before.
pub(crate) const GROWTH: f64 = 1.5;
/// A stretch is over when this part of the heap was referenced, or, after [`LOOKS`], if less than this part was new.
const ENOUGH: f64 = 0.95;
const NEW: f64 = 0.001;
/// A stretch has looks at least up to this many times the first one's time, and ends after this part of all time.
const LOOKS: u32 = 32;
const PART: u32 = 3;
/// How often an observer is asked about a program: at least, at most, and as a part of the time so far; and about a
/// machine.
const TICK: Duration = Duration::from_millis(5);
const TICK_MAX: Duration = Duration::from_millis(50);
const TICKS: u32 = 200;
const MACHINE_TICK: Duration = Duration::from_millis(200);
const KIB: f64 = 1024.0;

/// Which memory counts, and by which clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// The heaps of a program's processes, by their processor time: a program that waits references nothing.
    Program,
    /// All private memory of a machine's processes, also that in swap, by the clock.
    Machine,
}

impl Scope {
    /// The part of a mapping's pages in RAM that counts; `None`: the mapping has nothing that counts.
    fn part(self, mapping: &Mapping, area: &Area) -> Option<f64> {
        let counts = &mapping.counts;
        match self {
            Scope::Program => area.heap.then_some(1.0),
            Scope::Machine if counts.anonymous == 0 && counts.swap == 0 => None,
            Scope::Machine => Some(counts.anonymous as f64 / counts.rss.max(1) as f64),
        }
    }

    fn tick(self, clock: Duration) -> Duration {
        match self {
            Scope::Program => (clock / TICKS).clamp(TICK, TICK_MAX),
            Scope::Machine => MACHINE_TICK,
        }
    }
}

/// The private memory of processes, in bytes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Private {
    /// In RAM; a page of several processes is shared among them.
    pub resident: f64,
    /// Of that, referenced since the clearing.
    pub referenced: f64,
    /// In swap.
    pub swap: f64,
    /// In huge pages.
    pub huge: f64,
}

impl Private {
    fn add(&mut self, more: Private) {
        self.resident += more.resident;
        self.referenced += more.referenced;
        self.swap += more.swap;
        self.huge += more.huge;
    }
}

/// What one count of all bits shows.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Count {
    /// What was referenced since the clearing.
    pub look: Look,
    /// The memory that counts.
    pub private: Private,
    /// Bytes in RAM of mappings that do not count.
    pub others: f64,
    /// Processes that have memory.
    pub processes: u64,
}

/// Who hears of each count, and says when to stop.
pub(crate) trait Observer<R> {
    /// Whether watching goes on. It is asked many times a second.
    fn goes_on(&mut self, reader: &mut R) -> bool;

    /// A count begins.
    fn begin(&mut self) {}

    /// A process is counted.
    fn process(&mut self, _reader: &R, _process: u32, _mappings: &[Mapping], _private: Private) {}

    /// All processes have been counted.
    fn count(&mut self, _count: &Count) {}
}

/// When the looks of a stretch come, and when it is over.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pace {
    /// The time from the clearing to the first look.
    pub first: Duration,
    /// Each look comes at this many times the time of the one before.
    pub growth: f64,
    /// When it is over, by the reader's clock; `None`: when it has shown enough.
    pub end: Option<Duration>,
    /// Whether a look that is due waits for the budget.
    pub waits: bool,
}

/// Clears and counts the bits of processes.
pub(crate) struct Watcher<R> {
    /// What is watched.
    pub reader: R,
    scope: Scope,
    budget: Budget,
    /// KiB in RAM and referenced at the last look, by process and start.
    before: HashMap<(u32, u64), (u64, u64)>,
    /// Heaps at the last look: process, place, and bytes in RAM.
    pub heaps: Vec<(u32, Area, f64)>,
    /// The last look since the clearing.
    last: Look,
    /// Bytes that came back since the clearing.
    again: f64,
    /// When clearing began and was done, and when the last look was.
    clear_began: Duration,
    cleared: Duration,
    looked: Duration,
    /// Processor time of each process when clearing began.
    cleared_ns: HashMap<u32, u64>,
    /// What they ran while the bits were cleared.
    clearing_ns: u64,
    /// Seconds that the last look and the last clearing cost.
    look_cost: f64,
    clear_cost: f64,
}

impl<R: Reader> Watcher<R> {
    pub fn new(reader: R, scope: Scope, budget: Budget) -> Watcher<R> {
        Watcher {
            reader,
            scope,
            budget,
            before: HashMap::new(),
            heaps: Vec::new(),
            last: Look::default(),
            again: 0.0,
            clear_began: Duration::ZERO,
            cleared: Duration::ZERO,
            looked: Duration::ZERO,
            cleared_ns: HashMap::new(),
            clearing_ns: 0,
            look_cost: 0.0,
            clear_cost: 0.0,
        }
    }

    /// The time from the clearing to the last look.
    pub fn covered(&self) -> Duration {
        self.looked.saturating_sub(self.cleared)
    }

    /// Whether watching may cost more now. Of a machine, that is the next look: it must not be late because of it. The
    /// first looks at a program wait for nothing.
    pub fn affordable(&self) -> bool {
        let next = if self.scope == Scope::Machine { self.look_cost + self.clear_cost } else { 0.0 };
        self.budget.allows(self.reader.spent_seconds() + next, self.reader.clock())
    }

    /// The time after a look until watching may cost another one.
    pub fn pause(&self) -> Duration {
        self.budget.pause(self.look_cost + self.clear_cost)
    }

    /// Clears all bits: a stretch begins.
    pub fn clear(&mut self) {
        let spent = self.reader.spent_seconds();
        self.before.values_mut().for_each(|(_, referenced)| *referenced = 0);
        (self.last, self.again) = (Look::default(), 0.0);
        let mut processes = self.reader.processes();
        self.clear_began = self.reader.clock();
        self.cleared_ns = match self.scope {
            Scope::Program => processes.iter().map(|pid| (*pid, self.reader.processor_ns(*pid))).collect(),
            Scope::Machine => HashMap::new(),
        };
        // One that cannot be cleared has ended.
        processes.retain(|pid| self.reader.clear(*pid));
        self.clearing_ns = self.ran_ns(&processes);
        self.cleared = self.reader.clock();
        self.clear_cost = self.reader.spent_seconds() - spent;
    }

    /// Nanoseconds since clearing began, by the clock of the scope.
    fn ran_ns(&self, processes: &[u32]) -> u64 {
        let start = |pid: &u32| self.cleared_ns.get(pid).copied().unwrap_or(0);
        match self.scope {
            Scope::Program => {
                processes.iter().map(|pid| self.reader.processor_ns(*pid).saturating_sub(start(pid))).sum()
            }
            Scope::Machine => self.reader.clock().saturating_sub(self.clear_began).as_nanos() as u64,
        }
    }

    /// Counts the bits of all processes; `None`: none has memory any more.
    pub fn look(&mut self, observer: &mut dyn Observer<R>) -> Option<Count> {
        observer.begin();
        let (spent, processes) = (self.reader.spent_seconds(), self.reader.processes());
        let ran = self.ran_ns(&processes);
        let (mut count, mut files, mut now, mut heaps) = (Count::default(), HashMap::new(), HashMap::new(), Vec::new());
        for pid in &processes {
            let text = self.reader.smaps(*pid).unwrap_or_default();
            if text.is_empty() {
                continue;
            }
            let (mappings, mut private) = (mappings(&text), Private::default());
            for mapping in &mappings {
                referenced_files(mapping, &mut files);
                let (area, counts) = (Area::of(mapping), mapping.counts);
                let Some(part) = self.scope.part(mapping, &area) else {
                    count.others += counts.rss as f64 * KIB;
                    continue;
                };
                // A page that several processes use is one page.
                let each = KIB * counts.pss as f64 / counts.rss.max(1) as f64;
                let (rss, referenced) = self.before.get(&(*pid, area.start)).copied().unwrap_or_default();
                let new = counts.rss.saturating_sub(rss);
                let again = counts.referenced.saturating_sub(referenced).saturating_sub(new);
                self.again += again as f64 * part * each;
                now.insert((*pid, area.start), (counts.rss, counts.referenced));
                private.add(Private {
                    resident: counts.rss as f64 * part * each,
                    referenced: counts.referenced as f64 * part * each,
                    swap: counts.swap as f64 * KIB,
                    huge: counts.huge as f64 * KIB,
                });
                if area.heap && counts.rss > 0 {
                    heaps.push((*pid, area, counts.rss as f64 * each));
                }
            }
            count.processes += 1;
            count.private.add(private);
            observer.process(&self.reader, *pid, &mappings, private);
        }
        self.look_cost = self.reader.spent_seconds() - spent;
        if count.private.resident + count.others == 0.0 {
            return None;
        }
        self.looked = self.reader.clock();
        // What a process ran that has ended since is not counted any more.
        let (shortest, longest) =
            (ran.saturating_sub(self.clearing_ns) as f64, self.ran_ns(&processes).max(ran) as f64);
        count.look = Look {
            seconds: self.last.seconds.max((shortest + longest) / 2e9),
            spread: (longest - shortest) / 2e9,
            referenced_bytes: count.private.referenced.round() as u64,
            file_bytes: files.values().sum(),
            again_bytes: self.again.round() as u64,
        };
        (self.last, self.before, self.heaps) = (count.look, now, heaps);
        observer.count(&count);
        Some(count)
    }

    /// Waits until this time and until watching may cost more, but for the latter not after `end`. Whether watching
    /// goes on.
    pub fn wait(&mut self, until: Duration, end: Option<Duration>, observer: &mut dyn Observer<R>) -> bool {
        while observer.goes_on(&mut self.reader) {
            let clock = self.reader.clock();
            let (left, tick) = (until.saturating_sub(clock), self.scope.tick(clock));
            if left.is_zero() && (end.is_some_and(|end| clock >= end) || self.affordable()) {
                return true;
            }
            self.reader.sleep(if left.is_zero() { tick } else { tick.min(left) });
        }
        false
    }

    /// Looks at growing times after a clearing, until the stretch is over or the observer says no. If the processes may
    /// be stopped, they are when it returns: what is done then takes none of their time.
    pub fn stretch(&mut self, pace: &Pace, observer: &mut dyn Observer<R>) -> Stretch {
        let (mut stretch, mut due, mut goes_on) = (Stretch::default(), pace.first, true);
        while goes_on {
            let until = pace.end.map_or(self.cleared + due, |end| end.min(self.cleared + due));
            goes_on = self.wait(until, if pace.waits { pace.end } else { Some(until) }, observer);
            if goes_on {
                self.reader.stop();
            }
            let before = self.last;
            if let Some(Count { look, private, .. }) = self.look(observer) {
                let swap = if self.scope == Scope::Machine { private.swap } else { 0.0 };
                stretch.private_bytes = stretch.private_bytes.max((private.resident + swap).round() as u64);
                stretch.looks.push(look);
            }
            // While processes stand, a look costs them nothing.
            let first = pace.first.max(Duration::from_secs_f64(2.0 * self.look_cost.max(0.0)));
            let (clock, since) = (self.reader.clock(), self.reader.clock().saturating_sub(self.cleared));
            let over = match pace.end {
                Some(end) => clock >= end,
                None => {
                    let new = self.last.referenced_bytes.saturating_sub(before.referenced_bytes);
                    shows_enough(&stretch, new, first, since, clock)
                }
            };
            if over {
                break;
            }
            due = if pace.end.is_some() { since } else { since.max(first / 2) }.mul_f64(pace.growth);
            if goes_on {
                self.reader.resume();
            }
        }
        stretch
    }
}

/// Adds the part of a mapped file that was referenced. A part that several processes map is there once.
fn referenced_files(mapping: &Mapping, files: &mut HashMap<(String, u64, u64), u64>) {
    let counts = mapping.counts;
    if mapping.inode != 0 && counts.rss > counts.anonymous {
        let bytes = files.entry((mapping.device.to_string(), mapping.inode, mapping.offset)).or_default();
        let unchanged = 1.0 - counts.anonymous as f64 / counts.rss as f64;
        *bytes = (*bytes).max((KIB * counts.referenced as f64 * unchanged) as u64);
    }
}

/// Whether a stretch has shown enough of a program: `new` bytes were referenced since the look before.
fn shows_enough(stretch: &Stretch, new: u64, first: Duration, since: Duration, clock: Duration) -> bool {
    let (long, heap) = (LOOKS * first, stretch.private_bytes as f64);
    let referenced = stretch.looks.last().map_or(0.0, |look| look.referenced_bytes as f64);
    let known = referenced >= ENOUGH * heap || since >= long && (new as f64) < NEW * heap;
    known || since >= long.max(clock / PART)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::bits::fake::{Row, Table};
    use crate::predict::bits::faults::{covered, in_stretch};

    const BUDGET: Budget = Budget { share: 0.1, patience: 0.01, advance: None };
    const PACE: Pace = Pace { first: Duration::from_millis(1), growth: GROWTH, end: None, waits: true };

    /// Goes on until a time, and keeps what it was told.
    #[derive(Default)]
    struct Until {
        end: Duration,
        counts: Vec<Count>,
        private: Vec<(u32, Private)>,
    }

    impl Observer<Table> for Until {
        fn goes_on(&mut self, table: &mut Table) -> bool {
            table.clock() < self.end
        }

        fn process(&mut self, _: &Table, process: u32, _: &[Mapping], private: Private) {
            self.private.push((process, private));
        }

        fn count(&mut self, count: &Count) {
            self.counts.push(*count);
        }
    }

    fn until(seconds: u64) -> Until {
        Until { end: Duration::from_secs(seconds), ..Until::default() }
    }

    fn table(rows: impl IntoIterator<Item = Row>) -> Table {
        Table { rows: (1..).zip(rows).collect(), ..Table::default() }
    }

    /// 4 MiB in 40 ms, then nothing new.
    fn ring(seconds: f64) -> f64 {
        (seconds * 102_400.0).min(4096.0)
    }

    #[test]
    fn looks_come_at_growing_times_and_a_stretch_ends_when_nearly_all_was_referenced_again() {
        let mut watcher = Watcher::new(table([Row::new(4096, ring)]), Scope::Program, BUDGET);
        let mut observer = until(10);
        watcher.look(&mut observer);
        watcher.clear();
        let stretch = watcher.stretch(&PACE, &mut observer);
        let times: Vec<f64> = stretch.looks.iter().map(|look| look.seconds).collect();
        assert!(times.windows(2).all(|two| (1.4..1.6).contains(&(two[1] / two[0]))), "{times:?}");
        let last = stretch.looks.last().unwrap();
        assert!((0.038..0.06).contains(&last.seconds) && stretch.private_bytes == 4096 << 10, "{stretch:?}");
        assert_eq!(last.again_bytes, last.referenced_bytes, "all of it was there before");
        // With a half of it, all references miss: 25600 pages a second.
        let rate = in_stretch(&stretch, 512.0).about / stretch.seconds();
        assert!((rate / 25_600.0 - 1.0).abs() < 0.15, "{rate}");
        assert!(covered(&[stretch]) <= 26.0);
    }

    #[test]
    fn what_is_not_used_ends_a_stretch_after_a_third_of_the_time_or_as_soon_as_nothing_is_new() {
        let quiet = Row::new(40_960, ring);
        let mut watcher = Watcher::new(table([quiet]), Scope::Program, BUDGET);
        watcher.reader.clock.set(Duration::from_secs(9));
        let mut observer = until(60);
        watcher.look(&mut observer);
        watcher.clear();
        let stretch = watcher.stretch(&PACE, &mut observer);
        // 40 ms are over 32 first looks, and the next look but one shows nothing new.
        assert!((0.06..0.2).contains(&stretch.seconds()), "{stretch:?}");
        // A page more every 40 ms: that is never all of it.
        let slow = Row::new(1 << 20, |seconds| 8192.0 + seconds * 100_000.0);
        let mut watcher = Watcher::new(table([slow]), Scope::Program, BUDGET);
        watcher.reader.clock.set(Duration::from_secs(9));
        watcher.look(&mut observer);
        watcher.clear();
        let stretch = watcher.stretch(&PACE, &mut observer);
        assert!((3.0..7.0).contains(&stretch.seconds()), "{}", stretch.seconds());
    }

    #[test]
    fn looks_wait_for_their_budget_and_the_first_one_for_what_a_look_costs() {
        let costly = Table { cost: 0.02, ..table([Row::new(1 << 20, |seconds| seconds * 4096.0)]) };
        let mut watcher = Watcher::new(costly, Scope::Program, Budget { share: 0.01, ..BUDGET });
        let mut observer = until(20);
        watcher.look(&mut observer);
        watcher.clear();
        while observer.goes_on(&mut watcher.reader) {
            watcher.stretch(&PACE, &mut observer);
            watcher.clear();
        }
        let (spent, clock) = (watcher.reader.spent_seconds(), watcher.reader.clock().as_secs_f64());
        assert!(spent < 0.01 * clock + 0.01 + 0.1, "{spent} of {clock}");
        assert!(spent > 0.005 * clock, "{spent} of {clock}: it is used, too");
        // The time of such a look is not known better than to what it takes.
        assert!(observer.counts[1..].iter().all(|count| count.look.spread >= 0.01), "{:?}", observer.counts[1]);
    }

    #[test]
    fn processes_that_may_be_stopped_stand_while_they_are_counted_so_that_times_are_exact() {
        let stops = Table { cost: 0.002, stops: true, ..table([Row::new(4096, ring)]) };
        let mut watcher = Watcher::new(stops, Scope::Program, Budget { share: 0.5, patience: 0.5, advance: None });
        let mut observer = until(1);
        watcher.look(&mut observer);
        watcher.reader.stop();
        watcher.clear();
        watcher.reader.resume();
        let stretch = watcher.stretch(&PACE, &mut observer);
        assert!(stretch.looks.iter().all(|look| look.spread == 0.0), "{stretch:?}");
    }

    #[test]
    fn a_page_of_several_processes_is_one_page_and_pages_that_come_up_have_not_come_back() {
        let half = || Row { sharers: 2, ..Row::new(4096, |_| 4096.0) };
        let mut watcher = Watcher::new(table([half(), half()]), Scope::Program, BUDGET);
        let mut observer = until(1);
        assert_eq!(watcher.look(&mut observer).unwrap().look.again_bytes, 0, "nothing was there before");
        watcher.clear();
        let count = watcher.look(&mut observer).unwrap();
        assert_eq!((count.look.referenced_bytes, count.look.again_bytes, count.processes), (4096 << 10, 4096 << 10, 2));
        // What is new since the last look is no page that came back.
        watcher.reader.rows.get_mut(&1).unwrap().kib[0] += 1024;
        watcher.reader.rows.get_mut(&1).unwrap().working_set = |_| 5120.0;
        assert_eq!(watcher.look(&mut observer).unwrap().look.again_bytes, 4096 << 10);
    }

    #[test]
    fn a_program_has_heaps_by_its_own_time_and_a_machine_all_private_memory_by_the_clock() {
        let row = || Row { kib: [4096, 400, 200, 80], load: 0.5, ..Row::new(0, ring) };
        let counted = |scope| {
            let mut watcher = Watcher::new(table([row(), row()]), scope, BUDGET);
            let mut observer = until(10);
            watcher.look(&mut observer);
            watcher.clear();
            watcher.reader.sleep(Duration::from_secs(2));
            let count = watcher.look(&mut observer).unwrap();
            (count, observer.private.pop().unwrap())
        };
        let (program, (process, _)) = counted(Scope::Program);
        assert_eq!((program.private.resident, program.others), (8192.0 * 1024.0, 960.0 * 1024.0));
        assert!((program.look.seconds - 2.0).abs() < 1e-6, "two halves of a processor: {program:?}");
        let (machine, (_, one)) = counted(Scope::Machine);
        assert_eq!((machine.private.resident, machine.private.swap), (8992.0 * 1024.0, 400.0 * 1024.0));
        assert!((machine.look.seconds - 2.0).abs() < 1e-6 && process == 2, "{machine:?}");
        assert_eq!((machine.look.file_bytes, one.referenced), (80 << 10, 4496.0 * 1024.0), "both map one file");
    }

    #[test]
    fn a_stretch_of_a_machine_ends_at_its_time_and_one_that_everybody_left_has_no_look() {
        let mut watcher = Watcher::new(table([Row::new(4096, ring)]), Scope::Machine, BUDGET);
        let mut observer = until(100);
        watcher.look(&mut observer);
        watcher.clear();
        let end = Some(Duration::from_secs(20));
        let stretch = watcher.stretch(&Pace { end, first: Duration::from_millis(500), ..PACE }, &mut observer);
        assert!((stretch.seconds() - 20.0).abs() < 0.3 && stretch.looks.len() > 8, "{stretch:?}");
        assert!(watcher.reader.longest <= MACHINE_TICK);
        watcher.clear();
        watcher.reader.rows.get_mut(&1).unwrap().end = Duration::from_secs(30);
        observer.end = Duration::from_secs(31);
        let pace = Pace { first: Duration::from_secs(40), end: None, ..PACE };
        assert_eq!(watcher.stretch(&pace, &mut observer), Stretch::default());
    }
}
