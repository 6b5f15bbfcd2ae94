//! A journal as a timeline for Perfetto and chrome://tracing (Trace Event Format, JSON array form).
//!
//! ```text
//! fault      a slice on its task's track, from Event::Fault to Command::Resume       page, access, true or false
//! stages     slices within it, one after the other, where their prices are known     walk
//! wait       a slice within it: the processor has nothing to do until the load ends
//! load       a slice on the track of its ticket, from Command::Load to Event::Loaded
//! ```
//! A journal has only the times of events. In a simulation the other times follow: each stage moves the clock by its
//! price, and the rest of the time until an event is the wait. Times are in microseconds.

use std::fmt::Write as _;
use std::io::{self, Write};

use coldframe_core::{Command, Event, PageId, Ps, Stage, TaskId, Ticket, Work};

use coldframe_journal::{open, Entry, JournalError};

/// Why there is no timeline.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// The journal is damaged.
    #[error("{0}")]
    Journal(JournalError),
    /// The timeline cannot be written.
    #[error("cannot be written: {0}; check the path and the space on its file system")]
    Write(#[from] io::Error),
}

/// The prices that move the clock of a simulation.
#[derive(Clone, Copy)]
pub struct Clock<'a> {
    /// The processor's time for a stage.
    pub stage: &'a dyn Fn(Stage, &Work) -> Ps,
    /// The processor's time for each page that it passes to the device to be written.
    pub write: Ps,
}

/// Writes the timeline of the journal `bytes` to `out` and returns its number of faults.
///
/// # Errors
/// [`TimelineError`].
pub fn timeline(bytes: &[u8], clock: Clock<'_>, out: &mut dyn Write) -> Result<u64, TimelineError> {
    let (_, mut entries) = open(bytes).map_err(TimelineError::Journal)?;
    let (faults, loads) = (Vec::new(), Vec::new());
    let mut line = Line { out, clock, first: true, now: 0, task: TaskId(0), faults, loads, count: 0 };
    write!(line.out, "[")?;
    while let Some(entry) = entries.next_entry().map_err(TimelineError::Journal)? {
        match entry {
            Entry::Event { now, event } => line.event(now, event)?,
            Entry::Command(command) => line.command(command)?,
            Entry::Referenced { .. } | Entry::Dirty { .. } | Entry::Thread { .. } | Entry::Out { .. } => {}
        }
    }
    writeln!(line.out, "\n]")?;
    Ok(line.count)
}

struct Line<'a> {
    out: &'a mut dyn Write,
    clock: Clock<'a>,
    first: bool,
    /// Picoseconds of the last event, or of the end of the last priced stage after it; and the task in question.
    now: u64,
    task: TaskId,
    /// Tasks that wait, since when, and for which page.
    faults: Vec<(TaskId, u64, PageId)>,
    loads: Vec<(Ticket, u64, PageId, TaskId)>,
    count: u64,
}

impl Line<'_> {
    fn event(&mut self, now: u64, event: Event) -> io::Result<()> {
        let since = std::mem::replace(&mut self.now, now);
        self.wait(since)?;
        match event {
            Event::Fault { task, page, .. } => {
                self.task = task;
                self.faults.push((task, now, page));
            }
            Event::Loaded { ticket } => {
                let Some(at) = self.loads.iter().position(|(other, ..)| *other == ticket) else { return Ok(()) };
                let (_, since, page, task) = self.loads.swap_remove(at);
                self.task = task;
                self.slice("load", "device", ticket.0.into(), since, page)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn command(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Stage { stage, work } => self.stage(stage, work),
            Command::Write { page, .. } => self.spend("write", self.clock.write, page),
            Command::Load { ticket, page, .. } => {
                self.loads.push((ticket, self.now, page, self.task));
                Ok(())
            }
            Command::Resume { task } => {
                let Some(at) = self.faults.iter().position(|(other, ..)| *other == task) else { return Ok(()) };
                let (_, since, page) = self.faults.swap_remove(at);
                self.count += 1;
                self.slice("fault", "tasks", task.0.into(), since, page)
            }
            _ => Ok(()),
        }
    }

    fn slice(&mut self, name: &str, group: &str, track: u64, since: u64, page: PageId) -> io::Result<()> {
        let (from, length) = (microseconds(since), microseconds(self.now - since));
        let page = page.0;
        self.entry(&format!(
            "{{\"name\":\"{name}\",\"ph\":\"X\",\"pid\":\"{group}\",\"tid\":{track},\"ts\":{from},\"dur\":{length},\"args\":{{\"page\":{page}}}}}"
        ))
    }

    /// The time in which a waiting task was not served.
    fn wait(&mut self, since: u64) -> io::Result<()> {
        let stands = self.faults.iter().find(|(task, ..)| *task == self.task).map(|(.., page)| *page);
        match stands {
            Some(page) if self.now > since => self.slice("wait", "tasks", self.task.0.into(), since, page),
            _ => Ok(()),
        }
    }

    /// The processor's time, as a slice on the track of the task that it serves.
    fn spend(&mut self, name: &str, time: Ps, page: PageId) -> io::Result<()> {
        let since = self.now;
        self.now += time.0;
        match time {
            Ps::ZERO => Ok(()),
            _ => self.slice(name, "tasks", self.task.0.into(), since, page),
        }
    }

    fn stage(&mut self, stage: Stage, work: Work) -> io::Result<()> {
        let page = self.faults.iter().find(|(task, ..)| *task == self.task).map_or(PageId(0), |(.., page)| *page);
        self.spend(&format!("{stage:?}"), (self.clock.stage)(stage, &work), page)
    }

    fn entry(&mut self, json: &str) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.first) { "" } else { "," };
        write!(self.out, "{comma}\n{json}")
    }
}

/// Picoseconds as microseconds, exactly.
fn microseconds(ps: u64) -> String {
    let mut text = format!("{}", ps / 1_000_000);
    if !ps.is_multiple_of(1_000_000) {
        // Writing to a string does not fail.
        let _ = write!(text, ".{:06}", ps % 1_000_000);
    }
    text
}
