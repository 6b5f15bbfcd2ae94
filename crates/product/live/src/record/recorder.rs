//! Records a program at nearly its own speed. No page leaves RAM. Pages leave a window and enter it again by a fault,
//! and each entry is a record in a mapped file (`coldframe_recording::entries`). The file is complete however the
//! program ends.
//!
//! An entry costs the program some microseconds, so the recorder limits the entries of pages that it has recorded
//! before. In all, they may take as long as the program has worked, and the user's patience (an upper bound) on top:
//!
//! ```text
//!   spent of the patience   1/64     1/32     1/16      1/8      1/4      1/2          all
//!   sampled pages down to   8192 ──► 4096 ──► 2048 ──► 1024 ──► 512 ──► 256 = SAMPLED_MIN
//!   window, of the sample   1/16 ────────────────────────────────────────────────► 1/5 ──► all: nothing is recorded
//! ```
//! First the sample is halved, each halving at twice the spent time; a fully recorded program is not affected. The
//! window grows only if the smallest sample still takes too long; in the end nothing is recorded and the program runs
//! at its own speed.
//!
//! The recorder compares the hash of a page when it leaves the window with the last hash: if they differ, the page was
//! written. This costs no fault. It is also what a swap area needs: pages with unchanged bytes are not written again.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::Release};
use std::sync::Arc;

use coldframe_recording::entries::{
    is_sampled, worked, Record, Word, CHUNK, COMMAND, HEAD, LEN, MAGIC, RECORD, RECORDS,
};

use crate::page::pages::Pages;
use crate::record::window::Knobs;
use crate::swap::log::Log;
use crate::sys::lock::Lock;
use crate::sys::{self, High};
use crate::{LiveError, Options, Recorder, Wait, PAGE};

/// The other costs of an entry, as a part of its handler's work and its way. Used only to decide whether more entries
/// are possible. Measured on an AMD EPYC in a virtual machine with 2 processors, kept awake (2026-11-25): 3 us in the
/// kernel's fault and 1 to 3 us of cache misses, next to 4 to 5 us in the handler and 3 us on the way.
const OTHER_COSTS: f64 = 0.6;
/// A period with fewer entries does not correct earlier ones: those that take as long as all the rest.
const SHARE: f64 = 0.5;
/// Nanoseconds that entries may take beyond their share before the recorder reacts, on top of the patience: two
/// periods, so that one busy period changes nothing.
const SLACK_NS: f64 = 2.0 * PERIOD_NS as f64;
/// Upper bound on recording time, as a multiple of run time so far: memory that has just begun to grow needs no small
/// window. A guess.
const AT_ONCE: f64 = 8.0;
/// The window, as a part of the sampled pages in RAM. A guess: hardly a program is usable in less memory.
const WINDOW: usize = 16;
/// A quarter of the memory is known with a window of this part, since a window leaves a quarter of itself open.
const QUARTER: usize = 5;
/// The least useful number of sampled pages: 32 chunks, for an error of about a sixth.
const SAMPLED_MIN: usize = 32 * CHUNK as usize;
/// The shortest window: a sixteenth of the smallest sample.
const WINDOW_MIN: usize = SAMPLED_MIN / 16;
/// How often the entries' time is checked, in nanoseconds and in entries, and how often the kernel's numbers are read.
/// Guesses: 50 times a second costs nothing.
const PERIOD_NS: u64 = 20_000_000;
const PERIOD: u64 = 64;
/// A thread whose way takes longer than this has waited for something else, in nanoseconds. A way takes 3 us, and 25 us
/// if a virtual processor has halted (measured as `OTHER_COSTS`, without keeping the processors awake); a thread that
/// waits for a processor waits for a millisecond.
const WAIT_NS: u64 = 50_000;
/// Bytes of the file that are reserved at a time: 256 Ki records, which take the program two
/// seconds at 10 us each. A guess.
const STEP: usize = 4 << 20;

#[derive(Debug)]
struct Mapped {
    start: usize,
    fd: High,
    given: AtomicUsize,
    giving: Lock<()>,
}

pub(crate) struct Recording {
    mapped: Mapped,
    knobs: Arc<Knobs>,
    fixed: bool,
    patience: u64,
    pace: Lock<Pace>,
    /// Bytes of RAM that the pager itself takes.
    own: u64,
    /// Nanoseconds of the process's processor time before the recording.
    before: u64,
    zeros: u128,
    /// Mappings whose callers are noted.
    mappings: AtomicUsize,
}

/// The most mappings whose callers are noted. A guess: a program with more has small ones.
const MAPPINGS: usize = 4096;

/// The counts of this period, and when it began.
#[derive(Debug, Default)]
struct Pace {
    entries: u64,
    taken: u64,
    /// The time of all periods before.
    before: u64,
    since: u64,
    looked: u64,
    /// How often the sampling has been halved because the file was filling up.
    halved: u32,
    /// The threads that have faulted: each one's last fault.
    threads: Vec<LastFault>,
    handlers: Vec<Watch>,
    memory: Option<High>,
}

/// A thread's last fault: when it was answered, and the thread's processor time then.
#[derive(Clone, Copy, Debug)]
struct LastFault {
    thread: u32,
    answered: u64,
    time: u64,
}

/// A thread, and nanoseconds of its processor time.
#[derive(Debug)]
struct Watch {
    thread: u32,
    time: u64,
}

impl Watch {
    fn look(&mut self) {
        // A thread that has ended has no clock.
        self.time = self.time.max(sys::thread_time(self.thread));
    }
}

/// A file of `/proc` is opened once, before the program begins or continues. A descriptor that is opened and closed
/// later would sometimes take a number that the program expects.
pub(crate) fn open(path: &std::ffi::CStr) -> Option<High> {
    sys::open_file(path).ok().map(sys::move_high)
}

impl Pace {
    fn new() -> Pace {
        let (threads, handlers) = (Vec::with_capacity(1024), Vec::with_capacity(64));
        Pace { threads, handlers, memory: open(c"/proc/self/statm"), ..Pace::default() }
    }

    /// The fault of a thread, which came at `started` and is answered `now`. `time`: the thread's processor time.
    /// Between two faults, a thread works, which its clock shows, and is on its way to the handler and back. Returns
    /// the nanoseconds of its way, or 0 if it has waited for something else; `None`: it is a new thread.
    fn fault(&mut self, thread: u32, started: u64, now: u64, time: u64) -> Option<u64> {
        let this = LastFault { thread, answered: now, time };
        let Some(known) = self.threads.iter_mut().find(|last| last.thread == thread) else {
            let room = self.threads.len() < self.threads.capacity();
            if room {
                self.threads.push(this);
            }
            return if room { None } else { Some(0) };
        };
        let last = std::mem::replace(known, this);
        let way = started.saturating_sub(last.answered).saturating_sub(time.saturating_sub(last.time));
        Some(if way > WAIT_NS { 0 } else { way })
    }
}

/// Bytes of this process in RAM, by its `/proc/self/statm`.
pub(crate) fn in_ram(file: Option<&High>) -> u64 {
    let mut text = [0u8; 64];
    let len = file.map_or(0, |file| sys::read_start(file.as_raw_fd(), &mut text));
    let pages = std::str::from_utf8(&text[..len]).ok().and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE as u64
}

/// Sets the options of a recorder's pager: all the RAM of the machine, no read-ahead, no device to wait for.
pub(crate) fn fit(options: &mut Options) {
    options.ram = sys::all_ram().min(options.max_memory);
    (options.read_ahead, options.wait, options.evict_batch) = (0, Wait::Read, Some(1));
    (options.policy, options.journal, options.swap) = (Some("fifo".into()), None, None);
}

pub(crate) fn knobs_of(options: &Recorder) -> Arc<Knobs> {
    let window = AtomicUsize::new(options.window.unwrap_or(WINDOW_MIN));
    Arc::new(Knobs { window, ..Knobs::default() })
}

impl Mapped {
    fn create(folder: &Path) -> Result<Mapped, LiveError> {
        let refuse = |reason: String| LiveError::Backing { path: folder.to_path_buf(), reason };
        let file = super::own_file(folder).map_err(|e| refuse(e.to_string()))?;
        file.set_len(LEN as u64).map_err(|e| refuse(e.to_string()))?;
        let fd = sys::move_high(File::into(file));
        let start = sys::map_file(fd.as_raw_fd(), LEN, libc::PROT_READ | libc::PROT_WRITE)
            .map_err(|e| refuse(sys::words(e).to_string()))?;
        let mapped = Mapped { start, fd, given: AtomicUsize::new(0), giving: Lock::new(()) };
        match mapped.give(HEAD) {
            true => Ok(mapped),
            false => Err(refuse("has no room for a recording; free some, or record into another folder".into())),
        }
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        // SAFETY: the head is mapped and has been given, and all its words are only reached as atomic ones.
        unsafe { &*((self.start + 8 * word as usize) as *const AtomicU64) }
    }

    /// Reserves room in the file up to `end`. A store into a file without room would raise SIGBUS.
    fn give(&self, end: usize) -> bool {
        if end <= self.given.load(Relaxed) {
            return true;
        }
        let _giving = self.giving.lock();
        let given = self.given.load(Relaxed);
        if end <= given {
            return true;
        }
        let step = STEP.min(LEN - given);
        let a = [self.fd.as_raw_fd() as usize, 0, given, step, 0, 0];
        // SAFETY: no pointers.
        let done = sys::again(|| unsafe { sys::call(libc::SYS_fallocate, a) }).is_ok();
        if done {
            self.given.store(given + step, Relaxed);
        }
        done
    }

    fn put(&self, record: Record) {
        let number = self.word(Word::Records).fetch_add(1, Relaxed) as usize;
        let at = HEAD + number * RECORD;
        if number >= RECORDS || !self.give(at + RECORD) {
            return;
        }
        let [first, value] = record.encode();
        // SAFETY: the place is this record's alone, and has been given.
        unsafe {
            (*((self.start + at + 8) as *const AtomicU64)).store(value, Relaxed);
            (*((self.start + at) as *const AtomicU64)).store(first, Release);
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it is no longer used.
        unsafe { sys::unmap_memory(self.start, LEN) };
    }
}

impl Recording {
    pub(crate) fn create(
        options: &Recorder,
        knobs: Arc<Knobs>,
        space: (usize, usize),
        zeros: u128,
    ) -> Result<Recording, LiveError> {
        let mapped = Mapped::create(&options.folder)?;
        let fixed = options.window.is_some();
        let recording = Recording {
            mapped,
            knobs,
            fixed,
            patience: options.patience,
            pace: Lock::new(Pace::new()),
            own: 0,
            before: sys::process_time(),
            zeros,
            mappings: AtomicUsize::new(0),
        };
        recording.head(0, 0, space);
        Ok(recording)
    }

    /// Notes the RAM in use before the pager started, and when the pager began to start.
    pub(crate) fn set_own(&mut self, (before, started): (u64, u64)) {
        self.own = in_ram(self.pace.lock().memory.as_ref()).saturating_sub(before);
        self.before = sys::process_time();
        let now = sys::now();
        self.mapped.word(Word::Starting).store(now - started, Relaxed);
        self.mapped.word(Word::Started).store(now, Relaxed);
    }

    fn head(&self, parent: u64, inherited: u64, (base, pages): (usize, usize)) {
        let set = |word, value| self.mapped.word(word).store(value, Relaxed);
        set(Word::Process, u64::from(std::process::id()));
        set(Word::Parent, parent);
        set(Word::Inherited, inherited);
        set(Word::Place, self.mapped.start as u64);
        set(Word::Base, base as u64);
        set(Word::Pages, pages as u64);
        set(Word::Started, sys::now());
        set(Word::Ended, sys::now());
        // SAFETY: the head is this process's, and has this many bytes.
        let room =
            unsafe { std::slice::from_raw_parts_mut((self.mapped.start + COMMAND.start) as *mut u8, COMMAND.len()) };
        sys::read_file(c"/proc/self/cmdline", room);
        self.mapped.word(Word::Magic).store(MAGIC, Release);
        self.window_changed();
    }

    fn window_changed(&self) {
        let (pages, shift) = (self.knobs.window.load(Relaxed) as u32, self.knobs.shift.load(Relaxed));
        self.mapped.put(Record::Window { pages, shift });
    }

    fn samples(&self, page: usize) -> bool {
        is_sampled(page as u32, self.knobs.shift.load(Relaxed))
    }

    /// The calling thread is a handler of this process.
    pub(crate) fn joins(&self) {
        let watch = Watch { thread: sys::thread(), time: 0 };
        let mut pace = self.pace.lock();
        if pace.handlers.len() < pace.handlers.capacity() {
            pace.handlers.push(watch);
        }
    }

    /// A page is being brought in for a thread whose fault came at `started`. `first`: it was zeros.
    pub(crate) fn entry(&self, page: usize, write: bool, first: bool, thread: u32, started: u64, resident: usize) {
        let mapped = &self.mapped;
        mapped.word(Word::Faults).fetch_add(1, Relaxed);
        mapped.word(Word::ZeroFills).fetch_add(u64::from(first), Relaxed);
        mapped.word(Word::Managed).fetch_max(resident as u64, Relaxed);
        let (sampled, time) = (self.samples(page), sys::thread_time(thread));
        if sampled {
            mapped.word(Word::Entries).fetch_add(1, Relaxed);
            mapped.put(Record::Entry { page: page as u32, write, thread, time });
        }
        let mut pace = self.pace.lock();
        if started > pace.looked + PERIOD_NS {
            pace.looked = started;
            self.look(&mut pace, resident);
        }
        let now = sys::now();
        let took = now - started;
        mapped.word(Word::Handling).fetch_add(took, Relaxed);
        mapped.word(Word::Ended).store(now, Relaxed);
        let known = pace.fault(thread, started, now, time);
        let way = known.unwrap_or_default();
        mapped.word(Word::Threads).fetch_add(u64::from(known.is_none()), Relaxed);
        mapped.word(Word::Ways).fetch_add(way, Relaxed);
        // No knob changes the first touches.
        if !sampled || first || self.fixed {
            return;
        }
        (pace.entries, pace.taken) = (pace.entries + 1, pace.taken + took + way);
        if pace.entries >= PERIOD && now - pace.since > PERIOD_NS {
            let took = |taken: u64| (1.0 + OTHER_COSTS) * taken as f64;
            pace.before += pace.taken;
            let own = worked(|word| mapped.word(word).load(Relaxed));
            let now_taken = took(pace.taken) / (now - pace.since) as f64;
            let spent = Spent { now: now_taken, all: took(pace.before), own, patience: self.patience as f64 };
            (pace.entries, pace.taken, pace.since) = (0, 0, now);
            // Each time half of the remaining room is used, the rate is halved.
            let full = mapped.word(Word::Records).load(Relaxed) as usize > RECORDS - (RECORDS >> (pace.halved + 1));
            pace.halved += u32::from(full);
            drop(pace);
            self.turn(&spent, resident, full);
        }
    }

    fn turn(&self, spent: &Spent, resident: usize, full: bool) {
        let (window, shift) = (self.knobs.window.load(Relaxed), self.knobs.shift.load(Relaxed));
        let (to, down) = knobs(spent, window, resident >> shift, full);
        if (to, down) != (window, false) {
            self.knobs.shift.store(shift + u32::from(down), Relaxed);
            self.knobs.window.store(to, Relaxed);
            self.window_changed();
        }
    }

    /// Notes the time, and reads the RAM in use outside of managed memory and the pager, and the threads' processor
    /// time.
    fn look(&self, pace: &mut Pace, resident: usize) {
        // Nothing was recorded between these two.
        let last = pace.threads.iter().map(|thread| thread.answered).max();
        let times = last.into_iter().chain([sys::now()]);
        times.for_each(|time| self.mapped.put(Record::Clock { time }));
        pace.handlers.iter_mut().for_each(Watch::look);
        // The file's pages are in this process's RAM, too.
        let written = self.mapped.word(Word::Records).load(Relaxed).min(RECORDS as u64) * RECORD as u64;
        let ours = (resident * PAGE) as u64 + self.own + written;
        let others = in_ram(pace.memory.as_ref()).saturating_sub(ours);
        self.mapped.word(Word::NotPaged).fetch_max(others, Relaxed);
        let handled: u64 = pace.handlers.iter().map(|one| one.time).sum();
        let set = |word, value| self.mapped.word(word).store(value, Relaxed);
        set(Word::Program, sys::process_time().saturating_sub(handled + self.before));
        set(Word::Handled, handled);
    }

    /// A page has left the window, and has just been put into the aside mapping, at `aside`. Its owner is calling.
    pub(crate) fn leaves(&self, page: usize, aside: usize, pages: &Pages, log: &Log) {
        // SAFETY: the page is there.
        let (before, sum) = (pages.sum(page), unsafe { log.sum(aside) });
        let changed = sum != if before == 0 { self.zeros } else { before };
        if changed {
            self.mapped.put(Record::Changed { page: page as u32 });
        }
        pages.set_sum(page, sum);
    }

    pub(crate) fn released(&self, page: usize) {
        if self.samples(page) {
            self.mapped.put(Record::Released { page: page as u32, pages: 1 });
        }
    }

    pub(crate) fn mapping(&self, pages: Range<usize>, caller: usize) {
        if self.mappings.fetch_add(1, Relaxed) < MAPPINGS {
            let (page, pages) = (pages.start as u32, pages.len() as u32);
            self.mapped.put(Record::Mapping { page, pages, caller: caller as u64 });
        }
    }

    pub(crate) fn end(&self, resident: usize) {
        let now = sys::now();
        let mut pace = self.pace.lock();
        self.look(&mut pace, resident);
        self.mapped.word(Word::Ended).store(now, Relaxed);
        self.mapped.word(Word::Whole).store(1, Relaxed);
    }

    pub(crate) fn renew(&mut self, options: &Recorder) -> Result<(), LiveError> {
        let word = |word| self.mapped.word(word).load(Relaxed);
        let (parent, records) = (word(Word::Process), word(Word::Records));
        let space = [Word::Base, Word::Pages].map(|which| word(which) as usize);
        self.mapped = Mapped::create(&options.folder)?;
        self.pace = Lock::new(Pace::new());
        self.before = sys::process_time();
        self.head(parent, records, space.into());
        Ok(())
    }
}

struct Spent {
    /// As a part of the last period.
    now: f64,
    all: f64,
    /// Nanoseconds that the program has worked.
    own: f64,
    /// Nanoseconds that entries may take on top.
    patience: f64,
}

/// The new window, and whether to halve the sampling, for this window and this many sampled pages in RAM. `full`: the
/// file is filling up.
fn knobs(spent: &Spent, window: usize, sampled: usize, full: bool) -> (usize, bool) {
    let part = |part: usize| (sampled / part).max(WINDOW_MIN);
    let over = spent.all - spent.own - SLACK_NS;
    let due = spent.patience * (SAMPLED_MIN as f64 / sampled as f64).min(1.0);
    let tight = over > due.min(AT_ONCE * spent.own) && spent.now > SHARE;
    let most = if over > spent.patience { sampled } else { part(QUARTER) };
    match tight {
        true if sampled >= 2 * SAMPLED_MIN => ((window / 2).max(WINDOW_MIN), true),
        _ if full && sampled >= 2 * WINDOW_MIN => ((window / 2).max(WINDOW_MIN), true),
        true => ((window + window / 2).min(most).max(window), false),
        false => (window.max(part(WINDOW)), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: f64 = 8e9;

    /// Entries have taken this part of the patience in a long run, and take this part of the time.
    fn at(part: f64, now: f64) -> Spent {
        Spent { now, all: 1e11 + part * PATIENCE, own: 1e11, patience: PATIENCE }
    }

    #[test]
    fn a_program_that_faults_often_gets_a_smaller_sample_then_a_wider_window_and_loses_a_quarter_last() {
        let of = |part, window, sampled| knobs(&at(part, 0.9), window, sampled, false);
        assert_eq!([of(0.03, 256, 8192), of(0.04, 256, 8192)], [(512, false), (128, true)]);
        assert_eq!([of(0.03, 100, 4096), of(0.07, 128, 4096)], [(256, false), (64, true)]);
        assert_eq!([of(0.51, 16, 512), of(0.6, 16, 400)], [(16, true), (25, false)]);
        assert_eq!([of(0.7, 16, 400), of(0.7, 70, 400), of(0.7, 90, 400)], [(24, false), (80, false), (90, false)]);
        assert_eq!(
            [of(1.1, 80, 400), of(1.1, 350, 400), of(9.0, 400, 400)],
            [(120, false), (400, false), (400, false)]
        );
        assert_eq!(of(1.1, 16, 40), (24, false));
    }

    #[test]
    fn a_program_that_has_just_begun_has_not_had_all_the_patience() {
        let young = |all| Spent { now: 0.9, all, own: 5e7, patience: PATIENCE };
        assert_eq!(knobs(&young(4e8), 16, 400, false), (25, false));
        assert_eq!(knobs(&young(6e8), 16, 400, false), (24, false));
        assert_eq!(knobs(&young(6e8), 50, 800, false), (25, true));
    }

    #[test]
    fn a_program_that_seldom_faults_keeps_its_sample_and_a_window_that_follows_its_memory() {
        let of = |part, window, sampled| knobs(&at(part, 0.4), window, sampled, false);
        assert_eq!([of(2.0, 80, 400), of(0.0, 16, 8192), of(-1.0, 16, 100)], [(80, false), (512, false), (16, false)]);
    }

    #[test]
    fn a_way_is_what_is_left_when_work_is_taken_off() {
        let mut pace = Pace::new();
        let (mut now, mut ways) = (1_000_000, 0);
        assert_eq!(pace.fault(7, now, now, 500), None);
        for i in 1..101u64 {
            // 3 us of work, 8 us on the way; every tenth time the thread also waits for something else.
            let wait = if i % 10 == 9 { 5_000_000 } else { 0 };
            let started = now + 3_000 + 8_000 + wait;
            now = started + 4_000;
            ways += pace.fault(7, started, now, 500 + 3_000 * i).unwrap();
        }
        assert_eq!(ways, 90 * 8_000);
    }

    #[test]
    fn threads_are_counted_once_and_a_wait_for_something_else_is_no_way() {
        let mut pace = Pace::new();
        assert_eq!([7, 8].map(|thread| pace.fault(thread, 1_000, 2_000, 100)), [None, None]);
        assert_eq!(pace.fault(7, 12_000, 13_000, 3_100), Some(7_000));
        assert_eq!(pace.fault(8, 1_000_000, 1_001_000, 100), Some(0));
    }

    #[test]
    fn the_kernel_knows_this_thread_and_its_process() {
        let (mut watch, before) = (Watch { thread: sys::thread(), time: 0 }, sys::process_time());
        watch.look();
        assert!(before > 0 && sys::process_time() >= before.max(watch.time) && watch.time > 0);
        // Read once: the other tests of this process allocate memory.
        let resident = in_ram(open(c"/proc/self/statm").as_ref());
        assert!(resident > 0 && resident.is_multiple_of(PAGE as u64), "{resident}");
        assert_eq!(in_ram(None), 0);
    }

    #[test]
    fn a_file_that_fills_up_is_spared_by_a_smaller_sample() {
        assert_eq!(knobs(&at(0.0, 0.4), 512, 8192, true), (256, true));
        assert!(!knobs(&at(0.0, 0.4), 16, 30, true).1);
    }
}
