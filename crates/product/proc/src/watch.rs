//! Watches a process and its descendants: clears and counts their bits in stretches, as often as its budget allows.
//!
//! Within a stretch, looks come at growing times. A stretch ends when nearly all of the heap was referenced again,
//! or after a part of the time so far: so there are many stretches for working sets of short times, and some for long
//! ones. What a clearing and a look cost is measured, and they wait until this is a small part of the time again.
//!
//! A program that was started to be watched is stopped while its bits are cleared and counted: so their times are
//! exact, and a working set of a tenth of a millisecond can be seen. A process that ran before is never stopped.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use rustix::time::{clock_gettime, ClockId};

use crate::access::{check, processor_ns};
use crate::areas::Area;
use crate::error::ProcError;
use crate::files::Files;
use crate::halt::Halt;
use crate::maps::mappings;
use crate::process::Process;
use crate::rest::Rest;
use crate::sample::Sample;
use crate::{Look, Stretch, Watched, PAGE};

/// What watching may cost a process that ran before, and one that was started for it: a recorder takes as long.
const RUNNING: Budget = Budget { share: 0.03, patience: 0.05, first: Duration::from_micros(500) };
const STOPPED: Budget = Budget { share: 0.5, patience: 0.5, first: Duration::from_micros(100) };
/// A thread that sleeps for less than this may wake too late.
const SPIN: Duration = Duration::from_millis(1);
/// How often the heap's size is read, and the end noticed: at least, at most, and as a part of the time so far.
const TICK: Duration = Duration::from_millis(5);
const TICK_MAX: Duration = Duration::from_millis(50);
const TICKS: u32 = 200;
/// Each look of a stretch comes at this many times the time of the one before.
const GROWTH: f64 = 1.5;
/// A stretch is over when this part of the heap was referenced, or, after [`LOOKS`], if less than this part was new.
const ENOUGH: f64 = 0.95;
const NEW: f64 = 0.001;
/// A stretch has looks at least up to this many times the first one's time, and ends after this part of all time.
const LOOKS: u32 = 32;
const PART: u32 = 3;
/// With more of the heap than this in swap or in huge pages, bits say too little.
const SWAPPED_MAX: f64 = 0.05;
const HUGE_MAX: f64 = 0.5;

/// How much watching may cost.
#[derive(Clone, Copy)]
struct Budget {
    /// The part of the time that it may take.
    share: f64,
    /// Seconds that it may take in addition: short programs get an answer, too.
    patience: f64,
    /// The least time from a clearing to the first look.
    first: Duration,
}

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
    /// Areas at the last look, by process and start.
    before: HashMap<(u32, u64), Area>,
    budget: Budget,
    halt: Halt,
    /// This thread's processor time at the start.
    began_seconds: f64,
    /// Times of the processes' clock.
    cleared: Duration,
    looked: Duration,
    /// Processor time of each process at the last clearing, for those that were there.
    cleared_ns: HashMap<u32, u64>,
    /// What they ran while the bits were cleared.
    clearing: u64,
    /// Pages that came back since.
    again: f64,
    watched: Watched,
    files: Files,
    sample: Sample,
    open: Stretch,
    next: Duration,
    first: Duration,
}

impl Watch {
    /// Begins to watch a process. `own`: it was started for this, and may be stopped now and then. Otherwise one whose
    /// bits say too little is refused.
    pub fn of(root: u32, own: bool) -> Result<Watch, ProcError> {
        check(root)?;
        let budget = if own { STOPPED } else { RUNNING };
        let mut watch = Watch {
            root,
            processes: vec![root],
            known: HashSet::from([root]),
            before: HashMap::new(),
            budget,
            halt: Halt::new(own),
            began_seconds: own_seconds(),
            cleared: Duration::ZERO,
            looked: Duration::ZERO,
            cleared_ns: HashMap::new(),
            clearing: 0,
            again: 0.0,
            watched: Watched { processes: 1, ..Watched::default() },
            files: Files::new(),
            sample: Sample::default(),
            open: Stretch::default(),
            next: budget.first,
            first: budget.first,
        };
        read(root, &mut Rest::default())?;
        watch.look();
        if !own {
            watch.trusted()?;
        }
        // What was referenced before is not known.
        (watch.open, watch.files) = (Stretch::default(), Files::new());
        clear(root)?;
        watch.clear();
        Ok(watch)
    }

    fn trusted(&self) -> Result<(), ProcError> {
        let (pid, Watched { swapped, huge, .. }) = (self.root, &self.watched);
        if *swapped > SWAPPED_MAX {
            return Err(ProcError::Swapped { pid, percent: 100.0 * swapped });
        }
        if *huge > HUGE_MAX {
            return Err(ProcError::Huge { pid, percent: 100.0 * huge });
        }
        Ok(())
    }

    /// Watches until all processes have ended, or `go_on` says no; it is asked 20 to 200 times a second.
    pub fn run(mut self, go_on: &mut dyn FnMut(Progress) -> bool) -> Watched {
        while self.lives() && go_on(self.progress()) {
            let due = self.next.saturating_sub(self.halt.clock() - self.cleared);
            if due.is_zero() && self.affordable() {
                self.turn();
            } else if self.halt.own && !due.is_zero() && due < SPIN {
                let until = self.halt.clock() + due;
                while self.halt.clock() < until {
                    std::hint::spin_loop();
                }
            } else {
                let tick = (self.halt.clock() / TICKS).clamp(TICK, TICK_MAX);
                // A look that is due already waits for its budget.
                std::thread::sleep(if due.is_zero() { tick } else { tick.min(due.max(self.budget.first / 2)) });
                self.sizes();
            }
        }
        self.look();
        self.close();
        self.watched.rest.files = std::mem::take(&mut self.files);
        self.watched.seconds = self.halt.clock().as_secs_f64();
        self.watched.own_seconds = self.spent();
        self.watched.compressed = self.sample.compressed();
        self.watched
    }

    fn progress(&self) -> Progress {
        Progress { elapsed: self.halt.clock(), heap_bytes: (self.watched.peak_pages * PAGE as f64) as u64 }
    }

    fn lives(&mut self) -> bool {
        self.processes.retain(|pid| Process::of(*pid).pages().is_some());
        !self.processes.is_empty()
    }

    /// Seconds that the processes stood still, or the processor time of this thread.
    fn spent(&self) -> f64 {
        match self.halt.own {
            true => self.halt.stood.as_secs_f64(),
            false => own_seconds() - self.began_seconds,
        }
    }

    fn affordable(&self) -> bool {
        self.spent() < self.budget.patience + self.budget.share * self.halt.clock().as_secs_f64()
    }

    /// The next look, and a clearing if the stretch has said enough.
    fn turn(&mut self) {
        self.halt.stop(&self.processes);
        let (began, before) = (own_seconds(), self.open.looks.last().copied().unwrap_or_default());
        self.look();
        if !self.halt.own {
            let cost = Duration::from_secs_f64((own_seconds() - began).max(0.0));
            self.first = self.budget.first.max(2 * cost);
        }
        let (last, since) = (self.open.looks.last().copied().unwrap_or_default(), self.halt.clock() - self.cleared);
        let long = LOOKS * self.first;
        let new = last.referenced - before.referenced;
        let known = last.referenced >= ENOUGH * self.open.pages || since >= long && new < NEW * self.open.pages;
        if known || since >= long.max(self.halt.clock() / PART) {
            self.close();
            self.clear();
        } else {
            self.next = since.max(self.first / 2).mul_f64(GROWTH);
        }
        self.halt.resume(&self.processes);
    }

    fn clear(&mut self) {
        self.before.values_mut().for_each(|area| area.counts.referenced = 0);
        self.again = 0.0;
        self.cleared_ns = self.processes.iter().map(|pid| (*pid, processor_ns(*pid))).collect();
        self.processes.retain(|pid| clear(*pid).is_ok());
        self.clearing = self.ran();
        (self.cleared, self.next) = (self.halt.clock(), self.first);
    }

    fn close(&mut self) {
        let stretch = std::mem::take(&mut self.open);
        if stretch.looks.last().is_some_and(|look| look.seconds > 0.0) {
            self.watched.covered += self.looked.saturating_sub(self.cleared).as_secs_f64();
            self.watched.stretches.push(stretch);
            self.sample.take(&self.before);
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
        let (mut all, mut rest) = (HashMap::new(), Rest::default());
        for pid in &self.processes {
            let areas = read(*pid, &mut rest).unwrap_or_default();
            all.extend(areas.into_iter().map(|area| ((*pid, area.start), area)));
        }
        if all.values().all(|area| area.counts.rss == 0) {
            return;
        }
        self.looked = self.halt.clock();
        let mut look = self.open.looks.last().copied().unwrap_or_default();
        // What a process ran that has ended since is not counted any more.
        let (least, most) = (ran.saturating_sub(self.clearing) as f64, self.ran().max(ran) as f64);
        (look.seconds, look.referenced) = (look.seconds.max((least + most) / 2e9), 0.0);
        look.spread = (most - least) / 2e9;
        let (mut pages, mut huge, mut swap) = (0.0, 0.0, 0.0);
        for (key, area) in all.iter().filter(|(_, area)| area.heap) {
            let (now, before) = (area.counts, self.before.get(key).copied().unwrap_or_default().counts);
            let new = now.rss.saturating_sub(before.rss);
            let again = now.referenced.saturating_sub(before.referenced).saturating_sub(new);
            // A page that several processes use is one page.
            let each = now.pss as f64 / now.rss.max(1) as f64 / KIB;
            look.referenced += now.referenced as f64 * each;
            self.again += again as f64 * each;
            pages += now.rss as f64 * each;
            huge += now.huge as f64 / KIB;
            swap += now.swap as f64 / KIB;
        }
        self.open.looks.push(Look { again: self.again, ..look });
        self.open.pages = self.open.pages.max(pages);
        let watched = &mut self.watched;
        if pages >= watched.peak_pages {
            (watched.peak_pages, watched.huge) = (pages, huge / pages.max(1.0));
        }
        watched.swapped = watched.swapped.max(swap / (pages + swap).max(1.0));
        rest.files.iter().for_each(|(path, file)| self.files.entry(path.clone()).or_default().max(file));
        if rest.sum() > watched.rest_bytes {
            (watched.rest_bytes, watched.rest) = (rest.sum(), rest);
        }
        self.before = all;
    }

    fn grow(&mut self) {
        let mut at = 0;
        while let Some(pid) = self.processes.get(at).copied() {
            at += 1;
            let process = Process::of(pid);
            let new = process.children().into_iter().filter(|child| self.known.insert(*child)).collect::<Vec<_>>();
            self.watched.processes += new.len();
            self.processes.extend(new);
            self.watched.threads = self.watched.threads.max(process.threads().len());
        }
    }

    /// The heap's size between looks, which may have a peak.
    fn sizes(&mut self) {
        let [pid] = self.processes[..] else { return };
        let Some([_, resident, shared]) = Process::of(pid).pages().map(|all| all.map(|pages| pages as f64)) else {
            return;
        };
        // It counts a stack and changed pages of files as heap: what it showed at the last look is taken off.
        let known: u64 = self.before.values().filter(|area| !area.heap).map(|area| area.counts.rss).sum();
        let pages = (resident - shared).min(resident - known as f64 / KIB);
        self.watched.peak_pages = self.watched.peak_pages.max(pages);
    }
}

/// KiB of a page.
const KIB: f64 = PAGE as f64 / 1024.0;

fn read(pid: u32, rest: &mut Rest) -> Result<Vec<Area>, ProcError> {
    let text = Process::of(pid).smaps().map_err(|source| refused(pid, "smaps", source))?;
    let all = mappings(&text);
    rest.add(&all, &[]);
    Ok(all.iter().map(Area::of).collect())
}

fn clear(pid: u32) -> Result<(), ProcError> {
    let done = fs::write(Process::of(pid).file("clear_refs"), "1");
    done.map_err(|source| refused(pid, "clear_refs", source))
}

/// Why a file of a process that was there cannot be used: the process may have ended since.
fn refused(pid: u32, file: &'static str, source: std::io::Error) -> ProcError {
    match check(pid) {
        Err(ProcError::None(_) | ProcError::Ended(_)) => ProcError::Ended(pid),
        _ => ProcError::File { pid, file, source },
    }
}

/// Processor time of this thread.
fn own_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_while_its_files_were_to_be_used_has_ended() {
        assert!(matches!(clear(1 << 23), Err(ProcError::Ended(_))));
        assert!(matches!(read(1 << 23, &mut Rest::default()), Err(ProcError::Ended(_))));
    }
}
