//! Watches a process and its descendants until they end: what of their memory they reference, how much it is, and how
//! it compresses.

use std::time::Duration;

use coldframe_proc::{check, page_in_ram, Files, Mapping, ProcError, Process, References, Rest, PAGE};
use fastrand::Rng;

use crate::predict::bits::budget::Budget;
use crate::predict::bits::family::Family;
use crate::predict::bits::look::Stretch;
use crate::predict::bits::page_sample::{Algorithms, PageSample};
use crate::predict::bits::reader::Reader;
use crate::predict::bits::touched::TouchLog;
use crate::predict::bits::watcher::{Count, Observer, Pace, Private, Scope, Watcher, GROWTH};

/// What watching may cost a process that ran before, and one that was started for it: a recorder takes as long.
const RUNNING: Budget = Budget { share: 0.03, patience: 0.05, advance: None };
const STARTED: Budget = Budget { share: 0.5, patience: 0.5, advance: None };
/// The least time from a clearing to the first look, for each of them.
const RUNNING_FIRST: Duration = Duration::from_micros(500);
const STARTED_FIRST: Duration = Duration::from_micros(100);
/// With more of the heap than this in swap or in huge pages, bits say too little.
const SWAPPED_MAX: f64 = 0.05;
const HUGE_MAX: f64 = 0.5;
/// Pages that are compressed after each stretch, and the part of the largest heap that a heap must have for it.
const SAMPLED: usize = 64;
const LARGE: f64 = 0.9;

/// What is known so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watching {
    /// Since the start.
    pub elapsed: Duration,
    /// Bytes of the heaps at their peak.
    pub heap_bytes: u64,
}

/// All that was seen of a program.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Bits {
    /// In order of time.
    pub stretches: Vec<Stretch>,
    /// The most pages of the heaps at a time.
    pub peak_pages: f64,
    /// The most bytes of what is not heap: code, libraries, stacks, files.
    pub rest_bytes: u64,
    /// The kinds of it, at that time.
    pub rest: Rest,
    /// The share of the heap in huge pages, at its peak.
    pub huge: f64,
    /// The share of the heap that the kernel had swapped out, at most.
    pub swapped: f64,
    /// The part of its size that a page takes in compressed RAM, on average of some of the heap's; `None`: they may not
    /// be read.
    pub compressed: Option<f64>,
    /// Seconds that were watched, without those in which it was stopped.
    pub seconds: f64,
    /// Of those, seconds of the stretches up to their last looks.
    pub covered: f64,
    /// Seconds that watching took: those in which it was stopped, else of processor time.
    pub own_seconds: f64,
    /// Processes that were seen.
    pub processes: usize,
    /// Threads of the process with the most.
    pub threads: usize,
    /// Which memory was referenced when.
    pub touched: TouchLog,
}

/// A process and its descendants that are being watched.
pub(crate) struct ProgramWatch {
    watcher: Watcher<Family>,
    bits: Bits,
    /// Pages in RAM that are not of a heap.
    others: f64,
    first: Duration,
}

impl ProgramWatch {
    /// Begins to watch a process. `started`: it was started for this, and may be stopped now and then. Otherwise one
    /// whose bits say too little is refused.
    pub fn new(root: u32, started: bool) -> Result<ProgramWatch, ProcError> {
        check(root)?;
        let (budget, first) = if started { (STARTED, STARTED_FIRST) } else { (RUNNING, RUNNING_FIRST) };
        let mut watcher = Watcher::new(Family::new(root, started), Scope::Program, budget);
        Process::of(root).smaps().map_err(|source| refused(root, "smaps", source))?;
        let mut go_on = |_| true;
        let mut notes = ProgramNotes::new(Bits::default(), 0.0, &mut go_on);
        watcher.look(&mut notes);
        // What was referenced before is not known.
        let ProgramNotes { bits, others, .. } = notes;
        if !started {
            bits.can_be_trusted(root)?;
        }
        Process::of(root).clear_references(References::All).map_err(|source| refused(root, "clear_refs", source))?;
        watcher.clear();
        Ok(ProgramWatch { watcher, bits, others, first })
    }

    /// Watches until all processes have ended, or `go_on` says no; it is asked 20 to 200 times a second.
    pub fn run(self, go_on: &mut dyn FnMut(Watching) -> bool) -> Bits {
        let ProgramWatch { mut watcher, bits, others, first } = self;
        let pace = Pace { first, growth: GROWTH, end: None, waits: true };
        let mut notes = ProgramNotes::new(bits, others, go_on);
        let (mut sample, mut random, mut largest) = (PageSample::default(), Rng::with_seed(1), 0.0);
        loop {
            let stretch = watcher.stretch(&pace, &mut notes);
            if stretch.seconds() > 0.0 {
                notes.bits.covered += watcher.covered().as_secs_f64();
                notes.bits.stretches.push(stretch);
                let heap: f64 = watcher.heaps.iter().map(|(_, _, bytes)| bytes).sum();
                if heap * LARGE > largest {
                    sample = PageSample::default();
                }
                largest = heap.max(largest);
                if heap >= LARGE * largest {
                    let page = |pid, pages| page_in_ram(&Process::of(pid), pages);
                    sample.take(&watcher.heaps, SAMPLED, Algorithms::Lz4, &mut random, page);
                }
            }
            notes.bits.touched.next(watcher.reader.clock().as_secs_f64());
            if notes.ended {
                break;
            }
            watcher.clear();
            watcher.reader.resume();
        }
        let (family, ProgramNotes { bits, files, .. }) = (&watcher.reader, notes);
        Bits {
            rest: Rest { files, ..bits.rest },
            seconds: family.clock().as_secs_f64(),
            own_seconds: family.spent_seconds(),
            compressed: sample.share(&sample.lz4),
            processes: family.processes_seen(),
            threads: family.threads(),
            ..bits
        }
    }
}

impl Bits {
    /// The time from a last look to the next clearing was like the rest.
    pub fn scale(&self) -> f64 {
        self.seconds / self.covered.max(1e-9)
    }

    fn can_be_trusted(&self, pid: u32) -> Result<(), ProcError> {
        let Bits { swapped, huge, .. } = self;
        if *swapped > SWAPPED_MAX {
            return Err(ProcError::Swapped { pid, percent: 100.0 * swapped });
        }
        if *huge > HUGE_MAX {
            return Err(ProcError::Huge { pid, percent: 100.0 * huge });
        }
        Ok(())
    }
}

/// What is noted of each look.
struct ProgramNotes<'a> {
    bits: Bits,
    files: Files,
    /// Of the look that is under way.
    rest: Rest,
    /// Pages in RAM that are not of a heap.
    others: f64,
    /// Whether nothing is left to watch, or nobody wants it.
    ended: bool,
    go_on: &'a mut dyn FnMut(Watching) -> bool,
}

impl<'a> ProgramNotes<'a> {
    fn new(bits: Bits, others: f64, go_on: &'a mut dyn FnMut(Watching) -> bool) -> ProgramNotes<'a> {
        ProgramNotes { bits, files: Files::new(), rest: Rest::default(), others, ended: false, go_on }
    }
}

impl Observer<Family> for ProgramNotes<'_> {
    fn goes_on(&mut self, family: &mut Family) -> bool {
        let heap_bytes = (self.bits.peak_pages * PAGE as f64) as u64;
        self.ended = !family.lives() || !(self.go_on)(Watching { elapsed: family.clock(), heap_bytes });
        // Between looks the heap may have a peak. What has a file counts as changed there, and so does a stack: what
        // these were at the last look is taken off.
        if let Some((resident, shared)) = family.pages().filter(|_| !self.ended) {
            let pages = (resident - shared).min(resident - self.others);
            self.bits.peak_pages = self.bits.peak_pages.max(pages);
        }
        !self.ended
    }

    fn begin(&mut self) {
        self.bits.touched.begin();
    }

    fn process(&mut self, family: &Family, process: u32, mappings: &[Mapping], _: Private) {
        self.bits.touched.process(process, mappings, family.clock().as_secs_f64());
        self.rest.add(mappings, &[]);
    }

    fn count(&mut self, count: &Count) {
        let (Private { resident, swap, huge, .. }, bits) = (count.private, &mut self.bits);
        let pages = resident / PAGE as f64;
        if pages >= bits.peak_pages {
            (bits.peak_pages, bits.huge) = (pages, huge / resident.max(PAGE as f64));
        }
        bits.swapped = bits.swapped.max(swap / (resident + swap).max(PAGE as f64));
        let rest = std::mem::take(&mut self.rest);
        rest.files.iter().for_each(|(path, file)| self.files.entry(path.clone()).or_default().max(file));
        if rest.sum() > bits.rest_bytes {
            (bits.rest_bytes, bits.rest) = (rest.sum(), rest);
        }
        self.others = count.others / PAGE as f64;
    }
}

/// Why a file of a process that was there cannot be used: the process may have ended since.
fn refused(pid: u32, file: &'static str, source: std::io::Error) -> ProcError {
    match check(pid) {
        Err(ProcError::None(_) | ProcError::Ended(_)) => ProcError::Ended(pid),
        _ => ProcError::File { pid, file, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_while_its_files_were_to_be_used_has_ended() {
        let pid = 1 << 23;
        let error = Process::of(pid).clear_references(References::All).unwrap_err();
        assert!(matches!(refused(pid, "clear_refs", error), ProcError::Ended(_)));
        assert!(matches!(ProgramWatch::new(pid, false), Err(ProcError::None(_))));
    }
}
