//! A window trace in the form that the engines take: for each process, its rows in four bytes each, densely numbered
//! pages, and the memory that it unmapped.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::path::Path;

use coldframe_lane::numbering::Numbering;
use coldframe_recording::span::{AddressKind, ReleaseReader, Span, PAGE};
use coldframe_store::window::notes_of_bounds;
use coldframe_store::{Block, Fidelity, Kind, Mapping, Moment, ProgramFacts, Reader, Reference, Wanted};

use crate::error::AnswerError;

/// log2 of [`PAGE`].
const SHIFT: u32 = PAGE.trailing_zeros();
/// Pages of a chunk that a recorder samples together, as a power of two: `coldframe_recording::entries::CHUNK`.
const CHUNK: u32 = coldframe_recording::entries::CHUNK.trailing_zeros();
/// The mapping of managed memory. Notes behind it can be distinguished from pages.
pub const MANAGED: &str = "[managed]";
/// If the number of pages exceeds the peak in RAM by this factor, some were unmapped.
const GIVEN_BACK: f64 = 1.02;

/// For a program of which only the trace is known.
const UNKNOWN: ProgramFacts = ProgramFacts {
    seconds: 0.0,
    recorded_seconds: 0.0,
    managed_bytes: 0,
    not_paged_bytes: 0,
    zero_fills: 0,
    exit: Some(0),
    noise: None,
    processes: 1,
    threads: 1,
};

/// A trace in memory.
#[derive(Debug)]
pub struct Rows {
    /// The recorder's other measurements.
    pub facts: ProgramFacts,
    /// Whether the stand-alone time was measured, and not derived from the recording.
    pub ran_alone: bool,
    /// The command line, if known.
    pub command: Option<String>,
    /// Pages of the window; 0: every reference is a row.
    pub window: u64,
    /// Share of the pages that was recorded.
    pub sample: f64,
    /// Processes, the one with the most pages first.
    pub processes: Vec<Process>,
    /// What several processes had in RAM together, where it was most.
    pub moments: Vec<Moment>,
    /// Large mappings and blocks of the largest process, and who made them.
    pub mappings: Vec<Mapping>,
    /// Facts that were inferred, since the trace lacks them.
    pub inferred: Option<&'static str>,
    /// The recorder's notes.
    pub notes: Vec<String>,
}

/// The rows of one process.
#[derive(Debug, Default)]
pub struct Process {
    /// Twice the page's dense number, plus 1 if it was written to.
    pub rows: Vec<u32>,
    /// Nanoseconds of processor time that each row's thread has had since its last row, at most 4 s. A part has none.
    pub worked: Vec<u32>,
    /// True page numbers by dense number.
    pub pages: Vec<u64>,
    /// Pages that were unmapped before the row of this number, in order of the rows.
    pub released: Vec<(usize, Vec<u32>)>,
    /// Threads that touched managed memory.
    pub threads: usize,
}

impl Rows {
    /// Reads a trace. `seconds`: the program's own time, if it is known better than from the trace.
    pub fn read(path: &Path, reader: &mut Reader, seconds: Option<f64>) -> Result<Rows, AnswerError> {
        let provenance = reader.provenance().clone();
        let unfit = |reason: String| AnswerError::new(3, format!("{}: {reason}", path.display()));
        let facts = match (provenance.program, seconds) {
            (Some(facts), None) => facts,
            (facts, Some(seconds)) => ProgramFacts { seconds, ..facts.unwrap_or(UNKNOWN) },
            (None, None) => return Err(unfit(without_facts(provenance.fidelity))),
        };
        if provenance.page_size.is_some_and(|bytes| bytes != PAGE) {
            return Err(unfit(format!("has pages of other sizes than {PAGE} bytes; record it again on this machine")));
        }
        let managed = provenance.mappings.iter().find(|mapping| mapping.name == MANAGED);
        let span = managed.map(|m| Span { start: m.start, len: m.end - m.start });
        let spaces: BTreeMap<u32, u32> = provenance.tasks.iter().map(|task| (task.id, task.space)).collect();
        let mut making: BTreeMap<u32, Making> = BTreeMap::new();
        let mut block = Block::new();
        while reader.read(&mut block, Wanted::ALL)? > 0 {
            for row in block.iter().filter(|row| row.kind != Kind::Fetch) {
                let space = spaces.get(&row.task).copied().unwrap_or(0);
                making.entry(space).or_default().take(&row, span);
            }
        }
        let mut processes: Vec<Process> = making.into_values().map(Making::made).collect();
        processes.retain(|process| !process.rows.is_empty());
        processes.sort_by_key(|process| std::cmp::Reverse(process.pages.len()));
        if processes.is_empty() {
            return Err(unfit("holds no page of managed memory; record a program with a heap".into()));
        }
        let sample = provenance.sample.filter(|share| *share > 0.0 && *share < 1.0).unwrap_or(1.0);
        let window = provenance.window.unwrap_or(0);
        let mut rows = Rows {
            facts,
            ran_alone: seconds.is_some(),
            command: provenance.command,
            window,
            sample,
            processes,
            moments: provenance.moments,
            mappings: provenance.mappings.into_iter().filter(|one| one.name != MANAGED).collect(),
            inferred: None,
            notes: provenance.notes,
        };
        rows.infer_released();
        Ok(rows)
    }

    /// What the recorder noted, without the bounds of policies, which are for readers of the trace.
    pub fn remarks(&self) -> Vec<String> {
        let bounds = notes_of_bounds(self.window);
        self.notes.iter().filter(|note| !bounds.contains(note)).cloned().collect()
    }

    /// Rows of all processes.
    pub fn count(&self) -> u64 {
        self.processes.iter().map(|process| process.rows.len() as u64).sum()
    }

    /// Pages that the largest process had in RAM at a time.
    pub fn peak(&self) -> u64 {
        let largest = self.processes[0].peak() as f64 / self.sample;
        match (self.facts.managed_bytes / PAGE, self.processes.len()) {
            (0, _) => largest.ceil() as u64,
            (peak, 1) => peak,
            (peak, _) => peak.min(largest.ceil() as u64),
        }
    }

    /// The most bytes of all processes at a time, each page once.
    pub fn sum(&self) -> u64 {
        self.moments.iter().map(Moment::sum).max().unwrap_or(0).max(self.peak() * PAGE)
    }

    /// The most bytes that all processes have in RAM at a time if each has this much RAM, also if it needs less.
    /// `margin`: what each needs above its pages.
    pub fn together(&self, ram: u64, margin: u64) -> u64 {
        self.moments.iter().map(|moment| moment.within(ram, margin)).max().unwrap_or(ram)
    }

    /// The part `number` of `parts` of the pages, by the hash of their chunks.
    pub fn part(&self, number: u64, parts: u64) -> Rows {
        let processes = self.processes.iter().map(|process| process.part(number, parts)).collect();
        let (command, notes) = (self.command.clone(), self.notes.clone());
        Rows {
            sample: self.sample / parts as f64,
            processes,
            command,
            notes,
            moments: Vec::new(),
            mappings: Vec::new(),
            ..*self
        }
    }

    /// For a trace without unmapped memory in which more pages were touched than were in RAM at a time: pages that
    /// are not touched again have been unmapped by then, those first that have been idle longest.
    fn infer_released(&mut self) {
        let peak = (self.peak() as f64 * self.sample) as usize;
        let process = &mut self.processes[0];
        let known = process.released.iter().any(|(_, pages)| !pages.is_empty());
        if known || process.pages.len() as f64 <= peak as f64 * GIVEN_BACK {
            return;
        }
        process.released = process.dead(peak);
        self.inferred = Some("what the program gave back is inferred from its peak");
    }
}

fn without_facts(fidelity: Fidelity) -> String {
    let again = "does not say how long the program takes without paging; record it again (coldframe record)";
    match fidelity {
        Fidelity::Window => again.into(),
        _ => format!("{again}, or ask about a board: coldframe-lab advise"),
    }
}

/// A process whose rows are being read.
struct Making {
    process: Process,
    numbers: Numbering,
    releases: BTreeMap<u32, ReleaseReader>,
    /// By thread, its processor time at its last row.
    threads: BTreeMap<u32, u64>,
}

impl Default for Making {
    fn default() -> Making {
        let (process, releases, threads) = (Process::default(), BTreeMap::new(), BTreeMap::new());
        Making { process, numbers: Numbering::new(SHIFT), releases, threads }
    }
}

impl Making {
    fn take(&mut self, row: &Reference, span: Option<Span>) {
        // As addresses, so that a trace without a span has the same pages.
        let Some(span) = span else { return self.page(row) };
        match span.kind_of(row.address) {
            AddressKind::Page(_) => self.page(row),
            AddressKind::Release(part) => {
                if let Some(pages) = self.releases.entry(row.task).or_default().read(part) {
                    let first = span.start >> SHIFT;
                    self.release(first + pages.start..first + pages.end);
                }
            }
            AddressKind::Elsewhere => {}
        }
    }

    fn page(&mut self, row: &Reference) {
        let number = self.numbers.number(0, row.address >> SHIFT);
        self.process.rows.push(number << 1 | u32::from(row.kind == Kind::Write));
        let before = self.threads.insert(row.task, row.time).unwrap_or(0);
        self.process.worked.push(u32::try_from(row.time.saturating_sub(before)).unwrap_or(u32::MAX));
    }

    /// Pages that were never touched need no release, and there may be very many of them.
    fn release(&mut self, pages: Range<u64>) {
        let known: Vec<u32> = if pages.end - pages.start > self.numbers.count() as u64 {
            let places = self.numbers.places().iter().enumerate();
            places.filter(|(_, (_, page))| pages.contains(page)).map(|(number, _)| number as u32).collect()
        } else {
            pages.filter_map(|page| self.numbers.find(0, page)).collect()
        };
        if !known.is_empty() {
            self.process.released.push((self.process.rows.len(), known));
        }
    }

    fn made(self) -> Process {
        Process { pages: self.numbers.pages(), threads: self.threads.len(), ..self.process }
    }
}

impl Process {
    /// The largest number of pages at a time.
    pub fn peak(&self) -> usize {
        let (mut there, mut now, mut peak) = (vec![false; self.pages.len()], 0usize, 0);
        let mut released = self.released.iter().peekable();
        for (i, row) in self.rows.iter().enumerate() {
            while let Some((_, pages)) = released.next_if(|(at, _)| *at <= i) {
                for page in pages {
                    now -= usize::from(std::mem::take(&mut there[*page as usize]));
                }
            }
            now += usize::from(!std::mem::replace(&mut there[(row >> 1) as usize], true));
            peak = peak.max(now);
        }
        peak
    }

    /// Which pages must have been unmapped, and when, if there were never more than `peak`.
    fn dead(&self, peak: usize) -> Vec<(usize, Vec<u32>)> {
        let mut last = vec![0usize; self.pages.len()];
        self.rows.iter().enumerate().for_each(|(i, row)| last[(row >> 1) as usize] = i);
        let (mut there, mut now) = (vec![false; self.pages.len()], 0usize);
        let (mut resting, mut released) = (VecDeque::new(), Vec::new());
        for (i, row) in self.rows.iter().enumerate() {
            let page = row >> 1;
            now += usize::from(!std::mem::replace(&mut there[page as usize], true));
            if now > peak {
                if let Some(dead) = resting.pop_front() {
                    released.push((i, vec![dead]));
                    now -= 1;
                }
            }
            if last[page as usize] == i {
                resting.push_back(page);
            }
        }
        released
    }

    fn part(&self, number: u64, parts: u64) -> Process {
        // Chunks in turn, in the order of their places: each part has its share of each region, as the sample itself
        // has.
        let chunks: BTreeSet<u64> = self.pages.iter().map(|page| page >> CHUNK).collect();
        let turns: BTreeMap<u64, u64> = chunks.into_iter().zip(0..).collect();
        let chosen: Vec<bool> = self.pages.iter().map(|page| turns[&(page >> CHUNK)] % parts == number).collect();
        let mut process = Process { pages: self.pages.clone(), threads: self.threads, ..Process::default() };
        let mut released = self.released.iter().peekable();
        for (i, row) in self.rows.iter().enumerate() {
            while let Some((_, pages)) = released.next_if(|(at, _)| *at <= i) {
                let pages = pages.iter().copied().filter(|page| chosen[*page as usize]).collect();
                process.released.push((process.rows.len(), pages));
            }
            if chosen[(row >> 1) as usize] {
                process.rows.push(*row);
            }
        }
        process
    }
}
