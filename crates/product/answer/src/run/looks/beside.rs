//! `--ram` is for all memory of a run: what is not paged is measured while the program runs, and the pager has the
//! rest.
//!
//! ```text
//!   /proc/PID/smaps of each process ─ mappings outside managed memory, page tables ─► beside
//!   --ram less beside ─► the budget of all processes (`live/src/stats/shares.rs`) ─ who has too much gives back
//! ```
//! If there is no room left, pages of files that nobody writes leave ([`resting`](super::resting)).
//!
//! A page of several processes counts once in all (Pss). A look takes 1 ms for some ten thousand pages in RAM, so it is
//! rare, and comes early only if `statm`, which costs hardly anything, says that much has changed.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use coldframe_live::{Options, StatsFile, PAGE};
use coldframe_proc::{mappings, Mapping, Process};
use coldframe_recording::plan::FLOOR;
use coldframe_recording::span::{BASE, BASE_RECORDED};
use schemars::JsonSchema;
use serde::Serialize;

use super::resting::{is_unwritten, Resting, Shortage, LEAST};

/// Assumed until the first look: code, stack and tables of a small program and the pager.
const FIRST: u64 = 4 << 20;
/// The longest time between two looks, and the shortest one, which is also that between two looks at `statm`.
const PAUSE: Duration = Duration::from_secs(1);
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(5);
/// A child of `vfork` has its own program by then. A guess.
const SECOND: Duration = Duration::from_millis(25);
/// The time between two looks in times of a look: they take a thirtieth of a processor at most.
const RARELY: u32 = 30;
/// Memory is short if less than this part of the RAM is free, and over if it has so much more.
const SHORT: u64 = 32;

/// All memory of a run by our pager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AllMemory {
    /// The most bytes at one time: paged memory, and all other memory of the program and what it starts, as it was
    /// looked at.
    pub most_bytes: u64,
    /// The most bytes of memory that is not paged: code, stacks, files, tables.
    pub beside_bytes: u64,
}

/// Follows the memory that is not paged.
pub(crate) struct Beside<'a> {
    stats: &'a StatsFile,
    ram: u64,
    state: Mutex<BesideState>,
}

struct BesideState {
    follow: Follow,
    all: AllMemory,
    /// When `statm` is read next, and `smaps`, if nothing changes; and no sooner than this if much does.
    statm: Instant,
    smaps: Instant,
    soonest: Instant,
    /// All processes at the last look.
    known: Vec<u32>,
    last: BesideSeen,
    /// The bytes of then that count: without what may grow, and with it.
    kept: (u64, u64),
    resting: Resting,
    /// The next look is the second one of a new process.
    hurries: bool,
    named: bool,
}

/// What the last look at `smaps` has seen, in bytes.
#[derive(Clone, Default)]
struct BesideSeen {
    /// Those that counted.
    processes: Vec<u32>,
    /// In RAM by `statm`, where each process counts what it shares, and paged memory of that.
    resident: u64,
    paged: u64,
    sums: Sums,
}

impl BesideSeen {
    /// By how much memory that is not paged has grown since. What processes share grows in `statm` once for each of
    /// them, so the part counts that counted then.
    fn growth(&self, resident: u64, paged: u64) -> u64 {
        let [before, now] =
            [(self.resident, self.paged), (resident, paged)].map(|(all, paged)| all.saturating_sub(paged));
        let grown = u128::from(now.saturating_sub(before)) * u128::from(self.sums.beside);
        (grown / u128::from(before.max(self.sums.beside).max(1))) as u64
    }
}

/// The bytes beside paged memory that count, by those of each look. By as much as memory has grown between two looks it
/// may grow until the next one, so paged memory leaves that free; half as much after each look without growth.
#[derive(Clone, Copy, Debug)]
struct Follow {
    counted: u64,
    grows: u64,
}

impl Follow {
    /// `held`: some is not seen now, so less counts as much as before. Returns whether to look again soon.
    fn look(&mut self, beside: u64, held: bool) -> bool {
        let before = self.counted;
        self.counted = beside.max(if held { before } else { 0 });
        self.grows = (self.grows / 2).max(self.counted.saturating_sub(before));
        self.grows > self.counted / 16
    }
}

impl Beside<'_> {
    /// `None`: the RAM is for paged memory, or for that of each process.
    pub(crate) fn new<'a>(stats: &'a StatsFile, options: &Options) -> Option<Beside<'a>> {
        let (ram, now) = (options.ram, Instant::now());
        let counted = FIRST.min(ram / 2);
        let state = BesideState {
            follow: Follow { counted, grows: 0 },
            all: AllMemory::default(),
            statm: now,
            smaps: now + PAUSE_MIN,
            soonest: now,
            known: Vec::new(),
            last: BesideSeen::default(),
            kept: (counted, counted),
            resting: Resting::new(now),
            hurries: false,
            named: false,
        };
        (options.in_all && options.one_budget).then(|| {
            stats.set_beside(counted);
            Beside { stats, ram, state: Mutex::new(state) }
        })
    }

    /// To be called every [`PAUSE_MIN`]. `processes`: those of the run. Returns a line for the user, once.
    pub(crate) fn look(&self, processes: impl Fn() -> Vec<u32>) -> Option<String> {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, page) = (Instant::now(), PAGE as u64);
        if now < state.statm {
            return None;
        }
        // Before the list of processes, so that whose pages are in these counts is in the list.
        let stats = self.stats.snapshot();
        let processes = processes();
        let resident = |processes: &[u32]| {
            let pages = processes.iter().filter_map(|process| Some(Process::of(*process).pages()?[1]));
            pages.sum::<u64>() * page
        };
        // What those that counted have now. New ones have their turn at the next look.
        let before = resident(&state.last.processes);
        state.statm = now + now.elapsed() * RARELY;
        let changed = processes != state.known;
        let much = before.abs_diff(state.last.resident) > (self.ram / 64).max(128 << 10);
        let (read, files) = (stats.device_bytes_read, state.last.sums.files);
        let pays = files > self.ram / LEAST && state.resting.is_paid(files, read, now);
        if now >= state.smaps || (now >= state.soonest && (changed || much || pays)) {
            let counted = counted(&processes, &state.known);
            let before = resident(&counted);
            let sums = counted.iter().map(|process| memory(*process)).fold(Sums::default(), Sums::and);
            let more = counted.len() < processes.len();
            let held = more || now < state.resting.settled();
            let (cost, again) = (now.elapsed(), state.follow.look(sums.beside, held) || more);
            // The program goes on meanwhile, so what was seen is of some time between the two.
            let mean = (before + resident(&counted)) / 2;
            let paged = stats.resident * page;
            state.last = BesideSeen { processes: counted, resident: mean, paged, sums };
            state.known.clone_from(&processes);
            state.all.beside_bytes = state.all.beside_bytes.max(state.follow.counted);
            state.soonest = now + (cost * RARELY / 3).max(PAUSE_MIN);
            // A new process waits for its second look; many of them do not make looks frequent.
            state.hurries = more && !state.hurries;
            state.smaps = match (state.hurries, again) {
                (true, _) => now + cost + SECOND,
                (false, true) => state.soonest,
                (false, false) => now + (cost * RARELY).max(PAUSE),
            };
            let free = state.follow.grows + state.resting.room(sums.files);
            let short = Shortage {
                ram: self.ram,
                files: sums.files,
                full: self.stats.started() && sums.all + free + self.ram / SHORT > self.ram,
                over: self.stats.started() && sums.all > self.ram + self.ram / SHORT,
                read,
            };
            if state.resting.look(&processes, short) {
                state.smaps = state.resting.settled();
            }
            let least = state.follow.counted + state.resting.room(sums.files);
            state.kept = (least, least + state.follow.grows);
            state.all.most_bytes = state.all.most_bytes.max(sums.all);
            self.stats.set_beside(state.kept.1);
        } else if state.last.processes.iter().all(|process| processes.contains(process)) {
            let (last, (least, most), paged) = (&state.last, state.kept, stats.resident * page);
            let grown = last.growth(before, paged);
            self.stats.set_beside(most.max(least + grown));
            let all = (last.sums.all + paged + grown).saturating_sub(last.paged);
            // Pages that a forked child has from its parent count as paged for both.
            if !changed {
                state.all.most_bytes = state.all.most_bytes.max(all);
            }
        }
        self.stats.ask_for_excess(self.ram);
        let least = state.follow.counted + FLOOR as u64 * page;
        let too_little = self.stats.started() && least > self.ram && !state.named;
        state.named |= too_little;
        too_little.then(|| {
            let kib = |bytes: u64| bytes.div_ceil(1 << 10);
            let (beside, least) = (kib(state.follow.counted), kib(least).next_multiple_of(256));
            let give = format!("the heap has its least; give {least}KiB or more");
            format!("note: code, stacks and files take {beside} KiB of --ram, so {give}\n")
        })
    }

    /// At the end.
    pub(crate) fn all(&self) -> AllMemory {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

/// The processes whose memory counts: all at the first look, and then those of the look before. A child of `vfork` has
/// its parent's memory for a moment, and both would count.
fn counted(processes: &[u32], known: &[u32]) -> Vec<u32> {
    processes.iter().copied().filter(|process| known.is_empty() || known.contains(process)).collect()
}

/// Memory in RAM, each page divided by the number of its users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    /// What is not paged.
    beside: u64,
    /// Of it, pages of files that nobody writes.
    files: u64,
    all: u64,
}

impl Sums {
    fn and(self, other: Sums) -> Sums {
        let (beside, files, all) = (self.beside + other.beside, self.files + other.files, self.all + other.all);
        Sums { beside, files, all }
    }
}

/// Bytes of a process.
fn memory(process: u32) -> Sums {
    let process = Process::of(process);
    let Ok(text) = process.smaps() else { return Sums::default() };
    let (tables, kib) = (process.page_table_bytes(), sums(&text));
    Sums { beside: kib.beside * 1024 + tables, files: kib.files * 1024, all: kib.all * 1024 + tables }
}

/// KiB of mappings.
fn sums(smaps: &str) -> Sums {
    let spans = [BASE, BASE_RECORDED].map(|base| base..base + Options::MAX_MEMORY);
    let one = |it: &Mapping| {
        let (pss, managed) = (it.counts.pss, it.inode == 0 && spans.iter().any(|span| span.contains(&it.start)));
        let files = if is_unwritten(it.inode, it.rights) { pss } else { 0 };
        Sums { beside: if managed { 0 } else { pss }, files, all: pss }
    };
    mappings(smaps).iter().map(one).fold(Sums::default(), Sums::and)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_what_lies_elsewhere_are_beside_managed_memory() {
        let text = "\
55d0a000-55d0b000 rw-p 00001000 fe:00 12  /usr/bin/sort
Pss: 4 kB
80000000-88000000 rw-p 00000000 00:00 0
Rss: 5000 kB
Pss: 4000 kB
88000000-88100000 r--p 00000000 fe:00 13  /usr/share/file
Pss: 30 kB
200000001000-200000002000 rw-p 00000000 00:00 0
Pss: 100 kB
7ffc00000000-7ffc00010000 rw-p 00000000 00:00 0  [stack]
Pss: 200 kB
";
        assert_eq!(sums(text), Sums { beside: 234, files: 30, all: 4334 });
    }

    #[test]
    fn growth_since_a_look_is_that_of_what_is_not_paged_and_what_is_shared_counts_in_part() {
        let sums = Sums { beside: 100, files: 80, all: 300 };
        let alone = BesideSeen { processes: vec![1], resident: 300, paged: 200, sums };
        assert_eq!(
            [(340, 240), (340, 200), (250, 200), (320, 230)].map(|(all, paged)| alone.growth(all, paged)),
            [0, 40, 0, 0]
        );
        // Two that share all: of 200 in `statm` a half counted.
        let two = BesideSeen { resident: 400, ..alone.clone() };
        assert_eq!([two.growth(440, 200), two.growth(440, 190)], [20, 25]);
        assert_eq!(BesideSeen::default().growth(50, 0), 0, "nothing is known");
    }

    #[test]
    fn a_new_process_counts_from_its_second_look_on() {
        assert_eq!(counted(&[7, 9], &[]), [7, 9]);
        assert_eq!([counted(&[7, 9, 12], &[7, 9]), counted(&[9, 12], &[7, 9, 12])], [[7, 9], [9, 12]]);
    }

    #[test]
    fn as_much_stays_free_as_memory_grew_between_two_looks_and_what_comes_back_has_its_place() {
        let mut follow = Follow { counted: 400, grows: 0 };
        let mut look = |beside, held| (follow.look(beside, held), follow.counted, follow.grows);
        assert_eq!(look(480, false), (true, 480, 80));
        assert_eq!(look(490, false), (true, 490, 40));
        assert_eq!(look(490, false), (false, 490, 20));
        assert_eq!(look(100, true), (false, 490, 10), "it has just left");
        assert_eq!(look(200, false), (false, 200, 5));
    }
}
