//! `--ram` is for all memory of a run: what is not paged is measured while the program runs, and the pager has the
//! rest.
//!
//! ```text
//!   /proc/PID/smaps of each process ─ mappings outside managed memory, page tables ─► beside
//!   --ram less beside ─► the budget of all processes (`live/src/stats/shares.rs`) ─ who has too much gives back
//! ```
//! A page of several processes counts once in all (Pss). A look takes 1 ms for some ten thousand pages in RAM, so it is
//! rare, and comes early only if `statm`, which costs hardly anything, says that much has changed.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use coldframe_live::{Options, StatsFile, PAGE};
use coldframe_proc::{mappings, Process};
use coldframe_recording::plan::FLOOR;
use coldframe_recording::span::{BASE, BASE_RECORDED};
use schemars::JsonSchema;
use serde::Serialize;

/// Assumed until the first look: code, stack and tables of a small program and the pager.
const FIRST: u64 = 4 << 20;
/// The longest time between two looks, and the shortest one, which is also that between two looks at `statm`.
const PAUSE: Duration = Duration::from_secs(1);
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The time between two looks in times of a look: they take a thirtieth of a processor at most.
const RARELY: u32 = 30;

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
    last: BesideSeen,
    named: bool,
}

/// What the last look at `smaps` has seen.
#[derive(Clone, Copy, Default)]
struct BesideSeen {
    processes: usize,
    /// Bytes in RAM by `statm`, where each process counts what it shares.
    resident: u64,
    all: u64,
}

/// The bytes beside paged memory that count, by those of each look. A child of `vfork` has its parent's memory for a
/// moment, and both would count: memory has grown if two looks say so.
#[derive(Clone, Copy, Debug)]
struct Follow {
    last: u64,
    counted: u64,
}

impl Follow {
    /// Returns whether to look again soon.
    fn look(&mut self, beside: u64, processes: usize) -> bool {
        self.counted = if processes > 1 { self.last.min(beside) } else { beside };
        self.last = beside;
        beside > self.counted
    }
}

impl Beside<'_> {
    /// `None`: the RAM is for paged memory, or for that of each process.
    pub(crate) fn new<'a>(stats: &'a StatsFile, options: &Options) -> Option<Beside<'a>> {
        let (ram, now) = (options.ram, Instant::now());
        let counted = FIRST.min(ram / 2);
        let state = BesideState {
            follow: Follow { last: counted, counted },
            all: AllMemory::default(),
            statm: now,
            smaps: now + PAUSE_MIN,
            soonest: now,
            last: BesideSeen::default(),
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
        let processes = processes();
        let pages = processes.iter().filter_map(|process| Some(Process::of(*process).pages()?[1]));
        let resident = pages.sum::<u64>() * page;
        state.statm = now + now.elapsed() * RARELY;
        let much = resident.abs_diff(state.last.resident) > (self.ram / 64).max(128 << 10);
        if now >= state.smaps || (now >= state.soonest && much) {
            let sums = processes.iter().map(|process| memory(*process));
            let (beside, all) = sums.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let (cost, again) = (now.elapsed(), state.follow.look(beside, processes.len()));
            state.last = BesideSeen { processes: processes.len(), resident, all };
            state.all.beside_bytes = state.all.beside_bytes.max(state.follow.counted);
            state.soonest = now + (cost * RARELY / 3).max(PAUSE_MIN);
            state.smaps = if again { state.soonest } else { now + (cost * RARELY).max(PAUSE) };
            self.stats.set_beside(state.follow.counted);
        }
        let last = state.last;
        if last.processes == processes.len() {
            state.all.most_bytes = state.all.most_bytes.max((last.all + resident).saturating_sub(last.resident));
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

/// Bytes of a process in RAM: beside managed memory, and all.
fn memory(process: u32) -> (u64, u64) {
    let process = Process::of(process);
    let Ok(text) = process.smaps() else { return (0, 0) };
    let (tables, (beside, all)) = (process.page_table_bytes(), sums(&text));
    (beside * 1024 + tables, all * 1024 + tables)
}

/// The KiB in RAM: of mappings that are not managed, and of all.
fn sums(smaps: &str) -> (u64, u64) {
    let spans = [BASE, BASE_RECORDED].map(|base| base..base + Options::MAX_MEMORY);
    let mappings = mappings(smaps);
    let pss = |managed: bool| {
        let is = mappings
            .iter()
            .filter(|it| (it.inode == 0 && spans.iter().any(|span| span.contains(&it.start))) == managed);
        is.map(|it| it.counts.pss).sum::<u64>()
    };
    let beside = pss(false);
    (beside, beside + pss(true))
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
        assert_eq!(sums(text), (234, 4334));
    }

    #[test]
    fn memory_has_grown_if_two_looks_say_so_and_has_shrunk_at_once() {
        let mut follow = Follow { last: 4, counted: 4 };
        let mut counted = |beside| (follow.look(beside, 2), follow.counted);
        assert_eq!([8, 4, 8, 9, 2].map(&mut counted), [(true, 4), (false, 4), (true, 4), (true, 8), (false, 2)]);
        assert_eq!((follow.look(7, 1), follow.counted), (false, 7), "one process has no child with its memory");
    }
}
