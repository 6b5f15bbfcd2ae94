//! Small lessons, one reference at a time: what the engine does with it, and why.
//!
//! All pictures are computed. A lesson names settings and a string of references. [`play`] feeds the references to a
//! simulator lane, one by one. A [`Step`] is made from the lane's journal for each reference; of several tasks, for
//! each fault. [`words`] shows steps to a person.

use coldframe_core::{Access, After, Event, PageId, Ps};
use coldframe_experiment::error::{nearest, ExperimentError};
use coldframe_experiment::sim_result::SCHEMA_VERSION;
use coldframe_experiment::{resolve, tasks, Settings};
use coldframe_journal::{open, Entries, Entry};
use coldframe_lane::page_table::PageTable;
use coldframe_lane::{Lane, LaneConfig, PageRef};
use coldframe_store::{Block, Fidelity, Kind, Provenance, Reference, Task};
use schemars::JsonSchema;
use serde::Serialize;

mod lessons;
mod story;
pub mod words;

pub use lessons::{Lesson, Setup, ALL};
pub use story::{Busy, Story};

/// The program's time between two references: long enough to show a step's end in a timeline.
const BETWEEN: Ps = Ps(20_000_000);

/// A page in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Held {
    /// The page.
    pub page: u32,
    /// Its reference bit.
    pub referenced: bool,
    /// Its dirty bit.
    pub dirty: bool,
}

/// One reference and its effects.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Step {
    /// The page.
    pub page: u32,
    /// Whether it was written.
    pub writing: bool,
    /// Whether it was a hit.
    pub hit: bool,
    /// The fault's latency; `None`: a hit, or a lesson without prices.
    #[serde(rename = "latency_ps", serialize_with = "picoseconds", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub fault: Option<Ps>,
    /// What happened, in order.
    #[serde(rename = "what")]
    pub lines: Vec<String>,
    /// The frames afterwards; none for several tasks.
    pub frames: Vec<Option<Held>>,
    /// The slots of each erase block of a log afterwards: a page's number, `x` (the page is elsewhere by now) or `-`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<Vec<String>>,
    /// Pages that stay in the device's buffers afterwards.
    pub buffers: Vec<Option<u32>>,
    /// The frame under the hand of a Clock: after the frame that was emptied last.
    pub hand: Option<usize>,
}

fn picoseconds<S: serde::Serializer>(time: &Option<Ps>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.0).serialize(to)
}

/// A lesson's references under one setup.
#[derive(Clone, Debug)]
pub struct Played {
    /// The setup.
    pub setup: &'static Setup,
    /// Whether times are shown.
    pub priced: bool,
    /// Reference by reference.
    pub steps: Vec<Step>,
    /// When device and buffers were busy.
    pub busy: Vec<Busy>,
    /// From the first reference to the end of the last.
    pub time: Ps,
    /// Time in faults, by the lane's count.
    pub paging: Ps,
}

impl Played {
    /// True faults.
    pub fn faults(&self) -> usize {
        self.steps.iter().filter(|step| !step.hit).count()
    }

    /// Lines with this word.
    pub fn mentions(&self, word: &str) -> usize {
        self.steps.iter().flat_map(|step| &step.lines).filter(|line| line.contains(word)).count()
    }

    /// The longest fault.
    pub fn longest(&self) -> Ps {
        self.steps.iter().filter_map(|step| step.fault).max().unwrap_or_default()
    }
}

/// The lesson of this name.
pub fn find(name: &str) -> Result<&'static Lesson, ExperimentError> {
    ALL.iter().find(|lesson| lesson.name == name).ok_or_else(|| {
        let names = || ALL.iter().map(|lesson| lesson.name);
        let list: Vec<_> = names().collect();
        let reason = format!("there is no lesson `{name}`; there are {}{}", list.join(", "), nearest(name, names()));
        ExperimentError::setting("lesson", reason)
    })
}

/// A lesson under all its setups.
pub fn play(lesson: &'static Lesson) -> Result<Vec<Played>, ExperimentError> {
    let one = |setup| match lesson.is_of_tasks() {
        true => play_tasks(setup, lesson),
        false => play_one(setup, lesson),
    };
    lesson.setups.iter().map(one).collect()
}

/// `1 2w 3`: page 1 is read, page 2 written.
fn parse(text: &str) -> Vec<(u32, bool)> {
    let one = |word: &str| {
        let (number, writing) = word.strip_suffix('w').map_or((word, false), |number| (number, true));
        (number.parse().expect("a lesson's references are tested"), writing)
    };
    text.split_whitespace().map(one).collect()
}

fn settings(setup: &Setup) -> Result<Settings, ExperimentError> {
    let sets: Vec<String> = setup.sets.iter().map(ToString::to_string).collect();
    Ok(Settings {
        system: Some(setup.system().into()),
        policy: Some(setup.policy.into()),
        handler: Some(setup.handler.into()),
        frames: Some(setup.frames),
        ..Settings::read(None, &sets)?
    })
}

fn config(setup: &Setup) -> Result<LaneConfig, ExperimentError> {
    let mut settings = settings(setup)?;
    // All pages of the lesson are paged; it has no trace with mappings.
    settings.front_end.paged = Some("all".into());
    let trace = Provenance::new("a lesson", Fidelity::ExactReferences);
    let plan = resolve::string(&settings, &trace, &mut |_| Ok(0))?;
    plan.lane().cloned().ok_or_else(|| ExperimentError::setting("policy", "is an oracle; a lesson shows a policy"))
}

/// `A1,2*9x3 B4w`: task A reads pages 1 and 2, each nine times, and that three times; task B then writes page 4 once.
fn rows(text: &str) -> (Block, Provenance) {
    let mut rows = Block::new();
    for word in text.split_whitespace() {
        let (word, rounds) = word.split_once('x').unwrap_or((word, "1"));
        let (word, count) = word.split_once('*').unwrap_or((word, "1"));
        let number = |text: &str| text.parse::<u32>().expect("a lesson's references are tested");
        let (task, count) = (u32::from(word.as_bytes()[0] - b'A'), number(count));
        for page in (0..number(rounds)).flat_map(|_| word[1..].split(',')) {
            let (page, writing) = parse(page)[0];
            let (time, kind) = (1 + rows.len() as u64 * 1_000_000_000, if writing { Kind::Write } else { Kind::Read });
            rows.push(Reference { task, time, count, ..Reference::new(u64::from(page) * 4096, 1, kind) });
        }
    }
    // All in one address space, so that pages have the numbers of the text.
    let tasks = [("A", 0), ("B", 1)].map(|(name, id)| Task { id, name: name.into(), space: id });
    let mut trace = Provenance::new("a lesson", Fidelity::ExactReferences);
    trace.tasks = tasks.into();
    (rows, trace)
}

/// A step for each fault; what comes between two faults is the first one's.
fn play_tasks(setup: &'static Setup, lesson: &Lesson) -> Result<Played, ExperimentError> {
    let (rows, trace) = rows(lesson.text);
    let journal = tasks::journal(&settings(setup)?, &rows, &trace)?;
    let mut story = Story::of_tasks(rows.iter().map(|row| (row.address / 4096) as u32));
    let (mut steps, mut entries) = (Vec::<Step>::new(), open(&journal).expect("the machine wrote it").1);
    while let Some(entry) = entries.next_entry().expect("the machine wrote it") {
        if let Entry::Event { event: Event::Fault { page, access, .. }, .. } = &entry {
            let (page, writing) = (story.name(*page), *access == Access::Write);
            let (lines, frames, log, buffers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            steps.push(Step { page, writing, hit: false, fault: None, lines, frames, log, buffers, hand: None });
        }
        let line = story.tell(&entry);
        steps.last_mut().into_iter().for_each(|step| step.lines.extend(line.clone()));
    }
    Ok(Played { setup, priced: false, steps, busy: Vec::new(), time: Ps::ZERO, paging: Ps::ZERO })
}

fn play_one(setup: &'static Setup, lesson: &Lesson) -> Result<Played, ExperimentError> {
    let (config, references) = (config(setup)?, lesson.references());
    let pages = references.iter().map(|(page, _)| *page as usize + 1).max().unwrap_or(1);
    let mut lane = Lane::new(&config, 0, pages, 1).map_err(coldframe_drivers::RunError::from)?;
    lane.keep_journal();
    let story = Story::new(&config, pages, lesson.priced);
    let mut stage = Stage { table: PageTable::new(pages, 1), lane, story, setup, priced: lesson.priced };
    if config.handler.needs_xip {
        stage.table.count_reads();
    }
    stage.drain(true);
    let steps =
        references.iter().enumerate().map(|(i, (page, writing))| stage.step(*page, *writing, BETWEEN * (i as u64 + 1)));
    let steps = steps.collect();
    let time = stage.story.end() + BETWEEN;
    let priced = lesson.priced;
    Ok(Played {
        setup,
        priced,
        steps,
        busy: stage.story.busy(time),
        time,
        paging: stage.lane.result(&stage.table).paging,
    })
}

/// A lane with the story of its journal.
struct Stage {
    table: PageTable,
    lane: Lane,
    story: Story,
    setup: &'static Setup,
    priced: bool,
}

impl Stage {
    /// `idle`: the time of the program alone until now.
    fn step(&mut self, page: u32, writing: bool, idle: Ps) -> Step {
        let reference = PageRef::new(page, writing, false);
        let masks = self.table.masks();
        let mut lines = Vec::new();
        let (mut hit, mut fault) = (true, None);
        if !self.table.hit(&masks, reference.page(), reference.kind()) {
            let _ = self.table.miss(&masks, reference.page(), reference.kind());
            self.lane.fault(&mut self.table, PageId(page), writing, false, idle, None);
            lines = self.drain(false);
            (hit, fault) = (false, self.priced.then(|| self.story.latency()));
        }
        if self.table.counts_reads() {
            self.table.count(reference);
        }
        let frames = (0..self.setup.frames as usize).map(|frame| self.held(frame)).collect();
        Step {
            page,
            writing,
            hit,
            fault,
            lines,
            frames,
            log: self.story.log(),
            buffers: self.story.buffers(),
            hand: self.hand(),
        }
    }

    fn held(&mut self, frame: usize) -> Option<Held> {
        let page = self.story.in_frame(frame)?;
        let referenced = self.table.referenced(0, PageId(page), After::Keep);
        Some(Held { page, referenced, dirty: self.table.dirty(0, PageId(page)) })
    }

    fn hand(&self) -> Option<usize> {
        let clock = self.setup.policy.contains("clock");
        self.story.emptied().filter(|_| clock).map(|frame| (frame + 1) % self.setup.frames as usize)
    }

    /// The story of the journal's new entries; the head comes first.
    fn drain(&mut self, head: bool) -> Vec<String> {
        let bytes = self.lane.drain_journal();
        let mut entries = match head {
            true => open(&bytes).expect("the lane wrote it").1,
            false => Entries::resume(&bytes, self.story.event_time()),
        };
        let mut lines = Vec::new();
        while let Some(entry) = entries.next_entry().expect("the lane wrote it") {
            lines.extend(self.story.tell(&entry));
        }
        lines
    }
}

/// A lesson that was played, for programs.
#[derive(Serialize, JsonSchema)]
pub struct LessonRuns {
    schema_version: u32,
    kind: &'static str,
    lesson: &'static str,
    title: &'static str,
    runs: Vec<LessonRun>,
    so: String,
}

/// Its references under one setup; times are in picoseconds.
#[derive(Serialize, JsonSchema)]
struct LessonRun {
    policy: &'static str,
    handler: &'static str,
    frames: u64,
    faults: usize,
    /// Times of a lesson with prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_ps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paging_ps: Option<u64>,
    steps: Vec<Step>,
}

impl LessonRuns {
    /// Of a lesson under all its setups.
    pub fn new(lesson: &Lesson, all: &[Played]) -> LessonRuns {
        let run = |p: &Played| LessonRun {
            policy: p.setup.policy,
            handler: p.setup.handler,
            frames: p.setup.frames,
            faults: p.faults(),
            longest_ps: p.priced.then(|| p.longest().0),
            time_ps: p.priced.then_some(p.time.0),
            paging_ps: p.priced.then_some(p.paging.0),
            steps: p.steps.clone(),
        };
        LessonRuns {
            schema_version: SCHEMA_VERSION,
            kind: "lesson",
            lesson: lesson.name,
            title: lesson.title,
            runs: all.iter().map(run).collect(),
            so: (lesson.so)(all),
        }
    }
}

#[cfg(test)]
mod tests;
