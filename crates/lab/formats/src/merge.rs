//! Several stored traces as one, by time or in slices, as a scheduler of several programs would see them.

use std::path::{Path, PathBuf};

use coldframe_store::block::{Block, Columns};
use coldframe_store::error::TraceError;
use coldframe_store::fidelity::Fidelity;
use coldframe_store::provenance::{Provenance, Task};
use coldframe_store::reference::Reference;
use coldframe_store::store::{Reader, Summary, Wanted, Writer};

/// How the rows of several traces follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By time: all traces need a clock. Traces whose clocks can be compared keep their distance in time; the others
    /// begin together.
    Time,
    /// Round robin: this many references of each trace in turn, until all have ended.
    References(u64),
    /// Round robin: this many nanoseconds of each trace's own clock in turn.
    Nanoseconds(u64),
    /// Round robin, like applications on a phone that come to the foreground. Each trace is divided into parts with
    /// equal numbers of rows. All parts take the same time, over which their rows are spread evenly.
    Visits { rounds: u32, nanoseconds: u64 },
}

struct Source {
    reader: Reader,
    block: Block,
    row: usize,
    /// The offset added to its tasks and spaces.
    task_base: u32,
    /// Nanoseconds by which its clock is ahead of the merged one.
    ahead: u64,
}

const ROWS: usize = 16 * 1024;
const SOURCES_MAX: usize = 256;

/// Merges the traces at `from` into one at `to`. Each trace keeps its own tasks and address spaces. A path that is
/// given several times counts as several programs.
///
/// # Errors
/// As [`Reader`] and [`Writer`]; [`TraceError::Usage`] for no or too many traces, a clock that is missing or a slice of
/// 0.
pub fn merge(from: &[PathBuf], order: Order, to: &Path) -> Result<Summary, TraceError> {
    from.iter().try_for_each(|path| crate::import::refuse_same_file(Some(path), to))?;
    let (mut sources, provenance) = open(from, order)?;
    let mut writer = Writer::create(to, Columns { time: gives_times(order), count: true, task: true })?;
    stream(&mut sources, order, &mut |block| writer.write(block))?;
    writer.finish(provenance)
}

fn open(from: &[PathBuf], order: Order) -> Result<(Vec<Source>, Provenance), TraceError> {
    if from.is_empty() || from.len() > SOURCES_MAX {
        let problem = format!("{} traces", from.len());
        return Err(usage("merging", problem, "give 1 to 256 traces"));
    }
    match order {
        Order::References(0) | Order::Nanoseconds(0) => {
            return Err(usage("slice", "0".into(), "give a slice of at least one"))
        }
        Order::Visits { rounds, nanoseconds } if rounds == 0 || nanoseconds == 0 => {
            return Err(usage("visits", "none, or of no time".into(), "give at least one round and some time"));
        }
        _ => {}
    }
    let sources = sources(from, order)?;
    let provenance = provenance(from, &sources, order);
    Ok((sources, provenance))
}

fn stream(sources: &mut [Source], order: Order, take: Take<'_>) -> Result<(), TraceError> {
    match order {
        Order::Time => by_time(sources, take),
        Order::Visits { rounds, nanoseconds } => in_visits(sources, rounds, nanoseconds, take),
        _ => in_turn(sources, order, take),
    }
}

/// Whether the traces need a clock.
fn timed(order: Order) -> bool {
    matches!(order, Order::Time | Order::Nanoseconds(_))
}

/// Whether the merged trace has one.
fn gives_times(order: Order) -> bool {
    !matches!(order, Order::References(_))
}

fn usage(what: &str, problem: String, remedy: &'static str) -> TraceError {
    TraceError::Usage { what: what.into(), problem, remedy: remedy.into() }
}

fn sources(from: &[PathBuf], order: Order) -> Result<Vec<Source>, TraceError> {
    let mut base = 0u32;
    let mut sources = Vec::new();
    for path in from {
        let reader = Reader::open(path)?;
        if timed(order) && !reader.columns().time {
            let what = path.display().to_string();
            return Err(usage(&what, "it has no times".into(), "mix it in slices of references, as in --slice 10000"));
        }
        let tasks = tasks_of(path, &reader)?;
        let next =
            base.checked_add(tasks).ok_or_else(|| usage("tasks", "more than 2^32".into(), "merge fewer traces"))?;
        sources.push(Source { reader, block: Block::with_capacity(ROWS), row: 0, task_base: base, ahead: 0 });
        base = next;
    }
    align(&mut sources, order);
    sources.iter_mut().try_for_each(Source::refill)?;
    Ok(sources)
}

/// The number of tasks and spaces of a trace: one more than the largest. A trace without a list of tasks is read for
/// this.
fn tasks_of(path: &Path, reader: &Reader) -> Result<u32, TraceError> {
    let listed = reader.provenance().tasks.iter().map(|task| task.id.max(task.space)).max().unwrap_or(0);
    let mut most = listed;
    if reader.columns().task {
        let mut again = Reader::open(path)?;
        let mut block = Block::new();
        while again.read(&mut block, Wanted { task: true, ..Wanted::ADDRESS })? > 0 {
            most = most.max(block.task().iter().copied().max().unwrap_or(0));
        }
    }
    most.checked_add(1).ok_or_else(|| usage("tasks", "task 2^32 - 1".into(), "number the tasks from 0"))
}

/// Traces of one clock begin as far apart as they did.
fn align(sources: &mut [Source], order: Order) {
    let clocks: Vec<_> = sources.iter().map(|source| source.reader.provenance().clock.clone()).collect();
    let same = clocks.iter().all(|clock| clock.is_some() && *clock == clocks[0]);
    let starts: Option<Vec<u64>> = sources.iter().map(|source| source.reader.provenance().started).collect();
    if let (Order::Time, true, Some(starts)) = (order, same, starts) {
        let first = starts.iter().copied().min().unwrap_or(0);
        sources.iter_mut().zip(&starts).for_each(|(source, start)| source.ahead = start - first);
    }
}

impl Source {
    fn refill(&mut self) -> Result<(), TraceError> {
        self.row = 0;
        self.reader.read(&mut self.block, Wanted::ALL).map(|_| ())
    }

    fn ended(&self) -> bool {
        self.row == self.block.len()
    }

    /// Time of the next row, by the merged clock.
    fn time(&self) -> u64 {
        self.block.time().get(self.row).copied().unwrap_or(0).saturating_add(self.ahead)
    }

    fn take(&mut self) -> Result<Reference, TraceError> {
        let time = self.time();
        let row = self.block.get(self.row);
        self.row += 1;
        if self.ended() {
            self.refill()?;
        }
        Ok(Reference { task: row.task + self.task_base, time, ..row })
    }
}

/// Rows gathered before they are written.
struct Out<'a> {
    block: Block,
    take: Take<'a>,
}

type Take<'a> = &'a mut dyn FnMut(&Block) -> Result<(), TraceError>;

impl Out<'_> {
    fn push(&mut self, row: Reference) -> Result<(), TraceError> {
        self.block.push(row);
        if self.block.len() == self.block.capacity() {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        (self.take)(&self.block)?;
        self.block.clear();
        Ok(())
    }
}

fn by_time(sources: &mut [Source], take: Take<'_>) -> Result<(), TraceError> {
    let mut out = Out { block: Block::new(), take };
    while let Some(source) = sources.iter_mut().filter(|source| !source.ended()).min_by_key(|source| source.time()) {
        out.push(source.take()?)?;
    }
    out.flush()
}

/// Slice after slice. The merged clock runs while a slice does, so a program's own clock does not run in the slices
/// of others.
fn in_turn(sources: &mut [Source], order: Order, take: Take<'_>) -> Result<(), TraceError> {
    let mut out = Out { block: Block::new(), take };
    let mut now = 0;
    while sources.iter().any(|source| !source.ended()) {
        for source in sources.iter_mut().filter(|source| !source.ended()) {
            let (start, mut left) = (source.time(), order);
            while !source.ended() && left.takes(start, source) {
                let row = source.take()?;
                left.spend(row.count);
                out.push(Reference { time: now + (row.time.saturating_sub(start)), ..row })?;
            }
            now += match order {
                Order::Nanoseconds(slice) => slice,
                _ => 0,
            };
        }
    }
    out.flush()
}

/// Visit after visit. If the rows of a source cannot be divided evenly, its last part is shorter. A source that has
/// ended has no further visits.
fn in_visits(sources: &mut [Source], rounds: u32, nanoseconds: u64, take: Take<'_>) -> Result<(), TraceError> {
    let mut out = Out { block: Block::new(), take };
    let mut now = 0;
    for _ in 0..rounds {
        for source in &mut *sources {
            let rows = source.reader.rows().div_ceil(u64::from(rounds)).max(1);
            for row in 0..rows {
                if source.ended() {
                    break;
                }
                let since = (u128::from(nanoseconds) * u128::from(row) / u128::from(rows)) as u64;
                let taken = source.take()?;
                out.push(Reference { time: now + since, ..taken })?;
            }
            now += nanoseconds;
        }
    }
    out.flush()
}

impl Order {
    /// Whether the slice that began at `start` has room for the source's next row.
    fn takes(&self, start: u64, source: &Source) -> bool {
        match self {
            Order::Time | Order::Visits { .. } => true,
            Order::References(left) => *left > 0,
            Order::Nanoseconds(slice) => source.time().saturating_sub(start) < *slice,
        }
    }

    fn spend(&mut self, references: u32) {
        if let Order::References(left) = self {
            *left = left.saturating_sub(u64::from(references));
        }
    }
}

fn provenance(from: &[PathBuf], sources: &[Source], order: Order) -> Provenance {
    let all = || sources.iter().map(|source| source.reader.provenance());
    let worst =
        all().map(|trace| trace.fidelity).max_by_key(|fidelity| Fidelity::ALL.iter().position(|f| f == fidelity));
    let mut merged = Provenance::new("merge", worst.unwrap_or(Fidelity::Sampled));
    merged.page_size = all().filter_map(|trace| trace.page_size).max();
    merged.window = all().filter_map(|trace| trace.window).max();
    merged.clock = gives_times(order).then(|| "merged".to_owned());
    for (path, source) in from.iter().zip(sources) {
        merged.tasks.extend(tasks(path, source));
        merged.notes.extend(source.reader.provenance().notes.iter().map(|note| format!("{}: {note}", path.display())));
    }
    let names: Vec<_> = from.iter().map(|path| path.display().to_string()).collect();
    let how = match order {
        Order::Time => "by time".to_owned(),
        Order::References(slice) => format!("in turns of {slice} references"),
        Order::Nanoseconds(slice) => format!("in turns of {slice} ns"),
        Order::Visits { rounds, nanoseconds } => format!("in {rounds} visits of {nanoseconds} ns each"),
    };
    merged.notes.push(format!("merged {how}: {}", names.join(", ")));
    merged
}

/// The tasks of a source under their new numbers.
fn tasks(path: &Path, source: &Source) -> Vec<Task> {
    let base = source.task_base;
    let own = &source.reader.provenance().tasks;
    if own.is_empty() {
        return vec![Task { id: base, name: path.display().to_string(), space: base }];
    }
    own.iter().map(|task| Task { id: task.id + base, name: task.name.clone(), space: task.space + base }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_store::Kind;

    fn store(dir: &Path, name: &str, started: u64, rows: &[(u64, u64)]) -> PathBuf {
        let path = dir.join(name);
        let row = |(address, time): &(u64, u64)| Reference { time: *time, ..Reference::new(*address, 1, Kind::Read) };
        let mut writer = Writer::create(&path, Columns { time: true, ..Columns::default() }).unwrap();
        writer.write(&rows.iter().map(row).collect()).unwrap();
        let mut provenance = Provenance::new("test", Fidelity::ExactReferences);
        (provenance.clock, provenance.started) = (Some("c".into()), Some(started));
        writer.finish(provenance).unwrap();
        path
    }

    fn read(path: &Path) -> Vec<(u64, u32, u64)> {
        let mut block = Block::new();
        Reader::open(path).unwrap().read(&mut block, Wanted::ALL).unwrap();
        block.iter().map(|row| (row.address, row.task, row.time)).collect()
    }

    #[test]
    fn traces_of_one_clock_merge_by_it_and_keep_their_tasks_apart() {
        let dir = tempfile::tempdir().unwrap();
        let a = store(dir.path(), "a", 1000, &[(1, 0), (2, 100)]);
        let b = store(dir.path(), "b", 1050, &[(1, 0), (3, 20)]);
        let out = dir.path().join("out");
        merge(&[a.clone(), b], Order::Time, &out).unwrap();
        assert_eq!(read(&out), [(1, 0, 0), (1, 1, 50), (3, 1, 70), (2, 0, 100)]);
        assert_eq!(Reader::open(&out).unwrap().provenance().tasks[1].space, 1);
        assert!(matches!(merge(std::slice::from_ref(&a), Order::Time, &a), Err(TraceError::Usage { .. })));
    }

    #[test]
    fn slices_take_turns_until_all_have_ended() {
        let dir = tempfile::tempdir().unwrap();
        let a = store(dir.path(), "a", 0, &[(1, 0), (2, 10), (3, 20), (4, 30)]);
        let b = store(dir.path(), "b", 0, &[(9, 0)]);
        let out = dir.path().join("out");
        merge(&[a.clone(), b.clone(), a.clone()], Order::References(3), &out).unwrap();
        let order: Vec<_> = read(&out).iter().map(|row| (row.1, row.0)).collect();
        assert_eq!(order, [(0, 1), (0, 2), (0, 3), (1, 9), (2, 1), (2, 2), (2, 3), (0, 4), (2, 4)]);
        merge(&[a.clone(), b.clone()], Order::Visits { rounds: 2, nanoseconds: 100 }, &out).unwrap();
        assert_eq!(read(&out), [(1, 0, 0), (2, 0, 50), (9, 1, 100), (3, 0, 200), (4, 0, 250)]);
        merge(&[a, b], Order::Nanoseconds(20), &out).unwrap();
        assert_eq!(read(&out), [(1, 0, 0), (2, 0, 10), (9, 1, 20), (3, 0, 40), (4, 0, 50)]);
    }
}
