//! What a run's memory group is charged with, looked at while it runs: its parts, its work, the files that are mapped.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use coldframe_kernel::{Group, Tree};
use coldframe_proc::{mappings, Process};

use crate::run::runs::GroupUse;

/// The least time between two looks, which take some 100 us.
const PAUSE: Duration = Duration::from_millis(4);
/// The time between two looks at the files, which take about a millisecond for each process.
const FILES: Duration = Duration::from_millis(50);

/// Looks at one run.
pub struct GroupLooks<'a> {
    began: Instant,
    /// Seconds of work of all processors of the machine until now.
    busy: Option<f64>,
    /// Who wants to know the files.
    files: Option<&'a Mutex<BTreeSet<PathBuf>>>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    most: GroupUse,
    due: Duration,
    files_due: Duration,
    processor: f64,
}

impl<'a> GroupLooks<'a> {
    /// Of a run that starts now. `files`: where the mapped files are added, if they are wanted.
    pub fn new(files: Option<&'a Mutex<BTreeSet<PathBuf>>>) -> GroupLooks<'a> {
        let busy = Tree::machine().busy_seconds();
        GroupLooks { began: Instant::now(), busy, files, seen: Mutex::default() }
    }

    /// Looks.
    pub fn look(&self, group: &Group) {
        let (Ok(mut seen), now) = (self.seen.lock(), self.began.elapsed()) else { return };
        if now < seen.due {
            return;
        }
        seen.due = now + PAUSE;
        let (counted, most) = (group.counters(), seen.most);
        let files = counted.files.saturating_sub(counted.shared);
        let fixed = counted.data + counted.shared + counted.kernel;
        if fixed + files > most.anonymous_bytes + most.shared_bytes + most.kernel_bytes + most.files_bytes {
            (seen.most.anonymous_bytes, seen.most.shared_bytes) = (counted.data, counted.shared);
            (seen.most.kernel_bytes, seen.most.files_bytes) = (counted.kernel, files);
        }
        seen.most.fixed_bytes = most.fixed_bytes.max(fixed);
        if let Some(work) = group.work() {
            seen.processor = work.processor.as_secs_f64();
            seen.most.worked_seconds = Some((work.processor + work.stalled).as_secs_f64());
            seen.most.waited_seconds = Some(work.waited.as_secs_f64());
        }
        if let Some(mapped) = self.files.filter(|_| now >= seen.files_due) {
            seen.files_due = now + FILES;
            let Ok(mut mapped) = mapped.lock() else { return };
            for text in group.processes().into_iter().map(|process| Process::of(process).maps()) {
                let files = mappings(&text).into_iter().filter(|mapping| mapping.inode > 0).map(|mapping| mapping.name);
                mapped.extend(files.filter(|name| name.starts_with('/')).map(PathBuf::from));
            }
        }
    }

    /// What was seen of the run, whose group has had so much at its peak; `None`: nothing.
    pub fn end(self, peak_bytes: u64) -> Option<GroupUse> {
        let seconds = self.began.elapsed().as_secs_f64();
        let busy = Tree::machine().busy_seconds().zip(self.busy).map(|(after, before)| after - before);
        let seen = self.seen.into_inner().ok()?;
        let others = busy.map_or(0.0, |busy| ((busy - seen.processor) / seconds.max(1e-3)).max(0.0));
        let looked =
            seen.most.anonymous_bytes + seen.most.files_bytes + seen.most.shared_bytes + seen.most.kernel_bytes;
        let peak_bytes = peak_bytes.max(looked);
        (peak_bytes > 0).then_some(GroupUse { peak_bytes, others, ..seen.most })
    }
}
