//! Watches a process and its descendants: clears and counts their bits in stretches, as often as its budget allows.
//!
//! Within a stretch, looks come at growing times. A stretch ends when nearly all of the heap was referenced again,
//! or after a part of the time so far: so there are many stretches for working sets of short times, and some for long
//! ones. What a clearing and a look cost is measured, and they wait until this is a small part of the time again.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId};

use crate::error::BitsError;
use crate::group::{check, children, processor_ns, threads};
use crate::maps::{mappings, rest, Mapping};
use crate::{Look, Stretch, Watched, PAGE};

/// The part of the time that watching may take.
const SHARE: f64 = 0.03;
/// Seconds that it may take in addition: short programs get an answer, too.
const PATIENCE: f64 = 0.05;
/// The least time from a clearing to the first look.
const FIRST: Duration = Duration::from_micros(500);
/// How often the heap's size is read, and the end noticed: at least, at most, and as a part of the time so far.
const TICK: Duration = Duration::from_millis(5);
const TICK_MAX: Duration = Duration::from_millis(50);
const TICKS: u32 = 200;
/// Each look of a stretch comes at this many times the time of the one before.
const GROWTH: f64 = 1.5;
/// A stretch is over when this part of the heap was referenced.
const ENOUGH: f64 = 0.95;
/// A stretch has looks at least up to this many times the first one's time, and ends after this part of all time.
const LOOKS: u32 = 32;
const PART: u32 = 3;
/// With more of the heap than this in swap or in huge pages, bits say too little.
const SWAPPED_MAX: f64 = 0.05;
const HUGE_MAX: f64 = 0.5;

/// What is known so far.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Bytes of the heaps at their peak.
    pub heap_bytes: u64,
}

/// A process and its descendants that are being watched.
pub struct Watch {
    root: u32,
    /// Those that live.
    processes: Vec<u32>,
    known: HashSet<u32>,
    /// Mappings at the last look, by process and start.
    before: HashMap<(u32, u64), Mapping>,
    began: Instant,
    /// This thread's processor time then.
    began_seconds: f64,
    cleared: Instant,
    looked: Instant,
    /// Processor time of each process at the last clearing, for those that were there.
    cleared_ns: HashMap<u32, u64>,
    /// What they ran while the bits were cleared.
    clearing: u64,
    /// Pages that came back since.
    again: f64,
    watched: Watched,
    open: Stretch,
    next: Duration,
    first: Duration,
}

impl Watch {
    /// Begins to watch a process. `strict`: one whose bits say too little is refused.
    ///
    /// # Errors
    /// It cannot be watched.
    pub fn of(root: u32, strict: bool) -> Result<Watch, BitsError> {
        check(root)?;
        let now = Instant::now();
        let mut watch = Watch {
            root,
            processes: vec![root],
            known: HashSet::from([root]),
            before: HashMap::new(),
            began: now,
            began_seconds: own_seconds(),
            cleared: now,
            looked: now,
            cleared_ns: HashMap::new(),
            clearing: 0,
            again: 0.0,
            watched: Watched { processes: 1, ..Watched::default() },
            open: Stretch::default(),
            next: FIRST,
            first: FIRST,
        };
        read(root)?;
        watch.look();
        if strict {
            watch.trusted()?;
        }
        // What was there before is not a first touch.
        watch.watched.first_touches = 0.0;
        watch.open = Stretch::default();
        clear(root)?;
        watch.clear();
        Ok(watch)
    }

    fn trusted(&self) -> Result<(), BitsError> {
        let (pid, Watched { swapped, huge, .. }) = (self.root, &self.watched);
        if *swapped > SWAPPED_MAX {
            return Err(BitsError::Swapped { pid, percent: 100.0 * swapped });
        }
        if *huge > HUGE_MAX {
            return Err(BitsError::Huge { pid, percent: 100.0 * huge });
        }
        Ok(())
    }

    /// Watches until all processes have ended, or `go_on` says no; it is asked 20 to 200 times a second.
    pub fn run(mut self, go_on: &mut dyn FnMut(Progress) -> bool) -> Watched {
        while self.lives() && go_on(self.progress()) {
            if self.cleared.elapsed() >= self.next && self.affordable() {
                self.turn();
            } else {
                let tick = (self.began.elapsed() / TICKS).clamp(TICK, TICK_MAX);
                let due = self.next.saturating_sub(self.cleared.elapsed());
                // A look that is due already waits for its budget.
                std::thread::sleep(if due.is_zero() { tick } else { tick.min(due.max(FIRST / 2)) });
                self.sizes();
            }
        }
        self.look();
        self.close();
        self.watched.seconds = self.began.elapsed().as_secs_f64();
        self.watched.own_seconds = self.spent();
        self.watched
    }

    fn progress(&self) -> Progress {
        Progress { elapsed: self.began.elapsed(), heap_bytes: (self.watched.peak_pages * PAGE as f64) as u64 }
    }

    fn lives(&mut self) -> bool {
        self.processes.retain(|pid| fs::read(format!("/proc/{pid}/statm")).is_ok_and(|text| !text.starts_with(b"0 ")));
        !self.processes.is_empty()
    }

    fn spent(&self) -> f64 {
        own_seconds() - self.began_seconds
    }

    fn affordable(&self) -> bool {
        self.spent() < PATIENCE + SHARE * self.began.elapsed().as_secs_f64()
    }

    /// The next look, and a clearing if the stretch has said enough.
    fn turn(&mut self) {
        let began = own_seconds();
        self.look();
        let cost = Duration::from_secs_f64((own_seconds() - began).max(0.0));
        self.first = FIRST.max(2 * cost);
        let last = self.open.looks.last().copied().unwrap_or_default();
        let long = (LOOKS * self.first).max(self.began.elapsed() / PART);
        if last.referenced >= ENOUGH * self.open.pages || self.cleared.elapsed() >= long {
            self.close();
            self.clear();
        } else {
            self.next = self.cleared.elapsed().max(self.first / 2).mul_f64(GROWTH);
        }
    }

    fn clear(&mut self) {
        self.before.values_mut().for_each(|mapping| mapping.referenced = 0);
        self.again = 0.0;
        self.cleared_ns = self.processes.iter().map(|pid| (*pid, processor_ns(*pid))).collect();
        self.processes.retain(|pid| clear(*pid).is_ok());
        self.clearing = self.ran();
        (self.cleared, self.next) = (Instant::now(), self.first);
    }

    fn close(&mut self) {
        let stretch = std::mem::take(&mut self.open);
        if stretch.looks.last().is_some_and(|look| look.seconds > 0.0) {
            self.watched.covered += self.looked.duration_since(self.cleared).as_secs_f64();
            self.watched.stretches.push(stretch);
        }
    }

    /// Nanoseconds that the processes ran since the clearing.
    fn ran(&self) -> u64 {
        let since = |pid: &u32| processor_ns(*pid).saturating_sub(self.cleared_ns.get(pid).copied().unwrap_or(0));
        self.processes.iter().map(since).sum()
    }

    /// Counts the bits of all processes, and finds new ones.
    fn look(&mut self) {
        self.grow();
        let ran = self.ran();
        let mut all = HashMap::new();
        for pid in &self.processes {
            let mappings = read(*pid).unwrap_or_default();
            all.extend(mappings.into_iter().map(|mapping| ((*pid, mapping.start), mapping)));
        }
        if all.values().all(|mapping| mapping.rss == 0) {
            return;
        }
        self.looked = Instant::now();
        let mut look = self.open.looks.last().copied().unwrap_or_default();
        // What a process ran that has ended since is not counted any more.
        let (least, most) = (ran.saturating_sub(self.clearing) as f64, self.ran().max(ran) as f64);
        (look.seconds, look.referenced) = (look.seconds.max((least + most) / 2e9), 0.0);
        look.spread = (most - least) / 2e9;
        let (mut pages, mut huge, mut swap) = (0.0, 0.0, 0.0);
        for (key, mapping) in all.iter().filter(|(_, mapping)| mapping.heap) {
            let before = self.before.get(key).copied().unwrap_or_default();
            let new = mapping.rss.saturating_sub(before.rss);
            let again = mapping.referenced.saturating_sub(before.referenced).saturating_sub(new);
            // A page that several processes use is one page.
            let each = mapping.pss as f64 / mapping.rss.max(1) as f64 / KIB;
            look.referenced += mapping.referenced as f64 * each;
            self.again += again as f64 * each;
            self.watched.first_touches += new as f64 * each;
            pages += mapping.rss as f64 * each;
            huge += mapping.huge as f64 / KIB;
            swap += mapping.swap as f64 / KIB;
        }
        self.open.looks.push(Look { again: self.again, ..look });
        self.open.pages = self.open.pages.max(pages);
        let seen = &mut self.watched;
        if pages >= seen.peak_pages {
            (seen.peak_pages, seen.huge) = (pages, huge / pages.max(1.0));
        }
        seen.swapped = seen.swapped.max(swap / (pages + swap).max(1.0));
        seen.rest_bytes = seen.rest_bytes.max(rest(all.values()) * 1024);
        self.before = all;
    }

    fn grow(&mut self) {
        let mut at = 0;
        while let Some(pid) = self.processes.get(at).copied() {
            at += 1;
            let new = children(pid).into_iter().filter(|child| self.known.insert(*child)).collect::<Vec<_>>();
            self.watched.processes += new.len();
            self.processes.extend(new);
            self.watched.threads = self.watched.threads.max(threads(pid).len());
        }
    }

    /// The heap's size between looks: `/proc/PID/statm` costs hardly anything, and shows a peak that a look misses.
    fn sizes(&mut self) {
        let [pid] = self.processes[..] else { return };
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        let numbers: Vec<f64> = text.split(' ').skip(1).take(2).filter_map(|word| word.parse().ok()).collect();
        let [resident, shared] = numbers[..] else { return };
        // It counts a stack and changed pages of files as heap: what it showed at the last look is taken off.
        let known: u64 = self.before.values().filter(|mapping| !mapping.heap).map(|mapping| mapping.rss).sum();
        let pages = (resident - shared).min(resident - known as f64 / KIB);
        self.watched.peak_pages = self.watched.peak_pages.max(pages);
    }
}

/// KiB of a page.
const KIB: f64 = PAGE as f64 / 1024.0;

fn read(pid: u32) -> Result<Vec<Mapping>, BitsError> {
    let text = fs::read(format!("/proc/{pid}/smaps"));
    let text = text.map_err(|source| BitsError::File { pid, file: "smaps", source })?;
    Ok(mappings(&String::from_utf8_lossy(&text)))
}

fn clear(pid: u32) -> Result<(), BitsError> {
    let done = fs::write(format!("/proc/{pid}/clear_refs"), "1");
    done.map_err(|source| BitsError::File { pid, file: "clear_refs", source })
}

/// Processor time of this thread.
fn own_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
