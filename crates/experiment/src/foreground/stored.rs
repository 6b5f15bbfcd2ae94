//! A stored trace through several plans at once: read twice, once for its pages, once for all runs.

use std::path::Path;

use coldframe_core::Ps;
use coldframe_lane::numbering::Numbering;
use coldframe_store::{Block, Fidelity, Provenance, Reader, Reference, Wanted};

use super::{Outcome, Session};
use crate::error::ExperimentError;
use crate::progress::{tell, Progress, Sink, Unit};
use crate::resolve::{self, ForegroundPlan};
use crate::result::TraceFacts;
use crate::settings::Settings;
use crate::string::facts;
use crate::systems::backing::PAGE;
use crate::systems::front_end::{spaces, FrontKey};

/// The runs of one trace.
pub struct Stored {
    /// The trace.
    pub trace: TraceFacts,
    /// Address spaces that take turns.
    pub tasks: usize,
    /// Pages touched.
    pub pages: usize,
    /// The rows had no times, so each reference took the plan's time.
    pub untimed: bool,
    /// Plans and their results, in the order of the settings.
    pub outcomes: Vec<(ForegroundPlan, Outcome)>,
}

/// Runs every configuration over the trace.
///
/// # Errors
/// Settings that do not resolve, a trace that cannot be read or does not hold what is asked of it.
pub fn simulate(path: &Path, all: &[Settings], progress: &mut dyn FnMut(Progress)) -> Result<Stored, ExperimentError> {
    run(path, all, None, progress)
}

/// Runs one configuration and hands its journal to `sink`, piece by piece.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_with_journal(
    path: &Path,
    settings: &Settings,
    sink: Sink<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Stored, ExperimentError> {
    run(path, std::slice::from_ref(settings), Some(sink), progress)
}

fn run(
    path: &Path,
    all: &[Settings],
    mut journal: Option<Sink<'_>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Stored, ExperimentError> {
    let mut reader = Reader::open(path)?;
    let trace = reader.provenance().clone();
    check(path, &trace)?;
    let pages = pages(&mut reader, &trace)?;
    let mut touched = |_: &FrontKey| Ok(pages);
    let plans = all
        .iter()
        .map(|settings| resolve::foreground(settings, &trace, &mut touched))
        .collect::<Result<Vec<_>, _>>()?;
    let mut sessions = plans.iter().map(|plan| Session::new(plan, &trace, pages)).collect::<Result<Vec<_>, _>>()?;
    let mut clocks: Vec<_> = plans.iter().map(|plan| Clock::new(&reader, plan.reference)).collect();
    if journal.is_some() {
        sessions.iter_mut().for_each(Session::keep_journal);
    }
    let (mut block, mut timed) = (Block::new(), Block::new());
    while reader.read(&mut block, Wanted::ALL)? > 0 {
        for (session, clock) in sessions.iter_mut().zip(&mut clocks) {
            session.feed(clock.tell(&block, &mut timed));
            if let Some(sink) = &mut journal {
                sink(&session.drain_journal())?;
            }
        }
        tell(progress, (reader.position(), reader.rows()), Unit::Rows)?;
    }
    let untimed = !reader.columns().time;
    let outcomes = sessions.into_iter().map(Session::finish).collect::<Vec<_>>();
    let spaces = spaces(&trace);
    let tasks =
        trace.tasks.iter().map(|task| spaces.of(task.id)).collect::<std::collections::BTreeSet<_>>().len().max(1);
    Ok(Stored {
        trace: facts(path, &trace)?,
        tasks,
        pages,
        untimed,
        outcomes: plans.into_iter().zip(outcomes).collect(),
    })
}

fn check(path: &Path, trace: &Provenance) -> Result<(), ExperimentError> {
    let unfit = |reason: &str| Err(ExperimentError::Unfit { path: path.display().to_string(), reason: reason.into() });
    if matches!(trace.fidelity, Fidelity::Sampled | Fidelity::Faults) {
        return unfit("a swap area needs every reference to a page, but the trace is sampled or holds faults only; record it anew");
    }
    if trace.page_size.is_some_and(|size| size > PAGE.0) {
        return unfit("its rows stand for pages larger than a swap slot of 4KiB; record it with smaller pages");
    }
    Ok(())
}

/// Number of distinct pages, at least one. The reader is then at the beginning again.
fn pages(reader: &mut Reader, trace: &Provenance) -> Result<usize, ExperimentError> {
    let (spaces, mut block) = (spaces(trace), Block::new());
    let mut numbering = Numbering::new(PAGE.0.trailing_zeros());
    while reader.read(&mut block, Wanted::ALL)? > 0 {
        for row in block.iter() {
            numbering.number(spaces.of(row.task), row.address / PAGE.0);
        }
    }
    reader.rewind();
    Ok(numbering.count().max(1))
}

/// Gives rows times where they have none.
struct Clock {
    now: Ps,
    /// `None`: the trace has times.
    reference: Option<Ps>,
}

impl Clock {
    fn new(reader: &Reader, reference: Ps) -> Clock {
        Clock { now: Ps::ZERO, reference: (!reader.columns().time).then_some(reference) }
    }

    fn tell<'a>(&mut self, block: &'a Block, timed: &'a mut Block) -> &'a Block {
        let Some(reference) = self.reference else { return block };
        timed.clear();
        for row in block.iter() {
            timed.push(Reference { time: self.now.0 / 1_000, ..row });
            self.now += reference * u64::from(row.count);
        }
        timed
    }
}
